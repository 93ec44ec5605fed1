//! When the origin of a session's override is worth another look.

use crate::common::{T0, health, model, profile};
use failover_auth::{Failure, Outcome, Pin, UserPinMode};
use failover_runner::health::{Health, Preference};
use failover_runner::plan::RecordStep;
use failover_types::{FailoverReason, Timestamp};
use std::time::Duration;

fn secs(seconds: u64) -> Timestamp {
    T0.after(Duration::from_secs(seconds))
}

fn limited(health: &Health, id: &str, at: Timestamp) {
    let failure = Failure::new(&model("a/m"), FailoverReason::RateLimit, at);
    let step = RecordStep::new(profile(id), model("a/m"), Outcome::Failure(failure));
    health.record(&step, None, at);
}

// spec: S-7
#[test]
fn an_origin_is_free_once_any_profile_of_the_session_is() {
    let health = health(&["a:1", "a:2", "a:3"]);
    let (any, a) = (Preference::default(), model("a/m"));
    let pinned = |id: &str| Preference::pinned(Pin::user(profile(id)), 0, UserPinMode::Strict);
    assert_eq!(health.free_at(&a, &any, T0), None);
    limited(&health, "a:1", T0);
    limited(&health, "a:2", secs(1));
    // The third was never asked: the rules of rotation let the turn ask two.
    assert_eq!(health.free_at(&a, &any, secs(2)), Some(secs(2)));
    assert_eq!(health.free_at(&a, &pinned("a:2"), secs(2)), Some(secs(31)));
    assert_eq!(health.free_at(&a, &pinned("a:3"), secs(2)), None);
    limited(&health, "a:3", secs(3));
    assert_eq!(health.free_at(&a, &any, secs(4)), Some(secs(30)));
    // All are over, whatever was long before.
    assert_eq!(health.free_at(&a, &any, secs(76)), Some(secs(33)));
    assert_eq!(health.free_at(&a, &pinned("a:2"), secs(76)), Some(secs(31)));
}

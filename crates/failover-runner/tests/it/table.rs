//! The table of requirement R-2, seen from outside: every lane and every scope.

use crate::common::{T0, attempts, engine, fail, failing, health, model, ok, play, policy, spec};
use failover_runner::plan::{Ending, Failed};
use failover_types::{FailoverReason as R, Scope};
use test_case::test_case;

/// Which profiles of `a` are tried, then who answers or how it ends. Scopes: request, model, credential, provider.
// spec
#[test_case(R::RateLimit,         ["1 b", "12 b", "12 b", "1 b"])]
#[test_case(R::Overloaded,        ["1 b", "12 b", "12 b", "1 b"])]
#[test_case(R::ServerError,       ["1 b", "1 b",  "12 b", "1 b"])]
#[test_case(R::Timeout,           ["1 b", "1 b",  "12 b", "1 b"])]
#[test_case(R::Billing,           ["1 b", "1 b",  "123 b", "1 b"])]
#[test_case(R::Auth,              ["1 b", "1 b",  "123 b", "1 b"])]
#[test_case(R::AuthPermanent,     ["1 b", "1 b",  "123 b", "1 b"])]
#[test_case(R::ModelNotFound,     ["1 b", "1 b",  "123 b", "1 b"])]
#[test_case(R::EmptyResponse,     ["1 b", "1 b",  "1 b", "1 b"])]
#[test_case(R::NoErrorDetails,    ["1 b", "1 b",  "1 b", "1 b"])]
#[test_case(R::Unclassified,      ["1 b", "1 b",  "1 b", "1 b"])]
#[test_case(R::SessionExpired,    ["1 Returned", "1 Returned", "1 Returned", "1 Returned"])]
#[test_case(R::Format,            ["1 Returned", "1 Returned", "1 Returned", "1 Returned"])]
#[test_case(R::ContentRefusal,    ["1 Returned", "1 Returned", "1 Returned", "1 Returned"])]
#[test_case(R::ContextOverflow,   ["1 Returned", "1 Returned", "1 Returned", "1 Returned"])]
#[test_case(R::Aborted,           ["1 Raised", "1 Raised", "1 Raised", "1 Raised"])]
#[test_case(R::LocalCoordination, ["1 Raised", "1 Raised", "1 Raised", "1 Raised"])]
fn lane_and_scope(reason: R, expected: [&str; 4]) {
    for (scope, expected) in
        [Scope::Request, Scope::Model, Scope::Credential, Scope::Provider].into_iter().zip(expected)
    {
        let mut failed = Failed::new(reason);
        failed.scope = scope;
        let mut engine = engine(health(&["a:1", "a:2", "a:3"]), |step, _| {
            if step.model.provider().as_str() == "a" { failing(failed.clone()) } else { ok() }
        });
        let spec = spec("run", &["a/m", "b/m"]).with_policy(policy(|p| p.retry_in_place.max = 0));
        let done = play(&mut engine, spec);
        let tried: String = engine
            .world
            .calls
            .iter()
            .filter(|(_, step)| step.model.provider().as_str() == "a")
            .map(|(_, step)| step.profile.name().to_owned())
            .collect();
        let ending =
            if done.ending == Ending::Answered { "b".to_owned() } else { format!("{:?}", done.ending) };
        assert_eq!(
            format!("{tried} {ending}"),
            expected,
            "{reason} blamed on {scope}\n{}",
            engine.timeline()
        );
    }
}

/// Whose health suffers, by who may still be used afterwards: `a/m` and its sibling `a/n` with the same profile.
// spec
#[test_case(R::RateLimit, Scope::Model, "m out")]
#[test_case(R::RateLimit, Scope::Credential, "m out, n out")]
#[test_case(R::RateLimit, Scope::Request, ""; "waiting cannot help a request that is larger than the limit")]
#[test_case(R::Overloaded, Scope::Model, "m out")]
#[test_case(R::Timeout, Scope::Credential, "m out, n out")]
#[test_case(R::ServerError, Scope::Provider, "m out, n out")]
#[test_case(R::Billing, Scope::Credential, "m out, n out")]
#[test_case(R::Auth, Scope::Credential, "m out, n out")]
#[test_case(R::ModelNotFound, Scope::Model, "")]
#[test_case(R::ModelNotFound, Scope::Credential, "")]
#[test_case(R::ModelNotFound, Scope::Provider, "")]
#[test_case(R::Unclassified, Scope::Credential, "")]
#[test_case(R::Format, Scope::Request, "")]
#[test_case(R::ContextOverflow, Scope::Credential, ""; "a request's own fault never touches health")]
#[test_case(R::Aborted, Scope::Credential, "")]
fn blame(reason: R, scope: Scope, expected: &str) {
    let mut failed = Failed::new(reason);
    failed.scope = scope;
    let mut engine = engine(health(&["a:1"]), |step, _| {
        if step.model.provider().as_str() == "a" { failing(failed.clone()) } else { ok() }
    });
    play(&mut engine, spec("run", &["a/m", "b/m"]).with_policy(policy(|p| p.retry_in_place.max = 0)));
    let mut out = Vec::new();
    for name in ["m", "n"] {
        let slots = slots(&engine, name);
        if slots.iter().all(|slot| matches!(slot.standing, failover_runner::plan::Standing::Out { .. })) {
            out.push(format!("{name} out"));
        }
    }
    assert_eq!(out.join(", "), expected);
}

fn slots<W: failover_runner::simulate::World>(
    engine: &failover_runner::simulate::Engine<W>,
    name: &str,
) -> Vec<failover_runner::plan::Slot> {
    let model = model(&format!("a/{name}"));
    engine
        .health()
        .slots(
            &(&failover_runner::plan::Candidate::new(model)).into(),
            &failover_runner::health::Preference::default(),
            None,
            engine.now(),
        )
        .slots
}

/// Rotation limits are numbers, and each lane has its own.
// spec: R-2
#[test_case(0, 1)]
#[test_case(1, 2)]
#[test_case(2, 3)]
#[test_case(9, 4; "no more than there are")]
fn rotations_are_configurable(most: u32, calls: usize) {
    for reason in [R::RateLimit, R::Overloaded, R::Timeout] {
        let mut engine = engine(health(&["a:1", "a:2", "a:3", "a:4"]), |_, _| fail(reason));
        let policy = policy(|p| {
            p.retry_in_place.max = 0;
            p.rate_limited_profile_rotations = most;
            p.overloaded_profile_rotations = most;
            p.transient_profile_rotations = most;
        });
        let done = play(&mut engine, spec("run", &["a/m"]).with_policy(policy));
        assert_eq!(attempts(&done), calls, "{reason}");
    }
}

// spec: R-2
#[test]
fn an_overloaded_rotation_waits_only_where_it_is_told_to() {
    for wait in [0, 700] {
        let mut engine = engine(health(&["a:1", "a:2"]), |step, _| {
            if step.profile.name() == "1" { fail(R::Overloaded) } else { ok() }
        });
        let policy = policy(|p| p.overloaded_backoff_ms = wait);
        play(&mut engine, spec("run", &["a/m"]).with_policy(policy));
        let took = engine.now().since(T0).as_millis();
        assert_eq!(took, u128::from(200 + wait));
    }
}

//! What an exact reset of an account's plan does.

use crate::common::{T0, model};
use crate::driver::classifier;
use failover_auth::{
    Availability, CooldownPolicy, Deadline, Failure, Outcome, UsageStats, availability, next_usage,
};
use failover_classify::{Signal, Surface};
use failover_runner::plan::Failed;
use failover_types::{ProviderId, Scope};
use std::time::Duration;
use test_case::test_case;

const DAY: u64 = 86_400;

fn told(provider: &str, headers: &[(&str, &str)], body: &str) -> Failed {
    let mut signal = Signal::new(Surface::Http).with_body(body.as_bytes());
    let provider = ProviderId::new(provider).unwrap();
    (signal.status, signal.provider, signal.headers) = (Some(429), Some(provider.as_str()), headers);
    Failed::from_verdict(&signal, &classifier().classify(&signal), T0)
}

// spec: A-13
#[test_case("openai", "")]
#[test_case("openai-codex", "")]
#[test_case("openai-codex", r#","resets_in_seconds":432000"#; "both forms")]
fn a_used_up_plan_blocks_the_whole_profile_until_its_reset(provider: &str, more: &str) {
    let reset = T0.after(Duration::from_secs(5 * DAY));
    let body = format!(
        r#"{{"error":{{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":{}{more}}}}}"#,
        reset.as_millis() / 1000
    );
    let failed = told(provider, &[], &body);
    assert_eq!((failed.scope, failed.retry_at), (Scope::Credential, Some(reset)));
    let deadline = Deadline::exact(reset, failed.reset_source.as_deref().unwrap());
    let failure =
        Failure::new(&model("openai/m"), failed.reason, T0).scope(failed.scope).deadline(Some(deadline));
    let policy = CooldownPolicy::default();
    let stats = next_usage(&UsageStats::default(), &Outcome::Failure(failure), &policy, T0);
    let blocked = availability(&stats, Some("another"), T0.after(Duration::from_secs(4 * DAY)));
    assert!(matches!(blocked, Availability::Blocked { until, .. } if until == reset), "{blocked:?}");
}

const REFUSED: &str = r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}"#;

// spec: A-13, A-14
#[test_case("unified-7d", &[], true; "a window that all models share")]
#[test_case("unified", &[], true; "the whole")]
#[test_case("unified-7d", &[("retry-after", "432000")], true; "told as a wait, too")]
#[test_case("unified-7d_oi", &[("anthropic-ratelimit-unified-status", "rejected")], false; "a model's own window")]
fn anthropics_plans_are_the_accounts(window: &str, more: &[(&str, &str)], whole: bool) {
    let at = T0.after(Duration::from_secs(5 * DAY));
    let reset = (at.as_millis() / 1000).to_string();
    let name = format!("anthropic-ratelimit-{window}");
    let (status, end) = (format!("{name}-status"), format!("{name}-reset"));
    let mut headers = vec![(status.as_str(), "rejected"), (end.as_str(), reset.as_str())];
    headers.extend(more);
    let failed = told("anthropic", &headers, REFUSED);
    assert_eq!((failed.scope == Scope::Credential, failed.reset_source.is_some()), (whole, whole));
    assert_eq!(failed.retry_at, Some(at));
}

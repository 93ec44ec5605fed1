//! From a verdict to what the plan needs of it.

use crate::plan::Failed;
use failover_classify::{RetryHint, RetryWhen, Signal, Surface, Verdict};
use failover_types::{FailoverReason, Scope, Timestamp};
use std::time::Duration;

/// Error codes of a connection that was refused, or broke before any byte of a response.
const BROKEN: [&str; 5] = ["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "UND_ERR_SOCKET"];

/// Codes of an account's plan: what it allows is used up, for every model.
const PLAN_CODES: [&str; 2] = ["usage_limit_reached", "workspace_member_usage_limit_reached"];

/// No reset is further away (requirement A-13).
const FURTHEST_RESET: Duration = Duration::from_hours(31 * 24);

impl Failed {
    /// What the plan needs of a failed attempt. Everything in it is redacted already.
    pub fn from_verdict(signal: &Signal<'_>, verdict: &Verdict, now: Timestamp) -> Self {
        let mut failed = Self::new(verdict.reason);
        failed.retry_at = verdict.hint.as_ref().and_then(|hint| hint.resolve(now));
        // A row need not know that what is used up is the account's plan: it is so for every model of it.
        let plan = verdict.scope == Scope::Model && is_of_a_plan(signal, verdict);
        failed.scope = if plan { Scope::Credential } else { verdict.scope };
        // The wait until the reset of a plan may be told twice, and the date is what other wishes of a server leave alone.
        let date = verdict.hint.as_ref().and_then(RetryHint::at).filter(|_| plan);
        let date = date.filter(|at| *at > now && *at <= now.after(FURTHEST_RESET));
        failed.retry_at = date.or(failed.retry_at);
        // A date, not a wait, and the account's rather than a model's: the reset of a usage window.
        let exact = failed.scope == Scope::Credential
            && verdict.hint.as_ref().is_some_and(|hint| match hint.when {
                RetryWhen::At(_) | RetryWhen::Wall { .. } => true,
                RetryWhen::After(_) => date.is_some() || plan && hint.source.starts_with("reset"),
            });
        if exact && failed.retry_at.is_some() {
            failed.reset_source = verdict.hint.as_ref().map(|hint| hint.source.as_ref().into());
        }
        failed.repeatable = verdict.reason == FailoverReason::ServerError || broken(signal);
        failed.status = signal.status;
        failed.code = signal.code.map(str::to_owned);
        failed.summary = verdict.evidence.preview.to_string();
        failed.rule = Some(verdict.evidence.rule.to_string());
        failed
    }
}

/// Whether a rate limit says that the plan of an account is used up.
fn is_of_a_plan(signal: &Signal<'_>, verdict: &Verdict) -> bool {
    if verdict.reason != FailoverReason::RateLimit {
        return false;
    }
    let is_plan = |text: &[u8]| PLAN_CODES.iter().any(|code| text.eq_ignore_ascii_case(code.as_bytes()));
    let matched = verdict.evidence.span.and_then(|(start, end)| signal.body.get(start..end));
    if matched.is_some_and(is_plan) || signal.code.is_some_and(|code| is_plan(code.as_bytes())) {
        return true;
    }
    // Anthropic's plans: a window that all models share has a plain name, and one of a model's own a longer one (`7d_oi`).
    let rejected = |name: &str| {
        let name = name.to_ascii_lowercase();
        let window = name.strip_prefix("anthropic-ratelimit-unified-")?.strip_suffix("status")?;
        Some(window.trim_end_matches('-').to_owned())
    };
    let refused = signal.headers.iter().filter(|(_, value)| value.trim().eq_ignore_ascii_case("rejected"));
    let windows: Vec<String> = refused.filter_map(|(name, _)| rejected(name)).collect();
    let of_a_model = windows.iter().any(|window| window.contains('_'));
    windows.iter().any(|window| !window.contains('_') && (!window.is_empty() || !of_a_model))
}

/// Whether the connection broke before any byte of a response.
fn broken(signal: &Signal<'_>) -> bool {
    let known = |code: &str| BROKEN.iter().any(|broken| broken.eq_ignore_ascii_case(code));
    signal.surface == Surface::Transport
        && signal.status.is_none()
        && (signal.code.is_some_and(known) || signal.causes.iter().any(|cause| cause.code.is_some_and(known)))
}

//! From a verdict to what the plan needs of it.

use crate::plan::Failed;
use failover_classify::{RetryWhen, Signal, Surface, Verdict};
use failover_types::{FailoverReason, Scope, Timestamp};

/// Error codes of a connection that was refused, or broke before any byte of a response.
const BROKEN: [&str; 5] = ["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "UND_ERR_SOCKET"];

impl Failed {
    /// What the plan needs of a failed attempt. Everything in it is redacted already.
    pub fn from_verdict(signal: &Signal<'_>, verdict: &Verdict, now: Timestamp) -> Self {
        let mut failed = Self::new(verdict.reason);
        failed.scope = verdict.scope;
        failed.retry_at = verdict.hint.as_ref().and_then(|hint| hint.resolve(now));
        // A date, not a wait, and the account's rather than a model's: the reset of a usage window.
        let exact = verdict.scope == Scope::Credential
            && verdict.hint.as_ref().is_some_and(|hint| match hint.when {
                RetryWhen::At(_) | RetryWhen::Wall { .. } => true,
                RetryWhen::After(_) => false,
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

/// Whether the connection broke before any byte of a response.
fn broken(signal: &Signal<'_>) -> bool {
    let known = |code: &str| BROKEN.iter().any(|broken| broken.eq_ignore_ascii_case(code));
    signal.surface == Surface::Transport
        && signal.status.is_none()
        && (signal.code.is_some_and(known) || signal.causes.iter().any(|cause| cause.code.is_some_and(known)))
}

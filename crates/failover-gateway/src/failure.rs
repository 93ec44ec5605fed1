//! From a run without an answer to what its client is told.

use crate::dialect::{AttemptNote, ErrorBody, ErrorKind};
use failover::classify::redact;
use failover::provider::AttemptFailure;
use failover::runner::plan::{Skip, Unfit, Visit, What};
use failover::runner::{Cause, RunError, RunFailure};
use failover::types::{FailoverReason, Lane, Timestamp};
use http::StatusCode;
use serde_json::Value;
use std::fmt::Write as _;

/// Longest text of a provider that a client is shown.
const MAX_QUOTE: usize = 600;
/// How deep a body is looked into for the provider's message.
const MAX_DEPTH: u8 = 6;

/// What was tried and skipped, without a word of the providers'.
pub(crate) fn notes(trail: &[Visit]) -> Vec<AttemptNote> {
    let note = |visit: &Visit| {
        let model = visit.model.to_string();
        match &visit.what {
            What::Attempt(attempt) => attempt
                .error
                .as_ref()
                .map(|error| AttemptNote::new(model, error.reason.as_str()).with_status(error.status)),
            What::Skip(skip) => {
                let reason = skip.reason().map_or(skip.code(), FailoverReason::as_str);
                let until = match skip {
                    Skip::Cooling { until, .. } | Skip::Leased { until } | Skip::ProbeSpent { until, .. } => {
                        Some(until.as_millis())
                    }
                    Skip::Unfit(_)
                    | Skip::NoProfile
                    | Skip::Paused
                    | Skip::ProviderOut { .. }
                    | Skip::SkipCache
                    | Skip::JumpedOver
                    | _ => None,
                };
                Some(AttemptNote::new(model, reason).with_until(until))
            }
        }
    };
    trail.iter().filter_map(note).collect()
}

/// How many attempts were made, and why the first candidate did not answer.
pub(crate) fn summary(trail: &[Visit]) -> (u32, Option<FailoverReason>) {
    let attempts = trail.iter().filter(|visit| matches!(visit.what, What::Attempt(_))).count();
    let first = trail.iter().find(|visit| visit.candidate == 0);
    let reason = first.and_then(|visit| match &visit.what {
        What::Attempt(attempt) => attempt.error.as_ref().map(|error| error.reason),
        What::Skip(skip) => skip.reason(),
    });
    (u32::try_from(attempts).unwrap_or(u32::MAX), reason)
}

fn reasons(trail: &[Visit]) -> Vec<FailoverReason> {
    let reason = |visit: &Visit| match &visit.what {
        What::Attempt(attempt) => attempt.error.as_ref().map(|error| error.reason),
        What::Skip(skip) => skip.reason(),
    };
    trail.iter().filter_map(reason).collect()
}

/// What kind of error a reason is for a client of the gateway, which has nothing to do with the providers' keys.
fn kind(reason: FailoverReason) -> ErrorKind {
    match reason.lane() {
        Lane::RateLimit => ErrorKind::RateLimit,
        Lane::Transient if reason == FailoverReason::Timeout => ErrorKind::Timeout,
        // Billing and keys are the gateway's own affair: its client can do nothing, and may try again later.
        Lane::Overloaded | Lane::Billing | Lane::Auth | Lane::AuthPermanent => ErrorKind::Overloaded,
        Lane::Model if reason == FailoverReason::ModelNotFound => ErrorKind::NotFound,
        Lane::Request if reason == FailoverReason::ContentRefusal => ErrorKind::ContentFilter,
        Lane::Request | Lane::Session => ErrorKind::InvalidRequest,
        Lane::Transient | Lane::Model | Lane::Opaque | Lane::Raised => ErrorKind::Server,
    }
}

/// The code that programs look for, in the words that the dialects share.
fn code(reason: FailoverReason) -> &'static str {
    if reason == FailoverReason::ContextOverflow {
        "context_length_exceeded"
    } else if reason == FailoverReason::ContentRefusal {
        "content_filter"
    } else {
        reason.as_str()
    }
}

/// The client's own mistakes keep the status that the provider gave them; a provider's trouble with the gateway does
/// not become the client's.
fn status(kind: ErrorKind, upstream: Option<u16>) -> StatusCode {
    let own = matches!(kind, ErrorKind::InvalidRequest | ErrorKind::ContentFilter | ErrorKind::NotFound);
    let theirs = upstream.filter(|status| matches!(status, 400 | 404 | 409 | 413 | 415 | 422));
    let theirs = theirs.and_then(|status| StatusCode::from_u16(status).ok());
    theirs.filter(|_| own).unwrap_or(kind.status())
}

/// The message that a body of errors has for people, wherever the dialects put it; also where it is JSON once more.
fn message(value: &Value, depth: u8) -> Option<String> {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) if depth > 0 => message(&inner, depth - 1),
            _ => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        },
        Value::Array(list) => list.iter().find_map(|value| message(value, depth.checked_sub(1)?)),
        Value::Object(fields) => {
            ["error", "errors", "response", "message", "detail", "error_description", "msg"]
                .iter()
                .filter_map(|name| fields.get(*name))
                .find_map(|value| message(value, depth.checked_sub(1)?))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// What the provider says to people, without secrets.
fn said(failure: &AttemptFailure) -> Option<String> {
    let body: Value = serde_json::from_slice(failure.body.trim_ascii()).ok()?;
    message(&body, MAX_DEPTH).map(|text| redact(&text).into_owned())
}

/// Whether it is text: what is no UTF-8 was replaced, and bytes that are none of a text's are left.
fn is_text(text: &str) -> bool {
    !text.chars().any(|letter| {
        letter == char::REPLACEMENT_CHARACTER || (letter.is_control() && !letter.is_whitespace())
    })
}

fn quote(text: &str) -> String {
    let mut quoted: String = text.chars().take(MAX_QUOTE).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    quoted
}

/// A failure that is told as itself.
fn itself(failure: &RunFailure<AttemptFailure>) -> ErrorBody {
    let verdict = failure.verdict.as_deref();
    let reason = verdict.map_or(FailoverReason::Timeout, |verdict| verdict.reason);
    let upstream = match &failure.cause {
        Cause::Error(error) => error.status,
        Cause::TimedOut | Cause::Judged(_) => None,
    };
    let kind = kind(reason);
    let own = match &failure.cause {
        Cause::Error(error) => said(error),
        Cause::TimedOut | Cause::Judged(_) => None,
    };
    let preview = verdict.map_or("", |verdict| verdict.evidence.preview.as_str());
    let text = own.as_deref().unwrap_or(preview);
    let text = if is_text(text) { text } else { "" };
    let who = failure.trail.last().map(|visit| visit.model.to_string()).unwrap_or_default();
    let message = match (&failure.cause, text) {
        (Cause::TimedOut, _) => format!("{who}: the attempt took too long"),
        (cause, "") => format!("{who}: {reason} ({cause})"),
        (_, text) => format!("{who}: {}", quote(text)),
    };
    ErrorBody::new(kind, message).with_status(status(kind, upstream)).with_code(code(reason))
}

/// Nobody has what the request goes on with.
fn held_elsewhere() -> ErrorBody {
    let text = "the request goes on with something that a provider stores (an answer, a conversation, an item, a file), and \
                no model that may be asked has it: send the conversation itself";
    ErrorBody::new(ErrorKind::InvalidRequest, text).with_code("stored_elsewhere")
}

/// The request needs something that no model has.
fn fits_nobody(trail: &[Visit], unfit: &[Unfit]) -> ErrorBody {
    let all = |of: Unfit| unfit.iter().all(|unfit| *unfit == of);
    if all(Unfit::State) {
        return held_elsewhere();
    }
    let mut message = "the request does not fit any model that may be asked".to_owned();
    for (visit, unfit) in trail.iter().zip(unfit) {
        let _ = write!(message, "; {}: {unfit}", visit.model);
    }
    let overflow = all(Unfit::ContextWindow);
    let code = if overflow { code(FailoverReason::ContextOverflow) } else { "unfit" };
    ErrorBody::new(ErrorKind::InvalidRequest, message).with_code(code)
}

/// Nobody answered: what the whole walk comes to.
fn exhausted(trail: &[Visit], soonest: Option<Timestamp>) -> ErrorBody {
    let unfit = trail
        .iter()
        .map(|visit| if let What::Skip(Skip::Unfit(unfit)) = &visit.what { Some(*unfit) } else { None });
    if let Some(unfit) = unfit.collect::<Option<Vec<_>>>().filter(|unfit| !unfit.is_empty()) {
        return fits_nobody(trail, &unfit);
    }
    let reasons = reasons(trail);
    let all = |of: Lane| !reasons.is_empty() && reasons.iter().all(|reason| reason.lane() == of);
    let last = reasons.last().copied();
    let waited_for = soonest.is_some();
    // What providers said in earlier requests is no answer to this one: all that is known is that waiting helps.
    let nobody_asked = trail.iter().all(|visit| matches!(visit.what, What::Skip(_)));
    let kind = if all(Lane::RateLimit) {
        ErrorKind::RateLimit
    } else if waited_for && (nobody_asked || reasons.iter().any(|reason| reason.lane() != Lane::Transient)) {
        ErrorKind::Overloaded
    } else {
        last.map_or(ErrorKind::Overloaded, kind)
    };
    let mut message = "no model answered".to_owned();
    for note in notes(trail) {
        let _ = write!(message, "; {}: {}", note.model, note.reason);
        if let Some(status) = note.status {
            let _ = write!(message, " (status {status})");
        }
    }
    // Nobody's request is at fault where several models failed in different ways.
    let own = matches!(kind, ErrorKind::InvalidRequest | ErrorKind::ContentFilter);
    let kind = if own { ErrorKind::Server } else { kind };
    let body = ErrorBody::new(kind, message);
    match last {
        Some(reason) => body.with_code(code(reason)),
        None => body,
    }
}

/// What the client of a failed run is told.
pub(crate) fn body(error: &RunError<AttemptFailure>) -> ErrorBody {
    let body = match error {
        RunError::Failed(failure)
        | RunError::Returned(failure)
        | RunError::Committed(failure)
        | RunError::Raised(failure) => itself(failure),
        RunError::Exhausted(summary) => exhausted(&summary.trail, summary.soonest),
        RunError::Stopped { reason, summary } => {
            let mut body = exhausted(&summary.trail, summary.soonest);
            body.message = format!("stopped by the run's bound ({}): {}", reason.code(), body.message);
            body.kind = ErrorKind::Timeout;
            body.status = ErrorKind::Timeout.status();
            body
        }
        RunError::SwitchTo { to, .. } => {
            ErrorBody::new(ErrorKind::InvalidRequest, format!("the session asks for {to} now; send it again"))
                .with_status(StatusCode::CONFLICT)
        }
        RunError::Misuse(why) => ErrorBody::new(ErrorKind::Server, why.clone())
            .with_status(StatusCode::INTERNAL_SERVER_ERROR)
            .with_code("misconfigured"),
        _ => ErrorBody::new(ErrorKind::Server, error.to_string()),
    };
    let soonest = error.soonest().map(Timestamp::as_millis);
    body.with_attempts(notes(error.trail()), soonest)
}

/// What is said of an answer that broke off after its client had a part of it.
pub(crate) fn broken_off(model: &str, reason: FailoverReason, failure: &AttemptFailure) -> ErrorBody {
    // An error that comes after content is the server's, whatever it was.
    let kind = kind(reason);
    let told = matches!(
        kind,
        ErrorKind::Timeout | ErrorKind::Overloaded | ErrorKind::RateLimit | ErrorKind::ContentFilter
    );
    let kind = if told { kind } else { ErrorKind::Server };
    let message = format!("{model} broke off in the middle of its answer: {failure}");
    let note = AttemptNote::new(model, reason.as_str()).with_status(failure.status);
    ErrorBody::new(kind, message).with_code("incomplete_answer").with_attempts(vec![note], None)
}

//! Decisions as people read them, a line each, while they are taken.

use crate::time;
use anstyle::{AnsiColor, Style};
use failover::runner::SystemClock;
use failover::runner::plan::{AttemptStep, Decision, DecisionKind, DecisionObserver, StepOutcome};
use failover::types::{Clock, FailoverReason, ModelRef, ProfileId, SessionId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Quiet text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// It answered.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// It failed.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Something else is tried.
pub(crate) const NEXT: Style = AnsiColor::Yellow.on_default();

/// Widest line, in characters.
const WIDTH: usize = 80;

/// How decisions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Lines,
    /// Not at all; they are kept for the result.
    Kept,
}

/// Writes decisions as they are taken, and keeps them.
pub(crate) struct Show<W> {
    form: Form,
    state: Mutex<State<W>>,
}

struct State<W> {
    out: W,
    started: Option<Timestamp>,
    kept: Vec<Value>,
}

impl<W: Write> Show<W> {
    /// Writes to `out`.
    pub(crate) fn new(form: Form, out: W) -> Self {
        Self { form, state: Mutex::new(State { out, started: None, kept: Vec::new() }) }
    }

    /// What was decided so far; it is forgotten here.
    pub(crate) fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.lock().kept)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A decision as machines read it, under the names of the log; what is not known is left out. It borrows: a server that
/// fails over again and again writes thousands of them a second.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    decision: &'static str,
    run_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    requested_model: &'a ModelRef,
    candidate_model: &'a ModelRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_id: Option<&'a ProfileId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_model: Option<&'a ModelRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<FailoverReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    position: usize,
    total: usize,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    health_unknown: bool,
}

impl<'a> Line<'a> {
    /// The decision, and when it fell, where that is kept.
    pub(crate) fn of(decision: &'a Decision, at: Option<Timestamp>) -> Self {
        Self {
            at: at.map(Timestamp::as_millis),
            decision: decision.kind.name(),
            run_id: decision.run.as_str(),
            session_id: decision.session.as_ref().map(SessionId::as_str),
            requested_model: &decision.requested,
            candidate_model: &decision.candidate,
            profile_id: decision.profile.as_ref(),
            next_model: decision.next.as_ref(),
            reason: decision.reason,
            rule: decision.rule.as_deref(),
            detail: decision.detail.as_deref(),
            why: why(decision),
            status: decision.status,
            position: decision.position,
            total: decision.total,
            attempts: decision.attempts,
            outcome: decision.outcome.map(StepOutcome::name),
            health_unknown: decision.unknown,
        }
    }
}

/// The same, as a value.
pub(crate) fn decision_json(decision: &Decision) -> Value {
    // Strings and numbers: nothing in it can fail to serialize.
    serde_json::to_value(Line::of(decision, None)).unwrap_or_default()
}

/// The code of why a candidate was skipped, or the chain stopped.
fn why(decision: &Decision) -> Option<&'static str> {
    if let DecisionKind::SkipCandidate { why } = &decision.kind {
        return Some(*why);
    }
    if let DecisionKind::ChainStopped { reason, .. } = &decision.kind {
        return Some(reason.code());
    }
    None
}

impl<W: Write + Send> DecisionObserver for Show<W> {
    fn on_attempt(&self, attempt: &AttemptStep) {
        let mut state = self.lock();
        state.started = Some(SystemClock::new().now());
        if self.form == Form::Lines {
            // A reader that went away must not stop the answer.
            let _ = writeln!(
                state.out,
                "  {DIM}ask{DIM:#}    {BOLD}{}{BOLD:#} {DIM}with {}{DIM:#}",
                attempt.model, attempt.profile
            );
        }
    }

    fn on_decision(&self, decision: &Arc<Decision>) {
        let mut state = self.lock();
        let took = state.started.take().map(|at| time::duration(SystemClock::new().now().since(at)));
        state.kept.push(decision_json(decision));
        let written = match self.form {
            Form::Kept => Ok(()),
            Form::Lines => lines(&mut state.out, decision, took.as_deref()),
        };
        let _ = written;
    }
}

fn lines(out: &mut impl Write, decision: &Decision, took: Option<&str>) -> std::io::Result<()> {
    let took = took.map(|took| format!(" after {took}")).unwrap_or_default();
    if let (Some(reason), true) = (decision.reason, decision.detail.is_some() || decision.rule.is_some()) {
        // A stream that broke off began with a 200, which says nothing of the failure.
        let status = decision.status.filter(|status| *status >= 400);
        let status = status.map(|status| format!("{status} ")).unwrap_or_default();
        if !matches!(decision.kind, DecisionKind::SkipCandidate { .. }) {
            writeln!(out, "  {BAD}fail{BAD:#}   {status}{BAD}{reason}{BAD:#}{DIM}{took}{DIM:#}")?;
            if let Some(detail) = &decision.detail {
                writeln!(out, "         {DIM}“{}”{DIM:#}", cut(&gist(detail), WIDTH - 11))?;
            }
            if let Some(rule) = &decision.rule {
                writeln!(out, "         {DIM}by rule {rule}{DIM:#}")?;
            }
        }
    }
    match &decision.kind {
        DecisionKind::CandidateSucceeded => {
            let profile =
                decision.profile.as_ref().map(|profile| format!(" with {profile}")).unwrap_or_default();
            writeln!(out, "  {GOOD}ok{GOOD:#}     {}{profile} answered{DIM}{took}{DIM:#}", decision.candidate)
        }
        DecisionKind::CandidateFailed => match &decision.next {
            Some(next) => writeln!(out, "  {NEXT}then{NEXT:#}   the next model: {next}"),
            None => writeln!(out, "  {NEXT}then{NEXT:#}   nothing else is tried"),
        },
        DecisionKind::RotateProfile => {
            writeln!(out, "  {NEXT}then{NEXT:#}   another key of the same provider")
        }
        DecisionKind::RetryInPlace => writeln!(out, "  {NEXT}then{NEXT:#}   the same once more"),
        DecisionKind::ProbeCooldownCandidate => {
            writeln!(
                out,
                "  {DIM}probe{DIM:#}  {} is resting; one try whether it is well again",
                decision.candidate
            )
        }
        DecisionKind::SkipCandidate { why } => {
            let reason = decision.reason.map(|reason| format!(", {reason}")).unwrap_or_default();
            writeln!(
                out,
                "  {DIM}skip{DIM:#}   {} {DIM}({}{reason}){DIM:#}",
                decision.candidate,
                why.replace('_', " ")
            )
        }
        DecisionKind::ChainStopped { reason, remaining } => writeln!(
            out,
            "  {NEXT}stop{NEXT:#}   {}; not tried: {}",
            reason.code().replace('_', " "),
            remaining.len()
        ),
        _ => Ok(()),
    }
}

/// What an error says, without the JSON around it; the text itself where it is not JSON, or was cut.
fn gist(detail: &str) -> Cow<'_, str> {
    let Ok(value) = serde_json::from_str::<Value>(detail) else { return detail.into() };
    let found = ["/error/message", "/message", "/error", "/detail"]
        .iter()
        .find_map(|path| value.pointer(path).and_then(Value::as_str).filter(|text| !text.trim().is_empty()));
    found.map_or_else(|| detail.into(), |text| text.to_owned().into())
}

/// At most `width` characters of the first line, with a sign where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= width {
        return text;
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case(r#"{"error":{"message":"slow down","code":7}}"#, "slow down"; "the usual shape")]
    #[test_case(r#"{"message":"no such model"}"#, "no such model"; "flat")]
    #[test_case(r#"{"error":"busy"}"#, "busy"; "a bare word")]
    #[test_case(r#"{"error":{"code":7}}"#, r#"{"error":{"code":7}}"#; "no words")]
    #[test_case(r#"{"error":{"message":"sl"#, r#"{"error":{"message":"sl"#; "cut")]
    #[test_case("plain words", "plain words"; "not JSON")]
    fn an_error_is_shown_by_its_words(detail: &str, shown: &str) {
        assert_eq!(gist(detail), shown);
    }
}

//! What happened, line by line.

use crate::plan::{AttemptKind, DecisionKind, Ending, LeaseKind, Step, StepOutcome, StopReason};
use failover_types::{FailoverReason, Timestamp};
use std::fmt;
use std::sync::Arc;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a line has three parts by nature")]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// Which run, or who else.
    pub run: Arc<str>,
    /// What.
    pub what: String,
}

/// Lines in the order in which they happened. Printed with times since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeline {
    /// The start.
    pub start: Timestamp,
    /// The lines.
    pub entries: Vec<Entry>,
}

impl Timeline {
    pub(super) fn new(start: Timestamp) -> Self {
        Self { start, entries: Vec::new() }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.entries.iter().map(|entry| entry.run.len()).max().unwrap_or(0);
        for entry in &self.entries {
            writeln!(f, "{:>10}  {:width$}  {}", since(entry.at, self.start), entry.run, entry.what)?;
        }
        Ok(())
    }
}

fn since(at: Timestamp, start: Timestamp) -> String {
    let ms = at.since(start).as_millis();
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// What a step tells a reader; `None` for the runner's own bookkeeping.
pub(super) fn tell(step: &Step, start: Timestamp) -> Option<String> {
    Some(match step {
        Step::OrderProfiles(_) | Step::Record(_) | Step::Claim(_) => return None,
        Step::Lease(step) => match step.kind {
            LeaseKind::Plain { .. } => return None,
            LeaseKind::Recovering => format!("asks for the lease on {} for {}", step.profile, step.model),
            LeaseKind::Probe { .. } => format!("asks to probe {} for {}", step.profile, step.model),
        },
        Step::Release => "takes the claim back".to_owned(),
        Step::Repair(_) => "asks for a repaired request".to_owned(),
        Step::Settle(step) => format!("settles on {} with {}", step.model, step.profile),
        Step::Wait(wait) if wait.wake_on_health => {
            format!("waits for the answer of others, until {} at the latest", since(wait.until, start))
        }
        Step::Wait(wait) => format!("waits until {}", since(wait.until, start)),
        Step::Attempt(step) => {
            let kind = match step.kind {
                AttemptKind::Plain => "",
                AttemptKind::Again => " again",
                AttemptKind::Probe => " as a probe",
            };
            format!("attempt {}: {} with {}{kind}", step.number, step.model, step.profile)
        }
        Step::Decision(decision) => {
            let reason = decision.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let next = match (decision.outcome, &decision.next) {
                (Some(StepOutcome::NextFallback), Some(next)) => format!(", next {next}"),
                (Some(StepOutcome::ChainExhausted), _) => ", nobody left".to_owned(),
                (Some(StepOutcome::NextFallback | StepOutcome::Succeeded) | None, _) => String::new(),
            };
            match &decision.kind {
                DecisionKind::CandidateSucceeded => format!("{} answers", decision.candidate),
                DecisionKind::CandidateFailed => match (decision.reason, &decision.detail) {
                    // A live switch is the one failure that only its text tells.
                    (Some(FailoverReason::Unclassified), Some(detail)) => {
                        format!("{} ends ({detail}){next}", decision.candidate)
                    }
                    _ => format!("{} fails{reason}{next}", decision.candidate),
                },
                DecisionKind::SkipCandidate { why } => {
                    format!("{} is skipped: {why}{reason}{next}", decision.candidate)
                }
                DecisionKind::ProbeCooldownCandidate => format!("{} is probed{reason}", decision.candidate),
                DecisionKind::RetryInPlace => format!("{} is tried again{reason}", decision.candidate),
                DecisionKind::RotateProfile => format!("{} gets another profile{reason}", decision.candidate),
                DecisionKind::ChainStopped { reason, remaining } => {
                    let rest: Vec<String> = remaining.iter().map(ToString::to_string).collect();
                    format!("stops: {}; not tried: {}", reason.code(), rest.join(", "))
                }
            }
        }
        Step::Done(done) => {
            let how = match &done.ending {
                Ending::Answered => "answered".to_owned(),
                Ending::Itself => "the error itself".to_owned(),
                Ending::Exhausted => "every candidate failed".to_owned(),
                Ending::Returned => "returned to the caller".to_owned(),
                Ending::Raised => "raised".to_owned(),
                Ending::Committed => "failed after output".to_owned(),
                Ending::Stopped(StopReason::Deadline) => "stopped by the deadline".to_owned(),
                Ending::Stopped(StopReason::Attempts) => "stopped by the bound on attempts".to_owned(),
                Ending::SwitchTo(to) => format!("the user wants {to}"),
            };
            let soonest = done.soonest.map(|at| format!(", usable again at {}", since(at, start)));
            let soonest = soonest.unwrap_or_default();
            format!("done: {how}{soonest}")
        }
    })
}

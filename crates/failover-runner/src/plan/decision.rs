//! Decisions, as observers and the log see them (requirement R-11).

use super::step::{AttemptStep, StopReason};
use failover_types::{FailoverReason, ModelRef, ProfileId, RunId, SessionId};
use std::sync::Arc;

/// One decision of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: Option<SessionId>,
    /// What was decided.
    pub kind: DecisionKind,
    /// The run's primary.
    pub requested: ModelRef,
    /// The candidate that it is about.
    pub candidate: ModelRef,
    /// The profile that it is about.
    pub profile: Option<ProfileId>,
    /// The next candidate, where there is one.
    pub next: Option<ModelRef>,
    /// Why.
    pub reason: Option<FailoverReason>,
    /// The text behind it, redacted and cut.
    pub detail: Option<String>,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// Id of the classifier's rule that decided, where one did.
    pub rule: Option<String>,
    /// Place of the candidate in the chain, from 1.
    pub position: usize,
    /// How many candidates the chain has.
    pub total: usize,
    /// How many attempts the run has made.
    pub attempts: u32,
    /// How many profiles the candidate has.
    pub profiles: usize,
    /// How the step ended, where it ended one.
    pub outcome: Option<StepOutcome>,
    /// The store did not say what it knows of the candidate's profiles: a person's pause may have been missed.
    pub unknown: bool,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecisionKind {
    /// The candidate is given up.
    CandidateFailed,
    /// The candidate answered.
    CandidateSucceeded,
    /// The candidate is not tried.
    SkipCandidate {
        /// A stable code of why.
        why: &'static str,
    },
    /// The candidate is tried though its window holds.
    ProbeCooldownCandidate,
    /// The same profile is tried again.
    RetryInPlace,
    /// Another profile is tried.
    RotateProfile,
    /// A bound of the run ended the walk.
    ChainStopped {
        /// Which.
        reason: StopReason,
        /// Who was not tried.
        remaining: Vec<ModelRef>,
    },
}

impl DecisionKind {
    /// A stable name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CandidateFailed => "candidate_failed",
            Self::CandidateSucceeded => "candidate_succeeded",
            Self::SkipCandidate { .. } => "skip_candidate",
            Self::ProbeCooldownCandidate => "probe_cooldown_candidate",
            Self::RetryInPlace => "retry_in_place",
            Self::RotateProfile => "rotate_profile",
            Self::ChainStopped { .. } => "chain_stopped",
        }
    }
}

/// How a step of the walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepOutcome {
    /// On to the next candidate.
    NextFallback,
    /// It answered.
    Succeeded,
    /// There is nobody left, or the failure ends the walk.
    ChainExhausted,
}

impl StepOutcome {
    /// The name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NextFallback => "next_fallback",
            Self::Succeeded => "succeeded",
            Self::ChainExhausted => "chain_exhausted",
        }
    }
}

/// Sees every decision of every run: metrics, a status page, a terminal. Called in the run, so it must be quick.
pub trait DecisionObserver: Send + Sync {
    /// Takes note of a decision. Who has more to do with it than to count it keeps it for later.
    fn on_decision(&self, decision: &Arc<Decision>);

    /// Takes note of an attempt that begins now.
    fn on_attempt(&self, attempt: &AttemptStep) {
        let _ = attempt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seam stays object safe.
    fn _object_safe(_: &dyn DecisionObserver) {}
}

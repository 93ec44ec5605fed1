//! Leaving a candidate, and the end of the walk.

use super::{
    AfterWait, Chosen, Decision, DecisionKind, Done, Ending, Next, Plan, SettleStep, Slots, Standing, State,
    StepOutcome, StopReason, WaitStep, What,
};
use failover_types::{FailoverReason, ModelRef, ProfileId};
use std::sync::Arc;

impl Plan {
    /// Takes a claim back, if one stands, and goes on.
    pub(super) fn leave(&mut self, then: Next) -> State {
        if self.claimed { State::Releasing { then } } else { self.go(then) }
    }

    pub(super) fn go(&mut self, then: Next) -> State {
        match then {
            Next::Profile { after: None } => State::Ordering,
            Next::Profile { after: Some(until) } => {
                State::Waiting { wait: WaitStep { until, wake_on_health: false }, then: AfterWait::Order }
            }
            Next::Candidate(index) => self.enter(index),
            Next::End(ending) => self.conclude(ending),
        }
    }

    /// The failure at hand ends the walk.
    pub(super) fn end(&mut self, ending: Ending) -> State {
        let outcome = Some(StepOutcome::ChainExhausted);
        self.decide(DecisionKind::CandidateFailed, None, self.last_reason, outcome);
        self.leave(Next::End(ending))
    }

    /// A bound of the run ends the walk; who is left is told (requirement R-16).
    pub(super) fn stop(&mut self, reason: StopReason) -> State {
        let first = if self.here.attempts > 0 { self.at + 1 } else { self.at };
        let remaining = self.walk.iter().skip(first).map(|candidate| candidate.model.clone()).collect();
        let kind = DecisionKind::ChainStopped { reason, remaining };
        self.decide(kind, None, self.last_reason, Some(StepOutcome::ChainExhausted));
        self.leave(Next::End(Ending::Stopped(reason)))
    }

    /// Nobody is left (requirement R-10).
    pub(super) fn exhausted(&mut self) -> State {
        let itself = match self.trail.as_slice() {
            [only] => matches!(only.what, What::Attempt(_)),
            [.., last] => match &last.what {
                What::Attempt(attempt) => attempt.error.as_ref().is_some_and(|error| {
                    error.reason == FailoverReason::Unclassified && error.switch.is_none()
                }),
                What::Skip(_) => false,
            },
            [] => false,
        };
        self.leave(Next::End(if itself { Ending::Itself } else { Ending::Exhausted }))
    }

    /// Endings that somebody may wait out are told when that makes sense.
    fn conclude(&mut self, ending: Ending) -> State {
        match ending {
            Ending::Exhausted | Ending::Itself | Ending::Stopped(_) => State::Outlook { index: 0, ending },
            Ending::Answered
            | Ending::Returned
            | Ending::Raised
            | Ending::Committed
            | Ending::SwitchTo(_) => self.done(ending),
        }
    }

    /// When the candidate at `index` is usable again is known. A model that is not blocked says nothing, and the
    /// windows of other models are no concern of it: both are in what [`Standing::Out`] means.
    pub(super) fn looked_out(&mut self, index: usize, ending: Ending, slots: &Slots) -> State {
        let mut soonest = None;
        let mut blocked = true;
        for slot in &slots.slots {
            match slot.standing {
                Standing::Out { until, .. } => soonest = soonest.into_iter().chain([until]).min(),
                Standing::Ready | Standing::Cold | Standing::Recovering { .. } => blocked = false,
                Standing::Paused => {}
            }
        }
        if blocked {
            self.soonest = self.soonest.into_iter().chain(soonest).min();
        }
        if index + 1 < self.walk.len() {
            State::Outlook { index: index + 1, ending }
        } else {
            self.done(ending)
        }
    }

    pub(super) fn done(&mut self, ending: Ending) -> State {
        let trail = std::mem::take(&mut self.trail);
        State::Done(Done { ending, trail, soonest: self.soonest })
    }

    /// The answer's health is recorded: tell the session, where there is one.
    pub(super) fn settle(&mut self, chosen: Chosen) -> State {
        if !self.spec.claims {
            return self.done(Ending::Answered);
        }
        self.claimed = false;
        State::Settling(SettleStep {
            model: self.candidate().model.clone(),
            profile: chosen.profile,
            primary: self.primary().model.clone(),
            fallback: self.at > 0,
            reason: self.primary_reason,
        })
    }

    /// Puts a decision about the candidate at hand before the next step.
    pub(super) fn decide(
        &mut self,
        kind: DecisionKind,
        profile: Option<&ProfileId>,
        reason: Option<FailoverReason>,
        outcome: Option<StepOutcome>,
    ) {
        let next: Option<ModelRef> = match outcome {
            Some(StepOutcome::NextFallback) => self.walk.get(self.at + 1).map(|next| next.model.clone()),
            Some(StepOutcome::Succeeded | StepOutcome::ChainExhausted) | None => None,
        };
        let error = match kind {
            DecisionKind::CandidateFailed | DecisionKind::RetryInPlace | DecisionKind::RotateProfile => {
                self.trail.last().and_then(|visit| match &visit.what {
                    What::Attempt(attempt) => attempt.error.as_ref(),
                    What::Skip(_) => None,
                })
            }
            DecisionKind::CandidateSucceeded
            | DecisionKind::SkipCandidate { .. }
            | DecisionKind::ProbeCooldownCandidate
            | DecisionKind::ChainStopped { .. } => None,
        };
        let decision = Decision {
            run: self.spec.run.clone(),
            session: self.spec.session.clone(),
            kind,
            requested: self.primary().model.clone(),
            candidate: self.candidate().model.clone(),
            profile: profile.cloned(),
            next,
            reason,
            detail: error.map(|error| error.summary.clone()).filter(|detail| !detail.is_empty()),
            status: error.and_then(|error| error.status),
            rule: error.and_then(|error| error.rule.clone()),
            position: self.at.min(self.walk.len().saturating_sub(1)) + 1,
            total: self.walk.len(),
            attempts: self.attempts,
            profiles: self.here.slots.slots.len(),
            outcome,
            unknown: self.here.slots.unknown,
        };
        self.decisions.push_back(Arc::new(decision));
    }
}

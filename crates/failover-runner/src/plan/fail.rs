//! What follows from the end of an attempt.

use super::table::{self, Action, Blame, InPlace, Remedy, Rotate, Then};
use super::{
    AfterRecord, AfterWait, AttemptEnd, AttemptError, AttemptKind, AttemptRecord, AttemptStep, Candidate,
    Chosen, DecisionKind, Ending, Failed, Next, Plan, Purpose, RecordAnswer, RecordStep, RepairKind, Skip,
    State, StepOutcome, Visit, WaitStep, What,
};
use failover_auth::{Deadline, Failure, Outcome, Success};
use failover_types::{FailoverReason, Lane, ModelRef, ModelSelector, Scope, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// What follows an attempt that the caller's own deadline ended: the next model, and nobody is to blame.
const OUT_OF_TIME: Action = table::action(Lane::Transient, Scope::Request);

/// What health remembers of a failed attempt; `None` where nobody's health suffers.
fn blamed(
    model: &ModelRef,
    failed: &Failed,
    action: Action,
    purpose: Purpose,
    started_at: Timestamp,
) -> Option<Failure> {
    match purpose {
        Purpose::Turn => {}
        // Neither a side call nor a person's question disables a profile for real turns (requirement A-16).
        Purpose::Helper | Purpose::Probe => return None,
    }
    let scope = match action.blame {
        Blame::Nobody => return None,
        Blame::Model => Scope::Model,
        Blame::Profile => Scope::Credential,
        Blame::Provider => Scope::Provider,
    };
    let deadline = failed.retry_at.map(|until| match &failed.reset_source {
        Some(source) => Deadline::exact(until, source),
        None => Deadline::hint(until),
    });
    Some(Failure::new(model, failed.reason, started_at).scope(scope).deadline(deadline))
}

impl Plan {
    /// The attempt is over.
    pub(super) fn ended(&mut self, chosen: Chosen, step: &AttemptStep, end: AttemptEnd) -> State {
        match end {
            AttemptEnd::Answered => self.answered(chosen, step),
            AttemptEnd::Failed(failed) => {
                let action = table::action(failed.lane(), failed.scope);
                self.failed(chosen, step, failed, action)
            }
            AttemptEnd::TimedOut { committed } => {
                let over = step.limits.deadline.is_some_and(|deadline| self.now >= deadline);
                let by_caller = over || step.limits.end.is_some_and(|end| end.by_caller);
                let mut failed = Failed::new(FailoverReason::Timeout);
                failed.committed = committed;
                failed.summary = if by_caller {
                    "the attempt used up its share of the run's time".to_owned()
                } else {
                    "the attempt reached its time limit".to_owned()
                };
                let action = if by_caller { OUT_OF_TIME } else { table::action(failed.lane(), failed.scope) };
                self.failed(chosen, step, failed, action)
            }
            AttemptEnd::SwitchTo { to, committed } => self.switch(&chosen, step, to, committed),
        }
    }

    fn answered(&mut self, chosen: Chosen, step: &AttemptStep) -> State {
        self.note_attempt(&chosen, step, None);
        let reason = self.primary_reason;
        self.decide(
            DecisionKind::CandidateSucceeded,
            Some(&chosen.profile),
            reason,
            Some(StepOutcome::Succeeded),
        );
        let record = RecordStep {
            profile: chosen.profile.clone(),
            model: step.model.clone(),
            outcome: Outcome::Success(Success::new(&step.model, step.started_at)),
            primary: self.at == 0,
        };
        State::Recording { record, then: AfterRecord::Settle(chosen) }
    }

    fn failed(&mut self, chosen: Chosen, step: &AttemptStep, failed: Failed, action: Action) -> State {
        self.last_reason = Some(failed.reason);
        let error = AttemptError {
            reason: failed.reason,
            status: failed.status,
            code: failed.code.clone(),
            summary: failed.summary.clone(),
            rule: failed.rule.clone(),
            switch: None,
        };
        self.note_attempt(&chosen, step, Some(error));
        self.spend_probe(&chosen, failed.lane());
        let Some(failure) = blamed(&step.model, &failed, action, self.spec.purpose, step.started_at) else {
            return self.after_failure(chosen, &failed, action, RecordAnswer::Changed);
        };
        let record = RecordStep {
            profile: chosen.profile.clone(),
            model: step.model.clone(),
            outcome: Outcome::Failure(failure),
            primary: self.at == 0,
        };
        State::Recording { record, then: AfterRecord::Fail { chosen, failed, action } }
    }

    /// The failure is remembered, or nobody is to blame for it.
    pub(super) fn after_failure(
        &mut self,
        chosen: Chosen,
        failed: &Failed,
        action: Action,
        answer: RecordAnswer,
    ) -> State {
        if failed.committed && !self.spec.replay_safe {
            return self.end(Ending::Committed);
        }
        match action.then {
            Then::Raise => self.end(Ending::Raised),
            Then::RepairOrReturn => {
                if self.repaired_session {
                    return self.end(Ending::Returned);
                }
                self.repaired_session = true;
                State::Repairing { kind: RepairKind::LostSession, chosen }
            }
            Then::Return => self.remedy(chosen, failed.reason),
            Then::NextModel => {
                if let Some(until) = self.retry_in_place(&chosen, failed, action, answer) {
                    return self.again(chosen, until);
                }
                self.rotate(&chosen, action.rotate)
            }
            Then::NextProvider => {
                let provider = self.candidate().model.provider().clone();
                self.take_out(provider, failed.reason);
                self.give_up()
            }
        }
    }

    /// When the same profile and model is worth another attempt before anything else is spent (requirement R-15).
    /// Only whoever tells of a failure first may stay: many runs on one dead credential must not all try twice.
    fn retry_in_place(
        &self,
        chosen: &Chosen,
        failed: &Failed,
        action: Action,
        answer: RecordAnswer,
    ) -> Option<Timestamp> {
        let policy = &self.spec.policy;
        let first = match answer {
            RecordAnswer::Changed => true,
            RecordAnswer::Known => false,
        };
        if !first || self.here.in_place >= policy.retry_in_place.max || chosen.kind == AttemptKind::Probe {
            return None;
        }
        let asked = failed.retry_at.map(|at| at.since(self.now));
        let wait = match action.in_place {
            InPlace::No => None,
            InPlace::AfterHint => asked
                .filter(|wait| policy.worth_waiting(*wait) && !self.another_usable(Some(&chosen.profile))),
            InPlace::AtOnce => {
                let wait = self.jitter(policy.retry_in_place.jitter_ms);
                (failed.repeatable && asked.is_none_or(|asked| asked <= wait)).then_some(wait)
            }
        }?;
        self.fits(wait).then(|| self.now.after(wait))
    }

    fn again(&mut self, mut chosen: Chosen, until: Timestamp) -> State {
        self.here.in_place += 1;
        self.decide(DecisionKind::RetryInPlace, Some(&chosen.profile), self.last_reason, None);
        chosen.kind = AttemptKind::Again;
        if until <= self.now {
            return self.attempt(chosen);
        }
        State::Waiting { wait: WaitStep { until, wake_on_health: false }, then: AfterWait::Again(chosen) }
    }

    /// Another profile of the same candidate, if the row allows one more; else the next candidate.
    fn rotate(&mut self, chosen: &Chosen, rotate: Rotate) -> State {
        self.here.tried.push(chosen.profile.clone());
        let policy = &self.spec.policy;
        let backoff = Duration::from_millis(policy.overloaded_backoff_ms);
        let (used, most, after) = match rotate {
            Rotate::No => return self.give_up(),
            Rotate::RateLimited => {
                (Some(&mut self.here.rate_limited), policy.rate_limited_profile_rotations, None)
            }
            Rotate::Overloaded => {
                let after = (!backoff.is_zero()).then(|| self.now.after(backoff));
                (Some(&mut self.here.overloaded), policy.overloaded_profile_rotations, after)
            }
            Rotate::Transient => (Some(&mut self.here.transient), policy.transient_profile_rotations, None),
            Rotate::All => (None, u32::MAX, None),
        };
        let spent = used.as_ref().is_some_and(|used| **used >= most);
        if let Some(used) = used {
            *used = used.saturating_add(1);
        }
        if spent || !self.another_usable(None) || (after.is_some() && !self.fits(backoff)) {
            return self.give_up();
        }
        self.decide(DecisionKind::RotateProfile, Some(&chosen.profile), self.last_reason, None);
        self.leave(Next::Profile { after })
    }

    /// What may still save a request that would be returned (requirements R-5, H-10).
    fn remedy(&mut self, chosen: Chosen, reason: FailoverReason) -> State {
        let Some(remedy) = table::remedy(reason) else { return self.end(Ending::Returned) };
        let special = match remedy {
            Remedy::Repair => {
                if self.repaired_format || !self.spec.policy.allow_format_retry {
                    return self.end(Ending::Returned);
                }
                self.repaired_format = true;
                return State::Repairing { kind: RepairKind::Format, chosen };
            }
            Remedy::OverflowChain => &self.spec.on_context_overflow,
            Remedy::RefusalChain => &self.spec.on_content_refusal,
        };
        // Inside its own chain the same failure goes on to the next, perhaps larger, model.
        if self.special == Some(remedy) && self.at + 1 < self.walk.len() {
            return self.give_up();
        }
        let seen = |candidate: &&Candidate| {
            self.walk.iter().take(self.at + 1).any(|known| known.model == candidate.model)
        };
        let fresh: Vec<Candidate> = special.iter().filter(|candidate| !seen(candidate)).cloned().collect();
        if fresh.is_empty() || self.special_used.contains(&remedy) {
            return self.end(Ending::Returned);
        }
        self.special = Some(remedy);
        self.special_used.push(remedy);
        self.ahead = None;
        self.walk.truncate(self.at + 1);
        for candidate in fresh {
            if !self.walk.iter().any(|known| known.covers(&candidate)) {
                self.walk.push(candidate);
            }
        }
        self.give_up()
    }

    /// The caller's hook has looked at the request.
    pub(super) fn repaired(&mut self, mut chosen: Chosen, done: bool) -> State {
        if !done {
            return self.end(Ending::Returned);
        }
        chosen.kind = AttemptKind::Again;
        self.decide(DecisionKind::RetryInPlace, Some(&chosen.profile), self.last_reason, None);
        self.attempt(chosen)
    }

    /// The user wants another model (requirement S-10).
    fn switch(&mut self, chosen: &Chosen, step: &AttemptStep, to: ModelSelector, committed: bool) -> State {
        self.last_reason = Some(FailoverReason::Unclassified);
        let error = AttemptError {
            reason: FailoverReason::Unclassified,
            status: None,
            code: None,
            summary: format!("switched to {to}"),
            rule: None,
            switch: Some(to.clone()),
        };
        self.note_attempt(chosen, step, Some(error));
        if committed && !self.spec.replay_safe {
            return self.end(Ending::Committed);
        }
        // A credential of the model at hand that is not at hand is no candidate: it was asked for by name.
        let other = |it: &Candidate| {
            it.model == step.model && to.profile.as_ref().is_some_and(|profile| *profile != chosen.profile)
        };
        let known = self.walk.iter().take(self.at + 1);
        let wanted = known.into_iter().position(|it| it.model == to.model && !other(it));
        // The same model with the credential that was chosen, where the chain has it so.
        let later = |exact: bool| {
            let mut rest = self.walk.iter().enumerate().skip(self.at + 1);
            let same = |it: &Candidate| it.model == to.model && (!exact || it.profile == to.profile);
            rest.find(|(_, candidate)| same(candidate)).map(|(index, _)| index)
        };
        match later(true).or_else(|| later(false)).or(wanted) {
            None => {
                let wanted = to.model.clone();
                let state = self.end(Ending::SwitchTo(to));
                self.decided_next(wanted);
                state
            }
            Some(index) if index <= self.at => self.give_up(),
            Some(index) => {
                if let (Some(candidate), Some(profile)) = (self.walk.get_mut(index), &to.profile) {
                    candidate.profile = Some(profile.clone());
                }
                self.decide(
                    DecisionKind::CandidateFailed,
                    None,
                    self.last_reason,
                    Some(StepOutcome::NextFallback),
                );
                self.decided_next(to.model);
                for over in self.at + 1..index {
                    if let Some(candidate) = self.walk.get(over) {
                        let model = candidate.model.clone();
                        self.trail.push(Visit { candidate: over, model, what: What::Skip(Skip::JumpedOver) });
                    }
                }
                if self.at == 0 {
                    self.primary_reason = self.last_reason;
                }
                self.leave(Next::Candidate(index))
            }
        }
    }

    /// The last decision goes on with a model that is not the next of the chain.
    fn decided_next(&mut self, model: ModelRef) {
        if let Some(decision) = self.decisions.back_mut() {
            Arc::make_mut(decision).next = Some(model);
        }
    }

    fn note_attempt(&mut self, chosen: &Chosen, step: &AttemptStep, error: Option<AttemptError>) {
        let record = AttemptRecord {
            profile: chosen.profile.clone(),
            started_at: step.started_at,
            took: self.now.since(step.started_at),
            error,
        };
        self.trail.push(Visit { candidate: self.at, model: step.model.clone(), what: What::Attempt(record) });
    }
}

//! Answers that break off after the run that got them has ended.

use super::observe::observe;
use super::{Answer, Runner};
use crate::plan::{Decision, DecisionKind, Failed, RecordStep, StepOutcome, What};
use failover_auth::{Deadline, Failure, Outcome};
use failover_classify::{AsSignal, Verdict};
use failover_provider::{Reply, ReplyStream};
use failover_types::{ModelRef, ProfileId, RunId, SessionId, Timestamp};
use std::sync::Arc;

/// Holds an answer against who gave it, should it break off while it is read: as a failed attempt is, and told as one.
/// A reader that goes away, and the caller's own deadline, are nobody's failure (requirement A-16).
pub struct Watcher {
    runner: Runner,
    run: RunId,
    session: Option<SessionId>,
    model: ModelRef,
    profile: ProfileId,
    /// The run's first candidate, the place of the one that answered, of how many, and the attempts that it took.
    requested: ModelRef,
    position: usize,
    total: usize,
    attempts: u32,
    /// When the answer was handed over.
    since: Timestamp,
    deadline: Option<Timestamp>,
}

impl Runner {
    /// What classification says of a failure at `model`. Nothing is held against anybody.
    pub fn judge<E: AsSignal>(&self, model: &ModelRef, error: &E) -> Verdict {
        self.judged(model, error).1
    }

    fn judged<E: AsSignal>(&self, model: &ModelRef, error: &E) -> (Failed, Verdict) {
        let now = self.0.clock.now();
        error.with_signal(|signal| {
            let mut signal = *signal;
            signal.provider = signal.provider.or(Some(model.provider().as_str()));
            let verdict = self.0.classifier.classify(&signal);
            (Failed::from_verdict(&signal, &verdict, now), verdict)
        })
    }

    /// Who holds this answer against its giver, should it break off before the caller's own `deadline`.
    pub fn watcher<T>(&self, answer: &Answer<T>, deadline: Option<Timestamp>) -> Watcher {
        let (first, last) = (answer.trail.first(), answer.trail.last());
        let attempts = answer.trail.iter().filter(|visit| matches!(visit.what, What::Attempt(_))).count();
        Watcher {
            runner: self.clone(),
            run: answer.run.clone(),
            session: answer.session.clone(),
            model: answer.model.clone(),
            profile: answer.profile.clone(),
            requested: first.map_or_else(|| answer.model.clone(), |first| first.model.clone()),
            position: last.map_or(1, |last| last.candidate + 1),
            total: answer.candidates,
            attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
            since: self.0.clock.now(),
            deadline,
        }
    }

    /// Watches a streamed answer while it is read.
    #[must_use]
    pub fn watch(&self, answer: Answer<Reply>, deadline: Option<Timestamp>) -> Answer<Reply> {
        if let Reply::Complete(_) = &answer.value {
            return answer;
        }
        let watcher = self.watcher(&answer, deadline);
        answer.map(|reply| match reply {
            whole @ Reply::Complete(_) => whole,
            Reply::Stream(stream) => Reply::Stream(watcher.over(stream)),
        })
    }
}

impl Watcher {
    /// Watches this stream, which is the rest of the answer.
    pub fn over(self, stream: ReplyStream) -> ReplyStream {
        stream.on_failure(move |failure| self.broke_off(failure))
    }

    /// The answer broke off while it was being read. Nothing is tried: the caller has had a part of it (requirement R-9).
    pub fn broke_off<E: AsSignal>(&self, error: &E) {
        let Self { runner, model, profile, .. } = self;
        let now = runner.0.clock.now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return;
        }
        let (failed, verdict) = runner.judged(model, error);
        let deadline = failed.retry_at.map(|until| match &failed.reset_source {
            Some(source) => Deadline::exact(until, source),
            None => Deadline::hint(until),
        });
        let failure = Failure::new(model, failed.reason, self.since).scope(failed.scope).deadline(deadline);
        let step = RecordStep::new(profile.clone(), model.clone(), Outcome::Failure(failure));
        runner.0.health.record(&step, None, now);
        runner.flush_behind();
        tracing::warn!(
            candidateModel = %model,
            profileId = %profile,
            reason = verdict.reason.as_str(),
            "model_stream_broke_off"
        );
        observe(&Arc::new(self.decision(failed)), runner.0.observer.as_deref());
    }

    /// Whoever asks why a window is there finds it among the decisions.
    fn decision(&self, failed: Failed) -> Decision {
        Decision {
            run: self.run.clone(),
            session: self.session.clone(),
            kind: DecisionKind::CandidateFailed,
            requested: self.requested.clone(),
            candidate: self.model.clone(),
            profile: Some(self.profile.clone()),
            next: None,
            reason: Some(failed.reason),
            detail: Some(failed.summary).filter(|summary| !summary.is_empty()),
            status: failed.status,
            rule: failed.rule,
            position: self.position,
            total: self.total,
            attempts: self.attempts,
            profiles: 1,
            outcome: Some(StepOutcome::ChainExhausted),
            unknown: false,
        }
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").field("run", &self.run).field("model", &self.model).finish_non_exhaustive()
    }
}

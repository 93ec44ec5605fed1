//! Answers that break off after the run that got them has ended.

use super::{Answer, Runner};
use crate::plan::{Failed, RecordStep};
use failover_auth::{Deadline, Failure, Outcome};
use failover_classify::{AsSignal, Verdict};
use failover_provider::Reply;
use failover_types::{ModelRef, ProfileId, Timestamp};

impl Runner {
    /// An answer that a run had handed over broke off while it was being read. It is held against whoever gave it, as
    /// a failed attempt is; `since` is when it was handed over. Nothing is tried: the caller has had a part of it
    /// (requirement R-9).
    pub fn broke_off<E: AsSignal>(
        &self,
        model: &ModelRef,
        profile: &ProfileId,
        since: Timestamp,
        error: &E,
    ) -> Verdict {
        let now = self.0.clock.now();
        let (failed, verdict) = error.with_signal(|signal| {
            let mut signal = *signal;
            signal.provider = signal.provider.or(Some(model.provider().as_str()));
            let verdict = self.0.classifier.classify(&signal);
            (Failed::from_verdict(&signal, &verdict, now), verdict)
        });
        let deadline = failed.retry_at.map(|until| match &failed.reset_source {
            Some(source) => Deadline::exact(until, source),
            None => Deadline::hint(until),
        });
        let failure = Failure::new(model, failed.reason, since).scope(failed.scope).deadline(deadline);
        let step = RecordStep::new(profile.clone(), model.clone(), Outcome::Failure(failure));
        self.0.health.record(&step, None, now);
        self.flush_behind();
        verdict
    }

    /// Holds a streamed answer against who gave it, should it break off while it is read. A reader that goes away, and the
    /// caller's own `deadline`, are nobody's failure (requirement A-16).
    #[must_use]
    pub fn watch(&self, answer: Answer<Reply>, deadline: Option<Timestamp>) -> Answer<Reply> {
        let (profile, model) = (answer.profile.clone(), answer.model.clone());
        answer.map(|reply| match reply {
            whole @ Reply::Complete(_) => whole,
            Reply::Stream(stream) => {
                let (runner, since) = (self.clone(), self.0.clock.now());
                Reply::Stream(stream.on_failure(move |failure| {
                    if deadline.is_none_or(|deadline| runner.0.clock.now() < deadline) {
                        let verdict = runner.broke_off(&model, &profile, since, failure);
                        tracing::warn!(
                            candidateModel = %model,
                            profileId = %profile,
                            reason = verdict.reason.as_str(),
                            "model_stream_broke_off"
                        );
                    }
                }))
            }
        })
    }
}

//! The runner over provider adapters: one neutral request, whoever answers it.

use super::{Answer, Attempt, Run, RunError, Runner};
use crate::plan::{Failed, Purpose, broke_off};
use failover_classify::{AsSignal, Surface};
use failover_provider::{AttemptFailure, AttemptLimits, AttemptScope, ChatRequest, ProviderAdapter, Reply};
use failover_types::{
    BoxFuture, Clock, ModelRef, ProfileId, ProviderId, ResolvedCredential, SessionId, Timestamp,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Gives the secret of a profile when an attempt needs it.
pub trait CredentialSource: Send + Sync {
    /// The credential, fresh; `None` for a server that wants none.
    fn resolve<'a>(
        &'a self,
        profile: &'a ProfileId,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<ResolvedCredential>, AttemptFailure>>;
}

/// Adapters by provider, the credentials that they use, and the clock that they measure with.
#[derive(Clone)]
pub struct Adapters {
    by_id: HashMap<ProviderId, Arc<dyn ProviderAdapter>>,
    credentials: Arc<dyn CredentialSource>,
    clock: Arc<dyn Clock>,
}

impl Adapters {
    /// No adapters yet.
    pub fn new(credentials: Arc<dyn CredentialSource>, clock: Arc<dyn Clock>) -> Self {
        Self { by_id: HashMap::new(), credentials, clock }
    }

    /// Adds or replaces the adapter of a provider.
    #[must_use]
    pub fn with(mut self, adapter: Arc<dyn ProviderAdapter>) -> Self {
        self.by_id.insert(adapter.id().clone(), adapter);
        self
    }

    /// Makes one attempt, as the plan wants it.
    ///
    /// # Errors
    ///
    /// [`AttemptFailure`] of the adapter, or of the credential.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, as [`ProviderAdapter::open`] is.
    pub async fn open(&self, request: &ChatRequest, attempt: &Attempt) -> Result<Reply, AttemptFailure> {
        let provider = attempt.model.provider();
        let Some(adapter) = self.by_id.get(provider) else {
            let missing = AttemptFailure::new(provider.clone(), Surface::Local).with_status(404);
            return Err(missing.with_body(b"model not found: there is no adapter for this provider"));
        };
        let credential = self.credentials.resolve(&attempt.profile, self.clock.now()).await?;
        let mut limits = AttemptLimits::none();
        limits.connect = attempt.limits.connect;
        limits.first_byte = attempt.limits.first_byte;
        limits.first_content = attempt.limits.first_content;
        limits.idle = attempt.limits.idle;
        let mut scope = AttemptScope::new(&attempt.model, Arc::clone(&self.clock))
            .with_limits(limits)
            .with_idempotency_key(&attempt.idempotency_key)
            .with_attempt(attempt.number);
        scope.credential = credential.as_ref();
        scope.deadline = attempt.limits.deadline;
        adapter.open(request, scope).await
    }
}

impl Run<'_, Reply> {
    /// Tries the candidates in order until an adapter answers. A stream counts as an answer once its first content
    /// is there: nothing that failed before has reached the caller.
    ///
    /// # Errors
    ///
    /// [`RunError`] with everything that was tried.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the attempt at hand is dropped and its connection closes.
    pub async fn chat(
        self,
        adapters: &Adapters,
        request: &ChatRequest,
    ) -> Result<Answer<Reply>, RunError<AttemptFailure>> {
        let runner = self.runner.clone();
        let (session, purpose) = (self.spec.session.clone(), self.spec.purpose);
        let limit = self.spec.policy.deadline_ms.map(Duration::from_millis);
        let deadline = limit.map(|limit| runner.0.clock.now().after(limit));
        let answer = self.run(|attempt| async move { adapters.open(request, &attempt).await }).await?;
        let (profile, model) = (answer.profile.clone(), answer.model.clone());
        Ok(answer.map(|reply| match reply {
            Reply::Stream(stream) => {
                let answered_at = runner.0.clock.now();
                Reply::Stream(stream.on_failure(move |failure| {
                    // The caller's own deadline is nobody's failure (requirement A-16).
                    if deadline.is_some_and(|deadline| runner.0.clock.now() >= deadline) {
                        return;
                    }
                    runner.stream_broke_off(profile, model, session.as_ref(), purpose, answered_at, failure);
                }))
            }
            whole @ Reply::Complete(_) => whole,
        }))
    }
}

impl Runner {
    /// A stream that had counted as an answer has failed: its profile's health must know, and nothing is replayed
    /// (requirement R-9).
    fn stream_broke_off(
        &self,
        profile: ProfileId,
        model: ModelRef,
        session: Option<&SessionId>,
        purpose: Purpose,
        answered_at: Timestamp,
        failure: &AttemptFailure,
    ) {
        let now = self.0.clock.now();
        let failed = failure.with_signal(|signal| {
            let verdict = self.0.classifier.classify(signal);
            Failed::from_verdict(signal, &verdict, now)
        });
        tracing::warn!(
            candidateModel = %model,
            profileId = %profile,
            sessionId = session.map(SessionId::as_str),
            reason = failed.reason.as_str(),
            detail = failed.summary,
            "model_stream_broke_off"
        );
        let Some(step) = broke_off(profile, model, &failed, purpose, answered_at) else { return };
        self.0.health.record(&step, session, now);
        self.flush_behind();
    }
}

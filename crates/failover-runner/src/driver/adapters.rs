//! The runner over provider adapters: one neutral request, whoever answers it.

use super::{Answer, Attempt, Run, RunError};
use crate::plan::Purpose;
use failover_classify::Surface;
use failover_provider::{
    AttemptFailure, AttemptLimits, AttemptScope, ChatRequest, Dialect, ProviderAdapter, Reply,
};
use failover_types::{BoxFuture, Clock, ModelRef, ProfileId, ProviderId, ResolvedCredential, Timestamp};
use std::collections::BTreeMap;
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

/// Is told of every attempt that failed with a credential. It must not hold the run up: what takes time goes into a task
/// of its own.
pub trait FailureWatch: Send + Sync {
    /// An attempt at `model` with `credential` has failed.
    fn failed(&self, model: &ModelRef, credential: &ResolvedCredential, failure: &AttemptFailure);
}

/// Adapters by provider, the credentials that they use, and the clock that they measure with.
#[derive(Clone)]
pub struct Adapters {
    /// There are few: comparing is quicker than hashing.
    by_id: BTreeMap<ProviderId, Arc<dyn ProviderAdapter>>,
    credentials: Arc<dyn CredentialSource>,
    clock: Arc<dyn Clock>,
    watch: Option<Arc<dyn FailureWatch>>,
}

impl Adapters {
    /// No adapters yet.
    pub fn new(credentials: Arc<dyn CredentialSource>, clock: Arc<dyn Clock>) -> Self {
        Self { by_id: BTreeMap::new(), credentials, clock, watch: None }
    }

    /// Adds or replaces the adapter of a provider.
    #[must_use]
    pub fn with(mut self, adapter: Arc<dyn ProviderAdapter>) -> Self {
        self.by_id.insert(adapter.id().clone(), adapter);
        self
    }

    /// Tells `watch` of every attempt that failed with a credential.
    #[must_use]
    pub fn watched_by(mut self, watch: Arc<dyn FailureWatch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// The dialect in which a provider's answers pass through, where it has one.
    pub fn dialect(&self, provider: &ProviderId) -> Option<Dialect> {
        self.by_id.get(provider)?.dialect()
    }

    /// Whether a provider has a place for all that a request shows ([`ProviderAdapter::takes`]).
    pub fn takes(&self, provider: &ProviderId, request: &ChatRequest) -> bool {
        self.by_id.get(provider).is_none_or(|adapter| request.shown().all(|shown| adapter.takes(shown)))
    }

    /// Whether there is an adapter of this provider.
    pub fn serves(&self, provider: &ProviderId) -> bool {
        self.by_id.contains_key(provider)
    }

    /// The providers, in order of name.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderId> {
        self.by_id.keys()
    }

    /// Makes one attempt, as the plan wants it. `asked` says that it goes to the provider that the caller asked, and that
    /// what the caller's history holds of it is to be sent ([`AttemptScope::asked`]).
    ///
    /// # Errors
    ///
    /// [`AttemptFailure`] of the adapter, or of the credential.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, as [`ProviderAdapter::open`] is.
    pub async fn open(
        &self,
        request: &ChatRequest,
        attempt: &Attempt,
        asked: bool,
    ) -> Result<Reply, AttemptFailure> {
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
        if let Some(whole) = attempt.limits.whole.filter(|_| !request.stream) {
            // Servers send the head of an answer that comes whole when they have all of it.
            (limits.first_byte, limits.first_content) = (None, Some(whole));
        }
        limits.idle = attempt.limits.idle;
        let mut scope = AttemptScope::new(&attempt.model, Arc::clone(&self.clock))
            .with_limits(limits)
            .with_idempotency_key(&attempt.idempotency_key)
            .with_attempt(attempt.number)
            .with_asked(asked);
        scope.credential = credential.as_ref();
        scope.deadline = attempt.limits.deadline;
        let opened = adapter.open(request, scope).await;
        if let (Err(failure), Some(watch), Some(credential)) = (&opened, &self.watch, &credential) {
            watch.failed(&attempt.model, credential, failure);
        }
        opened
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
        let runner = self.runner;
        let turn = self.spec.purpose == Purpose::Turn;
        let limit = self.spec.policy.deadline_ms.map(Duration::from_millis);
        let deadline = limit.map(|limit| runner.0.clock.now().after(limit));
        let asked = self.spec.chain.first().map(|first| first.model.provider().clone());
        let asked = |attempt: &Attempt| asked.as_ref().is_none_or(|asked| asked == attempt.model.provider());
        let open = |attempt| async move { adapters.open(request, &attempt, asked(&attempt)).await };
        let answer = self.run(open).await?;
        // A side call never disables a profile for real turns (requirement A-16).
        Ok(if turn { runner.watch(answer, deadline) } else { answer })
    }
}

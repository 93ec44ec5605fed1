//! What one attempt is allowed and given.

use failover_types::{Clock, ModelRef, ResolvedCredential, Secret, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Time limits of one attempt, by origin. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptLimits {
    /// Until name resolution, TCP and TLS are done.
    pub connect: Option<Duration>,
    /// From the request's start until the first byte of the response's head.
    pub first_byte: Option<Duration>,
    /// From the request's start until the first content; heartbeats and comments are none.
    pub first_content: Option<Duration>,
    /// Between two pieces of content; heartbeats and comments do not feed it.
    pub idle: Option<Duration>,
}

impl AttemptLimits {
    /// No limits.
    pub fn none() -> Self {
        Self::default()
    }

    /// Limits the connection's set-up.
    #[must_use]
    pub fn with_connect(mut self, limit: Duration) -> Self {
        self.connect = Some(limit);
        self
    }

    /// Limits the wait for the response's head.
    #[must_use]
    pub fn with_first_byte(mut self, limit: Duration) -> Self {
        self.first_byte = Some(limit);
        self
    }

    /// Limits the wait for the first content.
    #[must_use]
    pub fn with_first_content(mut self, limit: Duration) -> Self {
        self.first_content = Some(limit);
        self
    }

    /// Limits the wait between pieces of content.
    #[must_use]
    pub fn with_idle(mut self, limit: Duration) -> Self {
        self.idle = Some(limit);
        self
    }
}

/// What one attempt is allowed and given. Built with [`AttemptScope::new`] and `with_*`; it may grow.
#[derive(Clone)]
#[non_exhaustive]
pub struct AttemptScope<'a> {
    /// The model to ask.
    pub model: &'a ModelRef,
    /// The clock that every limit is measured with. Shared, because a stream outlives the scope.
    pub clock: Arc<dyn Clock>,
    /// The credential to use; `None` for servers that want none.
    pub credential: Option<&'a ResolvedCredential>,
    /// Time limits by origin.
    pub limits: AttemptLimits,
    /// When the whole attempt, its stream included, must be over.
    pub deadline: Option<Timestamp>,
    /// Sent along where the provider knows such a thing; the same for every attempt of one request.
    pub idempotency_key: Option<&'a str>,
    /// Number of this attempt within its run, from 1.
    pub attempt: u32,
    /// Whether this is whom the caller asked: what stands in the caller's own history without its origin is this
    /// provider's.
    pub asked: bool,
    /// Secrets, besides the credential's, that must not survive in anything that comes back.
    pub secrets: &'a [Secret],
}

impl<'a> AttemptScope<'a> {
    /// A first attempt at `model` without credential and limits.
    pub fn new(model: &'a ModelRef, clock: Arc<dyn Clock>) -> Self {
        Self {
            model,
            clock,
            credential: None,
            limits: AttemptLimits::none(),
            deadline: None,
            idempotency_key: None,
            attempt: 1,
            asked: true,
            secrets: &[],
        }
    }

    /// Gives the credential.
    #[must_use]
    pub fn with_credential(mut self, credential: &'a ResolvedCredential) -> Self {
        self.credential = Some(credential);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: AttemptLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the end of the whole attempt.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Timestamp) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: &'a str) -> Self {
        self.idempotency_key = Some(key);
        self
    }

    /// Numbers the attempt.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Says whether this is whom the caller asked, and not somebody who answers in their place.
    #[must_use]
    pub fn with_asked(mut self, asked: bool) -> Self {
        self.asked = asked;
        self
    }

    /// Names further secrets to strike out.
    #[must_use]
    pub fn with_secrets(mut self, secrets: &'a [Secret]) -> Self {
        self.secrets = secrets;
        self
    }

    /// Every secret that must not survive in anything that comes back.
    pub fn known_secrets(&self) -> impl Iterator<Item = &'a Secret> + use<'a> {
        self.credential.map(|credential| &credential.secret).into_iter().chain(self.secrets)
    }
}

impl fmt::Debug for AttemptScope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptScope")
            .field("model", self.model)
            .field("profile", &self.credential.map(|credential| &credential.profile))
            .field("limits", &self.limits)
            .field("deadline", &self.deadline)
            .field("idempotency_key", &self.idempotency_key)
            .field("attempt", &self.attempt)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

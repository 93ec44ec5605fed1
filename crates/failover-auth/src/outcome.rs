//! How an attempt ended, as far as the health of its credential is concerned.

use failover_types::{FailoverReason, ModelRef, ProviderId, Scope, Timestamp};
use std::sync::Arc;

/// What an attempt was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new tag must break every match on it")]
pub enum AttemptTag {
    /// A real turn; also one that tries a recovering profile on behalf of a real turn.
    #[default]
    Turn,
    /// A health check that nobody waits for. Its failure changes nothing.
    Probe,
    /// A side call: a title, a summary. Its failure changes nothing.
    Helper,
}

/// What kind of word a provider gave about the end of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new kind must break every match on it")]
pub enum DeadlineKind {
    /// A wait: `retry-after`, a text.
    Hint,
    /// The exact time at which a subscription's window resets, and what told it.
    Exact(Arc<str>),
}

/// A time before which the provider does not want to be asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deadline {
    /// When asking makes sense again.
    pub until: Timestamp,
    /// What kind of word it is.
    pub kind: DeadlineKind,
}

impl Deadline {
    /// From a retry hint that was resolved to a time.
    pub fn hint(until: Timestamp) -> Self {
        Self { until, kind: DeadlineKind::Hint }
    }

    /// From an exact reset time; `source` names what told it.
    pub fn exact(until: Timestamp, source: &str) -> Self {
        Self { until, kind: DeadlineKind::Exact(source.into()) }
    }
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// Who was asked.
    pub provider: ProviderId,
    /// The provider's own name of the model that was asked, where known.
    pub model: Option<Arc<str>>,
    /// Why it failed.
    pub reason: FailoverReason,
    /// What is to blame.
    pub scope: Scope,
    /// The provider's own word about the wait, if it gave one.
    pub deadline: Option<Deadline>,
    /// When the attempt began.
    pub started_at: Timestamp,
    /// What it was made for.
    pub tag: AttemptTag,
    /// The caller cancelled it, or the caller's own deadline ended it: nobody's health suffers.
    pub by_caller: bool,
}

impl Failure {
    /// A failure of a real turn at a known model, blamed as its reason says.
    pub fn new(model: &ModelRef, reason: FailoverReason, started_at: Timestamp) -> Self {
        let mut failure = Self::without_model(model.provider().clone(), reason, started_at);
        failure.model = Some(model.model().into());
        failure
    }

    /// A failure of which no model is known.
    pub fn without_model(provider: ProviderId, reason: FailoverReason, started_at: Timestamp) -> Self {
        Self {
            provider,
            model: None,
            reason,
            scope: reason.default_scope(),
            deadline: None,
            started_at,
            tag: AttemptTag::Turn,
            by_caller: false,
        }
    }

    /// Blames something else than the default of the reason.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Adds the provider's own word about the wait.
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Deadline>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Says what the attempt was made for.
    #[must_use]
    pub fn tag(mut self, tag: AttemptTag) -> Self {
        self.tag = tag;
        self
    }

    /// Says that the caller ended it.
    #[must_use]
    pub fn by_caller(mut self, by_caller: bool) -> Self {
        self.by_caller = by_caller;
        self
    }

    /// Whether it belongs in the provider's own record instead of the profile's.
    pub fn blames_provider(&self) -> bool {
        self.scope == Scope::Provider
    }
}

/// An answered attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Success {
    /// The provider's own name of the model that answered, where known.
    pub model: Option<Arc<str>>,
    /// When the attempt began.
    pub started_at: Timestamp,
}

impl Success {
    /// A success of `model`.
    pub fn new(model: &ModelRef, started_at: Timestamp) -> Self {
        Self { model: Some(model.model().into()), started_at }
    }

    /// A success of which no model is known: it says nothing about windows of single models.
    pub fn without_model(started_at: Timestamp) -> Self {
        Self { model: None, started_at }
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: an attempt succeeds or fails")]
pub enum Outcome {
    /// It answered.
    Success(Success),
    /// It did not.
    Failure(Failure),
}

impl From<Success> for Outcome {
    fn from(success: Success) -> Self {
        Self::Success(success)
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

//! What a run gives back.

use crate::plan::{AttemptError, StopReason, Visit, What};
use failover_classify::Verdict;
use failover_session::Notice;
use failover_types::{ModelRef, ModelSelector, ProfileId, RunId, SessionId, Timestamp};
use std::error::Error;
use std::fmt;

/// What a run gives back where somebody answered.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer<T> {
    /// What the attempt returned.
    pub value: T,
    /// Who answered.
    pub model: ModelRef,
    /// With which credential.
    pub profile: ProfileId,
    /// Everything that was tried or skipped, in order.
    pub trail: Vec<Visit>,
    /// What the user should be told, once: the session has moved to a fallback, or back.
    pub notices: Vec<Notice>,
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: Option<SessionId>,
    /// How many candidates it had.
    pub candidates: usize,
}

impl<T> Answer<T> {
    /// The same answer with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        let Self { value, model, profile, trail, notices, run, session, candidates } = self;
        Answer { value: change(value), model, profile, trail, notices, run, session, candidates }
    }
}

/// What ended the last attempt.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "an attempt fails in one of these ways")]
pub enum Cause<E> {
    /// The caller's error, untouched.
    Error(E),
    /// The attempt's time was up.
    TimedOut,
    /// `classify_result` judged the result to be a failure.
    Judged(Box<Verdict>),
}

/// A failure that ends the run as itself.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunFailure<E> {
    /// What went wrong.
    pub cause: Cause<E>,
    /// What classification says of it, where it was asked.
    pub verdict: Option<Box<Verdict>>,
    /// Everything that was tried or skipped, in order.
    pub trail: Vec<Visit>,
    /// When something becomes usable again, as far as a cooldown is why it is not.
    pub soonest: Option<Timestamp>,
}

/// Why a run has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError<E> {
    /// The last error itself: it was the only one, or nobody recognized it.
    Failed(RunFailure<E>),
    /// The request is at fault; change it (compact it, say), then run again.
    Returned(RunFailure<E>),
    /// Not a provider's failure: it was cancelled, or something on this machine stands in the way.
    Raised(RunFailure<E>),
    /// The attempt failed after it had delivered output or done something.
    Committed(RunFailure<E>),
    /// Every candidate failed or was skipped.
    Exhausted(FallbackSummaryError<E>),
    /// A bound of the run ended it.
    Stopped {
        /// Which bound.
        reason: StopReason,
        /// What had failed by then.
        summary: FallbackSummaryError<E>,
    },
    /// The user wants a model that is not in the chain.
    SwitchTo {
        /// Which.
        to: ModelSelector,
        /// Everything that was tried or skipped, in order.
        trail: Vec<Visit>,
    },
    /// The run cannot be started as it was given, or a fault of the runner itself.
    Misuse(String),
}

/// Everything that was tried, and when trying again makes sense. Its source is the last error.
#[derive(Debug)]
#[non_exhaustive]
pub struct FallbackSummaryError<E> {
    /// Everything that was tried or skipped, in order.
    pub trail: Vec<Visit>,
    /// When something becomes usable again, as far as a cooldown is why it is not.
    pub soonest: Option<Timestamp>,
    /// What ended the last attempt; `None` where none was made.
    pub last: Option<Cause<E>>,
}

impl<E> FallbackSummaryError<E> {
    /// The failed attempts.
    pub fn attempts(&self) -> impl Iterator<Item = (&Visit, &AttemptError)> {
        self.trail.iter().filter_map(|visit| match &visit.what {
            What::Attempt(attempt) => attempt.error.as_ref().map(|error| (visit, error)),
            What::Skip(_) => None,
        })
    }
}

impl<E> RunError<E> {
    fn failure(&self) -> Option<&RunFailure<E>> {
        match self {
            Self::Failed(failure)
            | Self::Returned(failure)
            | Self::Raised(failure)
            | Self::Committed(failure) => Some(failure),
            Self::Exhausted(_) | Self::Stopped { .. } | Self::SwitchTo { .. } | Self::Misuse(_) => None,
        }
    }

    fn summary(&self) -> Option<&FallbackSummaryError<E>> {
        match self {
            Self::Exhausted(summary) | Self::Stopped { summary, .. } => Some(summary),
            Self::Failed(_)
            | Self::Returned(_)
            | Self::Raised(_)
            | Self::Committed(_)
            | Self::SwitchTo { .. }
            | Self::Misuse(_) => None,
        }
    }

    /// Everything that was tried or skipped, in order.
    pub fn trail(&self) -> &[Visit] {
        if let Self::SwitchTo { trail, .. } = self {
            return trail;
        }
        let failed = self.failure().map(|failure| failure.trail.as_slice());
        failed.or(self.summary().map(|summary| summary.trail.as_slice())).unwrap_or_default()
    }

    /// When something becomes usable again, as far as a cooldown is why it is not.
    pub fn soonest(&self) -> Option<Timestamp> {
        let failed = self.failure().and_then(|failure| failure.soonest);
        failed.or(self.summary().and_then(|summary| summary.soonest))
    }

    /// What ended the last attempt, where one was made.
    pub fn cause(&self) -> Option<&Cause<E>> {
        let failed = self.failure().map(|failure| &failure.cause);
        failed.or(self.summary().and_then(|summary| summary.last.as_ref()))
    }

    /// The caller's own error that ended the run, where there is one.
    pub fn into_error(self) -> Option<E> {
        let cause = match self {
            Self::Failed(failure)
            | Self::Returned(failure)
            | Self::Raised(failure)
            | Self::Committed(failure) => Some(failure.cause),
            Self::Exhausted(summary) | Self::Stopped { summary, .. } => summary.last,
            Self::SwitchTo { .. } | Self::Misuse(_) => None,
        };
        match cause {
            Some(Cause::Error(error)) => Some(error),
            Some(Cause::TimedOut | Cause::Judged(_)) | None => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::TimedOut => f.write_str("the attempt took too long"),
            Self::Judged(verdict) => write!(f, "the result was judged to be a failure ({})", verdict.reason),
        }
    }
}

impl<E> fmt::Display for FallbackSummaryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no model answered ({} tried or skipped)", self.trail.len())?;
        for visit in &self.trail {
            write!(f, "; {visit}")?;
        }
        Ok(())
    }
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) | Self::Raised(failure) => failure.cause.fmt(f),
            Self::Returned(failure) => write!(f, "the request must be changed: {}", failure.cause),
            Self::Committed(failure) => write!(f, "failed after output was delivered: {}", failure.cause),
            Self::Exhausted(summary) => summary.fmt(f),
            Self::Stopped { reason, summary } => {
                write!(f, "stopped by the run's bound ({}): {summary}", reason.code())
            }
            Self::SwitchTo { to, .. } => write!(f, "the user wants {to}, which is not in the chain"),
            Self::Misuse(why) => f.write_str(why),
        }
    }
}

impl<E: Error + 'static> Cause<E> {
    fn error(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Error(error) => Some(error),
            Self::TimedOut | Self::Judged(_) => None,
        }
    }
}

impl<E: Error + 'static> Error for FallbackSummaryError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().and_then(Cause::error)
    }
}

impl<E: Error + 'static> Error for RunError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause().and_then(Cause::error)
    }
}

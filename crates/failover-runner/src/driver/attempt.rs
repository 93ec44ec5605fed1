//! What an attempt is given, and carrying one out.

use crate::plan::{AttemptKind, AttemptLimits, AttemptStep};
use failover_types::{Clock, ModelRef, ModelSelector, ProfileId};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// One attempt, as the caller's closure gets it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The model to ask.
    pub model: ModelRef,
    /// The credential to use; `provider:default` where the runner was given none.
    pub profile: ProfileId,
    /// Number of the attempt in the run, from 1.
    pub number: u32,
    /// To be sent along: the same for every attempt of the run.
    pub idempotency_key: Arc<str>,
    /// Time limits. The end is kept by the runner; the others are for the client.
    pub limits: AttemptLimits,
    /// What the attempt is, apart from an attempt.
    pub kind: AttemptKind,
    signals: Arc<Signals>,
}

/// What a caller says while its attempt lasts.
#[derive(Debug, Default)]
pub(super) struct Signals {
    committed: AtomicBool,
    switch: Mutex<Option<ModelSelector>>,
}

impl Signals {
    pub(super) fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Acquire)
    }

    pub(super) fn switched(&self) -> Option<ModelSelector> {
        self.switch.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Attempt {
    pub(super) fn new(step: &AttemptStep) -> Self {
        Self {
            model: step.model.clone(),
            profile: step.profile.clone(),
            number: step.number,
            idempotency_key: Arc::clone(&step.idempotency_key),
            limits: step.limits,
            kind: step.kind,
            signals: Arc::default(),
        }
    }

    /// Says that output was delivered, or that a side effect happened: from now on a failure of this attempt is
    /// returned, not repeated elsewhere.
    pub fn commit(&self) {
        self.signals.committed.store(true, Ordering::Release);
    }

    /// Whether output was delivered.
    pub fn is_committed(&self) -> bool {
        self.signals.is_committed()
    }

    /// Says that the user wants another model now. It counts once the attempt ends with an error.
    pub fn switch_to(&self, model: ModelSelector) {
        *self.signals.switch.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
    }

    pub(super) fn signals(&self) -> Arc<Signals> {
        Arc::clone(&self.signals)
    }
}

/// How carrying out an attempt ended.
pub(super) enum Outcome<R> {
    /// The future is ready.
    Ready(R),
    /// The end of the attempt came first, or the run's.
    TimedOut,
    /// The user wants another model.
    Switched(ModelSelector),
}

/// Waits for the attempt, its limits and the user, whichever is first. The loser is dropped, and with it its
/// connection (requirement R-17). Output that has begun is given the whole run's time.
pub(super) async fn carry_out<R>(
    limits: AttemptLimits,
    signals: &Signals,
    mut future: Pin<&mut impl Future<Output = R>>,
    clock: &dyn Clock,
    switches: Option<&mut watch::Receiver<Option<ModelSelector>>>,
) -> Outcome<R> {
    let end = async {
        match limits.end {
            Some(end) => clock.sleep_until(end.at).await,
            None => std::future::pending().await,
        }
        if signals.is_committed() {
            match limits.deadline {
                Some(deadline) => clock.sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        }
    };
    let switch = async {
        match switches {
            Some(switches) => loop {
                if switches.changed().await.is_err() {
                    return std::future::pending().await;
                }
                if let Some(to) = switches.borrow_and_update().clone() {
                    return to;
                }
            },
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        ready = &mut future => Outcome::Ready(ready),
        to = switch => Outcome::Switched(to),
        () = end => Outcome::TimedOut,
    }
}

//! The one seam for time: what o'clock it is, and waiting.

use crate::Timestamp;
use std::future::Future;
use std::pin::Pin;

/// A boxed, sendable future: the form that an object-safe async method takes without a runtime.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Tells the time and waits for it. One trait for both, so that a pair can never disagree.
///
/// Pure code never sees a clock: it takes `now` as an argument. Drivers, stores and adapters get one when
/// they are built, and tests hand in a manual one.
pub trait Clock: Send + Sync {
    /// Wall-clock time. It may jump (an operator sets the clock); callers must not assume that it only grows.
    fn now(&self) -> Timestamp;

    /// Completes once [`Clock::now`] has reached `at`, at once if it already has.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future only stops the waiting.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()>;
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        (**self).sleep_until(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seam stays object safe.
    fn _object_safe(_: &dyn Clock) {}
}

//! Leaving a server alone that does not answer, so that a run that meets it five times waits for it once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Failures in a row after which the server is left alone. One may be a connection that was lost, and the next call makes
/// a new one.
const FAILURES: u32 = 2;
/// For this long; then one call asks again, or several that come at once. Far below the second within which replicas
/// are to see each other's writes.
const REST: Duration = Duration::from_millis(250);

/// What is known of a server's last answers.
#[derive(Debug, Default)]
pub(crate) struct Rest(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Until when nobody asks, and why not.
    ends: Option<(Instant, Arc<str>)>,
}

impl Rest {
    /// Each change is one step, so a poisoned lock is still good.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the server is not to be asked now.
    pub(crate) fn why(&self, now: Instant) -> Option<Arc<str>> {
        let state = self.state();
        state.ends.as_ref().filter(|(end, _)| now < *end).map(|(_, why)| Arc::clone(why))
    }

    pub(crate) fn answered(&self) {
        let mut state = self.state();
        if state.failures > 0 {
            *state = State::default();
        }
    }

    pub(crate) fn failed(&self, now: Instant, why: &str) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            state.ends = Some((now + REST, why.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: A-25
    #[test]
    fn a_server_is_left_alone_after_two_failures_and_asked_again_after_a_while() {
        let (rest, begin) = (Rest::default(), Instant::now());
        rest.failed(begin, "refused");
        assert_eq!(rest.why(begin), None, "a lost connection is made anew at once");
        rest.failed(begin, "refused");
        assert_eq!(rest.why(begin).as_deref(), Some("refused"));
        assert_eq!(rest.why(begin + REST), None);
        rest.failed(begin + REST, "refused again");
        assert_eq!(rest.why(begin + REST).as_deref(), Some("refused again"));
        rest.answered();
        assert_eq!(rest.why(begin + REST), None);
        rest.failed(begin + REST, "lost");
        assert_eq!(rest.why(begin + REST), None, "it counts from the start");
    }
}

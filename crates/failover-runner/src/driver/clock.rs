//! The clock of a running program.

use failover_types::{BoxFuture, Clock, Timestamp};
use std::time::{Duration, SystemTime};

/// The longest nap between two looks at the wall clock: somebody may have set it.
const NAP: Duration = Duration::from_mins(1);

/// The machine's wall clock, waited for on tokio's timers.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl SystemClock {
    /// The clock.
    pub fn new() -> Self {
        Self
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // Not `as_millis`, which counts in 128 bits: this is asked dozens of times a request.
        Timestamp::from_millis(since.as_secs().saturating_mul(1_000) + u64::from(since.subsec_millis()))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that sleeps")]
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let left = at.since(self.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(NAP)).await;
            }
        })
    }
}

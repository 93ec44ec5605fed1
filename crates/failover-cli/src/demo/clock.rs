//! The machine's clock, which a scene can put forward: nobody wants to wait half a minute for a cooldown.

use failover::runner::SystemClock;
use failover::types::{BoxFuture, Clock, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Runs at the machine's pace, ahead of it by what was skipped.
pub(crate) struct SceneClock {
    machine: SystemClock,
    ahead_ms: AtomicU64,
}

impl SceneClock {
    /// The machine's time.
    pub(crate) fn new() -> Self {
        Self { machine: SystemClock::new(), ahead_ms: AtomicU64::new(0) }
    }

    /// Puts it forward. Whoever waits goes on waiting at the old pace; scenes do this between turns.
    pub(crate) fn skip(&self, by: Duration) {
        self.ahead_ms.fetch_add(failover::types::millis(by), Ordering::Relaxed);
    }

    fn ahead(&self) -> Duration {
        Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed))
    }
}

impl Clock for SceneClock {
    fn now(&self) -> Timestamp {
        self.machine.now().after(self.ahead())
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        self.machine.sleep_until(at.before(self.ahead()))
    }
}

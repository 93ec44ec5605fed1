//! How long bookkeeping may hold a run up (requirement A-25).

use failover_types::{BoxFuture, Clock, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Late work at a time. More would pile up in front of a store that is gone; what it would write is kept elsewhere.
const MOST_LATE: usize = 256;

/// Lets bookkeeping hold a run up for so long between two attempts, all of it together; what is late goes on behind.
pub(super) struct Patience {
    clock: Arc<dyn Clock>,
    late: Arc<Semaphore>,
    limit: Duration,
    until: Timestamp,
}

impl Patience {
    /// As if what is to be held up had begun at `since`: what its caller has waited for already counts.
    pub(super) fn since(
        since: Timestamp,
        clock: Arc<dyn Clock>,
        late: Arc<Semaphore>,
        limit: Duration,
    ) -> Self {
        Self { clock, late, limit, until: since.after(limit) }
    }

    /// Room for late work, shared by all runs of a runner.
    pub(super) fn room() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MOST_LATE))
    }

    /// Resolves once no late work is under way.
    pub(super) async fn nothing_late(late: &Semaphore) {
        let all = u32::try_from(MOST_LATE).unwrap_or(u32::MAX);
        drop(late.acquire_many(all).await);
    }

    /// Begins anew: an attempt or a wait has ended.
    pub(super) fn renew(&mut self) {
        self.until = self.clock.now().after(self.limit);
    }

    /// The result, if it comes in time. Late work goes on, and `then` is told its result.
    #[expect(
        clippy::disallowed_methods,
        reason = "a late write must finish though its run is over; it is bounded"
    )]
    pub(super) async fn within<T: Send + 'static>(
        &self,
        mut work: BoxFuture<'static, T>,
        then: impl FnOnce(T) -> Option<BoxFuture<'static, ()>> + Send + 'static,
    ) -> Option<T> {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = self.clock.sleep_until(self.until) => {}
        }
        let Ok(permit) = Arc::clone(&self.late).try_acquire_owned() else {
            tracing::warn!("the store is too slow; a late write was given up");
            return None;
        };
        tokio::spawn(async move {
            if let Some(more) = then(work.await) {
                more.await;
            }
            drop(permit);
        });
        None
    }
}

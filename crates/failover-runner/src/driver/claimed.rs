//! A claim while its attempt lasts: it is renewed, and taken back where its run is dropped (requirement S-6).

use super::RunSession;
use crate::session::RENEW_EVERY;
use failover_types::Clock;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A claim that stands, or is about to.
pub(super) struct Claimed {
    session: Arc<dyn RunSession>,
    late: Arc<Semaphore>,
    /// Nobody else sees to it.
    ours: bool,
}

impl Claimed {
    pub(super) fn new(session: &Arc<dyn RunSession>, late: &Arc<Semaphore>) -> Self {
        Self { session: Arc::clone(session), late: Arc::clone(late), ours: true }
    }

    /// It is settled, taken back or was never written, or somebody else will see to it.
    pub(super) fn over(mut self) {
        self.ours = false;
    }

    /// Renews the claim of an attempt for as long as it is asked to.
    pub(super) async fn renew(held: Option<&Self>, clock: &dyn Clock) -> Infallible {
        let Some(Self { session, .. }) = held else { return std::future::pending().await };
        loop {
            clock.sleep_until(clock.now().after(RENEW_EVERY)).await;
            Arc::clone(session).renew(clock.now()).await;
        }
    }
}

impl Drop for Claimed {
    /// The run was dropped. Nothing can be waited for here, so this is a task of its own; where there is no room for one,
    /// the claim lapses.
    fn drop(&mut self) {
        let runtime = tokio::runtime::Handle::try_current();
        let (true, Ok(runtime), Ok(permit)) =
            (self.ours, runtime, Arc::clone(&self.late).try_acquire_owned())
        else {
            return;
        };
        let session = Arc::clone(&self.session);
        runtime.spawn(async move {
            session.release().await;
            drop(permit);
        });
    }
}

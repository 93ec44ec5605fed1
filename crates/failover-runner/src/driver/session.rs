//! The session seam: what a run reads from and writes to the conversation that it belongs to.

use crate::health::Preference;
use crate::plan::{ClaimAnswer, ClaimStep, RunSpec, SettleStep};
use failover_types::{BoxFuture, Timestamp};
use std::sync::Arc;

/// What a run does with its session. The runner bounds how long each call may hold it up (requirement A-25); a call
/// that takes longer goes on behind it, which is why every future is `'static`.
pub trait SessionPort: Send + Sync {
    /// A run begins: whatever a dead run left unproven is rolled back (requirement S-6). Gives the session's pin.
    fn begin(&self, spec: Arc<RunSpec>, now: Timestamp) -> BoxFuture<'static, Preference>;

    /// Writes a fallback before it is tried (requirements S-2, S-3).
    fn claim(&self, spec: Arc<RunSpec>, step: ClaimStep, now: Timestamp) -> BoxFuture<'static, ClaimAnswer>;

    /// Takes back what this run's claim wrote, where it still stands (requirement S-4). Idempotent.
    fn release(&self, spec: Arc<RunSpec>, now: Timestamp) -> BoxFuture<'static, ()>;

    /// Somebody answered: proves the claim, clears an override, pins the profile. Gives the notice that the user
    /// should see, at most once (requirement S-11).
    fn settle(
        &self,
        spec: Arc<RunSpec>,
        step: SettleStep,
        now: Timestamp,
    ) -> BoxFuture<'static, Option<String>>;
}

/// No sessions: nothing is remembered between runs but health.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has nothing")]
pub struct NoSessions;

impl SessionPort for NoSessions {
    fn begin(&self, _: Arc<RunSpec>, _: Timestamp) -> BoxFuture<'static, Preference> {
        Box::pin(std::future::ready(Preference::default()))
    }

    fn claim(&self, _: Arc<RunSpec>, _: ClaimStep, _: Timestamp) -> BoxFuture<'static, ClaimAnswer> {
        Box::pin(std::future::ready(ClaimAnswer::TurnLocal))
    }

    fn release(&self, _: Arc<RunSpec>, _: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn settle(&self, _: Arc<RunSpec>, _: SettleStep, _: Timestamp) -> BoxFuture<'static, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

//! The session seam: what a run reads from and writes to the conversation that it belongs to.

use crate::health::{Health, Preference};
use crate::plan::{ClaimAnswer, ClaimStep, RunSpec, SettleStep};
use crate::session::{SessionRun, preference, select};
use failover_auth::UserPinMode;
use failover_chain::Selection;
use failover_session::{
    Notice, ProbePolicy, SessionEntry, SessionKey, Sessions, SessionsError, take_notices,
};
use failover_types::{BoxFuture, ModelRef, ModelSelector, RunId, Timestamp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One run's hold on its session. The runner bounds how long each call may hold it up (requirement A-25); a call that
/// takes longer goes on behind it, which is why every future is `'static`.
pub trait RunSession: Send + Sync {
    /// Which profile the session is pinned to.
    fn preference(&self) -> Preference;

    /// Writes a fallback before it is tried (requirements S-2, S-3).
    fn claim(self: Arc<Self>, step: ClaimStep, now: Timestamp) -> BoxFuture<'static, ClaimAnswer>;

    /// Says that the run is still at the attempt that it claimed; told every 20 s (requirement S-6). Whoever has no leases
    /// on claims need not listen.
    fn renew(self: Arc<Self>, now: Timestamp) -> BoxFuture<'static, ()> {
        let _ = now;
        Box::pin(std::future::ready(()))
    }

    /// Takes back what this run's claim wrote, or may have written, where it still stands (requirement S-4). Idempotent: a
    /// call that was dropped half-way is made again.
    fn release(self: Arc<Self>) -> BoxFuture<'static, ()>;

    /// Somebody answered: proves the claim, clears an override, pins the profile. Gives the notices that the user
    /// should see, each at most once (requirement S-11).
    fn settle(self: Arc<Self>, step: SettleStep, now: Timestamp) -> BoxFuture<'static, Vec<Notice>>;
}

/// A run's hold on a session in a store.
pub struct StoredSession {
    sessions: Sessions,
    key: SessionKey,
    entry: SessionEntry,
    run: Mutex<SessionRun>,
}

impl StoredSession {
    /// Opens a session for a run: what a dead run left unproven is rolled back (requirement S-6), and the entry that
    /// stands then is what the selection is to be read from.
    ///
    /// # Errors
    ///
    /// [`SessionsError`] where the store fails or the entry cannot be read. A run can go on without its session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a rollback that was done is done.
    pub async fn open(
        sessions: Sessions,
        key: SessionKey,
        run: RunId,
        mode: UserPinMode,
        now: Timestamp,
    ) -> Result<Self, SessionsError> {
        let (entry, _) = sessions.update(&key, |entry| SessionRun::recovered(entry, now)).await?;
        let run = Mutex::new(SessionRun::new(&entry, run, mode));
        Ok(Self { sessions, key, entry, run })
    }

    /// A hold on what is known of a session that cannot be written now. Whatever the run would write is tried all the same.
    pub fn known(
        sessions: Sessions,
        key: SessionKey,
        entry: SessionEntry,
        run: RunId,
        mode: UserPinMode,
    ) -> Self {
        let run = Mutex::new(SessionRun::new(&entry, run, mode));
        Self { sessions, key, entry, run }
    }

    /// Which model the run begins with, and who chose it; `None` where the session says nothing and nothing is configured. A probe of an override's origin is written first; of several
    /// runs only the one whose write wins makes it (requirement S-7). The hold is on the entry that stands then.
    ///
    /// # Errors
    ///
    /// As [`StoredSession::open`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a probe that was written counts as made, and the next one is not far.
    pub async fn select(
        mut self,
        configured: Option<&Selection>,
        health: &Health,
        policy: &ProbePolicy,
        now: Timestamp,
    ) -> Result<(Option<Selection>, Self), SessionsError> {
        let mode = self.run().preference().mode;
        let free_at =
            |entry: &SessionEntry, model: &ModelRef| health.free_at(model, &preference(entry, mode), now);
        let now_free = |model: &ModelRef| free_at(&self.entry, model);
        let (selection, probe) = select(&self.entry, configured, now_free, policy, now);
        if probe.is_none() {
            return Ok((selection, self));
        }
        let chosen = self.sessions.update_with(&self.key, |entry| {
            let free_at = |model: &ModelRef| free_at(entry, model);
            let (selection, probe) = select(entry, configured, free_at, policy, now);
            (probe, selection)
        });
        let (entry, selection) = chosen.await?;
        let run = Mutex::new(self.run().on(&entry));
        self.entry = entry;
        Ok((selection, Self { run, ..self }))
    }

    /// The entry that the run began with.
    pub fn entry(&self) -> &SessionEntry {
        &self.entry
    }

    /// What a person chose for the session since the run began, and when: for [`Run::live_switch`] (requirement S-9).
    ///
    /// # Errors
    ///
    /// As [`StoredSession::open`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    ///
    /// [`Run::live_switch`]: crate::Run::live_switch
    pub async fn chosen_since(&self) -> Result<Option<(ModelSelector, Timestamp)>, SessionsError> {
        let entry = self.sessions.get(&self.key).await?;
        let run = self.run();
        let switch = entry.as_ref().and_then(|entry| run.pending(entry));
        Ok(switch.map(|switch| (switch.into(), switch.at)))
    }

    /// Takes over what the run's numbers say of persistence.
    #[must_use]
    pub fn for_spec(self, spec: &RunSpec) -> Self {
        let run = Mutex::new(self.run().clone().for_spec(spec));
        Self { run, ..self }
    }

    /// Every change of it is whole, so a poisoned lock is still good.
    fn run(&self) -> MutexGuard<'_, SessionRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunSession for StoredSession {
    fn preference(&self) -> Preference {
        self.run().preference().clone()
    }

    fn claim(self: Arc<Self>, step: ClaimStep, now: Timestamp) -> BoxFuture<'static, ClaimAnswer> {
        Box::pin(async move {
            let claim = self.run().claiming(&step, now);
            let written = self.sessions.update(&self.key, |entry| SessionRun::claim(entry, &claim)).await;
            self.run().claimed(claim, matches!(written, Ok((_, true))));
            match written {
                Ok((_, true)) => ClaimAnswer::Held,
                Ok((_, false)) => ClaimAnswer::TurnLocal,
                Err(error) => {
                    tracing::warn!(session = %self.key.session, %error, "a fallback serves this turn only");
                    ClaimAnswer::TurnLocal
                }
            }
        })
    }

    fn renew(self: Arc<Self>, now: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Some(claim) = self.run().standing() else { return };
            let renewed =
                self.sessions.update(&self.key, |entry| SessionRun::renew(entry, &claim, now)).await;
            if let Err(error) = renewed {
                tracing::warn!(session = %self.key.session, %error, "a claim cannot be renewed, and may lapse");
            }
        })
    }

    fn release(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Some(claim) = self.run().standing() else { return };
            let released = self.sessions.update(&self.key, |entry| SessionRun::release(entry, &claim)).await;
            self.run().released();
            if let Err(error) = released {
                tracing::warn!(session = %self.key.session, %error, "a claim lapses by itself: it cannot be taken back");
            }
        })
    }

    fn settle(self: Arc<Self>, step: SettleStep, now: Timestamp) -> BoxFuture<'static, Vec<Notice>> {
        Box::pin(async move {
            let run = self.run().clone();
            let settled = self.sessions.update_with(&self.key, |entry| {
                let settled = run.settle(entry, &step, now);
                match take_notices(settled.as_ref().unwrap_or(entry)) {
                    Some((next, notices)) => (Some(next), notices),
                    None => (settled, Vec::new()),
                }
            });
            match settled.await {
                Ok((_, notices)) => notices,
                Err(error) => {
                    tracing::warn!(session = %self.key.session, %error, "the session does not know who answered");
                    Vec::new()
                }
            }
        })
    }
}

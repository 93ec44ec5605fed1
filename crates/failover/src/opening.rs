//! A turn's session, opened: which model it begins with, by whose choice, and the run's hold on the entry.
//!
//! The store may hold a turn up for so long before its first attempt, all that is read of it together (requirement
//! What does not come in time the turn goes on without, and whoever comes next may know it.

use crate::engine::Engine;
use crate::needs::has_images;
use crate::turn::{Start, Turn};
use failover_chain::{ChainError, Selection};
use failover_runner::StoredSession;
use failover_runner::session::{SessionRun, select};
use failover_session::{
    ProbePolicy, SessionEntry, SessionKey, SessionsError, StoredSelection, clear_stale_origin,
};
use failover_types::{ModelRef, RunId, SessionId, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a turn runs on: whose choice the model is, and the session that the run holds.
pub(crate) struct Opened {
    pub(crate) start: Start,
    pub(crate) session: Option<StoredSession>,
}

/// What was read of a session by a run that may not wait for what comes after.
type Read = Arc<Mutex<Option<SessionEntry>>>;

impl Engine {
    /// Reads the selection and takes the run's ticket from one and the same entry.
    pub(crate) async fn open(
        &self,
        turn: &Turn,
        run: &RunId,
        since: Timestamp,
    ) -> Result<Opened, ChainError> {
        let start = |selected| Start::new(selected, has_images(&turn.request), turn.chain(&self.chain));
        if let Some(given) = turn.given(&self.chain)? {
            return Ok(Opened { start: start(given)?, session: None });
        }
        let Some(session) = &turn.session else {
            return Ok(Opened { start: start(turn.configured(&self.chain)?)?, session: None });
        };
        if has_images(&turn.request) {
            // In a box, as below.
            let foreseen = Box::pin(self.foresee(turn));
            if let Some(foreseen) = self.in_time(foreseen, since).await
                && let (start, _) = foreseen?
                && start.image.is_some()
            {
                return Ok(Opened { start, session: None });
            }
        }
        // A choice in the session needs no configured model.
        let configured = turn.configured(&self.chain);
        // In a box: turns without a session need no room for it.
        let held = Box::pin(self.hold(turn, session, run, &configured, since)).await;
        let Some((selection, session)) = held else {
            return Ok(Opened { start: start(configured?)?, session: None });
        };
        let selected = selection.map_or(configured, Ok)?;
        Ok(Opened { start: Start { selected, image: None }, session: Some(session) })
    }

    /// What comes of `work` before the store has held the turn up for too long.
    async fn in_time<T>(&self, work: impl Future<Output = T> + Send, since: Timestamp) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.clock.sleep_until(since.after(self.run_policy().bookkeeping())) => None,
        }
    }

    /// The selection and the hold on the entry that it stands in; `None` where nothing is known of the session.
    async fn hold(
        &self,
        turn: &Turn,
        session: &SessionId,
        run: &RunId,
        configured: &Result<Selection, ChainError>,
        since: Timestamp,
    ) -> Option<(Option<Selection>, StoredSession)> {
        let key = SessionKey::new(self.agent.clone(), session.clone());
        let default = stale(turn, configured).cloned();
        let configured = configured.as_ref().ok();
        let read = Read::default();
        let opened = self.opened(key.clone(), run.clone(), default, since, Arc::clone(&read));
        let why = match self.runner.bookkeep(since, Box::pin(opened)).await {
            Some(Ok(opened)) => {
                self.look_at_origin(opened.entry(), since).await;
                let policy = ProbePolicy::default();
                let chosen = opened.select(configured, self.runner.health(), &policy, since);
                match self.in_time(chosen, since).await {
                    Some(Ok(chosen)) => return Some(chosen),
                    Some(Err(error)) => error.to_string(),
                    None => LATE.to_owned(),
                }
            }
            Some(Err(error)) => error.to_string(),
            None => LATE.to_owned(),
        };
        let read = read.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(entry) = read.or_else(|| self.known.get(session)) else {
            tracing::warn!(%session, error = %why, "the session cannot be read; this turn goes on without it, whatever was chosen for it");
            return None;
        };
        tracing::warn!(%session, error = %why, "the session cannot be written; what is known of it counts");
        // A probe of an override's origin that cannot be noted would be made by every turn.
        let mut never = ProbePolicy::default();
        (never.every, never.throttle) = (Duration::MAX, Duration::MAX);
        let (selection, _) = select(&entry, configured, |_| None, &never, since);
        Some((selection, StoredSession::known(self.sessions.clone(), key, entry, run.clone(), self.user_pin)))
    }

    /// Opens the session, and notes at once what it reads: what comes too late for this turn serves the next one.
    fn opened(
        &self,
        key: SessionKey,
        run: RunId,
        default: Option<ModelRef>,
        now: Timestamp,
        read: Read,
    ) -> impl Future<Output = Result<StoredSession, SessionsError>> + Send + use<> {
        let (sessions, known, mode) = (self.sessions.clone(), Arc::clone(&self.known), self.user_pin);
        async move {
            let opened = sessions.update(&key, |entry| {
                let recovered = SessionRun::recovered(entry, now);
                let entry = recovered.as_ref().unwrap_or(entry);
                let next = default.as_ref().and_then(|default| clear_stale_origin(entry, default));
                let next = next.or_else(|| recovered.clone());
                let entry = next.as_ref().unwrap_or(entry);
                known.note(&key.session, entry);
                *read.lock().unwrap_or_else(PoisonError::into_inner) = Some(entry.clone());
                next
            });
            let (entry, _) = opened.await?;
            Ok(StoredSession::known(sessions, key, entry, run, mode))
        }
    }

    /// Another process may know that what the session's override stands in for is well again (requirements S-7, K-3).
    pub(crate) async fn look_at_origin(&self, entry: &SessionEntry, since: Timestamp) {
        if let StoredSelection::Auto { origin: Some(origin), .. } = entry.settled_selection() {
            self.runner.look_at(&origin, since).await;
        }
    }
}

const LATE: &str = "the store is too slow";

/// What the override of a session must come from to stay, where the turn is a heartbeat (requirement S-8).
pub(crate) fn stale<'a>(turn: &Turn, configured: &'a Result<Selection, ChainError>) -> Option<&'a ModelRef> {
    configured.as_ref().ok().filter(|_| turn.heartbeat).map(Selection::model)
}

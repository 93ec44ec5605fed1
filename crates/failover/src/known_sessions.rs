//! What people chose for their sessions, kept for the time when the store does not say it (requirement A-23).

use failover_session::SessionEntry;
use failover_types::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions kept. Most have no choice of a person in them and need none.
const MOST: usize = 1024;

/// The last known entries of sessions in which a person chose a model or a profile.
#[derive(Default)]
pub(crate) struct KnownSessions(Mutex<HashMap<SessionId, SessionEntry>>);

impl KnownSessions {
    /// Takes note of what the store says now.
    pub(crate) fn note(&self, session: &SessionId, entry: &SessionEntry) {
        let mut known = self.known();
        if !entry.settled_selection().is_a_choice() && !entry.is_pinned_by_a_person() {
            known.remove(session);
            return;
        }
        if known.len() >= MOST
            && !known.contains_key(session)
            && let Some(any) = known.keys().next().cloned()
        {
            known.remove(&any);
        }
        known.insert(session.clone(), entry.clone());
    }

    /// What was last known.
    pub(crate) fn get(&self, session: &SessionId) -> Option<SessionEntry> {
        self.known().get(session).cloned()
    }

    /// Every change of it is whole, so a poisoned lock is still good.
    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, SessionEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

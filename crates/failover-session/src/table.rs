//! Entries in a store: every change is a bounded loop of compare-and-swap over a pure function.

use crate::{EntryError, Marker, SessionEntry, recover};
use failover_store::{
    Expect, Key, KeyError, KeyValue, Prefix, StoreError, Swap, Value, Versioned, WriteOptions,
};
use failover_types::{AgentId, Clock, SessionId};
use std::sync::Arc;
use std::time::Duration;

/// How often a lost swap is tried again. Every loss means that somebody else got on, so as many writers as this can
/// share a session.
const ATTEMPTS: usize = 256;

/// How many entries are read at a time when all are visited.
const PAGE: usize = 128;

/// Which session of which agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a pair by nature")]
pub struct SessionKey {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
}

impl SessionKey {
    /// A session of an agent.
    pub fn new(agent: AgentId, session: SessionId) -> Self {
        Self { agent, session }
    }

    fn key(&self) -> Result<Key, KeyError> {
        Key::new(&["agent", self.agent.as_str(), "session", self.session.as_str()])
    }
}

/// Why a session could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionsError {
    /// The ids make no store key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored entry cannot be read. It is left as it is.
    #[error("the session {session} cannot be read")]
    Entry {
        /// Which session.
        session: String,
        /// What is wrong with it.
        #[source]
        source: EntryError,
    },
    /// Others changed the entry faster than this writer could.
    #[error("the session {session} is being changed by too many writers at once; try again")]
    Contended {
        /// Which session.
        session: String,
    },
}

/// The session table of a store. There is no blind write.
#[derive(Clone)]
pub struct Sessions {
    store: Arc<dyn KeyValue>,
    idle: Option<Idle>,
}

/// When idle sessions are forgotten.
#[derive(Clone)]
struct Idle {
    after: Duration,
    clock: Arc<dyn Clock>,
}

impl Idle {
    /// How much of the time may pass before an entry that is read and not changed is written again.
    const FRESH: u32 = 8;

    /// An entry in use whose stamp is old is worth a write, though nothing else changed.
    fn stamped(&self, entry: &SessionEntry) -> Option<SessionEntry> {
        let now = self.clock.now();
        let old = entry.used_at().is_none_or(|used| now.since(used) >= self.after / Self::FRESH);
        old.then(|| entry.used(now)).flatten()
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

fn parse(name: &str, found: &Versioned) -> Result<SessionEntry, SessionsError> {
    SessionEntry::parse(found.value.as_bytes())
        .map_err(|source| SessionsError::Entry { session: name.to_owned(), source })
}

impl Sessions {
    /// The table in this store.
    pub fn new(store: Arc<dyn KeyValue>) -> Self {
        Self { store, idle: None }
    }

    /// Forgets sessions that nobody used for so long, a person's choice included. Without it they are kept for ever,
    /// and whoever owns the sessions deletes them.
    #[must_use]
    pub fn forgetting_idle(mut self, after: Duration, clock: Arc<dyn Clock>) -> Self {
        self.idle = Some(Idle { after, clock });
        self
    }

    /// Reads an entry; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`SessionsError`] where the store fails or the entry cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn get(&self, of: &SessionKey) -> Result<Option<SessionEntry>, SessionsError> {
        let found = self.store.get(&of.key()?).await?;
        found.map(|found| parse(of.session.as_str(), &found)).transpose()
    }

    /// Changes an entry. `change` is pure and may be called several times; `None` means that nothing is to be
    /// written. Returns the entry that stands, and whether this call wrote it.
    ///
    /// # Errors
    ///
    /// [`SessionsError`] where the store fails, the entry cannot be read, or too many others write at once.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped change may or may not have been written; read again to know.
    pub async fn update(
        &self,
        of: &SessionKey,
        mut change: impl FnMut(&SessionEntry) -> Option<SessionEntry> + Send,
    ) -> Result<(SessionEntry, bool), SessionsError> {
        let (entry, written) = self
            .update_with(of, |entry| {
                let next = change(entry);
                let written = next.is_some();
                (next, written)
            })
            .await?;
        Ok((entry, written))
    }

    /// Changes an entry and hands back what `change` found out, from the call whose write won.
    ///
    /// # Errors
    ///
    /// As [`Sessions::update`].
    ///
    /// # Cancel safety
    ///
    /// As [`Sessions::update`].
    pub async fn update_with<T: Send>(
        &self,
        of: &SessionKey,
        change: impl FnMut(&SessionEntry) -> (Option<SessionEntry>, T) + Send,
    ) -> Result<(SessionEntry, T), SessionsError> {
        let key = of.key()?;
        let found = self.store.get(&key).await?;
        self.swap(&key, of.session.as_str(), found, change).await
    }

    fn options(&self) -> WriteOptions {
        let durable = WriteOptions::durable();
        self.idle.as_ref().map_or(durable, |idle| durable.expiring(idle.clock.now().after(idle.after)))
    }

    async fn swap<T: Send>(
        &self,
        key: &Key,
        name: &str,
        mut found: Option<Versioned>,
        mut change: impl FnMut(&SessionEntry) -> (Option<SessionEntry>, T) + Send,
    ) -> Result<(SessionEntry, T), SessionsError> {
        for _ in 0..ATTEMPTS {
            let entry = found.as_ref().map(|found| parse(name, found)).transpose()?.unwrap_or_default();
            let (next, outcome) = change(&entry);
            let in_use = self.idle.as_ref().filter(|_| next.is_some() || found.is_some());
            let stamped = in_use.and_then(|idle| idle.stamped(next.as_ref().unwrap_or(&entry)));
            let Some(next) = stamped.or(next) else { return Ok((entry, outcome)) };
            let expect = found.as_ref().map_or(Expect::Absent, |found| Expect::Version(found.version));
            let value = Value::new(next.to_json().into_bytes());
            match self.store.swap(key, expect, Some(value), self.options()).await? {
                Swap::Done(_) => return Ok((next, outcome)),
                Swap::Lost(current) => found = current,
            }
        }
        Err(SessionsError::Contended { session: name.to_owned() })
    }

    /// Up to `limit` sessions of an agent behind `after`, in the order of the store's keys. Entries that cannot be read
    /// are passed over; fewer than `limit` may come though more follow, and none means that there are no more.
    ///
    /// # Errors
    ///
    /// [`SessionsError`] where the store fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn list(
        &self,
        agent: &AgentId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, SessionEntry)>, SessionsError> {
        let prefix = Prefix::new(&["agent", agent.as_str(), "session"])?;
        let mut after = match after {
            Some(session) => Some(SessionKey::new(agent.clone(), session.clone()).key()?),
            None => None,
        };
        loop {
            let page = self.store.scan(&prefix, after.as_ref(), limit).await?;
            let Some((last, _)) = page.last() else { return Ok(Vec::new()) };
            after = Some(last.clone());
            let read = |(key, found): &(Key, Versioned)| {
                let session = SessionId::new(key.segments().last()?).ok()?;
                Some((session, parse(key.as_str(), found).ok()?))
            };
            let sessions: Vec<_> = page.iter().filter_map(read).collect();
            // A page of unreadable entries only is not the end.
            if !sessions.is_empty() {
                return Ok(sessions);
            }
        }
    }

    /// Rolls the claims of dead runs back in every session of an agent; for the start of a process that owns its
    /// store. Returns how many entries were changed. Entries that cannot be read are passed over.
    ///
    /// # Errors
    ///
    /// [`SessionsError`] where the store fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was rolled back stays so, and the rest can be done again.
    pub async fn recover(
        &self,
        agent: &AgentId,
        dead: impl Fn(&Marker) -> bool + Send + Sync,
    ) -> Result<usize, SessionsError> {
        let prefix = Prefix::new(&["agent", agent.as_str(), "session"])?;
        let mut changed = 0;
        let mut after: Option<Key> = None;
        loop {
            let page = self.store.scan(&prefix, after.as_ref(), PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(changed) };
            after = Some(last.clone());
            for (key, found) in page {
                let name = key.as_str().to_owned();
                // An entry that cannot be read is left alone, and so is one that needs nothing: this is no use of it.
                let needed = parse(&name, &found).is_ok_and(|entry| recover(&entry, &dead).is_some());
                if !needed {
                    continue;
                }
                let rolled_back = |entry: &SessionEntry| {
                    let next = recover(entry, &dead);
                    let written = next.is_some();
                    (next, written)
                };
                let (_, written) = self.swap(&key, &name, Some(found), rolled_back).await?;
                changed += usize::from(written);
            }
        }
    }
}

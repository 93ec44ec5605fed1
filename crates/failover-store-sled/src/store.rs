//! The store itself: swaps by value over sled, acknowledged as their durability asks.

use crate::SledOptions;
use crate::committer::{Committer, Failure};
use crate::engine::{Engine, EngineCell};
use crate::guard::{DirLock, from_sled};
use crate::record::{Fault, Record};
use crate::versions::Versions;
use async_trait::async_trait;
use failover_store::{
    ChangeStream, Durability, Expect, Feed, Key, KeyValue, MAX_SCAN, Prefix, StoreError, Swap, Value,
    Version, Versioned, WriteOptions,
};
use failover_types::{Clock, Timestamp};
use std::fmt;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a deleted key is remembered, so that a salvage does not bring its last value back.
const TOMBSTONE_FOR: Duration = Duration::from_hours(1);

/// The embedded store. Clones share one engine; the directory is free again when the last one is dropped.
#[derive(Clone)]
pub struct SledStore {
    inner: Arc<Inner>,
}

/// Dropped from top to bottom: the committer's last sync comes before the engine, the lock goes last.
pub(crate) struct Inner {
    pub(crate) dir: PathBuf,
    pub(crate) committer: Committer,
    pub(crate) cell: Arc<EngineCell>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) feed: Feed,
    pub(crate) _lock: DirLock,
}

#[derive(Clone)]
pub(crate) struct Trees {
    /// What callers wrote.
    pub(crate) records: sled::Tree,
    /// Damaged records, as they were found, under their keys.
    pub(crate) quarantine: sled::Tree,
    /// Our own counters.
    pub(crate) meta: sled::Tree,
}

impl Trees {
    pub(crate) fn open(db: &sled::Db) -> Result<Self, sled::Error> {
        Ok(Self {
            records: db.open_tree("records")?,
            quarantine: db.open_tree("quarantine")?,
            meta: db.open_tree("meta")?,
        })
    }
}

impl SledStore {
    /// Opens the store in `dir` with the usual options.
    ///
    /// # Errors
    ///
    /// As [`SledOptions::open`].
    pub fn open(dir: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        SledOptions::new(dir, clock).open()
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn from_inner(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }
}

impl fmt::Debug for SledStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SledStore({})", self.inner.dir.display())
    }
}

/// One try of a swap.
enum Tried {
    /// Nothing was written: it is lost, or there was nothing to delete.
    Ended(Swap),
    /// Written, under this version; `None` after a delete.
    Written(Option<Version>),
    /// Another writer came between reading and writing.
    Raced,
    /// No version number is left below the durable mark.
    NoVersion,
}

impl Inner {
    /// What sled says. If it is broken, the committer finds out, and mends it.
    pub(crate) fn broken(&self, e: sled::Error) -> StoreError {
        self.committer.soft();
        from_sled(&self.dir, e)
    }

    /// The engine, for one call.
    pub(crate) fn engine(&self) -> Result<Arc<Engine>, StoreError> {
        self.cell.get().ok_or_else(|| {
            let failure = self.committer.failure();
            self.unavailable(&failure.unwrap_or_else(|| "its files are being written anew; try again".into()))
        })
    }

    fn unavailable(&self, why: &Failure) -> StoreError {
        StoreError::Unavailable { place: self.dir.display().to_string(), why: why.to_string() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Reads a raw value; a damaged one is set aside first.
    fn read(&self, engine: &Engine, key: &[u8], bytes: &[u8]) -> Result<Record, StoreError> {
        Record::decode(key, bytes).map_err(|fault| self.set_aside(engine, key, bytes, fault))
    }

    /// Moves a damaged record into quarantine and says so. The copy comes first: a crash in between leaves two.
    fn set_aside(&self, engine: &Engine, key: &[u8], bytes: &[u8], fault: Fault) -> StoreError {
        let name = String::from_utf8_lossy(key).into_owned();
        let trees = &engine.trees;
        let moved = trees
            .quarantine
            .insert(key, bytes)
            .and_then(|_| trees.records.compare_and_swap(key, Some(bytes), None::<&[u8]>));
        self.committer.soft();
        if let Err(e) = moved {
            return self.broken(e);
        }
        tracing::warn!(place = %self.dir.display(), key = %name, why = fault.why(), "a damaged record was set aside");
        StoreError::Damaged { key: name, why: fault.why().to_owned() }
    }

    fn try_swap(
        &self,
        key: &[u8],
        expect: Expect,
        next: Option<&Value>,
        write: WriteOptions,
    ) -> Result<Tried, StoreError> {
        let now = self.now();
        let engine = self.engine()?;
        let raw = engine.trees.records.get(key).map_err(|e| self.broken(e))?;
        let current = match &raw {
            Some(bytes) => self.read(&engine, key, bytes)?.live(now),
            None => None,
        };
        if !expect.met_by(current.as_ref().map(|current| current.version)) {
            return Ok(Tried::Ended(Swap::Lost(current)));
        }
        if next.is_none() && current.is_none() {
            return Ok(Tried::Ended(Swap::Done(None)));
        }
        let Some(version) = self.versions.take() else { return Ok(Tried::NoVersion) };
        let expires_at = if next.is_some() { write.expires_at } else { Some(now.after(TOMBSTONE_FOR)) };
        let record = Record { key: key.to_vec(), version, expires_at, value: next.cloned() };
        let swapped = engine
            .trees
            .records
            .compare_and_swap(key, raw.as_ref(), Some(record.encode()))
            .map_err(|e| self.broken(e))?;
        Ok(match swapped {
            Ok(()) => Tried::Written(next.is_some().then_some(version)),
            Err(_) => Tried::Raced,
        })
    }
}

#[async_trait]
impl KeyValue for SledStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let store = &self.inner;
        let key = key.as_str().as_bytes();
        let engine = store.engine()?;
        let found = engine.trees.records.get(key).map_err(|e| store.broken(e))?;
        let Some(bytes) = found else { return Ok(None) };
        Ok(store.read(&engine, key, &bytes)?.live(store.now()))
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        let store = &self.inner;
        if let Some(value) = &next {
            value.check_size(key)?;
        }
        loop {
            if let Some(failure) = store.committer.failure() {
                return Err(store.unavailable(&failure));
            }
            let version = match store.try_swap(key.as_str().as_bytes(), expect, next.as_ref(), write)? {
                Tried::Ended(swap) => return Ok(swap),
                Tried::Written(version) => version,
                // Each round means that another swap went through, so this ends as soon as `expect` is stale.
                Tried::Raced => continue,
                Tried::NoVersion => {
                    store.committer.durable().await.map_err(|failure| store.unavailable(&failure))?;
                    continue;
                }
            };
            match write.durability {
                Durability::Durable => {
                    store.committer.durable().await.map_err(|failure| store.unavailable(&failure))?;
                }
                Durability::Soft => store.committer.soft(),
            }
            let current = version.zip(next).map(|(version, value)| Versioned { version, value });
            store.feed.tell(key, current.as_ref());
            return Ok(Swap::Done(version));
        }
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        let store = &self.inner;
        let now = store.now();
        let from = match after {
            Some(key) if key.as_str() >= prefix.as_str() => Bound::Excluded(key.as_str().as_bytes()),
            _ => Bound::Included(prefix.as_str().as_bytes()),
        };
        let limit = limit.min(MAX_SCAN);
        let mut found = Vec::new();
        let mut damaged = None;
        let engine = store.engine()?;
        for entry in engine.trees.records.range::<&[u8], _>((from, Bound::Unbounded)) {
            if found.len() >= limit {
                break;
            }
            let (key, bytes) = entry.map_err(|e| store.broken(e))?;
            if !key.starts_with(prefix.as_str().as_bytes()) {
                break;
            }
            // All damaged records of the page are set aside before the first is told: asking again then works.
            match store.read(&engine, &key, &bytes).and_then(|record| Ok((stored_key(&key)?, record))) {
                Ok((key, record)) => found.extend(record.live(now).map(|current| (key, current))),
                Err(e @ StoreError::Damaged { .. }) => {
                    damaged.get_or_insert(e);
                }
                Err(e) => return Err(e),
            }
        }
        damaged.map_or(Ok(found), Err)
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        Ok(Some(self.inner.feed.listen(prefix)))
    }
}

fn stored_key(bytes: &[u8]) -> Result<Key, StoreError> {
    let damaged = |why: String| StoreError::Damaged { key: String::from_utf8_lossy(bytes).into_owned(), why };
    let text = std::str::from_utf8(bytes).map_err(|e| damaged(e.to_string()))?;
    Key::from_stored(text).map_err(|e| damaged(e.to_string()))
}

//! The in-memory store: the default of tests and of callers who keep nothing.

use crate::{
    ChangeStream, Expect, Feed, Key, KeyValue, MAX_SCAN, Prefix, StoreError, Swap, Value, Version, Versioned,
    WriteOptions,
};
use async_trait::async_trait;
use failover_types::{Clock, Timestamp};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps everything in memory; nothing survives the process.
#[derive(Clone)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
    feed: Feed,
}

#[derive(Default)]
struct State {
    /// Grows with every write of any key, so that no version ever comes back.
    last: u64,
    records: BTreeMap<Key, Record>,
}

struct Record {
    current: Versioned,
    expires_at: Option<Timestamp>,
}

impl Record {
    fn live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| now < at)
    }
}

impl MemoryStore {
    /// An empty store. The clock decides when values lapse.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Arc::default(), feed: Feed::new() }
    }

    /// A panic elsewhere cannot leave the map half changed, so a poisoned lock is still good.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryStore({} records)", self.state().records.len())
    }
}

#[async_trait]
impl KeyValue for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let now = self.clock.now();
        Ok(self
            .state()
            .records
            .get(key)
            .filter(|record| record.live(now))
            .map(|record| record.current.clone()))
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        if let Some(value) = &next {
            value.check_size(key)?;
        }
        let now = self.clock.now();
        let mut state = self.state();
        let current = state.records.get(key).filter(|record| record.live(now)).map(|record| &record.current);
        if !expect.met_by(current.map(|current| current.version)) {
            return Ok(Swap::Lost(current.cloned()));
        }
        let Some(value) = next else {
            // Told under the lock, so that two writers are told in the order in which they wrote.
            if state.records.remove(key).is_some() {
                self.feed.tell(key, None);
            }
            return Ok(Swap::Done(None));
        };
        state.last += 1;
        let version = Version(state.last);
        let record = Record { current: Versioned { version, value }, expires_at: write.expires_at };
        self.feed.tell(key, Some(&record.current));
        state.records.insert(key.clone(), record);
        Ok(Swap::Done(Some(version)))
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        let now = self.clock.now();
        let state = self.state();
        let from = match after {
            Some(key) => Bound::Excluded(key.as_str()),
            None => Bound::Included(prefix.as_str()),
        };
        let below = state.records.range::<str, _>((from, Bound::Unbounded));
        Ok(below
            .skip_while(|(key, _)| key.as_str() < prefix.as_str())
            .take_while(|(key, _)| prefix.covers(key))
            .filter(|(_, record)| record.live(now))
            .take(limit.min(MAX_SCAN))
            .map(|(key, record)| (key.clone(), record.current.clone()))
            .collect())
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        Ok(Some(self.feed.listen(prefix)))
    }
}

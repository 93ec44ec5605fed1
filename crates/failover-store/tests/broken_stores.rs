//! The conformance suite on the in-memory store, and on stores that are broken on purpose: it must find each flaw.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use async_trait::async_trait;
use failover_store::conformance::{Fixture, StillClock, violations};
use failover_store::{
    ChangeStream, Expect, Feed, Key, KeyValue, MemoryStore, Prefix, StoreError, Swap, Value, Version,
    Versioned, WriteOptions,
};
use failover_types::{Clock, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    IgnoresExpect,
    ReusesVersionsAfterDelete,
    ReusesVersionsAfterReopening,
    TearsValues,
    LosesRacingSwaps,
    OrdersScansByLength,
    RepeatsThePageMark,
    LeaksSiblingsIntoPrefix,
    SwallowsErrors,
    ForgetsOnClose,
    ForgetsExpiry,
    KeepsOldExpiry,
    HidesTheWinner,
    DropsEmptyValues,
    KeepsItsFeedSilent,
    TellsOfOthersKeys,
    TellsOfLostSwaps,
    HidesDeletes,
    EndsItsFeed,
}

/// A small store with one flaw. Without one it passes.
struct Flawed {
    flaw: Flaw,
    clock: Arc<StillClock>,
    medium_fails: bool,
    /// Sound stores make one swap at a time.
    one: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    feed: Feed,
}

#[derive(Clone, Default)]
struct State {
    last: u64,
    records: BTreeMap<String, (Versioned, Option<Timestamp>)>,
}

impl Flawed {
    fn current(&self, key: &Key) -> Option<Versioned> {
        let now = self.clock.now();
        let state = self.state.lock().unwrap();
        let (found, expires_at) = state.records.get(key.as_str())?;
        let lapsed = expires_at.is_some_and(|at| at <= now) && self.flaw != Flaw::ForgetsExpiry;
        (!lapsed).then(|| found.clone())
    }

    fn write(&self, key: &Key, next: Option<Value>, write: WriteOptions) -> Option<Version> {
        let mut state = self.state.lock().unwrap();
        let Some(value) = next else {
            state.records.remove(key.as_str());
            if self.flaw != Flaw::HidesDeletes {
                self.feed.tell(key, None);
            }
            return None;
        };
        let version = if self.flaw == Flaw::ReusesVersionsAfterDelete {
            state.records.get(key.as_str()).map_or(1, |(found, _)| found.version.0 + 1)
        } else {
            state.last += 1;
            state.last
        };
        let old = state.records.get(key.as_str()).and_then(|(_, expires_at)| *expires_at);
        let expires_at = write.expires_at.or(if self.flaw == Flaw::KeepsOldExpiry { old } else { None });
        let record = Versioned { version: Version(version), value };
        if self.flaw != Flaw::KeepsItsFeedSilent {
            self.feed.tell(key, Some(&record));
        }
        state.records.insert(key.to_string(), (record, expires_at));
        Some(Version(version))
    }

    async fn compare_and_write(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Swap {
        let current = self.current(key);
        if self.flaw == Flaw::LosesRacingSwaps {
            tokio::task::yield_now().await;
        }
        let met = expect.met_by(current.as_ref().map(|current| current.version));
        if !met && self.flaw == Flaw::TellsOfLostSwaps {
            self.feed.tell(key, current.as_ref());
        }
        if !met && self.flaw != Flaw::IgnoresExpect {
            return Swap::Lost(current.filter(|_| self.flaw != Flaw::HidesTheWinner));
        }
        if self.flaw == Flaw::TearsValues
            && let Some(value) = &next
            && value.as_bytes().len() > 100
        {
            let half = Value::new(value.as_bytes().iter().copied().step_by(2).collect::<Vec<u8>>());
            self.write(key, Some(half), write);
            tokio::task::yield_now().await;
        }
        let next = next.filter(|next| self.flaw != Flaw::DropsEmptyValues || !next.as_bytes().is_empty());
        Swap::Done(self.write(key, next, write))
    }
}

#[async_trait]
impl KeyValue for Flawed {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        Ok(self.current(key))
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        if self.medium_fails {
            return if self.flaw == Flaw::SwallowsErrors {
                Ok(Swap::Done(Some(Version(1))))
            } else {
                Err(StoreError::Unavailable { place: "here".to_owned(), why: "the disk is full".to_owned() })
            };
        }
        if let Some(next) = &next {
            next.check_size(key)?;
        }
        if matches!(self.flaw, Flaw::TearsValues | Flaw::LosesRacingSwaps) {
            return Ok(self.compare_and_write(key, expect, next, write).await);
        }
        let _one = self.one.lock().await;
        Ok(self.compare_and_write(key, expect, next, write).await)
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        let mut keys: Vec<Key> = {
            let state = self.state.lock().unwrap();
            state.records.keys().map(|key| Key::from_stored(key).unwrap()).collect()
        };
        if self.flaw == Flaw::OrdersScansByLength {
            keys.sort_by_key(|key| key.as_str().len());
        }
        let stem = prefix.as_str().trim_end_matches('/');
        Ok(keys
            .into_iter()
            .filter(|key| {
                prefix.covers(key)
                    || self.flaw == Flaw::LeaksSiblingsIntoPrefix && key.as_str().starts_with(stem)
            })
            .filter(|key| {
                after.is_none_or(|after| key > after || self.flaw == Flaw::RepeatsThePageMark && key == after)
            })
            .filter_map(|key| self.current(&key).map(|found| (key, found)))
            .take(limit)
            .collect())
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        Ok(Some(if self.flaw == Flaw::TellsOfOthersKeys {
            self.feed.listen(&Prefix::everything())
        } else if self.flaw == Flaw::EndsItsFeed {
            Feed::new().listen(prefix)
        } else {
            self.feed.listen(prefix)
        }))
    }
}

struct Broken {
    flaw: Flaw,
    clock: Arc<StillClock>,
    /// The data of the store opened last: what a disk would keep.
    disk: Mutex<Vec<Arc<Flawed>>>,
}

impl Broken {
    fn new(flaw: Flaw) -> Self {
        Self { flaw, clock: Arc::default(), disk: Mutex::default() }
    }

    fn open(&self, state: State, medium_fails: bool) -> Arc<dyn KeyValue> {
        let clock = Arc::clone(&self.clock);
        let (one, state) = (tokio::sync::Mutex::default(), Mutex::new(state));
        let store = Arc::new(Flawed { flaw: self.flaw, clock, medium_fails, one, state, feed: Feed::new() });
        self.disk.lock().unwrap().push(Arc::clone(&store));
        store
    }
}

#[async_trait]
impl Fixture for Broken {
    async fn fresh(&self) -> Arc<dyn KeyValue> {
        self.open(State::default(), false)
    }

    async fn reopen(&self, _store: Arc<dyn KeyValue>) -> Option<Arc<dyn KeyValue>> {
        let last = self.disk.lock().unwrap().pop().unwrap();
        let mut state = last.state.lock().unwrap().clone();
        if self.flaw == Flaw::ForgetsOnClose {
            state.records.clear();
        }
        if self.flaw == Flaw::ReusesVersionsAfterReopening {
            state.last = state.records.values().map(|(found, _)| found.version.0).max().unwrap_or(0);
        }
        Some(self.open(state, false))
    }

    async fn failing(&self) -> Option<Arc<dyn KeyValue>> {
        Some(self.open(State::default(), true))
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&self, span: Duration) {
        self.clock.turn(span);
    }
}

// spec: K-1
#[test_case::test_case(Flaw::IgnoresExpect, "a_stale_swap_is_lost_and_changes_nothing")]
#[test_case::test_case(Flaw::ReusesVersionsAfterDelete, "versions_never_come_back")]
#[test_case::test_case(Flaw::ReusesVersionsAfterReopening, "versions_never_come_back_after_reopening")]
#[test_case::test_case(Flaw::TearsValues, "no_reader_sees_a_torn_value")]
#[test_case::test_case(Flaw::LosesRacingSwaps, "no_swap_is_lost_among_racing_writers")]
#[test_case::test_case(Flaw::LosesRacingSwaps, "of_many_creators_one_wins")]
#[test_case::test_case(Flaw::OrdersScansByLength, "scans_are_complete_and_in_byte_order")]
#[test_case::test_case(Flaw::RepeatsThePageMark, "pages_join_to_the_whole")]
#[test_case::test_case(Flaw::LeaksSiblingsIntoPrefix, "a_prefix_keeps_to_its_subtree")]
#[test_case::test_case(Flaw::SwallowsErrors, "a_failing_medium_is_an_error")]
#[test_case::test_case(Flaw::ForgetsOnClose, "acknowledged_writes_outlive_the_store")]
#[test_case::test_case(Flaw::ForgetsExpiry, "a_lapsed_value_counts_as_absent")]
#[test_case::test_case(Flaw::KeepsOldExpiry, "a_swap_sets_the_expiry_anew")]
#[test_case::test_case(Flaw::HidesTheWinner, "a_stale_swap_is_lost_and_changes_nothing")]
#[test_case::test_case(Flaw::DropsEmptyValues, "values_of_every_size_come_back_whole")]
#[test_case::test_case(Flaw::TellsOfOthersKeys, "a_feed_tells_of_changes_below_its_prefix")]
#[test_case::test_case(Flaw::HidesDeletes, "a_feed_tells_of_changes_below_its_prefix")]
#[test_case::test_case(Flaw::EndsItsFeed, "a_feed_tells_of_changes_below_its_prefix")]
#[test_case::test_case(Flaw::TellsOfLostSwaps, "a_lost_swap_is_no_change")]
#[test_case::test_case(Flaw::KeepsItsFeedSilent, "a_feed_tells_of_changes_below_its_prefix")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_finds_the_flaw(flaw: Flaw, case: &str) {
    let found = violations(&Broken::new(flaw)).await;
    assert!(found.iter().any(|violation| violation.case == case), "{flaw:?} shows only as {found:?}");
}

// spec: K-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_store_without_a_flaw_passes() {
    assert_eq!(violations(&Broken::new(Flaw::None)).await, []);
}

struct Memory(Arc<StillClock>);

#[async_trait]
impl Fixture for Memory {
    async fn fresh(&self) -> Arc<dyn KeyValue> {
        Arc::new(MemoryStore::new(Arc::<StillClock>::clone(&self.0)))
    }

    async fn reopen(&self, _store: Arc<dyn KeyValue>) -> Option<Arc<dyn KeyValue>> {
        None
    }

    async fn failing(&self) -> Option<Arc<dyn KeyValue>> {
        None
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn pass(&self, span: Duration) {
        self.0.turn(span);
    }
}

// spec: K-1, K-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_in_memory_store_passes() {
    assert_eq!(violations(&Memory(Arc::default())).await, []);
}

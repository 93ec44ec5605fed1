//! Random walks through a larger world, over the real table and a store that loses swaps: somebody else's write comes
//! in between, or the store says so without a reason.

use crate::exhaustive::{FRESH, ON_FALLBACK};
use crate::rules::Rules;
use crate::world::{Action, Budget, Stage, World};
use async_trait::async_trait;
use failover_session::{SessionEntry, SessionKey, Sessions};
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, MemoryStore, Prefix, StoreError, Swap, Value, Versioned,
    WriteOptions,
};
use failover_types::{AgentId, BoxFuture, Clock, SessionId, Timestamp};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::value::RawValue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use test_case::test_case;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn sleep_until(&self, _at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What happens to one swap.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Fair,
    /// An unrelated writer comes first.
    Overtaken,
    /// Lost although nothing changed.
    Spurious,
}

struct Disturbed {
    inner: MemoryStore,
    fates: Mutex<Vec<Fate>>,
    bumps: AtomicU64,
}

impl Disturbed {
    /// Somebody counts in a field of the host, by compare-and-swap as everybody does.
    async fn bump(&self, key: &Key) -> Result<(), StoreError> {
        let Some(found) = self.inner.get(key).await? else { return Ok(()) };
        let count = self.bumps.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = SessionEntry::parse(found.value.as_bytes()).unwrap();
        let raw = RawValue::from_string(count.to_string()).unwrap();
        let next = entry.with_field("bumps", Some(raw)).unwrap().to_json();
        let value = Value::new(next.into_bytes());
        let swap = self
            .inner
            .swap(key, Expect::Version(found.version), Some(value), WriteOptions::durable())
            .await?;
        assert!(matches!(swap, Swap::Done(_)));
        Ok(())
    }
}

#[async_trait]
impl KeyValue for Disturbed {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.inner.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        assert_eq!(write, WriteOptions::durable(), "sessions are never written softly");
        let fate = self.fates.lock().unwrap().pop().unwrap_or(Fate::Fair);
        match fate {
            Fate::Fair => {}
            Fate::Overtaken => self.bump(key).await?,
            Fate::Spurious => return Ok(Swap::Lost(self.inner.get(key).await?)),
        }
        self.inner.swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.inner.scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.inner.changes(prefix).await
    }
}

/// The session in the disturbed store.
struct Stored {
    runtime: tokio::runtime::Runtime,
    store: Arc<Disturbed>,
    sessions: Sessions,
    key: SessionKey,
}

impl Stored {
    fn new(initial: &SessionEntry) -> Self {
        let inner = MemoryStore::new(Arc::new(Still));
        let store = Arc::new(Disturbed { inner, fates: Mutex::default(), bumps: AtomicU64::new(0) });
        let sessions = Sessions::new(Arc::clone(&store) as Arc<dyn KeyValue>);
        let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut stored = Self { runtime, store, sessions, key };
        stored.update(&mut |_| Some(initial.clone()));
        stored
    }
}

impl Stage for Stored {
    fn update(&mut self, change: &mut (dyn FnMut(&SessionEntry) -> Option<SessionEntry> + Send)) {
        self.runtime.block_on(self.sessions.update(&self.key, change)).unwrap();
    }

    fn entry(&self) -> Arc<SessionEntry> {
        Arc::new(self.runtime.block_on(self.sessions.get(&self.key)).unwrap().unwrap())
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![2 => Just(Fate::Fair), 2 => Just(Fate::Overtaken), 1 => Just(Fate::Spurious)]
}

/// A walk: which of the possible actions is taken, and what happens to its swaps.
fn walk() -> impl Strategy<Value = (bool, Vec<(Index, Vec<Fate>)>)> {
    let step = (any::<Index>(), proptest::collection::vec(fate(), 0..4));
    (any::<bool>(), proptest::collection::vec(step, 1..120))
}

/// Runs do most of the work; a person who chose is soon back on the default.
fn weighted(world: &World) -> Vec<Action> {
    let weigh = |action: Action| {
        let weight = match action {
            Action::Choose
            | Action::ChooseFallback
            | Action::ChooseOutside
            | Action::Reset
            | Action::Die(_) => 1,
            _ => 6,
        };
        std::iter::repeat_n(action, weight)
    };
    world.enabled().into_iter().flat_map(weigh).collect()
}

fn go(rules: Rules, (on_fallback, steps): (bool, Vec<(Index, Vec<Fate>)>)) -> Result<(), TestCaseError> {
    let initial = if on_fallback { ON_FALLBACK } else { FRESH };
    let initial = SessionEntry::parse(initial.as_bytes()).unwrap();
    let mut stored = Stored::new(&initial);
    let budget =
        Budget { runs: 40, choices: 4, returns: 4, resets: 4, expiries: 4, compactions: 4, writes: 10 };
    let mut world = World::new(rules, &initial, budget);
    let mut walked: Vec<Action> = Vec::new();
    for (index, fates) in steps {
        let action = *index.get(&weighted(&world));
        walked.push(action);
        *stored.store.fates.lock().unwrap() = fates;
        let mut broken = world.step(action, &mut stored);
        stored.store.fates.lock().unwrap().clear();
        let entry = stored.entry();
        broken.append(&mut world.judge(&entry));
        prop_assert!(broken.is_empty(), "{:?} after {:?}: {}", broken, walked, entry.to_json());
        world.replace_ended(&entry);
        if world.enabled().is_empty() {
            break;
        }
    }
    world.kill_all();
    let broken = world.judge(&stored.entry());
    prop_assert!(broken.is_empty(), "{:?} after {:?} and everybody's death", broken, walked);
    let bumps = stored.store.bumps.load(Ordering::Relaxed);
    let counted = stored.entry().field("bumps").map_or(0, |raw| raw.get().parse().unwrap());
    prop_assert_eq!(counted, bumps, "a write of the unrelated writer is gone");
    Ok(())
}

proptest! {
    // A multiple, so that a longer run reaches it too.
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]

    // spec: S-2, S-3, S-4, S-5, S-6, S-11
    #[test]
    fn nothing_breaks_on_a_random_walk(walk in walk()) {
        go(Rules::real(), walk)?;
    }
}

// spec: S-5
#[test_case(Rules::rollback_to_default(); "rollback to the default")]
#[test_case(Rules::rollback_without_comparing(); "rollback without comparing")]
#[test_case(Rules::rollback_to_a_failed_value(); "rollback to what another run failed on")]
#[test_case(Rules::claim_without_a_fence(); "claim after a reset")]
fn random_walks_find_a_broken_rule(rules: Rules) {
    let config =
        ProptestConfig { cases: 2_000, failure_persistence: None, max_shrink_iters: 0, ..Default::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    assert!(runner.run(&walk(), |walk| go(rules, walk)).is_err());
}

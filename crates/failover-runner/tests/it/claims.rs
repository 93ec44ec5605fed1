//! What a run that does not come to its end leaves behind in its session, and in the records of health.

use crate::common::{T0, policy};
use crate::driver::{ClientError, classifier, run_spec, status, with_clock};
use async_trait::async_trait;
use failover_auth::{UsageStats, UserPinMode, WindowScope, pause};
use failover_runner::health::Subject;
use failover_runner::plan::{Decision, DecisionObserver, RunPolicy};
use failover_runner::{Attempt, Runner, StoredSession};
use failover_session::{SessionEntry, SessionKey, Sessions, StoredSelection};
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, MemoryStore, Prefix, StoreError, Swap, Value, Versioned,
    WriteOptions,
};
use failover_testkit::ManualClock;
use failover_types::{AgentId, Clock, RunId, SessionId};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct World {
    clock: Arc<ManualClock>,
    sessions: Sessions,
    key: SessionKey,
    runner: Runner,
}

fn world() -> World {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let runner = Runner::builder(classifier()).clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
    World { clock, sessions: Sessions::new(store), key, runner }
}

impl World {
    async fn open(&self, run: &str) -> StoredSession {
        let (sessions, key) = (self.sessions.clone(), self.key.clone());
        let run = RunId::new(run).unwrap();
        StoredSession::open(sessions, key, run, UserPinMode::Strict, self.clock.now()).await.unwrap()
    }

    async fn entry(&self) -> SessionEntry {
        self.sessions.get(&self.key).await.unwrap().unwrap_or_default()
    }
}

/// The first model refuses, the second never says anything.
async fn hanging(attempt: Attempt) -> Result<(), ClientError> {
    match attempt.number {
        1 => Err(status(401)),
        _ => std::future::pending().await,
    }
}

// spec: S-6, R-12
#[tokio::test]
async fn a_dropped_run_takes_its_claim_back_at_once() {
    let world = world();
    let session = Arc::new(world.open("run").await);
    {
        let spec = run_spec("run", &["a/m", "b/m"], &RunPolicy::default());
        let mut run = pin!(world.runner.start(spec).session(session).run(hanging));
        while world.entry().await.claims().is_empty() {
            assert!(futures_util::poll!(&mut run).is_pending());
            tokio::task::yield_now().await;
        }
    }
    world.runner.settled().await;
    let entry = world.entry().await;
    assert!(entry.claims().is_empty(), "{}", entry.to_json());
    assert_eq!(entry.selection(), StoredSelection::Nothing);
}

// spec: S-6
#[tokio::test]
async fn a_claim_lives_as_long_as_its_run_and_a_minute_longer() {
    let world = world();
    let session = Arc::new(world.open("run").await);
    let spec = run_spec("run", &["a/m", "b/m"], &RunPolicy::default());
    let mut run = Box::pin(world.runner.start(spec).session(session).run(hanging));
    let began = world.clock.now();
    while world.clock.now().since(began) < Duration::from_mins(30) {
        for _ in 0..64 {
            assert!(futures_util::poll!(&mut run).is_pending());
            tokio::task::yield_now().await;
        }
        world.clock.advance_to_next();
    }
    assert_eq!(world.open("other").await.entry().claims().len(), 1, "it is still at work");
    // Killed: nothing of it runs any more, not even what a drop would do.
    std::mem::forget(run);
    world.clock.advance(Duration::from_secs(61));
    let next = world.open("next").await;
    assert!(next.entry().claims().is_empty(), "{}", next.entry().to_json());
    assert_eq!(world.entry().await.selection(), StoredSelection::Nothing);
}

/// Cannot be reached while it is told so.
struct Away {
    inner: MemoryStore,
    away: Mutex<bool>,
}

impl Away {
    fn check(&self) -> Result<(), StoreError> {
        if *self.away.lock().unwrap() {
            return Err(StoreError::Unavailable { place: "store".to_owned(), why: "away".to_owned() });
        }
        Ok(())
    }
}

#[async_trait]
impl KeyValue for Away {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.check()?;
        self.inner.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        self.check()?;
        self.inner.swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.check()?;
        self.inner.scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.inner.changes(prefix).await
    }
}

#[derive(Default)]
struct Told(Mutex<Vec<bool>>);

impl DecisionObserver for Told {
    fn on_decision(&self, decision: &Arc<Decision>) {
        self.0.lock().unwrap().push(decision.unknown);
    }
}

// spec
#[tokio::test]
async fn a_pause_that_is_known_holds_without_the_store_and_one_that_is_not_is_told_of() {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Arc::new(Away {
        inner: MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>),
        away: Mutex::new(false),
    });
    let make = |told: &Arc<Told>| {
        Runner::builder(classifier())
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .store(Arc::clone(&store) as Arc<dyn KeyValue>, AgentId::main())
            .observer(Arc::clone(told) as Arc<dyn DecisionObserver>)
            .build()
    };
    let paused = Subject::Profile("a:default".parse().unwrap());
    let stats = pause(&UsageStats::default(), WindowScope::Profile, "ada", clock.now()).unwrap();
    let key = failover_runner::usage_key(&AgentId::main(), &paused).unwrap();
    let write = Some(Value::new(stats.encode()));
    assert!(matches!(
        store.swap(&key, Expect::Absent, write, WriteOptions::durable()).await,
        Ok(Swap::Done(_))
    ));
    let (told_one, told_two) = (Arc::<Told>::default(), Arc::<Told>::default());
    let (knows, does_not) = (make(&told_one), make(&told_two));
    let policy = policy(|_| {});
    let served = async |runner: &Runner, name: &str| {
        let spec = run_spec(name, &["a/m", "b/m"], &policy);
        let run =
            runner.start(spec).run(|attempt: Attempt| async move { Ok::<_, ClientError>(attempt.model) });
        with_clock(&clock, run).await.unwrap().value.to_string()
    };
    assert_eq!(served(&knows, "1").await, "b/m");
    assert!(told_one.0.lock().unwrap().iter().all(|unknown| !unknown));
    *store.away.lock().unwrap() = true;
    clock.advance(Duration::from_secs(10));
    assert_eq!(served(&knows, "2").await, "b/m", "what it knows still counts");
    // Read anew by a host while the store was away: the roster says nothing of the pause.
    knows.health().set_roster(knows.health().roster());
    assert_eq!(served(&knows, "3").await, "b/m");
    assert_eq!(served(&does_not, "4").await, "a/m", "failover comes first");
    assert!(told_two.0.lock().unwrap().iter().all(|unknown| *unknown), "and the log says so");
}

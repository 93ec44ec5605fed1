//! The table over a store: loops of compare-and-swap, durable, bounded, and recoverable wherever a future is dropped.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test helpers")]

mod common;

use async_trait::async_trait;
use common::{at, claim, entry, model, restarted, run};
use failover_session::{
    Rollback, SessionEntry, SessionKey, Sessions, SessionsError, StoredSelection, apply_fallback, expired,
    roll_back, select_user, settle, take_notices,
};
use failover_store::{
    ChangeStream, Durability, Expect, Key, KeyValue, MemoryStore, Prefix, StoreError, Swap, Value, Versioned,
    WriteOptions,
};
use failover_types::{AgentId, BoxFuture, Clock, SessionId, Timestamp};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn sleep_until(&self, _at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Gives way before and after everything it does, and remembers how it was written to.
struct Yielding {
    inner: MemoryStore,
    written: Mutex<Vec<Durability>>,
    /// Every swap is lost.
    hopeless: bool,
    swaps: AtomicUsize,
}

impl Yielding {
    fn new(hopeless: bool) -> Arc<Self> {
        let inner = MemoryStore::new(Arc::new(Still));
        Arc::new(Self { inner, written: Mutex::default(), hopeless, swaps: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl KeyValue for Yielding {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        tokio::task::yield_now().await;
        let found = self.inner.get(key).await;
        tokio::task::yield_now().await;
        found
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        self.swaps.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        if self.hopeless {
            return Ok(Swap::Lost(self.inner.get(key).await?));
        }
        let swap = self.inner.swap(key, expect, next, write).await;
        self.written.lock().unwrap().push(write.durability);
        tokio::task::yield_now().await;
        swap
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

fn table(store: &Arc<Yielding>) -> Sessions {
    Sessions::new(Arc::clone(store) as Arc<dyn KeyValue>)
}

fn key(session: &str) -> SessionKey {
    SessionKey::new(AgentId::main(), SessionId::new(session).unwrap())
}

/// What is stored for a session, apart from the table.
async fn raw(store: &Yielding, session: &str) -> Option<String> {
    let key = Key::new(&["agent", "main", "session", session]).unwrap();
    let found = store.inner.get(&key).await.unwrap()?;
    Some(String::from_utf8(found.value.as_bytes().to_vec()).unwrap())
}

async fn put(store: &Yielding, session: &str, json: &str) {
    let key = Key::new(&["agent", "main", "session", session]).unwrap();
    let value = Value::new(json.as_bytes().to_vec());
    let swap = store.inner.swap(&key, Expect::Absent, Some(value), WriteOptions::durable()).await.unwrap();
    assert!(matches!(swap, Swap::Done(_)));
}

// spec: S-2, K-2
#[tokio::test]
async fn changes_are_durable_and_no_change_is_no_write() {
    let store = Yielding::new(false);
    let sessions = table(&store);
    assert_eq!(sessions.get(&key("s")).await.unwrap(), None);
    let (_, written) = sessions.update(&key("s"), |_| None).await.unwrap();
    assert!(!written);
    assert_eq!(raw(&store, "s").await, None, "an entry that needs nothing is not created");
    let fresh = SessionEntry::new();
    let claim = claim(&run(&fresh, "r"), "b/m2", at(0));
    let (stands, written) = sessions.update(&key("s"), |entry| apply_fallback(entry, &claim)).await.unwrap();
    assert!(written);
    assert_eq!(sessions.get(&key("s")).await.unwrap().unwrap(), stands);
    let back = |entry: &SessionEntry| {
        let rollback = roll_back(entry, &claim);
        (rollback.clone().into_entry(), rollback)
    };
    let (stands, rollback) = sessions.update_with(&key("s"), back).await.unwrap();
    assert_eq!((stands, rollback), (fresh.clone(), Rollback::Restored(fresh)));
    assert_eq!(*store.written.lock().unwrap(), [Durability::Durable; 2]);
}

// spec: K-4
#[tokio::test]
async fn what_cannot_be_read_is_refused_and_left_as_it_is() {
    let store = Yielding::new(false);
    for (session, json) in [("newer", r#"{"failover":{"v":9}}"#), ("damaged", "{")] {
        put(&store, session, json).await;
        let outcome = table(&store).update(&key(session), |_| Some(SessionEntry::new())).await;
        assert!(matches!(outcome, Err(SessionsError::Entry { .. })), "{outcome:?}");
        assert_eq!(raw(&store, session).await.unwrap(), json);
    }
    assert_eq!(
        table(&store).recover(&AgentId::main(), |_| true).await.unwrap(),
        0,
        "nor does recovery stumble"
    );
}

// spec: S-5
#[tokio::test]
async fn a_loop_that_always_loses_ends() {
    let store = Yielding::new(true);
    let outcome = table(&store).update(&key("s"), |_| Some(entry(r#"{"x":1}"#))).await;
    assert!(matches!(outcome, Err(SessionsError::Contended { .. })));
    assert_eq!(store.swaps.load(Ordering::Relaxed), 256);
}

// spec: S-5, S-11, R-14
#[tokio::test]
async fn many_runs_at_once_lose_nothing_and_announce_once() {
    const RUNS: usize = 40;
    let store = Yielding::new(false);
    put(&store, "s", r#"{"title":"t","n":1.0}"#).await;
    let sessions = table(&store);
    let tasks = (0..RUNS).map(|n| {
        let sessions = sessions.clone();
        async move {
            let key = key("s");
            let ticket = run(&sessions.get(&key).await.unwrap().unwrap(), &format!("run-{n}"));
            let claim = claim(&ticket, if n % 2 == 0 { "b/m2" } else { "c/m3" }, at(0));
            sessions.update(&key, |entry| apply_fallback(entry, &claim)).await.unwrap();
            let fails = n % 3 == 0;
            sessions
                .update(&key, |entry| {
                    if fails { roll_back(entry, &claim).into_entry() } else { settle(entry, &claim) }
                })
                .await
                .unwrap();
            let take =
                |entry: &SessionEntry| take_notices(entry).map_or((None, 0), |(e, n)| (Some(e), n.len()));
            sessions.update_with(&key, take).await.unwrap().1
        }
    });
    let tasks: Vec<_> = tasks.collect();
    let taken: usize = join_all(tasks).await.into_iter().sum();
    assert_eq!(taken, 1, "one move, one notice");
    let last = sessions.get(&key("s")).await.unwrap().unwrap();
    assert_eq!(restarted(&last), last);
    assert!(last.claims().is_empty());
    assert!(matches!(last.selection(), StoredSelection::Auto { .. }));
    assert!(last.to_json().starts_with(r#"{"title":"t","n":1.0,"#));
}

/// Polls all futures in turn until each is ready: the worst interleaving of their swaps.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut done: Vec<Option<F::Output>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for at in 0..pending.len() {
            if let Some(future) = &mut pending[at]
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                done[at] = Some(output);
                pending[at] = None;
            }
        }
        if pending.iter().all(Option::is_none) {
            return Poll::Ready(done.iter_mut().filter_map(Option::take).collect());
        }
        Poll::Pending
    })
    .await
}

// spec: S-6, R-12
#[test]
fn wherever_a_run_is_dropped_the_session_can_be_recovered() {
    let before = r#"{"title":"t","providerOverride":"c","modelOverride":"m3","modelOverrideSource":"auto","modelOverrideFallbackOriginProvider":"a","modelOverrideFallbackOriginModel":"m1"}"#;
    let mut unproven = 0;
    for fails in [false, true] {
        for polls in 0.. {
            let store = Yielding::new(false);
            block_on(put(&store, "s", before));
            let sessions = table(&store);
            let finished = drop_after(polls, turn(&sessions, fails));
            let left = block_on(sessions.get(&key("s"))).unwrap().unwrap();
            unproven += usize::from(!left.claims().is_empty());
            block_on(sessions.recover(&AgentId::main(), expired(at(600)))).unwrap();
            let after = block_on(sessions.get(&key("s"))).unwrap().unwrap();
            assert!(after.claims().is_empty());
            let selected = after.selection().model().cloned();
            let proven =
                !left.notices().is_empty() || left.settled_selection().model() == Some(&model("b/m2"));
            let expected = if proven { "b/m2" } else { "c/m3" };
            assert_eq!(selected, Some(model(expected)), "dropped after {polls} polls");
            assert_eq!(after.field("title").unwrap().get(), "\"t\"");
            if finished {
                assert!(polls > 8, "the turn gives way often enough to be dropped anywhere");
                break;
            }
        }
    }
    assert!(unproven > 4, "some drops left a claim behind");
}

/// One turn of a run: claim, attempt, rollback or proof.
async fn turn(sessions: &Sessions, fails: bool) {
    let key = key("s");
    let ticket = run(&sessions.get(&key).await.unwrap().unwrap(), "r");
    let claim = claim(&ticket, "b/m2", at(0));
    sessions.update(&key, |entry| apply_fallback(entry, &claim)).await.unwrap();
    tokio::task::yield_now().await;
    let end = |entry: &SessionEntry| {
        if fails { roll_back(entry, &claim).into_entry() } else { settle(entry, &claim) }
    };
    sessions.update(&key, end).await.unwrap();
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

/// Polls so often and drops; whether the future had finished.
fn drop_after(polls: usize, future: impl Future<Output = ()>) -> bool {
    let mut future: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(future);
    (0..polls).any(|_| future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready())
}

// spec: S-6
#[tokio::test]
async fn startup_recovery_visits_every_session_of_the_agent() {
    let store = Yielding::new(false);
    let sessions = table(&store);
    for n in 0..300 {
        let fresh = SessionEntry::new();
        let claim = claim(&run(&fresh, "r"), "b/m2", at(0));
        let claims = n % 3 != 0;
        let change = |entry: &SessionEntry| {
            if claims { apply_fallback(entry, &claim) } else { Some(common::entry("{\"t\":1}")) }
        };
        sessions.update(&key(&format!("s{n}")), change).await.unwrap();
    }
    let other = SessionKey::new(AgentId::new("other").unwrap(), SessionId::new("s").unwrap());
    let claim = claim(&run(&SessionEntry::new(), "r"), "b/m2", at(0));
    sessions.update(&other, |entry| apply_fallback(entry, &claim)).await.unwrap();
    assert_eq!(sessions.recover(&AgentId::main(), |_| true).await.unwrap(), 200);
    assert_eq!(sessions.recover(&AgentId::main(), |_| true).await.unwrap(), 0);
    assert_eq!(sessions.get(&other).await.unwrap().unwrap().claims().len(), 1);
}

/// A clock that a test turns by hand.
#[derive(Default)]
struct Manual(AtomicU64);

impl Clock for Manual {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, _at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

// spec: K-5
#[tokio::test]
async fn an_idle_session_is_forgotten_and_one_in_use_is_not() {
    const DAY: u64 = 24 * 60 * 60 * 1_000;
    let clock = Arc::new(Manual::default());
    let store: Arc<dyn KeyValue> = Arc::new(MemoryStore::new(Arc::<Manual>::clone(&clock)));
    let sessions =
        Sessions::new(store).forgetting_idle(Duration::from_hours(40 * 24), Arc::<Manual>::clone(&clock));
    let choose = |entry: &SessionEntry| Some(select_user(entry, &"u/x".parse().unwrap(), at(0)));
    for session in ["used", "idle"] {
        sessions.update(&key(session), choose).await.unwrap();
    }
    for day in 1..=100 {
        clock.0.store(day * DAY, Ordering::Relaxed);
        let (entry, written) = sessions.update(&key("used"), |_| None).await.unwrap();
        assert_eq!(entry.selection(), StoredSelection::User { model: model("u/x") });
        assert!(!written, "the caller changed nothing");
    }
    assert_eq!(sessions.get(&key("idle")).await.unwrap(), None);
    sessions.update(&key("never"), |_| None).await.unwrap();
    assert_eq!(sessions.get(&key("never")).await.unwrap(), None);
}

//! The async driver: what it carries out, how long it waits, and what is left when it is dropped.

use crate::common::{T0, model, policy, profile};
use async_trait::async_trait;
use failover_auth::{CooldownPolicy, Failure, UsageStats, UserPinMode, next_usage};
use failover_classify::{AsSignal, Classifier, Signal, Surface};
use failover_runner::health::Subject;
use failover_runner::plan::{Candidate, Decision, DecisionObserver, RepairKind, RunPolicy, RunSpec};
use failover_runner::{Attempt, Cause, RunError, RunSession, Runner, StoredSession, usage_key};
use failover_session::{SessionEntry, SessionKey, Sessions, StoredSelection};
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, MemoryStore, Prefix, StoreError, Swap, Value, Versioned,
    WriteOptions,
};
use failover_testkit::ManualClock;
use failover_types::{AgentId, Clock, FailoverReason, RunId, SessionId, Timestamp};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// An error of a client of one's own.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("status {status:?}: {body}")]
pub(crate) struct ClientError {
    pub(crate) status: Option<u16>,
    pub(crate) body: &'static str,
}

/// A client's own timeout.
#[derive(Debug, thiserror::Error)]
#[error("timed out")]
struct ClientTimeout;

impl AsSignal for ClientTimeout {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        with(&Signal::new(Surface::Transport).with_code("ETIMEDOUT"))
    }
}

impl AsSignal for ClientError {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        let mut signal = Signal::new(Surface::Http).with_body(self.body.as_bytes());
        signal.status = self.status;
        with(&signal)
    }
}

pub(crate) fn status(status: u16) -> ClientError {
    ClientError { status: Some(status), body: "{\"error\":{\"message\":\"nope\"}}" }
}

pub(crate) fn classifier() -> Arc<Classifier> {
    static ONE: OnceLock<Arc<Classifier>> = OnceLock::new();
    Arc::clone(ONE.get_or_init(|| Arc::new(Classifier::standard().unwrap())))
}

fn chain(models: &[&str]) -> Vec<Candidate> {
    models.iter().map(|text| Candidate::new(model(text))).collect()
}

pub(crate) fn run_spec(name: &str, models: &[&str], policy: &RunPolicy) -> RunSpec {
    RunSpec::new(RunId::new(name).unwrap(), chain(models)).with_policy(policy.clone())
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(T0))
}

/// Runs `future` and moves the clock on whenever everybody waits for it.
pub(crate) async fn with_clock<T>(clock: &ManualClock, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        for _ in 0..64 {
            if let Poll::Ready(done) = futures_util::poll!(&mut future) {
                return done;
            }
            tokio::task::yield_now().await;
        }
        clock.advance_to_next();
    }
}

/// Waits in the way a store or a socket does: pending once, then ready.
async fn once() {
    let mut waited = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

// spec
#[tokio::test]
async fn a_closure_is_all_that_a_run_needs() {
    let answer = failover_runner::run(classifier(), chain(&["a/m", "b/m"]), |attempt: Attempt| async move {
        if attempt.model == model("a/m") { Err(status(401)) } else { Ok(attempt.number) }
    })
    .await
    .unwrap();
    assert_eq!((answer.value, answer.model, answer.trail.len()), (2, model("b/m"), 2));
}

// spec: R-10
#[tokio::test]
async fn the_callers_error_comes_back_untouched() {
    let runner = Runner::new(classifier());
    let error = runner.run(chain(&["a/m"]), |_| async { Err::<(), _>(status(404)) }).await.unwrap_err();
    assert!(matches!(&error, RunError::Failed(failure) if failure.verdict.is_some()));
    assert_eq!(error.into_error(), Some(status(404)));

    let error =
        runner.run(chain(&["b/m", "c/m"]), |_| async { Err::<(), _>(status(404)) }).await.unwrap_err();
    let RunError::Exhausted(summary) = &error else { panic!("{error}") };
    assert_eq!(summary.attempts().count(), 2);
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), status(404).to_string());
}

// spec: R-9
#[tokio::test]
async fn a_committed_attempt_is_not_repeated() {
    let runner = Runner::new(classifier());
    let calls = AtomicUsize::new(0);
    let error = runner
        .run(chain(&["a/m", "b/m"]), |attempt: Attempt| {
            calls.fetch_add(1, Ordering::Relaxed);
            async move {
                attempt.commit();
                Err::<(), _>(status(503))
            }
        })
        .await
        .unwrap_err();
    assert!(matches!(error, RunError::Committed(_)));
    assert_eq!(calls.into_inner(), 1);
}

// spec: R-13
#[tokio::test]
async fn a_result_can_be_judged() {
    let runner = Runner::new(classifier());
    let spec = run_spec("run", &["a/m", "b/m"], &RunPolicy::default());
    let answer = runner
        .start(spec)
        .classify_result(|text: &String| text.is_empty().then(|| classifier().classify(&Signal::default())))
        .run(|attempt: Attempt| async move {
            let text = if attempt.model == model("a/m") { "" } else { "hello" };
            Ok::<_, ClientError>(text.to_owned())
        })
        .await
        .unwrap();
    assert_eq!((answer.value.as_str(), answer.model), ("hello", model("b/m")));
}

// spec: R-5
#[tokio::test]
async fn the_hook_repairs_the_callers_own_request() {
    let broken = Mutex::new(true);
    let runner = Runner::new(classifier());
    let answer = runner
        .start(run_spec("run", &["a/m"], &RunPolicy::default()))
        .repair(|kind| kind == RepairKind::Format && std::mem::take(&mut *broken.lock().unwrap()))
        .run(|_| {
            let error = broken
                .lock()
                .unwrap()
                .then(|| ClientError { status: Some(400), body: "invalid tool call id: toolu_1" });
            async move { error.map_or(Ok(()), Err) }
        })
        .await
        .unwrap();
    assert_eq!(answer.trail.len(), 2);
}

/// Says when it is dropped.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

// spec
#[tokio::test]
async fn the_losing_attempt_is_cancelled_before_the_next_begins() {
    let clock = clock();
    let runner = Runner::builder(classifier()).clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let alive = Arc::new(AtomicUsize::new(0));
    let spec = run_spec("run", &["a/m", "b/m"], &policy(|p| p.deadline_ms = Some(25_000)));
    let run = runner.start(spec).run(|attempt: Attempt| {
        let alive = Arc::clone(&alive);
        let clock = Arc::clone(&clock);
        async move {
            assert_eq!(alive.fetch_add(1, Ordering::SeqCst), 0, "one attempt at a time");
            let _alive = Alive(alive);
            if attempt.model == model("a/m") {
                std::future::pending::<()>().await;
            }
            Ok::<_, ClientError>(clock.now())
        }
    });
    let answer = with_clock(&clock, run).await.unwrap();
    assert_eq!(answer.value.since(T0), Duration::from_millis(12_500));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

// spec
#[tokio::test]
async fn output_that_has_begun_gets_the_whole_runs_time() {
    let clock = clock();
    let runner = Runner::builder(classifier()).clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let spec = run_spec("run", &["a/m", "b/m"], &policy(|p| p.deadline_ms = Some(20_000)));
    let run = runner.start(spec).run(|attempt: Attempt| {
        let clock = Arc::clone(&clock);
        async move {
            attempt.commit();
            clock.sleep_until(T0.after(Duration::from_secs(15))).await;
            Ok::<_, ClientError>(attempt.model)
        }
    });
    assert_eq!(with_clock(&clock, run).await.unwrap().value, model("a/m"));
}

// spec: S-10
#[tokio::test]
async fn a_live_switch_ends_the_attempt_at_hand() {
    let clock = clock();
    let runner = Runner::builder(classifier()).clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let (send, switches) = tokio::sync::watch::channel(None);
    let run = runner
        .start(run_spec("run", &["a/m", "b/m", "c/m"], &RunPolicy::default()))
        .live_switch(switches)
        .run(|attempt: Attempt| {
            if attempt.model == model("a/m") {
                send.send_replace(Some("c/m".parse().unwrap()));
            }
            async move {
                if attempt.model == model("a/m") {
                    std::future::pending::<()>().await;
                }
                Ok::<_, ClientError>(attempt.model)
            }
        });
    assert_eq!(with_clock(&clock, run).await.unwrap().value, model("c/m"));
}

/// A store of which every call takes so long; the default never ends.
struct SlowStore {
    inner: MemoryStore,
    clock: Arc<ManualClock>,
    wait: Option<Duration>,
}

impl SlowStore {
    async fn wait(&self) {
        match self.wait {
            Some(wait) => self.clock.sleep_until(self.clock.now().after(wait)).await,
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl KeyValue for SlowStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.wait().await;
        self.inner.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        self.wait().await;
        self.inner.swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.wait().await;
        self.inner.scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.inner.changes(prefix).await
    }
}

// spec: A-25
#[tokio::test]
async fn a_store_that_hangs_costs_50_ms_between_attempts_and_no_answer() {
    for wait in [None, Some(Duration::from_secs(10)), Some(Duration::from_millis(30))] {
        let clock = clock();
        let inner = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let store: Arc<dyn KeyValue> =
            Arc::new(SlowStore { inner: inner.clone(), clock: Arc::clone(&clock), wait });
        let runner = Runner::builder(classifier())
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .store(store, AgentId::main())
            .build();
        let began = Mutex::new(Vec::new());
        let run = runner.start(run_spec("run", &["a/m", "b/m", "c/m"], &RunPolicy::default())).run(
            |attempt: Attempt| {
                began.lock().unwrap().push(clock.now());
                async move { if attempt.number < 3 { Err(status(401)) } else { Ok(()) } }
            },
        );
        with_clock(&clock, run).await.unwrap();
        let mut last = T0;
        for at in began.lock().unwrap().iter() {
            assert!(at.since(last) <= Duration::from_millis(50), "{wait:?}: {:?}", at.since(last));
            last = *at;
        }
        assert!(clock.now().since(last) <= Duration::from_millis(50));
        if wait.is_some() {
            // What was late is written all the same.
            let key = usage_key(&AgentId::main(), &Subject::Profile("a:default".parse().unwrap())).unwrap();
            for _ in 0..64 {
                clock.advance_to_next();
                tokio::task::yield_now().await;
                let flush = with_clock(&clock, runner.flush());
                flush.await;
            }
            let found = inner.get(&key).await.unwrap().expect("written behind the run");
            assert_eq!(UsageStats::decode(found.value.as_bytes()).unwrap().windows().len(), 1);
        }
    }
}

// spec: A-25
#[tokio::test]
async fn a_claim_that_comes_too_late_is_taken_back() {
    let clock = clock();
    let inner = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let slow: Arc<dyn KeyValue> = Arc::new(SlowStore {
        inner: inner.clone(),
        clock: Arc::clone(&clock),
        wait: Some(Duration::from_millis(80)),
    });
    let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
    let open = StoredSession::open(
        Sessions::new(slow),
        key.clone(),
        RunId::new("run").unwrap(),
        UserPinMode::Strict,
        clock.now(),
    );
    let session = Arc::new(with_clock(&clock, open).await.unwrap());
    let runner = Runner::builder(classifier()).clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let run = runner
        .start(run_spec("run", &["a/m", "b/m", "c/m"], &RunPolicy::default()))
        .session(session)
        .run(|attempt: Attempt| {
            let clock = Arc::clone(&clock);
            async move {
                clock.sleep_until(clock.now().after(Duration::from_secs(1))).await;
                if attempt.number < 3 { Err(status(401)) } else { Ok(()) }
            }
        });
    assert!(with_clock(&clock, run).await.is_ok());
    for _ in 0..64 {
        clock.advance_to_next();
        tokio::task::yield_now().await;
    }
    let entry = Sessions::new(Arc::new(inner)).get(&key).await.unwrap().unwrap_or_default();
    assert!(entry.claims().is_empty(), "{}", entry.to_json());
    assert_eq!(entry.selection(), StoredSelection::Nothing, "the turn was local");
}

// spec: R-14, K-3
#[tokio::test]
async fn what_another_process_learnt_is_known_before_the_first_call() {
    let clock = clock();
    let store: Arc<dyn KeyValue> = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let failure = Failure::new(&model("a/m"), FailoverReason::Billing, T0).into();
    let stats = next_usage(&UsageStats::default(), &failure, &CooldownPolicy::default(), T0);
    let key = usage_key(&AgentId::main(), &Subject::Profile("a:default".parse().unwrap())).unwrap();
    let written =
        store.swap(&key, Expect::Absent, Some(Value::new(stats.encode())), WriteOptions::soft()).await;
    assert!(matches!(written, Ok(Swap::Done(_))));
    let runner = Runner::builder(classifier())
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .store(Arc::clone(&store), AgentId::main())
        .build();
    let answer = runner
        .run(chain(&["a/m", "b/m"]), |attempt: Attempt| async move { Ok::<_, ClientError>(attempt.model) })
        .await
        .unwrap();
    assert_eq!(answer.value, model("b/m"));
}

// spec: A-26
#[tokio::test]
async fn after_a_window_one_process_tries_and_the_other_goes_on() {
    let clock = clock();
    let store: Arc<dyn KeyValue> = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let make = || {
        Runner::builder(classifier())
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .store(Arc::clone(&store), AgentId::main())
            .build()
    };
    let (one, two) = (make(), make());
    let down = one.start(run_spec("0", &["a/m", "b/m"], &RunPolicy::default()));
    down.run(|a: Attempt| async move { if a.model == model("a/m") { Err(status(401)) } else { Ok(()) } })
        .await
        .unwrap();
    clock.set(T0.after(Duration::from_secs(31)));
    let slow = |clock: Arc<ManualClock>| {
        move |attempt: Attempt| {
            let clock = Arc::clone(&clock);
            async move {
                clock.sleep_until(clock.now().after(Duration::from_secs(1))).await;
                Ok::<_, ClientError>(attempt.model)
            }
        }
    };
    let both = futures_util::future::join(
        one.start(run_spec("1", &["a/m", "b/m"], &RunPolicy::default())).run(slow(Arc::clone(&clock))),
        two.start(run_spec("2", &["a/m", "b/m"], &RunPolicy::default())).run(slow(Arc::clone(&clock))),
    );
    let (first, second) = with_clock(&clock, Box::pin(both)).await;
    assert_eq!((first.unwrap().value, second.unwrap().value), (model("a/m"), model("b/m")));
}

/// Yields once in every call.
struct YieldingStore(MemoryStore);

#[async_trait]
impl KeyValue for YieldingStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        once().await;
        self.0.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        once().await;
        let done = self.0.swap(key, expect, next, write).await;
        once().await;
        done
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.0.scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.0.changes(prefix).await
    }
}

/// A run of three candidates in a session, dropped after each number of polls in turn.
// spec: R-12, S-6
#[tokio::test]
async fn dropping_a_run_anywhere_leaves_the_session_recoverable() {
    let mut polls = 0;
    loop {
        let clock = clock();
        let inner = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let store: Arc<dyn KeyValue> = Arc::new(YieldingStore(inner.clone()));
        let sessions = Sessions::new(Arc::clone(&store));
        let runner = Runner::builder(classifier())
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .store(Arc::clone(&store), AgentId::main())
            .build();
        let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
        let run_id = RunId::new("run").unwrap();
        let title = |entry: &SessionEntry| {
            let raw = serde_json::value::RawValue::from_string("\"kept\"".to_owned()).unwrap();
            entry.with_field("title", Some(raw)).ok()
        };
        sessions.update(&key, title).await.unwrap();

        let finished = {
            let run = async {
                let open =
                    StoredSession::open(sessions.clone(), key.clone(), run_id, UserPinMode::Strict, T0);
                let session = Arc::new(open.await.unwrap());
                let spec = run_spec("run", &["a/m", "b/m", "c/m"], &RunPolicy::default());
                let run = runner.start(spec).session(session as Arc<dyn RunSession>);
                run.run(|attempt: Attempt| async move {
                    once().await;
                    if attempt.number < 3 { Err(status(401)) } else { Ok(()) }
                })
                .await
            };
            let mut run = pin!(run);
            let mut cx = Context::from_waker(Waker::noop());
            (0..polls).any(|_| run.as_mut().poll(&mut cx).is_ready())
        };

        // Nobody holds a lock: another run on the same session and runner gets through at once.
        let later = T0.after(Duration::from_hours(1));
        clock.set(later);
        let open = StoredSession::open(
            sessions.clone(),
            key.clone(),
            RunId::new("next").unwrap(),
            UserPinMode::Strict,
            later,
        );
        let opened = open.await.unwrap();
        let entry = opened.entry().clone();
        assert!(entry.claims().is_empty(), "after {polls} polls: {}", entry.to_json());
        let expected = match entry.selection() {
            StoredSelection::Nothing => true,
            // Proven: the third attempt answered and was settled.
            StoredSelection::Auto { model: stands, .. } => stands == model("c/m"),
            _ => false,
        };
        assert!(expected, "after {polls} polls: {}", entry.to_json());
        assert_eq!(entry.field("title").unwrap().get(), "\"kept\"");
        let spec = run_spec("next", &["a/m", "b/m"], &RunPolicy::default());
        let next = runner.start(spec).session(Arc::new(opened) as Arc<dyn RunSession>);
        let answer = with_clock(&clock, next.run(|_| async { Ok::<_, ClientError>(()) })).await.unwrap();
        assert_eq!(answer.model, model("a/m"), "after {polls} polls");
        if finished {
            break;
        }
        polls += 1;
    }
    assert!(polls > 25, "{polls} points to drop at");
}

// spec: S-2, S-4, S-7, S-11
#[tokio::test]
async fn a_session_moves_with_one_notice_and_returns_with_one() {
    let clock = clock();
    let store: Arc<dyn KeyValue> = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let sessions = Sessions::new(Arc::clone(&store));
    let runner = Runner::builder(classifier()).clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
    let turn = async |name: &str, chain: &[&str], down: bool| {
        let run = RunId::new(name).unwrap();
        let open =
            StoredSession::open(sessions.clone(), key.clone(), run, UserPinMode::Strict, clock.now()).await;
        let session = Arc::new(open.unwrap());
        let seen = Mutex::new(Vec::new());
        let spec = run_spec(name, chain, &RunPolicy::default());
        let answer = runner
            .start(spec)
            .session(Arc::clone(&session) as Arc<dyn RunSession>)
            .run(|attempt: Attempt| {
                let (sessions, key, seen) = (&sessions, &key, &seen);
                async move {
                    let entry = sessions.get(key).await.unwrap().unwrap_or_default();
                    seen.lock().unwrap().push(entry.selection().model().cloned());
                    if down && attempt.model == model("a/m") { Err(status(401)) } else { Ok(()) }
                }
            })
            .await
            .unwrap();
        let notices: Vec<String> = answer.notices.iter().map(ToString::to_string).collect();
        (answer.model, notices, seen.into_inner().unwrap())
    };
    let moved = turn("1", &["a/m", "b/m"], true).await;
    assert_eq!(moved.0, model("b/m"));
    assert_eq!(moved.1, ["↪️ Model Fallback: b/m (selected a/m; auth)"]);
    assert_eq!(moved.2, [None, Some(model("b/m"))], "written before the attempt that it is for");
    let stays = turn("2", &["b/m", "a/m"], true).await;
    assert_eq!((stays.0, stays.1.len()), (model("b/m"), 0));
    clock.set(T0.after(Duration::from_mins(6)));
    let back = turn("3", &["a/m", "b/m"], false).await;
    assert_eq!(back.1, ["↪️ Model Fallback cleared: a/m (was b/m)"]);
    let entry = sessions.get(&key).await.unwrap().unwrap();
    assert_eq!(entry.selection(), StoredSelection::Nothing);
}

#[derive(Default)]
struct Seen(Mutex<Vec<(&'static str, Option<Timestamp>)>>);

impl DecisionObserver for Seen {
    fn on_decision(&self, decision: &Arc<Decision>) {
        self.0.lock().unwrap().push((decision.kind.name(), None));
    }
}

// spec: R-11
#[tokio::test]
async fn an_observer_sees_every_decision() {
    let seen = Arc::new(Seen::default());
    let runner =
        Runner::builder(classifier()).observer(Arc::clone(&seen) as Arc<dyn DecisionObserver>).build();
    let answer = runner
        .run(chain(&["a/m", "b/m"]), |attempt: Attempt| async move {
            if attempt.number == 1 { Err(status(404)) } else { Ok(()) }
        })
        .await;
    assert!(answer.is_ok());
    let names: Vec<&str> = seen.0.lock().unwrap().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["candidate_failed", "candidate_succeeded"]);
}

/// A client that keeps the run's deadline itself ends its attempt before the runner does.
// spec
#[tokio::test]
async fn the_runs_deadline_blames_nobody_whoever_keeps_it() {
    for models in [&["a/m"][..], &["b/m", "a/m"]] {
        let clock = clock();
        let runner = Runner::builder(classifier()).clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
        let run = |deadline: u64| {
            let spec = run_spec("run", models, &policy(|p| p.deadline_ms = Some(deadline)));
            let clock = Arc::clone(&clock);
            runner.start(spec).run(move |attempt: Attempt| {
                let clock = Arc::clone(&clock);
                async move {
                    // As clients with a limit of their own do that is longer than a short run.
                    let own = clock.now().after(Duration::from_secs(30));
                    let end = attempt.limits.deadline.map_or(own, |deadline| deadline.min(own));
                    clock.sleep_until(end).await;
                    Err::<(), _>(ClientTimeout)
                }
            })
        };
        with_clock(&clock, run(1_500)).await.unwrap_err();
        assert_eq!(clock.now().since(T0), Duration::from_millis(1_500));
        let windows = |of: &str| runner.health().usage(&Subject::Profile(profile(of))).windows().len();
        assert_eq!((windows("a:default"), windows("b:default")), (0, 0));
        with_clock(&clock, run(300_000)).await.unwrap_err();
        assert_eq!(windows("a:default"), 1, "a client's own limit is the provider's failure");
    }
}

// spec: R-8
#[tokio::test]
async fn an_attempt_that_hangs_is_ended_and_says_so() {
    let clock = clock();
    let runner = Runner::builder(classifier()).clock(Arc::clone(&clock) as Arc<dyn Clock>).build();
    let spec = run_spec("run", &["a/m"], &policy(|p| p.limits.attempt_ms = Some(1_000)));
    let run = runner.start(spec).run(|_| std::future::pending::<Result<(), ClientError>>());
    let error = with_clock(&clock, run).await.unwrap_err();
    assert!(matches!(error.cause(), Some(Cause::TimedOut)));
    assert_eq!(clock.now().since(T0), Duration::from_secs(1));
}

// spec
#[tokio::test]
async fn a_profile_that_goes_on_answering_is_written_once_a_second() {
    let clock = clock();
    let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let runner = Runner::builder(classifier())
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .store(Arc::new(store.clone()), AgentId::main())
        .build();
    let key = usage_key(&AgentId::main(), &Subject::Profile("a:default".parse().unwrap())).unwrap();
    let stored = async || {
        let found = store.get(&key).await.unwrap().expect("written");
        (found.version, UsageStats::decode(found.value.as_bytes()).unwrap())
    };
    let ask = async |result: Result<(), _>| {
        clock.advance(Duration::from_millis(10));
        let run = runner.start(run_spec("run", &["a/m"], &RunPolicy::default()));
        let result = &result;
        let _ = with_clock(&clock, run.run(|_| async move { result.clone() })).await;
    };
    ask(Ok(())).await;
    let (first, stats) = stored().await;
    assert_eq!(stats.last_used(), Some(clock.now()), "the first answer is written at once");
    ask(Ok(())).await;
    ask(Ok(())).await;
    assert_eq!(stored().await.0, first, "more of the same can wait");
    clock.advance(Duration::from_secs(1));
    ask(Ok(())).await;
    let (second, stats) = stored().await;
    assert_ne!(second, first);
    assert_eq!(stats.last_used(), Some(clock.now()));
    ask(Ok(())).await;
    ask(Err(status(401))).await;
    let (third, stats) = stored().await;
    assert_ne!(third, second, "a failure is written at once");
    assert_eq!(stats.windows().len(), 1);
    runner.flush().await;
    assert_eq!(stored().await.0, third, "nothing is left");
}

//! Two engines, as on two machines, over one Redis server: what one learns, the other knows within a second.
//!
//! Without a server the test is skipped, loudly, and fails in CI.

use crate::common::{CONFIG, Scripted, T0, engine, turn};
use failover::Engine;
use failover::runner::Fate;
use failover::runner::plan::Skip;
use failover::store::KeyValue;
use failover::types::Clock;
use failover_store_redis::RedisStore;
use failover_testkit::{ManualClock, RedisServer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn replica(server: &RedisServer, clock: &Arc<ManualClock>) -> Arc<dyn KeyValue> {
    let store = RedisStore::open(&server.url(), "fleet", Arc::clone(clock) as Arc<dyn Clock>).unwrap();
    store.check().await.unwrap();
    Arc::new(store)
}

/// Two replicas that call the same providers.
struct Fleet {
    clock: Arc<ManualClock>,
    one: Engine,
    other: Engine,
    primary: Arc<Scripted>,
    _server: RedisServer,
}

async fn fleet() -> Option<Fleet> {
    let server = RedisServer::start("replicas", &[])?;
    let clock = Arc::new(ManualClock::new(T0));
    let primary = Scripted::new("anthropic", true);
    let adapters = [Arc::clone(&primary), Scripted::new("openai", false), Scripted::new("groq", false)];
    let one = engine(CONFIG, replica(&server, &clock).await, Arc::clone(&clock) as _, &adapters).await;
    let other = engine(CONFIG, replica(&server, &clock).await, Arc::clone(&clock) as _, &adapters).await;
    Some(Fleet { clock, one, other, primary, _server: server })
}

/// Who answers a turn of this session, and which notices the user sees.
async fn ask(engine: &Engine, session: &str) -> (String, Vec<String>) {
    let answer = engine.chat(&turn(session)).await.unwrap();
    (answer.model.to_string(), answer.notices.iter().map(ToString::to_string).collect())
}

// spec: K-3, A-26, S-7, S-11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cooldowns_sessions_leases_and_notices_are_shared() {
    let Some(Fleet { clock, one, other, primary, _server }) = fleet().await else { return };
    // The other replica has looked before, and knows the primary as well.
    other.explain(&turn("s")).await.unwrap();
    let (model, notices) = ask(&one, "s").await;
    assert_eq!((model.as_str(), notices.len()), ("openai/b", 1));
    let calls = primary.calls();
    assert!(calls > 0);

    // Within a second the other one knows the window, and asks nobody in vain.
    clock.advance(Duration::from_secs(1));
    let explained = other.explain(&turn("new")).await.unwrap();
    let fate = &explained.plan.candidates[0].fate;
    assert!(matches!(fate, Fate::Skipped(Skip::Cooling { .. })), "{fate:?}");
    assert_eq!(ask(&other, "new").await.0, "openai/b");
    // The session's override is there too, and its notice was given.
    assert_eq!(ask(&other, "s").await, ("openai/b".to_owned(), vec![]));
    assert_eq!(primary.calls(), calls, "nobody called the primary again");

    // The window ends: of both replicas one tries.
    clock.advance(Duration::from_secs(31));
    let (a, b) = tokio::join!(ask(&one, "t1"), ask(&other, "t2"));
    assert_eq!((a.0.as_str(), b.0.as_str()), ("openai/b", "openai/b"));
    assert_eq!(primary.calls(), calls + 1, "one probe among all replicas");

    // It is well again: the session returns once, and says so once.
    clock.advance(Duration::from_mins(6));
    primary.down.store(false, Ordering::Relaxed);
    let first = ask(&one, "s").await;
    let second = ask(&other, "s").await;
    assert_eq!((first.0.as_str(), second.0.as_str()), ("anthropic/a", "anthropic/a"));
    let notices = [first.1, second.1].concat();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("cleared"), "{notices:?}");
}

//! Against a real server, started by the tests. Without one the tests are skipped, loudly, and fail in CI.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "test helpers, and real time")]

use async_trait::async_trait;
use failover_store::conformance::{Fixture, violations};
use failover_store::{
    Change, ChangeStream, Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Version, WriteOptions,
};
use failover_store_redis::RedisStore;
use failover_testkit::RedisServer;
use failover_types::{BoxFuture, Clock, Timestamp};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap())
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

fn signal(server: &RedisServer, signal: &str) {
    let pid = server.pid().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

/// A store whose server answers.
async fn connect(url: &str, namespace: &str) -> Result<RedisStore, StoreError> {
    let store = RedisStore::open(url, namespace, Arc::new(WallClock))?;
    store.check().await?;
    Ok(store)
}

async fn open(server: &RedisServer) -> RedisStore {
    connect(&server.url(), "x").await.unwrap()
}

struct Redis {
    server: Mutex<RedisServer>,
    namespace: AtomicU32,
}

impl Redis {
    fn namespace(&self) -> String {
        format!("test{}", self.namespace.load(Ordering::SeqCst))
    }
}

#[async_trait]
impl Fixture for Redis {
    async fn fresh(&self) -> Arc<dyn KeyValue> {
        self.namespace.fetch_add(1, Ordering::SeqCst);
        let url = self.server.lock().unwrap().url();
        Arc::new(connect(&url, &self.namespace()).await.unwrap())
    }

    /// The server is killed in between: `appendfsync always` keeps what was acknowledged.
    async fn reopen(&self, store: Arc<dyn KeyValue>) -> Option<Arc<dyn KeyValue>> {
        drop(store);
        let url = {
            let mut server = self.server.lock().unwrap();
            server.restart(&[]);
            server.url()
        };
        Some(Arc::new(connect(&url, &self.namespace()).await.unwrap()))
    }

    async fn failing(&self) -> Option<Arc<dyn KeyValue>> {
        let mut server = RedisServer::start("failing", &[]).unwrap();
        let store = open(&server).await;
        server.kill();
        Some(Arc::new(store))
    }

    fn now(&self) -> Timestamp {
        WallClock.now()
    }

    async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

fn key() -> Key {
    Key::new(&["cooldown", "a"]).unwrap()
}

async fn put(store: &RedisStore, expect: Expect, text: &str) -> Version {
    let value = Some(Value::new(text.as_bytes()));
    let swap = store.swap(&key(), expect, value, WriteOptions::durable()).await.unwrap();
    let Swap::Done(Some(version)) = swap else { unreachable!("{swap:?}") };
    version
}

// spec: K-1, K-3, K-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_redis_store_passes() {
    let Some(server) = RedisServer::start("the_redis_store_passes", &[]) else { return };
    let fixture = Redis { server: Mutex::new(server), namespace: AtomicU32::new(0) };
    assert_eq!(violations(&fixture).await, []);
}

// spec: K-3
#[tokio::test]
async fn what_one_replica_writes_another_reads_at_once() {
    let Some(server) = RedisServer::start("what_one_replica_writes_another_reads_at_once", &[]) else {
        return;
    };
    let (one, other) = (open(&server).await, open(&server).await);
    let version = put(&one, Expect::Absent, "1").await;
    assert_eq!(other.get(&key()).await.unwrap().unwrap().version, version);
    assert_eq!(one.check().await.unwrap(), [] as [String; 0]);
}

// spec: K-3, A-25
#[tokio::test]
async fn a_store_may_be_opened_before_its_server_is_there() {
    let Some(mut server) = RedisServer::start("before_its_server", &[]) else { return };
    server.kill();
    let store = RedisStore::open(&server.url(), "x", Arc::new(WallClock)).unwrap();
    assert!(matches!(store.check().await, Err(StoreError::Unavailable { .. })));
    server.restart(&[]);
    // The first call makes the connection; the server may still be reading its file.
    open(&server).await;
    put(&store, Expect::Absent, "1").await;
}

// spec: K-3, A-25
#[tokio::test]
async fn a_restarted_server_is_found_again_with_all_that_was_acknowledged() {
    let Some(mut server) = RedisServer::start("a_restarted_server", &[]) else { return };
    let store = open(&server).await;
    let version = put(&store, Expect::Absent, "1").await;
    server.kill();
    let error = store.get(&key()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    server.restart(&[]);
    let mut found = store.get(&key()).await;
    for _ in 0..3_000 {
        if found.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        found = store.get(&key()).await;
    }
    assert_eq!(found.unwrap().unwrap().version, version);
    assert!(put(&store, Expect::Version(version), "2").await > version);
}

// spec: A-25
#[tokio::test]
async fn a_server_that_hangs_is_an_error_in_bounded_time() {
    let Some(server) = RedisServer::start("a_server_that_hangs", &[]) else { return };
    let store = open(&server).await;
    signal(&server, "-STOP");
    let answer = tokio::time::timeout(Duration::from_secs(10), store.get(&key())).await;
    signal(&server, "-CONT");
    let error = answer.unwrap().unwrap_err();
    assert!(error.to_string().contains("did not answer within 1 s"), "{error}");
}

// spec: K-3
#[tokio::test]
async fn numbers_lie_above_all_earlier_ones_even_when_the_counter_is_lost() {
    let Some(server) = RedisServer::start("numbers_lie_above_all_earlier_ones", &[]) else { return };
    let store = open(&server).await;
    let before = put(&store, Expect::Absent, "1").await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    assert!(put(&store, Expect::Absent, "2").await > before);
}

// spec: K-3
#[tokio::test]
async fn weak_settings_are_told() {
    let Some(server) = RedisServer::start(
        "weak_settings_are_told",
        &["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"],
    ) else {
        return;
    };
    let store = open(&server).await;
    let warnings = store.check().await.unwrap().join("\n");
    assert!(warnings.contains("`appendonly` is `no`") && warnings.contains("`allkeys-lru`"), "{warnings}");
}

// spec: A-3
#[tokio::test]
async fn a_password_is_in_no_error() {
    for url in ["redis://user:hunter2@127.0.0.1:1/", "redis://user:hunter2@[/", "hunter2"] {
        let error = connect(url, "x").await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

/// Swaps again and again until the server takes it; a lost swap is read again.
async fn put_when_up(store: &RedisStore, text: &str) -> Version {
    for _ in 0..3_000 {
        if let Ok(current) = store.get(&key()).await {
            let value = Some(Value::new(text.as_bytes()));
            let swap =
                store.swap(&key(), Expect::from(current.as_ref()), value, WriteOptions::durable()).await;
            if let Ok(Swap::Done(Some(version))) = swap {
                return version;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!("the server does not come back")
}

async fn next(feed: &mut ChangeStream) -> Change {
    let next = std::future::poll_fn(|cx| feed.as_mut().poll_next(cx));
    tokio::time::timeout(Duration::from_mins(1), next).await.unwrap().unwrap()
}

// spec: K-3
#[tokio::test]
async fn a_feed_tells_another_replica_and_comes_back_with_the_server() {
    let Some(mut server) = RedisServer::start("a_feed_tells_another_replica", &[]) else { return };
    let (one, other) = (open(&server).await, open(&server).await);
    let mut feed = other.changes(&Prefix::new(&["cooldown"]).unwrap()).await.unwrap().unwrap();
    let version = put(&one, Expect::Absent, "1").await;
    let change = next(&mut feed).await;
    assert_eq!((change.key, change.current.unwrap().version), (key(), version));

    server.restart(&[]);
    // The feed connects when it is read; what was written before it did is not told, so writing goes on.
    let told = async {
        loop {
            if next(&mut feed).await.current.is_some_and(|current| current.version > version) {
                return;
            }
        }
    };
    let writing = async {
        loop {
            put_when_up(&one, "again").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = told => {}
        () = writing => {}
    }
}

/// Eight writers count in one record while the server is killed and comes back: no acknowledged count is lost, and none
/// counts twice.
// spec: K-3, A-25
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_go_on_through_crashes_lose_no_acknowledged_update() {
    let Some(mut server) = RedisServer::start("writers_that_go_on_through_crashes", &[]) else { return };
    let store = open(&server).await;
    put(&store, Expect::Absent, "").await;
    let mut writers = tokio::task::JoinSet::new();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    for writer in 0..8 {
        let (store, stop) = (open(&server).await, Arc::clone(&stop));
        writers.spawn(async move {
            let (mut acked, mut tried) = (Vec::new(), 0);
            while !stop.load(Ordering::SeqCst) {
                let Ok(Some(current)) = store.get(&key()).await else { continue };
                tried += 1;
                // Each update adds a mark of its own to what stands there.
                let mark = format!("{writer}-{tried} ");
                let text = [current.value.as_bytes(), mark.as_bytes()].concat();
                if text.len() > 30_000 {
                    break;
                }
                let next = Some(Value::new(text));
                let swap =
                    store.swap(&key(), Expect::Version(current.version), next, WriteOptions::durable()).await;
                if matches!(swap, Ok(Swap::Done(_))) {
                    acked.push(mark);
                }
            }
            acked
        });
    }
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.restart(&[]);
        put_marked(&store).await;
    }
    stop.store(true, Ordering::SeqCst);
    let acked: Vec<String> = writers.join_all().await.concat();
    let found = store.get(&key()).await.unwrap().unwrap();
    let text = String::from_utf8(found.value.as_bytes().to_vec()).unwrap();
    let mut marks: Vec<&str> = text.split_inclusive(' ').collect();
    assert!(!acked.is_empty());
    for mark in &acked {
        assert_eq!(marks.iter().filter(|found| **found == mark.as_str()).count(), 1, "{mark}");
    }
    marks.sort_unstable();
    let all = marks.len();
    marks.dedup();
    assert_eq!(marks.len(), all, "no update was made twice");
}

/// Waits until the server takes writes again, and loses none of what stands there.
async fn put_marked(store: &RedisStore) {
    for _ in 0..3_000 {
        if let Ok(Some(current)) = store.get(&key()).await {
            let next = Some(current.value.clone());
            let swap =
                store.swap(&key(), Expect::Version(current.version), next, WriteOptions::durable()).await;
            if swap.is_ok() {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!("the server does not come back")
}

/// A replica takes over: versions given out before stay below, and what had been replicated is there.
// spec: K-3
#[tokio::test]
async fn a_replica_that_takes_over_goes_on_above_all_earlier_versions() {
    let Some(mut primary) = RedisServer::start("a_replica_that_takes_over", &["--port", "0"]) else { return };
    let port = free_port();
    let (master_port, own) = (port.to_string(), free_port().to_string());
    // Replication needs TCP: the primary listens on loopback too.
    primary.restart(&["--port", &master_port, "--bind", "127.0.0.1"]);
    let store = open(&primary).await;
    let before = put(&store, Expect::Absent, "1").await;
    let mut replica = RedisServer::start("a_replica_that_takes_over", &[]).unwrap();
    replica.restart(&["--port", &own, "--bind", "127.0.0.1", "--replicaof", "127.0.0.1", &master_port]);
    // A replica serves reads; it takes no writes, and says so.
    let reader = open(&replica).await;
    let mut seen = None;
    for _ in 0..3_000 {
        seen = reader.get(&key()).await.ok().flatten();
        if seen.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(seen.unwrap().version, before);
    let refused =
        reader.swap(&key(), Expect::Version(before), None, WriteOptions::durable()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");

    primary.kill();
    let client = redis::Client::open(replica.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("REPLICAOF").arg("NO").arg("ONE").query_async(&mut connection).await.unwrap();
    let after = put(&reader, Expect::Version(before), "2").await;
    assert!(after > before);
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server that stops for a while in the middle: calls end in bounded time, and the store is used again afterwards.
// spec: A-25
#[tokio::test]
async fn after_a_server_has_hung_the_store_goes_on() {
    let Some(server) = RedisServer::start("after_a_server_has_hung", &[]) else { return };
    let store = open(&server).await;
    let before = put(&store, Expect::Absent, "1").await;
    signal(&server, "-STOP");
    let key = key();
    for _ in 0..2 {
        let swap =
            store.swap(&key, Expect::Version(before), Some(Value::new(*b"2")), WriteOptions::durable());
        let answer = tokio::time::timeout(Duration::from_secs(30), swap).await;
        assert!(answer.unwrap().is_err(), "a swap that is not acknowledged is an error");
    }
    signal(&server, "-CONT");
    // Whether the swaps came through is not known; reading tells, and the next one is sound.
    let after = put_when_up(&store, "3").await;
    assert!(after > before);
    assert_eq!(store.get(&key).await.unwrap().unwrap().version, after);
}

/// What a server that went and came back is told first gets its answer, and no tale of the time before.
// spec: K-3, A-25
#[tokio::test]
async fn the_first_call_after_a_server_came_back_is_answered() {
    let Some(mut server) = RedisServer::start("the_first_call_after", &[]) else { return };
    let (reads, writes) = (open(&server).await, open(&server).await);
    let version = put(&reads, Expect::Absent, "1").await;
    server.kill();
    for store in [&reads, &writes] {
        for _ in 0..3 {
            assert!(matches!(store.get(&key()).await, Err(StoreError::Unavailable { .. })));
        }
    }
    server.restart(&[]);
    open(&server).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let version = put(&writes, Expect::Version(version), "2").await;
    assert_eq!(reads.get(&key()).await.unwrap().unwrap().version, version);
}

/// One key is of another kind, one has no number for its version, and one has no value.
// spec: K-2
#[tokio::test]
async fn a_damaged_record_is_set_aside_and_hides_no_other() {
    let Some(server) = RedisServer::start("a_damaged_record", &[]) else { return };
    let store = open(&server).await;
    let names = ["a", "b", "c", "good"].map(|name| Key::new(&["x", name]).unwrap());
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let prefix = Prefix::new(&["x"]).unwrap();
    for round in ["scan", "get", "swap"] {
        for name in &names {
            let expect = Expect::from(store.get(name).await.unwrap().as_ref());
            let value = Some(Value::new(&b"1"[..]));
            let put = store.swap(name, expect, value, WriteOptions::durable()).await.unwrap();
            assert!(matches!(put, Swap::Done(_)), "{round}");
        }
        let [a, b, c] = ["a", "b", "c"].map(|name| format!("{{x}}:r:x/{name}"));
        let mut damage = redis::pipe();
        damage.cmd("DEL").arg(&a).ignore().cmd("SET").arg(&a).arg("text").ignore();
        damage.cmd("HSET").arg(&b).arg("v").arg("none").ignore().cmd("HDEL").arg(&c).arg("d").ignore();
        let () = damage.query_async(&mut connection).await.unwrap();
        let mut told = Vec::new();
        match round {
            "scan" => told.push(store.scan(&prefix, None, 10).await.map(drop)),
            round => {
                for name in &names[..3] {
                    told.push(match round {
                        "get" => store.get(name).await.map(drop),
                        _ => store.swap(name, Expect::Absent, None, WriteOptions::soft()).await.map(drop),
                    });
                }
            }
        }
        for told in told {
            assert!(matches!(told, Err(StoreError::Damaged { .. })), "{round}: {told:?}");
        }
        let left = store.scan(&prefix, None, 10).await.unwrap();
        assert_eq!(left.iter().map(|(key, _)| key).collect::<Vec<_>>(), [&names[3]], "{round}");
        let kept: String =
            redis::cmd("GET").arg("{x}:damaged:x/a").query_async(&mut connection).await.unwrap();
        assert_eq!(kept, "text", "{round}");
    }
}

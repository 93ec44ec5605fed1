//! Against a real server, started by the tests. Without one the tests are skipped, loudly, and fail in CI.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "test helpers, and real time")]

use async_trait::async_trait;
use failover_store::conformance::{Fixture, violations};
use failover_store::{Expect, Key, KeyValue, StoreError, Swap, Value, Version, WriteOptions};
use failover_store_redis::RedisStore;
use failover_types::{BoxFuture, Clock, Timestamp};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

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

/// A server of our own: no port, an append-only file, killed when dropped.
struct Server {
    dir: TempDir,
    child: Option<Child>,
}

impl Server {
    fn url(&self) -> String {
        format!("redis+unix://{}", self.dir.path().join("redis.sock").display())
    }

    fn start(&mut self, extra: &[&str]) {
        let dir = self.dir.path();
        let child = Command::new("redis-server")
            .args(["--port", "0", "--unixsocket", "redis.sock", "--save", "", "--dir"])
            .arg(dir)
            .args(["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"])
            .args(extra)
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        wait_for(&dir.join("redis.sock"));
    }

    /// kill -9, as a crash would.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
            let _ = std::fs::remove_file(self.dir.path().join("redis.sock"));
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    async fn store(&self, namespace: &str) -> RedisStore {
        // The socket is there a moment before the server has read its file.
        for _ in 0..100 {
            if let Ok(store) = RedisStore::connect(&self.url(), namespace, Arc::new(WallClock)).await {
                return store;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        RedisStore::connect(&self.url(), namespace, Arc::new(WallClock)).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn wait_for(path: &Path) {
    for _ in 0..500 {
        if path.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    unreachable!("the server does not start");
}

/// `None` where no server is installed: the caller returns, and CI fails.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn server(test: &str, extra: &[&str]) -> Option<Server> {
    if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
        assert!(std::env::var("CI").is_err(), "{test}: redis-server is not installed, and CI must run this");
        eprintln!("SKIPPED {test}: redis-server is not installed (Debian: apt-get install redis-server)");
        return None;
    }
    let mut server = Server { dir: tempfile::tempdir().unwrap(), child: None };
    server.start(extra);
    Some(server)
}

struct Redis {
    server: Mutex<Server>,
    namespace: AtomicU32,
}

impl Redis {
    fn namespace(&self) -> String {
        format!("test{}", self.namespace.load(Ordering::SeqCst))
    }

    async fn connect(url: String, namespace: String) -> Arc<dyn KeyValue> {
        let server =
            |url: String| async move { RedisStore::connect(&url, &namespace, Arc::new(WallClock)).await };
        Arc::new(server(url).await.unwrap())
    }
}

#[async_trait]
impl Fixture for Redis {
    async fn fresh(&self) -> Arc<dyn KeyValue> {
        self.namespace.fetch_add(1, Ordering::SeqCst);
        let url = self.server.lock().unwrap().url();
        Self::connect(url, self.namespace()).await
    }

    /// The server is killed in between: `appendfsync always` keeps what was acknowledged.
    async fn reopen(&self, store: Arc<dyn KeyValue>) -> Option<Arc<dyn KeyValue>> {
        drop(store);
        let url = {
            let mut server = self.server.lock().unwrap();
            server.kill();
            server.start(&[]);
            server.url()
        };
        for _ in 0..100 {
            if RedisStore::connect(&url, "probe", Arc::new(WallClock)).await.is_ok() {
                break;
            }
            self.pass(Duration::from_millis(20)).await;
        }
        Some(Self::connect(url, self.namespace()).await)
    }

    async fn failing(&self) -> Option<Arc<dyn KeyValue>> {
        let mut server = server("failing", &[]).unwrap();
        let store = server.store("failing").await;
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
    let Some(server) = server("the_redis_store_passes", &[]) else { return };
    let fixture = Redis { server: Mutex::new(server), namespace: AtomicU32::new(0) };
    assert_eq!(violations(&fixture).await, []);
}

// spec: K-3
#[tokio::test]
async fn what_one_replica_writes_another_reads_at_once() {
    let Some(server) = server("what_one_replica_writes_another_reads_at_once", &[]) else { return };
    let (one, other) = (server.store("x").await, server.store("x").await);
    let version = put(&one, Expect::Absent, "1").await;
    assert_eq!(other.get(&key()).await.unwrap().unwrap().version, version);
    assert!(one.warnings().is_empty(), "{:?}", one.warnings());
}

// spec: K-3, A-25
#[tokio::test]
async fn a_restarted_server_is_found_again_with_all_that_was_acknowledged() {
    let Some(mut server) = server("a_restarted_server", &[]) else { return };
    let store = server.store("x").await;
    let version = put(&store, Expect::Absent, "1").await;
    server.kill();
    let error = store.get(&key()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    server.start(&[]);
    let mut found = store.get(&key()).await;
    for _ in 0..100 {
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
    let Some(server) = server("a_server_that_hangs", &[]) else { return };
    let store = server.store("x").await;
    server.signal("-STOP");
    let answer = tokio::time::timeout(Duration::from_secs(10), store.get(&key())).await;
    server.signal("-CONT");
    let error = answer.unwrap().unwrap_err();
    assert!(error.to_string().contains("did not answer within 1 s"), "{error}");
}

// spec: K-3
#[tokio::test]
async fn numbers_lie_above_all_earlier_ones_even_when_the_counter_is_lost() {
    let Some(server) = server("numbers_lie_above_all_earlier_ones", &[]) else { return };
    let store = server.store("x").await;
    let before = put(&store, Expect::Absent, "1").await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    assert!(put(&store, Expect::Absent, "2").await > before);
}

// spec: K-3
#[tokio::test]
async fn weak_settings_are_told() {
    let Some(server) =
        server("weak_settings_are_told", &["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"])
    else {
        return;
    };
    let store = server.store("x").await;
    let warnings = store.warnings().join("\n");
    assert!(warnings.contains("`appendonly` is `no`") && warnings.contains("`allkeys-lru`"), "{warnings}");
}

// spec: A-3
#[tokio::test]
async fn a_password_is_in_no_error() {
    let clock = || Arc::new(WallClock);
    for url in ["redis://user:hunter2@127.0.0.1:1/", "redis://user:hunter2@[/", "hunter2"] {
        let error = RedisStore::connect(url, "x", clock()).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

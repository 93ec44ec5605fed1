//! The suite that every store must pass, and what is redb's own.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use async_trait::async_trait;
use failover_store::conformance::{Fixture, StillClock, violations};
use failover_store::{Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, WriteOptions};
use failover_store_redb::RedbStore;
use failover_types::{Clock, Timestamp};
use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

#[derive(Default)]
struct Redb {
    clock: Arc<StillClock>,
    dirs: Mutex<Vec<TempDir>>,
}

fn private_dir() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
}

/// Works until it is told to fail.
#[derive(Clone, Debug)]
struct Failing {
    inner: Arc<InMemoryBackend>,
    broken: Arc<AtomicBool>,
}

impl Failing {
    /// A store on a disk that can be broken.
    fn store(clock: Arc<dyn Clock>) -> (RedbStore, Arc<AtomicBool>) {
        let disk = Self { inner: Arc::new(InMemoryBackend::new()), broken: Arc::default() };
        let broken = Arc::clone(&disk.broken);
        (RedbStore::on_backend(move || disk.clone(), "a failing disk", clock).unwrap(), broken)
    }
}

impl StorageBackend for Failing {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.broken.load(Ordering::SeqCst) {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            self.inner.sync_data()
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }
}

impl Redb {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::<StillClock>::clone(&self.clock)
    }
}

#[async_trait]
impl Fixture for Redb {
    async fn fresh(&self) -> Arc<dyn KeyValue> {
        let dir = private_dir();
        let store = RedbStore::open(dir.path(), self.clock()).unwrap();
        self.dirs.lock().unwrap().push(dir);
        Arc::new(store)
    }

    async fn reopen(&self, store: Arc<dyn KeyValue>) -> Option<Arc<dyn KeyValue>> {
        drop(store);
        let dir = self.dirs.lock().unwrap().last().unwrap().path().to_owned();
        Some(Arc::new(RedbStore::open(&dir, self.clock()).unwrap()))
    }

    async fn failing(&self) -> Option<Arc<dyn KeyValue>> {
        let (store, broken) = Failing::store(self.clock());
        broken.store(true, Ordering::SeqCst);
        Some(Arc::new(store))
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&self, span: Duration) {
        self.clock.turn(span);
    }
}

// spec: K-1, K-2, K-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_redb_store_passes() {
    assert_eq!(violations(&Redb::default()).await, []);
}

/// Swaps until it is taken; a lost swap is read again.
async fn put(store: &RedbStore, key: &Key, text: &str) {
    loop {
        let found = store.get(key).await;
        if let Ok(found) = found {
            let next = Some(Value::new(text.as_bytes()));
            let swap = store.swap(key, Expect::from(found.as_ref()), next, WriteOptions::durable()).await;
            if matches!(swap, Ok(Swap::Done(_))) {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

// spec: K-2, A-25
#[tokio::test]
async fn a_disk_that_failed_is_written_to_again_and_nothing_is_lost() {
    let (store, broken) = Failing::store(Arc::new(StillClock::new()));
    let [kept, soft, late] = ["kept", "soft", "late"].map(|name| Key::new(&["k", name]).unwrap());
    put(&store, &kept, "1").await;
    broken.store(true, Ordering::SeqCst);
    let absent = Expect::Absent;
    let taken = store.swap(&soft, absent, Some(Value::new(*b"2")), WriteOptions::soft()).await;
    assert!(matches!(taken, Ok(Swap::Done(Some(_)))), "a soft write waits for no disk");
    let refused = store.swap(&late, absent, Some(Value::new(*b"3")), WriteOptions::durable()).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
    let again = store.swap(&late, absent, Some(Value::new(*b"3")), WriteOptions::durable()).await;
    assert!(matches!(again, Err(StoreError::Unavailable { .. })), "{again:?}");
    broken.store(false, Ordering::SeqCst);
    put(&store, &late, "4").await;
    for (key, text) in [(&kept, "1"), (&soft, "2"), (&late, "4")] {
        assert_eq!(store.get(key).await.unwrap().unwrap().value.as_bytes(), text.as_bytes(), "{key}");
    }
}

// spec: K-2
#[test]
fn a_second_opening_is_refused() {
    let dir = private_dir();
    let _store = RedbStore::open(dir.path(), Arc::new(StillClock::new())).unwrap();
    let error = RedbStore::open(dir.path(), Arc::new(StillClock::new())).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
}

// spec: A-3
#[test]
fn a_directory_that_others_can_reach_is_refused() {
    let dir = private_dir();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let error = RedbStore::open(dir.path(), Arc::new(StillClock::new())).unwrap_err();
    assert!(error.to_string().contains("chmod 700"), "{error}");
}

// spec: K-1
#[tokio::test]
async fn a_scan_joins_pending_and_committed_writes_in_order() {
    let dir = private_dir();
    let store = RedbStore::open(dir.path(), Arc::new(StillClock::new())).unwrap();
    let mut versions = Vec::new();
    for (name, write) in [
        ("b", WriteOptions::durable()),
        ("d", WriteOptions::durable()),
        ("f", WriteOptions::durable()),
        ("a", WriteOptions::soft()),
        ("c", WriteOptions::soft()),
        ("g", WriteOptions::soft()),
    ] {
        let key = Key::new(&["x", name]).unwrap();
        let swap = store.swap(&key, Expect::Absent, Some(Value::new(name.as_bytes())), write).await.unwrap();
        let Swap::Done(Some(version)) = swap else { unreachable!("{swap:?}") };
        versions.push((key, version));
    }
    // A pending delete hides a committed record.
    let (key, version) = versions.get(1).unwrap();
    let gone = store.swap(key, Expect::Version(*version), None, WriteOptions::soft()).await.unwrap();
    assert_eq!(gone, Swap::Done(None));
    let page = store.scan(&Prefix::everything(), None, 10).await.unwrap();
    let keys: Vec<&str> = page.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["x/a", "x/b", "x/c", "x/f", "x/g"]);
}

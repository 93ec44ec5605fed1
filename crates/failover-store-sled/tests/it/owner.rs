//! One owner, and others who reach its store through the socket.

use crate::common::{clock, create, key, open, private_dir, read, value};
use crate::conformance::FullDisk;
use async_trait::async_trait;
use failover_store::conformance::{Fixture, StillClock, violations};
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Versioned, WriteOptions,
};
use failover_store_sled::{SharedStore, SledOptions, SocketStore};
use failover_types::{Clock, Timestamp};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A guest, and the owner that it talks to.
struct Pair {
    guest: SharedStore,
    _owner: SharedStore,
}

#[async_trait]
impl KeyValue for Pair {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.guest.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        self.guest.swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.guest.scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.guest.changes(prefix).await
    }
}

#[derive(Default)]
struct Socket {
    clock: Arc<StillClock>,
    dirs: Mutex<Vec<tempfile::TempDir>>,
}

impl Socket {
    fn options(&self, dir: &Path) -> SledOptions {
        SledOptions::new(dir, Arc::<StillClock>::clone(&self.clock))
    }

    fn make_dir(&self) -> std::path::PathBuf {
        let dir = private_dir();
        let path = dir.path().to_owned();
        self.dirs.lock().unwrap().push(dir);
        path
    }
}

async fn pair(options: SledOptions) -> Arc<dyn KeyValue> {
    let owner = SharedStore::open_with(options.clone()).await.unwrap();
    let guest = SharedStore::open_with(options).await.unwrap();
    assert!(owner.owned().is_some() && guest.owned().is_none());
    Arc::new(Pair { guest, _owner: owner })
}

#[async_trait]
impl Fixture for Socket {
    async fn fresh(&self) -> Arc<dyn KeyValue> {
        pair(self.options(&self.make_dir())).await
    }

    async fn reopen(&self, store: Arc<dyn KeyValue>) -> Option<Arc<dyn KeyValue>> {
        drop(store);
        let dir = self.dirs.lock().unwrap().last().unwrap().path().to_owned();
        Some(pair(self.options(&dir)).await)
    }

    async fn failing(&self) -> Option<Arc<dyn KeyValue>> {
        let disk = Arc::new(FullDisk::default());
        let store = pair(self.options(&self.make_dir()).disk(Arc::<FullDisk>::clone(&disk))).await;
        disk.0.store(true, Ordering::SeqCst);
        Some(store)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn pass(&self, span: Duration) {
        self.clock.turn(span);
    }
}

// spec: K-1, K-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_behind_the_socket_passes() {
    assert_eq!(violations(&Socket::default()).await, []);
}

// spec: K-2, A-3
#[tokio::test]
async fn the_socket_is_its_owners_only_and_goes_with_it() {
    let dir = private_dir();
    let owner = SharedStore::open(dir.path(), clock()).await.unwrap();
    let socket = dir.path().join("owner.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    drop(owner);
    assert!(!socket.exists());
}

// spec: K-2
#[tokio::test]
async fn owner_and_guest_see_each_others_writes() {
    let dir = private_dir();
    let owner = SharedStore::open(dir.path(), clock()).await.unwrap();
    let guest = SharedStore::open(dir.path(), clock()).await.unwrap();
    create(&guest, "a", "by the guest").await;
    assert_eq!(read(&owner, "a").await.as_deref(), Some("by the guest"));
    create(&owner, "b", "by the owner").await;
    assert_eq!(read(&guest, "b").await.as_deref(), Some("by the owner"));
}

// spec: K-2
#[tokio::test]
async fn a_guest_is_told_when_its_owner_is_gone_and_finds_the_next_one() {
    let dir = private_dir();
    let owner = SharedStore::open(dir.path(), clock()).await.unwrap();
    let guest = SocketStore::connect(dir.path()).await.unwrap();
    create(&guest, "a", "1").await;
    drop(owner);
    // The task that serves the socket ends at its next turn.
    tokio::task::yield_now().await;
    let error = guest.get(&key("a")).await.unwrap_err();
    let StoreError::Unavailable { place, why } = &error else { panic!("{error}") };
    assert_eq!(place, &dir.path().display().to_string());
    assert!(why.contains(&format!("process {}", std::process::id())), "{why}");
    let _next = loop {
        // The old store is freed by the task that served it.
        match SharedStore::open(dir.path(), clock()).await {
            Ok(store) => break store,
            Err(StoreError::Locked { .. }) => tokio::task::yield_now().await,
            Err(e) => panic!("{e}"),
        }
    };
    assert_eq!(read(&guest, "a").await.as_deref(), Some("1"));
}

// spec: K-2
#[tokio::test(start_paused = true)]
async fn an_owner_that_does_not_answer_is_named_after_a_second() {
    let dir = private_dir();
    let _owner = open(dir.path());
    let _hung = UnixListener::bind(dir.path().join("owner.sock")).unwrap();
    let before = tokio::time::Instant::now();
    let error = SharedStore::open(dir.path(), clock()).await.unwrap_err();
    assert!(before.elapsed() <= Duration::from_millis(1_050), "{:?}", before.elapsed());
    let StoreError::Locked { place, holder } = &error else { panic!("{error}") };
    assert_eq!(place, &dir.path().display().to_string());
    assert!(holder.as_ref().unwrap().contains(&std::process::id().to_string()), "{holder:?}");

    let guest = SocketStore::connect(dir.path()).await.unwrap_err();
    assert!(guest.to_string().contains("did not answer within 1 s"), "{guest}");
}

// spec: K-2
#[tokio::test(start_paused = true)]
async fn an_owner_without_a_socket_is_named_after_a_second() {
    let dir = private_dir();
    let _owner = open(dir.path());
    let error = SharedStore::open(dir.path(), clock()).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { holder: Some(_), .. }), "{error}");
}

// spec: K-2
#[tokio::test]
async fn junk_on_the_socket_harms_nobody() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let dir = private_dir();
    let owner = SharedStore::open(dir.path(), clock()).await.unwrap();
    for junk in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x02{}", b"\0\0\0\x09{\"a\"", &[0xff; 64]] {
        let mut stream = tokio::net::UnixStream::connect(dir.path().join("owner.sock")).await.unwrap();
        // The owner may hang up on us before all is written or read.
        let mut reply = Vec::new();
        let _ = stream.write_all(junk).await;
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut reply).await;
        assert!(reply.is_empty() || String::from_utf8_lossy(&reply).contains("BadRequest"), "{reply:?}");
    }
    let guest = SharedStore::open(dir.path(), clock()).await.unwrap();
    let swap = guest.swap(&key("a"), Expect::Absent, Some(value("1")), WriteOptions::soft()).await.unwrap();
    assert!(matches!(swap, Swap::Done(Some(_))));
    assert_eq!(read(&owner, "a").await.as_deref(), Some("1"));
}

// spec: K-2, A-25
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_takes_the_place_of_an_owner_that_has_gone() {
    let dir = private_dir();
    let owner = SharedStore::open(dir.path(), clock()).await.unwrap();
    let (first, second) = (
        SharedStore::open(dir.path(), clock()).await.unwrap(),
        SharedStore::open(dir.path(), clock()).await.unwrap(),
    );
    create(&first, "a", "1").await;
    drop(owner);
    // Both ask at once: one becomes the owner, the other finds it.
    let (one, other) = tokio::join!(settled(&first, "a"), settled(&second, "a"));
    assert_eq!((one.as_deref(), other.as_deref()), (Some("1"), Some("1")));
    assert!(first.owned().is_some() != second.owned().is_some(), "{first:?}, {second:?}");
    create(&first, "b", "2").await;
    create(&second, "c", "3").await;
    assert_eq!(read(&first, "c").await.as_deref(), Some("3"));
    assert_eq!(read(&second, "b").await.as_deref(), Some("2"));
}

/// Reads until somebody answers: a dropped owner frees the directory a little later.
async fn settled(store: &SharedStore, name: &str) -> Option<String> {
    for _ in 0..200 {
        match store.get(&key(name)).await {
            Ok(found) => {
                return found.map(|found| String::from_utf8_lossy(found.value.as_bytes()).into_owned());
            }
            Err(StoreError::Unavailable { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("nobody answers")
}

/// A real owner, killed with -9 while its guest works.
// spec: K-2, A-25
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_goes_on_when_its_owner_is_killed() {
    let dir = private_dir();
    let mut owner = crate::crash::Owner::start(dir.path());
    let guest = loop {
        let guest = SharedStore::open(dir.path(), clock()).await.unwrap();
        // This process must not be the one that owns it.
        if guest.owned().is_none() {
            break guest;
        }
        drop(guest);
        tokio::task::yield_now().await;
    };
    create(&guest, "before", "1").await;
    owner.kill();
    assert_eq!(settled(&guest, "before").await.as_deref(), Some("1"), "what was acknowledged is there");
    assert!(guest.owned().is_some(), "{guest:?}");
    create(&guest, "after", "2").await;
    let next = SharedStore::open(dir.path(), clock()).await.unwrap();
    assert_eq!(read(&next, "after").await.as_deref(), Some("2"));
}

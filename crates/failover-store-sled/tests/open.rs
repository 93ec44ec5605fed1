//! Opening and reopening a state directory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_store::{Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Version, WriteOptions};
use failover_store_sled::{SledOptions, SledStore};
use failover_types::{BoxFuture, Clock, Timestamp};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
struct Manual(AtomicU64);

impl Clock for Manual {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, _at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

fn key(name: &str) -> Key {
    Key::new(&["session", name]).unwrap()
}

fn value(text: &str) -> Value {
    Value::new(text.as_bytes())
}

fn private_dir() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
}

fn open(dir: &Path) -> SledStore {
    SledStore::open(dir, Arc::new(Manual::default())).unwrap()
}

fn done(swap: Swap) -> Option<Version> {
    match swap {
        Swap::Done(version) => version,
        Swap::Lost(current) => panic!("lost to {current:?}"),
    }
}

// spec: K-1, K-2
#[tokio::test]
async fn what_was_written_is_there_after_reopening_and_versions_never_come_back() {
    let dir = private_dir();
    let store = open(dir.path());
    let first =
        done(store.swap(&key("a"), Expect::Absent, Some(value("1")), WriteOptions::durable()).await.unwrap());
    let soft =
        done(store.swap(&key("b"), Expect::Absent, Some(value("2")), WriteOptions::soft()).await.unwrap());
    done(
        store.swap(&key("a"), Expect::Version(first.unwrap()), None, WriteOptions::durable()).await.unwrap(),
    );
    drop(store);

    let store = open(dir.path());
    assert_eq!(store.get(&key("a")).await.unwrap(), None);
    assert_eq!(store.get(&key("b")).await.unwrap().map(|found| found.version), soft);
    let again =
        done(store.swap(&key("a"), Expect::Absent, Some(value("3")), WriteOptions::durable()).await.unwrap());
    assert!(again > soft && soft > first);
    let all = store.scan(&Prefix::everything(), None, 10).await.unwrap();
    assert_eq!(all.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["session/a", "session/b"]);
}

// spec: K-2
#[test]
fn a_second_owner_is_refused_and_told_who_holds_the_directory() {
    let dir = private_dir();
    let _store = open(dir.path());
    let error = SledStore::open(dir.path(), Arc::new(Manual::default())).unwrap_err();
    let StoreError::Locked { place, holder } = &error else { panic!("{error}") };
    assert_eq!(place, &dir.path().display().to_string());
    assert!(holder.as_ref().unwrap().contains(&std::process::id().to_string()), "{holder:?}");
}

// spec: A-3
#[test]
fn a_directory_that_others_can_reach_is_refused_unless_forced() {
    let dir = private_dir();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o750)).unwrap();
    let error = SledStore::open(dir.path(), Arc::new(Manual::default())).unwrap_err();
    let StoreError::Refused { why, .. } = &error else { panic!("{error}") };
    assert!(why.contains("mode 750") && why.contains("chmod 700"), "{why}");
    let forced = SledOptions::new(dir.path(), Arc::new(Manual::default())).force(true).open();
    assert!(forced.is_ok());
}

// spec: A-3
#[test]
fn every_file_is_readable_by_its_owner_only() {
    let dir = private_dir();
    drop(open(dir.path()));
    let store = open(dir.path());
    let mut seen = 0;
    let mut todo = vec![dir.path().to_owned()];
    while let Some(path) = todo.pop() {
        for entry in std::fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.path());
            seen += 1;
            if entry.metadata().unwrap().is_dir() {
                todo.push(entry.path());
            }
        }
    }
    drop(store);
    assert!(seen >= 5, "only {seen} files looked at");
}

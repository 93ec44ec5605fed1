//! Opening and reopening a state directory.

use crate::common::{clock, create, key, open, private_dir, put, read};
use failover_store::{Expect, KeyValue, Prefix, StoreError, WriteOptions};
use failover_store_sled::{SledOptions, SledStore};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

// spec: K-1, K-2
#[tokio::test]
async fn what_was_written_is_there_after_reopening_and_versions_never_come_back() {
    let dir = private_dir();
    let store = open(dir.path());
    let first = create(&store, "a", "1").await;
    let soft = put(&store, "b", Expect::Absent, Some("2"), WriteOptions::soft()).await.unwrap();
    put(&store, "a", Expect::Version(first), None, WriteOptions::durable()).await;
    drop(store);

    let store = open(dir.path());
    assert_eq!(read(&store, "a").await, None);
    assert_eq!(store.get(&key("b")).await.unwrap().map(|found| found.version), Some(soft));
    let again = create(&store, "a", "3").await;
    assert!(again > soft && soft > first);
    let all = store.scan(&Prefix::everything(), None, 10).await.unwrap();
    assert_eq!(all.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["session/a", "session/b"]);
}

// spec: K-2
#[test]
fn a_second_owner_is_refused_and_told_who_holds_the_directory() {
    let dir = private_dir();
    let _store = open(dir.path());
    let error = SledStore::open(dir.path(), clock()).unwrap_err();
    let StoreError::Locked { place, holder } = &error else { panic!("{error}") };
    assert_eq!(place, &dir.path().display().to_string());
    assert!(holder.as_ref().unwrap().contains(&std::process::id().to_string()), "{holder:?}");
}

// spec: A-3
#[test]
fn a_directory_that_others_can_reach_is_refused_unless_forced() {
    let dir = private_dir();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o750)).unwrap();
    let error = SledStore::open(dir.path(), clock()).unwrap_err();
    let StoreError::Refused { why, .. } = &error else { panic!("{error}") };
    assert!(why.contains("mode 750") && why.contains("chmod 700"), "{why}");
    assert!(SledOptions::new(dir.path(), clock()).force(true).open().is_ok());
}

// spec: A-3
#[test]
fn a_data_file_that_others_can_read_is_refused() {
    let dir = private_dir();
    drop(open(dir.path()));
    std::fs::set_permissions(dir.path().join("sled/db"), Permissions::from_mode(0o644)).unwrap();
    let error = SledStore::open(dir.path(), clock()).unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

// spec: A-3
#[test]
fn every_file_is_readable_by_its_owner_only() {
    let dir = private_dir();
    drop(open(dir.path()));
    let _store = open(dir.path());
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
    assert!(seen >= 5, "only {seen} files looked at");
}

// spec: K-5
#[tokio::test]
async fn space_stays_bounded_over_many_overwrites() {
    let dir = private_dir();
    let store = open(dir.path());
    let mut versions = vec![None; 100];
    for step in 0..60_000_usize {
        let slot = versions.get_mut(step % 100).unwrap();
        let expect = slot.map_or(Expect::Absent, Expect::Version);
        let text = format!("{step:0>200}");
        *slot = put(&store, &(step % 100).to_string(), expect, Some(&text), WriteOptions::soft()).await;
    }
    // 12 MB were written over 20 kB: some segments of 4 MB are all that may be left of it.
    let health = store.health().unwrap();
    assert_eq!(health.live, 100);
    assert!(health.bytes <= 48 * 1024 * 1024, "{} bytes", health.bytes);
}

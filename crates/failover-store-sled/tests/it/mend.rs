//! A disk that fails for a while: the store says so, and is used again once it has healed, without being reopened.

#![expect(clippy::disallowed_methods, reason = "real outages last for real time")]

use crate::common::{clock, create, key, open, private_dir, put, read, value};
use crate::conformance::FullDisk;
use failover_store::{Expect, KeyValue, StoreError, Swap, Version, WriteOptions};
use failover_store_sled::{SharedStore, SledOptions, SledStore};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Far above the second in which a healed store is found out.
const PATIENCE: Duration = Duration::from_mins(2);

/// Writes again and again until it is taken.
async fn write_when_healed(store: &dyn KeyValue, name: &str, text: &str) -> Version {
    let begun = Instant::now();
    loop {
        let current = store.get(&key(name)).await.ok().flatten();
        let write = WriteOptions::durable();
        match store.swap(&key(name), Expect::from(current.as_ref()), Some(value(text)), write).await {
            Ok(Swap::Done(Some(version))) => return version,
            Ok(swap) => panic!("{swap:?}"),
            Err(error) => assert!(begun.elapsed() < PATIENCE, "never healed: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn refused(store: &dyn KeyValue, name: &str) -> String {
    let swap = store.swap(&key(name), Expect::Absent, Some(value("x")), WriteOptions::durable()).await;
    let error = swap.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    error.to_string()
}

// spec: A-25, K-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_was_full_is_written_to_again_and_nothing_is_lost() {
    let dir = private_dir();
    let disk = Arc::new(FullDisk::default());
    let store = SledOptions::new(dir.path(), clock()).disk(Arc::<FullDisk>::clone(&disk)).open().unwrap();
    let mut last = Version(0);
    for round in 0..3 {
        let name = |what: &str| format!("{what}{round}");
        last = last.max(create(&store, &name("durable"), "1").await);
        put(&store, &name("soft"), Expect::Absent, Some("1"), WriteOptions::soft()).await;
        disk.0.store(true, Ordering::SeqCst);
        let said = refused(&store, &name("refused")).await;
        assert!(said.contains("did not take a write") && said.contains("tried again"), "{said}");
        // While it is broken it can be read, and each write is told why it is not taken.
        for _ in 0..5 {
            assert_eq!(read(&store, &name("durable")).await.as_deref(), Some("1"));
            let soft = store.swap(&key("any"), Expect::Absent, Some(value("x")), WriteOptions::soft()).await;
            assert!(soft.unwrap_err().to_string().contains("tried again"));
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        disk.0.store(false, Ordering::SeqCst);
        let version = write_when_healed(&store, &name("healed"), "1").await;
        assert!(version > last, "versions never come back");
        last = version;
    }
    drop(store);
    let store = open(dir.path());
    for round in 0..3 {
        for what in ["durable", "soft", "healed"] {
            assert_eq!(read(&store, &format!("{what}{round}")).await.as_deref(), Some("1"), "{what}{round}");
        }
    }
    assert!(store.health().unwrap().damaged.is_empty());
}

/// Writers go on through several outages: every swap that was acknowledged stands, and none was done twice.
// spec: A-25, K-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_go_on_through_outages_lose_nothing_that_was_acknowledged() {
    let dir = private_dir();
    let disk = Arc::new(FullDisk::default());
    let store = SledOptions::new(dir.path(), clock()).disk(Arc::<FullDisk>::clone(&disk)).open().unwrap();
    let write = |store: SledStore, writer: usize| async move {
        let mut acked = Vec::new();
        for step in 0..200 {
            let name = format!("{writer}-{step}");
            let swap =
                store.swap(&key(&name), Expect::Absent, Some(value("x")), WriteOptions::durable()).await;
            match swap {
                Ok(Swap::Done(Some(_))) => acked.push(name),
                Ok(swap) => panic!("{swap:?}"),
                Err(StoreError::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
                Err(error) => panic!("{error:?}"),
            }
        }
        acked
    };
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        writers.spawn(write(store.clone(), writer));
    }
    let mut outages = 0;
    let mut acked = Vec::new();
    while !writers.is_empty() {
        disk.0.store(true, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(30)).await;
        disk.0.store(false, Ordering::SeqCst);
        outages += 1;
        write_when_healed(&store, &format!("after{outages}"), "1").await;
        while let Some(ended) = writers.try_join_next() {
            acked.extend(ended.unwrap());
        }
    }
    assert!(!acked.is_empty());
    drop(store);
    let store = open(dir.path());
    for name in &acked {
        assert_eq!(read(&store, name).await.as_deref(), Some("x"), "{name} was acknowledged");
    }
}

// spec: A-25, K-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_sees_its_owner_break_and_heal() {
    let dir = private_dir();
    let disk = Arc::new(FullDisk::default());
    let options = SledOptions::new(dir.path(), clock()).disk(Arc::<FullDisk>::clone(&disk));
    let owner = SharedStore::open_with(options.clone()).await.unwrap();
    let guest = SharedStore::open_with(options).await.unwrap();
    create(&guest, "a", "1").await;
    disk.0.store(true, Ordering::SeqCst);
    assert!(refused(&guest, "b").await.contains("did not take a write"));
    disk.0.store(false, Ordering::SeqCst);
    write_when_healed(&guest, "c", "1").await;
    assert_eq!(read(&owner, "c").await.as_deref(), Some("1"));
}

//! What several test files share.

use failover_store::conformance::StillClock;
use failover_store::{Expect, Key, KeyValue, Swap, Value, Version, WriteOptions};
use failover_store_sled::SledStore;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn clock() -> Arc<StillClock> {
    Arc::new(StillClock::new())
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(&["session", name]).unwrap()
}

pub(crate) fn value(text: &str) -> Value {
    Value::new(text.as_bytes())
}

pub(crate) fn private_dir() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
}

pub(crate) fn open(dir: &Path) -> SledStore {
    SledStore::open(dir, clock()).unwrap()
}

/// A swap that must be won.
pub(crate) async fn put(
    store: &dyn KeyValue,
    name: &str,
    expect: Expect,
    next: Option<&str>,
    write: WriteOptions,
) -> Option<Version> {
    match store.swap(&key(name), expect, next.map(value), write).await.unwrap() {
        Swap::Done(version) => version,
        Swap::Lost(current) => panic!("lost to {current:?}"),
    }
}

pub(crate) async fn create(store: &dyn KeyValue, name: &str, text: &str) -> Version {
    put(store, name, Expect::Absent, Some(text), WriteOptions::durable()).await.unwrap()
}

pub(crate) async fn read(store: &dyn KeyValue, name: &str) -> Option<String> {
    let found = store.get(&key(name)).await.unwrap()?;
    Some(String::from_utf8(found.value.as_bytes().to_vec()).unwrap())
}

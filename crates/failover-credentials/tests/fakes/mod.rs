//! A provider that accepts each refresh token once, and a store that fails on demand.

use crate::shared::{login, provider};
use async_trait::async_trait;
use failover_classify::Surface;
use failover_provider::{AttemptFailure, RefreshError, TokenRefresher};
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Versioned, WriteOptions,
};
use failover_types::{OAuth, Timestamp};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Takes each refresh token once.
pub(crate) struct Upstream {
    /// The generation whose refresh token is good, and the calls so far.
    state: Mutex<(u64, Vec<String>)>,
    /// What the next calls answer instead.
    fails: Mutex<Vec<u16>>,
    /// One permit per call that may be answered.
    pub(crate) gate: Semaphore,
}

impl Upstream {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), fails: Mutex::default(), gate: Semaphore::new(1_000) })
    }

    pub(crate) fn fail_next(&self, status: u16) {
        self.fails.lock().unwrap().push(status);
    }

    /// Somebody else spends the good token.
    pub(crate) fn spend_elsewhere(&self) -> u64 {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        state.0
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.lock().unwrap().1.len()
    }
}

#[async_trait]
impl TokenRefresher for Upstream {
    async fn refresh(&self, current: &OAuth, now: Timestamp) -> Result<OAuth, RefreshError> {
        self.gate.acquire().await.unwrap().forget();
        let failure = AttemptFailure::new(provider(), Surface::Http);
        let mut state = self.state.lock().unwrap();
        state.1.push(current.refresh.expose().to_owned());
        if let Some(status) = self.fails.lock().unwrap().pop() {
            return Err(failure.with_status(status).into());
        }
        if current.refresh.expose() != format!("refresh-{}", state.0) {
            return Err(failure.with_status(400).into());
        }
        state.0 += 1;
        Ok(login(state.0, now.after(Duration::from_hours(1))))
    }
}

/// A store whose writes of credentials fail while `broken` is set.
pub(crate) struct Breakable<S> {
    pub(crate) store: S,
    pub(crate) broken: AtomicBool,
}

#[async_trait]
impl<S: KeyValue> KeyValue for Breakable<S> {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.store.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        if self.broken.load(Ordering::SeqCst) && key.as_str().contains("/credential/") {
            return Err(StoreError::Unavailable { place: "test".into(), why: "the disk is full".into() });
        }
        self.store.swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.store.scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.store.changes(prefix).await
    }
}

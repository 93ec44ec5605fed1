//! Many failures of one profile at a time.

use crate::common::{T0, model, policy};
use crate::driver::{ClientError, classifier, run_spec, status};
use async_trait::async_trait;
use failover_auth::{UsageStats, profile_usage_key};
use failover_runner::Runner;
use failover_runner::health::Subject;
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, MemoryStore, Prefix, StoreError, Swap, Value, Versioned,
    WriteOptions,
};
use failover_testkit::ManualClock;
use failover_types::{AgentId, Clock, ProfileId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Barrier;

const FAILURES: usize = 10_000;

/// Counts the swaps of one key.
struct Counting {
    store: MemoryStore,
    key: Key,
    swaps: AtomicUsize,
}

#[async_trait]
impl KeyValue for Counting {
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
        if *key == self.key {
            self.swaps.fetch_add(1, Ordering::Relaxed);
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

// spec
#[tokio::test]
async fn ten_thousand_failures_in_one_second_are_one_rung_and_one_write() {
    let clock = Arc::new(ManualClock::new(T0));
    let profile: ProfileId = "a:default".parse().unwrap();
    let store = Arc::new(Counting {
        store: MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>),
        key: profile_usage_key(&AgentId::main(), &profile).unwrap(),
        swaps: AtomicUsize::new(0),
    });
    let runner = Runner::builder(classifier())
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .store(Arc::clone(&store) as Arc<dyn KeyValue>, AgentId::main())
        .build();
    // The gate of R-14 would let a few ask and tell the others; without it all of them fail.
    let policy = policy(|config| config.cold_start.concurrent = 0);
    let run = async |name: &str, barrier: Option<&Barrier>| {
        runner
            .start(run_spec(name, &["a/m"], &policy))
            .run(|_| async move {
                let Some(barrier) = barrier else { return Ok(()) };
                // All are under way before the first one fails.
                barrier.wait().await;
                Err::<(), ClientError>(status(429))
            })
            .await
    };
    // No stranger any more: nobody waits for anybody.
    run("first", None).await.unwrap();
    let before = store.swaps.load(Ordering::Relaxed);
    let barrier = Barrier::new(FAILURES);
    let names: Vec<String> = (0..FAILURES).map(|n| format!("r{n}")).collect();
    let runs = names.iter().map(|name| run(name, Some(&barrier)));
    let ended = futures_util::future::join_all(runs).await;
    assert!(ended.iter().all(Result::is_err), "every caller is told");
    runner.flush().await;
    assert_eq!(store.swaps.load(Ordering::Relaxed) - before, 1);
    let found = store.get(&store.key).await.unwrap().unwrap();
    let stored = UsageStats::decode(found.value.as_bytes()).unwrap();
    assert_eq!((stored.error_count(), stored.active(clock.now()).count()), (1, 1));
    assert_eq!(stored, runner.health().usage(&Subject::Profile(profile.clone())), "nothing is lost");
    let limited = runner.health().usage(&Subject::Profile(profile.clone()));
    assert!(!failover_auth::availability(&limited, Some(model("a/m").model()), clock.now()).is_usable());
    clock.advance(Duration::from_secs(31));
    run("recovery", None).await.unwrap();
    runner.flush().await;
    assert_eq!(store.swaps.load(Ordering::Relaxed) - before, 2, "and one more for the success that ends it");
}

//! What every store must pass, as one function over any of them (feature `conformance`).
//!
//! A store crate implements [`Fixture`] and asserts that [`violations`] comes back empty. The suite itself is
//! tested against deliberately broken stores in `tests/broken_stores.rs`: each flaw must be found.

mod basics;
mod feed;
pub mod kill;
mod races;
mod scans;
mod time;

use crate::{Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Version, WriteOptions};
use async_trait::async_trait;
use failover_types::{BoxFuture, Clock, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How the suite gets at the stores under test.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// An empty store.
    async fn fresh(&self) -> Arc<dyn KeyValue>;

    /// Closes `store`, the last handle of it, and opens the same data again; `None` where nothing outlives a
    /// store, and then the suite skips what needs it.
    async fn reopen(&self, store: Arc<dyn KeyValue>) -> Option<Arc<dyn KeyValue>>;

    /// A store whose medium fails from now on: a full disk, a lost connection. `None` where nothing can fail.
    async fn failing(&self) -> Option<Arc<dyn KeyValue>>;

    /// The time that the stores go by.
    fn now(&self) -> Timestamp;

    /// Lets time pass: turns a manual clock, or really waits.
    async fn pass(&self, span: Duration);
}

/// One case that a store did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Which case.
    pub case: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.what)
    }
}

/// Runs all cases, one after the other, each on a fresh store. Needs a tokio runtime; the races are real only on
/// one with several threads.
pub async fn violations(fixture: &dyn Fixture) -> Vec<Violation> {
    let mut found = Vec::new();
    for (case, run) in CASES {
        if let Err(Fault(what)) = run(fixture).await {
            found.push(Violation { case, what });
        }
    }
    found
}

type Case = for<'a> fn(&'a dyn Fixture) -> BoxFuture<'a, Check>;

macro_rules! cases {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), |fixture| Box::pin($module::$name(fixture)))),*]
    };
}

const CASES: &[(&str, Case)] = cases![
    basics::a_value_is_created_replaced_and_deleted,
    basics::a_stale_swap_is_lost_and_changes_nothing,
    basics::versions_never_come_back,
    basics::versions_never_come_back_after_reopening,
    basics::values_of_every_size_come_back_whole,
    basics::acknowledged_writes_outlive_the_store,
    basics::a_failing_medium_is_an_error,
    races::of_many_creators_one_wins,
    races::no_swap_is_lost_among_racing_writers,
    races::no_reader_sees_a_torn_value,
    scans::scans_are_complete_and_in_byte_order,
    scans::pages_join_to_the_whole,
    scans::a_prefix_keeps_to_its_subtree,
    time::a_lapsed_value_counts_as_absent,
    time::a_swap_sets_the_expiry_anew,
    feed::a_feed_tells_of_changes_below_its_prefix,
    feed::a_lost_swap_is_no_change,
    feed::nobody_waits_for_a_slow_reader,
];

/// Why a case failed.
struct Fault(String);

impl<E: std::error::Error> From<E> for Fault {
    fn from(error: E) -> Self {
        Self(format!("an unexpected error: {error}"))
    }
}

type Check = Result<(), Fault>;

macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err($crate::conformance::Fault(format!($($what)+)));
        }
    };
}
use ensure;

fn key(segments: &[&str]) -> Result<Key, Fault> {
    Ok(Key::new(segments)?)
}

fn value(text: &str) -> Value {
    Value::new(text.as_bytes())
}

/// A swap that must be won and leave a value.
async fn put(store: &dyn KeyValue, key: &Key, expect: Expect, text: &str) -> Result<Version, Fault> {
    match store.swap(key, expect, Some(value(text)), WriteOptions::durable()).await? {
        Swap::Done(Some(version)) => Ok(version),
        other @ (Swap::Done(None) | Swap::Lost(_)) => Err(Fault(format!(
            "writing {key} over {expect:?} should be done with a version, and is {other:?}"
        ))),
    }
}

/// A delete that must be won.
async fn delete(store: &dyn KeyValue, key: &Key, version: Version) -> Check {
    let swap = store.swap(key, Expect::Version(version), None, WriteOptions::durable()).await?;
    ensure!(swap == Swap::Done(None), "deleting {key} should be done, and is {swap:?}");
    Ok(())
}

/// What a reader sees at `key`, as text.
async fn text(store: &dyn KeyValue, key: &Key) -> Result<Option<String>, StoreError> {
    let found = store.get(key).await?;
    Ok(found.map(|found| String::from_utf8_lossy(found.value.as_bytes()).into_owned()))
}

async fn keys_below(store: &dyn KeyValue, prefix: &Prefix) -> Result<Vec<String>, StoreError> {
    let page = store.scan(prefix, None, usize::MAX).await?;
    Ok(page.into_iter().map(|(key, _)| key.to_string()).collect())
}

/// A clock that stands still until it is turned. Begins a day after the epoch, so that earlier times exist.
#[derive(Debug)]
pub struct StillClock(AtomicU64);

impl StillClock {
    /// A clock at its first moment.
    pub fn new() -> Self {
        Self(AtomicU64::new(86_400_000))
    }

    /// Turns the clock forward.
    pub fn turn(&self, span: Duration) {
        let ms = failover_types::millis(span);
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Default for StillClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, _at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

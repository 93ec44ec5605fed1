//! Typed tables as their users see them.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use async_trait::async_trait;
use failover_store::{
    ChangeStream, Edit, Expect, Key, KeyValue, MemoryStore, Prefix, Row, StoreError, Stored, Swap, Table,
    Value, Version, Versioned, WriteOptions,
};
use failover_types::{BoxFuture, Clock, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Version 2 of a row: version 1 called the count `n`, and version 0 had no way up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Counter {
    count: u32,
}

impl Row for Counter {
    const SCHEMA: u32 = 2;

    fn upgrade(from: u32, mut old: serde_json::Value) -> Result<serde_json::Value, String> {
        if from != 1 {
            return Err(format!("version {from} is too old"));
        }
        let count = old.get_mut("n").map(serde_json::Value::take);
        Ok(serde_json::json!({ "count": count }))
    }
}

#[derive(Default)]
struct Still(AtomicU64);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, _at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

fn table() -> Table<Counter> {
    Table::new(Arc::new(MemoryStore::new(Arc::new(Still::default()))))
}

fn key(name: &str) -> Key {
    Key::new(&["count", name]).unwrap()
}

async fn raw(table: &Table<Counter>, name: &str, json: &str) {
    let value = Some(Value::new(json.as_bytes()));
    let swap = table.store().swap(&key(name), Expect::Absent, value, WriteOptions::soft()).await.unwrap();
    assert!(matches!(swap, Swap::Done(Some(_))));
}

async fn text(table: &Table<Counter>, name: &str) -> String {
    let found = table.store().get(&key(name)).await.unwrap().unwrap();
    String::from_utf8(found.value.as_bytes().to_vec()).unwrap()
}

fn one_more(row: Option<&Counter>) -> Edit<Counter> {
    Edit::Put(Counter { count: row.map_or(0, |row| row.count) + 1 })
}

// spec: K-4
#[tokio::test]
async fn rows_are_json_under_a_schema_version() {
    let table = table();
    let written = table.update(&key("a"), WriteOptions::durable(), one_more).await.unwrap();
    assert_eq!(text(&table, "a").await, r#"{"schema":2,"row":{"count":1}}"#);
    assert_eq!(table.read(&key("a")).await.unwrap(), written);
    let kept = table.update(&key("a"), WriteOptions::durable(), |_| Edit::Keep).await.unwrap();
    assert_eq!(kept, written);
    assert_eq!(table.update(&key("a"), WriteOptions::durable(), |_| Edit::Delete).await.unwrap(), None);
    assert_eq!(table.read(&key("a")).await.unwrap(), None);
}

// spec: K-4
#[tokio::test]
async fn an_older_row_is_read_and_written_anew_by_the_next_update() {
    let table = table();
    raw(&table, "old", r#"{"schema":1,"row":{"n":41}}"#).await;
    assert_eq!(table.read(&key("old")).await.unwrap().unwrap().row, Counter { count: 41 });
    assert!(text(&table, "old").await.contains("\"schema\":1"));
    table.update(&key("old"), WriteOptions::soft(), one_more).await.unwrap();
    assert_eq!(text(&table, "old").await, r#"{"schema":2,"row":{"count":42}}"#);
}

// spec: K-4
#[tokio::test]
async fn a_newer_row_is_refused_and_never_rewritten() {
    let table = table();
    let json = r#"{"schema":3,"row":{"tally":1}}"#;
    raw(&table, "new", json).await;
    for error in [
        table.read(&key("new")).await.unwrap_err(),
        table.update(&key("new"), WriteOptions::soft(), one_more).await.unwrap_err(),
        table.update(&key("new"), WriteOptions::soft(), |_| Edit::Delete).await.unwrap_err(),
    ] {
        let StoreError::Newer { found: 3, known: 2, .. } = error else { panic!("{error}") };
    }
    assert_eq!(text(&table, "new").await, json);
}

// spec: K-4
#[test_case::test_case("no json"; "no json")]
#[test_case::test_case(r#"{"schema":2,"row":{"count":"sk-secret"}}"#; "wrong type")]
#[test_case::test_case(r#"{"schema":0,"row":{}}"#; "no way up")]
#[test_case::test_case(r#"{"schema":1,"row":{}}"#; "upgraded to something else")]
#[tokio::test]
async fn an_unreadable_row_is_an_error_that_tells_no_value_and_stays(json: &str) {
    let table = table();
    raw(&table, "bad", json).await;
    let error = table.update(&key("bad"), WriteOptions::soft(), one_more).await.unwrap_err();
    assert!(matches!(error, StoreError::Misfit { .. }), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert_eq!(text(&table, "bad").await, json);
}

// spec: K-1, K-4
#[tokio::test]
async fn one_bad_row_does_not_hide_the_others() {
    let table = table();
    table.update(&key("a"), WriteOptions::soft(), one_more).await.unwrap();
    raw(&table, "b", "{").await;
    table.update(&key("c"), WriteOptions::soft(), one_more).await.unwrap();
    let page = table.page(&Prefix::new(&["count"]).unwrap(), None, 10).await.unwrap();
    let good: Vec<bool> = page.iter().map(|(_, row)| row.is_ok()).collect();
    assert_eq!(good, [true, false, true]);
}

/// Loses every swap to a writer that is always faster.
struct Busy {
    swaps: AtomicU32,
    wins_after: u32,
}

fn faster(count: u32) -> Versioned {
    let json = format!(r#"{{"schema":2,"row":{{"count":{count}}}}}"#);
    Versioned { version: Version(u64::from(count)), value: Value::new(json.into_bytes()) }
}

#[async_trait]
impl KeyValue for Busy {
    async fn get(&self, _key: &Key) -> Result<Option<Versioned>, StoreError> {
        Ok(None)
    }

    async fn swap(
        &self,
        _key: &Key,
        _expect: Expect,
        _next: Option<Value>,
        _write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        let tried = self.swaps.fetch_add(1, Ordering::SeqCst) + 1;
        let won = tried > self.wins_after;
        Ok(if won { Swap::Done(Some(Version(u64::MAX))) } else { Swap::Lost(Some(faster(tried))) })
    }

    async fn scan(
        &self,
        _prefix: &Prefix,
        _after: Option<&Key>,
        _limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        Ok(Vec::new())
    }

    async fn changes(&self, _prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        Ok(None)
    }
}

// spec: K-1
#[tokio::test]
async fn a_lost_update_decides_again_on_what_stands() {
    let table = Table::<Counter>::new(Arc::new(Busy { swaps: AtomicU32::new(0), wins_after: 3 }));
    let mut seen = Vec::new();
    let Stored { row, .. } = table
        .update(&key("a"), WriteOptions::soft(), |row| {
            seen.push(row.map(|row| row.count));
            one_more(row)
        })
        .await
        .unwrap()
        .unwrap();
    assert_eq!(seen, [None, Some(1), Some(2), Some(3)]);
    assert_eq!(row.count, 4);
}

// spec: K-1
#[tokio::test]
async fn an_update_that_never_wins_ends_with_an_error() {
    let busy = Arc::new(Busy { swaps: AtomicU32::new(0), wins_after: u32::MAX });
    let table = Table::<Counter>::new(Arc::<Busy>::clone(&busy));
    let error = table.update(&key("a"), WriteOptions::soft(), one_more).await.unwrap_err();
    assert!(matches!(error, StoreError::Contended { attempts: 128, .. }), "{error}");
    assert_eq!(busy.swaps.load(Ordering::SeqCst), 128);
}

//! One writer: what a swap does, and what it leaves alone.

use super::{Check, Fault, Fixture, delete, ensure, key, put, text, value};
use crate::{Expect, MAX_VALUE_BYTES, StoreError, Swap, Value, Version, WriteOptions};
use std::collections::BTreeSet;

pub(super) async fn a_value_is_created_replaced_and_deleted(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let key = key(&["a", "b"])?;
    ensure!(store.get(&key).await?.is_none(), "a fresh store holds a value");
    let first = put(&*store, &key, Expect::Absent, "1").await?;
    let second = put(&*store, &key, Expect::Version(first), "2").await?;
    let found = store.get(&key).await?;
    ensure!(
        found.as_ref().is_some_and(|found| found.version == second && found.value == value("2")),
        "after a swap to 2, a read gives {found:?}"
    );
    delete(&*store, &key, second).await?;
    ensure!(store.get(&key).await?.is_none(), "a deleted value is still read");
    let nothing = store.swap(&key, Expect::Absent, None, WriteOptions::durable()).await?;
    ensure!(nothing == Swap::Done(None), "deleting nothing should be done, and is {nothing:?}");
    Ok(())
}

pub(super) async fn a_stale_swap_is_lost_and_changes_nothing(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let key = key(&["a"])?;
    let never = Version(u64::MAX / 4);
    for next in [Some(value("x")), None] {
        let swap = store.swap(&key, Expect::Version(never), next, WriteOptions::durable()).await?;
        ensure!(
            swap == Swap::Lost(None),
            "replacing an absent value should be lost to nothing, and is {swap:?}"
        );
    }
    let first = put(&*store, &key, Expect::Absent, "1").await?;
    let second = put(&*store, &key, Expect::Version(first), "2").await?;
    for expect in [Expect::Absent, Expect::Version(first), Expect::Version(never)] {
        for next in [Some(value("x")), None] {
            let swap = store.swap(&key, expect, next, WriteOptions::durable()).await?;
            let told = matches!(&swap, Swap::Lost(Some(current))
                if current.version == second && current.value == value("2"));
            ensure!(told, "a swap that expects {expect:?} should be lost to 2, and is {swap:?}");
        }
    }
    let stands = text(&*store, &key).await?;
    ensure!(stands.as_deref() == Some("2"), "lost swaps changed the value to {stands:?}");
    Ok(())
}

pub(super) async fn versions_never_come_back(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let key = key(&["a"])?;
    let mut seen = BTreeSet::new();
    for round in 0..20 {
        let created = put(&*store, &key, Expect::Absent, "new").await?;
        let replaced = put(&*store, &key, Expect::Version(created), "newer").await?;
        delete(&*store, &key, replaced).await?;
        for version in [created, replaced] {
            ensure!(seen.insert(version), "{version:?} came back in round {round}");
        }
    }
    let now = put(&*store, &key, Expect::Absent, "again").await?;
    for old in seen {
        let swap = store.swap(&key, Expect::Version(old), Some(value("x")), WriteOptions::durable()).await?;
        ensure!(
            matches!(swap, Swap::Lost(Some(_))),
            "a version from before a delete still swaps: {old:?}, {now:?}"
        );
    }
    Ok(())
}

pub(super) async fn versions_never_come_back_after_reopening(fixture: &dyn Fixture) -> Check {
    let mut store = fixture.fresh().await;
    let key = key(&["a"])?;
    let mut seen = BTreeSet::new();
    for _ in 0..4 {
        for write in [WriteOptions::durable(), WriteOptions::soft()] {
            let swap = store.swap(&key, Expect::Absent, Some(value("1")), write).await?;
            let Swap::Done(Some(version)) = swap else { return Err(Fault(format!("a create is {swap:?}"))) };
            ensure!(seen.insert(version), "{version:?} came back after reopening");
            let swap = store.swap(&key, Expect::Version(version), None, write).await?;
            ensure!(swap == Swap::Done(None), "a delete is {swap:?}");
        }
        let Some(again) = fixture.reopen(store).await else { return Ok(()) };
        store = again;
    }
    Ok(())
}

pub(super) async fn values_of_every_size_come_back_whole(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let key = key(&["big"])?;
    let mut expect = Expect::Absent;
    for size in [0, 1, 255, 256, 4_095, 4_097, MAX_VALUE_BYTES] {
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(size).collect();
        let swap = store.swap(&key, expect, Some(Value::new(bytes.clone())), WriteOptions::durable()).await?;
        let Swap::Done(Some(version)) = swap else {
            return Err(Fault(format!("a value of {size} bytes is not written: {swap:?}")));
        };
        expect = Expect::Version(version);
        let whole = store.get(&key).await?.is_some_and(|found| found.value.as_bytes() == bytes);
        ensure!(whole, "a value of {size} bytes is read back as something else");
    }
    let before = store.get(&key).await?;
    let large = Value::new(vec![0; MAX_VALUE_BYTES + 1]);
    match store.swap(&key, expect, Some(large), WriteOptions::durable()).await {
        Err(StoreError::TooLarge { .. }) => {}
        other => return Err(Fault(format!("a value above the limit is answered by {other:?}"))),
    }
    ensure!(store.get(&key).await? == before, "a refused value changed what stands");
    Ok(())
}

pub(super) async fn acknowledged_writes_outlive_the_store(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let (kept, soft, gone) = (key(&["kept"])?, key(&["soft"])?, key(&["gone"])?);
    let version = put(&*store, &kept, Expect::Absent, "durable").await?;
    let swap = store.swap(&soft, Expect::Absent, Some(value("soft")), WriteOptions::soft()).await?;
    ensure!(matches!(swap, Swap::Done(Some(_))), "a soft create is {swap:?}");
    let deleted = put(&*store, &gone, Expect::Absent, "x").await?;
    delete(&*store, &gone, deleted).await?;
    let Some(store) = fixture.reopen(store).await else { return Ok(()) };
    let found = store.get(&kept).await?;
    ensure!(
        found.as_ref().is_some_and(|found| found.version == version && found.value == value("durable")),
        "a durable write reads as {found:?} after reopening"
    );
    let found = text(&*store, &soft).await?;
    ensure!(found.as_deref() == Some("soft"), "after an orderly close a soft write reads as {found:?}");
    ensure!(store.get(&gone).await?.is_none(), "a deleted value is back after reopening");
    Ok(())
}

pub(super) async fn a_failing_medium_is_an_error(fixture: &dyn Fixture) -> Check {
    let Some(store) = fixture.failing().await else { return Ok(()) };
    let key = key(&["a"])?;
    for round in 0..3 {
        let swap = store.swap(&key, Expect::Absent, Some(value("x")), WriteOptions::durable()).await;
        match swap {
            Err(error) => ensure!(!error.to_string().is_empty(), "an error says nothing"),
            Ok(swap) => {
                return Err(Fault(format!("a durable write on a failing medium is {swap:?} (try {round})")));
            }
        }
    }
    Ok(())
}

//! Expiry. Spans are long enough for a store that goes by real time, and the suite never asks at the very edge.

use super::{Check, Fixture, ensure, key, keys_below, put, text, value};
use crate::{Expect, Prefix, Swap, WriteOptions};
use std::time::Duration;

const LIFE: Duration = Duration::from_millis(300);

pub(super) async fn a_lapsed_value_counts_as_absent(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let (mortal, lasting) = (key(&["x", "mortal"])?, key(&["x", "lasting"])?);
    let kept = put(&*store, &lasting, Expect::Absent, "kept").await?;
    let until = fixture.now().after(LIFE);
    let swap = store
        .swap(&mortal, Expect::Absent, Some(value("1")), WriteOptions::durable().expiring(until))
        .await?;
    let Swap::Done(Some(version)) = swap else { return Err(super::Fault(format!("a create is {swap:?}"))) };
    let seen = text(&*store, &mortal).await?;
    ensure!(seen.as_deref() == Some("1"), "before its time a value reads as {seen:?}");

    fixture.pass(LIFE * 2).await;
    ensure!(store.get(&mortal).await?.is_none(), "a lapsed value is still read");
    let found = keys_below(&*store, &Prefix::everything()).await?;
    ensure!(found == ["x/lasting"], "a scan still gives a lapsed value: {found:?}");
    let stale =
        store.swap(&mortal, Expect::Version(version), Some(value("x")), WriteOptions::durable()).await?;
    ensure!(stale == Swap::Lost(None), "swapping a lapsed value should be lost to nothing, and is {stale:?}");
    let new = put(&*store, &mortal, Expect::Absent, "2").await?;
    ensure!(new != version && new != kept, "a version came back after an expiry: {new:?}");
    Ok(())
}

pub(super) async fn a_swap_sets_the_expiry_anew(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let key = key(&["x"])?;
    let mortal = WriteOptions::durable().expiring(fixture.now().after(LIFE));
    let swap = store.swap(&key, Expect::Absent, Some(value("1")), mortal).await?;
    let Swap::Done(Some(version)) = swap else { return Err(super::Fault(format!("a create is {swap:?}"))) };
    put(&*store, &key, Expect::Version(version), "2").await?;
    fixture.pass(LIFE * 2).await;
    let seen = text(&*store, &key).await?;
    ensure!(seen.as_deref() == Some("2"), "a value without expiry inherited one, and reads as {seen:?}");
    Ok(())
}

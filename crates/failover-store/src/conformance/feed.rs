//! The change feed, where there is one.

use super::{Check, Fault, Fixture, delete, ensure, key, put, value};
use crate::{Change, ChangeStream, Expect, Prefix, WriteOptions};
use std::future::poll_fn;
use std::time::Duration;

/// Far above what any feed needs; a feed that says nothing for so long is silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// More changes than any feed keeps for a reader that does not read.
const FLOOD: usize = 1_500;
/// Far above what so many writes take on a slow disk.
const FLOOD_PATIENCE: Duration = Duration::from_mins(2);

async fn next(feed: &mut ChangeStream) -> Result<Change, Fault> {
    match tokio::time::timeout(PATIENCE, poll_fn(|cx| feed.as_mut().poll_next(cx))).await {
        Ok(Some(change)) => Ok(change),
        Ok(None) => Err(Fault("the feed has ended while its store is open".to_owned())),
        Err(_) => Err(Fault("the feed is silent".to_owned())),
    }
}

/// Reads on until this key is told of.
async fn next_of(feed: &mut ChangeStream, name: &str) -> Result<Change, Fault> {
    loop {
        let change = next(feed).await?;
        if change.key.as_str() == name {
            return Ok(change);
        }
    }
}

pub(super) async fn a_feed_tells_of_changes_below_its_prefix(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let Some(mut feed) = store.changes(&Prefix::new(&["mine"])?).await? else { return Ok(()) };
    let (mine, other) = (key(&["mine", "a"])?, key(&["other", "a"])?);
    put(&*store, &other, Expect::Absent, "x").await?;
    let version = put(&*store, &mine, Expect::Absent, "1").await?;
    let change = next(&mut feed).await?;
    ensure!(change.key == mine, "the feed tells of {} first", change.key);
    let told = change.current.as_ref().is_some_and(|now| now.version == version && now.value == value("1"));
    ensure!(told, "the feed tells of {:?} instead of what was written", change.current);

    let version = put(&*store, &mine, Expect::Version(version), "2").await?;
    let change = next(&mut feed).await?;
    let told = change.current.as_ref().is_some_and(|now| now.version == version && now.value == value("2"));
    ensure!(told, "the feed tells of {:?} instead of what replaced it", change.current);

    delete(&*store, &mine, version).await?;
    let change = next(&mut feed).await?;
    ensure!(change.key == mine && change.current.is_none(), "the feed tells of {change:?} after a delete");
    Ok(())
}

pub(super) async fn a_lost_swap_is_no_change(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let Some(mut feed) = store.changes(&Prefix::new(&["mine"])?).await? else { return Ok(()) };
    let (stale, marker) = (key(&["mine", "a"])?, key(&["mine", "b"])?);
    put(&*store, &stale, Expect::Absent, "1").await?;
    let first = next(&mut feed).await?;
    ensure!(first.key == stale, "the feed tells of {} first", first.key);
    let swap = store.swap(&stale, Expect::Absent, Some(value("2")), WriteOptions::durable()).await?;
    ensure!(matches!(swap, crate::Swap::Lost(_)), "a stale swap should be lost, and is {swap:?}");
    put(&*store, &marker, Expect::Absent, "1").await?;
    let change = next(&mut feed).await?;
    ensure!(change.key == marker, "the feed tells of {} though nothing changed there", change.key);
    Ok(())
}

/// Whoever reads slowly misses something; nobody waits for them, and they hear of what comes later.
pub(super) async fn nobody_waits_for_a_slow_reader(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let prefix = Prefix::new(&["mine"])?;
    let (Some(mut slow), Some(gone)) = (store.changes(&prefix).await?, store.changes(&prefix).await?) else {
        return Ok(());
    };
    drop(gone);
    let flood = async {
        for number in 0..FLOOD {
            let key = key(&["mine", &number.to_string()])?;
            let swap = store.swap(&key, Expect::Absent, Some(value("x")), WriteOptions::soft()).await?;
            ensure!(matches!(swap, crate::Swap::Done(_)), "writing {key} should be done, and is {swap:?}");
        }
        Ok(())
    };
    match tokio::time::timeout(FLOOD_PATIENCE, flood).await {
        Ok(done) => done?,
        Err(_) => return Err(Fault("writers wait for a reader that does not read".to_owned())),
    }
    let version = put(&*store, &key(&["mine", "last"])?, Expect::Absent, "1").await?;
    let change = next_of(&mut slow, "mine/last").await?;
    ensure!(change.current.is_some_and(|now| now.version == version), "the feed tells of another version");
    Ok(())
}

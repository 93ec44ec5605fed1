//! The change feed, where there is one.

use super::{Check, Fault, Fixture, ensure, key, put, value};
use crate::{Expect, Prefix};
use std::future::poll_fn;
use std::time::Duration;

/// Far above what any feed needs; a feed that says nothing for so long is silent.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn a_feed_tells_of_changes_below_its_prefix(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let Some(mut feed) = store.changes(&Prefix::new(&["mine"])?).await? else { return Ok(()) };
    let (mine, other) = (key(&["mine", "a"])?, key(&["other", "a"])?);
    put(&*store, &other, Expect::Absent, "x").await?;
    let version = put(&*store, &mine, Expect::Absent, "1").await?;
    let next = tokio::time::timeout(PATIENCE, poll_fn(|cx| feed.as_mut().poll_next(cx))).await;
    let Ok(Some(change)) = next else { return Err(Fault("the feed is silent".to_owned())) };
    ensure!(change.key == mine, "the feed tells of {} first", change.key);
    let told = change.current.as_ref().is_some_and(|now| now.version == version && now.value == value("1"));
    ensure!(told, "the feed tells of {:?} instead of what was written", change.current);
    Ok(())
}

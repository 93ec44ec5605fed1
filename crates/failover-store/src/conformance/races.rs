//! Many writers at once. Sixteen, because that is where a read-then-write store begins to lose swaps surely.

use super::{Check, Fault, Fixture, ensure, key, put, value};
use crate::{Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Version, Versioned, WriteOptions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const WRITERS: usize = 16;
const ROUNDS: usize = 10;
const READERS: usize = 4;

pub(super) async fn of_many_creators_one_wins(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    for round in 0..ROUNDS {
        let key = key(&["round", &round.to_string()])?;
        let mut creators = JoinSet::new();
        let start = Arc::new(Barrier::new(WRITERS));
        for writer in 0..WRITERS {
            let (store, key, start) = (Arc::clone(&store), key.clone(), Arc::clone(&start));
            creators.spawn(async move {
                start.wait().await;
                store
                    .swap(&key, Expect::Absent, Some(value(&writer.to_string())), WriteOptions::durable())
                    .await
            });
        }
        let mut won = 0;
        while let Some(swap) = creators.join_next().await {
            match swap?? {
                Swap::Done(_) => won += 1,
                Swap::Lost(Some(_)) => {}
                Swap::Lost(None) => return Err(Fault("a create was lost to nothing".to_owned())),
            }
        }
        ensure!(won == 1, "{won} of {WRITERS} creators of one key won");
    }
    Ok(())
}

pub(super) async fn no_swap_is_lost_among_racing_writers(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let key = key(&["counter"])?;
    put(&*store, &key, Expect::Absent, "0").await?;
    let mut writers = JoinSet::new();
    let start = Arc::new(Barrier::new(WRITERS));
    for _ in 0..WRITERS {
        let (store, key, start) = (Arc::clone(&store), key.clone(), Arc::clone(&start));
        writers.spawn(async move {
            start.wait().await;
            let mut versions = Vec::new();
            for _ in 0..ROUNDS {
                versions.push(count_up(&*store, &key).await?);
            }
            Ok::<_, StoreError>(versions)
        });
    }
    let mut versions = BTreeSet::new();
    while let Some(done) = writers.join_next().await {
        for version in done?? {
            ensure!(
                version.is_some_and(|version| versions.insert(version)),
                "a step was never won, or two made the same version: {version:?}"
            );
        }
    }
    let stands = store.get(&key).await?.as_ref().map(number);
    ensure!(
        stands == Some(WRITERS * ROUNDS),
        "{} acknowledged steps counted to {stands:?}",
        WRITERS * ROUNDS
    );
    Ok(())
}

/// Tries of one step. Each lost try means that another was won, so a sound store needs far fewer; a store that
/// misreports the winner would keep a writer busy for ever.
const TRIES: usize = 50 * WRITERS * ROUNDS;

/// One step of the counter, tried until it is won; `None` if it never is.
async fn count_up(store: &dyn KeyValue, key: &Key) -> Result<Option<Version>, StoreError> {
    let mut current = store.get(key).await?;
    for _ in 0..TRIES {
        let next = current.as_ref().map_or(0, number) + 1;
        let swap = store
            .swap(key, Expect::from(current.as_ref()), Some(value(&next.to_string())), WriteOptions::soft())
            .await?;
        match swap {
            Swap::Done(version) => return Ok(version),
            Swap::Lost(stands) => current = stands,
        }
        tokio::task::yield_now().await;
    }
    Ok(None)
}

fn number(found: &Versioned) -> usize {
    std::str::from_utf8(found.value.as_bytes())
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usize::MAX / 2)
}

pub(super) async fn no_reader_sees_a_torn_value(fixture: &dyn Fixture) -> Check {
    let store = fixture.fresh().await;
    let key = key(&["whole"])?;
    let start = Arc::new(Barrier::new(1 + READERS));
    let written = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    {
        let (store, key, start) = (Arc::clone(&store), key.clone(), Arc::clone(&start));
        let written = Arc::clone(&written);
        tasks.spawn(async move {
            start.wait().await;
            let outcome = write_in_turns(&*store, &key).await;
            written.store(true, Ordering::Release);
            outcome
        });
    }
    for reader in 0..READERS {
        let (store, key, start) = (Arc::clone(&store), key.clone(), Arc::clone(&start));
        let written = Arc::clone(&written);
        tasks.spawn(async move {
            start.wait().await;
            while !written.load(Ordering::Acquire) {
                let found = if reader % 2 == 0 {
                    store.get(&key).await?
                } else {
                    let page = store.scan(&Prefix::everything(), None, 10).await?;
                    page.into_iter().next().map(|(_, found)| found)
                };
                if let Some(what) = found.as_ref().and_then(torn) {
                    return Ok(Some(what));
                }
                tokio::task::yield_now().await;
            }
            Ok(None)
        });
    }
    while let Some(seen) = tasks.join_next().await {
        if let Some(what) = seen?? {
            return Err(Fault(what));
        }
    }
    Ok(())
}

/// Each value is one byte repeated, and its length goes with the byte.
async fn write_in_turns(store: &dyn KeyValue, key: &Key) -> Result<Option<String>, StoreError> {
    let mut expect = Expect::Absent;
    for byte in b"abc".iter().cycle().take(60) {
        let next = Value::new(vec![*byte; length(*byte)]);
        match store.swap(key, expect, Some(next), WriteOptions::soft()).await? {
            Swap::Done(Some(version)) => expect = Expect::Version(version),
            other @ (Swap::Done(None) | Swap::Lost(_)) => {
                return Ok(Some(format!("the only writer's swap is {other:?}")));
            }
        }
        tokio::task::yield_now().await;
    }
    Ok(None)
}

fn length(byte: u8) -> usize {
    match byte {
        b'a' => 10,
        b'b' => 5_000,
        _ => 20_000,
    }
}

fn torn(found: &Versioned) -> Option<String> {
    let bytes = found.value.as_bytes();
    let first = bytes.first().copied().unwrap_or_default();
    let whole = bytes.len() == length(first) && bytes.iter().all(|byte| *byte == first);
    (!whole).then(|| format!("a reader saw {} bytes that nobody wrote as a whole", bytes.len()))
}

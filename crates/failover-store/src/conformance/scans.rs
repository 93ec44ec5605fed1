//! Scans: complete, ordered, bounded, and inside their prefix.

use super::{Check, Fault, Fixture, delete, ensure, key, keys_below, put};
use crate::{Expect, Key, KeyValue, MAX_SCAN, Prefix};

/// Names whose order differs by bytes, by letters, by length and by path.
const NAMES: &[&[&str]] = &[
    &["s", "a"],
    &["s", "a", "b"],
    &["s", "a-b"],
    &["s", "a0"],
    &["s", "B"],
    &["s", "b"],
    &["s", "10"],
    &["s", "9"],
    &["s", "é"],
    &["s", "z"],
    &["s", "a/b"],
    &["s", "a%b"],
    &["s", "日本"],
    &["sa", "a"],
    &["r", "z"],
    &["s2"],
];

async fn filled(fixture: &dyn Fixture) -> Result<(std::sync::Arc<dyn KeyValue>, Vec<Key>), Fault> {
    let store = fixture.fresh().await;
    let mut keys = Vec::new();
    for segments in NAMES {
        let key = key(segments)?;
        put(&*store, &key, Expect::Absent, key.as_str()).await?;
        keys.push(key);
    }
    keys.sort_by(|a, b| a.as_str().as_bytes().cmp(b.as_str().as_bytes()));
    Ok((store, keys))
}

pub(super) async fn scans_are_complete_and_in_byte_order(fixture: &dyn Fixture) -> Check {
    let (store, keys) = filled(fixture).await?;
    let page = store.scan(&Prefix::everything(), None, usize::MAX).await?;
    let found: Vec<&str> = page.iter().map(|(key, _)| key.as_str()).collect();
    let wanted: Vec<&str> = keys.iter().map(Key::as_str).collect();
    ensure!(found == wanted, "a scan of everything gives {found:?} instead of {wanted:?}");
    for (key, found) in &page {
        ensure!(found.value.as_bytes() == key.as_str().as_bytes(), "a scan gives {key} the value of another");
        ensure!(store.get(key).await?.as_ref() == Some(found), "a scan and a read disagree on {key}");
    }
    Ok(())
}

pub(super) async fn pages_join_to_the_whole(fixture: &dyn Fixture) -> Check {
    let (store, _) = filled(fixture).await?;
    let prefix = Prefix::new(&["s"])?;
    let whole = keys_below(&*store, &prefix).await?;
    for limit in 1..=4 {
        let mut joined = Vec::new();
        let mut after = None;
        loop {
            let page = store.scan(&prefix, after.as_ref(), limit).await?;
            ensure!(page.len() <= limit, "a page of {limit} has {} records", page.len());
            let last = page.last().map(|(key, _)| key.clone());
            let full = page.len() == limit;
            joined.extend(page.into_iter().map(|(key, _)| key.to_string()));
            ensure!(joined.len() <= whole.len(), "pages of {limit} repeat records: {joined:?}");
            match last {
                Some(last) if full => after = Some(last),
                _ => break,
            }
        }
        ensure!(joined == whole, "pages of {limit} join to {joined:?} instead of {whole:?}");
    }
    ensure!(store.scan(&prefix, None, 0).await?.is_empty(), "a page of none has records");
    // A mark that was deleted meanwhile still says where to go on.
    let mark = key(&["s", "a0"])?;
    let version = store.get(&mark).await?.map(|found| found.version);
    delete(&*store, &mark, version.ok_or_else(|| Fault("a written key is gone".to_owned()))?).await?;
    let rest = store.scan(&prefix, Some(&mark), MAX_SCAN).await?;
    let wanted = whole.iter().filter(|key| key.as_str() > mark.as_str()).count();
    ensure!(rest.len() == wanted, "behind a deleted mark are {} records instead of {wanted}", rest.len());
    Ok(())
}

pub(super) async fn a_prefix_keeps_to_its_subtree(fixture: &dyn Fixture) -> Check {
    let (store, keys) = filled(fixture).await?;
    for segments in [&["s"][..], &["s", "a"], &["sa"], &["r"], &["nothing"], &["s2"]] {
        let prefix = Prefix::new(segments)?;
        let found = keys_below(&*store, &prefix).await?;
        let wanted: Vec<&str> = keys.iter().filter(|key| prefix.covers(key)).map(Key::as_str).collect();
        ensure!(found == wanted, "below {prefix:?} are {found:?} instead of {wanted:?}");
        let outside = key(&["zzz"])?;
        let behind = store.scan(&prefix, Some(&outside), 10).await?;
        ensure!(behind.is_empty(), "behind the end of {prefix:?} a scan goes on");
        let before = store.scan(&prefix, Some(&key(&["a"])?), usize::MAX).await?;
        ensure!(before.len() == wanted.len(), "a mark before {prefix:?} changes what is found");
    }
    Ok(())
}

//! Durable swaps per second at 1, 8 and 64 writers, and the space that a million overwrites take.
//!
//! The disk decides: say which one with every number. `cargo bench -p failover-store-sled`.
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods, reason = "a benchmark")]

use failover_store::conformance::StillClock;
use failover_store::{Expect, Key, KeyValue, Swap, Value, Version, WriteOptions};
use failover_store_sled::SledStore;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RUN: Duration = Duration::from_secs(3);
/// A session's record has about this many bytes.
const VALUE_BYTES: usize = 150;

fn key(writer: usize, step: usize) -> Key {
    Key::new(&["session", &writer.to_string(), &(step % 50).to_string()]).unwrap()
}

async fn put(store: &SledStore, key: &Key, expect: Expect, write: WriteOptions) -> Version {
    let value = Value::new([b'x'; VALUE_BYTES]);
    match store.swap(key, expect, Some(value), write).await.unwrap() {
        Swap::Done(Some(version)) => version,
        other @ (Swap::Done(None) | Swap::Lost(_)) => unreachable!("{other:?}"),
    }
}

async fn write_until(store: SledStore, writer: usize, end: Instant) -> Vec<Duration> {
    let mut versions = vec![None; 50];
    let mut took = Vec::new();
    for step in 0.. {
        let begin = Instant::now();
        if begin >= end {
            break;
        }
        let slot = versions.get_mut(step % 50).unwrap();
        let expect = slot.map_or(Expect::Absent, Expect::Version);
        *slot = Some(put(&store, &key(writer, step), expect, WriteOptions::durable()).await);
        took.push(begin.elapsed());
    }
    took
}

fn open() -> (tempfile::TempDir, SledStore) {
    // Beside the build, not in /tmp, which may be memory.
    let base = env!("CARGO_TARGET_TMPDIR");
    let dir = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir_in(base).unwrap();
    let store = SledStore::open(dir.path(), Arc::new(StillClock::new())).unwrap();
    (dir, store)
}

/// What one writer could do if the disk were all: syncs a second of a record's bytes in a file of their own. Disks have
/// moods, so it is asked anew before each figure.
fn bare_syncs() -> u32 {
    let mut file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let end = Instant::now() + Duration::from_secs(1);
    let mut syncs = 0;
    while Instant::now() < end {
        file.write_all(&[b'x'; VALUE_BYTES]).unwrap();
        file.sync_data().unwrap();
        syncs += 1;
    }
    syncs
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    println!("writers  syncs/s alone  swaps/s   ratio      p50      p99");
    for writers in [1, 8, 64] {
        let bare = bare_syncs();
        let (_dir, store) = open();
        let end = Instant::now() + RUN;
        let mut took = runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for writer in 0..writers {
                tasks.spawn(write_until(store.clone(), writer, end));
            }
            tasks.join_all().await.concat()
        });
        took.sort_unstable();
        let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
        let rate = u32::try_from(took.len() as u64 / RUN.as_secs()).unwrap();
        let ratio = f64::from(rate) / f64::from(bare);
        println!("{writers:>7}  {bare:>13}  {rate:>7}  {ratio:>5.1}x  {:>7.0?}  {:>7.0?}", at(50), at(99));
    }
    let (_dir, store) = open();
    let begin = Instant::now();
    runtime.block_on(async {
        let mut versions = vec![None; 1000];
        for step in 0..1_000_000 {
            let slot = versions.get_mut(step % 1000).unwrap();
            let expect = slot.map_or(Expect::Absent, Expect::Version);
            let key = Key::new(&["k", &(step % 1000).to_string()]).unwrap();
            *slot = Some(put(&store, &key, expect, WriteOptions::soft()).await);
            if (step + 1) % 250_000 == 0 {
                let bytes = store.health().unwrap().bytes;
                println!(
                    "{:>7} soft overwrites of 1000 keys: {bytes} bytes, {:.1?}",
                    step + 1,
                    begin.elapsed()
                );
            }
        }
    });
}

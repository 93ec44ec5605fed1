//! kill -9 at random moments, and a modelled power cut: each acknowledged durable write is found afterwards.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test helpers")]

use failover_store::conformance::{StillClock, kill};
use failover_store::{Durability, Expect, Key, KeyValue, StoreError, Swap, Value, WriteOptions};
use failover_store_redb::RedbStore;
use failover_types::Clock;
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Rounds over all writer counts together.
const ROUNDS: &str = "FAILOVER_KILL_ROUNDS";
const DEFAULT_ROUNDS: u32 = 20;

#[expect(clippy::disallowed_methods, reason = "how the test talks to the child that it starts")]
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(StillClock::new())
}

fn private_dir() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
}

fn open(dir: &Path) -> Result<Arc<dyn KeyValue>, StoreError> {
    Ok(Arc::new(RedbStore::open(dir, clock())?))
}

/// Does nothing in an ordinary test run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_is_killed() {
    kill::child(&open).await.unwrap();
}

// spec: K-2
#[test_case::test_case(1; "one writer")]
#[test_case::test_case(8; "eight writers")]
#[test_case::test_case(64; "sixty four writers")]
#[tokio::test]
async fn nothing_acknowledged_is_lost_by_kill_9(writers: u64) {
    let rounds = env(ROUNDS).map_or(DEFAULT_ROUNDS, |rounds| rounds.parse().unwrap()).div_ceil(3);
    let dir = private_dir();
    kill::survives("child_that_is_killed", dir.path(), writers, rounds, &open).await.unwrap();
}

/// What reaches the platter in one piece.
const PAGE: usize = 4096;

/// A disk that keeps what a sync covered; what was written since may or may not be there after a cut.
#[derive(Debug, Default)]
struct Platter {
    written: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Disk {
    platter: Arc<Mutex<Platter>>,
    /// A disk that only pretends keeps nothing.
    honest: bool,
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter.lock().unwrap().written.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        let platter = self.platter.lock().unwrap();
        let found = platter.written.get(from..from + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.platter.lock().unwrap().written.resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.honest {
            let platter = &mut *self.platter.lock().unwrap();
            platter.durable.clone_from(&platter.written);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        let mut platter = self.platter.lock().unwrap();
        platter.written.get_mut(from..from + data.len()).unwrap().copy_from_slice(data);
        Ok(())
    }
}

impl Disk {
    fn new(honest: bool) -> Self {
        Self { honest, ..Self::default() }
    }

    /// The disk after the power came back: `stray` lets each page written since the last sync reach it or not.
    fn after_a_cut(&self, stray: Option<u64>) -> Self {
        let platter = self.platter.lock().unwrap();
        let mut image = platter.durable.clone();
        if let Some(seed) = stray {
            image.resize(platter.written.len().max(image.len()), 0);
            let mut random = seed;
            for (at, page) in platter.written.chunks(PAGE).enumerate() {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if random >> 63 == 1 {
                    image[at * PAGE..at * PAGE + page.len()].copy_from_slice(page);
                }
            }
        }
        let platter = Platter { written: image.clone(), durable: image };
        Self { platter: Arc::new(Mutex::new(platter)), honest: true }
    }
}

fn on(disk: &Disk) -> RedbStore {
    let disk = disk.clone();
    RedbStore::on_backend(move || disk.clone(), "a disk", clock()).unwrap()
}

async fn stored_step(store: &RedbStore, key: &Key) -> Option<u64> {
    let found = store.get(key).await.unwrap()?;
    std::str::from_utf8(found.value.as_bytes()).unwrap().parse().ok()
}

/// Names the promised writes that are not on the disk.
async fn lost_by(disk: Disk, promised: &BTreeMap<u64, u64>) -> Vec<String> {
    let store = match RedbStore::on_backend(move || disk.clone(), "after the cut", clock()) {
        Ok(store) => store,
        Err(error) => return vec![format!("not opened: {error}: {:?}", std::error::Error::source(&error))],
    };
    let mut lost = Vec::new();
    for (name, step) in promised {
        let stands = stored_step(&store, &Key::new(&["power", &name.to_string()]).unwrap()).await;
        if stands.is_none_or(|stands| stands < *step) {
            lost.push(format!("{name}: step {step} promised, {stands:?} found"));
        }
    }
    lost
}

/// Writers write until they are done; the power is cut again and again. Gives back what was lost.
async fn cut_power_now_and_then(disk: Disk, stray: bool) -> Vec<String> {
    let store = on(&disk);
    let acked: Arc<Mutex<BTreeMap<u64, u64>>> = Arc::default();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..8_u64 {
        let (store, acked) = (store.clone(), Arc::clone(&acked));
        tasks.spawn(async move {
            for step in 1..=200_u64 {
                let name = writer * 100 + step % 25;
                let key = Key::new(&["power", &name.to_string()]).unwrap();
                let write = if step % 3 == 0 { WriteOptions::soft() } else { WriteOptions::durable() };
                let current = store.get(&key).await.unwrap();
                let value = Value::new(step.to_string().into_bytes());
                let swap = store.swap(&key, Expect::from(current.as_ref()), Some(value), write).await;
                assert!(matches!(swap.unwrap(), Swap::Done(_)));
                if write.durability == Durability::Durable {
                    acked.lock().unwrap().insert(name, step);
                }
            }
        });
    }
    let (mut lost, mut cuts) = (Vec::new(), 0);
    let mut running = true;
    while running {
        running = tokio::time::timeout(Duration::from_millis(5), tasks.join_next())
            .await
            .map_or(true, |ended| ended.map(Result::unwrap).is_some());
        // The list first: what is on it was acknowledged before the image was taken.
        let promised = acked.lock().unwrap().clone();
        let image = disk.after_a_cut(stray.then_some(cuts));
        lost.extend(lost_by(image, &promised).await);
        cuts += 1;
    }
    assert!(cuts > 1, "no cut fell into the writing");
    lost
}

// spec: K-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_a_power_cut() {
    assert_eq!(cut_power_now_and_then(Disk::new(true), false).await, Vec::<String>::new());
}

// spec: K-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_reached_the_disk_early_do_no_harm() {
    assert_eq!(cut_power_now_and_then(Disk::new(true), true).await, Vec::<String>::new());
}

/// The proof that the model sees something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_catches_a_disk_that_only_pretends() {
    let disk = Disk::new(false);
    let store = on(&disk);
    let key = Key::new(&["power", "1"]).unwrap();
    let put = store.swap(&key, Expect::Absent, Some(Value::new(*b"1")), WriteOptions::durable()).await;
    assert!(matches!(put, Ok(Swap::Done(Some(_)))));
    let lost = lost_by(disk.after_a_cut(None), &BTreeMap::from([(1, 1)])).await;
    assert_eq!(lost, ["1: step 1 promised, None found"]);
}

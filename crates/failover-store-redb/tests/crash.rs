//! kill -9 at random moments, and a modelled power cut: each acknowledged durable write is found afterwards.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "test helpers")]

use failover_store::conformance::StillClock;
use failover_store::{Durability, Expect, Key, KeyValue, Swap, Value, WriteOptions};
use failover_store_redb::RedbStore;
use failover_types::Clock;
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DIR: &str = "FAILOVER_TEST_REDB_KILL_DIR";
const WRITERS: &str = "FAILOVER_TEST_REDB_KILL_WRITERS";
/// Rounds over all writer counts together.
const ROUNDS: &str = "FAILOVER_KILL_ROUNDS";
const DEFAULT_ROUNDS: u32 = 20;
/// Keys that each writer goes over again and again.
const KEYS_EACH: u64 = 20;

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

fn key(writer: u64, step: u64) -> Key {
    Key::new(&["kill", &writer.to_string(), &(step % KEYS_EACH).to_string()]).unwrap()
}

/// The child: writes for ever, and tells each try and each acknowledgement on its standard error, which nothing
/// buffers. A value is its step; every seventh write is a delete. Does nothing in an ordinary test run.
#[test]
fn child_that_is_killed() {
    let (Some(dir), Some(writers)) = (env(DIR), env(WRITERS)) else { return };
    let writers = writers.parse::<u64>().unwrap();
    let store = RedbStore::open(&PathBuf::from(dir), clock()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for writer in 0..writers {
            let store = store.clone();
            tasks.spawn(async move { write_for_ever(&store, writer).await });
        }
        tasks.join_all().await;
    });
}

async fn write_for_ever(store: &RedbStore, writer: u64) {
    let mut step = 0;
    for slot in 0..KEYS_EACH {
        step = step.max(stored_step(store, &key(writer, slot)).await.unwrap_or(0));
    }
    // Deletes leave no step behind: skip past any that may have been done.
    step += 2 * KEYS_EACH;
    loop {
        let key = key(writer, step);
        let current = store.get(&key).await.unwrap();
        let next = (!step.is_multiple_of(7)).then(|| Value::new(step.to_string().into_bytes()));
        tell("try", writer, step);
        let swap =
            store.swap(&key, Expect::from(current.as_ref()), next, WriteOptions::durable()).await.unwrap();
        assert!(matches!(swap, Swap::Done(_)));
        tell("ack", writer, step);
        step += 1;
    }
}

/// One short write to a pipe is atomic.
fn tell(what: &str, writer: u64, step: u64) {
    io::stderr().write_all(format!("{what} {writer} {step}\n").as_bytes()).unwrap();
}

async fn stored_step(store: &RedbStore, key: &Key) -> Option<u64> {
    let found = store.get(key).await.unwrap()?;
    std::str::from_utf8(found.value.as_bytes()).unwrap().parse().ok()
}

/// What may stand at a key: the step acknowledged last, and one that was on its way when the child died.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    acked: Option<u64>,
    tried: Option<u64>,
}

impl Known {
    fn allows(self, stands: Option<u64>) -> bool {
        let left_behind = |step: u64| (!step.is_multiple_of(7)).then_some(step);
        stands == self.acked.and_then(left_behind)
            || self.tried.is_some_and(|tried| stands == left_behind(tried))
    }
}

type Acked = BTreeMap<Key, Known>;

/// Runs a child, kills it `life` after its first acknowledgement (or, `during_open`, after its start), notes what it told, and
/// counts its acknowledgements.
fn run_and_kill(dir: &Path, writers: u64, life: Duration, during_open: bool, known: &mut Acked) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed", "--nocapture"])
        .env(DIR, dir)
        .env(WRITERS, writers.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let told = child.stderr.take().unwrap();
    let (begun, first_ack) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        for said in io::BufReader::new(told).lines() {
            let said = said.unwrap();
            if said.starts_with("ack") {
                // Nobody listens where the child may die while it opens.
                let _ = begun.send(());
            }
            text.push_str(&said);
            text.push('\n');
        }
        text
    });
    if !during_open {
        first_ack.recv().unwrap();
    }
    std::thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = reader.join().unwrap();
    let mut acked = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, writer, step] = words[..] else { panic!("the child said {line:?}") };
        let step = step.parse().unwrap();
        let known = known.entry(key(writer.parse().unwrap(), step)).or_default();
        match what {
            "try" => known.tried = Some(step),
            "ack" => {
                *known = Known { acked: Some(step), tried: None };
                acked += 1;
            }
            _ => panic!("the child said {line:?}"),
        }
    }
    acked
}

/// Small and repeatable; the moment of a kill is random enough by the machine's own noise.
fn life(round: u32, writers: u64) -> Duration {
    let mixed = (u64::from(round) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(writers) >> 40;
    Duration::from_micros(500 + mixed % 60_000)
}

// spec: K-2
#[test_case::test_case(1; "one writer")]
#[test_case::test_case(8; "eight writers")]
#[test_case::test_case(64; "sixty four writers")]
fn nothing_acknowledged_is_lost_by_kill_9(writers: u64) {
    let rounds = env(ROUNDS).map_or(DEFAULT_ROUNDS, |rounds| rounds.parse().unwrap()).div_ceil(3);
    let dir = private_dir();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut known = Acked::new();
    let mut acked = 0;
    for round in 0..rounds {
        // Every third child may die while it opens the store.
        acked += run_and_kill(dir.path(), writers, life(round, writers), round % 3 == 2, &mut known);
        let store = RedbStore::open(dir.path(), clock()).unwrap();
        runtime.block_on(async {
            for (key, known) in &mut known {
                let stands = stored_step(&store, key).await;
                assert!(known.allows(stands), "{key}: {known:?}, and {stands:?} stands");
                *known = Known { acked: stands, tried: None };
            }
        });
    }
    assert!(acked > 0, "nothing was acknowledged, so nothing was put to the test");
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

//! kill -9 at random moments: a real child process writes, the parent keeps the list of what was acknowledged, and
//! finds each entry after reopening.

use crate::common::{clock, private_dir};
use failover_store::{Expect, Key, KeyValue, Swap, Value, WriteOptions};
use failover_store_sled::SledStore;
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const DIR: &str = "FAILOVER_TEST_KILL_DIR";
const OWNED_DIR: &str = "FAILOVER_TEST_OWNED_DIR";
const WRITERS: &str = "FAILOVER_TEST_KILL_WRITERS";
/// Rounds over all writer counts together.
const ROUNDS: &str = "FAILOVER_KILL_ROUNDS";
const DEFAULT_ROUNDS: u32 = 20;
/// Keys that each writer goes over again and again.
const KEYS_EACH: u64 = 20;

#[expect(clippy::disallowed_methods, reason = "how the test talks to the child that it starts")]
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
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
    let store = SledStore::open(PathBuf::from(dir), clock()).unwrap();
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

async fn write_for_ever(store: &SledStore, writer: u64) {
    let mut step = first_free_step(store, writer).await;
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
    std::io::stderr().write_all(format!("{what} {writer} {step}\n").as_bytes()).unwrap();
}

async fn first_free_step(store: &SledStore, writer: u64) -> u64 {
    let mut last = 0;
    for slot in 0..KEYS_EACH {
        last = last.max(stored_step(store, &key(writer, slot)).await.unwrap_or(0));
    }
    // Deletes leave no step behind: skip past any that may have been done.
    last + 2 * KEYS_EACH
}

async fn stored_step(store: &SledStore, key: &Key) -> Option<u64> {
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

/// Runs a child, kills it `life` after its first acknowledgement (or, `during_open`, after its start), notes what it
/// told, and counts its acknowledgements.
fn run_and_kill(dir: &Path, writers: u64, life: Duration, during_open: bool, known: &mut Acked) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_that_is_killed", "--nocapture"])
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
        for said in std::io::BufReader::new(told).lines() {
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
        let mut words = line.split(' ');
        let (what, writer, step) = (words.next(), words.next(), words.next());
        let (Some(what), Some(writer), Some(step)) = (what, writer, step) else {
            panic!("the child said {line:?}");
        };
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

/// Each key holds what was acknowledged last, or what was under way. What is found is the truth from now on.
async fn check(store: &SledStore, known: &mut Acked) {
    for (key, known) in known {
        let stands = stored_step(store, key).await;
        assert!(known.allows(stands), "{key}: {known:?}, and {stands:?} stands");
        *known = Known { acked: stands, tried: None };
    }
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
        let store = SledStore::open(dir.path(), clock()).unwrap();
        runtime.block_on(check(&store, &mut known));
    }
    assert!(acked >= usize::try_from(rounds / 2).unwrap(), "only {acked} writes were acknowledged");
    report(&format!("{acked} acknowledged writes over {rounds} kills with {writers} writers, none lost"));
}

#[expect(clippy::print_stdout, reason = "the long run is there to be read")]
fn report(line: &str) {
    println!("{line}");
}

// spec: K-2
#[test]
fn a_killed_owner_leaves_the_directory_free() {
    let dir = private_dir();
    run_and_kill(dir.path(), 1, Duration::from_millis(1), false, &mut Acked::new());
    assert!(SledStore::open(dir.path(), clock()).is_ok());
}

/// The child that owns a directory until it is killed. Does nothing in an ordinary test run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_owns() {
    let Some(dir) = env(OWNED_DIR) else { return };
    let _store = failover_store_sled::SharedStore::open(PathBuf::from(dir), clock()).await.unwrap();
    tell("owns", 0, 0);
    std::future::pending::<()>().await;
}

/// A process that owns a directory.
pub(crate) struct Owner(std::process::Child);

impl Owner {
    /// Returns once it has the directory.
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child_that_owns", "--nocapture"])
            .env(OWNED_DIR, dir)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 4];
        child.stderr.as_mut().unwrap().read_exact(&mut word).unwrap();
        assert_eq!(&word, b"owns");
        Self(child)
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

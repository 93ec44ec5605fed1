//! kill -9 at random moments: a real child process writes, its parent keeps the list of what was acknowledged, and finds
//! each entry after reopening.
//!
//! The child is a test of the same binary, which does nothing in an ordinary run:
//!
//! ```no_run
//! # use failover_store::{KeyValue, MemoryStore, StoreError, conformance::{StillClock, kill}};
//! # use std::{path::Path, sync::Arc};
//! fn open(dir: &Path) -> Result<Arc<dyn KeyValue>, StoreError> {
//!     // your store over the files of `dir`
//! #     let _ = dir;
//! #     Ok(Arc::new(MemoryStore::new(Arc::new(StillClock::new()))))
//! }
//!
//! #[tokio::test(flavor = "multi_thread")]
//! # async fn f() {}
//! async fn child_that_is_killed() {
//!     kill::child(&open).await.unwrap();
//! }
//!
//! #[tokio::test]
//! # async fn g() {}
//! async fn nothing_acknowledged_is_lost_by_kill_9() {
//!     let dir = std::env::temp_dir().join("empty");
//!     kill::survives("child_that_is_killed", &dir, 8, 20, &open).await.unwrap();
//! }
//! ```

use super::{Fault, Violation};
use crate::{Expect, Key, KeyValue, StoreError, Swap, Value, WriteOptions};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const DIR: &str = "KV_KILL_DIR";
const WRITERS: &str = "KV_KILL_WRITERS";
/// Keys that each writer goes over again and again.
const KEYS_EACH: u64 = 20;
/// Every seventh write is a delete.
const DELETES: u64 = 7;

/// Opens the store of a directory.
pub type Open<'a> = &'a (dyn Fn(&Path) -> Result<Arc<dyn KeyValue>, StoreError> + Sync);

/// The body of the test that plays the child. Started by [`survives`] it writes for ever, and tells each try and each
/// acknowledgement on its standard error, which nothing buffers; otherwise it returns at once.
///
/// # Errors
///
/// What the store refused: no write of the child may fail.
///
/// # Cancel safety
///
/// Its writers end with it.
pub async fn child(open: Open<'_>) -> Result<(), Violation> {
    let (Some(dir), Some(writers)) = (env(DIR), env(WRITERS)) else { return Ok(()) };
    write_until_killed(&PathBuf::from(dir), &writers, open).await.map_err(violation)
}

async fn write_until_killed(dir: &Path, writers: &str, open: Open<'_>) -> Result<(), Fault> {
    let store = open(dir)?;
    let mut tasks = JoinSet::new();
    for writer in 0..writers.parse()? {
        let store = Arc::clone(&store);
        tasks.spawn(async move { write_for_ever(&*store, writer).await });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn write_for_ever(store: &dyn KeyValue, writer: u64) -> Result<(), Fault> {
    let mut step = first_free_step(store, writer).await?;
    loop {
        let key = key(writer, step)?;
        let current = store.get(&key).await?;
        let next = left_behind(step).map(|step| Value::new(step.to_string().into_bytes()));
        tell("try", writer, step)?;
        match store.swap(&key, Expect::from(current.as_ref()), next, WriteOptions::durable()).await? {
            Swap::Done(_) => tell("ack", writer, step)?,
            Swap::Lost(to) => return Err(Fault(format!("the only writer of {key} lost to {to:?}"))),
        }
        step += 1;
    }
}

async fn first_free_step(store: &dyn KeyValue, writer: u64) -> Result<u64, Fault> {
    let mut last = 0;
    for slot in 0..KEYS_EACH {
        last = last.max(stored_step(store, &key(writer, slot)?).await?.unwrap_or(0));
    }
    // Deletes leave no step behind: skip past any that may have been done.
    Ok(last + 2 * KEYS_EACH)
}

/// One short write to a pipe is atomic.
fn tell(what: &str, writer: u64, step: u64) -> std::io::Result<()> {
    std::io::stderr().write_all(format!("{what} {writer} {step}\n").as_bytes())
}

/// Starts, over the data in `dir` (empty at first), one child after the other with `writers` writers, kills each, and
/// looks whether all stands that was acknowledged. `child_test` is the whole name of the test whose body is [`child`].
/// Returns how many writes were acknowledged.
///
/// It blocks the thread while a child lives: give it a test of its own.
///
/// # Errors
///
/// What was lost, or why the suite could not run.
///
/// # Cancel safety
///
/// Leaves the data as the last child left them.
pub async fn survives(
    child_test: &str,
    dir: &Path,
    writers: u64,
    rounds: u32,
    open: Open<'_>,
) -> Result<usize, Violation> {
    kill_and_look(child_test, dir, writers, rounds, open).await.map_err(violation)
}

async fn kill_and_look(
    child_test: &str,
    dir: &Path,
    writers: u64,
    rounds: u32,
    open: Open<'_>,
) -> Result<usize, Fault> {
    let mut known = BTreeMap::new();
    let mut acked = 0;
    for round in 0..rounds {
        // Every third child may die while it opens the store.
        let during_open = round % 3 == 2;
        acked += run_and_kill(child_test, dir, writers, life(round, writers), during_open, &mut known)?;
        let store = open(dir)?;
        for (key, known) in &mut known {
            let stands = stored_step(&*store, key).await?;
            if !known.allows(stands) {
                return Err(Fault(format!("{key}: {known:?}, and {stands:?} stands")));
            }
            *known = Known { acked: stands, tried: None };
        }
    }
    if acked == 0 {
        return Err(Fault("nothing was acknowledged, so nothing was put to the test".to_owned()));
    }
    Ok(acked)
}

/// What may stand at a key: the step acknowledged last, and one that was on its way when the child died.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    acked: Option<u64>,
    tried: Option<u64>,
}

impl Known {
    fn allows(self, stands: Option<u64>) -> bool {
        stands == self.acked.and_then(left_behind)
            || self.tried.is_some_and(|tried| stands == left_behind(tried))
    }
}

/// The value that a step leaves: its number, or nothing.
fn left_behind(step: u64) -> Option<u64> {
    (!step.is_multiple_of(DELETES)).then_some(step)
}

/// Runs a child, kills it `life` after its first acknowledgement (or, `during_open`, after its start), notes what it
/// told, and counts its acknowledgements.
fn run_and_kill(
    child_test: &str,
    dir: &Path,
    writers: u64,
    life: Duration,
    during_open: bool,
    known: &mut BTreeMap<Key, Known>,
) -> Result<usize, Fault> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", child_test, "--nocapture"])
        .env(DIR, dir)
        .env(WRITERS, writers.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let (begun, first_ack) = std::sync::mpsc::channel();
    let told = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut lines = Vec::new();
        for said in told.into_iter().flat_map(|told| BufReader::new(told).lines()) {
            let said = said?;
            if said.starts_with("ack") {
                // Nobody listens where the child may die while it opens.
                let _ = begun.send(());
            }
            lines.push(said);
        }
        Ok::<_, std::io::Error>(lines)
    });
    if !during_open {
        // An error says that the child ended by itself; what it said is read below.
        let _ = first_ack.recv();
    }
    std::thread::sleep(life);
    child.kill()?;
    child.wait()?;
    let lines =
        reader.join().map_err(|_panic| Fault("the reader of the child's words fell".to_owned()))??;
    let mut acked = 0;
    for line in lines {
        let (what, writer, step) = parse(&line).ok_or_else(|| Fault(format!("the child said {line:?}")))?;
        let known = known.entry(key(writer, step)?).or_default();
        if what == "ack" {
            *known = Known { acked: Some(step), tried: None };
            acked += 1;
        } else {
            known.tried = Some(step);
        }
    }
    Ok(acked)
}

fn parse(line: &str) -> Option<(&str, u64, u64)> {
    let mut words = line.split(' ');
    let what = words.next().filter(|what| matches!(*what, "try" | "ack"))?;
    Some((what, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Small and repeatable; the moment of a kill is random enough by the machine's own noise.
fn life(round: u32, writers: u64) -> Duration {
    let mixed = (u64::from(round) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(writers) >> 40;
    Duration::from_micros(500 + mixed % 60_000)
}

fn key(writer: u64, step: u64) -> Result<Key, Fault> {
    super::key(&["kill", &writer.to_string(), &(step % KEYS_EACH).to_string()])
}

async fn stored_step(store: &dyn KeyValue, key: &Key) -> Result<Option<u64>, Fault> {
    let Some(found) = store.get(key).await? else { return Ok(None) };
    Ok(Some(std::str::from_utf8(found.value.as_bytes())?.parse()?))
}

fn violation(Fault(what): Fault) -> Violation {
    Violation { case: "kill_9", what }
}

#[expect(clippy::disallowed_methods, reason = "how the suite talks to the child that it starts")]
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

//! The decision log of this machine: a line of JSON for each decision, in a file of bounded size beside the store.
//!
//! `status` reads its end. It is a convenience for people and never in the way: a thread of its own puts it into words and
//! writes it, and what cannot be written is left out. What was decided before the journal is dropped is written by then.

use crate::show::Line;
use failover::runner::SystemClock;
use failover::runner::plan::{AttemptStep, Decision, DecisionKind, DecisionObserver};
use failover::types::{Clock, Timestamp};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Name of the file in the home directory.
pub(crate) const NAME: &str = "decisions.jsonl";
/// Largest size of the file before it is set aside under the name `decisions.1.jsonl`, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// How much of the end is read for the last decisions, in bytes.
const TAIL_BYTES: u64 = 64 * 1024;

/// Decisions that may wait to be written; what comes on top of them is lost.
const MAX_WAITING: usize = 4_096;
/// How many bytes are written at once, about.
const BATCH_BYTES: usize = 64 * 1024;
/// How long decisions are gathered after a write: who fails over all the time must not wake the writer every time.
const GATHER: Duration = Duration::from_millis(20);

/// Hands decisions to the thread that writes them down, and on.
pub(crate) struct Journal {
    waiting: Option<SyncSender<Entry>>,
    writer: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
    next: Option<Arc<dyn DecisionObserver>>,
}

/// A decision, and when it fell.
type Entry = (Timestamp, Arc<Decision>);

/// The file, and how long it has become by what was written here.
struct Open {
    file: File,
    bytes: u64,
}

/// Writes lines for as long as there is a journal.
struct Writer {
    path: PathBuf,
    open: Option<Open>,
}

impl Journal {
    /// A journal in this directory, in front of `next`.
    pub(crate) fn new(home: &Path, next: Option<Arc<dyn DecisionObserver>>) -> Self {
        let (entries, waiting) = sync_channel(MAX_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let mut writer = Writer { path: home.join(NAME), open: None };
        let missed = Arc::clone(&lost);
        let thread = std::thread::Builder::new().name("decisions".to_owned());
        // Without a thread nothing is written, and every line counts as lost.
        let writer = thread.spawn(move || writer.run(&waiting, &missed)).ok();
        Self { waiting: Some(entries), writer, lost, next }
    }

    /// Leaves an entry to the writer, who must not be waited for.
    fn put(&self, entry: Entry) {
        if self.waiting.as_ref().is_none_or(|waiting| waiting.try_send(entry).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.waiting = None;
        if let Some(writer) = self.writer.take() {
            writer.thread().unpark();
            let _ = writer.join();
        }
    }
}

impl Writer {
    fn run(&mut self, waiting: &Receiver<Entry>, lost: &AtomicU64) {
        let mut lines = Vec::new();
        while let Ok(entry) = waiting.recv() {
            lines.clear();
            append(&mut lines, &entry);
            while lines.len() < BATCH_BYTES
                && let Ok(entry) = waiting.try_recv()
            {
                append(&mut lines, &entry);
            }
            // Neither a full disk nor anything else here must stop an answer.
            let _ = self.write(&lines);
            let lost = lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                tracing::warn!(lost, "decisions came faster than they could be written down");
            }
            std::thread::park_timeout(GATHER);
        }
    }

    fn write(&mut self, lines: &[u8]) -> std::io::Result<()> {
        if let Some(open) = self.open.as_ref().filter(|open| open.bytes > MAX_BYTES) {
            // Another process may have set it aside already.
            if open.file.metadata()?.len() == std::fs::metadata(&self.path)?.len() {
                std::fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
            }
            self.open = None;
        }
        if self.open.is_none() {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
            let bytes = file.metadata()?.len();
            self.open = Some(Open { file, bytes });
        }
        if let Some(open) = self.open.as_mut() {
            // Whole lines in one write, so that those of several processes do not mix.
            open.file.write_all(lines)?;
            open.bytes = open.bytes.saturating_add(lines.len() as u64);
        }
        Ok(())
    }
}

/// Adds an entry's line.
fn append(lines: &mut Vec<u8>, (at, decision): &Entry) {
    let before = lines.len();
    match serde_json::to_writer(&mut *lines, &Line::of(decision, Some(*at))) {
        Ok(()) => lines.push(b'\n'),
        Err(_) => lines.truncate(before),
    }
}

/// An answer at the first attempt is what everybody expects, and would fill the file.
fn expected(decision: &Decision) -> bool {
    matches!(decision.kind, DecisionKind::CandidateSucceeded)
        && decision.position <= 1
        && decision.attempts <= 1
}

impl DecisionObserver for Journal {
    fn on_attempt(&self, attempt: &AttemptStep) {
        if let Some(next) = &self.next {
            next.on_attempt(attempt);
        }
    }

    fn on_decision(&self, decision: &Arc<Decision>) {
        if !expected(decision) {
            self.put((SystemClock::new().now(), Arc::clone(decision)));
        }
        if let Some(next) = &self.next {
            next.on_decision(decision);
        }
    }
}

/// The last `count` decisions, oldest first; none where there is no journal.
pub(crate) fn last(home: &Path, count: usize) -> Vec<Value> {
    let Ok(text) = tail(&home.join(NAME)) else { return Vec::new() };
    let mut found: Vec<Value> =
        text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(count).collect();
    found.reverse();
    found
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover::runner::plan::{Candidate, Event, Plan, RunSpec, Slots, Step};
    use failover::types::RunId;

    fn decision(run: u64) -> Arc<Decision> {
        let spec =
            RunSpec::new(RunId::new(run.to_string()).unwrap(), vec![Candidate::new("a/m".parse().unwrap())]);
        let mut plan = Plan::new(spec, Timestamp::ZERO).unwrap();
        plan.handle(Timestamp::ZERO, Event::Profiles(Slots::default())).unwrap();
        let Step::Decision(decision) = plan.next_step() else { panic!("nobody can serve it") };
        decision
    }

    #[test]
    fn what_was_handed_over_is_written_in_order_by_the_time_the_journal_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::new(home.path(), None);
        (0..1_000).for_each(|run| journal.on_decision(&decision(run)));
        drop(journal);
        let written = std::fs::read_to_string(home.path().join(NAME)).unwrap();
        let run =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["runId"].as_str().unwrap().to_owned();
        assert_eq!(
            written.lines().map(run).collect::<Vec<_>>(),
            (0..1_000).map(|run| run.to_string()).collect::<Vec<_>>()
        );
    }
}

//! The decision log of this machine: a line of JSON for each decision, in a file of bounded size beside the store.
//!
//! `status` reads its end. It is a convenience for people and never in the way: a thread of its own writes it, and what
//! cannot be written is left out. What was decided before the journal is dropped is written by then.

use crate::show::Line;
use failover::runner::SystemClock;
use failover::runner::plan::{AttemptStep, Decision, DecisionKind, DecisionObserver};
use failover::types::Clock;
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

/// Lines that may wait to be written; what comes on top of them is lost.
const MAX_WAITING: usize = 4_096;
/// How many bytes are written at once, about.
const BATCH_BYTES: usize = 64 * 1024;
/// How long lines are gathered after a write: who fails over all the time must not wake the writer every time.
const GATHER: Duration = Duration::from_millis(20);

/// Hands decisions to the thread that writes them down, and on.
pub(crate) struct Journal {
    lines: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
    next: Option<Arc<dyn DecisionObserver>>,
}

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
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let mut writer = Writer { path: home.join(NAME), open: None };
        let missed = Arc::clone(&lost);
        let thread = std::thread::Builder::new().name("decisions".to_owned());
        // Without a thread nothing is written, and every line counts as lost.
        let writer = thread.spawn(move || writer.run(&waiting, &missed)).ok();
        Self { lines: Some(lines), writer, lost, next }
    }

    /// Leaves a line to the writer, who must not be waited for.
    fn put(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        if self.lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            writer.thread().unpark();
            let _ = writer.join();
        }
    }
}

impl Writer {
    fn run(&mut self, waiting: &Receiver<Vec<u8>>, lost: &AtomicU64) {
        while let Ok(mut lines) = waiting.recv() {
            while lines.len() < BATCH_BYTES
                && let Ok(more) = waiting.try_recv()
            {
                lines.extend_from_slice(&more);
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

    fn on_decision(&self, decision: &Decision) {
        if !expected(decision) {
            let line = Line::of(decision, Some(SystemClock::new().now()));
            if let Ok(line) = serde_json::to_vec(&line) {
                self.put(line);
            }
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

    #[test]
    fn what_was_handed_over_is_written_in_order_by_the_time_the_journal_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::new(home.path(), None);
        let lines = 0..1_000_u64;
        lines.clone().for_each(|at| journal.put(at.to_string().into_bytes()));
        drop(journal);
        let written = std::fs::read_to_string(home.path().join(NAME)).unwrap();
        assert_eq!(
            written.lines().map(str::to_owned).collect::<Vec<_>>(),
            lines.map(|at| at.to_string()).collect::<Vec<_>>()
        );
    }
}

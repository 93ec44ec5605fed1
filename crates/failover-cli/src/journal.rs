//! The decision log of this machine: a line of JSON for each decision, in a file of bounded size beside the store.
//!
//! `status` reads its end. It is a convenience for people and never in the way: what cannot be written is left out.

use crate::show::Line;
use failover::runner::SystemClock;
use failover::runner::plan::{AttemptStep, Decision, DecisionKind, DecisionObserver};
use failover::types::Clock;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the file in the home directory.
pub(crate) const NAME: &str = "decisions.jsonl";
/// Largest size of the file before it is set aside under the name `decisions.1.jsonl`, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// How much of the end is read for the last decisions, in bytes.
const TAIL_BYTES: u64 = 64 * 1024;

/// Writes decisions down and hands them on.
pub(crate) struct Journal {
    path: PathBuf,
    file: Mutex<Option<Open>>,
    next: Option<Arc<dyn DecisionObserver>>,
}

/// The file, and how long it has become by what was written here.
struct Open {
    file: File,
    bytes: u64,
}

impl Journal {
    /// A journal in this directory, in front of `next`.
    pub(crate) fn new(home: &Path, next: Option<Arc<dyn DecisionObserver>>) -> Self {
        Self { path: home.join(NAME), file: Mutex::new(None), next }
    }

    fn write(&self, line: &[u8]) -> std::io::Result<()> {
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = slot.as_ref().filter(|open| open.bytes > MAX_BYTES) {
            // Another process may have set it aside already.
            if open.file.metadata()?.len() == std::fs::metadata(&self.path)?.len() {
                std::fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
            }
            *slot = None;
        }
        if slot.is_none() {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
            let bytes = file.metadata()?.len();
            *slot = Some(Open { file, bytes });
        }
        if let Some(open) = slot.as_mut() {
            // One line is one write, so that lines of several processes do not mix.
            open.file.write_all(line)?;
            open.bytes = open.bytes.saturating_add(line.len() as u64);
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
            // Neither a full disk nor anything else here must stop an answer.
            if let Ok(mut line) = serde_json::to_vec(&Line::of(decision, Some(SystemClock::new().now()))) {
                line.push(b'\n');
                let _ = self.write(&line);
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

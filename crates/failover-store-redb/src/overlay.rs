//! The writes that are not committed yet, and the numbers that versions are made of.

use failover_store::{Value, Version, Versioned};
use failover_types::Timestamp;
use std::collections::BTreeMap;

/// How many version numbers one durable mark covers. A restart skips the rest of a block.
pub(crate) const BLOCK: u64 = 1 << 20;

/// One state of one key.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) version: Version,
    pub(crate) expires_at: Option<Timestamp>,
    /// `None`: deleted.
    pub(crate) value: Option<Value>,
}

impl Record {
    pub(crate) fn lapsed(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    pub(crate) fn live(self, now: Timestamp) -> Option<Versioned> {
        if self.lapsed(now) {
            return None;
        }
        self.value.map(|value| Versioned { version: self.version, value })
    }
}

#[derive(Debug)]
pub(crate) struct Overlay {
    pub(crate) pending: BTreeMap<String, Record>,
    next: u64,
    /// Durable: every number given out lies below.
    mark: u64,
}

impl Overlay {
    pub(crate) fn new(next: u64, mark: u64) -> Self {
        Self { pending: BTreeMap::new(), next, mark }
    }

    /// A number never given out before; `None` until a higher mark is durable.
    pub(crate) fn take_version(&mut self) -> Option<Version> {
        (self.next < self.mark).then(|| {
            self.next += 1;
            Version(self.next - 1)
        })
    }

    /// The mark to commit with the next batch, once half of the block is used.
    pub(crate) fn wanted_mark(&self) -> Option<u64> {
        (self.mark.saturating_sub(self.next) < BLOCK / 2).then(|| self.mark.saturating_add(BLOCK))
    }

    /// A batch is durable: what it held and nobody changed since is in the file now.
    pub(crate) fn committed(&mut self, batch: &BTreeMap<String, Record>, mark: Option<u64>) {
        for (key, record) in batch {
            if self.pending.get(key).is_some_and(|pending| pending.version == record.version) {
                self.pending.remove(key);
            }
        }
        self.mark = mark.unwrap_or(self.mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: u64) -> Record {
        Record { version: Version(version), expires_at: None, value: Some(Value::new([])) }
    }

    // spec: K-1
    #[test]
    fn numbers_stop_at_the_durable_mark() {
        let mut overlay = Overlay::new(1, 3);
        assert_eq!(overlay.take_version(), Some(Version(1)));
        assert_eq!(overlay.take_version(), Some(Version(2)));
        assert_eq!(overlay.take_version(), None);
        let mark = overlay.wanted_mark();
        overlay.committed(&BTreeMap::new(), mark);
        assert_eq!(overlay.take_version(), Some(Version(3)));
    }

    // spec: K-1
    #[test]
    fn a_write_that_came_during_a_commit_stays_pending() {
        let mut overlay = Overlay::new(1, BLOCK);
        overlay.pending.insert("a".to_owned(), record(1));
        overlay.pending.insert("b".to_owned(), record(2));
        let batch = overlay.pending.clone();
        overlay.pending.insert("b".to_owned(), record(3));
        overlay.committed(&batch, None);
        assert_eq!(overlay.pending.keys().collect::<Vec<_>>(), ["b"]);
    }
}

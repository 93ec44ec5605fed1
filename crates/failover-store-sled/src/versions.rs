//! Version numbers that never come back: one counter for all keys, and a durable mark above every number given
//! out. After a restart counting goes on from the mark, so neither a delete nor a lost soft write frees a number.

use failover_store::Version;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many numbers one mark covers. A restart skips the rest of a block; 2^64 numbers allow 2^44 restarts.
const BLOCK: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Versions {
    next: AtomicU64,
    mark: AtomicU64,
}

impl Versions {
    /// Goes on behind the mark that was found, `None` for a new store. Nothing can be given out before
    /// [`Versions::covered`] was told of a durable mark.
    pub(crate) fn behind(mark: Option<u64>) -> Self {
        let mark = mark.unwrap_or(1);
        Self { next: AtomicU64::new(mark), mark: AtomicU64::new(mark) }
    }

    /// A number never given out before; `None` until a higher mark is durable.
    pub(crate) fn take(&self) -> Option<Version> {
        // The counter stops at the mark, so it cannot run away while callers wait for a higher one.
        let below = |next: u64| (next < self.mark.load(Ordering::Acquire)).then(|| next.saturating_add(1));
        self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).ok().map(Version)
    }

    /// The mark to write with the next sync, once half of the block is used.
    pub(crate) fn wanted_mark(&self) -> Option<u64> {
        let (next, mark) = (self.next.load(Ordering::Acquire), self.mark.load(Ordering::Acquire));
        (mark.saturating_sub(next) < BLOCK / 2).then(|| mark.saturating_add(BLOCK))
    }

    /// The mark is durable now.
    pub(crate) fn covered(&self, mark: u64) {
        self.mark.fetch_max(mark, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: K-1
    #[test]
    fn nothing_is_given_out_above_a_durable_mark() {
        let versions = Versions::behind(None);
        assert_eq!(versions.take(), None);
        let mark = versions.wanted_mark().unwrap();
        versions.covered(mark);
        let given: Vec<Version> = std::iter::from_fn(|| versions.take()).collect();
        assert_eq!(u64::try_from(given.len()).unwrap(), BLOCK);
        assert_eq!(given.first(), Some(&Version(1)));
        assert!(given.last().unwrap().0 < mark);
        assert!(versions.wanted_mark().unwrap() > mark);
    }

    // spec: K-1
    #[test]
    fn a_restart_goes_on_above_all_that_was_given_out() {
        let before = Versions::behind(Some(500));
        before.covered(500 + BLOCK);
        let last = before.take().unwrap();
        let after = Versions::behind(Some(500 + BLOCK));
        after.covered(500 + 2 * BLOCK);
        assert!(after.take().unwrap() > last);
    }
}

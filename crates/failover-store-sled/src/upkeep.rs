//! What the committer does besides syncing: version marks, the trip wire against lost batches, the digest of a
//! clean close, and the sweep of what has lapsed.

use crate::committer::Chores;
use crate::disk::Disk;
use crate::guard::{self, corrupt, engine, from_sled};
use crate::record::Record;
use crate::store::Trees;
use crate::versions::Versions;
use failover_store::{StoreError, Value, Version};
use failover_types::{Clock, Timestamp};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Holds the version mark, in the tree `meta`. Meta keys begin with a byte that no caller's key contains.
pub(crate) const MARK: &[u8] = b"\0mark";
/// Holds the number of the last batch that was synced.
const BATCH: &[u8] = b"\0batch";
/// Hold the digest of all records, from an orderly close until the next open.
const KEYS: &[u8] = b"\0keys";
const STATES: &[u8] = b"\0states";
/// Records looked at by one step of the sweep: well below a millisecond.
const SWEEP_STEP: usize = 256;
/// A busy store sweeps once in so many batches, an idle one at each tick.
const SWEEP_EVERY: u64 = 64;

pub(crate) struct Upkeep {
    trees: Trees,
    pub(crate) versions: Arc<Versions>,
    clock: Arc<dyn Clock>,
    /// The mark that the sync under way makes durable.
    pending_mark: Option<u64>,
    batch: u64,
    /// Remembers outside of sled how far it was synced.
    acknowledged: File,
    /// Where the sweep goes on.
    cursor: Option<sled::IVec>,
}

impl Upkeep {
    /// Reads the counters, and compares what sled brought back with what was left. An engine that is opened anew goes
    /// on with the `versions` of the one before it.
    pub(crate) fn begin(
        dir: &Path,
        home: &Path,
        trees: &Trees,
        clock: Arc<dyn Clock>,
        versions: Option<Arc<Versions>>,
    ) -> Result<Self, StoreError> {
        let mut acknowledged =
            guard::private_file().open(home.join("acknowledged")).map_err(|e| engine(dir, e))?;
        let mut seen = [0; 8];
        let seen = match acknowledged.read_exact(&mut seen) {
            Ok(()) => u64::from_le_bytes(seen),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(e) => return Err(engine(dir, e)),
        };
        let number = |key| read_meta(dir, trees, key);
        let batch = number(BATCH)?.unwrap_or(0);
        if batch < seen {
            let what = format!("acknowledged writes are missing (batch {batch} found, {seen} expected)");
            return Err(corrupt(dir, &what));
        }
        // Reads every page, so that damage shows here and not in the middle of the work.
        let found = digest(trees).map_err(|e| from_sled(dir, e))?;
        let keys_differ = number(KEYS)?.is_some_and(|left| left != found.keys);
        let states_differ = number(STATES)?.is_some_and(|left| left != found.states);
        // A damaged record alone does not keep the store closed: whoever reads it will hear of it.
        if keys_differ || states_differ && found.damaged == 0 {
            return Err(corrupt(dir, "the records are not those that were there at the last close"));
        }
        let mark = number(MARK)?;
        let versions = versions.unwrap_or_else(|| Arc::new(Versions::behind(mark)));
        Ok(Self {
            trees: trees.clone(),
            versions,
            clock,
            pending_mark: None,
            batch,
            acknowledged,
            cursor: None,
        })
    }

    /// Makes the first version mark durable, before any number is given out.
    pub(crate) fn first_sync(&mut self, db: &sled::Db, log: &File, disk: &dyn Disk) -> io::Result<()> {
        self.trees.meta.remove(KEYS)?;
        self.trees.meta.remove(STATES)?;
        self.before_sync()?;
        db.flush()?;
        disk.sync(log)?;
        self.after_sync()
    }

    fn sweep_on(&mut self) {
        match sweep(&self.trees.records, self.clock.now(), self.cursor.take()) {
            Ok(cursor) => self.cursor = cursor,
            // The next write meets the same engine, and reports it to somebody who waits.
            Err(e) => tracing::debug!(error = %e, "lapsed records could not be swept"),
        }
    }
}

impl Chores for Upkeep {
    fn before_sync(&mut self) -> Result<(), sled::Error> {
        self.pending_mark = self.versions.wanted_mark();
        if let Some(mark) = self.pending_mark {
            write_meta(&self.trees, MARK, mark)?;
        }
        self.batch += 1;
        write_meta(&self.trees, BATCH, self.batch)
    }

    fn after_sync(&mut self) -> io::Result<()> {
        if let Some(mark) = self.pending_mark.take() {
            self.versions.covered(mark);
        }
        // Not synced itself: it may only ever lag behind, and then it warns less, never wrongly.
        self.acknowledged.rewind()?;
        self.acknowledged.write_all(&self.batch.to_le_bytes())?;
        if self.batch.is_multiple_of(SWEEP_EVERY) {
            self.sweep_on();
        }
        Ok(())
    }

    fn idle(&mut self) {
        self.sweep_on();
    }

    fn before_close(&mut self) -> Result<(), sled::Error> {
        let digest = digest(&self.trees)?;
        write_meta(&self.trees, KEYS, digest.keys)?;
        write_meta(&self.trees, STATES, digest.states)
    }
}

/// Removes what has lapsed among the next records behind `cursor`; gives back where to go on, `None` at the end.
/// Damaged records are left for the reader who meets them.
fn sweep(
    records: &sled::Tree,
    now: Timestamp,
    cursor: Option<sled::IVec>,
) -> Result<Option<sled::IVec>, sled::Error> {
    let from = cursor.map_or(Bound::Unbounded, Bound::Excluded);
    let mut last = None;
    for entry in records.range((from, Bound::Unbounded)).take(SWEEP_STEP) {
        let (key, bytes) = entry?;
        if Record::decode(&key, &bytes).is_ok_and(|record| record.lapsed(now)) {
            // A writer who was quicker keeps what it wrote.
            let _ = records.compare_and_swap(&key, Some(bytes), None::<&[u8]>)?;
        }
        last = Some(key);
    }
    Ok(last)
}

/// What all records add up to, in whatever order.
#[derive(Debug, Default)]
struct Digest {
    /// Altered by any missing or foreign key.
    keys: u64,
    /// Altered by any record in an older or newer state.
    states: u64,
    damaged: usize,
}

fn digest(trees: &Trees) -> Result<Digest, sled::Error> {
    let mut digest = Digest::default();
    for entry in &trees.records {
        let (key, bytes) = entry?;
        let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let hash = spread(u64::from(crc32fast::hash(&key)));
        digest.keys = digest.keys.wrapping_add(hash);
        match Record::decode(&key, &bytes) {
            Ok(record) => digest.states = digest.states.wrapping_add(spread(hash ^ record.version.0)),
            Err(_) => digest.damaged += 1,
        }
    }
    Ok(digest)
}

/// Numbers of our own are records like all others, so that a salvage finds them by the same road.
pub(crate) fn write_meta(trees: &Trees, key: &[u8], number: u64) -> Result<(), sled::Error> {
    let record =
        Record { key: key.to_vec(), version: Version(number), expires_at: None, value: Some(Value::new([])) };
    trees.meta.insert(key, record.encode()).map(|_| ())
}

fn read_meta(dir: &Path, trees: &Trees, key: &[u8]) -> Result<Option<u64>, StoreError> {
    let Some(bytes) = trees.meta.get(key).map_err(|e| from_sled(dir, e))? else { return Ok(None) };
    let record = Record::decode(key, &bytes);
    record
        .map(|record| Some(record.version.0))
        .map_err(|fault| corrupt(dir, &format!("a counter cannot be read: {}", fault.why())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> sled::Tree {
        let db = sled::Config::new().temporary(true).open().unwrap();
        db.open_tree("records").unwrap()
    }

    fn insert(tree: &sled::Tree, key: &str, expires_at: Option<u64>) {
        let record = Record {
            key: key.as_bytes().to_vec(),
            version: Version(1),
            expires_at: expires_at.map(Timestamp::from_millis),
            value: Some(Value::new([])),
        };
        tree.insert(key, record.encode()).unwrap();
    }

    // spec: K-5
    #[test]
    fn the_sweep_removes_what_has_lapsed_step_by_step_and_nothing_else() {
        let tree = tree();
        for number in 0..600 {
            insert(&tree, &format!("{number:04}"), (number % 2 == 0).then_some(10));
        }
        insert(&tree, "later", Some(11));
        tree.insert("damaged", b"junk").unwrap();
        let mut cursor = None;
        let mut steps = 0;
        loop {
            cursor = sweep(&tree, Timestamp::from_millis(10), cursor).unwrap();
            if cursor.is_none() {
                break;
            }
            steps += 1;
        }
        assert_eq!(steps, 3);
        assert_eq!(tree.len(), 302);
        assert!(tree.get("0001").unwrap().is_some() && tree.get("0002").unwrap().is_none());
    }
}

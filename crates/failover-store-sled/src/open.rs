//! Opening a state directory: rights, lock, engine, and the checks in between.

use crate::committer::{Chores, Committer};
use crate::disk::{Disk, SystemDisk, sync_names};
use crate::guard::{self, DirLock, engine};
use crate::record::Record;
use crate::store::{Inner, SledStore, Trees};
use crate::versions::Versions;
use failover_store::{MAX_VALUE_BYTES, StoreError, Value, Version};
use failover_types::Clock;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Holds the version mark, in the tree `meta`.
const MARK: &[u8] = b"\0mark";
/// Holds the number of the last batch that was synced, in the tree `meta`.
const BATCH: &[u8] = b"\0batch";
/// sled's page cache. Its default of a gigabyte is far above the needs of a few thousand small records.
const CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// Four megabytes. sled writes a tree node above a quarter of this into a file of its own, which it neither syncs
/// nor keeps until the node's successor is safe: a crash then loses the node. A node holds sixteen records and
/// seldom a few more, so with values of at most `MAX_VALUE_BYTES` it stays well below.
const SEGMENT_BYTES: usize = 4 * 1024 * 1024;
const _: () = assert!(30 * (MAX_VALUE_BYTES + 2048) < SEGMENT_BYTES / 4);
/// sled frees its own file lock a little after its handle is dropped: how often and how long we ask again.
const RELOCK: (u32, Duration) = (50, Duration::from_millis(10));

/// How to open a [`SledStore`].
#[derive(Clone)]
#[must_use = "nothing happens before `open`"]
pub struct SledOptions {
    dir: PathBuf,
    clock: Arc<dyn Clock>,
    disk: Arc<dyn Disk>,
    force: bool,
}

impl SledOptions {
    /// Options for the store in `dir`, which is made if it is missing. The clock decides when values lapse.
    pub fn new(dir: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self { dir: dir.into(), clock, disk: Arc::new(SystemDisk), force: false }
    }

    /// Opens even a directory that others can reach.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Syncs through `disk` instead of the system's own calls.
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the store. Does blocking I/O, for as long as sled needs to read its log.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] at once if another process (or another handle of this one) holds the directory;
    /// [`StoreError::Refused`] if others can reach it; [`StoreError::Corrupt`] if the files are damaged;
    /// [`StoreError::Engine`] for everything the disk says.
    pub fn open(&self) -> Result<SledStore, StoreError> {
        let dir = &self.dir;
        guard::make_private_dir(dir).map_err(|e| engine(dir, e))?;
        let home = dir.join("sled");
        let db_path = home.join("db");
        if !self.force {
            guard::check_private(dir, &[dir.join("lock"), db_path.clone()])?;
        }
        let lock = DirLock::take(dir)?;
        guard::make_private_dir(&home).map_err(|e| engine(dir, e))?;
        let log = guard::private_file().open(&db_path).map_err(|e| engine(dir, e))?;

        let db = open_engine(dir, &home)?;
        let trees = Trees::open(&db).map_err(|e| engine(dir, e))?;
        let mut chores = Housekeeping::prepare(dir, &home, &trees)?;
        let versions = Arc::clone(&chores.versions);
        chores.first_sync(&db, &log, &*self.disk).map_err(|e| engine(dir, e))?;
        sync_names(dir, &home).map_err(|e| engine(dir, e))?;
        guard::narrow_files(&home).map_err(|e| engine(dir, e))?;

        let committer = Committer::start(db, log, Arc::clone(&self.disk), Box::new(chores))
            .map_err(|e| engine(dir, e))?;
        Ok(SledStore::from_inner(Inner {
            place: self.dir.display().to_string(),
            committer,
            trees,
            versions,
            clock: Arc::clone(&self.clock),
            _lock: lock,
        }))
    }
}

/// sled answers some kinds of damage with an error and others with a panic: both are told as damage.
fn open_engine(dir: &Path, home: &Path) -> Result<sled::Db, StoreError> {
    let config = sled::Config::new()
        .path(home)
        .cache_capacity(CACHE_BYTES)
        .segment_size(SEGMENT_BYTES)
        .flush_every_ms(Some(500));
    let corrupt = |why: String| StoreError::Corrupt {
        place: dir.display().to_string(),
        why: format!(
            "{why}; nothing was changed, run `failover doctor --fix` to bring back what can be read"
        ),
    };
    let mut left = RELOCK.0;
    loop {
        match catch_unwind(AssertUnwindSafe(|| config.open())) {
            Ok(Ok(db)) => return Ok(db),
            Ok(Err(sled::Error::Io(e))) if left > 0 && e.to_string().contains("could not acquire lock") => {
                left -= 1;
                std::thread::sleep(RELOCK.1);
            }
            Ok(Err(sled::Error::Io(e))) if e.kind() != io::ErrorKind::InvalidData => {
                return Err(engine(dir, e));
            }
            Ok(Err(e)) => return Err(corrupt(e.to_string())),
            Err(_) => return Err(corrupt("the engine cannot read them".to_owned())),
        }
    }
}

/// What the committer does with each batch besides the writes themselves.
struct Housekeeping {
    trees: Trees,
    versions: Arc<Versions>,
    /// The mark that the sync under way makes durable.
    pending_mark: Option<u64>,
    batch: u64,
    /// Remembers outside of sled how far it was synced.
    acknowledged: File,
}

impl Housekeeping {
    fn prepare(dir: &Path, home: &Path, trees: &Trees) -> Result<Self, StoreError> {
        let path = home.join("acknowledged");
        let mut acknowledged = guard::private_file().open(&path).map_err(|e| engine(dir, e))?;
        let mut seen = [0; 8];
        let seen = match acknowledged.read_exact(&mut seen) {
            Ok(()) => u64::from_le_bytes(seen),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(e) => return Err(engine(dir, e)),
        };
        let batch = read_meta(trees, BATCH).map_err(|e| engine(dir, e))?.unwrap_or(0);
        if batch < seen {
            return Err(StoreError::Corrupt {
                place: dir.display().to_string(),
                why: format!(
                    "acknowledged writes are missing (batch {batch} found, {seen} expected); run `failover \
                     doctor --fix` to bring back what can be read"
                ),
            });
        }
        let mark = read_meta(trees, MARK).map_err(|e| engine(dir, e))?;
        Ok(Self {
            trees: trees.clone(),
            versions: Arc::new(Versions::behind(mark)),
            pending_mark: None,
            batch,
            acknowledged,
        })
    }

    /// Makes the first version mark and the new files themselves durable.
    fn first_sync(&mut self, db: &sled::Db, log: &File, disk: &dyn Disk) -> io::Result<()> {
        self.before_sync()?;
        db.flush()?;
        disk.sync(log)?;
        self.after_sync()?;
        Ok(())
    }
}

impl Chores for Housekeeping {
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
        self.acknowledged.write_all(&self.batch.to_le_bytes())
    }

    fn idle(&mut self) {}
}

/// Numbers of our own are records like all others, so that a salvage finds them by the same road.
fn write_meta(trees: &Trees, key: &[u8], number: u64) -> Result<(), sled::Error> {
    let record =
        Record { key: key.to_vec(), version: Version(number), expires_at: None, value: Some(Value::new([])) };
    trees.meta.insert(key, record.encode()).map(|_| ())
}

fn read_meta(trees: &Trees, key: &[u8]) -> Result<Option<u64>, sled::Error> {
    let Some(bytes) = trees.meta.get(key)? else { return Ok(None) };
    Record::decode(key, &bytes).map(|record| Some(record.version.0)).map_err(|fault| {
        sled::Error::ReportableBug(format!("the store's own counter is damaged: {}", fault.why()))
    })
}

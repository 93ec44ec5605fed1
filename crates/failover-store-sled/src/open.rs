//! Opening a state directory: rights, lock, engine, and the checks in between.

use crate::committer::Committer;
use crate::disk::{Disk, SystemDisk, sync_names};
use crate::engine::{Engine, EngineCell};
use crate::guard::{self, DirLock, corrupt, engine, from_sled};
use crate::mend::Mend;
use crate::store::{Inner, SledStore, Trees};
use crate::upkeep::Upkeep;
use failover_store::{Feed, MAX_VALUE_BYTES, StoreError};
use failover_types::Clock;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// sled's page cache. Its default of a gigabyte is far above the needs of a few thousand small records.
const CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// Four megabytes. sled writes a tree node above a quarter of this into a file of its own, which it neither syncs
/// nor keeps until the node's successor is safe: a crash then loses the node. A node holds sixteen records and
/// seldom a few more, so with values of at most `MAX_VALUE_BYTES` it stays well below.
const SEGMENT_BYTES: usize = 4 * 1024 * 1024;
const _: () = assert!(30 * (MAX_VALUE_BYTES + 2048) < SEGMENT_BYTES / 4);
/// Longest log that is copied before sled may cut it: copying more would make opening slow.
const COPY_UP_TO: u64 = 256 * 1024 * 1024;
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

    pub(crate) fn syncing(&self) -> &dyn Disk {
        &*self.disk
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
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

        keep_copy(&home, |from, to| fs::copy(from, to)).map_err(|e| engine(dir, e))?;
        let (db, trees, mut upkeep) = guarded(dir, || {
            let db = open_engine(dir, &home)?;
            let trees = Trees::open(&db).map_err(|e| from_sled(dir, e))?;
            let upkeep = Upkeep::begin(dir, &home, &trees, Arc::clone(&self.clock), None)?;
            Ok((db, trees, upkeep))
        })?;
        let versions = Arc::clone(&upkeep.versions);
        upkeep.first_sync(&db, &log, &*self.disk).map_err(|e| engine(dir, e))?;
        drop_copy(&home).map_err(|e| engine(dir, e))?;
        sync_names(dir, &home).map_err(|e| engine(dir, e))?;
        guard::narrow_files(&home).map_err(|e| engine(dir, e))?;

        let cell = Arc::new(EngineCell::new(Engine { db, trees }));
        let mend = Mend::new(self.clone(), Arc::clone(&cell), Arc::clone(&versions));
        let committer =
            Committer::start(Arc::clone(&cell), log, Arc::clone(&self.disk), Box::new(upkeep), mend)
                .map_err(|e| engine(dir, e))?;
        Ok(SledStore::from_inner(Inner {
            dir: self.dir.clone(),
            committer,
            cell,
            versions,
            clock: Arc::clone(&self.clock),
            feed: Feed::new(),
            _lock: lock,
        }))
    }
}

/// sled answers some kinds of damage with an error and others with a panic: both are told as damage.
pub(crate) fn guarded<T>(dir: &Path, open: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(open))
        .unwrap_or_else(|_| Err(corrupt(dir, "the engine cannot make sense of them")))
}

pub(crate) fn open_engine(dir: &Path, home: &Path) -> Result<sled::Db, StoreError> {
    let config = sled::Config::new()
        .path(home)
        .cache_capacity(CACHE_BYTES)
        .segment_size(SEGMENT_BYTES)
        .flush_every_ms(Some(500));
    let mut left = RELOCK.0;
    loop {
        match config.open() {
            Ok(db) => return Ok(db),
            Err(sled::Error::Io(e)) if left > 0 && e.to_string().contains("could not acquire lock") => {
                left -= 1;
                std::thread::sleep(RELOCK.1);
            }
            Err(e) => return Err(from_sled(dir, e)),
        }
    }
}

/// An engine and trees in a place that was just cleared. The caller holds the lock.
pub(crate) fn open_empty(dir: &Path) -> Result<(sled::Db, Trees), StoreError> {
    let home = dir.join("sled");
    guard::make_private_dir(&home).map_err(|e| engine(dir, e))?;
    guard::private_file().open(home.join("db")).map_err(|e| engine(dir, e))?;
    guarded(dir, || {
        let db = open_engine(dir, &home)?;
        let trees = Trees::open(&db).map_err(|e| from_sled(dir, e))?;
        Ok((db, trees))
    })
}

/// sled cuts off what it takes for a torn end as soon as it opens its log. Until the outcome is known to be good,
/// the log as it was is kept here, for a salvage. An older copy tells more than a newer one, and stays. Where the disk
/// has no room for it, the store opens without.
fn keep_copy(home: &Path, copied: impl FnOnce(&Path, &Path) -> io::Result<u64>) -> io::Result<()> {
    let (log, copy) = (home.join("db"), copy_path(home));
    let len = fs::metadata(&log)?.len();
    if len == 0 || len > COPY_UP_TO || copy.exists() {
        return Ok(());
    }
    // Under another name first: a copy that was cut short must not pass for a whole one.
    let unfinished = home.join("db.copying");
    match copied(&log, &unfinished).and_then(|_| fs::rename(&unfinished, copy)) {
        Ok(()) => Ok(()),
        Err(error) => {
            // What is left of it takes the room that the store needs.
            let left = fs::remove_file(&unfinished);
            if !matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                return Err(error);
            }
            tracing::warn!(place = %home.display(), %error, ?left, "the log is opened without a copy of it");
            Ok(())
        }
    }
}

fn drop_copy(home: &Path) -> io::Result<()> {
    match fs::remove_file(copy_path(home)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

pub(crate) fn copy_path(home: &Path) -> PathBuf {
    home.join("db.before")
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: A-25, K-2
    #[test]
    fn a_full_disk_gets_no_copy_and_keeps_nothing_of_it() {
        let home = tempfile::tempdir().unwrap();
        let db = home.path().join("db");
        fs::write(&db, "log").unwrap();
        let full = |_: &Path, to: &Path| {
            fs::write(to, "l")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        keep_copy(home.path(), full).unwrap();
        let left = || fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left().collect::<Vec<_>>(), ["db"]);
        let denied = |_: &Path, _: &Path| Err(io::ErrorKind::PermissionDenied.into());
        assert!(keep_copy(home.path(), denied).is_err());
        keep_copy(home.path(), |from, to| fs::copy(from, to)).unwrap();
        assert!(copy_path(home.path()).exists() && db.exists());
    }
}

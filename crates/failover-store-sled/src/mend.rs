//! The way back from a failed sync, while the store is open.
//!
//! What a failed sync left behind is not known: the system may have dropped the pages and call the next sync a success.
//! So the log is copied into a fresh file, which is synced and takes its place; sled is opened anew over it, with all
//! the checks of an ordinary open; and whatever the old engine still had in memory and the log has not is written again.

use crate::SledOptions;
use crate::committer::Chores;
use crate::engine::{Engine, EngineCell};
use crate::guard::{self, engine, from_sled};
use crate::open::{guarded, open_engine};
use crate::record::Record;
use crate::store::Trees;
use crate::upkeep::Upkeep;
use crate::versions::Versions;
use failover_store::StoreError;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Raw records of the engine before.
type Carried = Vec<(sled::IVec, sled::IVec)>;

pub(crate) struct Mend {
    options: SledOptions,
    cell: Arc<EngineCell>,
    versions: Arc<Versions>,
    /// What was in memory when the engine was taken out: it outlives a try that failed.
    carried: Carried,
}

impl Mend {
    pub(crate) fn new(options: SledOptions, cell: Arc<EngineCell>, versions: Arc<Versions>) -> Self {
        Self { options, cell, versions, carried: Carried::new() }
    }

    /// Whether the disk takes a file as long as the log; until it does, the old engine stays, and can be read.
    pub(crate) fn probe(&self) -> Result<(), StoreError> {
        let dir = self.options.dir();
        let home = dir.join("sled");
        copy_log(&home, &self.options).map_err(|e| engine(dir, e))
    }

    /// Opens the engine anew. Nobody but the cell may hold on to the old one.
    pub(crate) fn mend(&mut self) -> Result<(File, Box<dyn Chores>), StoreError> {
        let dir = self.options.dir().to_owned();
        let failed = |e| engine(&dir, e);
        if self.cell.get().is_some() {
            let Some(old) = self.cell.take() else {
                return Err(failed(io::Error::other("calls under way do not end")));
            };
            // As far as it can be read: an engine that has given up may not tell everything.
            self.carried = old.trees.records.iter().map_while(Result::ok).collect();
        }
        let home = dir.join("sled");
        write_anew(&home, &self.options).map_err(failed)?;
        let log = guard::private_file().open(home.join("db")).map_err(failed)?;
        let (db, trees, mut upkeep) = guarded(&dir, || {
            let db = open_engine(&dir, &home)?;
            let trees = Trees::open(&db).map_err(|e| from_sled(&dir, e))?;
            let versions = Some(Arc::clone(&self.versions));
            let upkeep = Upkeep::begin(&dir, &home, &trees, self.options.clock(), versions)?;
            Ok((db, trees, upkeep))
        })?;
        carry_over(&trees, &self.carried).map_err(|e| from_sled(&dir, e))?;
        upkeep.first_sync(&db, &log, self.options.syncing()).map_err(failed)?;
        self.carried.clear();
        self.cell.put(Arc::new(Engine { db, trees }));
        Ok((log, Box::new(upkeep)))
    }
}

const FRESH: &str = "db.fresh";

/// A synced copy of the log, beside it.
fn copy_log(home: &Path, options: &SledOptions) -> io::Result<()> {
    let fresh = home.join(FRESH);
    match fs::remove_file(&fresh) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut to = guard::private_file().open(&fresh)?;
    io::copy(&mut File::open(home.join("db"))?, &mut to)?;
    options.syncing().sync(&to)
}

/// Puts a synced copy in the place of the log: what was read of it is on the disk from then on.
fn write_anew(home: &Path, options: &SledOptions) -> io::Result<()> {
    copy_log(home, options)?;
    fs::rename(home.join(FRESH), home.join("db"))?;
    File::open(home)?.sync_all()
}

/// Writes what the log does not have, or has in an older state.
fn carry_over(trees: &Trees, carried: &Carried) -> Result<(), sled::Error> {
    for (key, bytes) in carried {
        let Ok(record) = Record::decode(key, bytes) else { continue };
        let stands = trees.records.get(key)?;
        let stands = stands.and_then(|bytes| Record::decode(key, &bytes).ok());
        if stands.is_none_or(|stands| stands.version < record.version) {
            trees.records.insert(key, bytes)?;
        }
    }
    Ok(())
}

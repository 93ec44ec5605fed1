//! How bytes become durable. sled's own `flush` writes, but does not wait for the disk on Linux.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The one call that decides whether an acknowledgement holds. Tests put a failing or a recording disk here.
pub trait Disk: Send + Sync {
    /// Returns once what was written to `file` before this call survives a power cut.
    ///
    /// # Errors
    ///
    /// Whatever the system says. The store takes no more writes after that: what a failed sync left behind is
    /// not known.
    fn sync(&self, path: &Path, file: &File) -> io::Result<()>;
}

/// The system's disk, through `fdatasync`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn sync(&self, _path: &Path, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// The files that sled writes to while it runs: `db`, and one file per oversized tree node in `blobs`.
pub(crate) struct Files {
    db: File,
    db_path: PathBuf,
    blobs: PathBuf,
    synced: BTreeSet<PathBuf>,
}

impl Files {
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let db_path = dir.join("db");
        let db = File::options().read(true).write(true).open(&db_path)?;
        Ok(Self { db, db_path, blobs: dir.join("blobs"), synced: BTreeSet::new() })
    }

    /// Blobs first: the log in `db` points at them.
    pub(crate) fn sync(&mut self, disk: &dyn Disk) -> io::Result<()> {
        let mut present = BTreeSet::new();
        for entry in fs::read_dir(&self.blobs)? {
            let path = entry?.path();
            if !self.synced.contains(&path) {
                match File::open(&path) {
                    Ok(file) => disk.sync(&path, &file)?,
                    // sled removes a blob once its node was rewritten.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(e),
                }
            }
            present.insert(path);
        }
        if present.difference(&self.synced).next().is_some() {
            disk.sync(&self.blobs, &File::open(&self.blobs)?)?;
        }
        self.synced = present;
        disk.sync(&self.db_path, &self.db)
    }
}

/// Makes the files of a fresh directory durable, and their names: new files and renames are entries of the
/// directories above them.
pub(crate) fn sync_names(dir: &Path, home: &Path) -> io::Result<()> {
    for entry in fs::read_dir(home)? {
        File::open(entry?.path())?.sync_all()?;
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    for dir in [Some(home), Some(dir), parent].into_iter().flatten() {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

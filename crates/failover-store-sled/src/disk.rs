//! How bytes become durable. sled's own `flush` writes, but does not wait for the disk on Linux.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The one call that decides whether an acknowledgement holds. Tests put a failing or a recording disk here.
pub trait Disk: Send + Sync {
    /// Returns once what was written to `file` before this call survives a power cut.
    ///
    /// # Errors
    ///
    /// Whatever the system says. The store takes no more writes then until it has written its files anew: what a
    /// failed sync left behind is not known, and the next sync may well say that all is well.
    fn sync(&self, file: &File) -> io::Result<()>;
}

/// The system's disk, through `fdatasync`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
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

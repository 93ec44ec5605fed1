//! Who may use the state directory: one process at a time, and nobody but its owner.

use failover_store::StoreError;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

/// Most bytes of a lock file that are shown as its holder.
const MAX_HOLDER_BYTES: u64 = 200;

/// Holds the directory for as long as it lives. Dropping it, or the death of the process, frees it.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Takes the lock without waiting.
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let place = dir.display().to_string();
        let path = lock_path(dir);
        let mut file = private_file().open(&path).map_err(|e| engine(dir, e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked { place, holder: holder(dir) }),
            Err(TryLockError::Error(e)) => return Err(engine(dir, e)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(|e| engine(dir, e))?;
        writeln!(file, "process {}{}", std::process::id(), program()).map_err(|e| engine(dir, e))?;
        Ok(Self { _file: file })
    }
}

/// Who holds the directory, as it wrote itself into the lock file.
pub(crate) fn holder(dir: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(lock_path(dir)).ok()?.take(MAX_HOLDER_BYTES).read_to_string(&mut text).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.chars().filter(|c| !c.is_control()).collect())
}

fn lock_path(dir: &Path) -> PathBuf {
    dir.join("lock")
}

/// `, failover` for the binary of that name; nothing where the system does not tell.
fn program() -> String {
    let name =
        std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.map(|name| format!(", {name}")).unwrap_or_default()
}

/// Opens or makes a file that only its owner can read.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    options.mode(0o600);
    options
}

/// Makes the directory if it is missing, readable by its owner only.
pub(crate) fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(dir)
}

/// Refuses a directory or a file of ours that others can reach.
#[cfg(unix)]
pub(crate) fn check_private(dir: &Path, files: &[PathBuf]) -> Result<(), StoreError> {
    let wide = |path: &Path, want: u32| -> Result<Option<String>, StoreError> {
        let mode = match fs::metadata(path) {
            Ok(meta) => meta.permissions().mode() & 0o777,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(engine(dir, e)),
        };
        Ok((mode & 0o077 != 0).then(|| {
            format!(
                "{} can be reached by others (mode {mode:03o}); run `failover doctor --fix`, or `chmod {want:o} {}`",
                path.display(),
                path.display()
            )
        }))
    };
    let place = dir.display().to_string();
    if let Some(why) = wide(dir, 0o700)? {
        return Err(StoreError::Refused { place, why });
    }
    for file in files {
        if let Some(why) = wide(file, 0o600)? {
            return Err(StoreError::Refused { place, why });
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn check_private(_dir: &Path, _files: &[PathBuf]) -> Result<(), StoreError> {
    Ok(())
}

/// Narrows the engine's own helper files, which it creates with the process's default mode inside our private
/// directory. Two levels are enough: the engine nests no deeper.
#[cfg(unix)]
pub(crate) fn narrow_files(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        let want = if meta.is_dir() { 0o700 } else { 0o600 };
        if meta.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(want))?;
        }
        if meta.is_dir() {
            narrow_files(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn narrow_files(_dir: &Path) -> io::Result<()> {
    Ok(())
}

pub(crate) fn engine(dir: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Engine { place: dir.display().to_string(), source: source.into() }
}

/// Damage to the files as a whole, with the way out.
pub(crate) fn corrupt(dir: &Path, what: &str) -> StoreError {
    StoreError::Corrupt {
        place: dir.display().to_string(),
        why: format!(
            "{what}; nothing is deleted, run `failover doctor --fix` to bring back what can be read"
        ),
    }
}

/// The disk's errors are the disk's; everything else that sled says means damage.
pub(crate) fn from_sled(dir: &Path, e: sled::Error) -> StoreError {
    match e {
        sled::Error::Io(e) if e.kind() == io::ErrorKind::InvalidData => corrupt(dir, &e.to_string()),
        sled::Error::Io(e) => engine(dir, e),
        e @ (sled::Error::Corruption { .. }
        | sled::Error::ReportableBug(_)
        | sled::Error::CollectionNotFound(_)
        | sled::Error::Unsupported(_)) => corrupt(dir, &e.to_string()),
    }
}

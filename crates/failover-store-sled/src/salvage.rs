//! The way back from damaged files: records are found in the raw bytes by their mark and checksum, without sled.

use crate::SledOptions;
use crate::guard::{self, DirLock, engine, from_sled};
use crate::open::{copy_path, open_empty};
use crate::record::{MAGIC, Record};
use crate::upkeep::{MARK, write_meta};
use failover_store::{Key, StoreError};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Version numbers skipped by a salvage: far more than one mark covers, should the mark itself be lost.
const SKIP: u64 = 1 << 32;

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// Records that were brought back.
    pub recovered: usize,
    /// Where the damaged files are kept. They hold secrets: delete them once nothing is missed.
    pub aside: PathBuf,
}

impl SledOptions {
    /// Sets the files aside and makes a new store of every record that can still be read in them, each in its newest
    /// readable state. For a store that does not open ([`StoreError::Corrupt`]); harmless for one that does. Nothing
    /// is deleted.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] while the store is open anywhere; otherwise as [`SledOptions::open`]. After an error the
    /// old files are in their place or in `sled.damaged-…` beside it.
    pub fn repair(&self) -> Result<Repair, StoreError> {
        let dir = self.dir();
        let failed = |e| engine(dir, e);
        guard::make_private_dir(dir).map_err(failed)?;
        let lock = DirLock::take(dir)?;
        let home = dir.join("sled");
        let found = read_raw(&home).map_err(failed)?;
        let aside = free_name(dir);
        match fs::rename(&home, &aside) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        let (db, trees) = open_empty(dir)?;
        let mut recovered = 0;
        let mut highest = 0;
        for (key, record) in found {
            highest = highest.max(record.version.0);
            let ours = std::str::from_utf8(&key).is_ok_and(|text| Key::from_stored(text).is_ok());
            if ours && record.value.is_some() {
                trees.records.insert(key, record.encode()).map_err(|e| from_sled(dir, e))?;
                recovered += 1;
            }
        }
        write_meta(&trees, MARK, highest.saturating_add(SKIP)).map_err(|e| from_sled(dir, e))?;
        db.flush().map_err(|e| from_sled(dir, e))?;
        drop((trees, db, lock));
        // An ordinary open checks and syncs what was made.
        drop(self.open()?);
        Ok(Repair { recovered, aside })
    }
}

/// The newest readable record of each key, deletes and counters among them.
fn read_raw(home: &Path) -> io::Result<BTreeMap<Vec<u8>, Record>> {
    let mut newest: BTreeMap<Vec<u8>, Record> = BTreeMap::new();
    // The copy was made before sled itself looked at the damage, and shredded what it took for a torn end.
    for path in [copy_path(home), home.join("db")] {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        for record in records_in(&bytes) {
            if newest.get(&record.key).is_none_or(|known| known.version < record.version) {
                newest.insert(record.key.clone(), record);
            }
        }
    }
    Ok(newest)
}

fn records_in(bytes: &[u8]) -> impl Iterator<Item = Record> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(at..)?;
            at += rest.windows(MAGIC.len()).position(|window| window == MAGIC)?;
            match Record::decode_front(bytes.get(at..)?) {
                Ok((record, len)) => {
                    at += len;
                    return Some(record);
                }
                Err(_) => at += 1,
            }
        }
    })
}

fn free_name(dir: &Path) -> PathBuf {
    let mut names = (1_u32..).map(|number| dir.join(format!("sled.damaged-{number}")));
    names.find(|path| !path.exists()).unwrap_or_else(|| dir.join("sled.damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover_store::{Value, Version};

    // spec: K-2
    #[test]
    fn records_are_found_among_junk_and_broken_ones() {
        let record = |key: &str| Record {
            key: key.as_bytes().to_vec(),
            version: Version(3),
            expires_at: None,
            value: Some(Value::new(*b"v")),
        };
        let (one, two) = (record("one"), record("two"));
        let mut broken = record("broken").encode();
        broken.pop();
        let bytes =
            [b"junk FoR", &MAGIC[..], &one.encode(), &broken, b"\0", &two.encode(), &MAGIC[..2]].concat();
        assert_eq!(records_in(&bytes).collect::<Vec<_>>(), [one, two]);
    }
}

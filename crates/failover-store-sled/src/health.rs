//! What `failover doctor` asks of an open store.

use crate::SledStore;
use crate::record::Record;
use failover_store::StoreError;

/// The state of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Records that count.
    pub live: usize,
    /// Records that have lapsed or were deleted, and wait for the sweep.
    pub lapsed: usize,
    /// Keys of damaged records that nobody has met yet, with what is wrong.
    pub damaged: Vec<(String, &'static str)>,
    /// Keys of damaged records that were set aside.
    pub quarantined: Vec<String>,
    /// Bytes on the disk.
    pub bytes: u64,
}

impl SledStore {
    /// Looks at every record, and changes none. Takes a few microseconds for each.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] where sled cannot read its files.
    pub fn health(&self) -> Result<Health, StoreError> {
        let inner = self.inner();
        let engine = inner.engine()?;
        let bytes = engine.db.size_on_disk().map_err(|e| inner.broken(e))?;
        let mut health = Health { bytes, ..Health::default() };
        let now = inner.now();
        for entry in &engine.trees.records {
            let (key, bytes) = entry.map_err(|e| inner.broken(e))?;
            match Record::decode(&key, &bytes) {
                Ok(record) if record.clone().live(now).is_some() => health.live += 1,
                Ok(_) => health.lapsed += 1,
                Err(fault) => health.damaged.push((String::from_utf8_lossy(&key).into_owned(), fault.why())),
            }
        }
        for key in engine.trees.quarantine.iter().keys() {
            let key = key.map_err(|e| inner.broken(e))?;
            health.quarantined.push(String::from_utf8_lossy(&key).into_owned());
        }
        Ok(health)
    }
}

//! The thread that commits: everything pending in one transaction, for everyone who waits.

use crate::overlay::{Overlay, Record};
use failover_types::Clock;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Key to version, expiry (`u64::MAX`: none) and value.
pub(crate) const RECORDS: TableDefinition<'_, &str, (u64, u64, &[u8])> = TableDefinition::new("records");
/// Our own counters.
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(crate) const MARK: &str = "mark";
/// Soft writes are committed this often: below the half second that the contract lets them lose.
const TICK: Duration = Duration::from_millis(400);
/// Records looked at by one step of the sweep.
const SWEEP_STEP: usize = 256;

pub(crate) type Failure = Arc<str>;
pub(crate) type Waiter = oneshot::Sender<Result<(), Failure>>;

/// What the store and its thread share.
pub(crate) struct Shared {
    pub(crate) db: Database,
    overlay: Mutex<Overlay>,
    /// Why writes are no longer taken: what a failed commit left behind is not known.
    pub(crate) failed: OnceLock<Failure>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Shared {
    pub(crate) fn new(db: Database, overlay: Overlay, clock: Arc<dyn Clock>) -> Self {
        Self { db, overlay: Mutex::new(overlay), failed: OnceLock::new(), clock }
    }

    /// Each change of the overlay is one step, so a panic elsewhere cannot leave it half changed.
    pub(crate) fn overlay(&self) -> MutexGuard<'_, Overlay> {
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until the store is dropped, and commits what is left.
    pub(crate) fn commit_for_ever(&self, waiting: &Receiver<Waiter>) {
        let mut cursor: Option<String> = None;
        loop {
            match waiting.recv_timeout(TICK) {
                Ok(first) => {
                    let waiters: Vec<Waiter> = std::iter::once(first).chain(waiting.try_iter()).collect();
                    let outcome = self.commit();
                    for waiter in waiters {
                        // A waiter that went away has dropped its swap.
                        let _ = waiter.send(outcome.clone());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    // A failure is kept, and told to the next writer.
                    let _ = self.commit();
                    cursor = self.sweep(cursor.as_deref()).unwrap_or(None);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let _ = self.commit();
                    return;
                }
            }
        }
    }

    fn commit(&self) -> Result<(), Failure> {
        if let Some(failure) = self.failed.get() {
            return Err(Arc::clone(failure));
        }
        let (batch, mark) = {
            let overlay = self.overlay();
            (overlay.pending.clone(), overlay.wanted_mark())
        };
        if batch.is_empty() && mark.is_none() {
            return Ok(());
        }
        match write(&self.db, &batch, mark) {
            Ok(()) => {
                self.overlay().committed(&batch, mark);
                Ok(())
            }
            Err(e) => {
                let failure = format!("the disk did not take a write: {e}; free or mend it, then restart");
                Err(Arc::clone(self.failed.get_or_init(|| failure.into())))
            }
        }
    }

    /// Marks what has lapsed among the next records as deleted, for the next commit; says where to go on.
    fn sweep(&self, cursor: Option<&str>) -> Result<Option<String>, redb::Error> {
        let now = self.clock.now();
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        let from = cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let mut last = None;
        for entry in table.range::<&str>((from, Bound::Unbounded))?.take(SWEEP_STEP) {
            let (key, stored) = entry?;
            let record = decode(stored.value());
            last = Some(key.value().to_owned());
            if record.lapsed(now) {
                let mut overlay = self.overlay();
                // A pending write is newer than what was read; it cannot go unnoticed under the lock.
                if !overlay.pending.contains_key(key.value())
                    && let Some(version) = overlay.take_version()
                {
                    let gone = Record { version, expires_at: None, value: None };
                    overlay.pending.insert(key.value().to_owned(), gone);
                }
            }
        }
        Ok(last)
    }
}

pub(crate) fn decode((version, expires_at, value): (u64, u64, &[u8])) -> Record {
    Record {
        version: failover_store::Version(version),
        expires_at: (expires_at != u64::MAX).then(|| failover_types::Timestamp::from_millis(expires_at)),
        value: Some(failover_store::Value::new(value)),
    }
}

/// One transaction; redb syncs the file before it says that it is done.
pub(crate) fn write(
    db: &Database,
    batch: &BTreeMap<String, Record>,
    mark: Option<u64>,
) -> Result<(), redb::Error> {
    let mut transaction = db.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    {
        let mut records = transaction.open_table(RECORDS)?;
        for (key, record) in batch {
            match &record.value {
                Some(value) => {
                    let expires_at = record.expires_at.map_or(u64::MAX, failover_types::Timestamp::as_millis);
                    records.insert(key.as_str(), (record.version.0, expires_at, value.as_bytes()))?;
                }
                None => {
                    records.remove(key.as_str())?;
                }
            }
        }
        let mut meta = transaction.open_table(META)?;
        if let Some(mark) = mark {
            meta.insert(MARK, mark)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

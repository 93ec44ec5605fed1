//! The thread that commits: everything pending in one transaction, for everyone who waits.

use crate::overlay::{Overlay, Record};
use failover_types::Clock;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::oneshot;

/// Key to version, expiry (`u64::MAX`: none) and value.
pub(crate) const RECORDS: TableDefinition<'_, &str, (u64, u64, &[u8])> = TableDefinition::new("records");
/// Our own counters.
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(crate) const MARK: &str = "mark";
/// Soft writes are committed this often: below the half second that the contract lets them lose.
const TICK: Duration = Duration::from_millis(400);
/// Told while the database is opened anew.
pub(crate) const REOPENING: &str = "its file is being opened anew; try again";
/// Records looked at by one step of the sweep.
const SWEEP_STEP: usize = 256;

pub(crate) type Failure = Arc<str>;
pub(crate) type Waiter = oneshot::Sender<Result<(), Failure>>;

/// Opens the database, also once more after it broke.
pub(crate) type Open = Box<dyn Fn() -> Result<Database, redb::DatabaseError> + Send + Sync>;

/// What the store and its thread share.
pub(crate) struct Shared {
    /// Nothing while it is opened anew.
    db: RwLock<Option<Arc<Database>>>,
    open: Open,
    overlay: Mutex<Overlay>,
    /// Why writes are not taken: redb refuses everything after a failed commit, until it is opened anew.
    failed: Mutex<Option<Failure>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Shared {
    pub(crate) fn new(db: Database, open: Open, overlay: Overlay, clock: Arc<dyn Clock>) -> Self {
        let db = RwLock::new(Some(Arc::new(db)));
        Self { db, open, overlay: Mutex::new(overlay), failed: Mutex::new(None), clock }
    }

    /// Each change of the overlay is one step, so a panic elsewhere cannot leave it half changed.
    pub(crate) fn overlay(&self) -> MutexGuard<'_, Overlay> {
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database, for one call.
    pub(crate) fn db(&self) -> Option<Arc<Database>> {
        self.db.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put_db(&self, db: Option<Database>) {
        *self.db.write().unwrap_or_else(PoisonError::into_inner) = db.map(Arc::new);
    }

    /// Why writes are not taken now.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put_failure(&self, failure: Option<Failure>) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failure;
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
                Err(RecvTimeoutError::Timeout) if self.failure().is_some() => self.mend(),
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
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let Some(db) = self.db() else { return Err(REOPENING.into()) };
        self.commit_to(&db).map_err(|e| {
            let why = format!(
                "the disk did not take a write: {e}; free or mend it: it is tried again every second"
            );
            let failure: Failure = why.into();
            tracing::warn!(why = %failure, "the store takes no writes until it is mended");
            self.put_failure(Some(Arc::clone(&failure)));
            failure
        })
    }

    fn commit_to(&self, db: &Database) -> Result<(), redb::Error> {
        let (batch, mark) = {
            let overlay = self.overlay();
            (overlay.pending.clone(), overlay.wanted_mark())
        };
        if !batch.is_empty() || mark.is_some() {
            write(db, &batch, mark)?;
            self.overlay().committed(&batch, mark);
        }
        Ok(())
    }

    /// Opens the database anew and commits what is pending: all that was written before it broke and since.
    fn mend(&self) {
        // A reader may hold the old one for a moment; the file cannot be opened before it is gone.
        self.put_db(None);
        let mended = (self.open)().map_err(redb::Error::from).and_then(|db| {
            self.commit_to(&db)?;
            Ok(db)
        });
        match mended {
            Ok(db) => {
                self.put_db(Some(db));
                self.put_failure(None);
                tracing::warn!("the store takes writes again; nothing that was in memory is lost");
            }
            Err(error) => tracing::debug!(%error, "the store cannot be mended yet"),
        }
    }

    /// Marks what has lapsed among the next records as deleted, for the next commit; says where to go on.
    fn sweep(&self, cursor: Option<&str>) -> Result<Option<String>, redb::Error> {
        let now = self.clock.now();
        let Some(db) = self.db() else { return Ok(None) };
        let table = db.begin_read()?.open_table(RECORDS)?;
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

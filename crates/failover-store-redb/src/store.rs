//! The store: reads through the overlay into redb, swaps under the overlay's lock.

use crate::commit::{Failure, MARK, META, Open, RECORDS, REOPENING, Shared, Waiter, decode, write};
use crate::overlay::{BLOCK, Overlay, Record};
use async_trait::async_trait;
use failover_store::{
    ChangeStream, Durability, Expect, Feed, Key, KeyValue, MAX_SCAN, Prefix, StoreError, Swap, Value,
    Versioned, WriteOptions,
};
use failover_types::{Clock, Timestamp};
use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, StorageBackend};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

/// The store on redb. Clones share one file; it is free again when the last one is dropped.
#[derive(Clone)]
pub struct RedbStore {
    inner: Arc<Inner>,
}

struct Inner {
    place: String,
    feed: Feed,
    shared: Arc<Shared>,
    /// Taken when the store is dropped, which ends the thread.
    waiting: Option<Sender<Waiter>>,
    thread: Option<JoinHandle<()>>,
}

impl RedbStore {
    /// Opens the store in `dir`, which is made if it is missing. Does blocking I/O. The clock decides when values
    /// lapse.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] if the file is open already; [`StoreError::Refused`] if others can reach it;
    /// [`StoreError::Engine`] for everything that redb or the disk says.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let place = dir.display().to_string();
        let disk = |e: std::io::Error| engine(&place, e);
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        builder.mode(0o700);
        builder.create(dir).map_err(disk)?;
        let path = dir.join("failover.redb");
        let file = open_file(&path).map_err(disk)?;
        for path in [dir, &path] {
            check_private(path, &place)?;
        }
        drop(file);
        let open: Open = Box::new(move || {
            let backend = FileBackend::new(open_file(&path).map_err(redb::StorageError::from)?)?;
            Database::builder().create_with_backend(backend)
        });
        Self::start(open, place, clock)
    }

    /// A store on any backend of redb: in memory, or one that fails in tests. `place` names it in errors. `backend` is
    /// asked for it again when it broke, and gives one with the same content.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] for everything that redb or the backend says.
    pub fn on_backend<B: StorageBackend>(
        backend: impl Fn() -> B + Send + Sync + 'static,
        place: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let open: Open = Box::new(move || Database::builder().create_with_backend(backend()));
        Self::start(open, place.to_owned(), clock)
    }

    fn start(open: Open, place: String, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let db = open().map_err(|e| {
            if matches!(e, redb::DatabaseError::DatabaseAlreadyOpen) {
                StoreError::Locked { place: place.clone(), holder: None }
            } else {
                engine(&place, e)
            }
        })?;
        let found = first_mark(&db).map_err(|e| engine(&place, e))?;
        // Makes the tables as well, so that a read never meets a missing one.
        write(&db, &BTreeMap::new(), Some(found.saturating_add(BLOCK))).map_err(|e| engine(&place, e))?;
        let overlay = Overlay::new(found, found.saturating_add(BLOCK));
        let shared = Arc::new(Shared::new(db, open, overlay, clock));
        let (waiting, queue) = channel();
        let thread = {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("failover-store-commit".into());
            thread.spawn(move || shared.commit_for_ever(&queue)).map_err(|e| engine(&place, e))?
        };
        let inner = Inner { place, feed: Feed::new(), shared, waiting: Some(waiting), thread: Some(thread) };
        Ok(Self { inner: Arc::new(inner) })
    }
}

fn open_file(path: &Path) -> std::io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    options.mode(0o600);
    options.open(path)
}

/// Where version numbers go on.
fn first_mark(db: &Database) -> Result<u64, redb::Error> {
    match db.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get(MARK)?.map_or(1, |mark| mark.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(1),
        Err(e) => Err(e.into()),
    }
}

#[cfg(unix)]
fn check_private(path: &Path, place: &str) -> Result<(), StoreError> {
    let meta = fs::metadata(path).map_err(|e| engine(place, e))?;
    let (mode, want) = (meta.permissions().mode() & 0o777, if meta.is_dir() { 0o700 } else { 0o600 });
    if mode & !want == 0 {
        return Ok(());
    }
    let path = path.display();
    let why = format!("{path} can be reached by others (mode {mode:03o}); run `chmod {want:o} {path}`");
    Err(StoreError::Refused { place: place.to_owned(), why })
}

#[cfg(not(unix))]
fn check_private(_path: &Path, _place: &str) -> Result<(), StoreError> {
    Ok(())
}

fn engine(place: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Engine { place: place.to_owned(), source: source.into() }
}

impl Drop for Inner {
    /// Lets the thread commit what is left.
    fn drop(&mut self) {
        self.waiting = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was heard by everyone who waited.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedbStore({})", self.inner.place)
    }
}

impl Inner {
    fn engine(&self, e: impl Into<redb::Error>) -> StoreError {
        engine(&self.place, e.into())
    }

    fn unavailable(&self, why: &Failure) -> StoreError {
        StoreError::Unavailable { place: self.place.clone(), why: why.to_string() }
    }

    fn db(&self) -> Result<Arc<Database>, StoreError> {
        let failure = || self.shared.failure().unwrap_or_else(|| REOPENING.into());
        self.shared.db().ok_or_else(|| self.unavailable(&failure()))
    }

    fn committed(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let look = |db: &Database| -> Result<Option<Record>, redb::Error> {
            let table = db.begin_read()?.open_table(RECORDS)?;
            Ok(table.get(key)?.map(|stored| decode(stored.value())))
        };
        look(&*self.db()?).map_err(|e| self.engine(e))
    }

    /// Returns once everything applied before this call is durable.
    async fn durable(&self) -> Result<(), StoreError> {
        let (waiter, done) = oneshot::channel();
        let sent = self.waiting.as_ref().is_some_and(|waiting| waiting.send(waiter).is_ok());
        let outcome = if sent { done.await.ok() } else { None };
        outcome
            .unwrap_or_else(|| Err("its writer thread is gone; restart the process".into()))
            .map_err(|failure| self.unavailable(&failure))
    }

    /// `None` where no version number is left below the durable mark.
    fn try_swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<&Value>,
        write: WriteOptions,
    ) -> Result<Option<Swap>, StoreError> {
        let mut overlay = self.shared.overlay();
        let record = match overlay.pending.get(key.as_str()) {
            Some(pending) => Some(pending.clone()),
            None => self.committed(key.as_str())?,
        };
        let current = record.and_then(|record| record.live(self.shared.clock.now()));
        if !expect.met_by(current.as_ref().map(|current| current.version)) {
            return Ok(Some(Swap::Lost(current)));
        }
        if next.is_none() && current.is_none() {
            return Ok(Some(Swap::Done(None)));
        }
        let Some(version) = overlay.take_version() else { return Ok(None) };
        let record = Record { version, expires_at: write.expires_at, value: next.cloned() };
        // Told under the lock, so that two writers are told in the order in which they wrote.
        self.feed.tell(key, record.clone().live(Timestamp::ZERO).as_ref());
        overlay.pending.insert(key.to_string(), record);
        Ok(Some(Swap::Done(next.is_some().then_some(version))))
    }
}

#[async_trait]
impl KeyValue for RedbStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let store = &self.inner;
        let pending = store.shared.overlay().pending.get(key.as_str()).cloned();
        let record = match pending {
            Some(pending) => Some(pending),
            // What left the overlay in between was committed before.
            None => store.committed(key.as_str())?,
        };
        Ok(record.and_then(|record| record.live(store.shared.clock.now())))
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        let store = &self.inner;
        if let Some(value) = &next {
            value.check_size(key)?;
        }
        loop {
            if let Some(failure) = store.shared.failure() {
                return Err(store.unavailable(&failure));
            }
            let Some(swap) = store.try_swap(key, expect, next.as_ref(), write)? else {
                store.durable().await?;
                continue;
            };
            if matches!(swap, Swap::Done(_)) && matches!(write.durability, Durability::Durable) {
                store.durable().await?;
            }
            return Ok(swap);
        }
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        let store = &self.inner;
        let (limit, now) = (limit.min(MAX_SCAN), store.shared.clock.now());
        let from = match after {
            Some(key) if key.as_str() >= prefix.as_str() => Bound::Excluded(key.as_str()),
            _ => Bound::Included(prefix.as_str()),
        };
        // One moment for both: what is not in the one is in the other.
        let (mut pending, table) = {
            let overlay = store.shared.overlay();
            let pending: BTreeMap<String, Record> = overlay
                .pending
                .range::<str, _>((from, Bound::Unbounded))
                .take_while(|(key, _)| key.starts_with(prefix.as_str()))
                .map(|(key, record)| (key.clone(), record.clone()))
                .collect();
            let read = store.db()?.begin_read().map_err(|e| store.engine(e))?;
            (pending, read.open_table(RECORDS).map_err(|e| store.engine(e))?)
        };
        let mut found = Vec::new();
        let mut add = |key: &str, record: Record| -> Result<bool, StoreError> {
            if let Some(current) = record.live(now) {
                let damaged = |e: failover_store::KeyError| StoreError::Damaged {
                    key: key.to_owned(),
                    why: e.to_string(),
                };
                found.push((Key::from_stored(key).map_err(damaged)?, current));
            }
            Ok(found.len() >= limit)
        };
        if limit == 0 {
            return Ok(Vec::new());
        }
        let rows = table.range::<&str>((from, Bound::Unbounded)).map_err(|e| store.engine(e))?;
        for row in rows {
            let (key, stored) = row.map_err(|e| store.engine(e))?;
            let key = key.value();
            if !key.starts_with(prefix.as_str()) {
                break;
            }
            while let Some(entry) = pending.first_entry()
                && entry.key().as_str() < key
            {
                let (key, record) = entry.remove_entry();
                if add(&key, record)? {
                    return Ok(found);
                }
            }
            let record = pending.remove(key).unwrap_or_else(|| decode(stored.value()));
            if add(key, record)? {
                return Ok(found);
            }
        }
        for (key, record) in pending {
            if add(&key, record)? {
                break;
            }
        }
        Ok(found)
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        Ok(Some(self.inner.feed.listen(prefix)))
    }
}

//! One thread that makes writes durable: one flush and one `fdatasync` serve everyone who waits.

use crate::disk::Disk;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Soft writes reach the disk this often. Below the half second that the contract lets them lose.
const TICK: Duration = Duration::from_millis(400);

/// Why writes are no longer taken. Shared, because every waiter of a failed batch hears it.
pub(crate) type Failure = Arc<str>;

type Waiter = oneshot::Sender<Result<(), Failure>>;

/// What the committer thread does besides syncing.
pub(crate) trait Chores: Send {
    /// Runs before each sync: what is written here becomes durable with the batch.
    fn before_sync(&mut self) -> Result<(), sled::Error>;
    /// Runs after each sync that went well.
    fn after_sync(&mut self) -> std::io::Result<()>;
    /// Runs now and then, while nobody waits.
    fn idle(&mut self);
    /// Runs before the last sync, when no more writes can come.
    fn before_close(&mut self) -> Result<(), sled::Error>;
}

pub(crate) struct Committer {
    /// Taken when the store is dropped, which ends the thread.
    queue: Option<Sender<Waiter>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Soft writes since the last sync.
    dirty: AtomicBool,
    failed: OnceLock<Failure>,
}

impl Committer {
    pub(crate) fn start(
        db: sled::Db,
        log: File,
        disk: Arc<dyn Disk>,
        chores: Box<dyn Chores>,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = channel();
        let shared = Arc::new(Shared::default());
        let mut worker = Worker { db, log, disk, chores, shared: Arc::clone(&shared) };
        let thread = std::thread::Builder::new()
            .name("failover-store-commit".into())
            .spawn(move || worker.run(&waiting))?;
        Ok(Self { queue: Some(queue), shared, thread: Some(thread) })
    }

    /// Returns once everything applied before this call is durable.
    pub(crate) async fn durable(&self) -> Result<(), Failure> {
        let (waiter, done) = oneshot::channel();
        let sent = self.queue.as_ref().is_some_and(|queue| queue.send(waiter).is_ok());
        let gone =
            || self.failure().unwrap_or_else(|| "its writer thread is gone; restart the process".into());
        if !sent {
            return Err(gone());
        }
        done.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Notes a soft write: it becomes durable with the next batch or tick.
    pub(crate) fn soft(&self) {
        self.shared.dirty.store(true, Ordering::Release);
    }

    /// Why writes are refused, once a sync has failed.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.shared.failed.get().cloned()
    }
}

impl Drop for Committer {
    /// Lets the thread finish its last sync.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic in the engine was heard by everyone who waited for it.
            let _ = thread.join();
        }
    }
}

struct Worker {
    db: sled::Db,
    /// sled's log, the only file that it writes while it runs.
    log: File,
    disk: Arc<dyn Disk>,
    chores: Box<dyn Chores>,
    shared: Arc<Shared>,
}

impl Worker {
    fn run(&mut self, waiting: &Receiver<Waiter>) {
        loop {
            match waiting.recv_timeout(TICK) {
                Ok(first) => {
                    let batch: Vec<Waiter> = std::iter::once(first).chain(waiting.try_iter()).collect();
                    let outcome = self.sync();
                    for waiter in batch {
                        // A waiter that went away has dropped its swap.
                        let _ = waiter.send(outcome.clone());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.shared.dirty.load(Ordering::Acquire) {
                        // A failure is kept, and refuses all later writes.
                        let _ = self.sync();
                    } else if self.shared.failed.get().is_none() {
                        self.chores.idle();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // Without the chores of a clean close the next open only checks less.
                    let _ = self.chores.before_close();
                    let _ = self.sync();
                    return;
                }
            }
        }
    }

    fn sync(&mut self) -> Result<(), Failure> {
        if let Some(failure) = self.shared.failed.get() {
            return Err(Arc::clone(failure));
        }
        self.shared.dirty.store(false, Ordering::Release);
        self.try_sync().map_err(|why| Arc::clone(self.shared.failed.get_or_init(|| why)))
    }

    fn try_sync(&mut self) -> Result<(), Failure> {
        let engine = |e: sled::Error| Failure::from(format!("a write could not be completed: {e}"));
        self.chores.before_sync().map_err(engine)?;
        self.db.flush().map_err(engine)?;
        self.disk
            .sync(&self.log)
            .and_then(|()| self.chores.after_sync())
            .map_err(|e| format!("the disk did not take a write: {e}; free or mend it, then restart").into())
    }
}

//! One thread that makes writes durable: one flush and one `fdatasync` serve everyone who waits.

use crate::disk::Disk;
use crate::engine::EngineCell;
use crate::mend::Mend;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Soft writes reach the disk this often. Below the half second that the contract lets them lose.
const TICK: Duration = Duration::from_millis(400);

/// Those who waited for the last sync mostly come back at once. Without waiting this long for the next of them, the
/// first has a sync of its own, and half of the syncs serve one writer. A sync takes 100 µs and more.
const GATHER: Duration = Duration::from_micros(100);

/// A store that broke is mended at the tick after, and then at every so-many-th.
const MEND_EVERY: u32 = 2;

/// Why writes are not taken now. Shared, because every waiter of a failed batch hears it.
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
    failed: Mutex<Option<Failure>>,
}

impl Shared {
    /// A change is one step, so a poisoned lock is still good.
    fn failed(&self) -> std::sync::MutexGuard<'_, Option<Failure>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Committer {
    pub(crate) fn start(
        cell: Arc<EngineCell>,
        log: File,
        disk: Arc<dyn Disk>,
        chores: Box<dyn Chores>,
        mend: Mend,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = channel();
        let shared = Arc::new(Shared::default());
        let mut worker =
            Worker { cell, log, disk, chores: Some(chores), mend, ticks: 0, shared: Arc::clone(&shared) };
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

    /// Why writes are refused, from a sync that failed until the store is mended.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.shared.failed().clone()
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
    cell: Arc<EngineCell>,
    /// sled's log, the only file that it writes while it runs.
    log: File,
    disk: Arc<dyn Disk>,
    /// Nothing while the engine is being opened anew: they hold on to it.
    chores: Option<Box<dyn Chores>>,
    mend: Mend,
    /// Ticks since the store broke.
    ticks: u32,
    shared: Arc<Shared>,
}

impl Worker {
    fn run(&mut self, waiting: &Receiver<Waiter>) {
        // How many the last sync served.
        let mut served = 1;
        loop {
            match waiting.recv_timeout(TICK) {
                Ok(first) => {
                    let batch = gather(first, waiting, served);
                    served = batch.len();
                    let outcome = self.sync();
                    for waiter in batch {
                        // A waiter that went away has dropped its swap.
                        let _ = waiter.send(outcome.clone());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.shared.failed().is_some() {
                        if self.ticks.is_multiple_of(MEND_EVERY) {
                            self.try_to_mend();
                        }
                        self.ticks = self.ticks.wrapping_add(1);
                    } else if self.shared.dirty.load(Ordering::Acquire) {
                        // A failure is kept, and refuses all writes until the store is mended.
                        let _ = self.sync();
                    } else if let Some(chores) = &mut self.chores {
                        chores.idle();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // Without the chores of a clean close the next open only checks less.
                    let _ = self.chores.as_mut().map(|chores| chores.before_close());
                    let _ = self.sync();
                    return;
                }
            }
        }
    }

    fn sync(&mut self) -> Result<(), Failure> {
        if let Some(failure) = &*self.shared.failed() {
            return Err(Arc::clone(failure));
        }
        self.shared.dirty.store(false, Ordering::Release);
        self.try_sync().inspect_err(|why| {
            tracing::warn!(%why, "the store takes no writes until it is mended");
            self.ticks = 0;
            *self.shared.failed() = Some(Arc::clone(why));
        })
    }

    /// Opens the engine anew over files that are written anew; on success writes are taken again.
    fn try_to_mend(&mut self) {
        let mended = self.mend.probe().and_then(|()| {
            self.chores = None;
            self.mend.mend()
        });
        match mended {
            Ok((log, chores)) => {
                (self.log, self.chores) = (log, Some(chores));
                self.shared.dirty.store(false, Ordering::Release);
                *self.shared.failed() = None;
                tracing::warn!("the store takes writes again; nothing that was in memory is lost");
            }
            Err(error) => {
                let mut why = error.to_string();
                if let Some(source) = std::error::Error::source(&error) {
                    why = format!("{why}: {source}");
                }
                tracing::debug!(%why, "the store cannot be mended yet");
                *self.shared.failed() = Some(
                    format!("it broke and cannot be mended yet ({why}); it is tried again every second")
                        .into(),
                );
            }
        }
    }

    fn try_sync(&mut self) -> Result<(), Failure> {
        let broken = |e: sled::Error| {
            Failure::from(format!("a write could not be completed: {e}; it is tried again every second"))
        };
        let (Some(engine), Some(chores)) = (self.cell.get(), &mut self.chores) else {
            return Err("its files are being written anew; try again".into());
        };
        chores.before_sync().map_err(broken)?;
        engine.db.flush().map_err(broken)?;
        self.disk.sync(&self.log).and_then(|()| chores.after_sync()).map_err(|e| {
            format!("the disk did not take a write: {e}; free or mend it: it is tried again every second")
                .into()
        })
    }
}

/// All who wait, and up to as many as `before` if they come within [`GATHER`] of each other.
fn gather(first: Waiter, waiting: &Receiver<Waiter>, before: usize) -> Vec<Waiter> {
    let mut batch = vec![first];
    batch.extend(waiting.try_iter());
    while batch.len() < before
        && let Ok(waiter) = waiting.recv_timeout(GATHER)
    {
        batch.push(waiter);
        batch.extend(waiting.try_iter());
    }
    batch
}

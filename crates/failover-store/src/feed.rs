//! Telling of changes inside one process: what the change feed of an embedded store is made of.

use crate::{Change, ChangeStream, Key, Prefix, Versioned};
use futures_core::Stream;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// Most changes kept for a reader that does not read; then the oldest are dropped.
const MOST_WAITING: usize = 1024;

/// Tells of changes to those who listen. A writer never waits for a reader. Clones tell the same listeners; when the
/// last one is dropped, every feed ends behind its last change.
///
/// Of one key each listener gets the newest of the changes that it has not read yet. Two writers that race on one key
/// may be told in either order: compare versions, or read again.
#[derive(Clone, Default)]
pub struct Feed(Arc<Listeners>);

#[derive(Default)]
struct Listeners {
    /// How many there are, so that a store to which nobody listens pays nothing.
    count: AtomicUsize,
    list: Mutex<Vec<Weak<Listener>>>,
}

struct Listener {
    prefix: Prefix,
    state: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    changes: VecDeque<Change>,
    reader: Option<Waker>,
    ended: bool,
}

/// Every change of a list is one step, so a poisoned lock is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// A feed that nobody listens to yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells of a change: what stands at `key` now.
    pub fn tell(&self, key: &Key, current: Option<&Versioned>) {
        if self.0.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut readers = Vec::new();
        for listener in lock(&self.0.list).iter().filter_map(Weak::upgrade) {
            if listener.prefix.covers(key) {
                let mut waiting = lock(&listener.state);
                waiting.changes.retain(|change| change.key != *key);
                if waiting.changes.len() >= MOST_WAITING {
                    waiting.changes.pop_front();
                }
                waiting.changes.push_back(Change { key: key.clone(), current: current.cloned() });
                readers.extend(waiting.reader.take());
            }
        }
        readers.into_iter().for_each(Waker::wake);
    }

    /// The changes below `prefix` from now on.
    pub fn listen(&self, prefix: &Prefix) -> ChangeStream {
        let listener = Arc::new(Listener { prefix: prefix.clone(), state: Mutex::default() });
        let mut list = lock(&self.0.list);
        list.retain(|listener| listener.strong_count() > 0);
        list.push(Arc::downgrade(&listener));
        self.0.count.store(list.len(), Ordering::Release);
        Box::pin(Reader { listener, listeners: Arc::downgrade(&self.0) })
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        for listener in lock(&self.list).iter().filter_map(Weak::upgrade) {
            let mut waiting = lock(&listener.state);
            waiting.ended = true;
            let reader = waiting.reader.take();
            drop(waiting);
            reader.into_iter().for_each(Waker::wake);
        }
    }
}

struct Reader {
    listener: Arc<Listener>,
    listeners: Weak<Listeners>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some(listeners) = self.listeners.upgrade() else { return };
        let mut list = lock(&listeners.list);
        list.retain(|listener| !std::ptr::eq(listener.as_ptr(), Arc::as_ptr(&self.listener)));
        listeners.count.store(list.len(), Ordering::Release);
    }
}

impl Stream for Reader {
    type Item = Change;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        let mut waiting = lock(&self.listener.state);
        match waiting.changes.pop_front() {
            Some(change) => Poll::Ready(Some(change)),
            None if waiting.ended => Poll::Ready(None),
            None => {
                waiting.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

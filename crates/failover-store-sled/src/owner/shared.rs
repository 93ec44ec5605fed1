//! Whichever end of the socket this process can be.

use super::client::SocketStore;
use super::server::Server;
use super::{PATIENCE, socket_path};
use crate::{SledOptions, SledStore};
use async_trait::async_trait;
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Versioned, WriteOptions,
};
use failover_types::Clock;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::task::JoinSet;

/// How often the directory is tried while its owner starts or ends.
const AGAIN: Duration = Duration::from_millis(20);

/// The store of a state directory: opened by this process and served to others, or reached through the process
/// that has it open. Clones share it; the last one dropped closes the socket and frees the directory.
///
/// A guest whose owner has gone takes its place with the next call, or finds whoever was quicker; each call ends within
/// about a second.
#[derive(Clone)]
pub struct SharedStore {
    inner: Arc<Inner>,
}

struct Inner {
    options: SledOptions,
    role: RwLock<Role>,
    /// One call at a time tries to take the owner's place.
    taking: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
enum Role {
    Owner(Arc<Owner>),
    Guest(SocketStore),
}

/// Dropped in this order: the socket goes before the store.
struct Owner {
    /// The one task that serves the socket; dropping the set ends it.
    _server: JoinSet<()>,
    store: SledStore,
    dir: PathBuf,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // We still hold the lock, so the socket is ours. Where it stays behind, the next owner removes it.
        let _ = std::fs::remove_file(socket_path(&self.dir));
    }
}

impl SharedStore {
    /// Opens the store in `dir` with the usual options. Must be called inside a tokio runtime, and blocks it for as
    /// long as sled needs to read its log.
    ///
    /// # Errors
    ///
    /// As [`SharedStore::open_with`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn open(dir: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let dir = dir.into();
        Self::open_with(SledOptions::new(dir, clock)).await
    }

    /// Opens the store as `options` say, or reaches the process that has it open.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] if another process holds the directory and does not answer within a second; otherwise
    /// as [`SledOptions::open`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn open_with(options: SledOptions) -> Result<Self, StoreError> {
        let mut tick = tokio::time::interval(AGAIN);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let locked = match options.open() {
                Ok(store) => return Ok(Self::with(own(store, options.dir().to_owned())?, options)),
                Err(e @ StoreError::Locked { .. }) => e,
                Err(e) => return Err(e),
            };
            // An owner that has the lock but no socket yet, or no longer, is tried again.
            let guest = SocketStore::connect(options.dir());
            if let Ok(Ok(guest)) = tokio::time::timeout_at(deadline, guest).await {
                return Ok(Self::with(Role::Guest(guest), options));
            }
            if tokio::time::timeout_at(deadline, tick.tick()).await.is_err() {
                return Err(locked);
            }
        }
    }

    fn with(role: Role, options: SledOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                role: RwLock::new(role),
                taking: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// The engine itself, where this process owns it.
    pub fn owned(&self) -> Option<SledStore> {
        match self.role() {
            Role::Owner(owner) => Some(owner.store.clone()),
            Role::Guest(_) => None,
        }
    }

    /// A role is replaced in one step, so a poisoned lock is still good.
    fn role(&self) -> Role {
        self.inner.role.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where this process is a guest and nobody listens at the socket: becomes the owner, or finds the new one. `true`
    /// where asking again makes sense.
    async fn succeed(&self) -> bool {
        let Role::Guest(guest) = self.role() else { return false };
        if guest.is_served().await {
            return false;
        }
        let _one = self.inner.taking.lock().await;
        if let Role::Owner(_) = self.role() {
            return true;
        }
        let mut tick = tokio::time::interval(AGAIN);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let options = self.inner.options.clone();
            // sled reads its whole log: not on a thread that others wait for.
            let opened = tokio::task::spawn_blocking(move || options.open()).await;
            match opened {
                Ok(Ok(store)) => {
                    return match own(store, self.inner.options.dir().to_owned()) {
                        Ok(role) => {
                            *self.inner.role.write().unwrap_or_else(PoisonError::into_inner) = role;
                            tracing::warn!(store = ?self, "the owner has gone; this process has taken its place");
                            true
                        }
                        Err(error) => {
                            tracing::warn!(%error, "the owner has gone, and its place cannot be taken");
                            false
                        }
                    };
                }
                // Somebody else was quicker, or the old owner is not quite gone.
                Ok(Err(StoreError::Locked { .. })) => {
                    if guest.is_served().await {
                        return true;
                    }
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the owner has gone, and its place cannot be taken");
                    return false;
                }
                Err(_) => return false,
            }
            if tokio::time::timeout_at(deadline, tick.tick()).await.is_err() {
                return false;
            }
        }
    }
}

impl Role {
    fn store(&self) -> &dyn KeyValue {
        match self {
            Self::Owner(owner) => &owner.store,
            Self::Guest(guest) => guest,
        }
    }
}

fn own(store: SledStore, dir: PathBuf) -> Result<Role, StoreError> {
    let server = Server::bind(&dir, Arc::new(store.clone()))?;
    let mut task = JoinSet::new();
    task.spawn(server.run());
    Ok(Role::Owner(Arc::new(Owner { _server: task, store, dir })))
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role() {
            Role::Owner(owner) => write!(f, "SharedStore(owner of {})", owner.dir.display()),
            Role::Guest(guest) => write!(f, "SharedStore({guest:?})"),
        }
    }
}

#[async_trait]
impl KeyValue for SharedStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let first = self.role().store().get(key).await;
        match first {
            Err(StoreError::Unavailable { .. }) if self.succeed().await => self.role().store().get(key).await,
            first => first,
        }
    }

    /// A swap is never made twice: where the owner goes in the middle of one, it may have been done, and that is told.
    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        if let Role::Guest(guest) = self.role()
            && !guest.is_served().await
        {
            self.succeed().await;
        }
        self.role().store().swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        let first = self.role().store().scan(prefix, after, limit).await;
        match first {
            Err(StoreError::Unavailable { .. }) if self.succeed().await => {
                self.role().store().scan(prefix, after, limit).await
            }
            first => first,
        }
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.role().store().changes(prefix).await
    }
}

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
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How often the directory is tried while its owner starts or ends.
const AGAIN: Duration = Duration::from_millis(20);

/// The store of a state directory: opened by this process and served to others, or reached through the process
/// that has it open. Clones share it; the last one dropped closes the socket and frees the directory.
#[derive(Clone)]
pub struct SharedStore {
    role: Role,
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
                Ok(store) => return Self::own(store, options.dir().to_owned()),
                Err(e @ StoreError::Locked { .. }) => e,
                Err(e) => return Err(e),
            };
            // An owner that has the lock but no socket yet, or no longer, is tried again.
            let guest = SocketStore::connect(options.dir());
            if let Ok(Ok(guest)) = tokio::time::timeout_at(deadline, guest).await {
                return Ok(Self { role: Role::Guest(guest) });
            }
            if tokio::time::timeout_at(deadline, tick.tick()).await.is_err() {
                return Err(locked);
            }
        }
    }

    fn own(store: SledStore, dir: PathBuf) -> Result<Self, StoreError> {
        let server = Server::bind(&dir, Arc::new(store.clone()))?;
        let mut task = JoinSet::new();
        task.spawn(server.run());
        Ok(Self { role: Role::Owner(Arc::new(Owner { _server: task, store, dir })) })
    }

    /// The engine itself, where this process owns it.
    pub fn owned(&self) -> Option<&SledStore> {
        match &self.role {
            Role::Owner(owner) => Some(&owner.store),
            Role::Guest(_) => None,
        }
    }

    fn store(&self) -> &dyn KeyValue {
        match &self.role {
            Role::Owner(owner) => &owner.store,
            Role::Guest(guest) => guest,
        }
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.role {
            Role::Owner(owner) => write!(f, "SharedStore(owner of {})", owner.dir.display()),
            Role::Guest(guest) => write!(f, "SharedStore({guest:?})"),
        }
    }
}

#[async_trait]
impl KeyValue for SharedStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.store().get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        self.store().swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.store().scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.store().changes(prefix).await
    }
}

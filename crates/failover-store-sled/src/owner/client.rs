//! The other end: the same store, reached through its owner.

use super::wire::{Reply, Request, receive, send};
use super::{PATIENCE, socket_path};
use crate::guard;
use async_trait::async_trait;
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, MAX_SCAN, Prefix, StoreError, Swap, Value, Version, Versioned,
    WriteOptions,
};
use std::io;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// A store that another process owns. Each call is a connection of its own and ends within a second: an owner that
/// does not answer is an error that names it. There is no change feed; callers poll.
#[derive(Clone, Debug)]
pub struct SocketStore {
    dir: PathBuf,
}

impl SocketStore {
    /// Reaches the owner of `dir`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if there is none, or it does not answer within a second.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn connect(dir: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let store = Self { dir: dir.into() };
        let reply = store.call(&Request::Hello).await?;
        if matches!(reply, Reply::Hello) { Ok(store) } else { Err(store.confused()) }
    }

    /// The owner, as it wrote itself into the lock file.
    pub fn holder(&self) -> Option<String> {
        guard::holder(&self.dir)
    }

    /// Whether anybody listens at the socket. Where nobody does, the owner is gone.
    pub(super) async fn is_served(&self) -> bool {
        let connected = tokio::time::timeout(PATIENCE, UnixStream::connect(socket_path(&self.dir))).await;
        // One that accepts no connection in time hangs, which is not being gone.
        connected.map_or(true, |connected| connected.is_ok())
    }

    async fn call(&self, request: &Request) -> Result<Reply, StoreError> {
        let reply = match tokio::time::timeout(PATIENCE, exchange(&self.dir, request)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(e)) => return Err(self.unavailable(&format!("cannot be reached ({e})"))),
            Err(_) => return Err(self.unavailable("did not answer within 1 s")),
        };
        if let Reply::Failed(failure) = reply { Err(failure.into_error(&self.place())) } else { Ok(reply) }
    }

    fn place(&self) -> String {
        self.dir.display().to_string()
    }

    fn unavailable(&self, what: &str) -> StoreError {
        let holder = self.holder().unwrap_or_else(|| "an unknown process".to_owned());
        StoreError::Unavailable { place: self.place(), why: format!("its owner, {holder}, {what}") }
    }

    fn confused(&self) -> StoreError {
        self.unavailable("answered something else; use the same version of both processes")
    }
}

async fn exchange(dir: &Path, request: &Request) -> io::Result<Reply> {
    let mut stream = UnixStream::connect(socket_path(dir)).await?;
    send(&mut stream, request).await?;
    receive(&mut stream).await
}

#[async_trait]
impl KeyValue for SocketStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        let Reply::Found(found) = self.call(&Request::get(key)).await? else { return Err(self.confused()) };
        Ok(found.map(Versioned::from))
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        if let Some(next) = &next {
            next.check_size(key)?;
        }
        match self.call(&Request::swap(key, expect, next.as_ref(), write)).await? {
            Reply::Done { version } => Ok(Swap::Done(version.map(Version))),
            Reply::Lost(current) => Ok(Swap::Lost(current.map(Versioned::from))),
            Reply::Hello | Reply::Found(_) | Reply::Page { .. } | Reply::Failed(_) => Err(self.confused()),
        }
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        let limit = limit.min(MAX_SCAN);
        let mut found: Vec<(Key, Versioned)> = Vec::new();
        loop {
            let left = limit.saturating_sub(found.len());
            let after = found.last().map(|(key, _)| key).or(after);
            let Reply::Page { records, more } = self.call(&Request::scan(prefix, after, left)).await? else {
                return Err(self.confused());
            };
            // An owner that says "more" with an empty page would keep us asking for ever.
            let more = more && !records.is_empty() && records.len() < left;
            for (key, record) in records {
                let key = Key::from_stored(&key).map_err(|_| self.confused())?;
                found.push((key, record.into()));
            }
            if !more {
                return Ok(found);
            }
        }
    }

    async fn changes(&self, _prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        Ok(None)
    }
}

//! The owner's end: answers requests on the socket, as long as it is polled.

use super::wire::{Failure, PAGE, Record, Reply, Request, receive, send, write_options};
use super::{PATIENCE, socket_path};
use crate::guard::engine;
use failover_store::{Expect, Key, KeyError, KeyValue, Prefix, StoreError, Version};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Most connections answered at once; others wait in the system's queue.
const MAX_CONNECTIONS: usize = 64;

/// A bound socket.
pub(crate) struct Server {
    listener: UnixListener,
    store: Arc<dyn KeyValue>,
}

impl Server {
    /// Binds the socket of `dir`. Only the holder of the directory's lock may call this: a socket that is there
    /// already was left behind by a dead owner.
    pub(crate) fn bind(dir: &Path, store: Arc<dyn KeyValue>) -> Result<Self, StoreError> {
        let path = socket_path(dir);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(engine(dir, e)),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(|e| engine(dir, e))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(|e| engine(dir, e))?;
        Ok(Self { listener, store })
    }

    /// Answers for ever.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: requests under way are dropped with it, and their clients see a closed connection.
    pub(crate) async fn run(self) {
        let mut answers = JoinSet::new();
        loop {
            while answers.len() >= MAX_CONNECTIONS {
                answers.join_next().await;
            }
            while answers.try_join_next().is_some() {}
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let store = Arc::clone(&self.store);
                    answers.spawn(async move {
                        if let Err(e) = answer(stream, &*store).await {
                            tracing::debug!(error = %e, "a request on the store's socket ended early");
                        }
                    });
                }
                Err(e) => {
                    // Out of descriptors, most likely: give answers under way time to free some.
                    tracing::warn!(error = %e, "the store's socket takes no connection");
                    if answers.join_next().await.is_none() {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }
}

async fn answer(mut stream: UnixStream, store: &dyn KeyValue) -> io::Result<()> {
    let request =
        tokio::time::timeout(PATIENCE, receive(&mut stream)).await.map_err(|_| io::ErrorKind::TimedOut)?;
    let reply = match request {
        Ok(request) => carry_out(request, store).await.unwrap_or_else(Reply::Failed),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => {
            Reply::Failed(Failure::BadRequest { why: e.to_string() })
        }
        Err(e) => return Err(e),
    };
    tokio::time::timeout(PATIENCE, send(&mut stream, &reply)).await.map_err(|_| io::ErrorKind::TimedOut)?
}

async fn carry_out(request: Request, store: &dyn KeyValue) -> Result<Reply, Failure> {
    match request {
        Request::Hello => Ok(Reply::Hello),
        Request::Get { key } => {
            let found = store.get(&Key::from_stored(&key)?).await?;
            Ok(Reply::Found(found.as_ref().map(Record::from)))
        }
        Request::Swap { key, expect, next, durable, expires_at } => {
            let expect = expect.map_or(Expect::Absent, |version| Expect::Version(Version(version)));
            let next = next.map(Into::into);
            let swap = store
                .swap(&Key::from_stored(&key)?, expect, next, write_options(durable, expires_at))
                .await?;
            Ok(Reply::from(&swap))
        }
        Request::Scan { prefix, after, limit } => {
            let after = after.map(|after| Key::from_stored(&after)).transpose()?;
            let page = store.scan(&Prefix::from_stored(&prefix)?, after.as_ref(), limit.min(PAGE)).await?;
            let more = page.len() == PAGE && limit > PAGE;
            let records = page.iter().map(|(key, found)| (key.to_string(), Record::from(found))).collect();
            Ok(Reply::Page { records, more })
        }
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::BadRequest { why: error.to_string() }
    }
}

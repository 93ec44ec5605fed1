//! A store that several machines share, with its secrets sealed (requirements A-3, K-3).

use failover_credentials::{SealedStore, StoreKey, StoreKeyError};
use failover_store::{KeyValue, StoreError};
use failover_store_redis::RedisStore;
use failover_types::Clock;
use std::sync::Arc;

/// Why a shared store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedStoreError {
    /// The key is none.
    #[error(transparent)]
    Key(#[from] StoreKeyError),
    /// The address makes no sense.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A store that several machines share, and how it is.
#[non_exhaustive]
pub struct Shared {
    /// The store. Where its server is away, calls fail until it is back.
    pub store: Arc<dyn KeyValue>,
    /// The server's settings that let it lose what it acknowledged, a sentence each; or why it does not answer.
    pub state: Result<Vec<String>, StoreError>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Opens a Redis server that several machines share. Secrets go into it sealed with `key` (the text of
/// `FAILOVER_STORE_KEY`); without a key they are refused, and references to secrets are not. A server that is away is no
/// error here: it may come back, and answers can be had without it.
///
/// # Errors
///
/// [`SharedStoreError`].
///
/// # Cancel safety
///
/// Cancel safe.
pub async fn shared_store(
    url: &str,
    namespace: &str,
    key: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Shared, SharedStoreError> {
    let key = key.map(StoreKey::parse).transpose()?;
    let store = RedisStore::open(url, namespace, clock)?;
    let state = store.check().await;
    Ok(Shared { store: Arc::new(SealedStore::new(Arc::new(store), key)), state })
}

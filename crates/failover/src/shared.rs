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
    /// The store cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Connects to a Redis server that several machines share. Secrets go into it sealed with `key` (the text of
/// `FAILOVER_STORE_KEY`); without a key they are refused, and references to secrets are not.
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
) -> Result<Arc<dyn KeyValue>, SharedStoreError> {
    let key = key.map(StoreKey::parse).transpose()?;
    let store = RedisStore::connect(url, namespace, clock).await?;
    Ok(Arc::new(SealedStore::new(Arc::new(store), key)))
}

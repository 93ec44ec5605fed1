//! The change feed: the names of changed records, published by the script that changes them.
//!
//! A message says which record, and no more: what stands there is read when the message comes, so that a feed never
//! tells of less than what its reader could read by then.

use crate::RedisStore;
use failover_store::{Change, ChangeStream, Key, KeyValue, Prefix, StoreError};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use std::time::Duration;

/// How often a lost connection is tried again.
const AGAIN: Duration = Duration::from_millis(500);

/// Names of changed records; it ends with its connection.
type Names = BoxStream<'static, String>;

struct Listening {
    store: RedisStore,
    prefix: Prefix,
    /// `None` while the connection is lost.
    names: Option<Names>,
}

/// Listens from now on, and again after each lost connection for as long as the stream is read.
pub(crate) async fn listen(store: RedisStore, prefix: Prefix) -> Result<ChangeStream, StoreError> {
    let names = Some(subscribe(&store).await?);
    let listening = Listening { store, prefix, names };
    Ok(Box::pin(stream::unfold(listening, |mut listening| async {
        let change = listening.next().await;
        Some((change, listening))
    })))
}

async fn subscribe(store: &RedisStore) -> Result<Names, StoreError> {
    let messages = store.subscribe().await?.into_on_message();
    Ok(messages.filter_map(|message| async move { message.get_payload().ok() }).boxed())
}

impl Listening {
    async fn next(&mut self) -> Change {
        loop {
            let Some(names) = &mut self.names else {
                self.names = subscribe_again(&self.store).await;
                continue;
            };
            let Some(name) = names.next().await else {
                self.names = None;
                continue;
            };
            let Ok(key) = Key::from_stored(&name) else { continue };
            if !self.prefix.covers(&key) {
                continue;
            }
            // What cannot be read now is not told: its reader polls.
            if let Ok(current) = self.store.get(&key).await {
                return Change { key, current };
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a server that is gone is asked again in real time")]
async fn subscribe_again(store: &RedisStore) -> Option<Names> {
    match subscribe(store).await {
        Ok(names) => Some(names),
        Err(error) => {
            tracing::debug!(%error, "the change feed is not connected");
            tokio::time::sleep(AGAIN).await;
            None
        }
    }
}

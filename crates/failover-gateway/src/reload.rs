//! Following the config file and the stored credentials while serving.

use crate::gateway::Gateway;
use failover::config::LoadError;
use failover::store::{ChangeStream, Prefix};
use failover::types::Clock;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, SystemTime};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What tells that a file is another one. Its text is read only then.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

fn seen(path: &Path) -> Option<Seen> {
    let meta = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let inode = 0;
    Some(Seen { modified: meta.modified().ok(), length: meta.len(), inode })
}

fn why(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl Gateway {
    /// Reads the config file again and puts it to work. Gives the warnings.
    ///
    /// # Errors
    ///
    /// What is wrong, with its lines; the old config stays.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it is done or not.
    pub async fn reload_file(&self) -> Result<Vec<String>, String> {
        let Some(path) = self.config_file() else { return Err("there is no config file to read".to_owned()) };
        let path: PathBuf = path.to_owned();
        let read = tokio::task::spawn_blocking(move || failover::config::load(&path)).await;
        let read = read.map_err(|error| error.to_string())?;
        let loaded = match read {
            Ok(loaded) => loaded,
            Err(error) => {
                self.metrics().reloaded(false);
                let LoadError::Invalid(faults) = error else { return Err(why(&error)) };
                return Err(faults.render(false));
            }
        };
        self.reload(loaded).await.map_err(|error| why(&error))
    }

    /// Reads the file again and says in the log how it went.
    pub async fn reload_and_tell(&self, cause: &str) {
        match self.reload_file().await {
            Ok(warnings) => {
                tracing::info!(cause, "the config is reloaded");
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
            }
            Err(fault) => tracing::error!(cause, "the new config is wrong, the old one stays: {fault}"),
        }
    }

    /// Follows the config file and the stored credentials: whatever changes there is put to work. A file that is wrong is
    /// reported, and the old config stays. Never completes; run it beside [`serve`](crate::serve).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn watch(&self) {
        let mut known = self.config_file().map(seen);
        let mut keys = self.credential_changes().await;
        loop {
            let due = self.clock().sleep_until(self.clock().now().after(LOOK));
            let mut changed = false;
            if let Some(feed) = &mut keys {
                if let Either::Left((change, due)) = select(pin!(feed.next()), due).await {
                    changed = change.is_some();
                    // More than one key belongs to most changes.
                    due.await;
                    if !changed {
                        keys = None;
                    }
                }
            } else {
                due.await;
            }
            if changed {
                self.reload_and_tell("a stored credential changed").await;
            }
            let Some(path) = self.config_file() else { continue };
            let found = Some(seen(path));
            // A file that is just being replaced is looked at again.
            if found == known || found == Some(None) {
                continue;
            }
            known = found;
            self.reload_and_tell("the file changed").await;
        }
    }

    async fn credential_changes(&self) -> Option<ChangeStream> {
        let engine = self.engine();
        let prefix = Prefix::new(&["agent", engine.agent().as_str(), "credential"]).ok()?;
        match self.store().changes(&prefix).await {
            Ok(feed) => feed,
            Err(error) => {
                tracing::warn!(%error, "changes of stored credentials are not followed; send SIGHUP after one");
                None
            }
        }
    }
}

//! One process owns the directory; others reach its store through a private Unix socket there.

mod client;
mod server;
mod shared;
mod wire;

pub use client::SocketStore;
pub use shared::SharedStore;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an owner may take to answer before it counts as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn socket_path(dir: &Path) -> PathBuf {
    dir.join("owner.sock")
}

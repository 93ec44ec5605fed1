//! The seam: what a store must do.

use crate::{Key, Prefix};
use async_trait::async_trait;
use failover_types::Timestamp;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// Names one state of one key. Versions of a key never come back, not even after a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// A stored value: JSON with a schema version inside, as bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Arc<[u8]>);

impl Value {
    /// Takes bytes as a value.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Value {
    /// Values may hold credentials: only the size is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({} bytes)", self.0.len())
    }
}

/// A value and the version that a swap must name to replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores build it; it has two parts by nature")]
pub struct Versioned {
    /// Which state this is.
    pub version: Version,
    /// The value.
    pub value: Value,
}

/// What a swap expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every store handles both")]
pub enum Expect {
    /// No value.
    Absent,
    /// The value of this version.
    Version(Version),
}

/// How a swap ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a swap may be lost"]
#[expect(clippy::exhaustive_enums, reason = "control flow: a swap is won or lost")]
pub enum Swap {
    /// The next value stands; `None` after a delete.
    Done(Option<Version>),
    /// Something else stood there: the current value, or `None`.
    Lost(Option<Versioned>),
}

/// What an acknowledgement means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every store handles both")]
pub enum Durability {
    /// Acknowledged only when it survives kill -9 and a power cut.
    #[default]
    Durable,
    /// May lose the last half second, and never waits for the disk.
    Soft,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// What the acknowledgement means.
    pub durability: Durability,
    /// From then on the value counts as absent, and the store may drop it.
    pub expires_at: Option<Timestamp>,
}

impl WriteOptions {
    /// A write that survives a power cut once acknowledged.
    pub fn durable() -> Self {
        Self { durability: Durability::Durable, expires_at: None }
    }

    /// A write that never waits for the disk.
    pub fn soft() -> Self {
        Self { durability: Durability::Soft, expires_at: None }
    }

    /// Lets the value lapse at `at`.
    #[must_use]
    pub fn expiring(mut self, at: Timestamp) -> Self {
        self.expires_at = Some(at);
        self
    }
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores build it; it has two parts by nature")]
pub struct Change {
    /// Which key.
    pub key: Key,
    /// What stands there now.
    pub current: Option<Versioned>,
}

/// Changes as they happen. A feed may drop some when a reader is slow: never needed for correctness.
pub type ChangeStream = Pin<Box<dyn Stream<Item = Change> + Send>>;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached or used now; it may come back.
    #[error("the store at {place} is not available: {why}")]
    Unavailable {
        /// Which store: a directory or an address, without credentials.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Another process owns the store.
    #[error("the store at {place} is in use by another process{}", holder.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
    Locked {
        /// Which store.
        place: String,
        /// Who holds it, where known.
        holder: Option<String>,
    },
    /// A record cannot be read. It was set aside, not dropped.
    #[error("the record {key} is damaged: {why}")]
    Damaged {
        /// Which record.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// A record was written by a newer version of this software.
    #[error(
        "the record {key} has schema version {found}, and this version reads up to {known}; upgrade to read it"
    )]
    Newer {
        /// Which record.
        key: String,
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// The store's disk or engine failed.
    #[error("the store at {place} failed")]
    Engine {
        /// Which store.
        place: String,
        /// The engine's own error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A key-value store with versions.
///
/// # Contract
///
/// - A swap is atomic, and linearizable per key: of two swaps that expect the same version, one is lost.
/// - A version never comes back for the same key, not even after a delete or a restart.
/// - `scan` returns keys in byte order, each at most once, and never a value that was not written whole.
/// - An expired value counts as absent everywhere.
/// - Every error is reported; a store never swallows one and never retries behind the caller's back.
#[async_trait]
pub trait KeyValue: Send + Sync {
    /// Reads a value.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError>;

    /// Replaces what `expect` names by `next` (`None` deletes).
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped swap may or may not have been done; read again to know.
    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError>;

    /// Up to `limit` keys below `prefix`, in byte order, beginning behind `after`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError>;

    /// The change feed below `prefix`; `None` where the store has none and callers poll.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError>;
}

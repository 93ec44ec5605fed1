//! The seam: what a store must do.

use crate::{Key, Prefix, StoreError};
use async_trait::async_trait;
use failover_types::Timestamp;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// Largest value that every store takes, in bytes. Ten times the largest record of ours (a session or a credential
/// has a few thousand bytes), and small enough that no engine treats it as a special case: sled moves tree nodes
/// of a quarter segment (sixteen of our values and more) into files that are not safe at a crash.
pub const MAX_VALUE_BYTES: usize = 32 * 1024;

/// Most records that one scan returns, whatever limit it names: bounds the memory of one call.
pub const MAX_SCAN: usize = 4096;

/// Names one state of one key. Versions of a key never come back, not even after a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "stores build it; it is a number by nature")]
pub struct Version(pub u64);

/// A stored value: JSON with a schema version inside, as bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Arc<[u8]>);

impl Value {
    /// Takes bytes as a value.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Refuses what is larger than [`MAX_VALUE_BYTES`]: what each store does first in `swap`.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooLarge`], naming `key`.
    pub fn check_size(&self, key: &Key) -> Result<(), StoreError> {
        let bytes = self.0.len();
        if bytes > MAX_VALUE_BYTES {
            Err(StoreError::TooLarge { key: key.to_string(), bytes })
        } else {
            Ok(())
        }
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

impl Expect {
    /// Whether `current` is what was expected: the one comparison that every store makes.
    pub fn met_by(self, current: Option<Version>) -> bool {
        match self {
            Self::Absent => current.is_none(),
            Self::Version(version) => current == Some(version),
        }
    }
}

impl From<Option<&Versioned>> for Expect {
    /// Expects what was read.
    fn from(read: Option<&Versioned>) -> Self {
        read.map_or(Self::Absent, |current| Self::Version(current.version))
    }
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
    #[must_use]
    pub fn durable() -> Self {
        Self { durability: Durability::Durable, expires_at: None }
    }

    /// A write that never waits for the disk.
    #[must_use]
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

/// A key-value store with versions.
///
/// # Contract
///
/// - A swap is atomic, and linearizable per key: of two swaps that expect the same version, one is lost.
/// - A version never comes back for the same key, not even after a delete or a restart.
/// - `scan` returns keys in byte order, each at most once, and never a value that was not written whole.
/// - An expired value counts as absent everywhere.
/// - Every error is reported; a store never swallows one and never retries behind the caller's back.
/// - A value above [`MAX_VALUE_BYTES`] is refused with [`StoreError::TooLarge`]; any smaller one is taken, the
///   empty one too.
/// - A damaged record is set aside, then reported once as [`StoreError::Damaged`]; the same call made again sees
///   the store without it.
/// - A read may see a durable write whose acknowledgement is still under way.
#[async_trait]
pub trait KeyValue: Send + Sync {
    /// Reads a value.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where the value cannot be read; never for an absent one.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError>;

    /// Replaces what `expect` names by `next` (`None` deletes; deleting nothing is [`Swap::Done`] too).
    ///
    /// # Errors
    ///
    /// [`StoreError`] where the outcome is not known to stand as asked: after an error the swap may or may not
    /// have been done, so read again.
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

    /// Up to `limit` keys (never more than [`MAX_SCAN`]) below `prefix`, in byte order, beginning behind `after`.
    ///
    /// A full page may have a successor: go on with its last key as `after` until a page is not full. Keys
    /// written meanwhile may or may not be seen.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where the page cannot be read as a whole.
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
    /// # Errors
    ///
    /// [`StoreError`] where the feed cannot be set up.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError>;
}

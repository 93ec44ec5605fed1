//! Everything durable goes through one narrow trait: get, compare-and-swap, scan, and an optional change feed.
//!
//! There is no blind write. A lost swap is an outcome that carries the current value, not an error.
//!
//! A store of your own implements [`KeyValue`] and asserts in its tests that `conformance::violations` (feature
//! `conformance`) comes back empty; `fixtures/outside-store` in the repository is a whole one in one file.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod feed;
mod key;
mod memory;
mod seam;
mod table;

pub use error::StoreError;
pub use feed::Feed;
pub use key::{Key, KeyError, Prefix};
pub use memory::MemoryStore;
pub use seam::{
    Change, ChangeStream, Durability, Expect, KeyValue, MAX_SCAN, MAX_VALUE_BYTES, Swap, Value, Version,
    Versioned, WriteOptions,
};
pub use table::{Edit, Page, Row, Stored, Table};

//! Everything durable goes through one narrow trait: get, compare-and-swap, scan, and an optional change feed.
//!
//! There is no blind write. A lost swap is an outcome that carries the current value, not an error.

#[cfg(feature = "conformance")]
pub mod conformance;
mod key;
mod kv;
mod memory;
mod table;

pub use key::{Key, KeyError, Prefix};
pub use kv::{
    Change, ChangeStream, Durability, Expect, KeyValue, MAX_SCAN, MAX_VALUE_BYTES, StoreError, Swap, Value,
    Version, Versioned, WriteOptions,
};
pub use memory::MemoryStore;
pub use table::{Edit, Page, Row, Stored, Table};

//! What goes wrong with a store, by whose fault it is and what helps.

use crate::MAX_VALUE_BYTES;

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
    /// A value is larger than [`MAX_VALUE_BYTES`]. Nothing was written.
    #[error("the value for {key} has {bytes} bytes, and a store takes at most {MAX_VALUE_BYTES}")]
    TooLarge {
        /// Which record.
        key: String,
        /// Size of the value offered.
        bytes: usize,
    },
    /// A value is not what its table holds, or cannot be written as JSON. A fault of the caller.
    #[error("the record {key} does not fit its table: {why}")]
    Misfit {
        /// Which record.
        key: String,
        /// What does not fit.
        why: String,
    },
    /// A record is sealed and cannot be opened here, or must be sealed and cannot be.
    #[error("the record {key} is not to be had: {why}")]
    Sealed {
        /// Which record.
        key: String,
        /// Why, and what to do.
        why: String,
    },
    /// A swap was lost to other writers again and again. Nothing was written.
    #[error("the record {key} was changed by others {attempts} times in a row; try again")]
    Contended {
        /// Which record.
        key: String,
        /// How often the swap was tried.
        attempts: u32,
    },
    /// The store was not opened, because doing so would not be safe.
    #[error("the store at {place} was not opened: {why}")]
    Refused {
        /// Which store.
        place: String,
        /// What is unsafe, and what to do.
        why: String,
    },
    /// The store's files are damaged as a whole. They were left as they are.
    #[error("the files of the store at {place} are damaged: {why}")]
    Corrupt {
        /// Which store.
        place: String,
        /// What was found, and what to do.
        why: String,
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

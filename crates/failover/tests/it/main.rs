//! The engine from outside: config in, answers out, what the session remembers.

#![expect(clippy::unwrap_used, reason = "test helpers")]

mod accounts;
mod broken_store;
mod choices;
mod common;
mod engine;
#[cfg(all(unix, feature = "store-sled"))]
mod kill;
mod outside;
#[cfg(unix)]
mod replicas;

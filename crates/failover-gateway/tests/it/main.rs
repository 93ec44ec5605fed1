//! The gateway over real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test helpers, on real sockets and a real clock"
)]
#![allow(dead_code, reason = "what other tests of this crate need stands in the same file")]

mod answers;
mod common;
mod crossing;
mod limits;
mod operate;
mod page;
mod rescue;
mod security;
mod traces;

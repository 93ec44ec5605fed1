//! The gateway over real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test helpers, on real sockets and a real clock"
)]

mod answers;
#[expect(dead_code, reason = "the fault suite needs more of it")]
mod common;
mod crossing;
mod limits;
mod operate;
mod page;
mod passing;
mod rescue;
mod security;
mod traces;

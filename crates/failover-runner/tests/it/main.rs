//! What the runner does, seen from outside. One binary: it links once.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "test helpers"
)]

mod back;
mod behavior;
mod claims;
mod cold;
mod common;
mod driver;
mod fleet;
mod log;
mod plans;
mod properties;
mod scenarios;
mod storm;
mod streams;
mod table;

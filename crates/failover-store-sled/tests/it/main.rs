//! The sled store from outside: one binary, which also plays the child that gets killed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod common;
mod conformance;
mod crash;
mod damage;
mod mend;
mod open;
mod owner;
mod power;

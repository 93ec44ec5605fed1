//! The store for several machines, on Redis 7 or later: what one replica learns, all know at their next read.
//!
//! - **One script per swap**: the comparison, the write, its expiry and its place in the index are one atomic step
//!   and one round trip.
//! - **Versions of our own**, never below the server's time in microseconds: should a replica that takes over have
//!   missed the last writes, its numbers still lie above all that were given out before.
//! - **Durable** means what the server is set to: nothing without an append-only file, a second may be lost with
//!   `appendfsync everysec`, nothing with `always`. [`RedisStore::check`] says what is weaker than it could be.
//! - **Time** is the server's. An expiry is sent as a span, so a client whose clock is wrong does no harm.
//! - The change feed tells of what other replicas write, within milliseconds, over a connection of its own. What is
//!   written while that connection is lost is not told: it is never needed for correctness.
//! - Every call ends within about a second of waiting for the server, and never tries a write twice.
//!
//! All keys of a namespace share a hash tag, so that a cluster keeps them in one slot.

mod feed;
mod rest;
mod script;
mod store;

pub use store::RedisStore;

//! What tests of `failover` and of crates built on it need: a clock that is turned by hand, an upstream that
//! misbehaves to a script, and conformance suites.
//!
//! Nothing here touches a network beyond loopback.

mod clock;
pub mod corpus;
pub mod provider;
#[cfg(all(feature = "redis", unix))]
mod redis;
pub mod upstream;

pub use clock::ManualClock;
/// The suite that every store must pass.
pub use failover_store::conformance as kv;
#[cfg(all(feature = "redis", unix))]
pub use redis::RedisServer;

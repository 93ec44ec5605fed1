//! The embedded default store: sled behind a group committer, no set-up.
//!
//! - *Durable* writes are acknowledged only after sled's flush **and** an `fdatasync`: sled's own flush does not
//!   wait for the disk on Linux. One sync serves everyone who waits.
//! - *Soft* writes never wait for the disk; they reach it within half a second.
//! - One process owns a directory. A second one is refused at once, and told who holds it.
//! - Every record carries its key, version and expiry under a checksum. A damaged one is set aside and reported.

mod committer;
mod disk;
mod guard;
mod open;
mod record;
mod store;
mod versions;

pub use disk::{Disk, SystemDisk};
pub use open::SledOptions;
pub use store::SledStore;

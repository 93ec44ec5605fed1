//! The embedded default store: sled behind a group committer, no set-up.
//!
//! - *Durable* writes are acknowledged only after sled's flush **and** an `fdatasync`: sled's own flush does not
//!   wait for the disk on Linux. One sync serves everyone who waits.
//! - *Soft* writes never wait for the disk; they reach it within half a second.
//! - One process owns a directory. A second one is refused at once, and told who holds it.
//! - The owner serves the same trait to other processes over a private socket in the directory: [`SharedStore`] is
//!   whichever end of it this process can be.
//! - A disk that refuses a write makes the store refuse writes too, and say so, until the disk takes them again: the
//!   files are then written anew, with everything that was in memory, and nothing need be restarted.
//! - Every record carries its key, version and expiry under a checksum. A damaged one is set aside and reported.

mod committer;
mod disk;
mod engine;
mod guard;
mod health;
mod mend;
mod open;
mod owner;
mod record;
mod salvage;
mod store;
mod upkeep;
mod versions;

pub use disk::{Disk, SystemDisk};
pub use health::Health;
pub use open::SledOptions;
pub use owner::{SharedStore, SocketStore};
pub use salvage::Repair;
pub use store::SledStore;

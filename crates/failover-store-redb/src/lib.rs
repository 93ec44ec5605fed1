//! A second embedded store, on redb: the proof that the seam is real, and the way out should sled have to go.
//!
//! Writes are applied to a small overlay in memory, and one thread commits what has gathered there: one redb
//! transaction, and so one `fdatasync`, serves every durable write that waits. Soft writes wait for nothing and are
//! committed within half a second. redb opens a file for one process only; there is no socket for others.

mod commit;
mod overlay;
mod store;

pub use store::RedbStore;

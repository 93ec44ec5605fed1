//! Credentials at work: where secrets come from, where they are kept, and how tokens are renewed.
//!
//! [`Profiles`] keeps credentials, usage, orders and leases of one agent in a store. [`Secrets`] reads values from the
//! environment, files and commands at each use. [`Credentials`] puts both together and renews OAuth pairs: one call to
//! the provider for all who wait, across tasks and processes.

mod credentials;
mod flight;
mod profiles;
mod refresher;
mod rows;
mod seal;
mod source;

pub use credentials::{CredentialError, Credentials};
pub use profiles::{Profiles, StoredCredential, Unreadable};
pub use refresher::{Judge, RefreshFault, Refresher};
pub use seal::{STORE_KEY, SealedStore, StoreKey, StoreKeyError};
pub use source::{Environment, Secrets, SourceError};

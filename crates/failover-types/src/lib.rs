//! Words that every `failover` crate shares: ids, model references, times, secrets, credentials and reasons.
//!
//! This crate does no I/O and reads no clock. It is the lowest layer: everything else may name its types,
//! and it names nobody's.

mod clock;
mod credential;
mod id;
mod model;
mod reason;
mod secret;
mod time;

pub use clock::{BoxFuture, Clock};
pub use credential::{Credential, CredentialKind, OAuth, ResolvedCredential, Revealed, SecretSource};
pub use id::{AgentId, IdError, ProfileId, ProviderId, RunId, SessionId};
pub use model::{ModelRef, ModelRefError, ModelSelector};
pub use reason::{FailoverReason, Lane, Scope, UnknownReason};
pub use secret::{Secret, SecretError};
pub use time::{Timestamp, millis};

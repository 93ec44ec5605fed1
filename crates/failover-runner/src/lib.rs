//! Walks a chain of models and credentials until one answers.
//!
//! [`plan`] decides and does no I/O; everything else carries its steps out or shows them. [`health`] is what one
//! process knows of its credentials, [`simulate`] plays scenarios in virtual time. The `driver` feature (on by
//! default) adds the async [`Runner`], and with it tokio.

#[cfg(feature = "driver")]
mod driver;
mod explain;
pub mod health;
pub mod plan;
pub mod session;
pub mod simulate;
mod verdict;

pub use explain::{Explained, Explanation, Fate, explain};

#[cfg(feature = "driver")]
pub use driver::{
    Adapters, Answer, Attempt, Cause, Classify, ClassifyWith, CredentialSource, FailureWatch,
    FallbackSummaryError, Run, RunError, RunFailure, RunSession, Runner, RunnerBuilder, StoredSession,
    SystemClock, Watcher, run, usage_key,
};

//! Carries the plan's steps out: attempts, the store, the session, the clock. It decides nothing.

mod adapters;
mod attempt;
mod books;
mod builder;
mod claimed;
mod clock;
mod error;
mod late;
mod observe;
mod patience;
mod run;
mod session;

pub use adapters::{Adapters, CredentialSource, FailureWatch};
pub use attempt::Attempt;
pub use books::usage_key;
pub use builder::{Classify, ClassifyWith, Runner, RunnerBuilder, run};
pub use clock::SystemClock;
pub use error::{Answer, Cause, FallbackSummaryError, RunError, RunFailure};
pub use late::Watcher;
pub use run::Run;
pub use session::{RunSession, StoredSession};

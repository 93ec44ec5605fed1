//! Says why a call to an LLM provider failed: reason, scope, retry hint and evidence.
//!
//! Pure and synchronous: no clock, no I/O, no randomness.

mod hint;
mod signal;
mod verdict;

pub use hint::{RetryHint, RetryWhen};
pub use signal::{AsSignal, Cause, Signal, Surface};
pub use verdict::{Evidence, Tier, Tokens, Verdict};

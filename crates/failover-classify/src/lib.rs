//! Says why a call to an LLM provider failed: reason, scope, retry hint and evidence.
//!
//! Pure and synchronous: no clock, no I/O, no randomness. A [`Signal`] holds what is known of the failure,
//! [`Classifier::classify`] gives a [`Verdict`] that names the row which decided. Rows are data ([`Rule`]);
//! the order in which they are believed is [`Tier`], then [`Family`].
//!
//! Cost, over the bodies of `benches/classify.rs`, beside a bare scan of the same automaton over the same bytes: about
//! 20 to 25 times for an error of 220 bytes (24 to 32 µs), 2.3 to 3.6 times for 64 KiB of prose (0.7 to 1.1 ms); a page
//! of HTML takes some 0.15 ms, building the classifier some 40 ms. These are the best of seven rounds of a plain timing
//! loop on a busy machine of two cores; measure your own with `cargo bench -p failover-classify`.

mod compile;
mod engine;
mod facts;
mod fields;
mod guard;
mod hint;
mod hints;
mod mask;
mod operator;
mod phrase;
mod providers;
mod redact;
mod rows;
mod rule;
mod signal;
mod tokens;
mod verdict;
mod view;

pub use compile::RuleSetError;
pub use engine::{Classifier, Explanation, Match};
pub use hint::{RetryHint, RetryWhen};
pub use operator::{OperatorRule, OperatorRuleError};
pub use providers::standard_tables;
pub use redact::{KnownSecrets, redact};
pub use rule::{Fact, Family, Matcher, ProviderRules, Rule, RuleTable, StatusSet};
pub use signal::{AsSignal, Cause, Signal, Surface};
pub use verdict::{Evidence, Tier, Tokens, Verdict};

//! Says why a call to an LLM provider failed: reason, scope, retry hint and evidence.
//!
//! Pure and synchronous: no clock, no I/O, no randomness. A [`Signal`] holds what is known of the failure,
//! [`Classifier::classify`] gives a [`Verdict`] that names the row which decided. Rows are data ([`Rule`]);
//! the order in which they are believed is [`Tier`], then [`Family`].
//!
//! A body is read once, in memory that a thread keeps for its next one: a failure that names no secret costs no
//! allocation. What it costs, and how that is measured, stands in `docs/performance.md`.

mod compile;
mod eight;
mod engine;
mod explain;
mod facts;
mod fields;
mod guard;
mod hans;
mod hint;
mod hints;
mod lower;
mod mask;
mod operator;
mod phrase;
mod providers;
mod reading;
mod redact;
mod rows;
mod rule;
mod scan;
mod signal;
mod source;
mod strings;
mod terms;
mod tokens;
mod trie;
mod verdict;
mod view;
mod weights;
mod words;

pub use compile::RuleSetError;
pub use engine::Classifier;
pub use explain::{Explanation, Match};
pub use hint::{RetryHint, RetryWhen};
pub use operator::{OperatorRule, OperatorRuleError};
pub use providers::standard_tables;
pub use redact::{KnownSecrets, redact};
pub use rule::{Fact, Family, Matcher, ProviderRules, Rule, RuleTable, StatusSet};
pub use signal::{AsSignal, Cause, Signal, Surface};
pub use verdict::{Evidence, Preview, Tier, Tokens, Verdict};

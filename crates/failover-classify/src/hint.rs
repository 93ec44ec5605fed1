//! When to come back, as the provider said it.

use failover_types::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A provider's word on when to come back. It needs no clock to be read; [`RetryHint::resolve`] needs one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RetryHint {
    /// When.
    pub when: RetryWhen,
    /// Where it was read: a header's name, a field's name, or `text`.
    pub source: String,
}

/// The three forms in which providers say when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "control flow: whoever resolves a hint handles every form")]
pub enum RetryWhen {
    /// This much after the failure.
    After(Duration),
    /// At this time.
    At(Timestamp),
    /// A clock text without a date, or without a zone.
    Wall {
        /// The text as given: `4pm`, `Sep 15 11:10pm`.
        text: String,
        /// The zone as given, where it was.
        zone: Option<String>,
    },
}

impl RetryHint {
    /// A hint and where it was read.
    pub fn new(when: RetryWhen, source: impl Into<String>) -> Self {
        Self { when, source: source.into() }
    }
}

//! When to come back, as the provider said it.

use crate::hints::wall;
use failover_types::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// A provider's word on when to come back. It needs no clock to be read; [`RetryHint::resolve`] needs one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RetryHint {
    /// When.
    pub when: RetryWhen,
    /// Where it was read: a header's name, a field's name, or `text`.
    pub source: Cow<'static, str>,
    /// The same time in another form, where the provider gave both (`resets_in_seconds` and `resets_at`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<RetryWhen>,
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

/// No provider's wait is longer: 31 days. Longer ones are nonsense or a unit misread.
pub(crate) const LONGEST: Duration = Duration::from_hours(31 * 24);

impl RetryHint {
    /// A hint and where it was read.
    pub fn new(when: RetryWhen, source: impl Into<Cow<'static, str>>) -> Self {
        Self { when, source: source.into(), also: None }
    }

    /// The time to come back, seen from `now`. `None` for nonsense: a time before `now`, one more than 31 days
    /// away, or a clock text that cannot be read. A clock text without a zone is taken as UTC.
    pub fn resolve(&self, now: Timestamp) -> Option<Timestamp> {
        let at = match &self.when {
            RetryWhen::After(wait) => now.after(*wait),
            RetryWhen::At(at) => *at,
            RetryWhen::Wall { text, zone } => wall::resolve(text, zone.as_deref(), now)?,
        };
        (at >= now && at <= now.after(LONGEST)).then_some(at)
    }

    /// The wait, where the provider gave one.
    pub fn after(&self) -> Option<Duration> {
        self.forms().find_map(|when| match when {
            RetryWhen::After(wait) => Some(*wait),
            RetryWhen::At(_) | RetryWhen::Wall { .. } => None,
        })
    }

    /// The absolute time, where the provider gave one.
    pub fn at(&self) -> Option<Timestamp> {
        self.forms().find_map(|when| match when {
            RetryWhen::At(at) => Some(*at),
            RetryWhen::After(_) | RetryWhen::Wall { .. } => None,
        })
    }

    fn forms(&self) -> impl Iterator<Item = &RetryWhen> {
        std::iter::once(&self.when).chain(self.also.as_ref())
    }
}

//! What is remembered about a profile (or about a provider as a whole): windows, counters, pauses.

use failover_types::{FailoverReason, Lane, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The newest schema that this code reads and the one that it writes.
pub(crate) const SCHEMA: u32 = 1;
/// Windows kept per record; the ones that end first make room.
pub(crate) const MAX_WINDOWS: usize = 32;
/// Pauses kept per record.
pub(crate) const MAX_PAUSES: usize = 32;

/// Clocks of machines may differ by this much. What lies further in the future was written before a clock was set
/// back, and does not count: nothing stays blocked for as long as a clock was wrong.
const CLOCK_SKEW: Duration = Duration::from_mins(5);

/// Whether a time that was taken from a clock can be one.
fn is_plausible(at: Timestamp, now: Timestamp) -> bool {
    at <= now.after(CLOCK_SKEW)
}

/// What a window or a pause covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new scope must break every match on it")]
pub enum WindowScope {
    /// Everything that the record stands for: the profile, or the provider in a provider's own record.
    Profile,
    /// One model, by the provider's own name for it.
    Model(Arc<str>),
}

impl WindowScope {
    /// Whether this concerns a request for `model`. Without a model only whole-profile scopes do.
    pub fn covers(&self, model: Option<&str>) -> bool {
        match self {
            Self::Profile => true,
            Self::Model(name) => model == Some(&**name),
        }
    }

    /// Whether everything in `other` is in this too.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        matches!(self, Self::Profile) || self == other
    }
}

/// Who set the end of a window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WindowSource {
    /// Our own ladder or backoff.
    Ladder,
    /// The provider's wait: a header or a text.
    Hint,
    /// An exact reset time, and what told it.
    Reset(Arc<str>),
    /// Taken over from another program's files.
    Import,
}

impl WindowSource {
    /// Whether the end is the provider's own word.
    pub fn is_providers(&self) -> bool {
        matches!(self, Self::Hint | Self::Reset(_))
    }
}

/// The kinds of window; at most one of each per scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new class must break every match on it")]
pub enum WindowClass {
    /// Disabled: the credential is certainly gone.
    AuthPermanent,
    /// Disabled: money.
    Billing,
    /// Blocked until an exact reset time.
    Blocked,
    /// A cooldown.
    Cooling,
}

/// A time in which something is not to be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Window {
    /// What it covers.
    pub scope: WindowScope,
    /// Why.
    pub reason: FailoverReason,
    /// Its end: the first moment that is free again. [`Timestamp::ZERO`] marks a window that was lifted.
    pub until: Timestamp,
    /// Who set the end.
    pub source: WindowSource,
    /// Raised when a success, a clear or a fresher deadline replaces what stood before: a higher one wins.
    pub epoch: u64,
    /// When it was opened, or its end last moved.
    pub set_at: Timestamp,
}

impl Window {
    /// Whether it holds at `now`. One that was set by a clock more than five minutes ahead does not.
    pub fn is_active(&self, now: Timestamp) -> bool {
        now < self.until && is_plausible(self.set_at, now)
    }

    /// Which kind it is: the reason decides, then whether the end is an exact reset.
    pub fn class(&self) -> WindowClass {
        class_of(self.reason, matches!(self.source, WindowSource::Reset(_)))
    }
}

/// The kind of window that a failure of `reason` opens.
pub(crate) fn class_of(reason: FailoverReason, exact: bool) -> WindowClass {
    match reason.lane() {
        Lane::AuthPermanent => WindowClass::AuthPermanent,
        Lane::Billing => WindowClass::Billing,
        Lane::RateLimit
        | Lane::Overloaded
        | Lane::Transient
        | Lane::Auth
        | Lane::Model
        | Lane::Opaque
        | Lane::Session
        | Lane::Request
        | Lane::Raised => {
            if exact {
                WindowClass::Blocked
            } else {
                WindowClass::Cooling
            }
        }
    }
}

/// A person's decision that something is not to be routed to, until a person lifts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Pause {
    /// Raised with every pause and resume of this scope: a higher one wins.
    pub epoch: u64,
    /// Whether it holds; a lifted one stays for a while so that replicas agree.
    pub active: bool,
    /// What is paused.
    pub scope: WindowScope,
    /// Who paused or resumed it.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// Routing state of one profile, kept apart from its secret; or of a provider as a whole, under a key of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct UsageStats {
    /// Schema version of the stored form.
    pub(crate) v: u32,
    /// Never below the epoch of any window.
    pub(crate) epoch: u64,
    /// At most 32, expired and lifted ones among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) windows: Vec<Window>,
    /// When it last answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_used: Option<Timestamp>,
    /// Consecutive errors, one per window: the rung of the ladder.
    pub(crate) error_count: u32,
    /// Windows opened since the last success, by reason.
    /// Shared: most of what happens to a record leaves them as they are, and copies it.
    #[serde(skip_serializing_if = "is_empty")]
    pub(crate) failure_counts: Arc<BTreeMap<FailoverReason, u32>>,
    /// When a failure last changed anything here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_failure_at: Option<Timestamp>,
    /// At most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pauses: Vec<Pause>,
}

fn is_empty(counts: &Arc<BTreeMap<FailoverReason, u32>>) -> bool {
    counts.is_empty()
}

impl Default for UsageStats {
    fn default() -> Self {
        Self {
            v: SCHEMA,
            epoch: 0,
            windows: Vec::new(),
            last_used: None,
            error_count: 0,
            failure_counts: Arc::default(),
            last_failure_at: None,
            pauses: Vec::new(),
        }
    }
}

/// Why a stored record cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    /// Written by newer software.
    #[error(
        "usage record has schema version {found}, and this version reads up to {known}; upgrade to read it"
    )]
    Newer {
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// Not the JSON of a usage record.
    #[error("usage record is damaged")]
    Damaged(#[from] serde_json::Error),
}

impl UsageStats {
    /// Reads the stored form. Lists longer than the bounds are cut; windows that end last are kept.
    ///
    /// # Errors
    ///
    /// [`UsageError`]: newer than this code, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, UsageError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            v: u32,
        }
        let Head { v } = serde_json::from_slice(bytes)?;
        if v > SCHEMA {
            return Err(UsageError::Newer { found: v, known: SCHEMA });
        }
        let mut stats: Self = serde_json::from_slice(bytes)?;
        stats.v = SCHEMA;
        stats.epoch = stats.windows.iter().map(|window| window.epoch).fold(stats.epoch, u64::max);
        stats.bound();
        Ok(stats)
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        // Strings, numbers and maps keyed by names: nothing in here can fail to serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The windows that hold at `now`.
    pub fn active(&self, now: Timestamp) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(move |window| window.is_active(now))
    }

    /// Every remembered window, ended and lifted ones too.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// When it last answered.
    pub fn last_used(&self) -> Option<Timestamp> {
        self.last_used
    }

    /// Whether nothing differs from `other` but when it last answered.
    pub fn differs_in_use_only(&self, other: &Self) -> bool {
        // Every field is named, so that a new one cannot be forgotten here.
        let Self { v, epoch, windows, last_used: _, error_count, failure_counts, last_failure_at, pauses } =
            self;
        (*v, *epoch, *error_count, *last_failure_at)
            == (other.v, other.epoch, other.error_count, other.last_failure_at)
            && *windows == other.windows
            && *failure_counts == other.failure_counts
            && *pauses == other.pauses
    }

    /// When a failure last changed anything.
    pub fn last_failure_at(&self) -> Option<Timestamp> {
        self.last_failure_at
    }

    /// Consecutive errors, one per window.
    pub fn error_count(&self) -> u32 {
        self.error_count
    }

    /// Windows opened since the last success, by reason.
    pub fn failure_counts(&self) -> &BTreeMap<FailoverReason, u32> {
        &self.failure_counts
    }

    /// The pause that keeps requests for `model` away, if there is one.
    pub fn paused(&self, model: Option<&str>) -> Option<&Pause> {
        self.pauses.iter().find(|pause| pause.active && pause.scope.covers(model))
    }

    /// Every pause that holds.
    pub fn pauses(&self) -> impl Iterator<Item = &Pause> {
        self.pauses.iter().filter(|pause| pause.active)
    }

    /// When it last answered, unless a wrong clock said so.
    pub(crate) fn known_success(&self, now: Timestamp) -> Option<Timestamp> {
        self.last_used.filter(|at| is_plausible(*at, now))
    }

    /// When it last failed, unless a wrong clock said so.
    pub(crate) fn known_failure(&self, now: Timestamp) -> Option<Timestamp> {
        self.last_failure_at.filter(|at| is_plausible(*at, now))
    }

    /// The latest end of a window, past or to come, unless a wrong clock set it.
    pub(crate) fn last_end(&self, now: Timestamp) -> Option<Timestamp> {
        let known = self.windows.iter().filter(|window| is_plausible(window.set_at, now));
        known.map(|window| window.until).max()
    }

    /// Keeps both lists within their bounds; what ends last stays.
    pub(crate) fn bound(&mut self) {
        while self.windows.len() > MAX_WINDOWS {
            let weakest = self
                .windows
                .iter()
                .enumerate()
                .min_by_key(|(_, window)| (matches!(window.scope, WindowScope::Profile), window.until))
                .map(|(at, _)| at);
            let Some(at) = weakest else { break };
            self.windows.swap_remove(at);
        }
        if self.pauses.len() > MAX_PAUSES {
            self.pauses.sort_by_key(|pause| (!pause.active, pause.at));
            self.pauses.truncate(MAX_PAUSES);
        }
    }
}

//! Whether something may be used now, and if not, why and until when.

use crate::usage::{UsageStats, Window, WindowClass, WindowScope};
use failover_types::{FailoverReason, Timestamp};
use std::cmp::Reverse;

/// Whether something may be used now. In each case `until` is when *everything* that keeps it away has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new state must break every match on it")]
pub enum Availability {
    /// It may.
    Usable,
    /// A cooldown holds.
    Cooling {
        /// When it is free again.
        until: Timestamp,
        /// Why.
        reason: FailoverReason,
        /// What is cooling.
        scope: WindowScope,
    },
    /// Blocked until an exact reset time.
    Blocked {
        /// When it is free again.
        until: Timestamp,
        /// Why.
        reason: FailoverReason,
    },
    /// Disabled: billing, or a credential that is gone.
    Disabled {
        /// When it is free again.
        until: Timestamp,
        /// Why.
        reason: FailoverReason,
    },
    /// A person paused it; it never ends by itself.
    Paused,
}

impl Availability {
    /// Whether it may be used.
    pub fn is_usable(&self) -> bool {
        matches!(self, Self::Usable)
    }

    /// When it is free again; `None` when it is free, or paused.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Usable | Self::Paused => None,
            Self::Cooling { until, .. } | Self::Blocked { until, .. } | Self::Disabled { until, .. } => {
                Some(*until)
            }
        }
    }

    /// Why it is out; `None` when it is free, or paused.
    pub fn reason(&self) -> Option<FailoverReason> {
        match self {
            Self::Usable | Self::Paused => None,
            Self::Cooling { reason, .. } | Self::Blocked { reason, .. } | Self::Disabled { reason, .. } => {
                Some(*reason)
            }
        }
    }

    /// A stable code for lists and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::Cooling { .. } => "cooling",
            Self::Blocked { .. } => "blocked",
            Self::Disabled { .. } => "disabled",
            Self::Paused => "paused",
        }
    }

    /// Both must allow it: a profile's own state and its provider's.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let rank = |state: &Self| match state {
            Self::Usable => 0,
            Self::Cooling { .. } => 1,
            Self::Blocked { .. } => 2,
            Self::Disabled { .. } => 3,
            Self::Paused => 4,
        };
        let end = self.until().max(other.until());
        let mut both = if rank(&other) > rank(&self) { other } else { self };
        match &mut both {
            Self::Usable | Self::Paused => {}
            Self::Cooling { until, .. } | Self::Blocked { until, .. } | Self::Disabled { until, .. } => {
                *until = end.unwrap_or(*until);
            }
        }
        both
    }
}

/// Whether a request for `model` may use what `stats` stands for. Without a model only whole-profile windows count.
pub fn availability(stats: &UsageStats, model: Option<&str>, now: Timestamp) -> Availability {
    if stats.paused(model).is_some() {
        return Availability::Paused;
    }
    let mut first: Option<&Window> = None;
    let mut until = now;
    for window in stats.active(now).filter(|window| window.scope.covers(model)) {
        until = until.max(window.until);
        let stronger =
            |other: &Window| (window.class(), Reverse(window.until)) < (other.class(), Reverse(other.until));
        if first.is_none_or(stronger) {
            first = Some(window);
        }
    }
    let Some(window) = first else { return Availability::Usable };
    let reason = window.reason;
    match window.class() {
        WindowClass::AuthPermanent | WindowClass::Billing => Availability::Disabled { until, reason },
        WindowClass::Blocked => Availability::Blocked { until, reason },
        WindowClass::Cooling => Availability::Cooling { until, reason, scope: window.scope.clone() },
    }
}

/// The soonest time at which one of `profiles` can serve `model` again: `now` if one can already, `None` if all are
/// paused or there are none. Windows of other models are ignored; of a profile's own the last one counts.
pub fn soonest_expiry<'a>(
    profiles: impl IntoIterator<Item = &'a UsageStats>,
    provider: Option<&UsageStats>,
    model: Option<&str>,
    now: Timestamp,
) -> Option<Timestamp> {
    let whole = provider.map_or(Availability::Usable, |stats| availability(stats, model, now));
    profiles
        .into_iter()
        .filter_map(|stats| match availability(stats, model, now).and(whole.clone()) {
            Availability::Usable => Some(now),
            Availability::Paused => None,
            state @ (Availability::Cooling { .. }
            | Availability::Blocked { .. }
            | Availability::Disabled { .. }) => state.until(),
        })
        .min()
}

/// Ties between equally counted failures, the gravest first; what is not named comes after all of these.
const PRIORITY: &[FailoverReason] = &[
    FailoverReason::AuthPermanent,
    FailoverReason::Auth,
    FailoverReason::Billing,
    FailoverReason::Format,
    FailoverReason::ModelNotFound,
    FailoverReason::Overloaded,
    FailoverReason::Timeout,
    FailoverReason::ServerError,
    FailoverReason::RateLimit,
];

fn priority(reason: FailoverReason) -> usize {
    PRIORITY.iter().position(|known| *known == reason).unwrap_or(PRIORITY.len())
}

/// One reason why all of `profiles` are out for `model`: an active disablement first, then a block, then the failure
/// that was counted most among those that are cooling. `None` when none of them is out.
pub fn infer_reason<'a>(
    profiles: impl IntoIterator<Item = &'a UsageStats>,
    model: Option<&str>,
    now: Timestamp,
) -> Option<FailoverReason> {
    let mut disabled: Option<FailoverReason> = None;
    let mut blocked: Option<FailoverReason> = None;
    let mut counts = std::collections::BTreeMap::<FailoverReason, u64>::new();
    let gravest =
        |a: Option<FailoverReason>, b| Some(a.map_or(b, |a| if priority(b) < priority(a) { b } else { a }));
    for stats in profiles {
        let mut cooling = None;
        for window in stats.active(now).filter(|window| window.scope.covers(model)) {
            match window.class() {
                WindowClass::AuthPermanent | WindowClass::Billing => {
                    disabled = gravest(disabled, window.reason);
                }
                WindowClass::Blocked => blocked = gravest(blocked, window.reason),
                WindowClass::Cooling => cooling = gravest(cooling, window.reason),
            }
        }
        if let Some(reason) = cooling {
            if stats.failure_counts().is_empty() {
                *counts.entry(reason).or_insert(0) += 1;
            }
            for (reason, count) in stats.failure_counts() {
                *counts.entry(*reason).or_insert(0) += u64::from(*count);
            }
        }
    }
    let counted = || {
        counts
            .iter()
            .max_by_key(|(reason, count)| (**count, Reverse(priority(**reason)), Reverse(**reason)))
            .map(|(reason, _)| *reason)
    };
    disabled.or(blocked).or_else(counted)
}

//! What people and providers say outside any attempt: clear, pause, resume, a new secret, an exact reset.

use crate::CooldownPolicy;
use crate::usage::{MAX_PAUSES, Pause, UsageStats, Window, WindowClass, WindowScope, WindowSource};
use failover_types::{FailoverReason, Lane, Timestamp};
use std::sync::Arc;

/// What a manual clear lifts. Pauses are a person's own and stay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClearScope {
    /// Every window, and the counters.
    All,
    /// The windows of one model; the counters too when nothing else is left.
    Model(Arc<str>),
    /// The windows of one reason, and its counter.
    Reason(FailoverReason),
}

/// Lifts windows by hand.
#[must_use]
pub fn clear(stats: &UsageStats, scope: &ClearScope, now: Timestamp) -> UsageStats {
    let mut next = stats.clone();
    match scope {
        ClearScope::All => {
            next.lift(now, |_| true);
            next.reset_counters();
        }
        ClearScope::Model(name) => {
            next.lift(now, |window| window.scope == WindowScope::Model(Arc::clone(name)));
            if next.active(now).next().is_none() {
                next.reset_counters();
            }
        }
        ClearScope::Reason(reason) => forgive(&mut next, now, |found| found == *reason),
    }
    next
}

/// A new secret was stored for the profile: what was held against the old one is over, in auth and billing.
#[must_use]
pub fn secret_stored(stats: &UsageStats, now: Timestamp) -> UsageStats {
    let mut next = stats.clone();
    forgive(&mut next, now, |reason| {
        matches!(reason.lane(), Lane::Auth | Lane::AuthPermanent | Lane::Billing)
    });
    next
}

fn forgive(stats: &mut UsageStats, now: Timestamp, which: impl Fn(FailoverReason) -> bool) {
    stats.lift(now, |window| which(window.reason));
    if stats.failure_counts.keys().any(|reason| which(*reason)) {
        stats.raise_epoch();
        Arc::make_mut(&mut stats.failure_counts).retain(|reason, _| !which(*reason));
        if stats.failure_counts.is_empty() {
            stats.error_count = 0;
        }
    }
}

/// Blocks `scope` until an exact reset time that the provider was asked for outside any attempt; `source` names what
/// told it. A block that stands is moved or ended: this is the fresher word.
#[must_use]
pub fn with_reset(
    stats: &UsageStats,
    scope: &WindowScope,
    until: Timestamp,
    source: &str,
    policy: &CooldownPolicy,
    now: Timestamp,
) -> UsageStats {
    let mut next = stats.clone();
    let same = |window: &Window| window.class() == WindowClass::Blocked && window.scope == *scope;
    let until = until.min(now.after(policy.options().reset_cap));
    let standing = next.active(now).find(|window| same(window)).map(|window| window.until);
    if until <= now {
        next.lift(now, same);
    } else if standing != Some(until) {
        next.raise_epoch();
        let source = WindowSource::Reset(source.into());
        next.open(scope.clone(), FailoverReason::RateLimit, (until, source), now);
    }
    next
}

/// A record holds no more pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a profile can have at most {MAX_PAUSES} pauses; pause the whole profile instead")]
#[non_exhaustive]
pub struct TooManyPauses;

/// Keeps all routing away from `scope` until [`resume`].
///
/// # Errors
///
/// [`TooManyPauses`] when the record is full of other pauses.
pub fn pause(
    stats: &UsageStats,
    scope: WindowScope,
    by: &str,
    now: Timestamp,
) -> Result<UsageStats, TooManyPauses> {
    let others = stats.pauses().filter(|pause| pause.scope != scope).count();
    if others >= MAX_PAUSES {
        return Err(TooManyPauses);
    }
    Ok(set_pause(stats, scope, by, true, now))
}

/// Lifts a pause.
#[must_use]
pub fn resume(stats: &UsageStats, scope: WindowScope, by: &str, now: Timestamp) -> UsageStats {
    if stats.pauses().any(|pause| pause.scope == scope) {
        set_pause(stats, scope, by, false, now)
    } else {
        stats.clone()
    }
}

fn set_pause(stats: &UsageStats, scope: WindowScope, by: &str, active: bool, now: Timestamp) -> UsageStats {
    let mut next = stats.clone();
    let epoch = next.raise_epoch();
    next.pauses.retain(|pause| pause.scope != scope);
    let by = by.chars().filter(|c| !c.is_control()).take(120).collect();
    next.pauses.push(Pause { epoch, active, scope, by, at: now });
    next.bound();
    next
}

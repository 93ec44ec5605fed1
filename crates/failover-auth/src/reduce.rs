//! The reducer: statistics and an outcome in, statistics out.

use crate::policy::LONGEST;
use crate::usage::{UsageStats, Window, WindowClass, WindowScope, WindowSource, class_of};
use crate::{AttemptTag, CooldownPolicy, Deadline, DeadlineKind, Failure, Outcome, Success};
use failover_types::{FailoverReason, Lane, Scope, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Two deadlines closer than this are the same word: `retry-after` comes in whole seconds, and every failure in
/// flight resolves it against a slightly later `now`. Without it each of them would cost a write.
const SAME_DEADLINE: Duration = Duration::from_secs(1);
/// How long ended and lifted windows are remembered, so that a slow replica cannot bring one back: as long as the copy
/// that it may hold can still say that the window is active.
const REMEMBER: Duration = LONGEST;

/// Folds the outcome of one attempt into the record that it concerns: the profile's, or the provider's own where
/// [`Failure::blames_provider`].
///
/// Equal statistics come back when the outcome changes nothing (a failure inside an active window, a late failure,
/// a failure that blames nobody), so compare before writing.
#[must_use]
pub fn next_usage(
    stats: &UsageStats,
    outcome: &Outcome,
    policy: &CooldownPolicy,
    now: Timestamp,
) -> UsageStats {
    match outcome {
        Outcome::Success(success) => {
            let mut next = stats.clone();
            succeed(&mut next, success, now);
            next
        }
        Outcome::Failure(failure) => {
            let mut next = with_room(stats);
            fail(&mut next, failure, policy, now);
            next
        }
    }
}

/// A copy that can take one more window without growing.
fn with_room(stats: &UsageStats) -> UsageStats {
    let mut windows = Vec::with_capacity(stats.windows.len() + 1);
    windows.extend_from_slice(&stats.windows);
    let (failure_counts, pauses) = (Arc::clone(&stats.failure_counts), stats.pauses.clone());
    UsageStats { windows, failure_counts, pauses, ..*stats }
}

fn succeed(stats: &mut UsageStats, success: &Success, now: Timestamp) {
    stats.last_used = stats.known_success(now).max(Some(now));
    let model = success.model.as_deref();
    // An attempt that was accepted before a window was set does not disprove it.
    stats.lift(now, |window| window.set_at <= success.started_at && window.scope.covers(model));
    if stats.known_failure(now).is_none_or(|at| at <= success.started_at) {
        stats.reset_counters();
    }
}

fn fail(stats: &mut UsageStats, failure: &Failure, policy: &CooldownPolicy, now: Timestamp) {
    // A success that another machine's clock puts ahead of ours would make every failure late.
    let late = stats.last_used.is_some_and(|success| success <= now && failure.started_at < success);
    let Some(blamed) = blamed(failure, policy).filter(|_| !late) else { return };
    let word = failure.deadline.as_ref().and_then(|deadline| usable(deadline, policy, now));
    match class_of(
        failure.reason,
        word.as_ref().is_some_and(|(_, source)| matches!(source, WindowSource::Reset(_))),
    ) {
        class @ (WindowClass::Billing | WindowClass::AuthPermanent) => {
            disable(stats, failure, class, blamed, word, policy, now);
        }
        WindowClass::Blocked => {
            // A subscription's reset concerns the account, not the model that happened to meet it.
            let whole = !policy.is_self_balancing(&failure.provider);
            let scope = if whole { WindowScope::Profile } else { blamed };
            if let Some((until, source)) = word {
                block(stats, failure, scope, until, source, policy, now);
            }
        }
        WindowClass::Cooling => cool(stats, failure, blamed, word, policy, now),
    }
}

/// What of the record the failure blames; `None` where nobody's health suffers.
fn blamed(failure: &Failure, policy: &CooldownPolicy) -> Option<WindowScope> {
    match failure.tag {
        AttemptTag::Turn => {}
        AttemptTag::Probe | AttemptTag::Helper => return None,
    }
    if failure.by_caller {
        return None;
    }
    let model = || failure.model.as_ref().map(|name| WindowScope::Model(Arc::clone(name)));
    let narrow = match failure.scope {
        Scope::Request => return None,
        Scope::Model => true,
        Scope::Credential | Scope::Provider => false,
    };
    match failure.reason.lane() {
        Lane::RateLimit if policy.is_self_balancing(&failure.provider) => model(),
        // A saturated model says nothing about the credential, even if nobody knows which model it was.
        Lane::Overloaded if narrow => model(),
        Lane::RateLimit
        | Lane::Overloaded
        | Lane::Transient
        | Lane::Auth
        | Lane::Billing
        | Lane::AuthPermanent => Some(if narrow { model() } else { None }.unwrap_or(WindowScope::Profile)),
        Lane::Model | Lane::Opaque | Lane::Session | Lane::Request | Lane::Raised => None,
    }
}

/// The provider's own word, capped; `None` where it lies in the past.
fn usable(deadline: &Deadline, policy: &CooldownPolicy, now: Timestamp) -> Option<(Timestamp, WindowSource)> {
    let options = policy.options();
    let (cap, source) = match &deadline.kind {
        DeadlineKind::Hint => (options.hint_cap, WindowSource::Hint),
        DeadlineKind::Exact(name) => (options.reset_cap, WindowSource::Reset(Arc::clone(name))),
    };
    (deadline.until > now).then(|| (deadline.until.min(now.after(cap)), source))
}

type Word = Option<(Timestamp, WindowSource)>;

fn disable(
    stats: &mut UsageStats,
    failure: &Failure,
    class: WindowClass,
    scope: WindowScope,
    word: Word,
    policy: &CooldownPolicy,
    now: Timestamp,
) {
    if let Some(at) = stats.find(now, |window| window.class() == class && window.scope.contains(&scope)) {
        return stats.move_end(at, failure, word, None, now);
    }
    stats.forget_old_failures(policy, now);
    let count = stats.failure_counts.get(&failure.reason).copied().unwrap_or(0).saturating_add(1);
    let wait = if class == WindowClass::Billing {
        policy.billing_wait(&failure.provider, count)
    } else {
        policy.permanent_wait(count)
    };
    stats.count(failure, now);
    stats.open(scope, failure.reason, later(now.after(wait), word), now);
}

fn block(
    stats: &mut UsageStats,
    failure: &Failure,
    scope: WindowScope,
    until: Timestamp,
    source: WindowSource,
    policy: &CooldownPolicy,
    now: Timestamp,
) {
    let blocked = |window: &Window| window.class() == WindowClass::Blocked && window.scope.contains(&scope);
    if let Some(at) = stats.find(now, blocked) {
        return stats.move_end(at, failure, Some((until, source)), Some(Timestamp::ZERO), now);
    }
    stats.forget_old_failures(policy, now);
    stats.count(failure, now);
    stats.open(scope, failure.reason, (until, source), now);
}

fn cool(
    stats: &mut UsageStats,
    failure: &Failure,
    scope: WindowScope,
    word: Word,
    policy: &CooldownPolicy,
    now: Timestamp,
) {
    let cooling = |window: &Window| window.class() == WindowClass::Cooling;
    let rate_limit = failure.reason == FailoverReason::RateLimit;
    let rung = |stats: &UsageStats| now.after(policy.rung(stats.error_count.max(1)));

    // Inside a window that already keeps everything away that this failure blames: no rung, and the end moves
    // only by the provider's word.
    if stats.find(now, |window| window.scope.contains(&scope)).is_some() {
        let own = stats.find(now, |window| cooling(window) && window.scope == scope);
        let shared = || {
            stats.find(now, |window| {
                cooling(window) && window.scope.contains(&scope) && window.reason == failure.reason
            })
        };
        if let Some(at) = own.or_else(shared) {
            let floor = rung(stats);
            return stats.move_end(at, failure, word, Some(floor), now);
        }
        // What keeps it away was set for another cause; a longer wait gets a window of its own.
        let until =
            stats.active(now).filter(|window| window.scope.contains(&scope)).map(|window| window.until).max();
        if let Some(word) =
            word.filter(|(end, _)| until.is_none_or(|until| *end >= until.after(SAME_DEADLINE)))
        {
            stats.note_failure(now);
            stats.open(scope, failure.reason, word, now);
        }
        return;
    }

    // A rate limit on a second model, or on none that is known, while one model is limited: the whole profile is.
    let limited = |window: &&Window| cooling(window) && window.reason == FailoverReason::RateLimit;
    let sibling = stats.active(now).filter(limited).map(|window| window.until).max();
    if let Some(sibling) = sibling.filter(|_| rate_limit && !policy.is_self_balancing(&failure.provider)) {
        // The sibling's own wait may be long and only its own (a daily quota): it keeps its window, and the
        // profile waits no longer than the rung that the ladder stands on.
        let until = sibling.min(rung(stats));
        stats.note_failure(now);
        return stats.open(WindowScope::Profile, failure.reason, later(until, word), now);
    }

    stats.forget_old_failures(policy, now);
    stats.count(failure, now);
    let until = rung(stats);
    stats.open(scope, failure.reason, later(until, word), now);
}

/// The later of our own end and the provider's.
fn later(own: Timestamp, word: Word) -> (Timestamp, WindowSource) {
    match word {
        Some((until, source)) if until > own => (until, source),
        Some(_) | None => (own, WindowSource::Ladder),
    }
}

impl UsageStats {
    fn find(&self, now: Timestamp, wanted: impl Fn(&Window) -> bool) -> Option<usize> {
        self.windows.iter().position(|window| window.is_active(now) && wanted(window))
    }

    pub(crate) fn raise_epoch(&mut self) -> u64 {
        self.epoch = self.epoch.saturating_add(1);
        self.epoch
    }

    fn note_failure(&mut self, now: Timestamp) {
        self.last_failure_at = self.known_failure(now).max(Some(now));
    }

    fn forget_old_failures(&mut self, policy: &CooldownPolicy, now: Timestamp) {
        // While a window kept everybody away nothing could fail: the quiet time begins at its end.
        let quiet_since = self.known_failure(now).map(|at| self.last_end(now).map_or(at, |end| end.max(at)));
        if quiet_since.is_some_and(|at| now.since(at) >= policy.options().failure_window) {
            self.reset_counters();
        }
    }

    pub(crate) fn reset_counters(&mut self) {
        if self.error_count > 0 || !self.failure_counts.is_empty() {
            self.raise_epoch();
            self.error_count = 0;
            self.failure_counts = Arc::default();
        }
    }

    /// Counts a failure that opens a window. A failure at a model that an active window already keeps away takes
    /// no rung.
    fn count(&mut self, failure: &Failure, now: Timestamp) {
        let model = failure.model.as_deref();
        if self.find(now, |window| window.scope.covers(model)).is_none() {
            self.error_count = self.error_count.saturating_add(1);
        }
        let count = Arc::make_mut(&mut self.failure_counts).entry(failure.reason).or_insert(0);
        *count = count.saturating_add(1);
        self.note_failure(now);
    }

    /// Opens a window, in the place of an ended one of its kind.
    pub(crate) fn open(
        &mut self,
        scope: WindowScope,
        reason: FailoverReason,
        end: (Timestamp, WindowSource),
        now: Timestamp,
    ) {
        let (until, source) = end;
        let class = class_of(reason, matches!(source, WindowSource::Reset(_)));
        let replaced = |window: &Window| window.scope == scope && window.class() == class;
        // A later end in its place comes from a wrong clock, or from a block that was moved: it must not win again.
        if self.windows.iter().any(|window| replaced(window) && window.until >= until) {
            self.raise_epoch();
        }
        self.windows.retain(|window| {
            let forgotten = now.since(window.until.max(window.set_at)) >= REMEMBER;
            !replaced(window) && (!forgotten || window.is_active(now))
        });
        self.windows.push(Window { scope, reason, until, source, epoch: self.epoch, set_at: now });
        self.bound();
    }

    /// Takes the provider's word about an active window. It may always lengthen it. It shortens an end that was the
    /// provider's word too, if it was given to an attempt that began after that: not below `floor`, and not at all
    /// where there is no floor.
    fn move_end(
        &mut self,
        at: usize,
        failure: &Failure,
        word: Word,
        floor: Option<Timestamp>,
        now: Timestamp,
    ) {
        let Some((end, source)) = word else { return };
        let epoch = self.epoch.saturating_add(1);
        let Some(window) = self.windows.get_mut(at) else { return };
        let fresher = window.source.is_providers() && failure.started_at >= window.set_at;
        let until = match floor {
            _ if end >= window.until.after(SAME_DEADLINE) => end,
            Some(floor) if fresher && end.after(SAME_DEADLINE) <= window.until => {
                end.max(floor).min(window.until)
            }
            Some(_) | None => window.until,
        };
        if until != window.until {
            (window.until, window.source, window.reason) = (until, source, failure.reason);
            (window.epoch, window.set_at) = (epoch, now);
            self.epoch = epoch;
            self.note_failure(now);
        }
    }

    /// Ends windows for good: the raised epoch keeps a replica from bringing them back. Those that have ended, or were
    /// set in the future, too: the clock may be set back.
    pub(crate) fn lift(&mut self, now: Timestamp, which: impl Fn(&Window) -> bool) {
        let which = |window: &Window| window.until != Timestamp::ZERO && which(window);
        if self.windows.iter().any(which) {
            let epoch = self.raise_epoch();
            for window in self.windows.iter_mut().filter(|window| which(window)) {
                (window.until, window.epoch, window.set_at) = (Timestamp::ZERO, epoch, now);
            }
        }
    }
}

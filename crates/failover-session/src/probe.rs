//! When a session on a fallback tries what was selected again.

use crate::SessionEntry;
use crate::book::{Book, ProbeMark};
use crate::group::StoredSelection;
use crate::state::State;
use failover_types::{ModelRef, Timestamp};
use std::time::Duration;

/// How often the origin is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbePolicy {
    /// At the latest after this time: 5 min.
    pub every: Duration,
    /// Not sooner than this after the last probe: 30 s.
    pub throttle: Duration,
}

impl Default for ProbePolicy {
    fn default() -> Self {
        Self { every: Duration::from_mins(5), throttle: Duration::from_secs(30) }
    }
}

/// The last time at which the origin was tried: a probe, or the failure that led to the fallback. Unknown in records
/// of older versions: the origin is due at once. What is later than `newest` was written before a clock was set back.
fn last_tried(book: &Book, origin: Option<&ModelRef>, newest: Timestamp) -> Option<Timestamp> {
    let probed = book.probe.as_ref().filter(|probe| probe.origin.as_ref() == origin).map(|probe| probe.at);
    let failed = book.episode.as_ref().map(|episode| episode.since);
    [probed, failed].into_iter().flatten().filter(|at| *at <= newest).max()
}

fn due(
    state: &State<'_>,
    window_end: Option<Timestamp>,
    policy: &ProbePolicy,
    newest: Timestamp,
) -> Option<Timestamp> {
    let StoredSelection::Auto { origin, .. } = state.settled.model.selection() else { return None };
    let Some(last) = last_tried(&state.book, origin.as_ref(), newest) else { return Some(Timestamp::ZERO) };
    let latest = last.after(policy.every);
    // A window that ended before the last probe has had its probe.
    let due = window_end.filter(|end| *end > last).map_or(latest, |end| end.min(latest));
    Some(due.max(last.after(policy.throttle)))
}

/// When the origin is due: when its window ends, at the latest every 5 min; `None` where no override is settled.
///
/// `window_end` is the end of the origin's own cooldown, where it has one: when it ends, or when it was lifted. From then
/// on [`start_probe`] says yes.
pub fn next_probe(
    entry: &SessionEntry,
    window_end: Option<Timestamp>,
    policy: &ProbePolicy,
    now: Timestamp,
) -> Option<Timestamp> {
    due(&State::of(entry), window_end, policy, now.after(policy.throttle))
}

/// Starts a probe if one is due, and remembers it: whoever wins the write tries the origin in this turn, everybody
/// else goes on with the fallback.
///
/// A last try that lies in the future by more than [`ProbePolicy::throttle`] does not count: the clock was set back.
pub fn start_probe(
    entry: &SessionEntry,
    window_end: Option<Timestamp>,
    policy: &ProbePolicy,
    now: Timestamp,
) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    // A run that lost the write comes with a `now` a little older than the winner's mark, which must count.
    if due(&state, window_end, policy, now.after(policy.throttle))? > now {
        return None;
    }
    let StoredSelection::Auto { origin, .. } = state.settled.model.selection() else { return None };
    state.book.probe = Some(ProbeMark { origin, at: now });
    state.write()
}

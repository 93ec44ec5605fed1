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
/// of older versions: the origin is due at once.
fn last_tried(book: &Book, origin: Option<&ModelRef>) -> Option<Timestamp> {
    let probed = book.probe.as_ref().filter(|probe| probe.origin.as_ref() == origin).map(|probe| probe.at);
    probed.max(book.episode.as_ref().map(|episode| episode.since))
}

fn due(state: &State<'_>, window_end: Option<Timestamp>, policy: &ProbePolicy) -> Option<Timestamp> {
    let StoredSelection::Auto { origin, .. } = state.settled.model.selection() else { return None };
    let Some(last) = last_tried(&state.book, origin.as_ref()) else { return Some(Timestamp::ZERO) };
    let latest = last.after(policy.every);
    // A window that ended before the last probe has had its probe.
    let due = window_end.filter(|end| *end > last).map_or(latest, |end| end.min(latest));
    Some(due.max(last.after(policy.throttle)))
}

/// When the origin is due: when its window ends, at the latest every 5 min; `None` where no override is settled.
///
/// `window_end` is the end of the origin's own cooldown, where it has one: when it ends, or when it was lifted.
pub fn next_probe(
    entry: &SessionEntry,
    window_end: Option<Timestamp>,
    policy: &ProbePolicy,
) -> Option<Timestamp> {
    due(&State::of(entry), window_end, policy)
}

/// Starts a probe if one is due, and remembers it: whoever wins the write tries the origin in this turn, everybody
/// else goes on with the fallback.
pub fn start_probe(
    entry: &SessionEntry,
    window_end: Option<Timestamp>,
    policy: &ProbePolicy,
    now: Timestamp,
) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    if due(&state, window_end, policy)? > now {
        return None;
    }
    let StoredSelection::Auto { origin, .. } = state.settled.model.selection() else { return None };
    state.book.probe = Some(ProbeMark { origin, at: now });
    state.write()
}

//! One value that says how a session stands.

use crate::SessionEntry;
use crate::group::{StoredPin, StoredSelection};
use crate::probe::{ProbePolicy, next_probe};
use crate::state::State;
use crate::switch::PendingSwitch;
use failover_types::{FailoverReason, ModelRef, Timestamp};

/// How a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStatus {
    /// What the entry's fields say, and who wrote them.
    pub stored: StoredSelection,
    /// What is selected: a person's choice, or what the override came from. `None`: what is configured.
    pub selected: Option<ModelRef>,
    /// Who selected it: `configured`, `auto`, `user`, or a note on an old record.
    pub source: &'static str,
    /// The model that answers in its place, where they differ.
    pub answering: Option<ModelRef>,
    /// Why they differ.
    pub reason: Option<FailoverReason>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// What the override goes back to.
    pub origin: Option<ModelRef>,
    /// When that is tried again at the latest.
    pub next_probe: Option<Timestamp>,
    /// The override belongs to an attempt that has not answered yet.
    pub unproven: bool,
    /// The pinned profile, and who pinned it.
    pub pin: Option<StoredPin>,
    /// A person's choice that a run has not followed yet.
    pub pending_switch: Option<PendingSwitch>,
}

/// How a session stands. `window_end` is the end of the origin's own cooldown, where it has one.
pub fn status(
    entry: &SessionEntry,
    window_end: Option<Timestamp>,
    policy: &ProbePolicy,
    now: Timestamp,
) -> SessionStatus {
    let state = State::of(entry);
    let stored = entry.selection();
    let claim = state.book.claims.last();
    let episode = state.book.episode.as_ref();
    let (selected, answering, origin) = match &stored {
        StoredSelection::Auto { model, origin } => (origin.clone(), Some(model.clone()), origin.clone()),
        // Under the policy `turn_local` only the episode tells.
        StoredSelection::Nothing => {
            (episode.map(|it| it.selected.clone()), episode.map(|it| it.fallback.clone()), None)
        }
        StoredSelection::User { model } | StoredSelection::Legacy { model } => {
            (Some(model.clone()), None, None)
        }
        StoredSelection::Unreadable { .. } => (None, None, None),
    };
    SessionStatus {
        selected,
        source: stored.source(),
        reason: claim.map(|it| it.reason).or(episode.map(|it| it.reason)),
        since: claim.map(|it| it.at).or(episode.map(|it| it.since)),
        answering,
        origin,
        next_probe: next_probe(entry, window_end, policy, now),
        unproven: claim.is_some(),
        pin: entry.pin(),
        pending_switch: state.book.switch.clone(),
        stored,
    }
}

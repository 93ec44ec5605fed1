//! What people and the host do to an entry: selecting, resetting, compacting, heartbeats.

use crate::SessionEntry;
use crate::group::{ModelGroup, PinGroup, PinOwner, StoredSelection};
use crate::state::State;
use crate::switch::PendingSwitch;
use failover_types::{ModelRef, ModelSelector, ProfileId, Timestamp};

/// A person chose a model, and perhaps a profile with it. It holds against everything that is under way.
pub fn select_user(entry: &SessionEntry, choice: &ModelSelector, now: Timestamp) -> SessionEntry {
    let mut state = State::of(entry);
    state.new_epoch();
    state.settled.model = ModelGroup::user(&choice.model);
    state.settled.pin = choice.profile.as_ref().map_or_else(PinGroup::default, PinGroup::user);
    state.book.switch = Some(PendingSwitch::new(choice.clone(), now, state.book.epoch));
    state.write().unwrap_or_else(|| entry.clone())
}

/// A person went back to what is configured, which is `default` now.
pub fn select_default(entry: &SessionEntry, default: &ModelRef, now: Timestamp) -> SessionEntry {
    let mut state = State::of(entry);
    state.new_epoch();
    state.settled.model = ModelGroup::default();
    state.settled.pin = PinGroup::default();
    let choice = ModelSelector::new(default.clone(), None);
    state.book.switch = Some(PendingSwitch::new(choice, now, state.book.epoch));
    state.write().unwrap_or_else(|| entry.clone())
}

/// A person pinned a profile to the session and left the model as it is, or released it (`None`). Runs that are under
/// way write no pin over it.
pub fn pin_user(entry: &SessionEntry, profile: Option<&ProfileId>) -> SessionEntry {
    let mut state = State::of(entry);
    state.book.claims.iter_mut().for_each(|claim| claim.pin = None);
    state.settled.pin = profile.map_or_else(PinGroup::default, PinGroup::user);
    state.write().unwrap_or_else(|| entry.clone())
}

/// How a session begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: the ways to begin anew")]
pub enum ResetKind {
    /// `/reset`, `sessions.reset`: what the system wrote goes, what a person chose stays.
    Reset,
    /// `/new`: a person's pin ends as well; the chosen model stays.
    New,
    /// Whatever was chosen goes, by whomever: what is configured counts again.
    All,
}

/// Clears automatic overrides and automatic pins at once; and what a person chose, as far as `kind` says.
pub fn reset(entry: &SessionEntry, kind: ResetKind) -> SessionEntry {
    let mut state = State::of(entry);
    state.new_epoch();
    state.book.switch = None;
    if kind == ResetKind::All || !state.settled.model.selection().is_a_choice() {
        state.settled.model = ModelGroup::default();
    }
    if kind != ResetKind::Reset || state.settled.pin.is_ours() {
        state.settled.pin = PinGroup::default();
    }
    state.write().unwrap_or_else(|| entry.clone())
}

/// The session was compacted, for the `count`-th time: automatic pins from before lapse. `None` where there are none.
pub fn compaction(entry: &SessionEntry, count: u64) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    for claim in &mut state.book.claims {
        if let Some(pin) = claim.pin.as_mut().filter(|pin| pin.compaction_count < count) {
            pin.profile = None;
        }
    }
    let pin = state.settled.pin.pin();
    if pin.is_some_and(|pin| pin.owner == PinOwner::Auto && pin.compaction_count.unwrap_or(0) < count) {
        state.settled.pin = PinGroup::default();
    }
    state.write()
}

/// A heartbeat run without a model of its own begins: an override goes whose origin is not the configured default any
/// more. `None` where there is none.
pub fn clear_stale_origin(entry: &SessionEntry, default: &ModelRef) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    state.book.claims.retain(|claim| claim.origin == *default);
    if let StoredSelection::Auto { model, origin: Some(origin) } = state.settled.model.selection()
        && origin != *default
    {
        state.settled.model = ModelGroup::default();
        if state.settled.pin.is_ours() {
            state.settled.pin = PinGroup::default();
        }
        state.back_on(default, &model);
    }
    state.write()
}

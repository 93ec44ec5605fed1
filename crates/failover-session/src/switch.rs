//! Live switch: a person chose another model while a run is under way.

use crate::state::State;
use crate::{SessionEntry, Ticket};
use failover_types::{ModelRef, ModelSelector, ProfileId, Timestamp};
use serde::{Deserialize, Serialize};

/// A choice that a running run has not followed yet. Only people's changes leave one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PendingSwitch {
    /// The chosen model.
    pub model: ModelRef,
    /// The profile chosen with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileId>,
    /// When it was chosen.
    pub at: Timestamp,
    /// The epoch that the choice began.
    pub(crate) epoch: u64,
}

impl PendingSwitch {
    pub(crate) fn new(choice: ModelSelector, at: Timestamp, epoch: u64) -> Self {
        Self { model: choice.model, profile: choice.profile, at, epoch }
    }
}

/// The switch that a run should follow: one that was asked for after the run began.
pub fn pending_switch<'e>(entry: &'e SessionEntry, ticket: &Ticket) -> Option<&'e PendingSwitch> {
    entry.book().switch.as_ref().filter(|switch| switch.epoch > ticket.epoch)
}

/// A run followed a switch, or began after it: it is not pending any more.
pub fn acknowledge_switch(entry: &SessionEntry, followed: &PendingSwitch) -> Option<SessionEntry> {
    let mut state = State::of(entry);
    if state.book.switch.as_ref() == Some(followed) {
        state.book.switch = None;
    }
    state.write()
}

/// What a run does about a live switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: the three answers to a live switch")]
pub enum SwitchStep {
    /// The chosen model is a later candidate: go on with it at once.
    Jump(usize),
    /// It is the current or an earlier candidate: the current attempt counts as failed, and the chain goes on.
    FailCandidate,
    /// It is not in the chain: the caller starts another run.
    Return,
}

/// Decides about a live switch, for a chain of `candidates` whose `current` one is being attempted.
pub fn decide_switch<'m>(
    candidates: impl IntoIterator<Item = &'m ModelRef>,
    current: usize,
    wanted: &ModelRef,
) -> SwitchStep {
    match candidates.into_iter().position(|candidate| candidate == wanted) {
        Some(at) if at > current => SwitchStep::Jump(at),
        Some(_) => SwitchStep::FailCandidate,
        None => SwitchStep::Return,
    }
}

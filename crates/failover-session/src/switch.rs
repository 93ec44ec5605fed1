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

/// A run answered, with `answered`: a choice that it began with, or has followed, is not pending any more. `None` where
/// nothing is to be written.
pub fn acknowledge_switch(
    entry: &SessionEntry,
    ticket: &Ticket,
    answered: &ModelRef,
) -> Option<SessionEntry> {
    let followed = |switch: &PendingSwitch| switch.epoch <= ticket.epoch || switch.model == *answered;
    entry.book().switch.as_ref().filter(|switch| followed(switch))?;
    let mut state = State::of(entry);
    state.book.switch = None;
    state.write()
}

impl From<&PendingSwitch> for ModelSelector {
    fn from(switch: &PendingSwitch) -> Self {
        Self::new(switch.model.clone(), switch.profile.clone())
    }
}

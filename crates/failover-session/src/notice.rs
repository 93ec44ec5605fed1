//! Notices: what the person at the other end is told, exactly once each.

use crate::SessionEntry;
use crate::state::State;
use failover_types::{FailoverReason, ModelRef};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum NoticeKind {
    /// The session moved onto a fallback.
    Fallback {
        /// Why.
        reason: FailoverReason,
    },
    /// The session is back on what was selected.
    Cleared,
}

/// A notice: a value apart from what models say. Its `Display` is the text to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Notice {
    /// Names it within its session: a host that shows one twice after a crash can tell.
    pub serial: u64,
    /// What is selected.
    pub primary: ModelRef,
    /// What answers, or answered, in its place.
    pub fallback: ModelRef,
    /// What happened.
    pub kind: NoticeKind,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { primary, fallback, .. } = self;
        match self.kind {
            NoticeKind::Fallback { reason } => {
                write!(f, "↪️ Model Fallback: {fallback} (selected {primary}; {reason})")
            }
            NoticeKind::Cleared => write!(f, "↪️ Model Fallback cleared: {primary} (was {fallback})"),
        }
    }
}

/// Takes the notices that nobody has taken yet. Whoever wins the write shows them; `None` where there are none.
///
/// They wait in the entry, so that a crash between the move and the reply loses none.
pub fn take_notices(entry: &SessionEntry) -> Option<(SessionEntry, Vec<Notice>)> {
    let mut state = State::of(entry);
    let taken = std::mem::take(&mut state.book.notices);
    if taken.is_empty() {
        return None;
    }
    state.write().map(|next| (next, taken))
}

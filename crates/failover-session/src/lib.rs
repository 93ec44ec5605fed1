//! Session entries: what a session uses, who chose it, and how a fallback comes and goes without a trace of damage.
//!
//! Everything is a pure function from an entry to the next one; [`Sessions`] carries them out as compare-and-swap
//! loops over a [`failover_store::KeyValue`].
//!
//! # Layers
//!
//! An entry holds two ownership groups, the model selection and the auth pin. Below them lies what is *settled*: what a
//! person chose, what a fallback that answered left behind, or nothing. On top of it lie *claims*: overrides of attempts
//! that have not answered yet, at most one per run, oldest first. The fields of an entry always show the newest
//! claim, or what is settled where there is none, and each group is written as a whole, so no reader sees half of one.
//!
//! - [`apply_fallback`] adds a claim before an attempt, unless somebody's choice stands.
//! - [`roll_back`] removes it after a failure: the fields show what lay below, not some default.
//! - [`settle`] makes it the settled layer after a success; [`settle_origin`] removes the override after the
//!   origin answered.
//! - [`recover`] rolls claims of dead runs back.
//! - A person's choice ([`select_user`]) and a [`reset`] drop all claims and raise the *epoch*: runs that began before
//!   can write nothing any more.
//!
//! A writer that knows nothing of the layers is recognized by the fields: where they do not show what the claims say,
//! the claims are void and what stands is settled.

mod book;
mod claim;
mod entry;
mod group;
mod notice;
mod person;
mod probe;
mod state;
mod status;
mod switch;
mod table;

pub use book::Marker;
pub use claim::{
    Claim, Rollback, Ticket, apply_fallback, expired, note_turn, pin_auto, recover, roll_back, settle,
    settle_origin, ticket,
};
pub use entry::{BOOK_FIELD, EntryError, SessionEntry, is_owned};
pub use group::{PinOwner, StoredPin, StoredSelection};
pub use notice::{Notice, NoticeKind, take_notices};
pub use person::{ResetKind, clear_stale_origin, compaction, reset, select_default, select_user};
pub use probe::{ProbePolicy, next_probe, start_probe};
pub use status::{SessionStatus, status};
pub use switch::{PendingSwitch, SwitchStep, acknowledge_switch, decide_switch, pending_switch};
pub use table::{SessionKey, Sessions, SessionsError};

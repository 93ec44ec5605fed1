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

//! # One run
//!
//! ```
//! use failover_session::{Claim, SessionEntry, StoredSelection, apply_fallback, roll_back, settle, take_notices, ticket};
//! use failover_types::{FailoverReason, RunId, Timestamp};
//! use std::time::Duration;
//!
//! let entry = SessionEntry::parse(br#"{"title":"Holidays","tokens":1.50}"#)?;
//! let (now, lease) = (Timestamp::from_millis(1), Duration::from_mins(5));
//! let ticket = ticket(&entry, RunId::new("run-1")?);
//!
//! // The primary failed: the override is written before the next model is tried.
//! let origin = "openai/gpt-5".parse()?;
//! let claim = Claim::new(ticket, "acme/large".parse()?, origin, FailoverReason::Overloaded, now, lease);
//! let claimed = apply_fallback(&entry, &claim).ok_or("somebody's choice stands")?;
//!
//! // Had it failed as well, nothing would be left of it.
//! assert_eq!(roll_back(&claimed, &claim).into_entry(), Some(entry));
//!
//! // It answers.
//! let settled = settle(&claimed, &claim).ok_or("the claim does not stand any more")?;
//! let (told, notices) = take_notices(&settled).ok_or("told already")?;
//! assert_eq!(notices[0].to_string(), "↪️ Model Fallback: acme/large (selected openai/gpt-5; overloaded)");
//! assert!(matches!(told.selection(), StoredSelection::Auto { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
    Claim, Rollback, Ticket, apply_fallback, expired, note_turn, pin_auto, recover, renew, roll_back, settle,
    settle_origin, ticket,
};
pub use entry::{BOOK_FIELD, EntryError, SessionEntry, is_owned};
pub use group::{PinOwner, StoredPin, StoredSelection};
pub use notice::{Notice, NoticeKind, take_notices};
pub use person::{ResetKind, clear_stale_origin, compaction, pin_user, reset, select_default, select_user};
pub use probe::{ProbePolicy, next_probe, start_probe};
pub use status::{SessionStatus, status};
pub use switch::{PendingSwitch, acknowledge_switch, pending_switch};
pub use table::{SessionKey, Sessions, SessionsError};

//! Short ways to write entries, models and claims.

use failover_session::{Claim, SessionEntry, Ticket, ticket};
use failover_types::{FailoverReason, ModelRef, ProfileId, RunId, Timestamp};
use std::time::Duration;

pub(crate) fn model(text: &str) -> ModelRef {
    text.parse().unwrap()
}

pub(crate) fn entry(json: &str) -> SessionEntry {
    SessionEntry::parse(json.as_bytes()).unwrap()
}

pub(crate) fn run(entry: &SessionEntry, id: &str) -> Ticket {
    ticket(entry, RunId::new(id).unwrap())
}

pub(crate) const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

/// A claim on a model with the profile `<provider>:work`, from `a/m1`, for ten minutes.
pub(crate) fn claim(ticket: &Ticket, to: &str, now: Timestamp) -> Claim {
    let to = model(to);
    let profile = ProfileId::new(format!("{}:work", to.provider())).unwrap();
    let reason = FailoverReason::Overloaded;
    Claim::new(ticket.clone(), to, model("a/m1"), reason, now, Duration::from_mins(10))
        .with_profile(profile, 2)
}

/// What a restart leaves: the bytes.
pub(crate) fn restarted(entry: &SessionEntry) -> SessionEntry {
    SessionEntry::parse(entry.to_json().as_bytes()).unwrap()
}

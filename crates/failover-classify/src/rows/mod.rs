//! Generic rows: wordings and codes that more than one provider, proxy or client uses.
//!
//! A file holds one kind of meaning. Inside a file the order does not matter: precedence is the tier, then the
//! family (see [`crate::Family`]).

mod auth;
mod billing;
mod codes;
mod empty;
mod format;
mod languages;
mod languages_far;
mod local;
mod model;
mod overflow;
mod overloaded;
mod pairs;
mod pairs_languages;
mod prose;
mod rate;
mod refusal;
mod server;
mod session;
mod slots;
mod status;
mod transport;
mod types;
mod weighed;
mod wordings;

use crate::Tier;
use crate::rule::{Family, Rule};
use failover_types::FailoverReason;

/// Every generic table.
pub(crate) const TABLES: &[&[Rule]] = &[
    auth::ROWS,
    billing::ROWS,
    codes::ROWS,
    empty::ROWS,
    format::ROWS,
    languages::ROWS,
    languages_far::ROWS,
    local::ROWS,
    model::ROWS,
    overflow::ROWS,
    overloaded::ROWS,
    prose::ROWS,
    rate::ROWS,
    refusal::ROWS,
    server::ROWS,
    session::ROWS,
    slots::ROWS,
    status::ROWS,
    transport::ROWS,
    types::ROWS,
    weighed::ROWS,
    wordings::ROWS,
    // Last: where an older row of the family holds too, it names the case more closely.
    pairs::ROWS,
    pairs_languages::ROWS,
];

/// A row of the message tier.
pub(crate) const fn text(
    id: &'static str,
    family: Family,
    reason: FailoverReason,
    any: &'static [&'static str],
) -> Rule {
    Rule::new(id, Tier::Message, family, reason).any(any)
}

/// A row of the code tier.
pub(crate) const fn code(
    id: &'static str,
    family: Family,
    reason: FailoverReason,
    codes: &'static [&'static str],
) -> Rule {
    Rule::new(id, Tier::Code, family, reason).codes(codes)
}

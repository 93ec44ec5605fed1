//! Texts in words that no row knows: what the words weigh together decides (see `weights.rs`).
//!
//! They stand between the types that an error names and its status, which they overrule: `400` says little where the text
//! speaks of an empty purse. One row a reason, so that evidence, reports and an operator's eye can tell such a verdict from one of a known wording.
//! A credential is never given up for words alone, so there is no row for `auth_permanent`.

use crate::Tier;
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::{
    self, Aborted, Auth, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Format, LocalCoordination,
    ModelNotFound, Overloaded, RateLimit, ServerError, SessionExpired, Timeout,
};

const fn row(id: &'static str, reason: FailoverReason, facts: &'static [Fact]) -> Rule {
    Rule::new(id, Tier::Status, Family::Weight, reason).facts(facts).evidence("docs:architecture")
}

pub(crate) const ROWS: &[Rule] = &[
    row("core/weighs-rate-limit", RateLimit, &[Fact::Worded, Fact::Weighs(RateLimit)]),
    row("core/weighs-overloaded", Overloaded, &[Fact::Worded, Fact::Weighs(Overloaded)]),
    row("core/weighs-billing", Billing, &[Fact::Worded, Fact::Weighs(Billing)]),
    row("core/weighs-auth", Auth, &[Fact::Worded, Fact::Weighs(Auth)]),
    row("core/weighs-model", ModelNotFound, &[Fact::Worded, Fact::Weighs(ModelNotFound)]),
    row("core/weighs-overflow", ContextOverflow, &[Fact::Worded, Fact::Weighs(ContextOverflow)]),
    row("core/weighs-refusal", ContentRefusal, &[Fact::Worded, Fact::Weighs(ContentRefusal)]),
    row("core/weighs-format", Format, &[Fact::Worded, Fact::Weighs(Format)]),
    row("core/weighs-timeout", Timeout, &[Fact::Worded, Fact::Weighs(Timeout)]),
    row("core/weighs-server", ServerError, &[Fact::Worded, Fact::Weighs(ServerError)]),
    row("core/weighs-empty", EmptyResponse, &[Fact::Worded, Fact::Weighs(EmptyResponse)]),
    row("core/weighs-session", SessionExpired, &[Fact::Worded, Fact::Weighs(SessionExpired)]),
    row("core/weighs-local", LocalCoordination, &[Fact::Worded, Fact::Weighs(LocalCoordination)]),
    row("core/weighs-aborted", Aborted, &[Fact::Worded, Fact::Weighs(Aborted)]),
];

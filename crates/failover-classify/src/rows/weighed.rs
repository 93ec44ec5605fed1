//! Texts in words that no row knows: what the words weigh together decides (see `weights.rs`).
//!
//! `core/weighs-*` stand between the types that an error names and its status, which they overrule: `400` says little
//! where the text speaks of an empty purse. `core/outweighs-*` stand before the wordings that rows know, and want far
//! more: a text may say "internal error" by the way. Either yields to a row that says the same, for it can show where.
//! One row a reason, so that evidence, reports and an operator's eye can tell such a verdict from one of a known wording.
//! A credential is never given up for words alone, so there is no row for `auth_permanent`.

use crate::Tier;
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::{
    self, Aborted, Auth, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Format, LocalCoordination,
    ModelNotFound, Overloaded, RateLimit, ServerError, SessionExpired, Timeout,
};

const fn weighs(id: &'static str, reason: FailoverReason, facts: &'static [Fact]) -> Rule {
    Rule::new(id, Tier::Status, Family::Weight, reason).facts(facts).evidence("docs:architecture")
}

const fn outweighs(id: &'static str, reason: FailoverReason, facts: &'static [Fact]) -> Rule {
    Rule::new(id, Tier::Message, Family::Outweighs, reason).facts(facts).evidence("docs:architecture")
}

pub(crate) const ROWS: &[Rule] = &[
    outweighs("core/outweighs-rate-limit", RateLimit, &[Fact::Worded, Fact::Outweighs(RateLimit)]),
    outweighs("core/outweighs-overloaded", Overloaded, &[Fact::Worded, Fact::Outweighs(Overloaded)]),
    outweighs("core/outweighs-billing", Billing, &[Fact::Worded, Fact::Outweighs(Billing)]),
    outweighs("core/outweighs-auth", Auth, &[Fact::Worded, Fact::Outweighs(Auth)]),
    outweighs("core/outweighs-model", ModelNotFound, &[Fact::Worded, Fact::Outweighs(ModelNotFound)]),
    outweighs("core/outweighs-overflow", ContextOverflow, &[Fact::Worded, Fact::Outweighs(ContextOverflow)]),
    outweighs("core/outweighs-refusal", ContentRefusal, &[Fact::Worded, Fact::Outweighs(ContentRefusal)]),
    outweighs("core/outweighs-format", Format, &[Fact::Worded, Fact::Outweighs(Format)]),
    outweighs("core/outweighs-timeout", Timeout, &[Fact::Worded, Fact::Outweighs(Timeout)]),
    outweighs("core/outweighs-server", ServerError, &[Fact::Worded, Fact::Outweighs(ServerError)]),
    outweighs("core/outweighs-empty", EmptyResponse, &[Fact::Worded, Fact::Outweighs(EmptyResponse)]),
    outweighs("core/outweighs-session", SessionExpired, &[Fact::Worded, Fact::Outweighs(SessionExpired)]),
    outweighs("core/outweighs-local", LocalCoordination, &[Fact::Worded, Fact::Outweighs(LocalCoordination)]),
    outweighs("core/outweighs-aborted", Aborted, &[Fact::Worded, Fact::Outweighs(Aborted)]),
    weighs("core/weighs-rate-limit", RateLimit, &[Fact::Worded, Fact::Weighs(RateLimit)]),
    weighs("core/weighs-overloaded", Overloaded, &[Fact::Worded, Fact::Weighs(Overloaded)]),
    weighs("core/weighs-billing", Billing, &[Fact::Worded, Fact::Weighs(Billing)]),
    weighs("core/weighs-auth", Auth, &[Fact::Worded, Fact::Weighs(Auth)]),
    weighs("core/weighs-model", ModelNotFound, &[Fact::Worded, Fact::Weighs(ModelNotFound)]),
    weighs("core/weighs-overflow", ContextOverflow, &[Fact::Worded, Fact::Weighs(ContextOverflow)]),
    weighs("core/weighs-refusal", ContentRefusal, &[Fact::Worded, Fact::Weighs(ContentRefusal)]),
    weighs("core/weighs-format", Format, &[Fact::Worded, Fact::Weighs(Format)]),
    weighs("core/weighs-timeout", Timeout, &[Fact::Worded, Fact::Weighs(Timeout)]),
    weighs("core/weighs-server", ServerError, &[Fact::Worded, Fact::Weighs(ServerError)]),
    weighs("core/weighs-empty", EmptyResponse, &[Fact::Worded, Fact::Weighs(EmptyResponse)]),
    weighs("core/weighs-session", SessionExpired, &[Fact::Worded, Fact::Weighs(SessionExpired)]),
    weighs("core/weighs-local", LocalCoordination, &[Fact::Worded, Fact::Weighs(LocalCoordination)]),
    weighs("core/weighs-aborted", Aborted, &[Fact::Worded, Fact::Weighs(Aborted)]),
];

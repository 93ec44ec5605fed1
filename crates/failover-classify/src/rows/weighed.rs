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
    outweighs("core/outweighs-rate-limit", RateLimit, &[Fact::Outweighs(RateLimit), Fact::Worded]),
    outweighs("core/outweighs-overloaded", Overloaded, &[Fact::Outweighs(Overloaded), Fact::Worded]),
    outweighs("core/outweighs-billing", Billing, &[Fact::Outweighs(Billing), Fact::Worded]),
    outweighs("core/outweighs-auth", Auth, &[Fact::Outweighs(Auth), Fact::Worded]),
    outweighs("core/outweighs-model", ModelNotFound, &[Fact::Outweighs(ModelNotFound), Fact::Worded]),
    outweighs("core/outweighs-overflow", ContextOverflow, &[Fact::Outweighs(ContextOverflow), Fact::Worded]),
    outweighs("core/outweighs-refusal", ContentRefusal, &[Fact::Outweighs(ContentRefusal), Fact::Worded]),
    outweighs("core/outweighs-format", Format, &[Fact::Outweighs(Format), Fact::Worded]),
    outweighs("core/outweighs-timeout", Timeout, &[Fact::Outweighs(Timeout), Fact::Worded]),
    outweighs("core/outweighs-server", ServerError, &[Fact::Outweighs(ServerError), Fact::Worded]),
    outweighs("core/outweighs-empty", EmptyResponse, &[Fact::Outweighs(EmptyResponse), Fact::Worded]),
    outweighs("core/outweighs-session", SessionExpired, &[Fact::Outweighs(SessionExpired), Fact::Worded]),
    outweighs("core/outweighs-local", LocalCoordination, &[Fact::Outweighs(LocalCoordination), Fact::Worded]),
    outweighs("core/outweighs-aborted", Aborted, &[Fact::Outweighs(Aborted), Fact::Worded]),
    weighs("core/weighs-rate-limit", RateLimit, &[Fact::Weighs(RateLimit), Fact::Worded]),
    weighs("core/weighs-overloaded", Overloaded, &[Fact::Weighs(Overloaded), Fact::Worded]),
    weighs("core/weighs-billing", Billing, &[Fact::Weighs(Billing), Fact::Worded]),
    weighs("core/weighs-auth", Auth, &[Fact::Weighs(Auth), Fact::Worded]),
    weighs("core/weighs-model", ModelNotFound, &[Fact::Weighs(ModelNotFound), Fact::Worded]),
    weighs("core/weighs-overflow", ContextOverflow, &[Fact::Weighs(ContextOverflow), Fact::Worded]),
    weighs("core/weighs-refusal", ContentRefusal, &[Fact::Weighs(ContentRefusal), Fact::Worded]),
    weighs("core/weighs-format", Format, &[Fact::Weighs(Format), Fact::Worded]),
    weighs("core/weighs-timeout", Timeout, &[Fact::Weighs(Timeout), Fact::Worded]),
    weighs("core/weighs-server", ServerError, &[Fact::Weighs(ServerError), Fact::Worded]),
    weighs("core/weighs-empty", EmptyResponse, &[Fact::Weighs(EmptyResponse), Fact::Worded]),
    weighs("core/weighs-session", SessionExpired, &[Fact::Weighs(SessionExpired), Fact::Worded]),
    weighs("core/weighs-local", LocalCoordination, &[Fact::Weighs(LocalCoordination), Fact::Worded]),
    weighs("core/weighs-aborted", Aborted, &[Fact::Weighs(Aborted), Fact::Worded]),
];

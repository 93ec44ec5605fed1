//! The built-in tables: generic rows under `core`, and one table a provider.
//!
//! Rows of a provider fire for its ids only: `zhipu` and `zhipu-coding`, never `openai` (C-16).

mod china;
mod cloud;
mod relays;
mod rest;

use crate::Tier;
use crate::rows;
use crate::rule::{Family, Rule, RuleTable};
use failover_types::FailoverReason;

/// All built-in tables.
pub fn standard_tables() -> Vec<RuleTable> {
    let mut tables: Vec<RuleTable> = rows::TABLES.iter().map(|rows| RuleTable::new("core", rows)).collect();
    let providers = [china::TABLES, cloud::TABLES, relays::TABLES, rest::TABLES];
    tables.extend(
        providers.iter().flat_map(|tables| tables.iter()).map(|(name, rows)| RuleTable::new(name, rows)),
    );
    tables
}

/// Tables by namespace.
pub(crate) type Tables = &'static [(&'static str, &'static [Rule])];

/// A row for codes of one provider.
pub(crate) const fn code(
    id: &'static str,
    providers: &'static [&'static str],
    family: Family,
    reason: FailoverReason,
    codes: &'static [&'static str],
) -> Rule {
    Rule::new(id, Tier::Code, family, reason).providers(providers).codes(codes)
}

/// A row for wordings of one provider.
pub(crate) const fn text(
    id: &'static str,
    providers: &'static [&'static str],
    family: Family,
    reason: FailoverReason,
    any: &'static [&'static str],
) -> Rule {
    Rule::new(id, Tier::Provider, family, reason).providers(providers).any(any)
}

//! The built-in tables: generic rows under `core`, and one table a provider.

use crate::rows;
use crate::rule::RuleTable;

/// All built-in tables.
pub fn standard_tables() -> Vec<RuleTable> {
    let mut tables: Vec<RuleTable> = rows::TABLES.iter().map(|rows| RuleTable::new("core", rows)).collect();
    tables.extend(TABLES.iter().map(|(namespace, rows)| RuleTable::new(namespace, rows)));
    tables
}

const TABLES: &[(&str, &[crate::Rule])] = &[];

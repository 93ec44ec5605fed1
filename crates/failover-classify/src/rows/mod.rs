//! Generic rows: wordings and codes that more than one provider, proxy or client uses.

mod status;

use crate::Rule;

/// Every generic table.
pub(crate) const TABLES: &[&[Rule]] = &[status::ROWS];

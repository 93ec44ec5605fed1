//! What classification says: reason, scope, hint and the evidence for them.

use crate::RetryHint;
use failover_types::{FailoverReason, Lane, Scope};
use serde::{Deserialize, Serialize};

/// The order in which rules are believed: the first tier with a match wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the order of tiers is the order of precedence, and it is closed"
)]
pub enum Tier {
    /// The caller's own conditions: cancelled, a lock, the disk.
    Local,
    /// Rules that an operator wrote in config.
    Operator,
    /// Structured codes and types.
    Code,
    /// Wordings that one provider owns.
    Provider,
    /// Wordings of families of providers.
    Message,
    /// The HTTP status.
    Status,
    /// Nothing better was known.
    Fallback,
}

/// Token counts that the text of an error named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// How many the request had.
    pub observed: Option<u64>,
    /// How many are allowed.
    pub allowed: Option<u64>,
}

/// Why the verdict is what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Evidence {
    /// Id of the deciding rule, `namespace/kebab-name`.
    pub rule: String,
    /// The rule's tier.
    pub tier: Tier,
    /// What matched, as bytes `[start, end)` of the body; `None` for headers, status and code.
    pub span: Option<(usize, usize)>,
    /// The error's text, redacted and cut.
    pub preview: String,
}

/// What classification says of a failed call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Why the call failed.
    pub reason: FailoverReason,
    /// What is to blame.
    pub scope: Scope,
    /// When to come back, where the provider said so.
    pub hint: Option<RetryHint>,
    /// Token counts, where the text named them.
    pub tokens: Option<Tokens>,
    /// Why.
    pub evidence: Evidence,
}

impl Verdict {
    /// How the failure is handled.
    pub fn lane(&self) -> Lane {
        self.reason.lane()
    }
}

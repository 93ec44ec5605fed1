//! What classification says: reason, scope, hint and the evidence for them.

use crate::RetryHint;
use failover_types::{FailoverReason, Lane, Scope};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

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
    pub rule: Cow<'static, str>,
    /// The rule's tier.
    pub tier: Tier,
    /// What matched, as bytes `[start, end)` of the body; `None` for headers, status and code.
    pub span: Option<(usize, usize)>,
    /// The error's text, redacted and cut.
    pub preview: Preview,
}

/// A short text that is kept inline: a preview costs no allocation.
#[derive(Clone, PartialEq, Eq)]
pub struct Preview {
    bytes: [u8; Self::LONGEST],
    len: usize,
}

impl Preview {
    /// No preview is longer, in bytes.
    pub const LONGEST: usize = 240;

    /// The text, cut at the last char that fits, without white space around it.
    pub(crate) fn of(text: &str) -> Self {
        let text = text.get(..crate::facts::floor(text, Self::LONGEST)).unwrap_or_default().trim();
        let mut preview = Self::default();
        if let Some(place) = preview.bytes.get_mut(..text.len()) {
            place.copy_from_slice(text.as_bytes());
            preview.len = text.len();
        }
        preview
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl Default for Preview {
    fn default() -> Self {
        Self { bytes: [0; Self::LONGEST], len: 0 }
    }
}

impl Deref for Preview {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Preview {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
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

/// Rows that know texts about a proof in the conversation: a signature, encrypted reasoning.
const PROOFS: [&str; 4] = ["core/session-proof", "core/pairs-proof", "core/code-proof", "core/format-proof"];

impl Verdict {
    /// How the failure is handled.
    pub fn lane(&self) -> Lane {
        self.reason.lane()
    }

    /// Whether a proof in the conversation (a signature, encrypted reasoning) was refused: without it the request may be
    /// answered.
    pub fn refuses_a_proof(&self) -> bool {
        PROOFS.contains(&&*self.evidence.rule)
    }
}

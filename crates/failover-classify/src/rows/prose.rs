//! Texts that are no failure of a model call: prose, tool output, compilers, a client's own fallback text.

use super::text;
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::Unclassified;

const fn row(id: &'static str, any: &'static [&'static str]) -> Rule {
    text(id, Family::NotAFailure, Unclassified, any)
}

pub(crate) const ROWS: &[Rule] = &[
    Rule::new("core/prose", crate::Tier::Message, Family::NotAFailure, Unclassified)
        .facts(&[Fact::Prose, Fact::NoStatus]),
    row("core/own-fallback", &["llm request failed with an unknown error"])
        .facts(&[Fact::Short])
        .evidence("spec:C-17"),
    row(
        "core/compiler",
        &[
            "error: ambiguous overload",
            "overloaded operator",
            "no overload matches this call",
            "overloaded function",
            "candidate function not viable",
            "error: use of",
            "error[e0*",
            "error ts*: ",
            "undefined reference to",
        ],
    ),
    row(
        "core/explanation",
        &[
            "based on the error message",
            "the vendor's api",
            "the error means",
            "this error {means|indicates|occurs when|usually means|typically occurs|happens when}",
            "{here is|here's|here are} .. {how|what|an explanation|a summary|some}",
            "we can identify the following",
            "in this {article|tutorial|guide|section|example|post}",
            "to {handle|avoid|fix|implement|prevent} .. {rate limits|rate limiting|timeouts|errors}, ",
            "you {can|should|could|may want to} {implement|use|add|consider|handle} .. {backoff|retry|retries|rate limiting|caching|circuit breaker}",
            "recursion limit of",
            "common causes",
            "{有可能是|可能的原因|常见原因}",
            "for many reasons",
            "i suggest",
            "in my opinion",
            "best practices for",
            "according to the {docs|documentation}",
            "non retryable error: 'provider returned error'",
            "maxfilereadtokenexceeded*",
            "requested context size too large for model",
            "token indices sequence length is longer",
            "type validation failed",
        ],
    ),
];

//! What the API sends, read leniently.

use failover_provider::{FinishReason, Json, Usage};
use serde::Deserialize;

/// A whole answer, or one piece of a stream: both have the same form.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Body {
    pub(crate) candidates: Option<Vec<Candidate>>,
    pub(crate) prompt_feedback: Option<Feedback>,
    pub(crate) usage_metadata: Option<Counts>,
    pub(crate) model_version: Option<String>,
    pub(crate) response_id: Option<String>,
    pub(crate) error: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Candidate {
    pub(crate) index: u32,
    pub(crate) content: Option<Content>,
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Content {
    pub(crate) parts: Option<Vec<Json>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Feedback {
    pub(crate) block_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Part {
    pub(crate) text: Option<String>,
    pub(crate) thought: bool,
    pub(crate) thought_signature: Option<Json>,
    pub(crate) function_call: Option<Call>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) args: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the API's names")]
pub(crate) struct Counts {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl Counts {
    pub(crate) fn usage(&self) -> Usage {
        let sum = |one: Option<u64>, two: Option<u64>| {
            one.unwrap_or_default().saturating_add(two.unwrap_or_default())
        };
        let mut usage = Usage::new(
            sum(self.prompt_token_count, self.tool_use_prompt_token_count),
            sum(self.candidates_token_count, self.thoughts_token_count),
        );
        usage.cached_input = self.cached_content_token_count;
        usage.reasoning = self.thoughts_token_count;
        usage
    }
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it should, one way or another.
    Finished(FinishReason),
    /// With this word for a failure: the model's output is of no use.
    Failed,
}

pub(crate) fn ending(word: &str) -> Ending {
    Ending::Finished(match word {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => FinishReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE" => return Ending::Failed,
        other => FinishReason::Other(other.to_owned()),
    })
}

//! What the API sends, read leniently.

use failover_provider::{Json, Usage};
use serde::Deserialize;

/// A whole answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Body {
    pub(crate) output: Option<Output>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) usage: Option<Counts>,
    pub(crate) error: Option<Json>,
    #[serde(rename = "__type")]
    pub(crate) kind: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Output {
    pub(crate) message: Message,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    pub(crate) content: Vec<Json>,
}

/// One event of a stream: the union of them all, told apart by their type.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) content_block_index: u32,
    pub(crate) start: Option<Block>,
    pub(crate) delta: Option<Delta>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) usage: Option<Counts>,
    pub(crate) error: Option<Json>,
}

/// A block of a message, or the start of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Block {
    pub(crate) text: Option<String>,
    pub(crate) tool_use: Option<ToolUse>,
    pub(crate) reasoning_content: Option<Reasoning>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ToolUse {
    #[serde(rename = "toolUseId")]
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) input: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Reasoning {
    pub(crate) reasoning_text: Option<ReasoningText>,
    pub(crate) redacted_content: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReasoningText {
    pub(crate) text: String,
    pub(crate) signature: Option<Json>,
}

/// More of a block.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Delta {
    pub(crate) text: Option<String>,
    pub(crate) tool_use: Option<ToolInput>,
    pub(crate) reasoning_content: Option<ReasoningDelta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolInput {
    pub(crate) input: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ReasoningDelta {
    pub(crate) text: Option<String>,
    pub(crate) signature: Option<Json>,
    pub(crate) redacted_content: Option<Json>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the API's names")]
pub(crate) struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

impl Counts {
    /// What was read from the cache and written into it is counted apart from the input.
    pub(crate) fn usage(self) -> Usage {
        let cached = [self.cache_read_input_tokens, self.cache_write_input_tokens];
        let input = cached.iter().fold(self.input_tokens.unwrap_or_default(), |sum, count| {
            sum.saturating_add(count.unwrap_or_default())
        });
        let mut usage = Usage::new(input, self.output_tokens.unwrap_or_default());
        usage.cached_input = self.cache_read_input_tokens;
        usage
    }
}

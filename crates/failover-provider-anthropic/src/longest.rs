//! How much a model may write. The API demands a bound with every request, and what is over the model's own is refused.

use failover_provider::{ChatRequest, File, FileSource, Part};

/// Longest answers in tokens, by what stands in a model's name; the first row that fits counts
/// (<https://docs.claude.com/en/docs/about-claude/models/overview>).
const LONGEST: &[(&str, u64)] = &[
    ("claude-2", 4_096),
    ("claude-instant", 4_096),
    ("claude-3-7", 64_000),
    ("claude-3-5", 8_192),
    ("claude-3-", 4_096),
    ("claude-opus-4-5", 64_000),
    ("claude-opus-4-6", 64_000),
    ("claude-opus-4", 32_000),
    ("claude-sonnet-4", 64_000),
    ("claude-haiku-4", 64_000),
    // No later one takes less.
    ("claude", 32_000),
];

/// Of models of other vendors that speak this API: few take less.
const OTHERS: u64 = 8_192;

/// So many bytes of text may be more tokens than fit into a window of 200,000 beside a long answer.
const LONG_PROMPT_BYTES: usize = 400_000;

/// The bound on generated tokens for a request that has none: all that the model may write, as other vendors take it, unless
/// the prompt is so long that the bound would be refused for it.
pub(crate) fn longest(model: &str, request: &ChatRequest) -> u64 {
    let known = LONGEST.iter().find(|(name, _)| model.contains(name)).map_or(OTHERS, |(_, tokens)| *tokens);
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let bytes: usize = parts.map(bytes).sum();
    if bytes > LONG_PROMPT_BYTES { known.min(OTHERS) } else { known }
}

fn bytes(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::File(File { source: FileSource::Text(text), .. }) => text.len(),
        Part::ToolCall(call) => call.arguments.len(),
        Part::ToolResult(result) => result.parts.iter().map(bytes).sum(),
        Part::Image(_) | Part::File(_) | Part::Reasoning { .. } | Part::Opaque(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: P-7
    #[test_case("claude-sonnet-4-5-20250929", 64_000)]
    #[test_case("claude-opus-4-1", 32_000)]
    #[test_case("claude-3-5-haiku-latest", 8_192)]
    #[test_case("claude-3-haiku-20240307", 4_096)]
    #[test_case("claude-of-tomorrow", 32_000)]
    #[test_case("kimi-k2", 8_192)]
    fn a_model_may_write_all_that_it_can(model: &str, expected: u64) {
        assert_eq!(longest(model, &ChatRequest::prompt("hi")), expected);
    }

    // spec: P-7
    #[test]
    fn a_long_prompt_leaves_room_in_the_window() {
        let request = ChatRequest::prompt("word ".repeat(100_000));
        assert_eq!(longest("claude-sonnet-4-5", &request), 8_192);
    }
}

//! What a request asks of a model (requirement H-11).

use failover_chain::{ChainConfig, Needs};
use failover_provider::{ChatRequest, File, FileSource, Part};

/// What the request asks of a model. Nobody knows every provider's way of counting tokens, so what is told is a number
/// that no tokenizer stays below; it is worked out only where a window is known that the request may not fit into.
pub(crate) fn needs(request: &ChatRequest, chain: &ChainConfig) -> Needs {
    let mut needs = Needs::default();
    needs.tools = !request.tools.is_empty();
    needs.json = request.response_format.is_some();
    needs.state = request.bound.is_some();
    needs.images = has_images(request);
    needs.media = request.shown().next().is_some();
    let windows = chain.capabilities.values().filter_map(|known| known.context_window);
    if let Some(smallest) = windows.min() {
        let bytes: u64 = texts(request).map(|text| u64::try_from(text.len()).unwrap_or(u64::MAX)).sum();
        // A token has a byte at least: what has no more bytes than the smallest window has tokens fits anywhere.
        needs.context_tokens = (bytes > smallest).then(|| texts(request).map(least_tokens).sum());
    }
    needs
}

/// Whether the request holds an image.
pub(crate) fn has_images(request: &ChatRequest) -> bool {
    request.shown().any(|part| matches!(part, Part::Image(_)))
}

fn parts(request: &ChatRequest) -> impl Iterator<Item = &Part> {
    request.messages.iter().flat_map(|message| &message.parts)
}

fn texts(request: &ChatRequest) -> impl Iterator<Item = &str> {
    parts(request).filter_map(|part| match part {
        Part::Text(text) | Part::File(File { source: FileSource::Text(text), .. }) => Some(text.as_str()),
        Part::Image(_)
        | Part::File(_)
        | Part::ToolCall(_)
        | Part::ToolResult(_)
        | Part::Reasoning { .. }
        | Part::Opaque(_) => None,
    })
}

/// A number of tokens that no tokenizer stays below: none joins two words of letters or digits into one token, and none
/// has tokens of more than sixteen such bytes as a rule.
fn least_tokens(text: &str) -> u64 {
    let (mut tokens, mut run) = (0_u64, 0_u32);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            tokens += u64::from(run.is_multiple_of(16));
            run += 1;
        } else {
            run = 0;
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover_chain::Capabilities;
    use failover_types::ModelRef;

    fn chain(window: Option<u64>) -> ChainConfig {
        let mut known = Capabilities::default();
        known.context_window = window;
        let mut chain = ChainConfig::default();
        chain.capabilities.insert(ModelRef::new("a".parse().unwrap(), "m").unwrap(), known);
        chain
    }

    // spec: H-11
    #[test]
    fn tokens_are_counted_from_below_and_only_where_they_may_matter() {
        let told = |text: &str, window| needs(&ChatRequest::prompt(text), &chain(window)).context_tokens;
        assert_eq!(told(&"word ".repeat(1_000), None), None, "no window is known");
        assert_eq!(told("word", Some(4)), None, "it fits whatever the tokens are");
        assert_eq!(told(&"word ".repeat(1_000), Some(800)), Some(1_000));
        assert_eq!(told(&" ".repeat(10_000), Some(800)), Some(0), "white space may be one token");
        assert_eq!(told(&"x".repeat(160), Some(100)), Some(10));
        assert_eq!(told("漢字 ok", Some(2)), Some(1));
    }
}

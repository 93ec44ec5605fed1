//! What a model or a tool said is quoted in an answer; it is not the error. Those strings are not read.

use std::ops::Range;

/// Fields that always hold what a caller, a tool or a model said.
const SAID: [&str; 9] = [
    "failed_generation",
    "flagged_input",
    "tool_output",
    "tool_result",
    "generated_text",
    "reasoning_content",
    "arguments",
    "partial_json",
    "prompt",
];
/// Fields that hold it inside a message (an object or array with a role, choices or tool results).
const SAID_IN_MESSAGES: [&str; 7] = ["content", "text", "output", "input", "thinking", "stdout", "delta"];
/// Keys of bodies that hold messages, types of events that hold a piece of one, and the key with which a validator says where the
/// input stands that it repeats.
const MESSAGES: [&str; 14] = [
    "choices",
    "role",
    "tool_result",
    "tool_use_id",
    "function_call_output",
    "tool_call_id",
    "tool",
    "exit_code",
    "toolResult",
    "content_block_delta",
    "text_delta",
    "response.output_text.delta",
    "response.reasoning_summary_text.delta",
    "loc",
];
/// The keys of what a tool of the Model Context Protocol answers: its content, and a sign that it is a tool's.
const TOOL_CONTENT: [&str; 1] = ["content"];
const TOOL_SIGNS: [&str; 2] = ["isError", "jsonrpc"];
/// A relay that answers 200 with its own error as the content of the message.
const RELAYED: [&str; 5] =
    ["Error: API request failed", "API Error:", "[API Error", "API request failed", "upstream error"];
/// JSON inside a string of JSON is read to this depth (C-5).
const LEVELS: u32 = 4;

/// The byte ranges of strings that are quoted speech, in order and apart.
pub(crate) fn masked(source: &str) -> Vec<Range<usize>> {
    let start = source.trim_start();
    if !(start.starts_with(['{', '[', '"']) || start.starts_with("data:") || start.starts_with("event:")) {
        return Vec::new();
    }
    let (said, messages) = keys(source.as_bytes());
    if !said && !messages {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    for level in 0..LEVELS {
        // A quote of level n has 2^n - 1 backslashes before it.
        let escapes = (1_usize << level) - 1;
        if level > 0 && !source.contains("\\\"") {
            break;
        }
        quotes(source, escapes, messages, &mut ranges);
    }
    merged(ranges)
}

/// The first bytes of the keys that matter, a bit each: nearly always they settle it.
const FIRSTS: u128 = firsts(&SAID) | firsts(&MESSAGES) | firsts(&TOOL_CONTENT) | firsts(&TOOL_SIGNS);

const fn firsts(mut keys: &[&str]) -> u128 {
    let mut bits = 0;
    while let [key, rest @ ..] = keys {
        if let [first, ..] = key.as_bytes() {
            bits |= 1 << *first;
        }
        keys = rest;
    }
    bits
}

/// Whether a key of [`SAID`], and whether one of [`MESSAGES`] or [`TOOL_CONTENT`] with one of [`TOOL_SIGNS`], stands in the text between
/// quotes, escaped or not.
fn keys(source: &[u8]) -> (bool, bool) {
    let (mut said, mut messages) = (false, false);
    let (mut content, mut sign) = (false, false);
    for quote in memchr::memchr_iter(b'"', source) {
        let rest = source.get(quote + 1..).unwrap_or_default();
        if rest.first().is_none_or(|&first| first > 0x7f || FIRSTS >> first & 1 == 0) {
            continue;
        }
        let is_key = |key: &&str| {
            rest.strip_prefix(key.as_bytes())
                .is_some_and(|after| after.iter().find(|byte| **byte != b'\\') == Some(&b'"'))
        };
        said |= SAID.iter().any(is_key);
        content |= TOOL_CONTENT.iter().any(is_key);
        sign |= TOOL_SIGNS.iter().any(is_key);
        messages |= content && sign || MESSAGES.iter().any(is_key);
        if said && messages {
            break;
        }
    }
    (said, messages)
}

/// Strings of one level whose keys say that they are speech.
fn quotes(source: &str, escapes: usize, messages: bool, ranges: &mut Vec<Range<usize>>) {
    let bytes = source.as_bytes();
    let mut key: Option<&str> = None;
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        if byte != b'"' || backslashes(bytes, i) != escapes {
            if matches!(byte, b',' | b'{' | b'}' | b'[') {
                key = None;
            }
            i += 1;
            continue;
        }
        let end = string_end(bytes, i + 1, escapes);
        let value = source.get(i + 1..end).unwrap_or_default();
        let mut after = end + escapes + 1;
        while bytes.get(after).is_some_and(u8::is_ascii_whitespace) {
            after += 1;
        }
        if bytes.get(after) == Some(&b':') {
            key = Some(value);
        } else if let Some(name) = key
            && (SAID.contains(&name) || messages && SAID_IN_MESSAGES.contains(&name))
            && !RELAYED.iter().any(|text| value.trim_start().starts_with(text))
        {
            ranges.push(i + 1..end);
        }
        i = (end + escapes + 1).max(i + 1);
    }
}

/// How many backslashes stand right before `at`.
fn backslashes(bytes: &[u8], at: usize) -> usize {
    bytes.get(..at).unwrap_or_default().iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// Where the string ends that begins at `at`: at the backslashes of a quote of the same level or a shallower one.
fn string_end(bytes: &[u8], mut at: usize, escapes: usize) -> usize {
    let mut run = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => run += 1,
            b'"' if run <= escapes => return at - run,
            _ => run = 0,
        }
        at += 1;
    }
    bytes.len()
}

/// In order, and those that lie in another left out.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, usize::MAX - range.end));
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str, levels: usize) -> String {
        (0..levels).fold(text.to_owned(), |text, _| serde_json::to_string(&text).unwrap())
    }

    // spec: C-5
    #[test]
    fn speech_is_masked_at_every_level_of_encoding() {
        let body = r#"{"choices":[{"message":{"role":"assistant","content":"429 \"rate\" limit exceeded"}}],"note":"kept"}"#;
        for levels in 0..4 {
            let source = encoded(body, levels);
            let hidden: Vec<&str> = masked(&source).into_iter().map(|range| &source[range]).collect();
            let said = hidden.iter().any(|text| text.starts_with("429") && text.contains("limit exceeded"));
            assert!(said, "level {levels}: {hidden:?}");
            assert!(!hidden.iter().any(|text| text.contains("kept")), "level {levels}: {hidden:?}");
        }
    }

    #[test]
    fn ranges_lie_apart_and_in_order() {
        let source = r#"{"tool":"sh","output":"{\"stdout\":\"401 Unauthorized\"}","exit_code":0}"#;
        let ranges = masked(source);
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ranges:?}");
        assert!(ranges.iter().any(|range| source[range.clone()].contains("401")), "{ranges:?}");
    }
}

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
const SAID_IN_MESSAGES: [&str; 6] = ["content", "text", "output", "input", "thinking", "stdout"];
/// Signs that a body holds messages.
const MESSAGES: [&str; 6] = [
    "\"choices\"",
    "\"role\"",
    "\"tool_result\"",
    "\"tool_use_id\"",
    "\"function_call_output\"",
    "\"tool_call_id\"",
];
/// A relay that answers 200 with its own error as the content of the message.
const RELAYED: [&str; 5] =
    ["Error: API request failed", "API Error:", "[API Error", "API request failed", "upstream error"];

/// The byte ranges of strings that are quoted speech, in order.
pub(crate) fn masked(source: &str) -> Vec<Range<usize>> {
    let start = source.trim_start();
    if !(start.starts_with('{')
        || start.starts_with('[')
        || start.starts_with("data:")
        || start.starts_with("event:"))
    {
        return Vec::new();
    }
    let messages = MESSAGES.iter().any(|sign| source.contains(sign));
    if !messages && !SAID.iter().any(|key| source.contains(key)) {
        return Vec::new();
    }
    let bytes = source.as_bytes();
    let mut ranges = Vec::new();
    let mut key: Option<&str> = None;
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        if byte != b'"' {
            if matches!(byte, b',' | b'{' | b'}' | b'[') {
                key = None;
            }
            i += 1;
            continue;
        }
        let end = string_end(bytes, i + 1);
        let value = source.get(i + 1..end).unwrap_or_default();
        let mut after = end + 1;
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
        i = end + 1;
    }
    ranges
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

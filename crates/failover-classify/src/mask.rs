//! What a model or a tool said is quoted in an answer; it is not the error. Those strings are not read.

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
const MESSAGES: [&str; 6] =
    ["choices", "role", "tool_result", "tool_use_id", "function_call_output", "tool_call_id"];
/// A relay that answers 200 with its own error as the content of the message.
const RELAYED: [&str; 5] =
    ["Error: API request failed", "API Error:", "[API Error", "API request failed", "upstream error"];

/// A string of quoted speech, as bytes of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Only if the body turns out to hold messages.
    in_messages: bool,
}

/// Finds the strings that are quoted speech, in order, in one pass.
pub(crate) fn find(source: &str, masks: &mut Vec<Mask>) {
    masks.clear();
    let start = source.trim_start();
    if !(start.starts_with('{')
        || start.starts_with('[')
        || start.starts_with("data:")
        || start.starts_with("event:"))
    {
        return;
    }
    let bytes = source.as_bytes();
    let mut messages = false;
    let mut said = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'"' {
            if matches!(byte, b',' | b'{' | b'}' | b'[') {
                said = None;
            }
            at += 1;
            continue;
        }
        let end = string_end(bytes, at + 1);
        let value = bytes.get(at + 1..end).unwrap_or_default();
        messages |= MESSAGES.iter().any(|name| name.as_bytes() == value);
        let mut after = end + 1;
        while bytes.get(after).is_some_and(u8::is_ascii_whitespace) {
            after += 1;
        }
        if bytes.get(after) == Some(&b':') {
            said = speech(value);
        } else if let Some(in_messages) = said
            && !is_relayed(source.get(at + 1..end).unwrap_or_default())
        {
            masks.push(Mask { start: at + 1, end, in_messages });
        }
        at = end + 1;
    }
    if !messages {
        masks.retain(|mask| !mask.in_messages);
    }
}

/// Whether what stands under a key was said by a model or a tool; `Some(true)`: inside of messages only.
fn speech(key: &[u8]) -> Option<bool> {
    let is = |names: &[&str]| names.iter().any(|name| name.as_bytes() == key);
    if is(&SAID) { Some(false) } else { is(&SAID_IN_MESSAGES).then_some(true) }
}

fn is_relayed(value: &str) -> bool {
    RELAYED.iter().any(|text| value.trim_start().starts_with(text))
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(step) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        if bytes.get(at + step) == Some(&b'"') {
            return at + step;
        }
        at += step + 2;
    }
    bytes.len()
}

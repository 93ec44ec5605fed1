//! What a model or a tool said is quoted in an answer; it is not the error. Those strings are not read.

use crate::eight::{self, front, within};
use crate::lower::words_by_byte;
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::LazyLock;

/// A quote inside a string: made once, for making one takes longer than a short text.
static ESCAPED_QUOTE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\\""));

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
    let is_nested = ESCAPED_QUOTE.find(source.as_bytes()).is_some();
    for level in 0..LEVELS {
        // A quote of level n has 2^n - 1 backslashes before it.
        let escapes = (1_usize << level) - 1;
        if level > 0 && !is_nested {
            break;
        }
        quotes(source, escapes, messages, &mut ranges);
    }
    merged(ranges)
}

/// What a key says of the text that holds it: it is one of [`SAID`], of [`MESSAGES`], of [`TOOL_CONTENT`], of [`TOOL_SIGNS`].
const KINDS: [&[&str]; 4] = [&SAID, &MESSAGES, &TOOL_CONTENT, &TOOL_SIGNS];
const OF_SAID: u8 = 1;
const OF_MESSAGES: u8 = 2;
const OF_TOOLS: u8 = 4 | 8;

/// The keys that matter, each with a bit for its kind.
const COUNT: usize = SAID.len() + MESSAGES.len() + TOOL_CONTENT.len() + TOOL_SIGNS.len();
const KEYS: [(&str, u8); COUNT] = {
    let mut keys = [("", 0); COUNT];
    let (mut kind, mut count) = (0, 0);
    while kind < KINDS.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        let mut rest = KINDS[kind];
        while let [key, after @ ..] = rest {
            #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
            {
                keys[count] = (*key, 1 << kind);
            }
            count += 1;
            rest = after;
        }
        kind += 1;
    }
    keys
};
/// Those keys by their first byte, and by their second.
const FIRST: [u32; 256] = words_by_byte!(KEYS, 0, u32);
const SECOND: [u32; 256] = words_by_byte!(KEYS, 1, u32);

/// Bytes that keys begin with whose strings are speech.
const SAID_OF: [bool; 128] = {
    let mut of = [false; 128];
    let lists: [&[&str]; 2] = [&SAID, &SAID_IN_MESSAGES];
    let mut lists: &[&[&str]] = &lists;
    while let [list, after @ ..] = lists {
        let mut rest: &[&str] = list;
        while let [key, after @ ..] = rest {
            if let Some(first) = key.as_bytes().first() {
                #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
                {
                    of[*first as usize] = true;
                }
            }
            rest = after;
        }
        lists = after;
    }
    of
};

/// Whether a key of [`SAID`], and whether one of [`MESSAGES`] or [`TOOL_CONTENT`] with one of [`TOOL_SIGNS`], stands in the text between
/// quotes, escaped or not.
fn keys(source: &[u8]) -> (bool, bool) {
    let mut kinds = 0;
    for quote in Quotes::of(source) {
        let rest = source.get(quote + 1..).unwrap_or_default();
        let [first, second, ..] = rest else { break };
        let of = |table: &[u32; 256], byte: &u8| table.get(usize::from(*byte)).copied().unwrap_or_default();
        let mut keys = of(&FIRST, first) & of(&SECOND, second);
        while keys != 0 {
            let (key, kind) = KEYS.get(keys.trailing_zeros() as usize).copied().unwrap_or_default();
            if rest.starts_with(key.as_bytes())
                && rest.iter().skip(key.len()).find(|byte| **byte != b'\\') == Some(&b'"')
            {
                kinds |= kind;
            }
            keys &= keys - 1;
        }
        if kinds & (OF_SAID | OF_MESSAGES) == OF_SAID | OF_MESSAGES {
            break;
        }
    }
    (kinds & OF_SAID != 0, kinds & OF_MESSAGES != 0 || kinds & OF_TOOLS == OF_TOOLS)
}

/// Where quotation marks stand.
struct Quotes<'t> {
    text: &'t [u8],
    /// Behind the bytes that are looked at.
    end: usize,
    /// The highest bit of each of them that is one and was not told yet.
    left: u64,
}

impl<'t> Quotes<'t> {
    fn of(text: &'t [u8]) -> Self {
        Self { text, end: 0, left: 0 }
    }
}

impl Iterator for Quotes<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            if self.end >= self.text.len() {
                return None;
            }
            self.left = within::<b'"', b'"'>(front(self.text, self.end));
            self.end += eight::COUNT;
        }
        let at = self.end - eight::COUNT + eight::place(self.left);
        self.left &= self.left - 1;
        Some(at)
    }
}

/// Strings of one level whose keys say that they are speech.
fn quotes(source: &str, escapes: usize, messages: bool, ranges: &mut Vec<Range<usize>>) {
    let bytes = source.as_bytes();
    // Whether the last key says so of its string.
    let mut is_said = false;
    // Where the string begins that is read, and where what follows the last one does.
    let mut string: Option<usize> = None;
    let mut from = 0;
    // The end of the text ends a string, too.
    for quote in Quotes::of(bytes).chain([bytes.len()]) {
        let Some(start) = string else {
            let Some(between) = bytes.get(from..quote) else { continue };
            is_said = is_said && !between.iter().any(|byte| matches!(byte, b',' | b'{' | b'}' | b'['));
            string = (backslashes(bytes, 0, quote) == escapes).then_some(quote + 1);
            from = quote + 1;
            continue;
        };
        // The backslashes of a quote of the same level or a shallower one are not of the string.
        let run = if quote < bytes.len() { backslashes(bytes, start, quote) } else { 0 };
        if run > escapes {
            continue;
        }
        let end = quote - run;
        (string, from) = (None, end + escapes + 1);
        let after = bytes.get(from..).unwrap_or_default().iter().find(|byte| !byte.is_ascii_whitespace());
        if after == Some(&b':') {
            is_said = is_said_of(bytes.get(start..end).unwrap_or_default(), messages);
        } else if is_said && !is_relayed(source.get(start..end).unwrap_or_default()) {
            ranges.push(start..end);
        }
    }
}

/// Whether the string of a key is speech, in a body that holds messages or not.
fn is_said_of(key: &[u8], messages: bool) -> bool {
    let is_in = |list: &[&str]| list.iter().any(|known| known.as_bytes() == key);
    // The first byte nearly always settles it.
    key.first().is_some_and(|first| SAID_OF.get(usize::from(*first)) == Some(&true))
        && (is_in(&SAID) || messages && is_in(&SAID_IN_MESSAGES))
}

fn is_relayed(text: &str) -> bool {
    RELAYED.iter().any(|start| text.trim_start().starts_with(start))
}

/// How many backslashes stand right before `at`, from `start` on.
#[inline]
fn backslashes(bytes: &[u8], start: usize, at: usize) -> usize {
    if at.checked_sub(1).and_then(|before| bytes.get(before)) != Some(&b'\\') {
        return 0;
    }
    bytes.get(start..at).unwrap_or_default().iter().rev().take_while(|byte| **byte == b'\\').count()
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

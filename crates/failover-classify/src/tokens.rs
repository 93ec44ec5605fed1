//! Token counts that the text of an error names.

use crate::Tokens;

/// Words before or after which the observed count stands, and those of the allowed one.
const OBSERVED: [&str; 20] = [
    "you requested about",
    "you requested",
    "request contains",
    "prompt is too long:",
    "input token count (",
    "requested",
    "received",
    "given:",
    "prompt tokens (",
    "n prompt tokens",
    "actual:",
    "resulted in",
    "your prompt contains",
    "prompt contains at least",
    "request (",
    "prompt=",
    "the input (",
    "max token count (",
    "context limit:",
    "has",
];
const ALLOWED: [&str; 22] = [
    "maximum context length is",
    "maximum context length of",
    "maximum prompt length is",
    "tokens allowed (",
    "max seq len (",
    "available context size (",
    "n ctx",
    "maximum:",
    "limit of",
    "limit is",
    "limit",
    "cannot exceed",
    "must be <=",
    "expected maxlength:",
    "max size:",
    "context window of",
    "context length of only",
    "context length of",
    "less than",
    "max tokens of",
    "maximum of",
    ">",
];

/// Reads the counts from the normalized text of an overflow or a token rate.
pub(crate) fn read(text: &str) -> Option<Tokens> {
    let text = text.get(..crate::facts::floor(text, 4096)).unwrap_or(text);
    let observed = after_any(text, &OBSERVED);
    let allowed = after_any(text, &ALLOWED);
    (observed.is_some() || allowed.is_some()).then_some(Tokens { observed, allowed })
}

fn after_any(text: &str, words: &[&str]) -> Option<u64> {
    words.iter().find_map(|word| {
        text.match_indices(word)
            .take(8)
            .find_map(|(at, _)| number(text.get(at + word.len()..)?).filter(|n| *n >= 16))
    })
}

/// The number that begins the text, after punctuation.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches([' ', '"', ':', '=', '\'', '(', '`', '\n']);
    let mut value: u64 = 0;
    let mut seen = false;
    for byte in text.bytes().take(24) {
        match byte {
            b'0'..=b'9' => {
                seen = true;
                value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            }
            b',' | b'_' if seen => {}
            _ => break,
        }
    }
    seen.then_some(value)
}

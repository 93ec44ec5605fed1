//! Token counts that the text of an error names.

use crate::Tokens;
use crate::words::Word;

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

/// Which of the two counts a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Observed,
    Allowed,
}

/// Counts are looked for in this much of a text's front.
const REACH: usize = 4096;
/// Smaller numbers are no counts.
const LEAST: u64 = 16;

/// All words beside which a count stands; the earlier ones of each list are believed first.
pub(crate) fn words() -> impl Iterator<Item = (&'static str, Word)> {
    let side = |words: &'static [&'static str], side| {
        (0_u8..).zip(words).map(move |(rank, word)| (*word, Word::Count(side, rank)))
    };
    side(&OBSERVED, Side::Observed).chain(side(&ALLOWED, Side::Allowed))
}

/// The counts found so far, each with the rank of the word that named it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    observed: Option<(u8, u64)>,
    allowed: Option<(u8, u64)>,
}

impl Tally {
    /// Reads the number behind a word that ends at `end`.
    pub(crate) fn count(&mut self, side: Side, rank: u8, end: usize, text: &[u8]) {
        if end > REACH {
            return;
        }
        let place = match side {
            Side::Observed => &mut self.observed,
            Side::Allowed => &mut self.allowed,
        };
        if place.is_none_or(|(other, _)| rank < other)
            && let Some(count) = number(text.get(end..).unwrap_or_default()).filter(|count| *count >= LEAST)
        {
            *place = Some((rank, count));
        }
    }

    pub(crate) fn tokens(self) -> Option<Tokens> {
        let (observed, allowed) = (self.observed.map(|(_, n)| n), self.allowed.map(|(_, n)| n));
        (observed.is_some() || allowed.is_some()).then_some(Tokens { observed, allowed })
    }
}

/// The number that begins the text, after punctuation.
fn number(text: &[u8]) -> Option<u64> {
    let skipped = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'"' | b':' | b'=' | b'\'' | b'(' | b'`' | b'\n'))
        .count();
    let mut value: u64 = 0;
    let mut seen = false;
    for byte in text.iter().skip(skipped).take(24) {
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

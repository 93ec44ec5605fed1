//! Takes secrets out of text before it is cut, stored or shown.

use crate::lower::words_by_byte;
use std::borrow::Cow;
use std::ops::Range;

/// What stands in the place of a secret.
const MARK: &str = "[redacted]";

/// Beginnings by which issued keys and tokens are known, and how many bytes must follow.
const PREFIXES: [(&str, usize); 34] = [
    ("sk-", 8),
    ("sk_", 12),
    ("pk-", 16),
    ("rk_", 12),
    ("fk-", 12),
    ("ak-", 12),
    ("pat_", 12),
    ("AIza", 20),
    ("ya29.", 12),
    ("1//0", 20),
    ("eyJ", 20),
    ("gsk_", 12),
    ("xai-", 12),
    ("hf_", 12),
    ("r8_", 12),
    ("nvapi-", 12),
    ("pplx-", 12),
    ("fw_", 12),
    ("csk-", 12),
    ("tgp_v1_", 12),
    ("gho_", 12),
    ("ghp_", 12),
    ("ghu_", 12),
    ("ghs_", 12),
    ("github_pat_", 12),
    ("glpat-", 12),
    ("AKIA", 12),
    ("ASIA", 12),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("vck_", 12),
    ("bce-v3/", 12),
    ("sess-", 16),
    ("rt_", 24),
];

/// The beginnings of keys by their first byte, and by their second.
const FIRST: [u64; 256] = words_by_byte!(PREFIXES, 0, u64);
const SECOND: [u64; 256] = words_by_byte!(PREFIXES, 1, u64);

/// Names after which a secret stands; what stands before them in a word (`x-api-`, `set-`, `id_`) does not matter.
const NAMES: [&str; 13] = [
    "key",
    "apikey",
    "secretkey",
    "token",
    "accesstoken",
    "refreshtoken",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "bearer",
    "basic",
];

/// Bytes that keys and tokens are made of, each with its kind; 0 for the others.
const TOKEN: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            table[byte as usize] = match byte {
                b'a'..=b'z' => LOWER,
                b'A'..=b'Z' => UPPER,
                b'0'..=b'9' => DIGIT,
                b'*' => STAR,
                b'-' | b'_' | b'.' | b'/' | b'+' | b'=' | b'~' | b'%' => SIGN,
                _ => 0,
            };
        }
        byte += 1;
    }
    table
};
/// Of such bytes alone no secret is made that could be told from a word.
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const STAR: u8 = 8;
const SIGN: u8 = 16;

// What would be known for a key by plain bytes alone would be passed over.
const _: () = {
    let mut rest: &[(&str, usize)] = &PREFIXES;
    while let [(prefix, _), tail @ ..] = rest {
        let mut bytes = prefix.as_bytes();
        let mut mixed = false;
        while let [byte, tail @ ..] = bytes {
            mixed |= !byte.is_ascii_lowercase();
            bytes = tail;
        }
        assert!(mixed, "a prefix of lower-case letters only");
        rest = tail;
    }
};

#[inline]
fn token(byte: u8) -> u8 {
    TOKEN.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The kinds of bytes that a text is made of.
#[inline]
fn kinds(text: &[u8]) -> u8 {
    text.iter().fold(0, |kinds, byte| kinds | token(*byte))
}

#[inline]
fn is_token_byte(byte: u8) -> bool {
    token(byte) != 0
}

/// The text without keys, tokens, cookies and e-mail addresses. Text without any is handed back as it is.
pub fn redact(text: &str) -> Cow<'_, str> {
    let ranges = secrets(text);
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        if range.start < from {
            continue;
        }
        clean.push_str(text.get(from..range.start).unwrap_or_default());
        clean.push_str(MARK);
        from = range.end;
    }
    clean.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(clean)
}

/// The front of a text, at most so many bytes of it, without a word or an address that the cut would tear apart: torn
/// ones may not be known for secrets.
pub(crate) fn whole_words(text: &[u8], most: usize) -> &[u8] {
    let Some(front) = text.get(..most).filter(|_| text.len() > most) else { return text };
    let is_inside_char = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
    let end = front.iter().rposition(|&byte| !is_token_byte(byte) && byte != b'@' && !is_inside_char(byte));
    end.and_then(|end| front.get(..end)).unwrap_or(front)
}

fn secrets(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut last = Last { at: 0, word: None };
    let mut from = 0;
    loop {
        let sign = memchr::memchr(b'@', bytes.get(from..).unwrap_or_default()).map(|at| from + at);
        let part = bytes.get(..sign.unwrap_or(bytes.len())).unwrap_or_default();
        while let Some(word) = long_word(part, from) {
            from = word.end;
            if let Some(secret) = secret(part, word, last) {
                last = Last { at: secret.end, word: None };
                ranges.push(secret);
            }
        }
        let Some(sign) = sign else { return ranges };
        from = sign + 1;
        if let Some(range) = address(bytes, sign) {
            last = Last { at: range.end, word: word_before(bytes, sign, last) };
            from = range.end;
            while ranges.last().is_some_and(|last| last.start >= range.start) {
                ranges.pop();
            }
            ranges.push(range);
        }
    }
}

/// The next word that is long enough for a secret and not of plain bytes alone. Such a word holds a byte that stands
/// so far behind any other one, so what lies between is not looked at.
fn long_word(text: &[u8], mut from: usize) -> Option<Range<usize>> {
    loop {
        let probe = from + SHORTEST_SECRET - 1;
        if !is_token_byte(*text.get(probe)?) {
            from = probe + 1;
            continue;
        }
        let parts = |byte: &u8| !is_token_byte(*byte);
        let start = text.get(from..probe)?.iter().rposition(parts).map_or(from, |at| from + at + 1);
        let end = text.get(probe..)?.iter().position(parts).map_or(text.len(), |len| probe + len);
        from = end;
        if end - start >= SHORTEST_SECRET && kinds(text.get(start..end)?) != LOWER {
            return Some(start..end);
        }
    }
}

/// The secret that a long word is or holds.
fn secret(text: &[u8], range: Range<usize>, last: Last<'_>) -> Option<Range<usize>> {
    let word = text.get(range.clone())?;
    if let Some(offset) = known(word) {
        return Some(range.start + offset..range.end);
    }
    let (name, value_at) = match memchr::memchr(b'=', word) {
        Some(len) if len + 1 < word.len() => (word.get(..len), len + 1),
        _ => (None, 0),
    };
    let value = word.get(value_at..).filter(|value| value.len() >= SHORTEST_SECRET)?;
    let is_asked = || word_before(text, range.start, last).is_some_and(is_name) || name.is_some_and(is_name);
    (looks_secret(value) && is_asked() || is_dense(value)).then_some(range.start + value_at..range.end)
}

/// Where a secret or an address ended: no word goes back beyond it. And the word before it that may name what follows.
#[derive(Clone, Copy)]
struct Last<'t> {
    at: usize,
    word: Option<&'t [u8]>,
}

/// The word that may name what begins at `at`. A name holds for the next word, over quotes, colons and spaces; not over
/// anything else but an `is`.
fn word_before<'t>(text: &'t [u8], mut at: usize, last: Last<'t>) -> Option<&'t [u8]> {
    loop {
        let before = text.get(last.at..at)?;
        let end = before.iter().rposition(|byte| !matches!(byte, b' ' | b'"' | b'\'' | b':' | b'\\'));
        let Some(end) = end else { return last.word };
        let before = before.get(..=end)?;
        let word = before.iter().rposition(|byte| !is_token_byte(*byte)).map_or(0, |at| at + 1);
        let word = before.get(word..).filter(|word| !word.is_empty())?;
        if !word.eq_ignore_ascii_case(b"is") {
            return Some(word);
        }
        at = last.at + before.len() - word.len();
    }
}

fn is_name(word: &[u8]) -> bool {
    let signs = word.iter().rev().take_while(|byte| matches!(byte, b'=' | b'.')).count();
    let word = word.get(..word.len() - signs).unwrap_or_default();
    let begin = word.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let last = word.get(begin..).unwrap_or_default();
    NAMES.iter().any(|name| last.len() == name.len() && last.eq_ignore_ascii_case(name.as_bytes()))
        || word.eq_ignore_ascii_case(b"provided")
}

/// Where in the word a key begins that is known by its beginning: apart from what stands before it, else right behind it.
fn known(word: &[u8]) -> Option<usize> {
    let is_key = |key: &[u8]| key.len() >= SHORTEST_GLUED && is_mixed(key);
    let mut joins = false;
    let apart = word.iter().enumerate().position(|(at, byte)| {
        let begins = !joins && key_at(word, at).is_some();
        joins = token(*byte) & (LOWER | UPPER | DIGIT) != 0;
        begins
    });
    let glued = || (1..word.len()).find(|at| key_at(word, *at).is_some_and(is_key));
    apart.or_else(|| if is_key(word) { glued() } else { None })
}

/// What follows the beginning of a key at this place, if one stands there that is long enough.
#[inline]
fn key_at(word: &[u8], at: usize) -> Option<&[u8]> {
    let rest = word.get(at..)?;
    let (first, second) = (rest.first()?, rest.get(1)?);
    let mut keys = FIRST.get(usize::from(*first))? & SECOND.get(usize::from(*second))?;
    while keys != 0 {
        let (prefix, least) = PREFIXES.get(keys.trailing_zeros() as usize)?;
        let begins = rest.iter().zip(prefix.as_bytes()).all(|(one, other)| one == other);
        if begins && rest.len() >= prefix.len() + *least {
            return rest.get(prefix.len()..);
        }
        keys &= keys - 1;
    }
    None
}

/// A key right behind the letters of a word is known by what follows, too: `task-list` is none.
const SHORTEST_GLUED: usize = 20;

/// Whether there are digits and letters of both cases.
fn is_mixed(word: &[u8]) -> bool {
    kinds(word) & (DIGIT | UPPER | LOWER) == DIGIT | UPPER | LOWER
}

/// What a name asks for is a secret only if it is at least so long.
const SHORTEST_SECRET: usize = 8;

fn looks_secret(word: &[u8]) -> bool {
    let all = kinds(word);
    all & (DIGIT | STAR) != 0 || all & UPPER != 0 && kinds(word.get(1..).unwrap_or_default()) & LOWER != 0
}

/// Long and of many kinds of bytes, but no id that providers print to be quoted back, and no address.
fn is_dense(word: &[u8]) -> bool {
    if word.len() < 32 {
        return false;
    }
    let (mut lower, mut upper, mut digit, mut hyphen) = (0, 0, 0, 0);
    for byte in word {
        match byte {
            b'a'..=b'z' => lower += 1,
            b'A'..=b'Z' => upper += 1,
            b'0'..=b'9' => digit += 1,
            b'-' => hyphen += 1,
            b'.' | b'/' | b'_' => return false,
            _ => {}
        }
    }
    hyphen < 2 && lower >= 6 && upper >= 6 && digit >= 3
}

/// The e-mail address around an at sign.
fn address(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let local = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'+' | b'-' | b'%');
    let before = bytes.get(at.saturating_sub(64)..at)?.iter().rev().take_while(|b| local(b)).count();
    let after = bytes
        .get(at + 1..)?
        .iter()
        .take(128)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
        .count();
    let domain = bytes.get(at + 1..at + 1 + after)?;
    let dotted = domain.iter().position(|b| *b == b'.').is_some_and(|dot| dot > 0 && dot + 2 < domain.len());
    (before > 0 && dotted).then(|| at - before..at + 1 + after)
}

/// Secrets whose values are known: takes exactly those out, wherever they stand.
#[derive(Clone, Default)]
pub struct KnownSecrets {
    values: Vec<String>,
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownSecrets").field("count", &self.values.len()).finish()
    }
}

impl KnownSecrets {
    /// Values shorter than this are not taken: they would be found everywhere.
    pub const SHORTEST: usize = 6;

    /// From the values. Longer ones are replaced first.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .map(Into::into)
            .filter(|value: &String| value.len() >= Self::SHORTEST)
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// The text without the known values, and without what [`redact`] finds.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        for value in &self.values {
            if clean.contains(value.as_str()) {
                clean = Cow::Owned(clean.replace(value.as_str(), MARK));
            }
        }
        match redact(&clean) {
            Cow::Borrowed(_) => clean,
            Cow::Owned(text) => Cow::Owned(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: C-23
    #[test_case("key sk-proj-abcdefghijklmnop1234 bad", "abcdefgh"; "openai key")]
    #[test_case("Consumer 'api_key:AIzaSyDUMMYdummyDUMMYdummyDUMMYdummy00000'", "DUMMY"; "google key")]
    #[test_case("Authorization: Bearer abc123DEF456ghi", "abc123"; "bearer")]
    #[test_case("mail jane.doe@example.com now", "jane"; "address")]
    #[test_case("?api_key=Zm9vYmFyMTIz&x=1", "Zm9v"; "query")]
    #[test_case("\"refresh_token\": \"0123abcd4567\"", "0123abcd"; "json")]
    #[test_case("usedsk-ant-api03-AbCdEf0123456789GhIjKl", "AbCdEf"; "glued to a word")]
    #[test_case("sk-ant-api03-AbCdEf0123456789GhIjKl=x", "AbCdEf"; "before an equals sign")]
    fn secrets_are_taken_out(text: &str, secret: &str) {
        let clean = redact(text);
        assert!(!clean.contains(secret), "{clean}");
        assert!(clean.contains(MARK));
    }

    // spec: C-23
    #[test]
    fn plain_text_is_handed_back() {
        let text =
            "task-manager-of-the-desk-2 asks for risk_assessment_of_2025 in https://x.io/disk-usage/ABC";
        assert!(matches!(redact(text), Cow::Borrowed(_)));
        let text =
            "Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000";
        assert!(matches!(redact(text), Cow::Borrowed(_)));
    }

    // spec: C-23
    #[test]
    fn known_values_are_taken_out_wherever_they_stand() {
        let known = KnownSecrets::new(["hunter2hunter2", "x"]);
        assert_eq!(known.redact("xx-hunter2hunter2-xx"), "xx-[redacted]-xx");
        assert!(!format!("{known:?}").contains("hunter2"));
    }
}

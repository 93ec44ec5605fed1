//! Takes secrets out of text before it is cut, stored or shown.
//!
//! What is known for a secret: what begins as issued keys do ([`PREFIXES`]); what a name asks for ([`NAMES`]), such as
//! `api key: …`, `?token=…` or `<Secret>…`; long words of many kinds of bytes; all of a cookie; whatever a password is
//! set to; private keys in PEM; e-mail addresses. What is not: bare numbers in hexadecimal and UUIDs, which are ids more
//! often than keys, and a short word of plain letters behind a name and a colon, which is prose more often than a key.

use crate::lower::words_by_byte;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// What stands in the place of a secret.
const MARK: &str = "[redacted]";

/// Beginnings by which issued keys and tokens are known, and how many bytes must follow.
const PREFIXES: [(&str, usize); 48] = [
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
    ("ABSK", 20),
    ("AKID", 12),
    ("AKLT", 12),
    ("LTAI", 12),
    ("GOCSPX-", 12),
    ("jina_", 20),
    ("tvly-", 12),
    ("lsv2_", 12),
    ("pcsk_", 12),
    ("whsec_", 12),
    ("glsa_", 12),
    ("npm_", 20),
    ("xoxa-", 10),
    ("xapp-", 10),
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
        if range.start >= from {
            clean.push_str(text.get(from..range.start).unwrap_or_default());
            clean.push_str(MARK);
        }
        from = from.max(range.end);
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
            if let Some(secret) = private_key(bytes, &word).or_else(|| secret(part, word, last)) {
                from = from.max(secret.end);
                last = Last { at: secret.end, word: None };
                ranges.push(secret);
            }
        }
        let Some(sign) = sign else { break };
        from = from.max(sign + 1);
        if let Some(range) = address(text, sign) {
            last = Last { at: range.end, word: word_before(bytes, sign, last) };
            from = range.end;
            while ranges.last().is_some_and(|last| last.start >= range.start) {
                ranges.pop();
            }
            ranges.push(range);
        }
    }
    let found = ranges.len();
    ranges.extend(set(bytes, &COOKIE).filter_map(|at| cookie(bytes, at)));
    ranges.extend(set(bytes, &PASSWORD).filter_map(|at| password(bytes, at)));
    if ranges.len() > found {
        ranges.sort_by_key(|range| range.start);
    }
    ranges
}

/// The ends of the names whose values are taken whatever they look like.
static COOKIE: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| ["ookie", "OOKIE"].map(Finder::new));
static PASSWORD: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| ["assw", "ASSW"].map(Finder::new));

/// Where values begin that a name is set to with a colon or an equals sign.
fn set<'t>(text: &'t [u8], names: &'t [Finder<'static>; 2]) -> impl Iterator<Item = usize> + 't {
    names.iter().flat_map(|name| name.find_iter(text)).filter_map(|at| {
        let rest = text.get(at..)?;
        let name = rest.iter().position(|byte| !byte.is_ascii_alphabetic() && *byte != b'_')?;
        let signs = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'' | b'\\' | b':' | b'=');
        let between = rest.get(name..)?.iter().take_while(|byte| signs(byte)).count();
        let is_set = rest.get(name..name + between)?.iter().any(|byte| matches!(byte, b':' | b'='));
        is_set.then_some(at + name + between)
    })
}

/// The value that begins at `at`, up to one of the bytes that `ends` knows, or to the quote that it began with.
fn value(text: &[u8], at: usize, ends: impl Fn(u8) -> bool) -> Option<&[u8]> {
    let quoted = matches!(text.get(at.checked_sub(1)?)?, b'"' | b'\'');
    let rest = text.get(at..)?;
    let len = rest.iter().position(|byte| match byte {
        b'"' | b'\'' | b'\\' | b'\n' | b'\r' => true,
        byte => !quoted && ends(*byte),
    });
    rest.get(..len.unwrap_or(rest.len()))
}

/// All pairs of a cookie.
fn cookie(text: &[u8], at: usize) -> Option<Range<usize>> {
    let pairs = value(text, at, |_| false)?;
    let first = pairs.iter().position(|byte| !is_token_byte(*byte)).unwrap_or(pairs.len());
    pairs.get(..first)?.contains(&b'=').then_some(at..at + pairs.len())
}

/// A password. Behind a colon without quotes a word of plain letters is what is said about one.
fn password(text: &[u8], at: usize) -> Option<Range<usize>> {
    let word = value(text, at, |byte| {
        byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'&' | b'}' | b')')
    })?;
    let set = text.get(..at)?.iter().next_back().is_some_and(|byte| matches!(byte, b'=' | b'"' | b'\''));
    let told = set || kinds(word) & !LOWER & !SIGN != 0 || word.len() >= SHORTEST_PLAIN;
    (word.len() >= SHORTEST_PASSWORD && told).then_some(at..at + word.len())
}

/// A private key in PEM that begins with this word, to its end.
fn private_key(text: &[u8], word: &Range<usize>) -> Option<Range<usize>> {
    let rest = text.get(word.start..).filter(|rest| rest.starts_with(b"-----BEGIN"))?;
    let head = rest.get(..rest.len().min(64))?;
    memchr::memmem::find(head, b"PRIVATE KEY")?;
    let end = memchr::memmem::find(rest, b"-----END").map_or(rest.len(), |at| {
        let last = rest.get(at + 8..).unwrap_or_default();
        memchr::memmem::find(last, b"-----").map_or(rest.len(), |len| at + 8 + len + 5)
    });
    Some(word.start..word.start + end)
}

/// The next word that is long enough for a secret and not of plain letters alone, unless it is longer than words of
/// prose are. Such a word holds a byte that stands
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
        let len = end - start;
        if len >= SHORTEST_PLAIN || len >= SHORTEST_SECRET && kinds(text.get(start..end)?) != LOWER {
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
    // Equals signs that nothing follows are the padding of a value.
    let (name, value_at) = match memchr::memchr(b'=', word) {
        Some(len) if word.get(len..)?.iter().any(|byte| !matches!(byte, b'=' | b'.')) => {
            (word.get(..len), len + 1)
        }
        _ => (None, 0),
    };
    let value = word.get(value_at..).filter(|value| value.len() >= SHORTEST_SECRET)?;
    let plain = if name.is_some() { SHORTEST_JOINED } else { SHORTEST_PLAIN };
    let may_be = looks_secret(value) || value.len() >= plain && kinds(bare(value)) == LOWER;
    let is_asked = || word_before(text, range.start, last).is_some_and(is_name) || name.is_some_and(is_name);
    (may_be && is_asked() || is_dense(value)).then_some(range.start + value_at..range.end)
}

/// Where a secret or an address ended: no word goes back beyond it. And the word before it that may name what follows.
#[derive(Clone, Copy)]
struct Last<'t> {
    at: usize,
    word: Option<&'t [u8]>,
}

/// The word that may name what begins at `at`. A name holds for the next word, over quotes, brackets, colons, equals signs
/// and spaces; not over anything else but an `is`.
fn word_before<'t>(text: &'t [u8], mut at: usize, last: Last<'t>) -> Option<&'t [u8]> {
    loop {
        let before = text.get(last.at..at)?;
        let over = |byte: &u8| {
            matches!(
                byte,
                b' ' | b'"' | b'\'' | b'`' | b':' | b'=' | b'\\' | b'(' | b'[' | b'{' | b'<' | b'>'
            )
        };
        let end = before.iter().rposition(|byte| !over(byte));
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

/// A word without the signs behind it.
fn bare(word: &[u8]) -> &[u8] {
    let signs = word.iter().rev().take_while(|byte| matches!(byte, b'=' | b'.')).count();
    word.get(..word.len() - signs).unwrap_or_default()
}

fn is_name(word: &[u8]) -> bool {
    let word = bare(word);
    let begin = word.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let last = word.get(begin..).unwrap_or_default();
    NAMES.iter().any(|name| last.len() == name.len() && last.eq_ignore_ascii_case(name.as_bytes()))
        || word.eq_ignore_ascii_case(b"provided")
}

/// Where in the word a key begins that is known by its beginning: apart from what stands before it, else right behind it.
fn known(word: &[u8]) -> Option<usize> {
    let is_key = |key: &[u8]| key.len() >= SHORTEST_GLUED && is_mixed(key);
    let joins = |byte: &u8| token(*byte) & (LOWER | UPPER | DIGIT) != 0;
    let mut glued = None;
    for at in (0..).zip(word.windows(2)).filter(|(_, pair)| keys_of(pair) != 0).map(|(at, _)| at) {
        let Some(key) = key_at(word, at) else { continue };
        if !at.checked_sub(1).and_then(|before| word.get(before)).is_some_and(joins) {
            return Some(at);
        }
        if glued.is_none() && is_key(key) {
            glued = Some(at);
        }
    }
    glued
}

/// The keys that begin with these two bytes, a bit each.
#[inline]
fn keys_of(pair: &[u8]) -> u64 {
    let [first, second, ..] = pair else { return 0 };
    let of = |table: &[u64; 256], byte: &u8| table.get(usize::from(*byte)).copied().unwrap_or_default();
    of(&FIRST, first) & of(&SECOND, second)
}

/// What follows the beginning of a key at this place, if one stands there that is long enough.
fn key_at(word: &[u8], at: usize) -> Option<&[u8]> {
    let rest = word.get(at..)?;
    let mut keys = keys_of(rest);
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

/// What a name asks for is a secret only if it is at least so long; a password may be shorter.
const SHORTEST_SECRET: usize = 8;
const SHORTEST_PASSWORD: usize = 4;
/// Letters of one case are one only if they are longer than words of prose are, or long and joined to their name.
const SHORTEST_PLAIN: usize = 20;
const SHORTEST_JOINED: usize = 12;

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
fn address(text: &str, at: usize) -> Option<Range<usize>> {
    // Names may have letters of any alphabet; in scripts that write no spaces nobody could tell where one begins.
    let letter =
        |c: char| c.is_ascii_alphanumeric() || ('\u{c0}'..'\u{590}').contains(&c) && c.is_alphabetic();
    let before = text.get(..at)?.chars().rev().take(64);
    let before: usize = before
        .take_while(|c| letter(*c) || matches!(c, '.' | '_' | '+' | '-' | '%'))
        .map(char::len_utf8)
        .sum();
    let after = text.get(at + 1..)?.chars().take(128);
    let after: usize = after.take_while(|c| letter(*c) || matches!(c, '.' | '-')).map(char::len_utf8).sum();
    let domain = text.get(at + 1..at + 1 + after)?;
    let dotted = domain.find('.').is_some_and(|dot| dot > 0 && dot + 2 < domain.len());
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
mod tests;

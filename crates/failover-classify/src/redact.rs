//! Takes secrets out of text before it is cut, stored or shown.

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

/// Names after which a secret stands.
const NAMES: [&str; 26] = [
    "api_key",
    "api-key",
    "apikey",
    "api key provided",
    "x-api-key",
    "x-goog-api-key",
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "session_token",
    "client_secret",
    "secret_key",
    "secretkey",
    "accesstoken",
    "refreshtoken",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "set-cookie",
    "bearer",
    "basic",
    "token",
    "secret",
    "key",
];

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'+' | b'=' | b'*' | b'~' | b'%')
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

fn secrets(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut ranges = Vec::new();
    let mut at = 0;
    let mut named = false;
    while let Some(&byte) = bytes.get(at) {
        if !is_token_byte(byte) {
            if byte == b'@'
                && let Some(range) = address(bytes, at)
            {
                at = range.end;
                while ranges.last().is_some_and(|last: &Range<usize>| last.start >= range.start) {
                    ranges.pop();
                }
                ranges.push(range);
                continue;
            }
            // A name holds for the next word, over quotes, colons and spaces; not over anything else.
            if !matches!(byte, b' ' | b'"' | b'\'' | b':' | b'\\') {
                named = false;
            }
            at += 1;
            continue;
        }
        let end = at + bytes.get(at..).unwrap_or_default().iter().take_while(|b| is_token_byte(**b)).count();
        let word = text.get(at..end).unwrap_or_default();
        let (name, value_at) = match word.split_once('=') {
            Some((name, value)) if !value.is_empty() => (Some(name), at + name.len() + 1),
            _ => (None, at),
        };
        let value = text.get(value_at..end).unwrap_or_default();
        let asked = named || name.is_some_and(is_name);
        if let Some(offset) = known(value) {
            ranges.push(value_at + offset..end);
            named = false;
        } else if asked && looks_secret(value) || value.len() >= 32 && is_dense(value) {
            ranges.push(value_at..end);
            named = false;
        } else {
            named = is_name(word.trim_end_matches(['=', '.'])) || named && is_scheme(word);
        }
        at = end;
    }
    ranges
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "provided", "is"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

fn is_name(word: &str) -> bool {
    NAMES.iter().any(|name| {
        let bytes = word.as_bytes();
        bytes.len() >= name.len()
            && bytes
                .get(bytes.len() - name.len()..)
                .is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes()))
            && bytes
                .len()
                .checked_sub(name.len() + 1)
                .and_then(|i| bytes.get(i))
                .is_none_or(|b| !b.is_ascii_alphanumeric())
    }) || word.eq_ignore_ascii_case("provided")
}

/// Where in the word a key begins that is known by its beginning.
fn known(word: &str) -> Option<usize> {
    PREFIXES.iter().find_map(|(prefix, least)| {
        if word.len() < prefix.len() + least {
            return None;
        }
        let at = word.find(prefix)?;
        let clear =
            at.checked_sub(1).and_then(|i| word.as_bytes().get(i)).is_none_or(|b| !b.is_ascii_alphanumeric());
        (clear && word.len() - at - prefix.len() >= *least).then_some(at)
    })
}

fn looks_secret(word: &str) -> bool {
    let mixed = word.bytes().any(|b| b.is_ascii_digit() || b == b'*')
        || word.bytes().any(|b| b.is_ascii_uppercase())
            && word.bytes().skip(1).any(|b| b.is_ascii_lowercase());
    word.len() >= 8 && mixed
}

/// Long and of many kinds of bytes, but no id that providers print to be quoted back, and no address.
fn is_dense(word: &str) -> bool {
    if word.contains('.') || word.contains('/') || word.matches('-').count() >= 2 || word.contains('_') {
        return false;
    }
    let (mut lower, mut upper, mut digit) = (0, 0, 0);
    for byte in word.bytes() {
        match byte {
            b'a'..=b'z' => lower += 1,
            b'A'..=b'Z' => upper += 1,
            b'0'..=b'9' => digit += 1,
            _ => {}
        }
    }
    lower >= 6 && upper >= 6 && digit >= 3
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
    fn secrets_are_taken_out(text: &str, secret: &str) {
        let clean = redact(text);
        assert!(!clean.contains(secret), "{clean}");
        assert!(clean.contains(MARK));
    }

    // spec: C-23
    #[test]
    fn plain_text_is_handed_back() {
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

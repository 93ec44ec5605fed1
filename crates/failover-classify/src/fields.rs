//! Codes and statuses: words and numbers that stand where a code or a status stands, never anywhere else.

use crate::source::Source;
use crate::view::View;
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::LazyLock;

/// What stands after a key, by the last word of the key in the view's normal form (`error_code` is `error code`):
/// a code, a status.
fn kind_of(key: &[u8]) -> (bool, bool) {
    let begin = key.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let (before, word) = key.split_at_checked(begin).unwrap_or((b"", key));
    match word {
        b"code" | b"status" | b"statuscode" => (true, true),
        b"httpcode" | b"httpstatus" | b"httpstatuscode" => (false, true),
        b"error" => (true, ends_with_word(before, b"http ")),
        b"msg" => (ends_with_word(before, b"status "), false),
        b"errcode" | b"errorcode" | b"retcode" | b"ecode" | b"type" | b"errortype" | b"reason"
        | b"finishreason" | b"blockreason" | b"err" | b"name" | b"errorname" | b"exception" | b"param"
        | b"failure" | b"title" | b"kind" | b"errorkind" | b"category" => (true, false),
        _ => (false, false),
    }
}

/// How the names of classes of errors end; made once, for making one takes longer than a short text.
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("error"));
static EXCEPTION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("exception"));

/// Words that a status follows, without a colon.
const STATUS_WORDS: [&str; 74] = [
    "upstream",
    "answered",
    "answered with",
    "responded with",
    "replied",
    "replied with",
    "error code",
    "status code",
    "statuscode",
    "http status",
    "http code",
    "http error",
    "http",
    "status",
    "status is",
    "code",
    "error",
    "api error",
    "api error (",
    "(http",
    "(status",
    "(code",
    "[http",
    "http/1.1",
    "http/2",
    "http/2.0",
    "http/1.0",
    "returned",
    "server returned",
    "got",
    "received",
    "response code",
    "response",
    "failed with",
    "http response",
    "status code of",
    "rejected",
    "unexpected status",
    "响应状态码",
    "状态码",
    "错误码",
    "错误",
    "ошибка",
    "reason",
    "last status",
    "cause",
    "caused by",
    "zurückgegeben",
    "fehlercode",
    "statut",
    "code d'erreur",
    "estado",
    "código",
    "stato",
    "statuskod",
    "foutcode",
    "kod błędu",
    "статус",
    "код",
    "код ошибки",
    "код помилки",
    "durum kodu",
    "状态",
    "狀態碼",
    "错误代码",
    "錯誤碼",
    "ステータス",
    "ステータスコード",
    "エラーコード",
    "상태 코드",
    "상태",
    "오류 코드",
    "mã lỗi",
    "kode status",
];

/// Words that follow a status.
const REASON_PHRASES: [&str; 40] = [
    "bad request",
    "unauthorized",
    "payment required",
    "forbidden",
    "not found",
    "page not found",
    "method not allowed",
    "request timeout",
    "conflict",
    "gone",
    "payload too large",
    "request entity too large",
    "content too large",
    "unsupported media type",
    "unprocessable",
    "too many requests",
    "internal server error",
    "internal error",
    "not implemented",
    "bad gateway",
    "service unavailable",
    "service temporarily unavailable",
    "gateway time",
    "client error",
    "server error",
    "status code",
    "overloaded",
    "resource exhausted",
    "unavailable",
    "permission denied",
    "invalid argument",
    "precondition",
    "web server",
    "unavailable for legal",
    "unknown error",
    "error",
    "verboten",
    "interdit",
    "prohibido",
    "запрещен",
];

/// A code: where its text stands in [`Fields::text`], and where it stands in the view.
#[derive(Clone, Debug)]
struct Field {
    text: Range<usize>,
    span: (usize, usize),
}

/// What was found in code and status positions.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    codes: Vec<Field>,
    statuses: Vec<u16>,
    /// The codes one after the other, in lower case, else as they stand in the body (with `_` and `-`).
    text: String,
}

/// At most this many codes and statuses are kept.
const MOST: usize = 48;
/// Structure is looked for in this much of a text's front.
const REACH: usize = 16 * 1024;
/// Names of classes are looked for in this much of a text's front, and this many.
const NAMED: usize = 2 * 1024;
const CLASSES: usize = 8;
/// Names of classes that say enough behind the name of whose they are.
const ALONE: [&str; 6] =
    ["Authentication", "Overloaded", "Throttling", "Throttled", "Timeout", "Unauthorized"];
/// No code is longer.
pub(crate) const LONGEST: usize = 80;

impl Fields {
    /// The codes and their spans in the view.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (&str, (usize, usize))> {
        self.codes.iter().map(|code| (self.text.get(code.text.clone()).unwrap_or_default(), code.span))
    }

    /// The span of the code of this number in [`Fields::codes`].
    pub(crate) fn span(&self, index: usize) -> Option<(usize, usize)> {
        self.codes.get(index).map(|code| code.span)
    }

    /// Adds a code.
    pub(crate) fn code(&mut self, value: &str, span: (usize, usize)) {
        let from = self.text.len();
        self.text.push_str(value);
        if let Some(added) = self.text.get_mut(from..) {
            added.make_ascii_lowercase();
        }
        self.codes.push(Field { text: from..self.text.len(), span });
    }

    /// Reads another text. What was read before is forgotten, its memory is used again.
    pub(crate) fn read(&mut self, view: &View, source: &Source<'_>) {
        self.codes.clear();
        self.statuses.clear();
        self.text.clear();
        let text = view.slice(0..REACH);
        for (at, &byte) in text.iter().enumerate() {
            if !is_sign(byte) {
                continue;
            }
            match byte {
                b'4' | b'5' => self.bare_status(view, text, at, source),
                b'(' | b'[' | b'<' => self.bracketed(text, at),
                _ => self.pair(view, text, at, source),
            }
            if self.codes.len() >= MOST || self.statuses.len() >= MOST {
                break;
            }
        }
    }

    /// Adds the names of classes of errors: `RateLimitError`, `dev.acme.QuotaExceededException`, and without the name
    /// of whose they are (`GoUsageLimitError`).
    pub(crate) fn classes(&mut self, view: &View, source: &Source<'_>) {
        let text = view.slice(0..NAMED);
        for at in ERROR.find_iter(text).chain(EXCEPTION.find_iter(text)).take(CLASSES) {
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
            let before = text.get(..at).unwrap_or_default();
            let begin = before.iter().rposition(|byte| !is_word(byte)).map_or(0, |last| last + 1);
            let len = text.get(at..).unwrap_or_default().iter().position(|byte| !is_word(byte));
            let end = at + len.unwrap_or(text.len() - at);
            if begin == at || !matches!(end - at, 5 | 9) || end - begin > LONGEST || self.codes.len() >= MOST
            {
                continue;
            }
            let after = text.get(end..).unwrap_or_default();
            // Rust's `LlmError::Overloaded`.
            if let Some(variant) = after.strip_prefix(b"::") {
                let len = variant.iter().position(|byte| !is_word(byte)).unwrap_or(variant.len());
                let span = (end + 2, end + 2 + len);
                let (from, to) = view.origins(span);
                if (1..=LONGEST).contains(&len) {
                    self.code(source.cut(from, to), span);
                }
                continue;
            }
            // Else the line ends, which only the source knows, as it does where it is escaped.
            let ends = || matches!(source.byte(view.origin(end)), Some(b'\n' | b'\r' | b'\\'));
            let told =
                matches!(after, [] | [b':' | b'(' | b')' | b']' | b'>' | b'\'' | b'"' | b'{' | b',', ..]);
            if !(told || after.first() == Some(&b' ') && ends()) {
                continue;
            }
            let (from, to) = view.origins((begin, end));
            let name = source.cut(from, to);
            if name.len() != end - begin || !name.starts_with(|ch: char| ch.is_ascii_uppercase()) {
                continue;
            }
            self.code(name, (begin, end));
            // Two words and what all errors are called say enough of their own, and a few say it alone.
            let ends = name.len() - (end - at);
            let words = name.bytes().take(ends).enumerate().filter(|(_, byte)| byte.is_ascii_uppercase());
            let mut words = words.map(|(place, _)| place).skip(1);
            if let Some(second) = words.next()
                && let Some(own) = name.get(second..).filter(|own| !own.starts_with("Not"))
                && (words.next().is_some() || name.get(second..ends).is_some_and(|own| ALONE.contains(&own)))
            {
                self.code(own, (begin + second, end));
            }
        }
    }

    fn pair(&mut self, view: &View, text: &[u8], at: usize, source: &Source<'_>) {
        let Some(key) = key_before(text, at) else { return };
        let (is_code, is_status) = kind_of(key);
        if !is_code && !is_status {
            return;
        }
        let mut start = at + 1;
        let mut quoted = false;
        while let Some(&byte) = text.get(start) {
            match byte {
                b' ' => start += 1,
                b'"' | b'\'' if !quoted => {
                    quoted = true;
                    start += 1;
                }
                // Rust's `Some("429")`.
                b's' if !quoted && text.get(start..).is_some_and(|rest| rest.starts_with(b"some(")) => {
                    start += 5;
                }
                b'[' if text.get(start + 1).is_some_and(|&b| b == b'"' || b == b'\'') => start += 1,
                _ => break,
            }
        }
        let rest = text.get(start..text.len().min(start + LONGEST + 1)).unwrap_or_default();
        let end = if quoted {
            memchr::memchr2(b'"', b'\'', rest)
        } else {
            rest.iter().position(|&byte| !is_code_byte(byte))
        };
        let len = end.unwrap_or(rest.len());
        if len == 0 || len > LONGEST {
            return;
        }
        // `_` and `-` are spaces here; an unquoted value ends at a true space, which only the source knows.
        let (from, to) = view.origins((start, start + len));
        let mut value = source.cut(from, to);
        let mut ends = len;
        if !quoted {
            let space = value.bytes().position(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r'));
            value = space.and_then(|end| value.get(..end)).unwrap_or(value);
            ends = len.min(value.len());
        }
        if is_status
            && value.starts_with(|ch: char| matches!(ch, '+' | '0'..='9'))
            && let Ok(number) = value.parse::<u16>()
            && (400..600).contains(&number)
        {
            self.statuses.push(number);
        }
        if is_code {
            let colon = memchr::memchr(b':', value.as_bytes());
            if let Some(word) = colon.and_then(|end| value.get(..end)) {
                self.code(word, (start, start + word.len()));
            }
            self.code(value, (start, start + ends));
        }
    }

    fn bare_status(&mut self, view: &View, text: &[u8], at: usize, source: &Source<'_>) {
        let Some(number) = text.get(at..at + 3).and_then(number3) else { return };
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at + 3..).unwrap_or_default();
        if before.last().is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'/' | b'#' | b'$'))
            || after.first().is_some_and(u8::is_ascii_alphanumeric)
            || after.starts_with(b" is ")
            || after.starts_with(b" was ")
            || after.first() == Some(&b'.') && after.get(1).is_some_and(u8::is_ascii_digit)
        {
            return;
        }
        // A list of numbers: `[429, 500]`.
        let next = after.strip_prefix(b",").map(|rest| strip_start(rest, |byte| byte == b' '));
        if next.and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit) {
            return;
        }
        let head = trim_end(before);
        if head.ends_with(b",")
            && trim_end(head.get(..head.len() - 1).unwrap_or_default()).last().is_some_and(u8::is_ascii_digit)
        {
            return;
        }
        let closes = after.first().copied();
        let bracketed = head.last().is_some_and(|&b| matches!(b, b'(' | b'[' | b'<' | b'{'))
            && matches!(closes, Some(b')' | b']' | b'>' | b' ' | b':' | b','));
        let titled = head.ends_with(b"title:") || head.ends_with(b"|");
        let label = strip_end(head, |byte| matches!(byte, b':' | b'=' | b'"' | b'\'' | b'(' | b'-' | b' '));
        let worded = || STATUS_WORDS.iter().any(|word| ends_with_word(label, word.as_bytes()));
        let begins = strip_end(head, |byte| matches!(byte, b'"' | b'\'' | b':' | b' ')).ends_with(b"message")
            && head.ends_with(b"\"")
            || head.is_empty()
            || head.ends_with(b"error:")
            || head.ends_with(b"exception:");
        // `BadRequestError - 400 Request …`: the name of a class. (The view folds the hyphen.)
        let classed = head.ends_with(b"error") && !ends_with_word(head, b"error")
            || head.ends_with(b"exception") && !ends_with_word(head, b"exception");
        // `(URL('…'), 429, b'{…}', Headers(…))`: what Python's clients hold.
        let classed = classed || after.starts_with(b", b'") || after.starts_with(b", b\"");
        let tail = strip_start(after, |byte| b" :,)]>\"'({".contains(&byte));
        let phrased = || REASON_PHRASES.iter().any(|phrase| starts_with(tail, phrase.as_bytes()));
        let near =
            head.ends_with(b":") || label.len() < head.len() || head.len() == before.len().saturating_sub(1);
        let is_status = titled || bracketed || begins || classed || worded() || near && phrased();
        if is_status && !is_ticket(view, text, at, source) {
            self.statuses.push(number);
        }
    }

    /// `(1008)`, `[1310]`, `<400>`: a number of a provider's own in brackets.
    fn bracketed(&mut self, text: &[u8], at: usize) {
        let rest = text.get(at + 1..).unwrap_or_default();
        let len = rest.iter().take(8).take_while(|byte| byte.is_ascii_digit()).count();
        if (4..=6).contains(&len)
            && rest.get(len).is_some_and(|&b| matches!(b, b')' | b']' | b'>'))
            && let Ok(value) = std::str::from_utf8(rest.get(..len).unwrap_or_default())
        {
            self.code(value, (at + 1, at + 1 + len));
        }
    }

    /// The status that a text is about. The outermost number speaks, unless it is a proxy's 5xx around a 4xx.
    pub(crate) fn status(&self) -> Option<u16> {
        let first = *self.statuses.first()?;
        if first >= 500
            && let Some(inner) = self.statuses.iter().find(|status| **status < 500)
        {
            return Some(*inner);
        }
        Some(first)
    }
}

/// `PROJ-429`: the number of a ticket. Only the source knows the hyphen, which the view folds.
fn is_ticket(view: &View, text: &[u8], at: usize, source: &Source<'_>) -> bool {
    const OF_STATUSES: [&str; 6] = ["HTTP", "ERROR", "CODE", "STATUS", "ERR", "E"];
    /// No project's key is longer.
    const KEY: usize = 12;
    if at.checked_sub(1).and_then(|before| text.get(before)) != Some(&b' ') {
        return false;
    }
    let (start, end) = view.origins((at.saturating_sub(KEY), at));
    let before = source.cut(start, end);
    let Some(before) = before.strip_suffix('-') else { return false };
    let key = before.rsplit(|ch: char| !ch.is_ascii_alphanumeric()).next().unwrap_or_default();
    key.len() > 1 && key.bytes().all(|byte| byte.is_ascii_uppercase()) && !OF_STATUSES.contains(&key)
}

/// Beside these bytes codes and statuses stand.
const SIGNS: [bool; 256] = {
    let mut table = [false; 256];
    let mut rest: &[u8] = b":=45([<";
    while let [sign, tail @ ..] = rest {
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            table[*sign as usize] = true;
        }
        rest = tail;
    }
    table
};

#[inline]
fn is_sign(byte: u8) -> bool {
    SIGNS.get(usize::from(byte)).copied().unwrap_or_default()
}

/// A status of an error, from its three digits.
fn number3(digits: &[u8]) -> Option<u16> {
    let [hundreds @ b'4'..=b'5', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = digits else { return None };
    let value = |digit: &u8| u16::from(digit - b'0');
    Some(value(hundreds) * 100 + value(tens) * 10 + value(ones))
}

fn is_code_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'.' | b':' | b'/') || byte >= 0x80
}

/// The up to 20 bytes that stand before a colon or an equals sign, quotes and spaces taken off.
fn key_before(text: &[u8], at: usize) -> Option<&[u8]> {
    let before = strip_end(text.get(at.saturating_sub(24)..at)?, |byte| {
        matches!(byte, b' ' | b'"' | b'\'' | b')' | b']')
    });
    before.last().filter(|byte| byte.is_ascii_lowercase())?;
    Some(before)
}

/// `starts_with`, with a look at the first byte before anything else: nearly always that settles it.
#[inline]
fn starts_with(text: &[u8], what: &[u8]) -> bool {
    text.first() == what.first() && text.starts_with(what)
}

/// Whether the text ends with this word, or with these words.
#[inline]
fn ends_with_word(text: &[u8], word: &[u8]) -> bool {
    text.last() == word.last()
        && text.strip_suffix(word).is_some_and(|rest| {
            !word.first().is_some_and(u8::is_ascii_alphanumeric)
                || !rest.last().is_some_and(|&byte| byte.is_ascii_alphanumeric())
        })
}

fn trim_end(text: &[u8]) -> &[u8] {
    strip_end(text, |byte| byte == b' ')
}

fn strip_end(mut text: &[u8], is_in: impl Fn(u8) -> bool) -> &[u8] {
    while let Some((last, rest)) = text.split_last() {
        if !is_in(*last) {
            break;
        }
        text = rest;
    }
    text
}

fn strip_start(mut text: &[u8], is_in: impl Fn(u8) -> bool) -> &[u8] {
    while let Some((first, rest)) = text.split_first() {
        if !is_in(*first) {
            break;
        }
        text = rest;
    }
    text
}

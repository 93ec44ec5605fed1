//! Codes and statuses: words and numbers that stand where a code or a status stands, never anywhere else.

use crate::view::View;

/// Keys after which a code stands, in the view's normal form (`error_code` is `error code`).
const CODE_KEYS: [&str; 27] = [
    "code",
    "errcode",
    "errorcode",
    "error type",
    "errortype",
    "type",
    "status",
    "reason",
    "error",
    "err",
    "statuscode",
    "retcode",
    "ecode",
    "name",
    "exception",
    "status code",
    "finish reason",
    "finishreason",
    "stop reason",
    "blockreason",
    "param",
    "error name",
    "failure",
    "title",
    "errorname",
    "exception type",
    "status msg",
];

/// Keys after which a status stands.
const STATUS_KEYS: [&str; 10] = [
    "code",
    "status",
    "status code",
    "statuscode",
    "httpcode",
    "http status",
    "http code",
    "httpstatus",
    "httpstatuscode",
    "http error",
];

/// Words that a status follows, without a colon.
const STATUS_WORDS: [&str; 41] = [
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
];

/// Words that follow a status.
const REASON_PHRASES: [&str; 36] = [
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
];

/// A code and where it stands in the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Lower case, as it stands in the body (with `_` and `-`).
    pub(crate) value: String,
    pub(crate) span: (usize, usize),
}

/// What was found in code and status positions.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) codes: Vec<Field>,
    pub(crate) statuses: Vec<u16>,
}

/// At most this many codes and statuses are kept.
const MOST: usize = 48;
/// Structure is looked for in this much of a text's front.
const REACH: usize = 16 * 1024;
/// No code is longer.
const LONGEST: usize = 80;

impl Fields {
    pub(crate) fn of(view: &View, source: &impl Fn(usize, usize) -> String) -> Self {
        let mut fields = Self::default();
        let text = view.bytes();
        let text = text.get(..text.len().min(REACH)).unwrap_or_default();
        for (at, &byte) in text.iter().enumerate() {
            match byte {
                b':' | b'=' => fields.pair(view, text, at, source),
                b'4' | b'5' => fields.bare_status(text, at),
                b'(' | b'[' | b'<' => fields.bracketed(text, at),
                _ => {}
            }
            if fields.codes.len() >= MOST || fields.statuses.len() >= MOST {
                break;
            }
        }
        fields
    }

    fn pair(&mut self, view: &View, text: &[u8], at: usize, source: &impl Fn(usize, usize) -> String) {
        let Some(key) = key_before(text, at) else { return };
        let is_code = CODE_KEYS.iter().any(|name| ends_with_word(key, name.as_bytes()));
        let is_status = STATUS_KEYS.iter().any(|name| ends_with_word(key, name.as_bytes()));
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
                b'[' if text.get(start + 1).is_some_and(|&b| b == b'"' || b == b'\'') => start += 1,
                _ => break,
            }
        }
        let rest = text.get(start..).unwrap_or_default();
        let mut len = rest
            .iter()
            .take(LONGEST + 1)
            .position(|&b| if quoted { matches!(b, b'"' | b'\'') } else { !is_code_byte(b) })
            .unwrap_or(rest.len().min(LONGEST + 1));
        if len == 0 || len > LONGEST {
            return;
        }
        // `_` and `-` are spaces here; an unquoted value ends at a true space, which only the source knows.
        let mut value = source(view.origin(start), view.origin(start + len - 1) + 1);
        if !quoted && let Some(cut) = value.find([' ', '\n', '\t', '\r']) {
            value.truncate(cut);
            len = cut;
        }
        value.make_ascii_lowercase();
        if is_status
            && let Ok(number) = value.parse::<u16>()
            && (400..600).contains(&number)
        {
            self.statuses.push(number);
        }
        if is_code {
            if let Some((word, _)) = value.split_once(':') {
                self.codes.push(Field { value: word.to_owned(), span: (start, start + word.len()) });
            }
            self.codes.push(Field { value, span: (start, start + len) });
        }
    }

    fn bare_status(&mut self, text: &[u8], at: usize) {
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
        let head = trim_end(before);
        let closes = after.first().copied();
        let bracketed = head.last().is_some_and(|&b| matches!(b, b'(' | b'[' | b'<' | b'{'))
            && matches!(closes, Some(b')' | b']' | b'>' | b' ' | b':' | b','));
        let titled = head.ends_with(b"title:") || head.ends_with(b"|");
        let label = strip_end(head, b":=\"'(- ");
        let worded = STATUS_WORDS.iter().any(|word| ends_with_word(label, word.as_bytes()));
        let begins = strip_end(head, b"\"': ").ends_with(b"message") && head.ends_with(b"\"")
            || head.is_empty()
            || head.ends_with(b"error:")
            || head.ends_with(b"exception:");
        let tail = strip_start(after, b" :,)]>\"'({");
        let phrased = REASON_PHRASES.iter().any(|phrase| tail.starts_with(phrase.as_bytes()));
        let after_colon = head.ends_with(b":") && phrased;
        if titled
            || worded
            || bracketed
            || phrased && (begins || after_colon || label.len() < head.len())
            || begins
            || phrased && head.len() == before.len().saturating_sub(1)
        {
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
            self.codes.push(Field { value: value.to_owned(), span: (at + 1, at + 1 + len) });
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

fn number3(digits: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(digits).ok()?;
    text.parse().ok().filter(|number| (400..600).contains(number))
}

fn is_code_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'.' | b':' | b'/') || byte >= 0x80
}

/// The up to 20 bytes that stand before a colon or an equals sign, quotes and spaces taken off.
fn key_before(text: &[u8], at: usize) -> Option<&[u8]> {
    let before = strip_end(text.get(at.saturating_sub(24)..at)?, b" \"')]");
    before.last().filter(|byte| byte.is_ascii_lowercase())?;
    Some(before)
}

pub(crate) fn ends_with_word(text: &[u8], word: &[u8]) -> bool {
    text.strip_suffix(word).is_some_and(|rest| {
        !word.first().is_some_and(u8::is_ascii_alphanumeric)
            || !rest.last().is_some_and(|&byte| byte.is_ascii_alphanumeric())
    })
}

fn trim_end(text: &[u8]) -> &[u8] {
    strip_end(text, b" ")
}

fn strip_end<'a>(mut text: &'a [u8], set: &[u8]) -> &'a [u8] {
    while let Some((last, rest)) = text.split_last() {
        if !set.contains(last) {
            break;
        }
        text = rest;
    }
    text
}

fn strip_start<'a>(mut text: &'a [u8], set: &[u8]) -> &'a [u8] {
    while let Some((first, rest)) = text.split_first() {
        if !set.contains(first) {
            break;
        }
        text = rest;
    }
    text
}

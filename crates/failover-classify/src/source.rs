//! The part of a body that is read at all.

use crate::eight;
use std::borrow::Cow;

/// At most this much is read from the front of a body.
pub(crate) const HEAD: usize = 64 * 1024;
/// And this much from its end.
pub(crate) const TAIL: usize = 4 * 1024;

/// The front of a body and, of a long one, its end: valid UTF-8, of the same length as the bytes it stands for.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) head: Cow<'a, str>,
    /// Where it begins in the body, and the text.
    pub(crate) tail: Option<(usize, Cow<'a, str>)>,
}

impl<'a> Source<'a> {
    pub(crate) fn of(body: &'a [u8]) -> Self {
        if body.len() <= HEAD + TAIL {
            return Self { head: text_of(body), tail: None };
        }
        let cut = body.len() - TAIL;
        let head = body.get(..HEAD).unwrap_or_default();
        let tail = body.get(cut..).unwrap_or_default();
        Self { head: text_of(head), tail: Some((cut, text_of(tail))) }
    }

    /// The byte at an offset of the body.
    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        match &self.tail {
            Some((base, text)) if at >= *base => text.as_bytes().get(at - base).copied(),
            _ => self.head.as_bytes().get(at).copied(),
        }
    }

    /// The bytes from an offset of the body on, eight of them.
    #[inline]
    pub(crate) fn front(&self, at: usize) -> u64 {
        match &self.tail {
            Some((base, text)) if at >= *base => eight::front(text.as_bytes(), at - base),
            _ => eight::front(self.head.as_bytes(), at),
        }
    }

    /// The text between two offsets of the body; the ends are moved to char boundaries.
    pub(crate) fn cut(&self, start: usize, end: usize) -> &str {
        let (base, text): (usize, &str) = match &self.tail {
            Some((at, text)) if start >= *at => (*at, text),
            _ => (0, &self.head),
        };
        let start = crate::facts::floor(text, start.saturating_sub(base));
        let mut end = end.saturating_sub(base).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        text.get(start..end).unwrap_or_default()
    }
}

/// Text of the same length: a byte that is not UTF-8 becomes `?`.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(std::iter::repeat_n('?', chunk.invalid().len()));
    }
    Cow::Owned(text)
}

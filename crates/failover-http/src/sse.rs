//! Server-sent events, without I/O: bytes in, events out.

use std::borrow::Cow;
use std::collections::VecDeque;

/// Longest event accepted, in bytes: images come inside events, base64 and all.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent {
    /// Its type; empty where none was named.
    pub event: String,
    /// Its data, lines joined by line feeds. Bytes that are no UTF-8 are replaced.
    pub data: String,
}

/// Bytes as text; what is no UTF-8 is replaced. That is looked for only where the quick check fails.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// An event longer than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the provider sent an event of more than {MAX_EVENT_BYTES} bytes")]
pub struct EventTooLong;

/// Cuts a byte stream into events, however it is split. Takes LF, CR LF and CR, and a byte-order mark at the start;
/// comments, ids and retry times are passed over.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// A line was read already: a byte-order mark no longer counts.
    begun: bool,
    ready: VecDeque<SseEvent>,
}

impl SseParser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes. Complete events are then to be had from [`SseParser::next_event`].
    ///
    /// # Errors
    ///
    /// [`EventTooLong`]; the stream is of no use afterwards.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), EventTooLong> {
        if let ([b'\n', rest @ ..], true) = (bytes, self.after_cr) {
            bytes = rest;
        }
        if !bytes.is_empty() {
            self.after_cr = false;
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.extend_line(line)?;
            self.take_line();
            bytes = match rest {
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.extend_line(bytes)
    }

    /// The next complete event.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// Whether the bytes so far end inside an event.
    pub fn mid_event(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    /// Says that the stream has ended. An event that lacks nothing but its blank line, or its last line break,
    /// becomes ready; whether it is whole is for its reader to say.
    pub fn end(&mut self) {
        if !self.line.is_empty() {
            self.take_line();
        }
        self.dispatch();
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            self.dispatch();
        } else {
            let at = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(at);
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match name {
                b"data" => {
                    if std::mem::replace(&mut self.has_data, true) {
                        self.data.push(b'\n');
                    }
                    self.data.extend_from_slice(value);
                }
                b"event" => self.event = value.to_vec(),
                _ => {}
            }
        }
        // Keeps the allocation for the next line.
        line.clear();
        self.line = line;
    }

    fn dispatch(&mut self) {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            self.ready
                .push_back(SseEvent { event: lossy(&event).into_owned(), data: lossy(&data).into_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_case::test_case;

    fn parse(pieces: &[&[u8]], ended: bool) -> Vec<(String, String)> {
        let mut parser = SseParser::new();
        for piece in pieces {
            parser.push(piece).unwrap();
        }
        if ended {
            parser.end();
        }
        std::iter::from_fn(|| parser.next_event()).map(|event| (event.event, event.data)).collect()
    }

    #[test_case(b"data: a\n\ndata:b\n\n", &[("", "a"), ("", "b")]; "one space is optional")]
    #[test_case(b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", &[("", "a"), ("", "b"), ("", "c")]; "three kinds of line break")]
    #[test_case(b"\xef\xbb\xbfdata: a\n\n", &[("", "a")]; "byte-order mark")]
    #[test_case(b"data: a\ndata: b\ndata\n\n", &[("", "a\nb\n")]; "lines are joined")]
    #[test_case(b": hello\n\nevent: ping\n\n", &[]; "nothing without data")]
    #[test_case(b"event: error\nid: 7\nretry: 9\ndata: {}\n\n", &[("error", "{}")]; "types are kept, ids passed over")]
    #[test_case(b"event: x\n\ndata: a\n\n", &[("", "a")]; "a type does not outlive its block")]
    #[test_case(b"data: \xff\n\n", &[("", "\u{fffd}")]; "invalid utf-8 is replaced")]
    #[test_case(b"data: a\n", &[]; "no blank line yet")]
    fn reads(bytes: &[u8], expected: &[(&str, &str)]) {
        let expected: Vec<(String, String)> =
            expected.iter().map(|(event, data)| ((*event).into(), (*data).into())).collect();
        assert_eq!(parse(&[bytes], false), expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&single, false), expected, "byte by byte");
    }

    // spec: P-3
    #[test_case(b"data: a\n"; "blank line missing")]
    #[test_case(b"data: a"; "line break missing")]
    fn a_stream_that_ends_inside_an_event_says_so_and_gives_it_up_at_the_end(bytes: &[u8]) {
        let mut parser = SseParser::new();
        parser.push(bytes).unwrap();
        assert!(parser.mid_event() && parser.next_event().is_none());
        parser.end();
        assert_eq!(parser.next_event().unwrap().data, "a");
        assert!(!parser.mid_event());
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut parser = SseParser::new();
        let megabyte = vec![b'x'; 1 << 20];
        let refused = (0..17).map(|_| parser.push(&megabyte)).find(Result::is_err);
        assert_eq!(refused, Some(Err(EventTooLong)));
        let mut parser = SseParser::new();
        let line = [b"data: ", &megabyte[..], b"\n"].concat();
        assert!((0..17).any(|_| parser.push(&line).is_err()), "many lines of one event count together");
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing(bytes in proptest::collection::vec(prop_oneof![
            Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), Just(b'a'), Just(b't'), any::<u8>()
        ], 0..200), cuts in proptest::collection::vec(0usize..200, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut from = 0;
            let pieces: Vec<&[u8]> = cuts.iter().map(|cut| { let piece = &bytes[from..*cut]; from = *cut; piece }).collect();
            prop_assert_eq!(parse(&pieces, true), parse(&[&bytes], true));
        }
    }
}

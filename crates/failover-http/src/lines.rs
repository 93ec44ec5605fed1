//! One JSON value a line, without I/O: bytes in, lines out.

use crate::sse::{EventTooLong, MAX_EVENT_BYTES, SseEvent, lossy};
use std::collections::VecDeque;

/// Cuts a byte stream into lines. Blank ones are passed over.
#[derive(Debug, Default)]
pub(crate) struct LineParser {
    line: Vec<u8>,
    ready: VecDeque<SseEvent>,
}

impl LineParser {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + piece.len() > MAX_EVENT_BYTES {
                return Err(EventTooLong);
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end();
            }
        }
        Ok(())
    }

    pub(crate) fn next_line(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// Takes what there is for a line.
    pub(crate) fn end(&mut self) {
        let line = lossy(&self.line);
        let data = line.trim();
        if !data.is_empty() {
            self.ready.push_back(SseEvent { event: String::new(), data: data.to_owned() });
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_the_bytes_are_split() {
        let bytes = b"{\"a\":1}\n\r\n {\"b\":2}\r\n{\"c\":3}";
        for size in 1..bytes.len() {
            let mut parser = LineParser::default();
            for piece in bytes.chunks(size) {
                parser.push(piece).unwrap();
            }
            parser.end();
            let lines: Vec<String> =
                std::iter::from_fn(|| parser.next_line()).map(|line| line.data).collect();
            assert_eq!(lines, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = LineParser::default();
        let megabyte = vec![b'x'; 1 << 20];
        assert!((0..17).any(|_| parser.push(&megabyte).is_err()));
    }
}

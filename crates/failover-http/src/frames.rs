//! Whole frames of an event stream, as slices of the bytes that came: for streams that are passed on untouched.

use crate::answer::{Answered, Fault};
use crate::sse::{EventTooLong, MAX_EVENT_BYTES};
use bytes::{Bytes, BytesMut};
use failover_provider::{FinishReason, NativeFrame};
use std::borrow::Cow;
use std::collections::VecDeque;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What a look at one event says of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each is passed on another way")]
pub enum Glance {
    /// Content is in it.
    Content,
    /// No content; it is passed on all the same.
    Other,
    /// It is not passed on: malformed, or something that the caller did not ask for.
    Withhold,
}

/// Takes one look at each event of a stream that is passed on as it came, without taking it apart. No I/O.
pub trait Look: Send + 'static {
    /// Looks at one event. Usage goes to `answered.ready`, the finish marker and the end to their fields.
    ///
    /// # Errors
    ///
    /// [`Fault`] where the provider says that it failed.
    fn look(&mut self, event: &str, data: &str, answered: &mut Answered) -> Result<Glance, Fault>;

    /// The frame that ends a stream of the dialect, for servers that leave it out.
    fn sentinel(&self) -> &'static [u8];
}

/// Cuts a byte stream into frames: everything up to and with a blank line. Nothing is dropped or copied but a frame
/// that came in several pieces.
#[derive(Debug, Default)]
struct Cutter {
    /// The start of a frame whose end has not come.
    held: BytesMut,
    chunk: Bytes,
    /// Bytes of `chunk` that belong to frames already cut.
    at: usize,
    /// The line at hand has no bytes yet.
    blank: bool,
    after_cr: bool,
    begun: bool,
}

/// A frame, and whether it is a slice of the chunk at hand.
struct Cut {
    bytes: Bytes,
    /// Where it lies in the chunk.
    place: Option<(usize, usize)>,
}

impl Cutter {
    fn push(&mut self, chunk: Bytes) {
        self.chunk = chunk;
        self.at = 0;
        if !std::mem::replace(&mut self.begun, true) {
            self.blank = true;
        }
    }

    /// The end of the frame at hand within the rest of the chunk.
    fn find_end(&mut self) -> Option<usize> {
        let rest = self.chunk.get(self.at..).unwrap_or_default();
        let mut from = 0;
        if let ([b'\n', ..], true) = (rest, self.after_cr) {
            from = 1;
            if self.held.is_empty() {
                // The rest of the break that ended the frame before goes with it, whatever becomes of the next one.
                self.after_cr = false;
                return Some(from);
            }
        }
        if !rest.is_empty() {
            self.after_cr = false;
        }
        while let Some(found) = rest.get(from..).and_then(|rest| memchr::memchr2(b'\n', b'\r', rest)) {
            let break_at = from + found;
            let cr = rest.get(break_at) == Some(&b'\r');
            let lf_follows = cr && rest.get(break_at + 1) == Some(&b'\n');
            let blank = self.blank && found == 0;
            from = break_at + 1 + usize::from(lf_follows);
            self.blank = true;
            if cr && !lf_follows && from == rest.len() {
                self.after_cr = true;
            }
            if blank {
                return Some(from);
            }
        }
        if from < rest.len() {
            self.blank = false;
        }
        None
    }

    fn next(&mut self) -> Result<Option<Cut>, EventTooLong> {
        let Some(length) = self.find_end() else {
            let rest = self.chunk.get(self.at..).unwrap_or_default();
            if self.held.len() + rest.len() > MAX_EVENT_BYTES {
                return Err(EventTooLong);
            }
            self.held.extend_from_slice(rest);
            self.at = self.chunk.len();
            return Ok(None);
        };
        let (from, to) = (self.at, self.at + length);
        self.at = to;
        if self.held.is_empty() {
            return Ok(Some(Cut { bytes: self.chunk.slice(from..to), place: Some((from, to)) }));
        }
        self.held.extend_from_slice(self.chunk.get(from..to).unwrap_or_default());
        Ok(Some(Cut { bytes: self.held.split().freeze(), place: None }))
    }

    /// Takes what is left for a frame that lacks its blank line.
    fn end(&mut self) -> Option<Cut> {
        let mut left = self.held.split();
        if left.trim_ascii().is_empty() {
            return None;
        }
        left.extend_from_slice(b"\n\n");
        Some(Cut { bytes: left.freeze(), place: None })
    }
}

/// What a frame is.
enum Read<'a> {
    /// An event: its type and its data.
    Event(Cow<'a, str>, Cow<'a, str>),
    /// Comments and blank lines: clients pass over them.
    Silent,
    /// No UTF-8, or fields without data: clients stumble over them.
    Malformed,
}

/// Reads a frame.
fn read(frame: &[u8]) -> Read<'_> {
    let Ok(frame) = std::str::from_utf8(frame) else { return Read::Malformed };
    // Nearly all of them are one line of data.
    if let Some(line) = frame.strip_prefix("data: ").and_then(|line| line.strip_suffix("\n\n"))
        && memchr::memchr2(b'\n', b'\r', line.as_bytes()).is_none()
    {
        return Read::Event(Cow::Borrowed(""), Cow::Borrowed(line));
    }
    let mut event = Cow::Borrowed("");
    let mut data: Option<Cow<'_, str>> = None;
    let mut fields = false;
    for line in frame.strip_prefix(BYTE_ORDER_MARK).unwrap_or(frame).split(['\n', '\r']) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        fields |= !name.is_empty();
        match name {
            "event" => event = Cow::Borrowed(value),
            "data" => {
                data = Some(match data {
                    None => Cow::Borrowed(value),
                    Some(before) => Cow::Owned(format!("{before}\n{value}")),
                });
            }
            _ => {}
        }
    }
    match data {
        Some(data) if !data.trim().is_empty() => Read::Event(event, data),
        None if !fields => Read::Silent,
        _ => Read::Malformed,
    }
}

/// Frames of a stream, gathered into as few slices as may be.
pub(crate) struct Frames<L> {
    cutter: Cutter,
    look: L,
    run: Option<Run>,
    ready: VecDeque<NativeFrame>,
}

/// Frames that follow each other within one chunk.
struct Run {
    from: usize,
    to: usize,
    content: bool,
}

impl<L: Look> Frames<L> {
    pub(crate) fn new(look: L) -> Self {
        Self { cutter: Cutter::default(), look, run: None, ready: VecDeque::new() }
    }

    fn flush(&mut self) {
        if let Some(run) = self.run.take() {
            let bytes = self.cutter.chunk.slice(run.from..run.to);
            self.ready.push_back(NativeFrame::new(bytes, run.content, Vec::new()));
        }
    }

    fn take(&mut self, cut: Cut, answered: &mut Answered) -> Result<(), Fault> {
        let glance = match read(&cut.bytes) {
            Read::Event(event, data) => self.look.look(&event, data.trim(), answered)?,
            Read::Silent => Glance::Other,
            Read::Malformed => {
                tracing::warn!(bytes = cut.bytes.len(), "skipped a malformed event of a stream");
                Glance::Withhold
            }
        };
        let content = glance == Glance::Content;
        if glance == Glance::Withhold {
            self.flush();
        } else {
            match (cut.place, &mut self.run) {
                (Some((from, to)), Some(run)) if run.to == from => {
                    run.to = to;
                    run.content |= content;
                }
                (Some((from, to)), _) => {
                    self.flush();
                    self.run = Some(Run { from, to, content });
                }
                (None, _) => {
                    self.flush();
                    self.ready.push_back(NativeFrame::new(cut.bytes, content, Vec::new()));
                }
            }
        }
        if !answered.ready.is_empty() {
            self.flush();
            let events = answered.ready.drain(..);
            match self.ready.back_mut() {
                Some(frame) => frame.events.extend(events),
                None => self.ready.push_back(NativeFrame::new(Bytes::new(), false, events.collect())),
            }
        }
        Ok(())
    }

    pub(crate) fn push(&mut self, bytes: Bytes, answered: &mut Answered) -> Result<(), Trouble> {
        self.cutter.push(bytes);
        while !answered.done {
            match self.cutter.next() {
                Ok(Some(cut)) => {
                    if let Err(fault) = self.take(cut, answered) {
                        self.flush();
                        return Err(Trouble::Fault(fault));
                    }
                }
                Ok(None) => break,
                Err(error) => return Err(Trouble::TooLong(error)),
            }
        }
        self.flush();
        self.cutter.push(Bytes::new());
        Ok(())
    }

    pub(crate) fn end(&mut self, answered: &mut Answered) -> Result<(), Trouble> {
        match self.cutter.end() {
            Some(cut) if !answered.done => self.take(cut, answered).map_err(Trouble::Fault),
            _ => Ok(()),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<NativeFrame> {
        self.ready.pop_front()
    }

    /// The last frame of an answer; `ended` says that the stream had its own end.
    pub(crate) fn last(&mut self, finish: FinishReason, ended: bool) -> NativeFrame {
        let bytes = if ended { Bytes::new() } else { Bytes::from_static(self.look.sentinel()) };
        NativeFrame::new(bytes, false, vec![failover_provider::ReplyEvent::Finish(finish)])
    }
}

/// Why a stream cannot be read on.
pub(crate) enum Trouble {
    /// The provider says that it failed.
    Fault(Fault),
    /// An event without end.
    TooLong(EventTooLong),
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover_provider::{ReplyEvent, Usage};
    use proptest::prelude::*;

    /// Content is `c…`, usage `u`, the end `[DONE]`, an error `e`, and `x` is held back.
    struct Letters;

    impl Look for Letters {
        fn look(&mut self, event: &str, data: &str, answered: &mut Answered) -> Result<Glance, Fault> {
            match data.chars().next() {
                Some('c') => return Ok(Glance::Content),
                Some('u') => answered.ready.push_back(ReplyEvent::Usage(Usage::new(1, 1))),
                Some('[') => answered.done = true,
                Some('e') => return Err(Fault::Error(data.to_owned())),
                Some('x') => return Ok(Glance::Withhold),
                _ => {}
            }
            assert_ne!(event, "never");
            Ok(Glance::Other)
        }

        fn sentinel(&self) -> &'static [u8] {
            b"data: [DONE]\n\n"
        }
    }

    fn pass(pieces: &[&[u8]]) -> (Vec<NativeFrame>, bool) {
        let (mut frames, mut answered) = (Frames::new(Letters), Answered::default());
        let mut out = Vec::new();
        for piece in pieces {
            let trouble = frames.push(Bytes::copy_from_slice(piece), &mut answered).is_err();
            out.extend(std::iter::from_fn(|| frames.pop()));
            if trouble {
                return (out, true);
            }
        }
        let trouble = frames.end(&mut answered).is_err();
        out.extend(std::iter::from_fn(|| frames.pop()));
        (out, trouble)
    }

    fn bytes_of(frames: &[NativeFrame]) -> Vec<u8> {
        frames.iter().flat_map(|frame| frame.bytes.to_vec()).collect()
    }

    #[test]
    fn frames_that_come_together_go_on_together() {
        let chunk = b": hi\n\ndata: c1\n\nevent: m\r\ndata: c2\r\n\r\ndata: u\n\ndata: x\n\ndata: c3\n\ndata: [DONE]\n\n";
        let (frames, trouble) = pass(&[chunk]);
        assert!(!trouble);
        let texts: Vec<&[u8]> = frames.iter().map(|frame| &frame.bytes[..]).collect();
        assert_eq!(
            texts,
            [
                &b": hi\n\ndata: c1\n\nevent: m\r\ndata: c2\r\n\r\ndata: u\n\n"[..],
                &b"data: c3\n\ndata: [DONE]\n\n"[..]
            ]
        );
        assert!(frames[0].content && frames[0].events.len() == 1);
    }

    #[test]
    fn what_came_before_an_error_goes_on_and_the_error_does_not() {
        let (frames, trouble) = pass(&[b"data: c1\n\ndata: e\n\ndata: c2\n\n"]);
        assert!(trouble);
        assert_eq!(bytes_of(&frames), b"data: c1\n\n");
    }

    #[test]
    fn a_last_frame_without_its_blank_line_is_mended() {
        let (frames, _) = pass(&[b"data: c1\n\ndata: [DONE]"]);
        assert_eq!(bytes_of(&frames), b"data: c1\n\ndata: [DONE]\n\n");
    }

    // spec: P-3
    #[test]
    fn what_clients_stumble_over_does_not_go_on() {
        let chunk = b"data: c1\n\ndata: c\xff2\n\nevent: ping\n\ndata:\n\nid: 7\n\n: hi\n\nevent: m\ndata: c3\n\ndata: [DONE]\n\n";
        let (frames, trouble) = pass(&[chunk]);
        assert!(!trouble);
        let text = String::from_utf8(bytes_of(&frames)).unwrap();
        assert_eq!(text, "data: c1\n\n: hi\n\nevent: m\ndata: c3\n\ndata: [DONE]\n\n");
    }

    #[test]
    fn an_endless_frame_is_refused() {
        let (mut frames, mut answered) = (Frames::new(Letters), Answered::default());
        let megabyte = Bytes::from(vec![b'c'; 1 << 20]);
        assert!((0..17).any(|_| frames.push(megabyte.clone(), &mut answered).is_err()));
    }

    proptest! {
        /// However the bytes are split, the same ones come out, with the same content among them.
        #[test]
        fn splitting_changes_nothing(
            events in proptest::collection::vec(prop_oneof![
                Just("data: c\n\n"), Just(": c\n\n"), Just("data: c\r\n\r\n"), Just("event: a\ndata: c\ndata: d\n\n"),
                Just("data: u\n\n"), Just("data: x\n\n"), Just("data: c\r\r"), Just("\n"), Just("data: \u{fffd}é\n\n"),
            ], 0..12),
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let bytes = events.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut from = 0;
            let pieces: Vec<&[u8]> = cuts.iter().map(|cut| { let piece = &bytes[from..*cut]; from = *cut; piece }).collect();
            let (split, _) = pass(&pieces);
            let (whole, _) = pass(&[&bytes]);
            let trim = |frames: &[NativeFrame]| String::from_utf8(bytes_of(frames)).unwrap().trim().to_owned();
            prop_assert_eq!(trim(&split), trim(&whole));
            let contents = |frames: &[NativeFrame]| frames.iter().any(|frame| frame.content);
            prop_assert_eq!(contents(&split), contents(&whole));
            let usages = |frames: &[NativeFrame]| frames.iter().map(|frame| frame.events.len()).sum::<usize>();
            prop_assert_eq!(usages(&split), usages(&whole));
        }
    }
}

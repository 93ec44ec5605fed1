//! From a response to a reply, for any dialect: bytes are pulled, cut and decoded, and the end is an honest one.

use crate::frames::{Frames, Look, Trouble};
use crate::lines::LineParser;
use crate::sse::lossy;
use crate::{EventTooLong, Exchange, SseEvent, SseParser};
use bytes::Bytes;
use failover_classify::Surface;
use failover_provider::{
    AttemptFailure, BodyCapture, ChatReply, Dialect, FailureCause, FinishReason, NativeFrame, Progress,
    Reply, ReplyEvent, ReplyHead, ReplyStream,
};
use failover_types::{ProviderId, Timestamp};
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use http::header::CONTENT_ENCODING;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// How long usage and the sentinel are waited for once the finish reason is there.
const GRACE: Duration = Duration::from_millis(500);
/// White space before an answer, most of it: servers send some to keep a connection alive.
const MAX_PADDING_BYTES: usize = 256 * 1024;

/// How a dialect cuts its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "how bytes are cut hangs on it")]
pub enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON value a line. Each reaches the decoder as the data of an event without a type.
    Lines,
}

/// An answer that says itself that it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each becomes another failure")]
pub enum Fault {
    /// An error, as it came; or a body that is no answer.
    Error(String),
    /// A finish reason that means "failed".
    Finish(String),
}

/// What an answer has said so far.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Answered {
    /// What is known besides the content.
    pub head: ReplyHead,
    /// Events for the caller, oldest first. `Finish` is not among them.
    pub ready: VecDeque<ReplyEvent>,
    /// Why the model stopped: the finish marker.
    pub finish: Option<FinishReason>,
    /// Nothing follows.
    pub done: bool,
}

/// Reads one vendor's answers. No I/O.
pub trait Decode: Send + 'static {
    /// How streams are cut.
    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Takes one event of a stream. A malformed one is skipped with a warning.
    ///
    /// # Errors
    ///
    /// [`Fault`] where the provider says that it failed.
    fn event(&mut self, event: &SseEvent, answered: &mut Answered) -> Result<(), Fault>;

    /// Takes an answer that came whole.
    ///
    /// # Errors
    ///
    /// [`Fault`] where it is none.
    fn whole(&mut self, body: &str, answered: &mut Answered) -> Result<(), Fault>;
}

/// What a body is, by its first bytes: servers label event streams as JSON, and pages as anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    Undecided,
    Json,
    Events,
    Other,
}

fn look(bytes: &[u8]) -> Looks {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let start = bytes.trim_ascii_start();
    let fields: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    match start {
        [] if bytes.len() < MAX_PADDING_BYTES => Looks::Undecided,
        [b'{' | b'[', ..] => Looks::Json,
        _ if fields.iter().any(|field| start.starts_with(field)) => Looks::Events,
        _ if fields.iter().any(|field| field.starts_with(start)) => Looks::Undecided,
        _ => Looks::Other,
    }
}

/// Reads the response whose head has come: resolves with the first content, a complete answer, or a failure.
///
/// # Errors
///
/// Everything that is no answer: a status that is none of success, an error before content, a body without content.
///
/// # Cancel safety
///
/// Cancel safe in that the connection closes; what was read is lost.
pub async fn receive(
    exchange: Exchange,
    provider: &ProviderId,
    status: u16,
    mut decoder: impl Decode,
    head: ReplyHead,
    streamed: bool,
) -> Result<Reply, AttemptFailure> {
    let answered = Answered { head, ..Answered::default() };
    let lines = decoder.framing() == Framing::Lines;
    match begin(exchange, status, lines && streamed).await? {
        Begun::Json(exchange, body) => {
            let reply = whole(&body, &mut decoder, answered);
            reply.map(Reply::Complete).map_err(|fault| no_answer(&exchange, &fault, &body))
        }
        Begun::Events(exchange, read) => {
            let streaming = Streaming::new(exchange, Events::new(decoder), answered, read);
            events_reply(streaming, provider, streamed).await
        }
    }
}

/// A body that may be an answer.
enum Begun {
    /// A whole document.
    Json(Exchange, Bytes),
    /// A stream, of which so much was read.
    Events(Exchange, Bytes),
}

/// Reads as much of a body as tells what it is. `lines` says that JSON is a stream of lines.
async fn begin(mut exchange: Exchange, status: u16, lines: bool) -> Result<Begun, AttemptFailure> {
    let packed = exchange.header(CONTENT_ENCODING).map(str::trim);
    if let Some(encoding) = packed.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity")) {
        // Nobody could read it: what is known of it is its head.
        let text = format!("the answer is compressed ({encoding}), though the request asked for a plain one");
        let failure = exchange.failure(Surface::Http, b"").with_causes(vec![FailureCause::new(text)]);
        return Err(if status < 300 { failure.with_code("bad_response_body") } else { failure });
    }
    if !(200..300).contains(&status) {
        return Err(exchange.refused(b"").await);
    }
    let mut read = Bytes::new();
    while look(&read) == Looks::Undecided {
        match exchange.first_chunk().await? {
            Some(bytes) if read.is_empty() => read = bytes,
            Some(bytes) => read = [read, bytes].concat().into(),
            None => break,
        }
    }
    match look(&read) {
        Looks::Json if !lines => {
            let body = exchange.read_whole(read).await?;
            Ok(Begun::Json(exchange, body))
        }
        Looks::Events | Looks::Json => Ok(Begun::Events(exchange, read)),
        Looks::Undecided | Looks::Other => Err(exchange.refused(&read).await),
    }
}

/// The failure of a whole body that is no answer.
fn no_answer(exchange: &Exchange, fault: &Fault, body: &[u8]) -> AttemptFailure {
    match fault {
        // A well-formed answer that says nothing; decoders give the text of everything else.
        Fault::Error(text) if text.is_empty() && !body.trim_ascii().is_empty() => {
            exchange.failure(Surface::Http, body).with_code("empty_response")
        }
        Fault::Error(_) => exchange.failure(Surface::Http, body),
        Fault::Finish(word) => failed_finish(exchange, Surface::Http, word),
    }
}

fn whole(body: &[u8], decoder: &mut impl Decode, mut answered: Answered) -> Result<ChatReply, Fault> {
    let text = lossy(body);
    decoder.whole(text.trim_start_matches('\u{feff}').trim(), &mut answered)?;
    // A whole document is its own finish marker.
    let finish = answered.finish.take().unwrap_or(FinishReason::Stop);
    if !answered.ready.iter().any(ReplyEvent::is_content) {
        let filtered = finish == FinishReason::ContentFilter;
        let word = finish.as_str().to_owned();
        return Err(if filtered { Fault::Finish(word) } else { Fault::Error(String::new()) });
    }
    Ok(ChatReply::of_events(&answered.ready, finish).with_head(answered.head))
}

/// As [`receive`], for a request that was passed through in its caller's own words: the answer keeps the provider's
/// bytes. A stream is looked at by `look` and passed on; `decoder` reads whole answers, and what came of a stream
/// that fails.
///
/// # Errors
///
/// As [`receive`].
///
/// # Cancel safety
///
/// As [`receive`].
pub async fn receive_native(
    exchange: Exchange,
    provider: &ProviderId,
    status: u16,
    mut decoder: impl Decode,
    look: impl Look,
    passing: Passing,
) -> Result<Reply, AttemptFailure> {
    let Passing { dialect, head, streamed } = passing;
    let answered = Answered { head, ..Answered::default() };
    let (exchange, read) = match begin(exchange, status, false).await? {
        Begun::Json(exchange, body) => {
            let reply = whole(&body, &mut decoder, answered);
            let reply = reply.map_err(|fault| no_answer(&exchange, &fault, &body))?;
            return Ok(Reply::Complete(reply.with_native(body)));
        }
        Begun::Events(exchange, read) => (exchange, read),
    };
    if !streamed {
        let streaming = Streaming::new(exchange, Events::new(decoder), answered, read);
        return events_reply(streaming, provider, false).await;
    }
    let mut streaming = Streaming::new(exchange, Frames::new(look), answered, read);
    let begun = streaming.begin().await?;
    let head = streaming.answered.head.clone();
    let frames = stream::iter(begun.into_iter().map(Ok)).chain(rest(streaming));
    let read = Box::new(move |bytes: &Bytes| read_frames(&mut decoder, bytes));
    Ok(Reply::Stream(ReplyStream::of_frames(provider.clone(), dialect, frames, read).with_head(head)))
}

/// What [`receive_native`] is told of the request.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "arguments by name")]
pub struct Passing {
    /// What both sides speak.
    pub dialect: Dialect,
    /// What is known of the answer already.
    pub head: ReplyHead,
    /// Whether the answer was wanted piece by piece.
    pub streamed: bool,
}

/// The content of frames that were passed on unread.
fn read_frames(decoder: &mut impl Decode, bytes: &[u8]) -> Vec<ReplyEvent> {
    let (mut parser, mut answered) = (SseParser::new(), Answered::default());
    let pushed = parser.push(bytes);
    while let (Ok(()), Some(event)) = (&pushed, parser.next_event()) {
        if decoder.event(&event, &mut answered).is_err() {
            break;
        }
    }
    answered.ready.into_iter().filter(ReplyEvent::is_content).collect()
}

fn rest<R: Read>(mut streaming: Streaming<R>) -> impl Stream<Item = Result<R::Item, AttemptFailure>> + Send {
    stream::poll_fn(move |cx| streaming.poll_next(cx))
}

async fn events_reply<D: Decode>(
    mut streaming: Streaming<Events<D>>,
    provider: &ProviderId,
    wanted: bool,
) -> Result<Reply, AttemptFailure> {
    let begun = streaming.begin().await?;
    let head = streaming.answered.head.clone();
    let events = stream::iter(begun.into_iter().map(Ok)).chain(rest(streaming));
    let reply = ReplyStream::new(provider.clone(), events).with_head(head);
    if wanted {
        return Ok(Reply::Stream(reply));
    }
    // The server streams though nobody asked: nothing of it reaches the caller before it is whole.
    let whole = reply.into_reply().await;
    whole.map(Reply::Complete).map_err(|failure| failure.with_progress(Progress::Answered))
}

/// Makes items for the caller of a stream's bytes.
trait Read: Send + 'static {
    type Item: Send + 'static;

    /// Takes the next bytes, and reads what is complete.
    fn push(&mut self, bytes: Bytes, answered: &mut Answered) -> Result<(), Trouble>;

    /// Says that the stream has ended.
    fn end(&mut self, answered: &mut Answered) -> Result<(), Trouble>;

    fn pop(&mut self, answered: &mut Answered) -> Option<Self::Item>;

    /// The item that says that the answer is complete; `ended` says that the stream had its own end.
    fn last(&mut self, finish: FinishReason, ended: bool) -> Self::Item;

    fn is_content(item: &Self::Item) -> bool;
}

/// Cuts bytes the way of a dialect.
pub(crate) enum Parser {
    Events(SseParser),
    Lines(LineParser),
}

impl Parser {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Events => Self::Events(SseParser::new()),
            Framing::Lines => Self::Lines(LineParser::default()),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        match self {
            Self::Events(parser) => parser.push(bytes),
            Self::Lines(parser) => parser.push(bytes),
        }
    }

    pub(crate) fn end(&mut self) {
        match self {
            Self::Events(parser) => parser.end(),
            Self::Lines(parser) => parser.end(),
        }
    }

    pub(crate) fn next_event(&mut self) -> Option<SseEvent> {
        match self {
            Self::Events(parser) => parser.next_event(),
            Self::Lines(parser) => parser.next_line(),
        }
    }
}

/// Reads neutral events.
struct Events<D> {
    parser: Parser,
    decoder: D,
}

impl<D: Decode> Events<D> {
    fn new(decoder: D) -> Self {
        Self { parser: Parser::new(decoder.framing()), decoder }
    }

    fn decode(&mut self, answered: &mut Answered) -> Result<(), Trouble> {
        while !answered.done {
            let Some(event) = self.parser.next_event() else { break };
            self.decoder.event(&event, answered).map_err(Trouble::Fault)?;
        }
        Ok(())
    }
}

impl<D: Decode> Read for Events<D> {
    type Item = ReplyEvent;

    fn push(&mut self, bytes: Bytes, answered: &mut Answered) -> Result<(), Trouble> {
        let pushed = self.parser.push(&bytes);
        let decoded = self.decode(answered);
        pushed.map_err(Trouble::TooLong).and(decoded)
    }

    fn end(&mut self, answered: &mut Answered) -> Result<(), Trouble> {
        self.parser.end();
        self.decode(answered)
    }

    fn pop(&mut self, answered: &mut Answered) -> Option<ReplyEvent> {
        answered.ready.pop_front()
    }

    fn last(&mut self, finish: FinishReason, _ended: bool) -> ReplyEvent {
        ReplyEvent::Finish(finish)
    }

    fn is_content(item: &ReplyEvent) -> bool {
        item.is_content()
    }
}

impl<L: Look> Read for Frames<L> {
    type Item = NativeFrame;

    fn push(&mut self, bytes: Bytes, answered: &mut Answered) -> Result<(), Trouble> {
        self.push(bytes, answered)
    }

    fn end(&mut self, answered: &mut Answered) -> Result<(), Trouble> {
        self.end(answered)
    }

    fn pop(&mut self, _answered: &mut Answered) -> Option<NativeFrame> {
        self.pop()
    }

    fn last(&mut self, finish: FinishReason, ended: bool) -> NativeFrame {
        self.last(finish, ended)
    }

    fn is_content(item: &NativeFrame) -> bool {
        item.content
    }
}

/// What is expected next, and so which limit runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    FirstContent,
    Content,
    /// The finish reason came; usage and the sentinel are welcome until then.
    Trailer(Timestamp),
    Over,
}

struct Streaming<R> {
    exchange: Exchange,
    reader: R,
    answered: Answered,
    stage: Stage,
    /// The bytes ended before the decoder said that nothing follows.
    cut: bool,
    /// Content came.
    content: bool,
    /// Since when more is waited for.
    waiting: Option<Timestamp>,
    /// Comes after the items that are ready.
    failure: Option<AttemptFailure>,
    /// What came before the first content: the body of a failure, should it be one.
    raw: BodyCapture,
}

impl<R: Read> Streaming<R> {
    /// Goes on with an exchange of whose body `read` was read already.
    fn new(mut exchange: Exchange, reader: R, answered: Answered, read: Bytes) -> Self {
        exchange.copy_headers();
        let (stage, raw) = (Stage::FirstContent, BodyCapture::new());
        let (cut, content, waiting, failure) = (false, false, None, None);
        let mut this = Self { exchange, reader, answered, stage, cut, content, waiting, failure, raw };
        this.take(read);
        this
    }

    /// The items up to and with the first content.
    async fn begin(&mut self) -> Result<Vec<R::Item>, AttemptFailure> {
        let mut items = Vec::new();
        while !self.content {
            match poll_fn(|cx| self.poll_next(cx)).await {
                Some(item) => items.push(item?),
                None => return Err(self.empty(None)),
            }
        }
        Ok(items)
    }

    /// The next item; `None` after the last one.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<R::Item, AttemptFailure>>> {
        loop {
            if let Some(item) = self.reader.pop(&mut self.answered) {
                if R::is_content(&item) {
                    self.waiting = None;
                    self.content = true;
                    if self.stage == Stage::FirstContent {
                        self.stage = Stage::Content;
                        self.raw = BodyCapture::new();
                    }
                }
                return Poll::Ready(Some(Ok(item)));
            }
            if let Some(failure) = self.failure.take() {
                self.stage = Stage::Over;
                return Poll::Ready(Some(Err(failure)));
            }
            if self.answered.done {
                return Poll::Ready(self.finish());
            }
            if self.answered.finish.is_some() && matches!(self.stage, Stage::FirstContent | Stage::Content) {
                self.stage = Stage::Trailer(self.exchange.now().after(GRACE));
            }
            // Only waiting counts: a slow reader does not make the provider late, and heartbeats do not make it early.
            let since = *self.waiting.get_or_insert_with(|| self.exchange.now());
            let chunk = match self.stage {
                Stage::FirstContent => self.exchange.poll_first_chunk(cx),
                Stage::Content => self.exchange.poll_next_chunk(since, cx),
                Stage::Trailer(until) => self.exchange.poll_welcome_chunk(until, cx).map(Ok),
                Stage::Over => return Poll::Ready(None),
            };
            match ready!(chunk) {
                Ok(Some(bytes)) => self.take(bytes),
                Ok(None) => {
                    let ended = self.reader.end(&mut self.answered);
                    self.fail(ended);
                    self.cut = !std::mem::replace(&mut self.answered.done, true);
                }
                Err(failure) => self.failure = Some(failure),
            }
        }
    }

    fn take(&mut self, bytes: Bytes) {
        if self.stage == Stage::FirstContent {
            self.raw.push(&bytes);
        }
        let read = self.reader.push(bytes, &mut self.answered);
        self.fail(read);
    }

    fn fail(&mut self, outcome: Result<(), Trouble>) {
        let Err(trouble) = outcome else { return };
        let surface = Surface::StreamEvent;
        self.failure = Some(match trouble {
            Trouble::Fault(Fault::Error(data)) => self.exchange.failure(surface, data.as_bytes()),
            Trouble::Fault(Fault::Finish(word)) => failed_finish(&self.exchange, surface, &word),
            Trouble::TooLong(error) => {
                self.exchange.failure(surface, b"").with_causes(vec![FailureCause::new(error.to_string())])
            }
        });
    }

    /// The end of the stream: a finish marker, or the lack of it.
    fn finish(&mut self) -> Option<Result<R::Item, AttemptFailure>> {
        if self.stage == Stage::Over {
            return None;
        }
        self.stage = Stage::Over;
        if !self.content {
            let finish = self.answered.finish.take();
            return Some(Err(self.empty(finish.as_ref())));
        }
        Some(match self.answered.finish.take() {
            Some(finish) => {
                self.exchange.settle();
                Ok(self.reader.last(finish, !self.cut))
            }
            None => Err(self
                .exchange
                .failure(Surface::Transport, b"")
                .with_code("incomplete_stream")
                .with_causes(vec![FailureCause::new("stream cut: it ended without its finish marker")])),
        })
    }

    /// A stream that was over before any content.
    fn empty(&mut self, finish: Option<&FinishReason>) -> AttemptFailure {
        if finish == Some(&FinishReason::ContentFilter) {
            return failed_finish(&self.exchange, Surface::StreamEvent, FinishReason::ContentFilter.as_str());
        }
        let raw = std::mem::take(&mut self.raw).into_bytes();
        let failure = self.exchange.failure(Surface::Http, &raw);
        // A well-formed answer that says nothing; anything else is for the classifier to read.
        if finish.is_some() || !self.cut { failure.with_code("empty_response") } else { failure }
    }
}

/// A finish reason that means "failed", in words that the classifier knows.
fn failed_finish(exchange: &Exchange, surface: Surface, word: &str) -> AttemptFailure {
    exchange.failure(surface, format!("stop reason: {word}").as_bytes()).with_code(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: P-3
    #[test_case(b"", Looks::Undecided)]
    #[test_case(b"da", Looks::Undecided; "half a field name")]
    #[test_case(b"event: x", Looks::Events)]
    #[test_case(b"\n {\"a\"", Looks::Json; "padded json")]
    #[test_case(b"<!DOCTYPE html>", Looks::Other)]
    fn bodies_are_known_by_their_first_bytes(bytes: &[u8], expected: Looks) {
        assert_eq!(look(bytes), expected);
    }
}

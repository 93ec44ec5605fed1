//! From a response to a reply, for any dialect: bytes are pulled, cut and decoded, and the end is an honest one.

use crate::lines::LineParser;
use crate::sse::EventTooLong;
use crate::{Exchange, SseEvent, SseParser};
use failover_classify::Surface;
use failover_provider::{
    AttemptFailure, BodyCapture, ChatReply, FailureCause, FinishReason, Progress, Reply, ReplyEvent,
    ReplyHead, ReplyStream,
};
use failover_types::{ProviderId, Timestamp};
use futures_util::{FutureExt, StreamExt, stream};
use std::collections::VecDeque;
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
    mut exchange: Exchange,
    provider: &ProviderId,
    status: u16,
    decoder: impl Decode,
    head: ReplyHead,
    streamed: bool,
) -> Result<Reply, AttemptFailure> {
    if !(200..300).contains(&status) {
        return Err(exchange.refused(b"").await);
    }
    if exchange.header("content-encoding").is_some_and(|encoding| encoding != "identity") {
        // None was asked for.
        return Err(exchange.refused(b"").await.with_code("unexpected_content_encoding"));
    }
    let mut read = Vec::new();
    while look(&read) == Looks::Undecided {
        match exchange.first_chunk().await? {
            Some(bytes) => read.extend_from_slice(&bytes),
            None => break,
        }
    }
    let lines = decoder.framing() == Framing::Lines;
    let answered = Answered { head, ..Answered::default() };
    match look(&read) {
        Looks::Json if !(lines && streamed) => {
            let body = exchange.read_whole(read).await?;
            whole(&body, provider, decoder, answered).map(Reply::Complete).map_err(|fault| match fault {
                Fault::Error(_) => exchange.failure(Surface::Http, &body),
                Fault::Finish(word) => failed_finish(&exchange, Surface::Http, &word),
            })
        }
        Looks::Events | Looks::Json => {
            stream_reply(Streaming::new(exchange, decoder, answered, &read), provider, streamed).await
        }
        Looks::Undecided | Looks::Other => Err(exchange.refused(&read).await),
    }
}

fn whole(
    body: &[u8],
    provider: &ProviderId,
    mut decoder: impl Decode,
    mut answered: Answered,
) -> Result<ChatReply, Fault> {
    let text = String::from_utf8_lossy(body);
    decoder.whole(text.trim_start_matches('\u{feff}').trim(), &mut answered)?;
    // A whole document is its own finish marker.
    let finish = answered.finish.take().unwrap_or(FinishReason::Stop);
    if !answered.ready.iter().any(ReplyEvent::is_content) {
        let filtered = finish == FinishReason::ContentFilter;
        let word = finish.as_str().to_owned();
        return Err(if filtered { Fault::Finish(word) } else { Fault::Error(String::new()) });
    }
    answered.ready.push_back(ReplyEvent::Finish(finish));
    let events = stream::iter(answered.ready.into_iter().map(Ok));
    let reply = ReplyStream::new(provider.clone(), events).with_head(answered.head).into_reply();
    // Nothing in it waits.
    reply.now_or_never().and_then(Result::ok).ok_or(Fault::Error(String::new()))
}

async fn stream_reply<D: Decode>(
    mut streaming: Streaming<D>,
    provider: &ProviderId,
    wanted: bool,
) -> Result<Reply, AttemptFailure> {
    let begun = streaming.begin().await?;
    let head = streaming.answered.head.clone();
    let rest = stream::unfold(streaming, |mut streaming| async move {
        let event = streaming.next().await?;
        Some((event, streaming))
    });
    let events = stream::iter(begun.into_iter().map(Ok)).chain(rest);
    let reply = ReplyStream::new(provider.clone(), events).with_head(head);
    if wanted {
        return Ok(Reply::Stream(reply));
    }
    // The server streams though nobody asked: nothing of it reaches the caller before it is whole.
    let whole = reply.into_reply().await;
    whole.map(Reply::Complete).map_err(|failure| failure.with_progress(Progress::Answered))
}

/// Cuts bytes the way of a dialect.
enum Parser {
    Events(SseParser),
    Lines(LineParser),
}

impl Parser {
    fn push(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        match self {
            Self::Events(parser) => parser.push(bytes),
            Self::Lines(parser) => parser.push(bytes),
        }
    }

    fn next_event(&mut self) -> Option<SseEvent> {
        match self {
            Self::Events(parser) => parser.next_event(),
            Self::Lines(parser) => parser.next_line(),
        }
    }

    fn end(&mut self) {
        match self {
            Self::Events(parser) => parser.end(),
            Self::Lines(parser) => parser.end(),
        }
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

struct Streaming<D> {
    exchange: Exchange,
    parser: Parser,
    decoder: D,
    answered: Answered,
    stage: Stage,
    /// The bytes ended before the decoder said that nothing follows.
    cut: bool,
    /// Comes after the events that are ready.
    failure: Option<AttemptFailure>,
    /// What came before the first content: the body of a failure, should it be one.
    raw: BodyCapture,
}

impl<D: Decode> Streaming<D> {
    /// Goes on with an exchange of whose body `read` was read already.
    fn new(exchange: Exchange, decoder: D, answered: Answered, read: &[u8]) -> Self {
        let parser = match decoder.framing() {
            Framing::Events => Parser::Events(SseParser::new()),
            Framing::Lines => Parser::Lines(LineParser::default()),
        };
        let (stage, raw) = (Stage::FirstContent, BodyCapture::new());
        let mut this = Self { exchange, parser, decoder, answered, stage, cut: false, failure: None, raw };
        this.take(read);
        this
    }

    /// The events up to and with the first content.
    async fn begin(&mut self) -> Result<Vec<ReplyEvent>, AttemptFailure> {
        let mut events = Vec::new();
        loop {
            match self.next().await {
                Some(Ok(ReplyEvent::Finish(finish))) => return Err(self.empty(Some(&finish))),
                Some(Ok(event)) => {
                    let content = event.is_content();
                    events.push(event);
                    if content {
                        self.raw = BodyCapture::new();
                        if self.stage == Stage::FirstContent {
                            self.stage = Stage::Content;
                        }
                        return Ok(events);
                    }
                }
                Some(Err(failure)) => return Err(failure),
                None => return Err(self.empty(None)),
            }
        }
    }

    /// The next event; `None` after the last one.
    async fn next(&mut self) -> Option<Result<ReplyEvent, AttemptFailure>> {
        // Only waiting counts: a slow reader does not make the provider late, and heartbeats do not make it early.
        let since = self.exchange.now();
        loop {
            if let Some(event) = self.answered.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                self.stage = Stage::Over;
                return Some(Err(failure));
            }
            if self.answered.done {
                return self.finish();
            }
            if self.answered.finish.is_some() && matches!(self.stage, Stage::FirstContent | Stage::Content) {
                self.stage = Stage::Trailer(self.exchange.now().after(GRACE));
            }
            let chunk = match self.stage {
                Stage::FirstContent => self.exchange.first_chunk().await,
                Stage::Content => self.exchange.next_chunk(since).await,
                Stage::Trailer(until) => Ok(self.exchange.welcome_chunk(until).await),
                Stage::Over => return None,
            };
            match chunk {
                Ok(Some(bytes)) => self.take(&bytes),
                Ok(None) => {
                    self.parser.end();
                    self.decode();
                    self.cut = !std::mem::replace(&mut self.answered.done, true);
                }
                Err(failure) => self.failure = Some(failure),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.stage == Stage::FirstContent {
            self.raw.push(bytes);
        }
        if let Err(error) = self.parser.push(bytes) {
            let failure = self.exchange.failure(Surface::StreamEvent, b"");
            self.failure = Some(failure.with_causes(vec![FailureCause::new(error.to_string())]));
        }
        self.decode();
    }

    fn decode(&mut self) {
        while self.failure.is_none() && !self.answered.done {
            let Some(event) = self.parser.next_event() else { return };
            if let Err(fault) = self.decoder.event(&event, &mut self.answered) {
                self.failure = Some(match fault {
                    Fault::Error(data) => self.exchange.failure(Surface::StreamEvent, data.as_bytes()),
                    Fault::Finish(word) => failed_finish(&self.exchange, Surface::StreamEvent, &word),
                });
            }
        }
    }

    /// The end of the stream: a finish marker, or the lack of it.
    fn finish(&mut self) -> Option<Result<ReplyEvent, AttemptFailure>> {
        if self.stage == Stage::Over {
            return None;
        }
        let before_content = self.stage == Stage::FirstContent;
        self.stage = Stage::Over;
        Some(match self.answered.finish.take() {
            Some(finish) => Ok(ReplyEvent::Finish(finish)),
            None if before_content => Err(self.empty(None)),
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

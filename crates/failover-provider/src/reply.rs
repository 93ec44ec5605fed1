//! What comes back from an attempt: a complete answer, or a stream that has begun.

use crate::{AttemptFailure, Dialect, NativeFrame, Opaque, Part, ReadFrame, ToolCall};
use bytes::Bytes;
use failover_classify::Surface;
use failover_types::ProviderId;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// How much of a streamed answer is remembered for [`Incomplete`], in bytes of text.
pub const RECEIVED_CAP_BYTES: usize = 4 * 1024 * 1024;

/// Room that is made at once for frames that are passed on: a few of them.
const PASSED_FIRST_BYTES: usize = 1024;

/// The outcome of an attempt that did not fail before its first content.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "an answer is whole or it streams")]
pub enum Reply {
    /// The whole answer.
    Complete(ChatReply),
    /// An answer whose first content has arrived.
    Stream(ReplyStream),
}

/// What is known of an answer besides its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyHead {
    /// The provider's id of the response.
    pub id: Option<String>,
    /// The model that the provider says it used.
    pub model: Option<String>,
    /// What of the request this provider could not be given.
    pub losses: Vec<Loss>,
    /// The caller's own body was sent as it is, but for the model.
    pub passed: bool,
}

/// A part of the request that was left out for this attempt. The request itself still has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// What was left out: the field's or part's name.
    pub what: String,
    /// Why.
    pub reason: LossReason,
}

impl Loss {
    /// A loss from its parts.
    pub fn new(what: impl Into<String>, reason: LossReason) -> Self {
        Self { what: what.into(), reason }
    }
}

/// Why a part of the request was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// It belongs to another provider, model or account, or to whom the caller asked.
    ForeignOrigin,
    /// This dialect has no place for it.
    NoPlace,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChatReply {
    /// What is known besides the content.
    pub head: ReplyHead,
    /// The content, in order.
    pub parts: Vec<Part>,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// Token counts, where the provider gave them.
    pub usage: Option<Usage>,
    /// The answer as the provider wrote it, where the request was passed through in its dialect.
    pub native: Option<Bytes>,
}

impl ChatReply {
    /// An answer from its parts.
    pub fn new(parts: Vec<Part>, finish: FinishReason) -> Self {
        Self { head: ReplyHead::default(), parts, finish, usage: None, native: None }
    }

    /// An answer from the events that came of it, besides its end.
    pub fn of_events<'a>(events: impl IntoIterator<Item = &'a ReplyEvent>, finish: FinishReason) -> Self {
        let mut gathered = Gathered::default();
        events.into_iter().for_each(|event| gathered.take(event));
        Self::new(gathered.incomplete.parts, finish).with_usage(gathered.incomplete.usage)
    }

    /// Adds the answer as the provider wrote it.
    #[must_use]
    pub fn with_native(mut self, body: impl Into<Bytes>) -> Self {
        self.native = Some(body.into());
        self
    }

    /// Adds what is known besides the content.
    #[must_use]
    pub fn with_head(mut self, head: ReplyHead) -> Self {
        self.head = head;
        self
    }

    /// Adds token counts.
    #[must_use]
    pub fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }

    /// The texts of the answer, joined.
    pub fn text(&self) -> String {
        texts(&self.parts)
    }
}

fn texts(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
        .collect()
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done, or met a stop text.
    Stop,
    /// It met the bound on tokens.
    Length,
    /// It calls tools.
    ToolCalls,
    /// A filter cut it off.
    ContentFilter,
    /// Something that only this provider says.
    Other(String),
}

impl FinishReason {
    /// The name in the OpenAI dialect; foreign ones as they came.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other(name) => name,
        }
    }
}

/// Token counts of one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt, those read from a cache included.
    pub input: u64,
    /// Tokens generated, reasoning included.
    pub output: u64,
    /// Of the input: read from a cache.
    pub cached_input: Option<u64>,
    /// Of the output: reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Counts without details.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }
}

/// A piece of a streamed answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyEvent {
    /// More text.
    Text(String),
    /// More visible reasoning.
    Reasoning(String),
    /// A vendor's proof of the reasoning so far, to be sent back to its origin.
    ReasoningProof(Opaque),
    /// More of a tool call.
    ToolCall(ToolCallDelta),
    /// A whole item that only its origin understands.
    Opaque(Opaque),
    /// Token counts so far; the last ones count.
    Usage(Usage),
    /// The answer is complete. Always the last event.
    Finish(FinishReason),
}

impl ReplyEvent {
    /// Whether it is content: what feeds the idle limit and, delivered, commits a run.
    pub fn is_content(&self) -> bool {
        match self {
            Self::Text(text) | Self::Reasoning(text) => !text.is_empty(),
            Self::ReasoningProof(_) | Self::ToolCall(_) | Self::Opaque(_) => true,
            Self::Usage(_) | Self::Finish(_) => false,
        }
    }
}

/// More of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCallDelta {
    /// Which call of the answer, from 0.
    pub index: u32,
    /// Its id, in the call's first piece.
    pub id: Option<String>,
    /// The tool's name, in the call's first piece.
    pub name: Option<String>,
    /// More of the arguments' text.
    pub arguments: String,
}

impl ToolCallDelta {
    /// More arguments of call `index`.
    pub fn new(index: u32, arguments: impl Into<String>) -> Self {
        Self { index, arguments: arguments.into(), ..Self::default() }
    }

    /// Makes it the call's first piece.
    #[must_use]
    pub fn with_start(mut self, id: Option<String>, name: Option<String>) -> Self {
        self.id = id;
        self.name = name;
        self
    }
}

/// What had come when a stream failed: never a success, but the caller may want to see it.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Incomplete {
    /// The content that came, in order.
    pub parts: Vec<Part>,
    /// Token counts, where they had come.
    pub usage: Option<Usage>,
    /// Whether more came than is remembered ([`RECEIVED_CAP_BYTES`]).
    pub truncated: bool,
}

/// Texts compare as texts; the temperature-like numbers that forbid `Eq` on requests do not occur here.
impl Eq for Incomplete {}

impl Incomplete {
    /// The texts that came, joined.
    pub fn text(&self) -> String {
        texts(&self.parts)
    }
}

impl fmt::Debug for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incomplete")
            .field("parts", &self.parts.len())
            .field("usage", &self.usage)
            .field("truncated", &self.truncated)
            .finish()
    }
}

/// Gathers events into parts.
#[derive(Default)]
struct Gathered {
    incomplete: Incomplete,
    /// Index of the tool call within the answer and place of its part.
    calls: Vec<(u32, usize)>,
    bytes: usize,
}

impl Gathered {
    fn take(&mut self, event: &ReplyEvent) {
        let size = match event {
            ReplyEvent::Text(text) | ReplyEvent::Reasoning(text) => text.len(),
            ReplyEvent::ToolCall(delta) => delta.arguments.len() + 64,
            ReplyEvent::ReasoningProof(opaque) | ReplyEvent::Opaque(opaque) => opaque.value.as_str().len(),
            ReplyEvent::Usage(usage) => {
                self.incomplete.usage = Some(*usage);
                return;
            }
            ReplyEvent::Finish(_) => return,
        };
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > RECEIVED_CAP_BYTES {
            self.incomplete.truncated = true;
            return;
        }
        let parts = &mut self.incomplete.parts;
        match event {
            ReplyEvent::Text(more) => match parts.last_mut() {
                Some(Part::Text(text)) => text.push_str(more),
                _ => parts.push(Part::Text(more.clone())),
            },
            ReplyEvent::Reasoning(more) => match parts.last_mut() {
                Some(Part::Reasoning { text, proof: None }) => text.push_str(more),
                _ => parts.push(Part::Reasoning { text: more.clone(), proof: None }),
            },
            ReplyEvent::ReasoningProof(opaque) => match parts.last_mut() {
                Some(Part::Reasoning { proof: proof @ None, .. }) => *proof = Some(opaque.clone()),
                _ => parts.push(Part::Reasoning { text: String::new(), proof: Some(opaque.clone()) }),
            },
            ReplyEvent::Opaque(opaque) => parts.push(Part::Opaque(opaque.clone())),
            ReplyEvent::ToolCall(delta) => self.take_call(delta),
            ReplyEvent::Usage(_) | ReplyEvent::Finish(_) => {}
        }
    }

    fn take_call(&mut self, delta: &ToolCallDelta) {
        let parts = &mut self.incomplete.parts;
        let known = self.calls.iter().find(|(index, _)| *index == delta.index).map(|(_, at)| *at);
        let at = known.unwrap_or_else(|| {
            parts.push(Part::ToolCall(ToolCall::new("", "", "")));
            self.calls.push((delta.index, parts.len() - 1));
            parts.len() - 1
        });
        if let Some(Part::ToolCall(call)) = parts.get_mut(at) {
            if let Some(id) = &delta.id {
                call.id.clone_from(id);
            }
            if let Some(name) = &delta.name {
                call.name.clone_from(name);
            }
            call.arguments.push_str(&delta.arguments);
        }
    }
}

type Events = Pin<Box<dyn Stream<Item = Result<ReplyEvent, AttemptFailure>> + Send>>;
type Frames = Pin<Box<dyn Stream<Item = Result<NativeFrame, AttemptFailure>> + Send>>;

/// Where a stream's events come from.
enum Source {
    Events(Events),
    /// Frames of the provider's own bytes.
    Frames {
        dialect: Dialect,
        frames: Frames,
        read: ReadFrame,
        /// Events of the frames that were read so far, for callers who want events.
        ready: VecDeque<ReplyEvent>,
        /// Frames that were passed on unread, for [`Incomplete`]: read only where the stream fails. A copy: a slice
        /// would keep the buffer that it was read into, which is many times as long.
        passed: Vec<u8>,
        passed_bytes: usize,
    },
}

/// A streamed answer whose first content has arrived. Dropping it closes the connection.
///
/// It holds every adapter to the same rules: events after [`ReplyEvent::Finish`] or after a failure are dropped; a
/// source that ends without `Finish` ends here with a failure; and every failure carries what had come.
///
/// It is read as a stream of events, or frame by frame ([`ReplyStream::next_frame`]) by who passes the provider's
/// own bytes on; one way or the other, not both in turns.
pub struct ReplyStream {
    head: ReplyHead,
    provider: ProviderId,
    source: Option<Source>,
    gathered: Gathered,
    on_failure: Option<OnFailure>,
}

/// Told once, where a stream fails after its first content; not where its reader goes away.
type OnFailure = Box<dyn FnOnce(&AttemptFailure) + Send>;

impl ReplyStream {
    /// Wraps an adapter's events.
    pub fn new(
        provider: ProviderId,
        events: impl Stream<Item = Result<ReplyEvent, AttemptFailure>> + Send + 'static,
    ) -> Self {
        Self::from_source(provider, Source::Events(Box::pin(events)))
    }

    /// Wraps a provider's own frames; `read` turns the bytes of one into the events of its content, where events are
    /// wanted after all.
    pub fn of_frames(
        provider: ProviderId,
        dialect: Dialect,
        frames: impl Stream<Item = Result<NativeFrame, AttemptFailure>> + Send + 'static,
        read: ReadFrame,
    ) -> Self {
        let (frames, ready) = (Box::pin(frames), VecDeque::new());
        let source = Source::Frames { dialect, frames, read, ready, passed: Vec::new(), passed_bytes: 0 };
        Self::from_source(provider, source)
    }

    fn from_source(provider: ProviderId, source: Source) -> Self {
        Self {
            head: ReplyHead::default(),
            provider,
            source: Some(source),
            gathered: Gathered::default(),
            on_failure: None,
        }
    }

    /// Adds what is known besides the content.
    #[must_use]
    pub fn with_head(mut self, head: ReplyHead) -> Self {
        self.head = head;
        self
    }

    /// Calls `hook` once, where the stream fails; not where its reader goes away. It is called while the stream is
    /// read, so it must be quick.
    #[must_use]
    pub fn on_failure(mut self, hook: impl FnOnce(&AttemptFailure) + Send + 'static) -> Self {
        self.on_failure = Some(Box::new(hook));
        self
    }

    /// What is known besides the content.
    pub fn head(&self) -> &ReplyHead {
        &self.head
    }

    /// The dialect of the provider's own bytes, where the stream has them and is not over.
    pub fn dialect(&self) -> Option<Dialect> {
        match &self.source {
            Some(Source::Frames { dialect, .. }) => Some(*dialect),
            Some(Source::Events(_)) | None => None,
        }
    }

    /// The next frame; `None` after the last one. A stream without bytes of its own gives each event in a frame
    /// without bytes.
    ///
    /// # Errors
    ///
    /// The stream's failure, with what had come. Nothing follows it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no frame is lost.
    pub async fn next_frame(&mut self) -> Option<Result<NativeFrame, AttemptFailure>> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    /// As [`ReplyStream::next_frame`], for who polls.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<NativeFrame, AttemptFailure>>> {
        let failure = match &mut self.source {
            None => return Poll::Ready(None),
            Some(Source::Events(_)) => {
                let event = ready!(Pin::new(self).poll_next(cx));
                let frame =
                    |event: ReplyEvent| NativeFrame::new(Bytes::new(), event.is_content(), vec![event]);
                return Poll::Ready(event.map(|event| event.map(frame)));
            }
            Some(Source::Frames { frames, passed, passed_bytes, .. }) => {
                match ready!(frames.as_mut().poll_next(cx)) {
                    Some(Ok(frame)) => {
                        frame.events.iter().for_each(|event| self.gathered.take(event));
                        *passed_bytes = passed_bytes.saturating_add(frame.bytes.len());
                        if frame.is_last() {
                            self.source = None;
                        } else if *passed_bytes > RECEIVED_CAP_BYTES {
                            self.gathered.incomplete.truncated = true;
                        } else if frame.content {
                            if passed.capacity() == 0 {
                                passed.reserve(PASSED_FIRST_BYTES);
                            }
                            passed.extend_from_slice(&frame.bytes);
                        }
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    Some(Err(failure)) => failure,
                    None => no_finish(&self.provider),
                }
            }
        };
        Poll::Ready(Some(Err(self.failed(failure))))
    }

    /// Ends the stream with this failure, to which what had come is added.
    fn failed(&mut self, failure: AttemptFailure) -> AttemptFailure {
        if let Some(Source::Frames { mut read, passed, .. }) = self.source.take() {
            for event in &read(&passed.into()) {
                self.gathered.take(event);
            }
        }
        if let Some(hook) = self.on_failure.take() {
            hook(&failure);
        }
        failure.with_incomplete(std::mem::take(&mut self.gathered.incomplete))
    }

    /// Reads the stream to its end.
    ///
    /// # Errors
    ///
    /// The stream's failure, with what had come.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: what was read is lost with the future, and the connection closes.
    pub async fn into_reply(mut self) -> Result<ChatReply, AttemptFailure> {
        loop {
            match std::future::poll_fn(|cx| Pin::new(&mut self).poll_next(cx)).await {
                Some(Ok(ReplyEvent::Finish(finish))) => {
                    let gathered = std::mem::take(&mut self.gathered.incomplete);
                    let reply = ChatReply::new(gathered.parts, finish).with_usage(gathered.usage);
                    return Ok(reply.with_head(std::mem::take(&mut self.head)));
                }
                Some(Ok(_)) => {}
                Some(Err(failure)) => return Err(failure),
                None => return Err(no_finish(&self.provider)),
            }
        }
    }
}

fn no_finish(provider: &ProviderId) -> AttemptFailure {
    AttemptFailure::new(provider.clone(), Surface::Transport)
        .with_code("incomplete_stream")
        .with_causes(vec![crate::FailureCause::new("the stream ended without its finish marker")])
}

impl Source {
    /// The next event, from whichever source.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ReplyEvent, AttemptFailure>>> {
        match self {
            Self::Events(events) => events.as_mut().poll_next(cx),
            Self::Frames { frames, read, ready, .. } => loop {
                if let Some(event) = ready.pop_front() {
                    return Poll::Ready(Some(Ok(event)));
                }
                match ready!(frames.as_mut().poll_next(cx)) {
                    Some(Ok(frame)) => {
                        if frame.content {
                            ready.extend(read(&frame.bytes));
                        }
                        ready.extend(frame.events);
                    }
                    Some(Err(failure)) => return Poll::Ready(Some(Err(failure))),
                    None => return Poll::Ready(None),
                }
            },
        }
    }
}

impl Stream for ReplyStream {
    type Item = Result<ReplyEvent, AttemptFailure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(source) = &mut this.source else { return Poll::Ready(None) };
        let failure = match ready!(source.poll_event(cx)) {
            Some(Ok(event)) => {
                if matches!(event, ReplyEvent::Finish(_)) {
                    this.source = None;
                }
                this.gathered.take(&event);
                return Poll::Ready(Some(Ok(event)));
            }
            Some(Err(failure)) => failure,
            None => no_finish(&this.provider),
        };
        Poll::Ready(Some(Err(this.failed(failure))))
    }
}

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyStream").field("head", &self.head).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

//! Traffic in a vendor's own dialect, carried as it came: a caller that speaks what the provider speaks gets the
//! provider's own bytes, and its own are sent, without being rebuilt on the way.

use crate::ReplyEvent;
use bytes::Bytes;
use std::fmt;

/// A dialect that callers and providers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI's chat completions.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic's messages.
    AnthropicMessages,
}

/// A request's body as its caller wrote it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Native {
    /// What it is written in.
    pub dialect: Dialect,
    /// The body. Besides it the neutral fields must say the same: providers of other dialects get those.
    pub body: Bytes,
}

impl Native {
    /// A body from its parts.
    pub fn new(dialect: Dialect, body: impl Into<Bytes>) -> Self {
        Self { dialect, body: body.into() }
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Native").field("dialect", &self.dialect).field("bytes", &self.body.len()).finish()
    }
}

/// A piece of a streamed answer in the provider's own bytes.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct NativeFrame {
    /// One or more whole frames of the stream, delimiters included; empty where there is nothing to pass on.
    pub bytes: Bytes,
    /// Whether content is among it: what feeds the idle limit and, delivered, commits a run.
    pub content: bool,
    /// What it says besides content: [`ReplyEvent::Usage`], and [`ReplyEvent::Finish`] in the last frame. Where
    /// the stream has no bytes of its own, every event, content too.
    pub events: Vec<ReplyEvent>,
}

impl NativeFrame {
    /// A frame from its parts.
    pub fn new(bytes: impl Into<Bytes>, content: bool, events: Vec<ReplyEvent>) -> Self {
        Self { bytes: bytes.into(), content, events }
    }

    /// Whether the answer is complete with it.
    pub fn is_last(&self) -> bool {
        self.events.iter().any(|event| matches!(event, ReplyEvent::Finish(_)))
    }
}

impl fmt::Debug for NativeFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeFrame")
            .field("bytes", &self.bytes.len())
            .field("content", &self.content)
            .field("events", &self.events)
            .finish()
    }
}

/// Reads the content of a frame into events. It keeps what it needs from one frame to the next.
pub type ReadFrame = Box<dyn FnMut(&Bytes) -> Vec<ReplyEvent> + Send>;

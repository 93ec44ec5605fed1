//! What the upstream does with one request.

use std::time::Duration;

/// What the upstream does with one request. A script is a list of steps; the last one repeats.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// An answer in the request's own dialect, streamed if the request asked for it.
    Answer(Answer),
    /// An HTTP response with fixed bytes.
    Respond(Respond),
    /// Bytes and events on the bare connection, from before the status line.
    Raw(Vec<Act>),
}

/// One thing done to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Sends these bytes as they are.
    Send(Vec<u8>),
    /// Sends this JSON as the dialect's own error event; only inside a streamed answer.
    Error(String),
    /// Waits, by the upstream's clock.
    Wait(Duration),
    /// Does nothing until the client closes.
    Stall,
    /// Closes politely (FIN), whatever was promised.
    Close,
    /// Closes with a reset (RST).
    Reset,
}

impl Step {
    /// A good answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Answer::text([text.into()]).into()
    }

    /// A status with a JSON body.
    pub fn json(status: u16, body: impl Into<String>) -> Self {
        Respond::new(status).header("content-type", "application/json").body(body.into()).into()
    }

    /// A status with an HTML page, as a gateway sends it.
    pub fn html(status: u16, title: &str) -> Self {
        let page = format!(
            "<!DOCTYPE html>\n<html><head><title>{title}</title><style>.e402{{color:#429}}</style></head>\
             <body><center><h1>{title}</h1></center><hr><center>nginx</center></body></html>\n"
        );
        Respond::new(status).header("content-type", "text/html").body(page).into()
    }

    /// A redirect to `location`.
    pub fn redirect(location: &str) -> Self {
        Respond::new(307).header("location", location).into()
    }

    /// An event stream with these bytes as its body.
    pub fn events(body: impl Into<Vec<u8>>) -> Self {
        Respond::new(200).header("content-type", "text/event-stream").body(body.into()).into()
    }

    /// A body of `bytes` bytes that is no JSON.
    pub fn huge(status: u16, bytes: usize) -> Self {
        Respond::new(status).header("content-type", "application/json").body(vec![b'x'; bytes]).into()
    }

    /// A body that claims to be gzip and breaks off after its header.
    pub fn cut_gzip() -> Self {
        Respond::new(200)
            .header("content-type", "application/json")
            .header("content-encoding", "gzip")
            .body(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0x56])
            .into()
    }

    /// Takes the request and never answers.
    pub fn silent() -> Self {
        Self::Raw(vec![Act::Stall])
    }

    /// Resets the connection before any byte of a response.
    pub fn reset() -> Self {
        Self::Raw(vec![Act::Reset])
    }

    /// Closes the connection before any byte of a response.
    pub fn close() -> Self {
        Self::Raw(vec![Act::Close])
    }

    /// Sends half of a status line and stalls.
    pub fn slow_head() -> Self {
        Self::Raw(vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec()), Act::Stall])
    }
}

/// An HTTP response with fixed bytes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Respond {
    /// The status.
    pub status: u16,
    /// Headers, beside the length.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long the upstream waits before the status line.
    pub delay: Duration,
}

impl Respond {
    /// A status without headers and body.
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Waits before the status line.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl From<Respond> for Step {
    fn from(respond: Respond) -> Self {
        Self::Respond(respond)
    }
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// Text.
    Text(String),
    /// Visible reasoning.
    Reasoning(String),
    /// A call of a tool.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments, as JSON text.
        arguments: String,
    },
}

/// What a frame of a stream is, so that faults can be placed by meaning in any dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FrameKind {
    /// What comes before content.
    Start,
    /// Content.
    Content,
    /// The finish marker.
    Finish,
    /// Token counts.
    Usage,
    /// The sentinel after everything.
    Done,
}

/// An answer in whatever dialect the request speaks, with faults placed by meaning.
///
/// An act placed after `n` pieces of content happens there in a stream; in an answer that is not streamed it
/// happens in the middle of the body (`n > 0`) or before it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The content.
    pub pieces: Vec<Piece>,
    /// The finish reason in the OpenAI dialect's words; `None` gives an answer without any choice.
    pub finish: Option<String>,
    /// Input and output tokens.
    pub usage: Option<(u64, u64)>,
    /// Response headers besides the usual ones.
    pub headers: Vec<(String, String)>,
    /// Replaces the content type.
    pub content_type: Option<String>,
    /// How long the upstream waits before the status line.
    pub delay: Duration,
    /// How long the upstream waits before each frame of a stream.
    pub drip: Duration,
    /// Kinds of frames that are left out of a stream.
    pub without: Vec<FrameKind>,
    /// Acts after so many pieces of content. Bytes are sent as body bytes.
    pub acts: Vec<(usize, Act)>,
    /// Keeps the response open after its last frame instead of ending it.
    pub left_open: bool,
}

impl Answer {
    /// An answer from its pieces.
    pub fn new(pieces: Vec<Piece>) -> Self {
        Self {
            pieces,
            finish: Some("stop".into()),
            usage: Some((11, 7)),
            headers: Vec::new(),
            content_type: None,
            delay: Duration::ZERO,
            drip: Duration::ZERO,
            without: Vec::new(),
            acts: Vec::new(),
            left_open: false,
        }
    }

    /// An answer of texts, each a piece of its own in a stream.
    pub fn text<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::new(texts.into_iter().map(|text| Piece::Text(text.into())).collect())
    }

    /// An answer that calls one tool.
    pub fn tool_call(id: &str, name: &str, arguments: &str) -> Self {
        let call = Piece::ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() };
        Self::new(vec![call]).finish("tool_calls")
    }

    /// A well-formed answer without content.
    pub fn blank() -> Self {
        Self::new(Vec::new())
    }

    /// An answer with an empty list of choices.
    pub fn no_choices() -> Self {
        let mut answer = Self::blank();
        answer.finish = None;
        answer
    }

    /// Sets the finish reason.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Self {
        self.finish = Some(reason.into());
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Replaces the content type.
    #[must_use]
    pub fn content_type(mut self, value: &str) -> Self {
        self.content_type = Some(value.into());
        self
    }

    /// Waits before the status line.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits before each frame.
    #[must_use]
    pub fn drip(mut self, pause: Duration) -> Self {
        self.drip = pause;
        self
    }

    /// Leaves a kind of frame out of the stream.
    #[must_use]
    pub fn without(mut self, kind: FrameKind) -> Self {
        self.without.push(kind);
        self
    }

    /// Does something after `pieces` pieces of content.
    #[must_use]
    pub fn act_after(mut self, pieces: usize, act: Act) -> Self {
        self.acts.push((pieces, act));
        self
    }

    /// Breaks off after `pieces` pieces of content, without the terminating chunk.
    #[must_use]
    pub fn cut_after(self, pieces: usize) -> Self {
        self.act_after(pieces, Act::Close)
    }

    /// Resets the connection after `pieces` pieces of content.
    #[must_use]
    pub fn reset_after(self, pieces: usize) -> Self {
        self.act_after(pieces, Act::Reset)
    }

    /// Falls silent after `pieces` pieces of content.
    #[must_use]
    pub fn stall_after(self, pieces: usize) -> Self {
        self.act_after(pieces, Act::Stall)
    }

    /// Sends an error event after `pieces` pieces of content and ends there.
    #[must_use]
    pub fn error_after(self, pieces: usize, error: &str) -> Self {
        let mut ended = self.act_after(pieces, Act::Error(error.into()));
        ended.pieces.truncate(pieces);
        ended.without.extend([FrameKind::Finish, FrameKind::Usage, FrameKind::Done]);
        ended
    }

    /// Sends raw body bytes after `pieces` pieces of content: a malformed event, a comment, junk.
    #[must_use]
    pub fn bytes_after(self, pieces: usize, bytes: impl Into<Vec<u8>>) -> Self {
        self.act_after(pieces, Act::Send(bytes.into()))
    }

    /// Keeps the response open after its last frame.
    #[must_use]
    pub fn left_open(mut self) -> Self {
        self.left_open = true;
        self
    }
}

impl From<Answer> for Step {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

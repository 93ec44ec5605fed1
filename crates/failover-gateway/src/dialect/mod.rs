//! The dialects that clients speak: request in, answer, stream and error out. Pure: bytes and values, no I/O.
//!
//! What the neutral types carry is mapped. The caller's own body goes along ([`ChatRequest::native`]), so that an
//! adapter of the same dialect sends exactly what the caller wrote. What only its origin understands is kept as
//! `Opaque`, and finds its way back through the client inside an envelope of the gateway's own.

mod carry;
mod chat;
mod error;
mod messages;
mod models;
mod nesting;
mod read;
mod responses;
mod shared;
mod stream;
mod unread;
mod write;

pub use error::{AttemptNote, BadRequest, ErrorBody, ErrorKind};
pub use models::{ModelEntry, ModelsShape, render_models};
pub use stream::StreamRenderer;
pub use unread::unread;

use bytes::Bytes;
use failover_provider::{ChatReply, ChatRequest, Dialect};
use failover_types::ProviderId;
use http::StatusCode;

/// A dialect that clients speak to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "every dialect needs every codec")]
pub enum ClientDialect {
    /// OpenAI's chat completions: `POST /v1/chat/completions`.
    Chat,
    /// OpenAI's responses: `POST /v1/responses`.
    Responses,
    /// Anthropic's messages: `POST /v1/messages`.
    Messages,
}

impl ClientDialect {
    /// Its name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }
}

impl From<ClientDialect> for Dialect {
    fn from(dialect: ClientDialect) -> Self {
        match dialect {
            ClientDialect::Chat => Self::OpenAiChat,
            ClientDialect::Responses => Self::OpenAiResponses,
            ClientDialect::Messages => Self::AnthropicMessages,
        }
    }
}

/// A client's request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inbound {
    /// The model as the client names it: a route or `provider/model`.
    pub model: String,
    /// Whether the answer is wanted piece by piece.
    pub stream: bool,
    /// What to ask, with the client's own body besides ([`ChatRequest::native`]), unless that carries what an answer
    /// of another dialect had brought the client.
    pub request: ChatRequest,
    /// Whether a stream of chat completions ends with the token counts. The other dialects always have them.
    pub include_usage: bool,
    /// What the client says of its conversation.
    pub session_hint: Option<SessionHint>,
}

/// A value of the request that stays the same throughout a conversation, or at least throughout a user's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SessionHint {
    /// Which field it was.
    pub kind: HintKind,
    /// Its value, as the client sent it.
    pub value: String,
}

/// Where a [`SessionHint`] was read. The narrowest that is there is taken, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HintKind {
    /// `conversation`: one conversation, kept by the provider.
    Conversation,
    /// `prompt_cache_key`: requests that share a beginning.
    PromptCacheKey,
    /// `previous_response_id`: the answer before; another one each turn.
    PreviousResponse,
    /// `user` or `metadata.user_id`: one user.
    User,
}

impl SessionHint {
    /// The narrowest of some hints; empty ones do not count.
    fn narrowest(hints: impl IntoIterator<Item = (HintKind, Option<String>)>) -> Option<Self> {
        hints
            .into_iter()
            .filter_map(|(kind, value)| Some(Self { kind, value: value.filter(|value| !value.is_empty())? }))
            .min_by_key(|hint| hint.kind)
    }
}

/// What the gateway knows of an answer besides the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// Id of the answer. The dialect's own prefix is put before it where it lacks it.
    pub id: String,
    /// Who answered, as `provider/model`.
    pub model: String,
    /// When, in seconds since the Unix epoch.
    pub created: u64,
    /// Whether a stream of chat completions ends with the token counts.
    pub include_usage: bool,
    /// The provider that the client asked: its proofs stand in the client's history as they are.
    pub asked: Option<ProviderId>,
}

impl Meta {
    /// An answer without token counts at the end of its stream.
    pub fn new(id: impl Into<String>, model: impl Into<String>, created: u64) -> Self {
        Self { id: id.into(), model: model.into(), created, include_usage: false, asked: None }
    }

    /// Asks for token counts at the end of a stream of chat completions.
    #[must_use]
    pub fn with_usage(mut self, include: bool) -> Self {
        self.include_usage = include;
        self
    }

    /// Names the provider that the client asked.
    #[must_use]
    pub fn with_asked(mut self, provider: ProviderId) -> Self {
        self.asked = Some(provider);
        self
    }

    fn prefixed(&self, prefix: &str) -> String {
        if self.id.starts_with(prefix) { self.id.clone() } else { format!("{prefix}{}", self.id) }
    }
}

/// Reads a client's request.
///
/// # Errors
///
/// [`BadRequest`] names the field and says what to do. Fields that nobody knows are no error.
pub fn parse_request(dialect: ClientDialect, body: &Bytes) -> Result<Inbound, BadRequest> {
    match dialect {
        ClientDialect::Chat => chat::parse(body),
        ClientDialect::Messages => messages::parse(body),
        ClientDialect::Responses => responses::parse(body),
    }
}

/// Writes a whole answer.
pub fn render_reply(dialect: ClientDialect, reply: &ChatReply, meta: &Meta) -> Bytes {
    match dialect {
        ClientDialect::Messages => messages::whole(reply, meta),
        ClientDialect::Chat => chat::whole(reply, meta),
        ClientDialect::Responses => responses::whole(reply, meta),
    }
}

/// Writes an error as the body of a response.
pub fn render_error(dialect: ClientDialect, error: &ErrorBody) -> (StatusCode, Bytes) {
    (error.status, error.render(dialect))
}

//! The neutral request: what vendors share, and vendor fields tagged with where they may go.
//!
//! A request is never changed by an attempt. Each adapter maps from the original, so that what one provider
//! cannot carry is still there for the next.

use crate::{AttemptScope, Bound, Dialect, DialectHeader, File, Home, Json, Native, Opaque, ToolIds};
use serde::{Deserialize, Serialize};

/// One chat request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The conversation so far, oldest first. System prompts are messages too.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether and which tool must be called; `None` leaves it to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Sampling temperature, passed on as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling, passed on as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Most tokens to generate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The form of the answer; `None` is plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// How hard a reasoning model thinks; `None` leaves it to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether the answer is wanted piece by piece.
    pub stream: bool,
    /// Top-level fields that the neutral form has no words for: parameters of a dialect, or of one provider.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<Opaque>,
    /// What it takes from somebody's store. Nobody else can answer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Headers that say how the dialect's fields are to be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<DialectHeader>,
    /// The caller's own body. An adapter of its dialect sends it with nothing but the model replaced, and answers in
    /// the provider's own bytes; every other one maps from the fields above. It is not written with the request.
    #[serde(skip)]
    pub native: Option<Native>,
}

impl ChatRequest {
    /// A request with one user message, not streamed.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self::new(vec![Message::text(Role::User, text)])
    }

    /// A request with this conversation, not streamed.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Asks for the answer piece by piece, or whole.
    #[must_use]
    pub fn with_stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Bounds the answer.
    #[must_use]
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Offers tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Tool>) -> Self {
        self.tools = tools;
        self
    }

    /// Whether a body that its caller wrote ([`ChatRequest::native`]) in `dialect` can go to a server of that dialect as it
    /// is: nothing in it belongs elsewhere, and every id of a tool call fits the rule of the server.
    pub fn passes_unchanged(&self, dialect: Dialect, scope: &AttemptScope<'_>, ids: ToolIds) -> bool {
        let home = |opaque: &Opaque| opaque.may_go(Some(dialect), scope);
        let mut parts = self.messages.iter().flat_map(|message| &message.parts);
        self.opaque.iter().all(home)
            && parts.all(|part| match part {
                Part::ToolCall(call) => ids.fits(&call.id),
                Part::ToolResult(result) => ids.fits(&result.call_id),
                Part::Reasoning { proof, .. } => proof.as_ref().is_none_or(home),
                Part::Opaque(opaque) => home(opaque),
                Part::Text(_) | Part::Image(_) | Part::File(_) => true,
            })
    }

    /// What it shows: images and files, those of tool results too.
    pub fn shown(&self) -> impl Iterator<Item = &Part> {
        let all = self.messages.iter().flat_map(|message| &message.parts).flat_map(|part| {
            if let Part::ToolResult(result) = part {
                result.parts.as_slice()
            } else {
                std::slice::from_ref(part)
            }
        });
        all.filter(|part| matches!(part, Part::Image(_) | Part::File(_)))
    }

    /// Whether something in it is bound to whom the caller asked ([`Home::History`]).
    pub fn has_history(&self) -> bool {
        let bound = |opaque: &Opaque| matches!(opaque.home, Home::History(_));
        self.messages.iter().flat_map(|message| &message.parts).any(|part| match part {
            Part::Reasoning { proof, .. } => proof.as_ref().is_some_and(bound),
            Part::Opaque(opaque) => bound(opaque),
            Part::ToolCall(_) | Part::ToolResult(_) | Part::Text(_) | Part::Image(_) | Part::File(_) => false,
        })
    }

    /// Gives the caller's own body besides.
    #[must_use]
    pub fn with_native(mut self, native: Native) -> Self {
        self.native = Some(native);
        self
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "every adapter must map every role")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The person, or the program that asks.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message from its parts.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts }
    }

    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Part::Text(text.into())])
    }
}

/// A piece of a message or of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "an adapter that forgets a kind of part would lose it silently")]
pub enum Part {
    /// Plain text.
    Text(String),
    /// An image.
    Image(Image),
    /// A document or a recording.
    File(File),
    /// The model's call of a tool.
    ToolCall(ToolCall),
    /// The result of a call.
    ToolResult(ToolResult),
    /// The model's visible reasoning, with the vendor's proof of it where there is one. Dropped as a whole
    /// where the proof belongs elsewhere.
    Reasoning {
        /// The text; may be empty where the vendor shows none.
        text: String,
        /// Signature or encrypted form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Opaque>,
    },
    /// A whole item that the neutral form has no words for.
    Opaque(Opaque),
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Image {
    /// Where it is.
    pub source: ImageSource,
    /// How closely the model looks (`low`, `high`, `auto`), where the provider has such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Image {
    /// An image from its source.
    pub fn new(source: ImageSource) -> Self {
        Self { source, detail: None }
    }
}

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "every adapter must map every source")]
pub enum ImageSource {
    /// Fetched by the provider.
    Url(String),
    /// In the request itself.
    Base64 {
        /// Media type: `image/png`.
        media_type: String,
        /// The bytes, in standard base64.
        data: String,
    },
}

/// The model's call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The call's id. Adapters map it to what their provider accepts, the same way throughout one attempt.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them: meant to be a JSON object, not checked.
    pub arguments: String,
}

impl ToolCall {
    /// A call from its parts.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// What the tool said: texts, images and files.
    pub parts: Vec<Part>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// A result of one text.
    pub fn text(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { call_id: call_id.into(), parts: vec![Part::Text(text.into())], is_error: false }
    }
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON schema of its arguments, in the caller's own key order.
    pub parameters: Json,
    /// Whether the provider must hold the arguments to the schema; `None` leaves it to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

impl Tool {
    /// A tool from its name and the schema of its arguments.
    pub fn new(name: impl Into<String>, parameters: Json) -> Self {
        Self { name: name.into(), description: None, parameters, strict: None }
    }

    /// Says what the tool does.
    #[must_use]
    pub fn with_description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }
}

/// Whether and which tool must be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "every adapter must map every choice")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// This one.
    Named(String),
}

/// The form of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "every adapter must map every form")]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON that follows a schema.
    JsonSchema {
        /// The schema's name.
        name: String,
        /// The schema.
        schema: Json,
        /// Whether the provider must hold the answer to it.
        #[serde(default)]
        strict: bool,
    },
}

/// How hard a reasoning model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effort {
    /// Not at all, where that is possible.
    None,
    /// As little as possible.
    Minimal,
    /// Little.
    Low,
    /// The provider's middle.
    Medium,
    /// Hard.
    High,
}

impl Effort {
    /// The name that vendors share.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

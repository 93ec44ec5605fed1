//! The response object and its items.

use crate::dialect::nesting::Nesting;
use crate::dialect::write::json;
use crate::dialect::{ErrorBody, Meta, carry};
use bytes::Bytes;
use failover_provider::{ChatReply, FinishReason, Json, Opaque, Part, Usage};
use serde::Serialize;

/// An item of the answer, as far as it has come.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) id: String,
    pub(super) kind: OutputKind,
    pub(super) done: bool,
}

#[derive(Debug)]
pub(super) enum OutputKind {
    Message {
        text: String,
    },
    Reasoning {
        text: String,
        encrypted: Option<String>,
    },
    Call {
        call: u32,
        call_id: String,
        name: String,
        arguments: String,
        nesting: Nesting,
    },
    /// An item that is the vendor's own.
    Own(Json),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message {
        id: &'a str,
        status: &'static str,
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    Reasoning {
        id: &'a str,
        summary: Vec<Content<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<&'a str>,
    },
    FunctionCall {
        id: &'a str,
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
        status: &'static str,
    },
    #[serde(untagged)]
    Own(&'a Json),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content<'a> {
    OutputText { text: &'a str, annotations: [(); 0], logprobs: [(); 0] },
    SummaryText { text: &'a str },
}

impl<'a> Content<'a> {
    pub(super) fn output(text: &'a str) -> Self {
        Self::OutputText { text, annotations: [], logprobs: [] }
    }
}

impl Output {
    /// The item as it is told at its end; at its start it is still empty.
    pub(super) fn item(&self) -> Item<'_> {
        let status = if self.done { "completed" } else { "in_progress" };
        match &self.kind {
            OutputKind::Message { text } => Item::Message {
                id: &self.id,
                status,
                role: "assistant",
                content: if self.done { vec![Content::output(text)] } else { Vec::new() },
            },
            OutputKind::Reasoning { text, encrypted } => Item::Reasoning {
                id: &self.id,
                summary: if text.is_empty() { Vec::new() } else { vec![Content::SummaryText { text }] },
                encrypted_content: encrypted.as_deref(),
            },
            OutputKind::Call { call_id, name, arguments, .. } => {
                Item::FunctionCall { id: &self.id, call_id, name, arguments, status }
            }
            OutputKind::Own(json) => Item::Own(json),
        }
    }
}

/// How a response stands.
#[derive(Clone, Copy)]
pub(super) enum Status<'a> {
    InProgress,
    Finished(&'a FinishReason),
    Failed(&'a ErrorBody),
}

#[derive(Serialize)]
pub(super) struct Response<'a> {
    id: &'a str,
    object: &'static str,
    created_at: u64,
    status: &'static str,
    error: Option<Failure<'a>>,
    incomplete_details: Option<Details>,
    instructions: Option<()>,
    max_output_tokens: Option<()>,
    model: &'a str,
    output: Vec<Item<'a>>,
    parallel_tool_calls: bool,
    previous_response_id: Option<()>,
    store: bool,
    temperature: Option<()>,
    text: TextConfig,
    tool_choice: &'static str,
    tools: [(); 0],
    top_p: Option<()>,
    usage: Option<Counts>,
    metadata: Empty,
}

#[derive(Serialize)]
struct Failure<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failover: Option<Json>,
}

#[derive(Serialize)]
struct Details {
    reason: &'static str,
}

#[derive(Serialize)]
struct TextConfig {
    format: Plain,
}

#[derive(Serialize)]
struct Plain {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Counts {
    input_tokens: u64,
    input_tokens_details: CachedTokens,
    output_tokens: u64,
    output_tokens_details: ReasoningTokens,
    total_tokens: u64,
}

#[derive(Serialize)]
struct CachedTokens {
    cached_tokens: u64,
}

#[derive(Serialize)]
struct ReasoningTokens {
    reasoning_tokens: u64,
}

impl From<Usage> for Counts {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input,
            input_tokens_details: CachedTokens { cached_tokens: usage.cached_input.unwrap_or_default() },
            output_tokens: usage.output,
            output_tokens_details: ReasoningTokens { reasoning_tokens: usage.reasoning.unwrap_or_default() },
            total_tokens: usage.input.saturating_add(usage.output),
        }
    }
}

/// The end of a response: its status, what is said of it, and its last event.
pub(super) fn ending(status: Status<'_>) -> (&'static str, Option<&'static str>, &'static str) {
    match status {
        Status::InProgress => ("in_progress", None, "response.in_progress"),
        Status::Failed(_) => ("failed", None, "response.failed"),
        Status::Finished(FinishReason::Length) => {
            ("incomplete", Some("max_output_tokens"), "response.incomplete")
        }
        Status::Finished(FinishReason::ContentFilter) => {
            ("incomplete", Some("content_filter"), "response.incomplete")
        }
        Status::Finished(_) => ("completed", None, "response.completed"),
    }
}

impl<'a> Response<'a> {
    pub(super) fn new(
        id: &'a str,
        meta: &'a Meta,
        status: Status<'a>,
        outputs: &'a [Output],
        usage: Option<Usage>,
    ) -> Self {
        let (word, reason, _) = ending(status);
        let error = match status {
            Status::Failed(error) => Some(Failure {
                code: error.code().unwrap_or("server_error"),
                message: &error.message,
                failover: error.failover().and_then(|failover| Json::of(&failover).ok()),
            }),
            Status::InProgress | Status::Finished(_) => None,
        };
        Self {
            id,
            object: "response",
            created_at: meta.created,
            status: word,
            error,
            incomplete_details: reason.map(|reason| Details { reason }),
            instructions: None,
            max_output_tokens: None,
            model: &meta.model,
            output: outputs.iter().map(Output::item).collect(),
            parallel_tool_calls: true,
            previous_response_id: None,
            store: false,
            temperature: None,
            text: TextConfig { format: Plain { r#type: "text" } },
            tool_choice: "auto",
            tools: [],
            top_p: None,
            usage: usage.map(Counts::from),
            metadata: Empty {},
        }
    }
}

/// What goes into `encrypted_content` for a proof.
pub(super) fn encrypted(proof: &Opaque, meta: &Meta) -> Option<String> {
    let own = carry::is_of(proof, meta.asked.as_ref()) && proof.name == "encrypted_content";
    let own = own.then(|| serde_json::from_str(proof.value.as_str()).ok()).flatten();
    own.or_else(|| carry::wrap(proof))
}

/// The item of something opaque: its own where it is from whom the client asked, else a reasoning item that only carries
/// it.
pub(super) fn opaque(opaque: &Opaque, meta: &Meta) -> Option<OutputKind> {
    if carry::is_of(opaque, meta.asked.as_ref()) && opaque.value.as_str().starts_with('{') {
        return Some(OutputKind::Own(opaque.value.clone()));
    }
    let encrypted = Some(carry::wrap_item(opaque)?);
    Some(OutputKind::Reasoning { text: String::new(), encrypted })
}

fn kind(part: &Part, at: usize, meta: &Meta) -> Option<OutputKind> {
    match part {
        Part::Text(text) => Some(OutputKind::Message { text: text.clone() }),
        Part::Reasoning { text, proof } => Some(OutputKind::Reasoning {
            text: text.clone(),
            encrypted: proof.as_ref().and_then(|proof| encrypted(proof, meta)),
        }),
        Part::ToolCall(call) => Some(OutputKind::Call {
            call: u32::try_from(at).unwrap_or(u32::MAX),
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            nesting: Nesting::default(),
        }),
        Part::Opaque(item) => opaque(item, meta),
        // Images of this dialect come from a tool of its own; results and files are the client's to give.
        Part::Image(_) | Part::File(_) | Part::ToolResult(_) => None,
    }
}

/// The id of an item.
pub(super) fn item_id(kind: &OutputKind, meta: &Meta, at: usize) -> String {
    let prefix = match kind {
        OutputKind::Message { .. } => "msg",
        OutputKind::Reasoning { .. } => "rs",
        OutputKind::Call { .. } => "fc",
        OutputKind::Own(_) => "item",
    };
    format!("{prefix}_{}_{at}", meta.id)
}

/// Writes a whole answer.
pub(in crate::dialect) fn whole(reply: &ChatReply, meta: &Meta) -> Bytes {
    let kinds = reply.parts.iter().enumerate().filter_map(|(at, part)| kind(part, at, meta));
    let outputs: Vec<Output> = kinds
        .enumerate()
        .map(|(at, kind)| Output { id: item_id(&kind, meta, at), kind, done: true })
        .collect();
    let id = meta.prefixed("resp_");
    json(&Response::new(&id, meta, Status::Finished(&reply.finish), &outputs, reply.usage))
}

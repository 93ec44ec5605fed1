//! A whole message.

use super::CITATIONS;
use crate::dialect::write::json;
use crate::dialect::{Meta, carry};
use bytes::Bytes;
use failover_provider::{ChatReply, FinishReason, Json, JsonError, Opaque, Part, Usage};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    pub(super) r#type: &'static str,
    pub(super) role: &'static str,
    pub(super) model: &'a str,
    pub(super) content: Vec<Json>,
    pub(super) stop_reason: Option<&'a str>,
    pub(super) stop_sequence: Option<()>,
    pub(super) usage: Counts,
}

/// Token counts. Those of the input leave out what was read from a cache.
#[derive(Serialize)]
pub(super) struct Counts {
    #[serde(rename = "input_tokens")]
    input: u64,
    #[serde(rename = "cache_read_input_tokens", skip_serializing_if = "Option::is_none")]
    cache_read: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: u64,
}

impl From<Usage> for Counts {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input.saturating_sub(usage.cached_input.unwrap_or_default()),
            cache_read: usage.cached_input,
            output: usage.output,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a, I> {
    Text { text: &'a str },
    Thinking { thinking: &'a str, signature: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: I },
    RedactedThinking { data: &'a str },
}

/// A text that says where it is from.
#[derive(Serialize)]
struct Cited<'a> {
    r#type: &'static str,
    text: &'a str,
    citations: Vec<Json>,
}

#[derive(Serialize)]
struct Unread<'a> {
    unreadable_arguments: &'a str,
}

/// A block with the call's arguments in it.
type Whole<'a> = Block<'a, Json>;

/// Why the model stopped. Of other words only Anthropic's own pass: clients know a closed set.
pub(super) fn stop_reason(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter => "refusal",
        FinishReason::Other(word) if word == "pause_turn" => word,
        FinishReason::Stop | FinishReason::Other(_) | _ => "end_turn",
    }
}

/// The signature for a proof: its own where it is from whom the client asked, else one that carries it. Without any the
/// client has an empty one.
pub(super) fn signature(proof: Option<&Opaque>, meta: &Meta) -> String {
    let Some(proof) = proof else { return String::new() };
    let own = (proof.name == "signature" && carry::is_of(proof, meta.asked.as_ref()))
        .then(|| serde_json::from_str(proof.value.as_str()).ok())
        .flatten();
    own.or_else(|| carry::wrap(proof)).unwrap_or_default()
}

/// The block of an item: its own where it is from whom the client asked, else one that only carries it.
pub(super) fn item(opaque: &Opaque, meta: &Meta) -> Option<Json> {
    if carry::is_of(opaque, meta.asked.as_ref()) && is_block(opaque) {
        return Some(opaque.value.clone());
    }
    Json::of(&Whole::RedactedThinking { data: &carry::wrap_item(opaque)? }).ok()
}

/// What a text is from, in this dialect's own words, for whom the client asked.
pub(super) fn citations(opaque: &Opaque, meta: &Meta) -> Option<Vec<Json>> {
    let own = opaque.name == CITATIONS && carry::is_of(opaque, meta.asked.as_ref());
    own.then(|| serde_json::from_str(opaque.value.as_str()).ok()).flatten()
}

/// The blocks of some parts. What a text is from stands in its block.
fn blocks(parts: &[Part], meta: &Meta) -> Vec<Json> {
    let mut blocks: Vec<Json> = Vec::new();
    // The text that is the last block, and where it is from so far.
    let mut cited: Option<(&str, Vec<Json>)> = None;
    for part in parts {
        let more = if let Part::Opaque(opaque) = part { citations(opaque, meta) } else { None };
        if let (Some(more), Some((text, citations)), Some(last)) = (more, &mut cited, blocks.last_mut()) {
            citations.extend(more);
            let whole = Cited { r#type: "text", text, citations: citations.clone() };
            *last = Json::of(&whole).unwrap_or_else(|_| last.clone());
            continue;
        }
        cited = if let Part::Text(text) = part { Some((text, Vec::new())) } else { None };
        blocks.extend(block(part, meta));
    }
    blocks
}

/// Arguments must be an object here.
fn input(arguments: &str) -> Result<Json, JsonError> {
    let text = arguments.trim();
    match Json::parse(text).ok().filter(|_| text.starts_with('{')) {
        Some(object) => Ok(object),
        None if text.is_empty() => Json::parse("{}"),
        None => Json::of(&Unread { unreadable_arguments: arguments }),
    }
}

/// Whether it is written as a block of this dialect.
fn is_block(opaque: &Opaque) -> bool {
    #[derive(serde::Deserialize)]
    struct Kind {
        r#type: String,
    }
    serde_json::from_str::<Kind>(opaque.value.as_str()).is_ok_and(|kind| kind.r#type == opaque.name)
}

fn block(part: &Part, meta: &Meta) -> Option<Json> {
    match part {
        Part::Text(text) => Json::of(&Whole::Text { text }).ok(),
        Part::Reasoning { text, proof } => {
            Json::of(&Whole::Thinking { thinking: text, signature: &signature(proof.as_ref(), meta) }).ok()
        }
        Part::ToolCall(call) => {
            let input = input(&call.arguments).ok()?;
            Json::of(&Block::ToolUse { id: &call.id, name: &call.name, input }).ok()
        }
        Part::Opaque(opaque) => item(opaque, meta),
        // Answers of this dialect have no images; results and files are the client's to give.
        Part::Image(_) | Part::File(_) | Part::ToolResult(_) => None,
    }
}

/// Writes a whole answer.
pub(in crate::dialect) fn whole(reply: &ChatReply, meta: &Meta) -> Bytes {
    json(&Message {
        id: &meta.prefixed("msg_"),
        r#type: "message",
        role: "assistant",
        model: &meta.model,
        content: blocks(&reply.parts, meta),
        stop_reason: Some(stop_reason(&reply.finish)),
        stop_sequence: None,
        usage: reply.usage.unwrap_or_default().into(),
    })
}

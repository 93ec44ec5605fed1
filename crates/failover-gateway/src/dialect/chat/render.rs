//! A whole chat completion.

use super::FORMAT;
use crate::dialect::Meta;
use crate::dialect::carry;
use crate::dialect::shared::{ChatUsage, finish_word, image_url};
use crate::dialect::write::json;
use bytes::Bytes;
use failover_provider::{ChatReply, Json, Opaque, Part, ToolCall};
use serde::Serialize;

#[derive(Serialize)]
struct Completion<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<()>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<String>,
    refusal: Option<()>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImagePart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct ImagePart {
    r#type: &'static str,
    image_url: Url,
}

#[derive(Serialize)]
struct Url {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Entry {
    r#type: &'static str,
    format: &'static str,
    data: String,
}

fn entry(data: Option<String>) -> Option<Json> {
    Json::of(&Entry { r#type: "reasoning.encrypted", format: FORMAT, data: data? }).ok()
}

/// Entries of `reasoning_details` for a proof. Text that proves itself needs none.
pub(super) fn proof(opaque: &Opaque) -> Vec<Json> {
    match opaque.name.as_str() {
        "reasoning_content" => Vec::new(),
        "reasoning_details" => serde_json::from_str(opaque.value.as_str()).unwrap_or_default(),
        _ => entry(carry::wrap(opaque)).into_iter().collect(),
    }
}

/// The entry of `reasoning_details` for an item that clients cannot read.
pub(super) fn item(opaque: &Opaque) -> Option<Json> {
    entry(carry::wrap_item(opaque))
}

/// Writes a whole answer.
pub(in crate::dialect) fn whole(reply: &ChatReply, meta: &Meta) -> Bytes {
    let mut text = String::new();
    let mut message = Message {
        role: "assistant",
        content: None,
        refusal: None,
        reasoning_content: String::new(),
        reasoning_details: Vec::new(),
        images: Vec::new(),
        tool_calls: Vec::new(),
    };
    for part in &reply.parts {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::Reasoning { text, proof: opaque } => {
                message.reasoning_content.push_str(text);
                message.reasoning_details.extend(opaque.iter().flat_map(proof));
            }
            Part::ToolCall(ToolCall { id, name, arguments, .. }) => message.tool_calls.push(Call {
                id,
                r#type: "function",
                function: Function { name, arguments },
            }),
            Part::Image(image) => message
                .images
                .push(ImagePart { r#type: "image_url", image_url: Url { url: image_url(&image.source) } }),
            Part::Opaque(opaque) => message.reasoning_details.extend(item(opaque)),
            // Results and files are the client's to give.
            Part::ToolResult(_) | Part::File(_) => {}
        }
    }
    message.content = Some(text).filter(|text| !text.is_empty());
    json(&Completion {
        id: meta.prefixed("chatcmpl-"),
        object: "chat.completion",
        created: meta.created,
        model: &meta.model,
        choices: [Choice { index: 0, message, logprobs: None, finish_reason: finish_word(&reply.finish) }],
        usage: reply.usage.map(ChatUsage::from),
    })
}

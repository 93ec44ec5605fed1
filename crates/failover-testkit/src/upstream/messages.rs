//! Anthropic's Messages API.

use super::dialect::{Asked, Dialect, Frame, set};
use super::hearing;
use super::http::Request;
use super::step::{Answer, FrameKind, Piece};
use crate::provider::Heard;
use serde_json::{Value, json};

/// Anthropic's messages, at any path that ends in `/messages`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Messages;

/// The vendor's word for a finish reason of the OpenAI dialect.
fn stop_reason(word: &str) -> &str {
    match word {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}

fn message(asked: &Asked, content: &[Value], usage: &Value) -> Value {
    json!({"id": "msg_scripted", "type": "message", "role": "assistant", "model": asked.model, "content": content,
           "stop_reason": null, "stop_sequence": null, "usage": usage})
}

fn block(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"type": "text", "text": text}),
        Piece::Reasoning(text) => json!({"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}),
        Piece::ToolCall { id, name, arguments } => {
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
    }
}

/// Named events, as the API sends them: the type stands in both places.
fn events(values: &[Value]) -> Vec<u8> {
    let text = |value: &Value| {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {kind}\ndata: {value}\n\n")
    };
    values.iter().map(text).collect::<String>().into_bytes()
}

fn piece_events(index: usize, piece: &Piece) -> Vec<u8> {
    let (start, deltas) = match piece {
        Piece::Text(text) => {
            (json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": text})])
        }
        Piece::Reasoning(text) => (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": text}),
                json!({"type": "signature_delta", "signature": "c2lnbmVk"}),
            ],
        ),
        Piece::ToolCall { id, name, arguments } => (
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            vec![
                json!({"type": "input_json_delta", "partial_json": ""}),
                json!({"type": "input_json_delta", "partial_json": arguments}),
            ],
        ),
    };
    let mut values = vec![json!({"type": "content_block_start", "index": index, "content_block": start})];
    let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
    values.extend(deltas.into_iter().map(delta));
    values.push(json!({"type": "content_block_stop", "index": index}));
    events(&values)
}

impl Dialect for Messages {
    fn read(&self, request: &Request) -> Option<Asked> {
        if request.method != "POST" || !request.path().ends_with("/messages") {
            return None;
        }
        let body: Value = serde_json::from_slice(&request.body).ok()?;
        let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
        let stream = body.get("stream").and_then(Value::as_bool).unwrap_or_default();
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let key = request.header("x-api-key").or(bearer).map(str::to_owned);
        Some(Asked::new(model, stream, key))
    }

    fn heard(&self, body: &Value) -> Option<Heard> {
        Some(hearing::messages(body))
    }

    fn complete(&self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let (input, output) = answer.usage.unwrap_or_default();
        let content: Vec<Value> = answer.pieces.iter().map(block).collect();
        let usage = json!({"input_tokens": input, "output_tokens": output});
        let mut body = message(asked, &content, &usage);
        set(&mut body, "stop_reason", json!(answer.finish.as_deref().map(stop_reason)));
        body.to_string().into_bytes()
    }

    fn frames(&self, asked: &Asked, answer: &Answer) -> Vec<Frame> {
        let frame = |kind, bytes| Frame { kind, bytes };
        let (input, output) = answer.usage.unwrap_or_default();
        let start = message(asked, &[], &json!({"input_tokens": input, "output_tokens": 1}));
        let start = events(&[json!({"type": "message_start", "message": start}), json!({"type": "ping"})]);
        let mut frames = vec![frame(FrameKind::Start, start)];
        for (index, piece) in answer.pieces.iter().enumerate() {
            frames.push(frame(FrameKind::Content, piece_events(index, piece)));
        }
        if let Some(finish) = &answer.finish {
            let delta = json!({"type": "message_delta", "usage": {"output_tokens": output},
                               "delta": {"stop_reason": stop_reason(finish), "stop_sequence": null}});
            frames.push(frame(FrameKind::Finish, events(&[delta])));
        }
        frames.push(frame(FrameKind::Done, events(&[json!({"type": "message_stop"})])));
        frames
    }

    /// An event of the type `error`; its data names the type too.
    fn error_event(&self, error: &str) -> Vec<u8> {
        let mut value: Value = serde_json::from_str(error).unwrap_or_else(|_| json!({"error": error}));
        set(&mut value, "type", json!("error"));
        events(&[value])
    }
}

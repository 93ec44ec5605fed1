//! How an answer looks in a vendor's dialect.

use super::hearing;
use super::http::Request;
use super::step::{Answer, FrameKind, Piece};
use crate::provider::Heard;
use serde_json::{Value, json};

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The model.
    pub model: String,
    /// Whether the answer is wanted piece by piece.
    pub stream: bool,
    /// The key or token it came with.
    pub key: Option<String>,
}

impl Asked {
    /// What a request asks for, from its parts.
    pub fn new(model: impl Into<String>, stream: bool, key: Option<String>) -> Self {
        Self { model: model.into(), stream, key }
    }
}

/// One frame of a stream: what it is, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// What it is.
    pub kind: FrameKind,
    /// Its bytes, delimiters included.
    pub bytes: Vec<u8>,
}

impl Frame {
    /// A frame from its parts.
    pub fn new(kind: FrameKind, bytes: impl Into<Vec<u8>>) -> Self {
        Self { kind, bytes: bytes.into() }
    }

    /// A frame of a server-sent event stream.
    pub fn event(kind: FrameKind, data: &str) -> Self {
        Self { kind, bytes: format!("data: {data}\n\n").into_bytes() }
    }
}

/// How one vendor speaks: which requests are its own, and how an answer looks.
pub trait Dialect: Send + Sync {
    /// Reads a request; `None` where it belongs to another dialect.
    fn read(&self, request: &Request) -> Option<Asked>;

    /// The body of an answer that is not streamed.
    fn complete(&self, asked: &Asked, answer: &Answer) -> Vec<u8>;

    /// The frames of a streamed answer.
    fn frames(&self, asked: &Asked, answer: &Answer) -> Vec<Frame>;

    /// The content type of a streamed answer.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// What the body of a request says; `None` where this dialect does not read requests. With it, the conformance suite
    /// tries that mapping loses nothing.
    fn heard(&self, body: &Value) -> Option<Heard> {
        let _ = body;
        None
    }

    /// How an error looks inside a stream; `error` is its JSON.
    fn error_event(&self, error: &str) -> Vec<u8> {
        format!("data: {error}\n\n").into_bytes()
    }

    /// A frame inside a stream whose content breaks off.
    fn malformed_event(&self) -> Vec<u8> {
        b"data: {\"choices\":[{\n\n".to_vec()
    }

    /// What keeps a stream alive and says nothing.
    fn heartbeat(&self) -> Vec<u8> {
        b": ping\n\n".to_vec()
    }
}

/// OpenAI's chat completions, at any path that ends in `/chat/completions`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ChatCompletions;

impl ChatCompletions {
    fn chunk(asked: &Asked, choices: &Value) -> Value {
        json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000,
               "model": asked.model, "choices": choices})
    }

    fn delta(asked: &Asked, kind: FrameKind, delta: &Value, finish: Option<&str>) -> Frame {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        Frame::event(kind, &Self::chunk(asked, &choices).to_string())
    }
}

fn usage(counts: (u64, u64)) -> Value {
    json!({"prompt_tokens": counts.0, "completion_tokens": counts.1, "total_tokens": counts.0 + counts.1})
}

impl Dialect for ChatCompletions {
    fn read(&self, request: &Request) -> Option<Asked> {
        if request.method != "POST" || !request.path().ends_with("/chat/completions") {
            return None;
        }
        let body: Value = serde_json::from_slice(&request.body).ok()?;
        let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
        let stream = body.get("stream").and_then(Value::as_bool).unwrap_or_default();
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let key = bearer.or_else(|| request.header("api-key")).map(str::to_owned);
        Some(Asked::new(model, stream, key))
    }

    fn heard(&self, body: &Value) -> Option<Heard> {
        Some(hearing::chat(body))
    }

    fn complete(&self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let mut body = json!({"id": "chatcmpl-scripted", "object": "chat.completion", "created": 1_700_000_000,
                              "model": asked.model, "choices": []});
        if let Some(finish) = &answer.finish {
            let mut message = json!({"role": "assistant", "content": null});
            let mut texts = String::new();
            let mut reasoning = String::new();
            let mut calls = Vec::new();
            for piece in &answer.pieces {
                match piece {
                    Piece::Text(text) => texts.push_str(text),
                    Piece::Reasoning(text) => reasoning.push_str(text),
                    Piece::ToolCall { id, name, arguments } => calls.push(json!({
                        "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})),
                }
            }
            let fields = [
                ("content", !texts.is_empty(), json!(texts)),
                ("reasoning_content", !reasoning.is_empty(), json!(reasoning)),
                ("tool_calls", !calls.is_empty(), json!(calls)),
            ];
            for (name, _, value) in fields.into_iter().filter(|(_, present, _)| *present) {
                set(&mut message, name, value);
            }
            set(&mut body, "choices", json!([{"index": 0, "message": message, "finish_reason": finish}]));
        }
        if let Some(counts) = answer.usage {
            set(&mut body, "usage", usage(counts));
        }
        body.to_string().into_bytes()
    }

    fn frames(&self, asked: &Asked, answer: &Answer) -> Vec<Frame> {
        let mut frames =
            vec![Self::delta(asked, FrameKind::Start, &json!({"role": "assistant", "content": ""}), None)];
        let mut calls = 0;
        for piece in &answer.pieces {
            let delta = match piece {
                Piece::Text(text) => json!({"content": text}),
                Piece::Reasoning(text) => json!({"reasoning_content": text}),
                Piece::ToolCall { id, name, arguments } => {
                    calls += 1;
                    json!({"tool_calls": [{"index": calls - 1, "id": id, "type": "function",
                                           "function": {"name": name, "arguments": arguments}}]})
                }
            };
            frames.push(Self::delta(asked, FrameKind::Content, &delta, None));
        }
        if let Some(finish) = &answer.finish {
            frames.push(Self::delta(asked, FrameKind::Finish, &json!({}), Some(finish)));
        }
        if let Some(counts) = answer.usage {
            let mut chunk = Self::chunk(asked, &json!([]));
            set(&mut chunk, "usage", usage(counts));
            frames.push(Frame::event(FrameKind::Usage, &chunk.to_string()));
        }
        frames.push(Frame::event(FrameKind::Done, "[DONE]"));
        frames
    }
}

pub(super) fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

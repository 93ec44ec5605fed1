//! Ollama's chat API.

use super::dialect::{Asked, Dialect, Frame, set};
use super::hearing;
use super::http::Request;
use super::step::{Answer, FrameKind, Piece};
use crate::provider::Heard;
use serde_json::{Value, json};

/// Ollama's chat, at any path that ends in `/api/chat`: one JSON value a line.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OllamaChat;

/// The vendor's word for a finish reason of the OpenAI dialect: it has none for calls.
fn done_reason(word: &str) -> &str {
    if word == "tool_calls" { "stop" } else { word }
}

fn line(asked: &Asked, message: &Value) -> Value {
    json!({"model": asked.model, "created_at": "2026-01-01T00:00:00.000000Z", "message": message, "done": false})
}

fn said(pieces: &[Piece]) -> Value {
    let mut message = json!({"role": "assistant", "content": ""});
    let (mut texts, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Text(text) => texts.push_str(text),
            Piece::Reasoning(text) => thinking.push_str(text),
            Piece::ToolCall { id, name, arguments } => {
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
                calls.push(json!({"id": id, "function": {"name": name, "arguments": arguments}}));
            }
        }
    }
    set(&mut message, "content", json!(texts));
    if !thinking.is_empty() {
        set(&mut message, "thinking", json!(thinking));
    }
    if !calls.is_empty() {
        set(&mut message, "tool_calls", json!(calls));
    }
    message
}

fn end(body: &mut Value, finish: &str, answer: &Answer) {
    set(body, "done", json!(true));
    set(body, "done_reason", json!(done_reason(finish)));
    if let Some((input, output)) = answer.usage.filter(|_| !answer.without.contains(&FrameKind::Usage)) {
        set(body, "prompt_eval_count", json!(input));
        set(body, "eval_count", json!(output));
    }
}

impl Dialect for OllamaChat {
    fn read(&self, request: &Request) -> Option<Asked> {
        if request.method != "POST" || !request.path().ends_with("/api/chat") {
            return None;
        }
        let body: Value = serde_json::from_slice(&request.body).ok()?;
        let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
        // The vendor streams unless it is told not to.
        let stream = body.get("stream").and_then(Value::as_bool).unwrap_or(true);
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        Some(Asked::new(model, stream, bearer.map(str::to_owned)))
    }

    fn heard(&self, body: &Value) -> Option<Heard> {
        Some(hearing::ollama(body))
    }

    fn complete(&self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let mut body = line(asked, &said(&answer.pieces));
        if let Some(finish) = &answer.finish {
            end(&mut body, finish, answer);
        }
        body.to_string().into_bytes()
    }

    fn frames(&self, asked: &Asked, answer: &Answer) -> Vec<Frame> {
        let frame = |kind, value: &Value| Frame { kind, bytes: format!("{value}\n").into_bytes() };
        let mut frames: Vec<Frame> = answer
            .pieces
            .iter()
            .map(|piece| frame(FrameKind::Content, &line(asked, &said(std::slice::from_ref(piece)))))
            .collect();
        if let Some(finish) = &answer.finish {
            let mut last = line(asked, &said(&[]));
            end(&mut last, finish, answer);
            frames.push(frame(FrameKind::Finish, &last));
        }
        frames
    }

    fn stream_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn error_event(&self, error: &str) -> Vec<u8> {
        format!("{error}\n").into_bytes()
    }
}

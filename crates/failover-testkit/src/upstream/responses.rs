//! OpenAI's Responses API.

use super::dialect::{Asked, Dialect, Frame, set};
use super::hearing::{functions, list, parts, place, str_of, texts};
use super::http::Request;
use super::step::{Answer, FrameKind, Piece};
use crate::provider::{Heard, Said};
use serde_json::{Value, json};

/// OpenAI's responses, at any path that ends in `/responses`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Responses;

/// Status and the reason for an incomplete answer, from a finish reason of the chat completions dialect.
fn ending(finish: Option<&str>) -> (&str, Value) {
    match finish {
        None | Some("stop" | "tool_calls") => ("completed", Value::Null),
        Some("length") => ("incomplete", json!({"reason": "max_output_tokens"})),
        Some(other) => ("incomplete", json!({"reason": other})),
    }
}

fn item(at: usize, piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"type": "message", "id": format!("msg_{at}"), "status": "completed",
            "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        Piece::Reasoning(text) => json!({"type": "reasoning", "id": format!("rs_{at}"),
            "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "c2VhbGVk"}),
        Piece::ToolCall { id, name, arguments } => json!({"type": "function_call", "id": format!("fc_{at}"),
            "status": "completed", "call_id": id, "name": name, "arguments": arguments}),
    }
}

fn response(asked: &Asked, answer: &Answer, output: &[Value]) -> Value {
    let (status, details) = ending(answer.finish.as_deref());
    let mut body = json!({"id": "resp_scripted", "object": "response", "created_at": 1_700_000_000,
        "status": status, "error": null, "incomplete_details": details, "model": asked.model, "output": output});
    if let Some((input, generated)) = answer.usage {
        let usage =
            json!({"input_tokens": input, "output_tokens": generated, "total_tokens": input + generated});
        set(&mut body, "usage", usage);
    }
    body
}

/// Named events, as the API sends them: the type stands in both places.
fn events(values: &[Value]) -> Vec<u8> {
    let text = |value: &Value| {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {kind}\ndata: {value}\n\n")
    };
    values.iter().map(text).collect::<String>().into_bytes()
}

fn piece_events(at: usize, piece: &Piece) -> Vec<u8> {
    let done = item(at, piece);
    let id = done.get("id").cloned().unwrap_or_default();
    let event = |kind: &str, more: &[(&str, Value)]| {
        let mut event = json!({"type": kind, "output_index": at, "item_id": id});
        for (name, value) in more {
            set(&mut event, name, value.clone());
        }
        event
    };
    let mut added = done.clone();
    let (empty, deltas) = match piece {
        Piece::Text(text) => {
            let place = [("content_index", json!(0)), ("delta", json!(text))];
            let part = [("content_index", json!(0)), ("part", json!({"type": "output_text", "text": ""}))];
            (
                ("content", json!([])),
                vec![
                    event("response.content_part.added", &part),
                    event("response.output_text.delta", &place),
                ],
            )
        }
        Piece::Reasoning(text) => {
            let place = [("summary_index", json!(0)), ("delta", json!(text))];
            let part = [("summary_index", json!(0)), ("part", json!({"type": "summary_text", "text": ""}))];
            (
                ("summary", json!([])),
                vec![
                    event("response.reasoning_summary_part.added", &part),
                    event("response.reasoning_summary_text.delta", &place),
                ],
            )
        }
        Piece::ToolCall { arguments, .. } => (
            ("arguments", json!("")),
            vec![
                event("response.function_call_arguments.delta", &[("delta", json!(arguments))]),
                event("response.function_call_arguments.done", &[("arguments", json!(arguments))]),
            ],
        ),
    };
    set(&mut added, empty.0, empty.1);
    let mut values = vec![event("response.output_item.added", &[("item", added)])];
    values.extend(deltas);
    values.push(event("response.output_item.done", &[("item", done)]));
    events(&values)
}

impl Dialect for Responses {
    fn read(&self, request: &Request) -> Option<Asked> {
        if request.method != "POST" || !request.path().ends_with("/responses") {
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
        let mut heard = Heard::default();
        let mut calls = Vec::new();
        heard.system(str_of(body, "instructions"));
        for item in list(body, "input") {
            match str_of(item, "type") {
                "function_call" => {
                    calls.push(str_of(item, "call_id").to_owned());
                    let arguments = serde_json::from_str(str_of(item, "arguments")).unwrap_or_default();
                    heard.turns.push(Said::Call(str_of(item, "name").to_owned(), arguments));
                }
                "function_call_output" => {
                    let of = place(&calls, str_of(item, "call_id"));
                    heard.turns.push(Said::Result(of, texts(item.get("output"))));
                }
                _ if str_of(item, "role") == "system" => heard.system(&texts(item.get("content"))),
                _ => {
                    for part in parts(item.get("content")) {
                        if str_of(&part, "type") == "input_image" {
                            let url = str_of(&part, "image_url");
                            let data = url.split_once(";base64,").map_or(url, |(_, data)| data);
                            heard.turns.push(Said::Image(data.to_owned()));
                        } else {
                            heard.text(str_of(item, "role") == "user", str_of(&part, "text"));
                        }
                    }
                }
            }
        }
        functions(&mut heard, body);
        heard.temperature = body.get("temperature").and_then(Value::as_f64);
        heard.top_p = body.get("top_p").and_then(Value::as_f64);
        heard.max_tokens = body.get("max_output_tokens").and_then(Value::as_u64);
        Some(heard)
    }

    fn complete(&self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let output: Vec<Value> =
            answer.pieces.iter().enumerate().map(|(at, piece)| item(at, piece)).collect();
        response(asked, answer, &output).to_string().into_bytes()
    }

    /// The last event has the whole answer again, its counts included. There is no sentinel.
    fn frames(&self, asked: &Asked, answer: &Answer) -> Vec<Frame> {
        let mut created = response(asked, answer, &[]);
        set(&mut created, "status", json!("in_progress"));
        set(&mut created, "usage", Value::Null);
        let start = |kind: &str| json!({"type": kind, "response": created});
        let start = events(&[start("response.created"), start("response.in_progress")]);
        let mut frames = vec![Frame { kind: FrameKind::Start, bytes: start }];
        for (at, piece) in answer.pieces.iter().enumerate() {
            frames.push(Frame { kind: FrameKind::Content, bytes: piece_events(at, piece) });
        }
        if answer.finish.is_some() {
            let output: Vec<Value> =
                answer.pieces.iter().enumerate().map(|(at, piece)| item(at, piece)).collect();
            let (status, _) = ending(answer.finish.as_deref());
            let end = json!({"type": format!("response.{status}"),
                             "response": response(asked, answer, &output)});
            frames.push(Frame { kind: FrameKind::Finish, bytes: events(&[end]) });
        }
        frames
    }

    /// An event of the type `error`, whose fields stand at its top.
    fn error_event(&self, error: &str) -> Vec<u8> {
        let parsed: Value = serde_json::from_str(error).unwrap_or_else(|_| json!({"message": error}));
        let mut event = parsed.get("error").cloned().unwrap_or(parsed);
        set(&mut event, "type", json!("error"));
        events(&[event])
    }
}

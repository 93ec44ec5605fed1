//! The Converse API of Amazon Bedrock, its binary event stream included.

use super::dialect::{Asked, Dialect, Frame, set};
use super::hearing::{list, place, stops, str_of};
use super::http::{Request, unescape};
use super::step::{Answer, FrameKind, Piece};
use crate::provider::{Heard, Said};
use serde_json::{Value, json};

/// Bedrock's `converse` and `converse-stream`, at any path that ends in them. The model stands in the path.
///
/// Requests with a bearer token have that as their key. Signed ones have none: who wants their signature checked wraps
/// this dialect.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Converse;

/// The kind of a header's value that is a text.
const TEXT: u8 = 7;

/// The vendor's word for a finish reason of the OpenAI dialect.
fn stop_reason(word: &str) -> &str {
    match word {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "content_filtered",
        other => other,
    }
}

fn block(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"text": text}),
        Piece::Reasoning(text) => {
            json!({"reasoningContent": {"reasoningText": {"text": text, "signature": "c2lnbmVk"}}})
        }
        Piece::ToolCall { id, name, arguments } => {
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
        }
    }
}

fn usage(counts: (u64, u64)) -> Value {
    json!({"inputTokens": counts.0, "outputTokens": counts.1, "totalTokens": counts.0 + counts.1})
}

/// One frame: a length, the length of the headers, a checksum of both; headers; payload; a checksum of it all.
fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut written = Vec::new();
    for (name, value) in headers {
        written.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        written.extend_from_slice(name.as_bytes());
        written.push(TEXT);
        written.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        written.extend_from_slice(value.as_bytes());
    }
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = Vec::new();
    frame.extend_from_slice(&number(16 + written.len() + payload.len()));
    frame.extend_from_slice(&number(written.len()));
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&written);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

fn event(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
    frame(&headers, payload.as_bytes())
}

fn piece_events(at: usize, piece: &Piece) -> Vec<u8> {
    let delta = |delta: Value| {
        event("contentBlockDelta", &json!({"contentBlockIndex": at, "delta": delta}).to_string())
    };
    let mut bytes = match piece {
        Piece::Text(text) => delta(json!({"text": text})),
        Piece::Reasoning(text) => [
            delta(json!({"reasoningContent": {"text": text}})),
            delta(json!({"reasoningContent": {"signature": "c2lnbmVk"}})),
        ]
        .concat(),
        Piece::ToolCall { id, name, arguments } => {
            let start =
                json!({"contentBlockIndex": at, "start": {"toolUse": {"toolUseId": id, "name": name}}});
            [event("contentBlockStart", &start.to_string()), delta(json!({"toolUse": {"input": arguments}}))]
                .concat()
        }
    };
    bytes.extend(event("contentBlockStop", &json!({"contentBlockIndex": at}).to_string()));
    bytes
}

impl Dialect for Converse {
    fn read(&self, request: &Request) -> Option<Asked> {
        let (place, method) = request.path().rsplit_once('/')?;
        let stream = match method {
            "converse" => false,
            "converse-stream" => true,
            _ => return None,
        };
        let (_, model) = place.rsplit_once("/model/")?;
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        (request.method == "POST").then(|| Asked::new(unescape(model), stream, bearer.map(str::to_owned)))
    }

    fn heard(&self, body: &Value) -> Option<Heard> {
        let mut heard = Heard::default();
        let mut calls = Vec::new();
        for block in list(body, "system") {
            heard.system(str_of(block, "text"));
        }
        for message in list(body, "messages") {
            let user = str_of(message, "role") == "user";
            for block in list(message, "content") {
                if let Some(call) = block.get("toolUse") {
                    calls.push(str_of(call, "toolUseId").to_owned());
                    let input = call.get("input").cloned().unwrap_or_default();
                    heard.turns.push(Said::Call(str_of(call, "name").to_owned(), input));
                } else if let Some(result) = block.get("toolResult") {
                    let of = place(&calls, str_of(result, "toolUseId"));
                    let said: String =
                        list(result, "content").iter().map(|block| str_of(block, "text")).collect();
                    heard.turns.push(Said::Result(of, said));
                } else if let Some(image) = block.get("image") {
                    let source = image.get("source").unwrap_or(&Value::Null);
                    heard.turns.push(Said::Image(str_of(source, "bytes").to_owned()));
                } else {
                    heard.text(user, str_of(block, "text"));
                }
            }
        }
        let tools = body.get("toolConfig").unwrap_or(&Value::Null);
        for tool in list(tools, "tools").iter().filter_map(|tool| tool.get("toolSpec")) {
            let description = tool.get("description").and_then(Value::as_str).map(str::to_owned);
            let schema = tool.get("inputSchema").and_then(|schema| schema.get("json"));
            heard.tools.push((
                str_of(tool, "name").to_owned(),
                description,
                schema.cloned().unwrap_or_default(),
            ));
        }
        let config = body.get("inferenceConfig").unwrap_or(&Value::Null);
        heard.temperature = config.get("temperature").and_then(Value::as_f64);
        heard.top_p = config.get("topP").and_then(Value::as_f64);
        heard.max_tokens = config.get("maxTokens").and_then(Value::as_u64);
        heard.stop = stops(config.get("stopSequences"));
        Some(heard)
    }

    fn complete(&self, _: &Asked, answer: &Answer) -> Vec<u8> {
        let content: Vec<Value> = answer.pieces.iter().map(block).collect();
        let mut body = json!({"output": {"message": {"role": "assistant", "content": content}},
                              "metrics": {"latencyMs": 1}});
        if let Some(finish) = &answer.finish {
            set(&mut body, "stopReason", json!(stop_reason(finish)));
        }
        if let Some(counts) = answer.usage {
            set(&mut body, "usage", usage(counts));
        }
        body.to_string().into_bytes()
    }

    fn frames(&self, _: &Asked, answer: &Answer) -> Vec<Frame> {
        let make = |kind, bytes| Frame { kind, bytes };
        let mut frames = vec![make(FrameKind::Start, event("messageStart", "{\"role\":\"assistant\"}"))];
        for (at, piece) in answer.pieces.iter().enumerate() {
            frames.push(make(FrameKind::Content, piece_events(at, piece)));
        }
        if let Some(finish) = &answer.finish {
            let stop = json!({"stopReason": stop_reason(finish)}).to_string();
            frames.push(make(FrameKind::Finish, event("messageStop", &stop)));
        }
        if let Some(counts) = answer.usage {
            let counts = json!({"usage": usage(counts), "metrics": {"latencyMs": 1}}).to_string();
            frames.push(make(FrameKind::Usage, event("metadata", &counts)));
        }
        frames
    }

    fn stream_type(&self) -> &'static str {
        "application/vnd.amazon.eventstream"
    }

    /// An exception; its `__type` names it, as it does in the body of a refusal.
    fn error_event(&self, error: &str) -> Vec<u8> {
        let value: Value = serde_json::from_str(error).unwrap_or_else(|_| json!({"message": error}));
        let kind = value.get("__type").and_then(Value::as_str).unwrap_or("modelStreamErrorException");
        let mut letters = kind.chars();
        let first = letters.next().map(|first| first.to_ascii_lowercase());
        let kind: String = first.into_iter().chain(letters).collect();
        let headers = [(":exception-type", kind.as_str()), (":message-type", "exception")];
        frame(&headers, value.to_string().as_bytes())
    }

    fn malformed_event(&self) -> Vec<u8> {
        event("contentBlockDelta", "{\"contentBlockIndex\":0,\"del")
    }

    fn heartbeat(&self) -> Vec<u8> {
        event("ping", "{}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of the event stream's published encoding: `{'foo':'bar'}` with a header `content-type: application/json`
    /// has these two checksums.
    #[test]
    fn frames_have_the_published_form() {
        let bytes = frame(&[("content-type", "application/json")], b"{'foo':'bar'}");
        let start = [0, 0, 0, 0x3d, 0, 0, 0, 0x20, 0x07, 0xfd, 0x83, 0x96];
        assert_eq!(bytes.get(..12), Some(start.as_slice()));
        assert_eq!(bytes.get(bytes.len() - 4..), Some([0x8d, 0x9c, 0x08, 0xb1].as_slice()));
    }
}

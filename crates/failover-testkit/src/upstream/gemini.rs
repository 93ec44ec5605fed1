//! Google's Gemini API, as the Gemini API itself and Vertex AI serve it.

use super::dialect::{Asked, Dialect, Frame, set};
use super::http::{Request, unescape};
use super::step::{Answer, FrameKind, Piece};
use serde_json::{Value, json};

/// Gemini's `generateContent`, at any path that ends in it. The model and the wish for a stream stand in the path.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Gemini;

/// The vendor's word for a finish reason of the OpenAI dialect. Calls have none of their own.
fn finish_reason(word: &str) -> &str {
    match word {
        "stop" | "tool_calls" => "STOP",
        "length" => "MAX_TOKENS",
        "content_filter" => "SAFETY",
        other => other,
    }
}

fn part(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"text": text}),
        Piece::Reasoning(text) => json!({"text": text, "thought": true, "thoughtSignature": "c2lnbmVk"}),
        // The API gives no ids to calls of most models.
        Piece::ToolCall { name, arguments, .. } => {
            let args = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"functionCall": {"name": name, "args": args}})
        }
    }
}

fn body(asked: &Asked, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        set(&mut candidate, "finishReason", json!(finish_reason(finish)));
    }
    json!({"candidates": [candidate], "modelVersion": asked.model, "responseId": "scripted"})
}

fn count(body: &mut Value, counts: Option<(u64, u64)>) {
    if let Some((input, output)) = counts {
        let usage = json!({"promptTokenCount": input, "candidatesTokenCount": output,
                           "totalTokenCount": input + output});
        set(body, "usageMetadata", usage);
    }
}

impl Dialect for Gemini {
    fn read(&self, request: &Request) -> Option<Asked> {
        let (place, method) = request.path().rsplit_once(':')?;
        let stream = match method {
            "generateContent" => false,
            "streamGenerateContent" => true,
            _ => return None,
        };
        let model = place.split_once("/models/").map_or(place, |(_, model)| model);
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let key = request.header("x-goog-api-key").or(bearer).map(str::to_owned);
        (request.method == "POST").then(|| Asked::new(unescape(model), stream, key))
    }

    fn complete(&self, asked: &Asked, answer: &Answer) -> Vec<u8> {
        let parts: Vec<Value> = answer.pieces.iter().map(part).collect();
        let mut body = body(asked, &parts, answer.finish.as_deref());
        if answer.finish.is_none() {
            set(&mut body, "candidates", json!([]));
        }
        count(&mut body, answer.usage);
        body.to_string().into_bytes()
    }

    /// One event a piece; the last one has the finish reason and the counts. There is no sentinel.
    fn frames(&self, asked: &Asked, answer: &Answer) -> Vec<Frame> {
        let mut frames: Vec<Frame> = answer
            .pieces
            .iter()
            .map(|piece| Frame::event(FrameKind::Content, &body(asked, &[part(piece)], None).to_string()))
            .collect();
        let last = answer.finish.as_deref();
        let mut end = body(asked, &[json!({"text": ""})], last);
        if last.is_none() {
            set(&mut end, "candidates", json!([]));
        }
        count(&mut end, answer.usage);
        frames.push(Frame::event(FrameKind::Finish, &end.to_string()));
        frames
    }
}

//! Google's Gemini API, as the Gemini API itself and Vertex AI serve it.

use super::dialect::{Asked, Dialect, Frame, set};
use super::hearing::{list, stops, str_of};
use super::http::{Request, unescape};
use super::step::{Answer, FrameKind, Piece};
use crate::provider::{Heard, Said};
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

    fn heard(&self, body: &Value) -> Option<Heard> {
        let mut heard = Heard::default();
        for part in list(body.get("systemInstruction").unwrap_or(&Value::Null), "parts") {
            heard.system(str_of(part, "text"));
        }
        // Calls by id where there is one, and those that no result has come for.
        let mut calls: Vec<(String, String, bool)> = Vec::new();
        for content in list(body, "contents") {
            let user = str_of(content, "role") == "user";
            for part in list(content, "parts") {
                if let Some(call) = part.get("functionCall") {
                    let name = str_of(call, "name").to_owned();
                    calls.push((str_of(call, "id").to_owned(), name.clone(), false));
                    heard.turns.push(Said::Call(name, call.get("args").cloned().unwrap_or_default()));
                } else if let Some(result) = part.get("functionResponse") {
                    let (id, name) = (str_of(result, "id"), str_of(result, "name"));
                    let fits = |(own, called, answered): &(String, String, bool)| {
                        own == id && called == name && !*answered
                    };
                    let of = calls.iter().position(fits);
                    if let Some(call) = of.and_then(|at| calls.get_mut(at)) {
                        call.2 = true;
                    }
                    let response = result.get("response").cloned().unwrap_or_default();
                    let text = response.get("output").and_then(Value::as_str).map(str::to_owned);
                    let text = text.unwrap_or_else(|| response.to_string());
                    heard.turns.push(Said::Result(of, text.replace('\n', "")));
                } else if let Some(image) = part.get("inlineData") {
                    heard.turns.push(Said::Image(str_of(image, "data").to_owned()));
                } else {
                    heard.text(user, str_of(part, "text"));
                }
            }
        }
        for tool in list(body, "tools").iter().flat_map(|tools| list(tools, "functionDeclarations")) {
            let description = tool.get("description").and_then(Value::as_str).map(str::to_owned);
            let schema = tool.get("parametersJsonSchema").cloned().unwrap_or_default();
            heard.tools.push((str_of(tool, "name").to_owned(), description, schema));
        }
        let config = body.get("generationConfig").unwrap_or(&Value::Null);
        heard.temperature = config.get("temperature").and_then(Value::as_f64);
        heard.top_p = config.get("topP").and_then(Value::as_f64);
        heard.max_tokens = config.get("maxOutputTokens").and_then(Value::as_u64);
        heard.stop = stops(config.get("stopSequences"));
        Some(heard)
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

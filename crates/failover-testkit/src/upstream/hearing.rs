//! What requests in the vendors' words say.

use crate::provider::{Heard, Said};
use serde_json::Value;

pub(super) fn str_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn stops(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// A content that is a text, or a list of parts, as a list of parts.
pub(super) fn parts(content: Option<&Value>) -> Vec<Value> {
    match content {
        Some(Value::String(text)) => vec![serde_json::json!({"type": "text", "text": text})],
        Some(Value::Array(parts)) => parts.clone(),
        _ => Vec::new(),
    }
}

pub(super) fn texts(content: Option<&Value>) -> String {
    parts(content).iter().map(|part| str_of(part, "text").replace('\n', "")).collect()
}

/// Adds the functions of a `tools` list of the OpenAI kind.
pub(super) fn functions(heard: &mut Heard, body: &Value) {
    for tool in list(body, "tools") {
        let function = tool.get("function").unwrap_or(tool);
        let description = function.get("description").and_then(Value::as_str).map(str::to_owned);
        let schema = function.get("parameters").cloned().unwrap_or_default();
        heard.tools.push((str_of(function, "name").to_owned(), description, schema));
    }
}

pub(super) fn place(calls: &[String], id: &str) -> Option<usize> {
    calls.iter().position(|known| known == id)
}

/// Chat completions.
pub(super) fn chat(body: &Value) -> Heard {
    let mut heard = Heard::default();
    let mut calls = Vec::new();
    for message in list(body, "messages") {
        let role = str_of(message, "role");
        let content = message.get("content");
        match role {
            "system" | "developer" => heard.system(&texts(content)),
            "tool" => {
                let of = place(&calls, str_of(message, "tool_call_id"));
                heard.turns.push(Said::Result(of, texts(content)));
            }
            _ => {
                for part in parts(content) {
                    match part.get("image_url").map(|image| str_of(image, "url")) {
                        Some(url) => {
                            let data = url.split_once(";base64,").map_or(url, |(_, data)| data);
                            heard.turns.push(Said::Image(data.to_owned()));
                        }
                        None => heard.text(role == "user", str_of(&part, "text")),
                    }
                }
            }
        }
        for call in list(message, "tool_calls") {
            calls.push(str_of(call, "id").to_owned());
            let function = call.get("function").unwrap_or(call);
            let arguments = serde_json::from_str(str_of(function, "arguments")).unwrap_or_default();
            heard.turns.push(Said::Call(str_of(function, "name").to_owned(), arguments));
        }
    }
    functions(&mut heard, body);
    heard.temperature = body.get("temperature").and_then(Value::as_f64);
    heard.top_p = body.get("top_p").and_then(Value::as_f64);
    let bound = body.get("max_completion_tokens").or_else(|| body.get("max_tokens"));
    heard.max_tokens = bound.and_then(Value::as_u64);
    heard.stop = stops(body.get("stop"));
    heard
}

/// The Messages API demands a bound. From here on it is one that nobody asked for.
const MESSAGES_DEFAULT: u64 = 4096;

/// Anthropic's messages.
pub(super) fn messages(body: &Value) -> Heard {
    let mut heard = Heard::default();
    let mut calls = Vec::new();
    heard.system(&texts(body.get("system")));
    for message in list(body, "messages") {
        let user = str_of(message, "role") == "user";
        for block in parts(message.get("content")) {
            match str_of(&block, "type") {
                "text" => heard.text(user, str_of(&block, "text")),
                "image" => {
                    let source = block.get("source").unwrap_or(&Value::Null);
                    heard.turns.push(Said::Image(str_of(source, "data").to_owned()));
                }
                "tool_use" => {
                    calls.push(str_of(&block, "id").to_owned());
                    let input = block.get("input").cloned().unwrap_or_default();
                    heard.turns.push(Said::Call(str_of(&block, "name").to_owned(), input));
                }
                "tool_result" => {
                    let of = place(&calls, str_of(&block, "tool_use_id"));
                    heard.turns.push(Said::Result(of, texts(block.get("content"))));
                }
                _ => {}
            }
        }
    }
    for tool in list(body, "tools") {
        let description = tool.get("description").and_then(Value::as_str).map(str::to_owned);
        let schema = tool.get("input_schema").cloned().unwrap_or_default();
        heard.tools.push((str_of(tool, "name").to_owned(), description, schema));
    }
    heard.temperature = body.get("temperature").and_then(Value::as_f64);
    heard.top_p = body.get("top_p").and_then(Value::as_f64);
    heard.max_tokens =
        body.get("max_tokens").and_then(Value::as_u64).filter(|bound| *bound < MESSAGES_DEFAULT);
    heard.stop = stops(body.get("stop_sequences"));
    heard
}

/// Ollama's chat.
pub(super) fn ollama(body: &Value) -> Heard {
    let mut heard = Heard::default();
    let mut calls = Vec::new();
    for message in list(body, "messages") {
        let (role, content) = (str_of(message, "role"), str_of(message, "content"));
        match role {
            "system" => heard.system(content),
            "tool" => {
                let of = place(&calls, str_of(message, "tool_call_id"));
                heard.turns.push(Said::Result(of, content.replace('\n', "")));
            }
            _ => heard.text(role == "user", content),
        }
        for image in list(message, "images").iter().filter_map(Value::as_str) {
            heard.turns.push(Said::Image(image.to_owned()));
        }
        for call in list(message, "tool_calls") {
            calls.push(str_of(call, "id").to_owned());
            let function = call.get("function").unwrap_or(call);
            let arguments = function.get("arguments").cloned().unwrap_or_default();
            heard.turns.push(Said::Call(str_of(function, "name").to_owned(), arguments));
        }
    }
    functions(&mut heard, body);
    let options = body.get("options").unwrap_or(&Value::Null);
    heard.temperature = options.get("temperature").and_then(Value::as_f64);
    heard.top_p = options.get("top_p").and_then(Value::as_f64);
    heard.max_tokens = options.get("num_predict").and_then(Value::as_u64);
    heard.stop = stops(options.get("stop"));
    heard
}

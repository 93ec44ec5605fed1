//! A request for chat completions.

use super::{DIALECT, FORMAT};
use crate::dialect::carry::{self, history, parameter};
use crate::dialect::read::{self, Kind, Open, TextOr, required, typed};
use crate::dialect::shared::{self, Function, Shaped};
use crate::dialect::{BadRequest, HintKind, Inbound, SessionHint};
use bytes::Bytes;
use failover_provider::{
    Bound, ChatRequest, File, Image, Json, Message, Native, Opaque, Part, ResponseFormat, Role, Tool,
    ToolCall, ToolChoice, ToolResult,
};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<Vec<Open<Turn<'a>>>>,
    tools: Option<Vec<&'a RawValue>>,
    tool_choice: Option<&'a RawValue>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    stop: Option<TextOr<Vec<String>>>,
    response_format: Option<&'a RawValue>,
    reasoning_effort: Option<String>,
    reasoning: Option<&'a RawValue>,
    stream: Option<bool>,
    #[serde(default, borrow, deserialize_with = "read::written")]
    stream_options: Option<&'a RawValue>,
    user: Option<String>,
    prompt_cache_key: Option<String>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// A message.
#[derive(Deserialize)]
struct Turn<'a> {
    role: Option<String>,
    #[serde(borrow)]
    content: Option<TextOr<Vec<&'a RawValue>>>,
    refusal: Option<String>,
    tool_calls: Option<Vec<&'a RawValue>>,
    tool_call_id: Option<String>,
    function_call: Option<Function>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    reasoning_details: Option<Vec<Json>>,
}

#[derive(Deserialize)]
struct Text {
    text: Option<String>,
}

#[derive(Deserialize)]
struct Thinking {
    thinking: Option<Vec<Text>>,
}

#[derive(Deserialize)]
struct Refusal {
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct ImagePart {
    image_url: Option<TextOr<ImageUrl>>,
}

#[derive(Deserialize)]
struct ImageUrl {
    url: Option<String>,
    detail: Option<String>,
}

#[derive(Deserialize)]
struct FilePart {
    file: Option<FileIn>,
}

#[derive(Deserialize)]
struct FileIn {
    filename: Option<String>,
    file_data: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    r#type: Option<String>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct ToolIn {
    r#type: Option<String>,
    function: Option<shared::FunctionTool>,
}

#[derive(Deserialize)]
struct Choice {
    r#type: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Format {
    r#type: Option<String>,
    json_schema: Option<Shaped>,
}

#[derive(Deserialize)]
struct Nested {
    effort: Option<String>,
}

#[derive(Deserialize)]
struct Detail {
    format: Option<String>,
    data: Option<String>,
}

/// Reads a request.
pub(in crate::dialect) fn parse(bytes: &Bytes) -> Result<Inbound, BadRequest> {
    let Open { known, extra } = read::body::<Request<'_>>(bytes)?;
    let (model, place) = read::model(known.model)?;
    let mut messages = Messages::default();
    for (at, turn) in required(known.messages, "messages")?.into_iter().enumerate() {
        messages.take(turn).map_err(|bad| bad.under(&format!("messages[{at}]")))?;
    }
    if messages.done.is_empty() {
        return Err(BadRequest::new("is empty").at("messages").hint("send at least one message"));
    }
    let mut request = ChatRequest::new(messages.done);
    let mut foreign = Vec::new();
    for (at, raw) in known.tools.unwrap_or_default().into_iter().enumerate() {
        match tool(raw).map_err(|bad| bad.under(&format!("tools[{at}]")))? {
            Some(tool) => request.tools.push(tool),
            None => foreign.push(raw),
        }
    }
    if !foreign.is_empty() {
        request.opaque.extend(read::json_of(&foreign).map(|json| parameter(DIALECT, "tools", json)));
    }
    match known.tool_choice.map(|raw| (raw, serde_json::from_str::<String>(raw.get()))) {
        None => {}
        Some((_, Ok(word))) => request.tool_choice = Some(shared::tool_choice(&word)?),
        Some((raw, Err(_))) => {
            let choice = typed::<Choice>(raw.get()).map_err(|bad| bad.under("tool_choice"))?;
            match (choice.r#type.as_deref(), choice.function.and_then(|function| function.name)) {
                (Some("function") | None, Some(name)) => request.tool_choice = Some(ToolChoice::Named(name)),
                (Some("function") | None, None) => {
                    return Err(BadRequest::new("is missing").at("tool_choice.function.name"));
                }
                _ => request.opaque.extend(keep("tool_choice", raw)),
            }
        }
    }
    request.temperature = known.temperature;
    request.top_p = known.top_p;
    request.max_tokens = known.max_completion_tokens.or(known.max_tokens);
    request.stop = match known.stop {
        None => Vec::new(),
        Some(TextOr::Text(one)) => vec![one],
        Some(TextOr::Other(many)) => many,
    };
    if let Some(raw) = known.response_format {
        let format = typed::<Format>(raw.get()).map_err(|bad| bad.under("response_format"))?;
        match (format.r#type.as_deref(), format.json_schema) {
            (Some("text"), _) => {}
            (Some("json_object"), _) => request.response_format = Some(ResponseFormat::JsonObject),
            (Some("json_schema"), Some(schema)) => {
                let format = schema.format().map_err(|bad| bad.under("response_format.json_schema"))?;
                request.response_format = Some(format);
            }
            (Some("json_schema"), None) => {
                return Err(BadRequest::new("is missing").at("response_format.json_schema"));
            }
            _ => request.opaque.extend(keep("response_format", raw)),
        }
    }
    if let Some(word) = known.reasoning_effort {
        request.effort = shared::effort(&word);
        if request.effort.is_none() {
            let json = read::json_of(&word);
            request.opaque.extend(json.map(|json| parameter(DIALECT, "reasoning_effort", json)));
        }
    }
    if let Some(raw) = known.reasoning {
        let nested = typed::<Nested>(raw.get()).ok().and_then(|nested| nested.effort);
        let effort = nested.as_deref().and_then(shared::effort);
        let translated = effort.is_some() && read::has_only(raw, &["effort"]);
        request.effort = request.effort.or(effort);
        request.opaque.extend(keep("reasoning", raw).map(|own| own.translated(translated)));
    }
    request.stream = known.stream.unwrap_or_default();
    let include_usage = known.stream_options.map(include_usage).transpose()?.unwrap_or_default();
    let hints =
        [(HintKind::PromptCacheKey, known.prompt_cache_key.clone()), (HintKind::User, known.user.clone())];
    for (name, value) in [("user", known.user), ("prompt_cache_key", known.prompt_cache_key)] {
        let json = value.as_ref().and_then(read::json_of);
        request.opaque.extend(json.map(|json| parameter(DIALECT, name, json)));
    }
    let said = extra.into_iter().filter(|(_, value)| value.as_str() != "null");
    request.opaque.extend(said.map(|(name, value)| parameter(DIALECT, &name, value)));
    request.bound = messages.bound.map(|by| Bound::new(DIALECT, by));
    if !messages.carried {
        request.native = Some(Native::new(DIALECT, bytes.clone()).with_places(place, known.stream_options));
    }
    Ok(Inbound {
        model,
        stream: request.stream,
        include_usage,
        session_hint: SessionHint::narrowest(hints),
        request,
    })
}

fn include_usage(raw: &RawValue) -> Result<bool, BadRequest> {
    let options = typed::<Option<StreamOptions>>(raw.get()).map_err(|bad| bad.under("stream_options"))?;
    Ok(options.and_then(|options| options.include_usage).unwrap_or_default())
}

fn keep(name: &str, raw: &RawValue) -> Option<Opaque> {
    Some(parameter(DIALECT, name, Json::parse(raw.get()).ok()?))
}

fn tool(raw: &RawValue) -> Result<Option<Tool>, BadRequest> {
    let tool = typed::<ToolIn>(raw.get())?;
    match (tool.r#type.as_deref(), tool.function) {
        (Some("function") | None, Some(function)) => function.tool("function.").map(Some),
        (Some("function"), None) => Err(BadRequest::new("is missing").at("function")),
        _ => Ok(None),
    }
}

/// Gathers messages.
#[derive(Default)]
struct Messages {
    done: Vec<Message>,
    /// Something came that another answer of ours had brought the client: the body must not be passed on as it is.
    carried: bool,
    /// What refers to something that a provider stores.
    bound: Option<&'static str>,
}

impl Messages {
    fn take(&mut self, turn: Open<Turn<'_>>) -> Result<(), BadRequest> {
        let Open { known: turn, extra } = turn;
        let role = required(turn.role.as_deref(), "role")?;
        let role = match role {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            other => {
                return Err(BadRequest::new(format!("there is no role {:?}", read::cut(other)))
                    .at("role")
                    .hint("use system, developer, user, assistant or tool"));
            }
        };
        let named = turn.content.as_ref().is_some();
        let mut content = self.content(turn.content)?;
        if role == Role::Tool {
            // The old form names the function instead of the call.
            let name = extra.iter().find(|(name, _)| name == "name");
            let name = name.and_then(|(_, name)| typed::<String>(name.as_str()).ok());
            let mut result = ToolResult::text(required(turn.tool_call_id.or(name), "tool_call_id")?, "");
            result.parts = content;
            self.done.push(Message::new(role, vec![Part::ToolResult(result)]));
            return Ok(());
        }
        // Under its other name it is not passed on: who wants it back wants the first.
        self.carried |= turn.reasoning.is_some();
        let text = turn.reasoning_content.or(turn.reasoning).filter(|text| !text.is_empty());
        let mut parts = self.reasoning(text.unwrap_or_default(), turn.reasoning_details.unwrap_or_default());
        parts.append(&mut content);
        parts.extend(turn.refusal.filter(|text| !text.is_empty()).map(Part::Text));
        let calls = turn.tool_calls.unwrap_or_default();
        for (at, raw) in calls.into_iter().enumerate() {
            parts.push(call(raw).map_err(|bad| bad.under(&format!("tool_calls[{at}]")))?);
        }
        if let Some(function) = turn.function_call {
            let name = required(function.name, "function_call.name")?;
            parts.push(Part::ToolCall(ToolCall::new(
                name.clone(),
                name,
                shared::arguments(function.arguments),
            )));
        }
        for (name, value) in extra {
            // Answers say that there is nothing, too.
            if matches!(value.as_str(), "null" | "[]") {
                continue;
            }
            // What the model said is bound to who it was; `name` says who speaks.
            let said = role == Role::Assistant && name != "name";
            if said && name == "audio" {
                self.bound = Some("audio");
            }
            let home = if said { history } else { parameter };
            parts.push(Part::Opaque(home(DIALECT, &name, value)));
        }
        if parts.is_empty() && !named && role != Role::Assistant {
            return Err(BadRequest::new("is missing").at("content"));
        }
        self.done.push(Message::new(role, parts));
        Ok(())
    }

    fn content(&mut self, content: Option<TextOr<Vec<&RawValue>>>) -> Result<Vec<Part>, BadRequest> {
        match content {
            None => Ok(Vec::new()),
            Some(TextOr::Text(text)) => Ok(vec![Part::Text(text)]),
            Some(TextOr::Other(parts)) => parts
                .into_iter()
                .enumerate()
                .map(|(at, raw)| {
                    let part = part(raw).map_err(|bad| bad.under(&format!("content[{at}]")))?;
                    if matches!(&part, Part::Opaque(own) if read::names_file(raw, &own.name)) {
                        self.bound = Some("file_id");
                    }
                    Ok(part)
                })
                .collect(),
        }
    }

    fn reasoning(&mut self, text: String, details: Vec<Json>) -> Vec<Part> {
        let mut items = Vec::new();
        let mut proof = None;
        let mut own = Vec::new();
        for json in details {
            let detail = typed::<Detail>(json.as_str()).ok();
            let (format, data) = detail.map(|detail| (detail.format, detail.data)).unwrap_or_default();
            match (format.as_deref(), data) {
                (Some(FORMAT), Some(data)) => {
                    self.carried = true;
                    match carry::unwrap_item(&data) {
                        Some(item) => items.push(Part::Opaque(item)),
                        None => proof = carry::unwrap(&data),
                    }
                }
                _ => own.push(json),
            }
        }
        if !own.is_empty() {
            let details = read::json_of(&own);
            proof = proof.or(details.map(|json| history(DIALECT, "reasoning_details", json)));
        }
        if proof.is_none() && !text.is_empty() {
            // A text proves itself; servers that want it back want it as it was.
            proof = read::json_of(&text).map(|json| parameter(DIALECT, "reasoning_content", json));
        }
        let mut parts = Vec::new();
        if proof.is_some() || !text.is_empty() {
            parts.push(Part::Reasoning { text, proof });
        }
        parts.append(&mut items);
        parts
    }
}

fn part(raw: &RawValue) -> Result<Part, BadRequest> {
    let kind = required(typed::<Kind>(raw.get())?.r#type, "type")?;
    Ok(match kind.as_str() {
        "text" => Part::Text(required(typed::<Text>(raw.get())?.text, "text")?),
        "refusal" => Part::Text(required(typed::<Refusal>(raw.get())?.refusal, "refusal")?),
        "image_url" => {
            let part = typed::<ImagePart>(raw.get())?;
            let (url, detail) = match required(part.image_url, "image_url")? {
                TextOr::Text(url) => (url, None),
                TextOr::Other(image) => (required(image.url, "image_url.url")?, image.detail),
            };
            let mut image = Image::new(shared::image_source(url));
            image.detail = detail;
            Part::Image(image)
        }
        "file" => {
            let file = typed::<FilePart>(raw.get())?.file;
            match file.and_then(|file| Some((file.file_data?, file.filename))) {
                Some((data, name)) => Part::File(File::written(data, name)),
                // One that its provider stores.
                None => Part::Opaque(required(keep(&kind, raw), "type")?),
            }
        }
        // Mistral has a text of its own there.
        "input_audio" => match typed::<shared::Recording>(raw.get()) {
            Ok(recording) => Part::File(recording.file()?),
            Err(_) => Part::Opaque(required(keep(&kind, raw), "type")?),
        },
        // Mistral's: what the model thought, to be sent back as it was.
        "thinking" => Part::Reasoning {
            text: typed::<Thinking>(raw.get())?
                .thinking
                .into_iter()
                .flatten()
                .filter_map(|it| it.text)
                .collect(),
            proof: keep(&kind, raw),
        },
        _ => Part::Opaque(required(keep(&kind, raw), "type")?),
    })
}

fn call(raw: &RawValue) -> Result<Part, BadRequest> {
    let call = typed::<Call>(raw.get())?;
    match (call.r#type.as_deref(), call.function) {
        (Some("function") | None, Some(function)) => Ok(Part::ToolCall(ToolCall::new(
            required(call.id, "id")?,
            required(function.name, "function.name")?,
            shared::arguments(function.arguments),
        ))),
        (Some("function") | None, None) => Err(BadRequest::new("is missing").at("function")),
        (Some(kind), _) => required(keep(kind, raw), "type").map(Part::Opaque),
    }
}

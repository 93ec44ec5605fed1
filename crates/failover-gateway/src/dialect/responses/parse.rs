//! A request for a response.

use super::DIALECT;
use crate::dialect::carry::{self, history, parameter};
use crate::dialect::read::{self, Kind, Open, TextOr, cut, required, typed};
use crate::dialect::shared::{self, FunctionTool, Shaped};
use crate::dialect::{BadRequest, HintKind, Inbound, SessionHint};
use bytes::Bytes;
use failover_provider::{
    Bound, ChatRequest, File, FileSource, Home, Image, Json, Message, Native, Opaque, Part, ResponseFormat,
    Role, Tool, ToolCall, ToolChoice, ToolResult,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// An item that only names one which the provider stores.
const REFERENCE: &str = "item_reference";
/// Parameters that have to do with what the provider stores: a template, an answer that is made without its client.
const STORED: [&str; 2] = ["prompt", "background"];

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<TextOr<Vec<&'a RawValue>>>,
    instructions: Option<String>,
    tools: Option<Vec<&'a RawValue>>,
    tool_choice: Option<&'a RawValue>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_output_tokens: Option<u64>,
    text: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
    stream: Option<bool>,
    user: Option<String>,
    prompt_cache_key: Option<String>,
    previous_response_id: Option<String>,
    conversation: Option<TextOr<Conversation>>,
}

#[derive(Deserialize)]
struct Conversation {
    id: Option<String>,
}

#[derive(Deserialize)]
struct ItemKind {
    r#type: Option<String>,
    role: Option<String>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow)]
    content: Option<TextOr<Vec<&'a RawValue>>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(rename = "call_id")]
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Json>,
}

#[derive(Deserialize)]
struct Output<'a> {
    call_id: Option<String>,
    #[serde(borrow)]
    output: Option<TextOr<Vec<&'a RawValue>>>,
}

#[derive(Deserialize)]
struct Reasoning {
    summary: Option<Vec<Piece>>,
    content: Option<Vec<Piece>>,
    encrypted_content: Option<String>,
}

/// Content that has a text.
#[derive(Deserialize)]
struct Piece {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct ImagePart {
    image_url: Option<String>,
    detail: Option<String>,
}

#[derive(Deserialize)]
struct FilePart {
    filename: Option<String>,
    file_data: Option<String>,
    file_url: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    r#type: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    format: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Effort {
    effort: Option<String>,
}

/// Reads a request.
pub(in crate::dialect) fn parse(bytes: &Bytes) -> Result<Inbound, BadRequest> {
    let Open { known, extra } = read::body::<Request<'_>>(bytes)?;
    let (model, place) = read::model(known.model)?;
    let mut items = Items::default();
    if let Some(text) = known.instructions {
        items.done.push(Message::text(Role::System, text));
    }
    let before = items.done.len();
    match known.input {
        Some(TextOr::Text(text)) => items.done.push(Message::text(Role::User, text)),
        Some(TextOr::Other(many)) => {
            for (at, raw) in many.into_iter().enumerate() {
                items.take(raw).map_err(|bad| bad.under(&format!("input[{at}]")))?;
            }
        }
        None => {}
    }
    // What a provider remembers may be all there is.
    let remembered = known.previous_response_id.is_some() || known.conversation.is_some();
    if items.done.len() == before && !remembered {
        return Err(BadRequest::new("is missing or empty")
            .at("input")
            .hint("send a string or a list of at least one item"));
    }
    let mut request = ChatRequest::new(items.done);
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
            let choice = typed::<Named>(raw.get()).map_err(|bad| bad.under("tool_choice"))?;
            if choice.r#type.as_deref() == Some("function") {
                let name = required(choice.name, "tool_choice.name")?;
                request.tool_choice = Some(ToolChoice::Named(name));
            } else {
                request.opaque.extend(keep("tool_choice", raw));
            }
        }
    }
    request.temperature = known.temperature;
    request.top_p = known.top_p;
    request.max_tokens = known.max_output_tokens;
    request.stream = known.stream.unwrap_or_default();
    if let Some(raw) = known.text {
        request.response_format = format(raw).map_err(|bad| bad.under("text"))?;
        request.opaque.extend(keep("text", raw).map(|own| own.translated(read::has_only(raw, &["format"]))));
    }
    if let Some(raw) = known.reasoning {
        let word = typed::<Effort>(raw.get()).map_err(|bad| bad.under("reasoning"))?.effort;
        request.effort = word.as_deref().and_then(shared::effort);
        let translated = word.is_some() == request.effort.is_some() && read::has_only(raw, &["effort"]);
        request.opaque.extend(keep("reasoning", raw).map(|own| own.translated(translated)));
    }
    let conversation = known.conversation.and_then(|conversation| match conversation {
        TextOr::Text(id) => Some(id),
        TextOr::Other(conversation) => conversation.id,
    });
    let fields = [
        (HintKind::Conversation, "conversation", conversation),
        (HintKind::PromptCacheKey, "prompt_cache_key", known.prompt_cache_key),
        (HintKind::PreviousResponse, "previous_response_id", known.previous_response_id),
        (HintKind::User, "user", known.user),
    ];
    let mut bound = items.bound;
    for (kind, name, value) in &fields {
        let Some(json) = value.as_ref().and_then(read::json_of) else { continue };
        if matches!(kind, HintKind::Conversation | HintKind::PreviousResponse) {
            bound = bound.or(Some(name));
            request.opaque.push(history(DIALECT, name, json));
        } else {
            request.opaque.push(parameter(DIALECT, name, json));
        }
    }
    for (name, value) in extra {
        let Some(own) = unknown(&name, value, request.stream)? else { continue };
        if matches!(own.home, Home::History(_)) {
            bound = bound.or_else(|| STORED.iter().find(|stored| **stored == name).copied());
        }
        request.opaque.push(own);
    }
    request.bound = bound.map(|by| Bound::new(DIALECT, by));
    if !items.carried {
        request.native = Some(Native::new(DIALECT, bytes.clone()).with_places(place, None));
    }
    Ok(Inbound {
        model,
        stream: request.stream,
        include_usage: true,
        session_hint: SessionHint::narrowest(fields.map(|(kind, _, value)| (kind, value))),
        request,
    })
}

/// A parameter that the neutral form has no words for; `None` where it says nothing.
fn unknown(name: &str, value: Json, stream: bool) -> Result<Option<Opaque>, BadRequest> {
    if name == "background" && value.as_str() == "true" && !stream {
        return Err(BadRequest::new("cannot be true here: such a response is fetched from its provider")
            .at(name)
            .hint("leave it out, or ask for a stream"));
    }
    Ok(match (name, value.as_str()) {
        (_, "null") => None,
        // What goes without saying elsewhere.
        ("background" | "store", "false") | ("truncation", "\"disabled\"") => {
            Some(parameter(DIALECT, name, value).translated(true))
        }
        _ if STORED.contains(&name) => Some(history(DIALECT, name, value)),
        _ => Some(parameter(DIALECT, name, value)),
    })
}

fn keep(name: &str, raw: &RawValue) -> Option<Opaque> {
    Some(parameter(DIALECT, name, Json::parse(raw.get()).ok()?))
}

fn tool(raw: &RawValue) -> Result<Option<Tool>, BadRequest> {
    match required(typed::<Kind>(raw.get())?.r#type, "type")?.as_str() {
        "function" => typed::<FunctionTool>(raw.get())?.tool("").map(Some),
        _ => Ok(None),
    }
}

fn format(raw: &RawValue) -> Result<Option<ResponseFormat>, BadRequest> {
    let Some(raw) = typed::<Text<'_>>(raw.get())?.format else { return Ok(None) };
    let kind = typed::<Kind>(raw.get()).map_err(|bad| bad.under("format"))?.r#type;
    match kind.as_deref() {
        Some("json_object") => Ok(Some(ResponseFormat::JsonObject)),
        Some("json_schema") => {
            typed::<Shaped>(raw.get()).and_then(Shaped::format).map(Some).map_err(|bad| bad.under("format"))
        }
        _ => Ok(None),
    }
}

/// Gathers items into messages: what the model said in one turn comes as several.
#[derive(Default)]
struct Items {
    done: Vec<Message>,
    /// Something came that another answer of ours had brought the client: the body must not be passed on as it is.
    carried: bool,
    /// What refers to something that the provider stores.
    bound: Option<&'static str>,
}

impl Items {
    fn push(&mut self, role: Role, parts: Vec<Part>) {
        let joins = matches!(role, Role::Assistant | Role::Tool);
        match self.done.last_mut().filter(|last| joins && last.role == role) {
            Some(last) => last.parts.extend(parts),
            None => self.done.push(Message::new(role, parts)),
        }
    }

    fn take(&mut self, raw: &RawValue) -> Result<(), BadRequest> {
        let kind = typed::<ItemKind>(raw.get())?;
        let role = kind.role.as_deref();
        match (kind.r#type.as_deref(), role) {
            (Some("message") | None, Some(role)) => {
                let role = match role {
                    "system" | "developer" => Role::System,
                    "user" => Role::User,
                    "assistant" => Role::Assistant,
                    other => {
                        return Err(BadRequest::new(format!("there is no role {:?}", cut(other)))
                            .at("role")
                            .hint("use system, developer, user or assistant"));
                    }
                };
                let content = required(typed::<Turn<'_>>(raw.get())?.content, "content")?;
                let parts = self.content(content).map_err(|bad| bad.under("content"))?;
                self.push(role, parts);
            }
            (Some("message"), None) => return Err(BadRequest::new("is missing").at("role")),
            (Some("function_call"), _) => {
                let call = typed::<Call>(raw.get())?;
                let call = ToolCall::new(
                    required(call.id, "call_id")?,
                    required(call.name, "name")?,
                    shared::arguments(call.arguments),
                );
                self.push(Role::Assistant, vec![Part::ToolCall(call)]);
            }
            (Some("function_call_output"), _) => {
                let output = typed::<Output<'_>>(raw.get())?;
                let mut result = ToolResult::text(required(output.call_id, "call_id")?, "");
                let said = required(output.output, "output")?;
                result.parts = self.content(said).map_err(|bad| bad.under("output"))?;
                self.push(Role::Tool, vec![Part::ToolResult(result)]);
            }
            (Some("reasoning"), _) => {
                let part = self.reasoning(raw)?;
                self.push(Role::Assistant, vec![part]);
            }
            (Some(kind), _) => {
                if kind == REFERENCE {
                    self.bound = Some(REFERENCE);
                }
                // What the provider's own tools said and did stands where the model's turn stands.
                self.push(Role::Assistant, own_item(kind, raw).map(Part::Opaque).into_iter().collect());
            }
            (None, None) => {
                return Err(BadRequest::new("is missing").at("type").hint("give an item a type or a role"));
            }
        }
        Ok(())
    }

    fn content(&mut self, content: TextOr<Vec<&RawValue>>) -> Result<Vec<Part>, BadRequest> {
        match content {
            TextOr::Text(text) => Ok(vec![Part::Text(text)]),
            TextOr::Other(parts) => parts
                .into_iter()
                .enumerate()
                .map(|(at, raw)| {
                    let part = part(raw).map_err(|bad| bad.under(&format!("[{at}]")))?;
                    if matches!(&part, Part::Opaque(_)) && read::names_file(raw, "") {
                        self.bound = Some("file_id");
                    }
                    Ok(part)
                })
                .collect(),
        }
    }

    fn reasoning(&mut self, raw: &RawValue) -> Result<Part, BadRequest> {
        let item = typed::<Reasoning>(raw.get())?;
        if let Some(ours) = item.encrypted_content.as_deref().filter(|text| carry::is_ours(text)) {
            self.carried = true;
            let pieces = item.summary.into_iter().flatten().chain(item.content.into_iter().flatten());
            let text: String = pieces.filter_map(|piece| piece.text).collect();
            return Ok(match carry::unwrap_item(ours) {
                Some(item) => Part::Opaque(item),
                None => Part::Reasoning { text, proof: carry::unwrap(ours) },
            });
        }
        // Its origin takes it whole or not at all: summary and proof belong together.
        required(own_item("reasoning", raw), "type").map(Part::Opaque)
    }
}

/// An item that the neutral form has no words for. What is encrypted in it is bound to whose answer it was.
fn own_item(kind: &str, raw: &RawValue) -> Option<Opaque> {
    #[derive(Deserialize)]
    struct Sealed {
        encrypted_content: Option<IgnoredAny>,
    }
    let sealed = kind == "reasoning"
        || kind == REFERENCE
        || typed::<Sealed>(raw.get()).is_ok_and(|item| item.encrypted_content.is_some());
    let home = if sealed { history } else { parameter };
    Some(home(DIALECT, kind, Json::parse(raw.get()).ok()?))
}

fn part(raw: &RawValue) -> Result<Part, BadRequest> {
    let kind = required(typed::<Kind>(raw.get())?.r#type, "type")?;
    Ok(match kind.as_str() {
        "input_text" | "output_text" | "text" => {
            Part::Text(required(typed::<Piece>(raw.get())?.text, "text")?)
        }
        "refusal" => Part::Text(required(typed::<Piece>(raw.get())?.refusal, "refusal")?),
        "input_image" => {
            let part = typed::<ImagePart>(raw.get())?;
            let Some(url) = part.image_url else {
                // A file that only its origin has.
                return required(keep(&kind, raw), "type").map(Part::Opaque);
            };
            let mut image = Image::new(shared::image_source(url));
            image.detail = part.detail;
            Part::Image(image)
        }
        "input_file" => {
            let file = typed::<FilePart>(raw.get())?;
            match (file.file_data, file.file_url) {
                (Some(data), _) => Part::File(File::written(data, file.filename)),
                (None, Some(url)) => Part::File(File::new(FileSource::Url(url)).with_name(file.filename)),
                // One that its provider stores.
                (None, None) => Part::Opaque(required(keep(&kind, raw), "type")?),
            }
        }
        "input_audio" => Part::File(typed::<shared::Recording>(raw.get())?.file()?),
        _ => Part::Opaque(required(keep(&kind, raw), "type")?),
    })
}

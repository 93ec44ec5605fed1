//! A request for a message.

use super::{DIALECT, REDACTED};
use crate::dialect::carry::{self, history, parameter};
use crate::dialect::read::{self, Kind, Open, TextOr, cut, required, typed};
use crate::dialect::shared;
use crate::dialect::{BadRequest, HintKind, Inbound, SessionHint};
use bytes::Bytes;
use failover_provider::{
    Bound, ChatRequest, Effort, File, FileSource, Image, ImageSource, Json, Message, Native, Opaque, Part,
    ResponseFormat, Role, Tool, ToolCall, ToolChoice, ToolResult,
};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<Vec<Turn<'a>>>,
    system: Option<TextOr<Vec<&'a RawValue>>>,
    max_tokens: Option<u64>,
    stop_sequences: Option<Vec<String>>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    tools: Option<Vec<&'a RawValue>>,
    tool_choice: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    output_config: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    role: Option<String>,
    #[serde(borrow)]
    content: Option<TextOr<Vec<&'a RawValue>>>,
}

#[derive(Deserialize)]
struct Text {
    text: Option<String>,
}

#[derive(Deserialize)]
struct ImageBlock {
    source: Option<Source>,
}

#[derive(Deserialize)]
struct Source {
    r#type: Option<String>,
    media_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
}

#[derive(Deserialize)]
struct DocumentBlock<'a> {
    #[serde(borrow)]
    source: Option<DocumentSource<'a>>,
    title: Option<String>,
}

#[derive(Deserialize)]
struct DocumentSource<'a> {
    r#type: Option<String>,
    media_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
    #[serde(borrow)]
    content: Option<TextOr<Vec<&'a RawValue>>>,
}

#[derive(Deserialize)]
struct ToolUse {
    id: Option<String>,
    name: Option<String>,
    input: Option<Json>,
}

#[derive(Deserialize)]
struct ResultBlock<'a> {
    tool_use_id: Option<String>,
    #[serde(borrow)]
    content: Option<TextOr<Vec<&'a RawValue>>>,
    is_error: Option<bool>,
}

#[derive(Deserialize)]
struct Thinking {
    thinking: Option<String>,
    signature: Option<String>,
}

#[derive(Deserialize)]
struct Redacted {
    data: Option<String>,
}

#[derive(Deserialize)]
struct ToolIn {
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Json>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
struct Choice {
    r#type: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    user_id: Option<String>,
}

#[derive(Deserialize)]
struct Budget {
    budget_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputConfig<'a> {
    effort: Option<String>,
    #[serde(borrow)]
    format: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Format {
    schema: Option<Json>,
}

/// Reads a request.
pub(in crate::dialect) fn parse(bytes: &Bytes) -> Result<Inbound, BadRequest> {
    let Open { known, extra } = read::body::<Request<'_>>(bytes)?;
    let (model, place) = read::model(known.model)?;
    let mut blocks = Blocks::default();
    let mut messages = Vec::new();
    if let Some(system) = known.system {
        let parts = blocks.content(system).map_err(|bad| bad.under("system"))?;
        messages.push(Message::new(Role::System, parts));
    }
    let before = messages.len();
    for (at, turn) in required(known.messages, "messages")?.into_iter().enumerate() {
        blocks.turn(turn, &mut messages).map_err(|bad| bad.under(&format!("messages[{at}]")))?;
    }
    if messages.len() == before {
        return Err(BadRequest::new("is empty").at("messages").hint("send at least one message"));
    }
    let mut request = ChatRequest::new(messages);
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
    if let Some(raw) = known.tool_choice {
        request.tool_choice = Some(tool_choice(raw).map_err(|bad| bad.under("tool_choice"))?);
    }
    request.max_tokens = known.max_tokens;
    request.stop = known.stop_sequences.unwrap_or_default();
    request.temperature = known.temperature;
    request.top_p = known.top_p;
    request.stream = known.stream.unwrap_or_default();
    if let Some(raw) = known.thinking {
        request.effort = thinking(raw, known.max_tokens).map_err(|bad| bad.under("thinking"))?;
        request.opaque.extend(keep("thinking", raw).map(|own| own.translated(true)));
    }
    if let Some(raw) = known.output_config {
        let config = typed::<OutputConfig<'_>>(raw.get()).map_err(|bad| bad.under("output_config"))?;
        let effort = config.effort.as_deref().and_then(shared::effort);
        let translated =
            config.effort.is_some() == effort.is_some() && read::has_only(raw, &["effort", "format"]);
        request.effort = effort.or(request.effort);
        if let Some(format) = config.format {
            let format = typed::<Format>(format.get()).map_err(|bad| bad.under("output_config.format"))?;
            let schema = shared::schema(format.schema, "output_config.format.schema")?;
            // A name is what the other dialects ask for.
            let name = "answer".to_owned();
            request.response_format = Some(ResponseFormat::JsonSchema { name, schema, strict: true });
        }
        request.opaque.extend(keep("output_config", raw).map(|own| own.translated(translated)));
    }
    let mut user = None;
    if let Some(raw) = known.metadata {
        user = typed::<Metadata>(raw.get()).map_err(|bad| bad.under("metadata"))?.user_id;
        request.opaque.extend(keep("metadata", raw));
    }
    let said = extra.into_iter().filter(|(_, value)| value.as_str() != "null");
    for (name, value) in said {
        if name == "container" && holds_container(&value) {
            blocks.bound = Some("container");
        }
        request.opaque.push(parameter(DIALECT, &name, value));
    }
    request.bound = blocks.bound.map(|by| Bound::new(DIALECT, by));
    if !blocks.carried {
        request.native = Some(Native::new(DIALECT, bytes.clone()).with_places(place, None));
    }
    Ok(Inbound {
        model,
        stream: request.stream,
        include_usage: true,
        session_hint: SessionHint::narrowest([(HintKind::User, user)]),
        request,
    })
}

fn keep(name: &str, raw: &RawValue) -> Option<Opaque> {
    Some(parameter(DIALECT, name, Json::parse(raw.get()).ok()?))
}

/// Whether a `container` is one that the provider keeps, and not only what to make a new one of.
fn holds_container(value: &Json) -> bool {
    #[derive(Deserialize)]
    struct Container {
        id: Option<String>,
    }
    let named = serde_json::from_str::<Container>(value.as_str());
    value.as_str().starts_with('"') || named.is_ok_and(|container| container.id.is_some())
}

/// How hard to think, from the share of the answer that may be thought. The shares are those that OpenRouter
/// documents for its own translation: 80 % is high, 50 % medium, 20 % low, 10 % minimal; the bounds lie between.
fn thinking(raw: &RawValue, max_tokens: Option<u64>) -> Result<Option<Effort>, BadRequest> {
    let kind = typed::<Kind>(raw.get())?.r#type;
    if kind.as_deref() != Some("enabled") {
        return Ok(None);
    }
    let budget = typed::<Budget>(raw.get())?.budget_tokens;
    let share = budget.zip(max_tokens).map(|(budget, most)| budget.saturating_mul(100) / most.max(1));
    Ok(Some(match share {
        None | Some(35..65) => Effort::Medium,
        Some(65..) => Effort::High,
        Some(15..35) => Effort::Low,
        Some(0..15) => Effort::Minimal,
    }))
}

fn tool(raw: &RawValue) -> Result<Option<Tool>, BadRequest> {
    let kind = typed::<Kind>(raw.get())?.r#type;
    if kind.is_some_and(|kind| kind != "custom") {
        return Ok(None);
    }
    let given = typed::<ToolIn>(raw.get())?;
    let schema = shared::schema(given.input_schema, "input_schema")?;
    let mut tool = Tool::new(required(given.name, "name")?, schema);
    tool.description = given.description;
    tool.strict = given.strict;
    Ok(Some(tool))
}

fn tool_choice(raw: &RawValue) -> Result<ToolChoice, BadRequest> {
    let choice = typed::<Choice>(raw.get())?;
    match required(choice.r#type.as_deref(), "type")? {
        "auto" => Ok(ToolChoice::Auto),
        "any" => Ok(ToolChoice::Required),
        "none" => Ok(ToolChoice::None),
        "tool" => required(choice.name, "name").map(ToolChoice::Named),
        other => Err(BadRequest::new(format!("there is no choice {:?}", cut(other)))
            .at("type")
            .hint("use auto, any, none or tool")),
    }
}

/// Reads blocks.
#[derive(Default)]
struct Blocks {
    /// Something came that another answer of ours had brought the client: the body must not be passed on as it is.
    carried: bool,
    /// What refers to something that the provider stores.
    bound: Option<&'static str>,
    /// The turn at hand is the model's: what only its dialect has words for is bound to whose answer it was.
    said: bool,
}

impl Blocks {
    fn turn(&mut self, turn: Turn<'_>, messages: &mut Vec<Message>) -> Result<(), BadRequest> {
        let role = match required(turn.role.as_deref(), "role")? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => {
                return Err(BadRequest::new(format!("there is no role {:?}", cut(other)))
                    .at("role")
                    .hint("use user or assistant"));
            }
        };
        let content = required(turn.content, "content")?;
        self.said = role == Role::Assistant;
        let parts = self.content(content).map_err(|bad| bad.under("content"))?;
        let first = messages.len();
        messages.push(Message::new(role, Vec::new()));
        for part in parts {
            // Results are messages of their own.
            let role = if matches!(part, Part::ToolResult(_)) { Role::Tool } else { role };
            match messages.last_mut() {
                Some(last) if last.role == role => last.parts.push(part),
                _ => messages.push(Message::new(role, vec![part])),
            }
        }
        if messages.len() > first + 1 && messages.get(first).is_some_and(|message| message.parts.is_empty()) {
            messages.remove(first);
        }
        Ok(())
    }

    fn content(&mut self, content: TextOr<Vec<&RawValue>>) -> Result<Vec<Part>, BadRequest> {
        match content {
            TextOr::Text(text) => Ok(vec![Part::Text(text)]),
            TextOr::Other(blocks) => blocks
                .into_iter()
                .enumerate()
                .map(|(at, raw)| self.block(raw).map_err(|bad| bad.under(&format!("[{at}]"))))
                .collect(),
        }
    }

    fn block(&mut self, raw: &RawValue) -> Result<Part, BadRequest> {
        let kind = required(typed::<Kind>(raw.get())?.r#type, "type")?;
        Ok(match kind.as_str() {
            "text" => Part::Text(required(typed::<Text>(raw.get())?.text, "text")?),
            "image" => {
                let source = required(typed::<ImageBlock>(raw.get())?.source, "source")?;
                match source.r#type.as_deref() {
                    Some("base64") => Part::Image(Image::new(ImageSource::Base64 {
                        media_type: required(source.media_type, "source.media_type")?,
                        data: required(source.data, "source.data")?,
                    })),
                    Some("url") => {
                        Part::Image(Image::new(ImageSource::Url(required(source.url, "source.url")?)))
                    }
                    _ => self.opaque_block(&kind, raw)?,
                }
            }
            "document" => match self.document(raw)? {
                Some(file) => Part::File(file),
                None => self.opaque_block(&kind, raw)?,
            },
            "tool_use" => {
                let call = typed::<ToolUse>(raw.get())?;
                let input = call.input.as_ref().map_or("{}", Json::as_str);
                Part::ToolCall(ToolCall::new(required(call.id, "id")?, required(call.name, "name")?, input))
            }
            "tool_result" => {
                let block = typed::<ResultBlock<'_>>(raw.get())?;
                let mut result = ToolResult::text(required(block.tool_use_id, "tool_use_id")?, "");
                result.parts = match block.content {
                    Some(content) => self.content(content).map_err(|bad| bad.under("content"))?,
                    None => Vec::new(),
                };
                result.is_error = block.is_error.unwrap_or_default();
                Part::ToolResult(result)
            }
            "thinking" => {
                let block = typed::<Thinking>(raw.get())?;
                let text = required(block.thinking, "thinking")?;
                let signature = block.signature.unwrap_or_default();
                let ours = signature.is_empty() || carry::is_ours(&signature);
                self.carried |= ours;
                let proof = if ours {
                    carry::unwrap(&signature)
                } else {
                    read::json_of(&signature).map(|json| history(DIALECT, "signature", json))
                };
                Part::Reasoning { text, proof }
            }
            REDACTED => {
                let data = typed::<Redacted>(raw.get())?.data.unwrap_or_default();
                match carry::unwrap_item(&data) {
                    Some(item) => {
                        self.carried = true;
                        Part::Opaque(item)
                    }
                    None => self.opaque_block(&kind, raw)?,
                }
            }
            _ => self.opaque_block(&kind, raw)?,
        })
    }

    /// A document; `None` where it has no form that others know.
    fn document(&mut self, raw: &RawValue) -> Result<Option<File>, BadRequest> {
        let block = typed::<DocumentBlock<'_>>(raw.get())?;
        let source = required(block.source, "source")?;
        let given = match source.r#type.as_deref() {
            Some("base64") => FileSource::Base64 {
                media_type: required(source.media_type, "source.media_type")?,
                data: required(source.data, "source.data")?,
            },
            Some("text") => FileSource::Text(required(source.data, "source.data")?),
            Some("url") => FileSource::Url(required(source.url, "source.url")?),
            Some("content") => {
                let content = required(source.content, "source.content")?;
                let parts = self.content(content).map_err(|bad| bad.under("source.content"))?;
                let texts =
                    parts.into_iter().map(|part| if let Part::Text(text) = part { Some(text) } else { None });
                let Some(texts) = texts.collect::<Option<Vec<_>>>() else { return Ok(None) };
                FileSource::Text(texts.join("\n"))
            }
            _ => return Ok(None),
        };
        Ok(Some(File::new(given).with_name(block.title)))
    }

    fn opaque_block(&mut self, kind: &str, raw: &RawValue) -> Result<Part, BadRequest> {
        if read::names_file(raw, "source") {
            self.bound = Some("file_id");
        }
        let value = required(Json::parse(raw.get()).ok(), "type")?;
        let home = if self.said { history } else { parameter };
        Ok(Part::Opaque(home(DIALECT, kind, value)))
    }
}

//! The neutral request, mapped to the Gemini API. Always from the original, never from an earlier attempt's form.

use crate::adapter::Service;
use crate::decode::SIGNATURE;
use failover_provider::{
    AttemptScope, ChatRequest, Effort, Fields, File, FileSource, IdMap, Image, ImageSource, Json, JsonError,
    LossReason, Losses, Mapped, Message, Opaque, Part, ResponseFormat, Role, Tool, ToolCall, ToolChoice,
    ToolIds, ToolResult,
};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// The API names no bound on the ids of calls; its own are short.
const TOOL_IDS: ToolIds = ToolIds::UpTo(64);
/// How many texts that end an answer the API takes (<https://ai.google.dev/api/generate-content>).
const MOST_STOPS: usize = 5;
/// The object that holds sampling and the answer's form; an opaque one is put together with ours.
const GENERATION: &str = "generationConfig";

/// What Google tells clients to send for a call that another model made: without it models from the third generation on
/// refuse a conversation that comes from elsewhere (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Maps a request for one attempt.
pub(crate) fn map(
    request: &ChatRequest,
    scope: &AttemptScope<'_>,
    service: Service,
) -> Result<Mapped, JsonError> {
    let mut mapper = Mapper {
        scope,
        service,
        ids: IdMap::of(TOOL_IDS, request),
        names: names(request),
        system: Vec::new(),
        turns: Vec::new(),
        shown: Vec::new(),
        losses: Losses::new(),
    };
    for message in &request.messages {
        mapper.message(message)?;
    }
    mapper.show()?;
    let mut body = Fields::default();
    if !mapper.system.is_empty() {
        body.put("systemInstruction", &parts(&mapper.system)?)?;
    }
    let turns = mapper.turns.iter().map(Turn::fields).collect::<Result<Vec<_>, _>>()?;
    body.put("contents", &turns)?;
    let tools = request.tools.iter().map(|tool| mapper.tool(tool)).collect::<Result<Vec<_>, _>>()?;
    if !tools.is_empty() {
        let mut declared = Fields::default();
        declared.put("functionDeclarations", &tools)?;
        body.put("tools", &[declared])?;
    }
    let choice = request.choice_among(!tools.is_empty(), &mut mapper.losses);
    body.put_some("toolConfig", choice.map(tool_config).as_ref())?;
    let generation = mapper.generation(request)?;
    if !generation.is_empty() {
        body.put(GENERATION, &generation)?;
    }
    body.put_opaque(
        request.opaque.iter().filter(|opaque| opaque.name != GENERATION),
        scope,
        &mut mapper.losses,
    )?;
    Mapped::new(&body, mapper.losses)
}

/// The tool of each call: results are matched by name here.
fn names(request: &ChatRequest) -> HashMap<String, String> {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::ToolCall(call) => Some((call.id.clone(), call.name.clone())),
            Part::Text(_)
            | Part::Image(_)
            | Part::File(_)
            | Part::ToolResult(_)
            | Part::Reasoning { .. }
            | Part::Opaque(_) => None,
        })
        .collect()
}

fn parts(parts: &[Json]) -> Result<Fields, JsonError> {
    let mut fields = Fields::default();
    fields.put("parts", parts)?;
    Ok(fields)
}

/// Messages of one role that follow each other: results of parallel calls must come in one turn, and nothing else in it.
struct Turn {
    from: Role,
    parts: Vec<Json>,
}

impl Turn {
    fn fields(&self) -> Result<Fields, JsonError> {
        let mut fields = Fields::default();
        fields.put("role", if self.from == Role::Assistant { "model" } else { "user" })?;
        fields.append(parts(&self.parts)?);
        Ok(fields)
    }
}

/// Whether the API has a place for an image or a file: office documents are none that it reads
/// (<https://ai.google.dev/gemini-api/docs/document-processing>).
pub(crate) fn takes_shown(shown: &Part) -> bool {
    !matches!(shown, Part::File(file) if matches!(file.ending(), Some("doc" | "docx" | "xls" | "xlsx")))
}

struct Mapper<'a> {
    scope: &'a AttemptScope<'a>,
    service: Service,
    ids: IdMap,
    names: HashMap<String, String>,
    system: Vec<Json>,
    turns: Vec<Turn>,
    /// Images of tool results, which have no place in them.
    shown: Vec<Json>,
    losses: Losses,
}

impl Mapper<'_> {
    fn push(&mut self, from: Role, parts: Vec<Json>) {
        match self.turns.last_mut().filter(|turn| turn.from == from) {
            _ if parts.is_empty() => {}
            Some(turn) => turn.parts.extend(parts),
            None => self.turns.push(Turn { from, parts }),
        }
    }

    /// What the tools showed follows their results as the user's.
    fn show(&mut self) -> Result<(), JsonError> {
        let mut shown = std::mem::take(&mut self.shown);
        if !shown.is_empty() {
            shown.insert(0, Json::of(&json!({"text": "Images from the tool results above:"}))?);
            self.push(Role::User, shown);
        }
        Ok(())
    }

    fn message(&mut self, message: &Message) -> Result<(), JsonError> {
        if message.role != Role::Tool {
            self.show()?;
        }
        let mut parts = Vec::new();
        // A signature that waits for the part that it signs.
        let mut waiting: Option<Json> = None;
        // The first call of a turn is the one that must be signed.
        let mut unsigned = generation(self.scope.model.model()) >= 3;
        for part in &message.parts {
            let fields = match part {
                Part::Text(text) if text.is_empty() => continue,
                Part::Text(text) => {
                    let mut fields = Fields::default();
                    fields.put("text", text)?;
                    fields
                }
                Part::Image(image) => {
                    let image = self.image(image);
                    parts.push(Json::of(&image)?);
                    continue;
                }
                Part::File(file) => {
                    parts.extend(self.file(file)?);
                    continue;
                }
                Part::ToolCall(call) => {
                    if std::mem::take(&mut unsigned) && waiting.is_none() {
                        waiting = Some(Json::of(NO_SIGNATURE)?);
                    }
                    self.call(call)?
                }
                Part::ToolResult(result) => {
                    parts.push(self.result(result)?);
                    continue;
                }
                Part::Opaque(item) => {
                    if self.losses.is_at_home(item, self.scope) {
                        parts.push(item.value.clone());
                    }
                    continue;
                }
                Part::Reasoning { proof: Some(proof), .. } => {
                    if self.losses.is_at_home(proof, self.scope) {
                        if proof.name == SIGNATURE {
                            waiting = Some(proof.value.clone());
                        } else {
                            self.losses.note(&proof.name, LossReason::NoPlace);
                        }
                    }
                    continue;
                }
                // Thoughts are shown, and not wanted back.
                Part::Reasoning { proof: None, .. } => {
                    self.losses.note("reasoning", LossReason::NoPlace);
                    continue;
                }
            };
            parts.push(signed(fields, waiting.take().as_ref())?);
        }
        if let Some(signature) = waiting {
            let mut fields = Fields::default();
            fields.put("text", "")?;
            parts.push(signed(fields, Some(&signature))?);
        }
        if message.role == Role::System {
            self.system.extend(parts);
        } else {
            self.push(message.role, parts);
        }
        Ok(())
    }

    fn image(&mut self, image: &Image) -> Value {
        if image.detail.is_some() {
            self.losses.note("image detail", LossReason::NoPlace);
        }
        match &image.source {
            ImageSource::Base64 { media_type, data } => {
                json!({"inlineData": {"mimeType": media_type, "data": data}})
            }
            ImageSource::Url(url) => match (inline(url), media_type(url)) {
                (Some((media_type, data)), _) => {
                    json!({"inlineData": {"mimeType": media_type, "data": data}})
                }
                (None, Some(media_type)) => json!({"fileData": {"mimeType": media_type, "fileUri": url}}),
                (None, None) => json!({"fileData": {"fileUri": url}}),
            },
        }
    }

    fn file(&mut self, file: &File) -> Result<Option<Json>, JsonError> {
        let part = match (&file.source, file.as_text()) {
            (_, Some(text)) => json!({"text": text}),
            (FileSource::Base64 { media_type, data }, None) => {
                json!({"inlineData": {"mimeType": media_type, "data": data}})
            }
            (FileSource::Url(url), None) => match file.media_type() {
                Some(media_type) => json!({"fileData": {"mimeType": media_type, "fileUri": url}}),
                None => json!({"fileData": {"fileUri": url}}),
            },
            (FileSource::Text(_), None) => {
                self.losses.note("file", LossReason::NoPlace);
                return Ok(None);
            }
        };
        Json::of(&part).map(Some)
    }

    fn call(&mut self, call: &ToolCall) -> Result<Fields, JsonError> {
        let mut inner = Fields::default();
        if self.service == Service::Gemini {
            inner.put("id", &self.ids.get(&call.id))?;
        }
        inner.put("name", &call.name)?;
        inner.put("args", &self.arguments(&call.arguments)?)?;
        let mut fields = Fields::default();
        fields.put("functionCall", &inner)?;
        Ok(fields)
    }

    /// Arguments must be an object here; what a model wrote otherwise cannot go.
    fn arguments(&mut self, text: &str) -> Result<Json, JsonError> {
        let object = object(text);
        if object.is_none() && !text.trim().is_empty() {
            self.losses.note("arguments that are no JSON object", LossReason::NoPlace);
        }
        object.map_or_else(|| Json::parse("{}"), Ok)
    }

    fn result(&mut self, result: &ToolResult) -> Result<Json, JsonError> {
        let mut texts = Vec::new();
        for part in &result.parts {
            match part {
                Part::Text(text) => texts.push(Cow::Borrowed(text.as_str())),
                Part::File(file) => {
                    if let Some(text) = file.as_text() {
                        texts.push(Cow::Owned(text));
                    } else {
                        let file = self.file(file)?;
                        self.shown.extend(file);
                    }
                }
                Part::Image(image) => {
                    let image = self.image(image);
                    self.shown.push(Json::of(&image)?);
                }
                Part::ToolCall(_) | Part::ToolResult(_) => {
                    self.losses.note("tool call inside a tool result", LossReason::NoPlace);
                }
                Part::Reasoning { .. } => {
                    self.losses.note("reasoning inside a tool result", LossReason::NoPlace);
                }
                Part::Opaque(opaque) => self.losses.note(&opaque.name, LossReason::NoPlace),
            }
        }
        let text = texts.join("\n");
        let name = self.names.get(&result.call_id).cloned();
        if name.is_none() {
            self.losses.note("the name of a tool result without its call", LossReason::NoPlace);
        }
        let name = name.unwrap_or_else(|| result.call_id.clone());
        let mut inner = Fields::default();
        if self.service == Service::Gemini {
            inner.put("id", &self.ids.get(&result.call_id))?;
        }
        inner.put("name", &name)?;
        let key = if result.is_error { "error" } else { "output" };
        let object = object(&text).filter(|_| !result.is_error);
        inner.put("response", &object.map_or_else(|| Json::of(&json!({key: text})), Ok)?)?;
        let mut fields = Fields::default();
        fields.put("functionResponse", &inner)?;
        Json::of(&fields)
    }

    fn tool(&mut self, tool: &Tool) -> Result<Fields, JsonError> {
        if tool.strict == Some(true) {
            self.losses.note("strict", LossReason::NoPlace);
        }
        let mut fields = Fields::default();
        fields.put("name", &tool.name)?;
        fields.put_some("description", tool.description.as_ref())?;
        // `parameters` would take a part of JSON schema only.
        fields.put("parametersJsonSchema", &tool.parameters)?;
        Ok(fields)
    }

    fn generation(&mut self, request: &ChatRequest) -> Result<Fields, JsonError> {
        let mut fields = Fields::default();
        fields.put_some("temperature", request.temperature.as_ref())?;
        fields.put_some("topP", request.top_p.as_ref())?;
        fields.put_some("maxOutputTokens", request.max_tokens.as_ref())?;
        let stops = request.stops(Some(MOST_STOPS), true, &mut self.losses);
        if !stops.is_empty() {
            fields.put("stopSequences", &stops)?;
        }
        match &request.response_format {
            None => {}
            Some(ResponseFormat::JsonObject) => fields.put("responseMimeType", "application/json")?,
            Some(ResponseFormat::JsonSchema { schema, .. }) => {
                fields.put("responseMimeType", "application/json")?;
                fields.put("responseJsonSchema", schema)?;
            }
        }
        let asked: Vec<&Opaque> = request.opaque.iter().filter(|opaque| opaque.name == GENERATION).collect();
        let mut own = BTreeMap::new();
        for opaque in asked {
            if self.losses.is_at_home(opaque, self.scope) {
                match serde_json::from_str::<BTreeMap<String, Json>>(opaque.value.as_str()) {
                    Ok(more) => own.extend(more),
                    Err(_) => self.losses.note(GENERATION, LossReason::NoPlace),
                }
            }
        }
        if let Some(effort) = request.effort.filter(|_| !own.contains_key("thinkingConfig")) {
            match thinking(self.scope.model.model(), effort) {
                Some(config) => fields.put("thinkingConfig", &config)?,
                None => self.losses.note("effort", LossReason::NoPlace),
            }
        }
        for (name, value) in own {
            if fields.has(&name) {
                self.losses.note(&format!("{GENERATION}.{name}"), LossReason::NoPlace);
            } else {
                fields.put(&name, &value)?;
            }
        }
        Ok(fields)
    }
}

fn signed(mut fields: Fields, signature: Option<&Json>) -> Result<Json, JsonError> {
    fields.put_some(SIGNATURE, signature)?;
    Json::of(&fields)
}

fn object(text: &str) -> Option<Json> {
    Json::parse(text.trim()).ok().filter(|json| json.as_str().starts_with('{'))
}

/// Media type and base64 of a `data:` URL.
fn inline(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// The media type that a URL's ending tells; Vertex AI wants one.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        _ => return None,
    })
}

/// The number of a model's generation: 3 for `gemini-3-pro-preview`; 0 for other names.
fn generation(model: &str) -> u32 {
    let number = model.split("gemini-").nth(1).and_then(|rest| rest.split(['.', '-']).next());
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// How hard to think, in the words of the model's generation, as Google's own table for OpenAI clients has them
/// (<https://ai.google.dev/gemini-api/docs/openai>); `None` for models that know no such thing.
fn thinking(model: &str, effort: Effort) -> Option<Value> {
    let flash = model.contains("flash");
    if model.contains("gemini-2.5") {
        let budget = match (effort.as_str(), flash) {
            ("none", true) => 0,
            // The others cannot stop thinking.
            ("none", false) => return None,
            ("medium", _) => 8_192,
            ("high", _) => 24_576,
            _ => 1_024,
        };
        return Some(json!({"thinkingBudget": budget}));
    }
    if generation(model) < 3 {
        return None;
    }
    let level = match (effort.as_str(), flash) {
        ("none", _) => return None,
        ("minimal", true) => "minimal",
        ("medium", true) => "medium",
        ("medium" | "high", _) => "high",
        _ => "low",
    };
    Some(json!({"thinkingLevel": level}))
}

fn tool_config(choice: &ToolChoice) -> Value {
    let config = match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    json!({"functionCallingConfig": config})
}

#[cfg(test)]
mod tests;

//! The neutral request, mapped to the Converse API. Always from the original, never from an earlier attempt's form.

use crate::decode::SIGNATURE;
use failover_provider::{
    AttemptScope, ChatRequest, Effort, Fields, File, FileSource, IdMap, Image, ImageSource, Json, JsonError,
    LossReason, Losses, Mapped, Message, Part, ResponseFormat, Role, Sampling, Tool, ToolCall, ToolChoice,
    ToolIds, ToolResult, Turns,
};
use serde_json::{Value, json};

/// What the API accepts as the id of a tool call (API reference, `ToolUseBlock`).
const TOOL_IDS: ToolIds = ToolIds::UpTo(64);

/// Maps a request for one attempt. Model and streaming stand in the path.
pub(crate) fn map(request: &ChatRequest, scope: &AttemptScope<'_>) -> Result<Mapped, JsonError> {
    let ids = IdMap::of(TOOL_IDS, request);
    let (system, turns, losses) = (Vec::new(), Turns::new(), Losses::new());
    let mut mapper = Mapper { scope, ids, system, turns, documents: 0, losses };
    for message in &request.messages {
        mapper.message(message)?;
    }
    let mut body = Fields::default();
    body.put("messages", &mapper.turns.fields("content")?)?;
    if !mapper.system.is_empty() {
        body.put("system", &mapper.system)?;
    }
    let mut inference = Fields::default();
    inference.put_some("maxTokens", request.max_tokens.as_ref())?;
    let (temperature, top_p) = request.sampling(takes(scope.model.model()), &mut mapper.losses);
    inference.put_some("temperature", temperature.as_ref())?;
    inference.put_some("topP", top_p.as_ref())?;
    if !request.stop.is_empty() {
        inference.put("stopSequences", &request.stop)?;
    }
    if !inference.is_empty() {
        body.put("inferenceConfig", &inference)?;
    }
    if let Some(tools) = mapper.tools(request)? {
        body.put("toolConfig", &tools)?;
    }
    match &request.response_format {
        None => {}
        Some(ResponseFormat::JsonObject) => mapper.losses.note("response_format", LossReason::NoPlace),
        Some(ResponseFormat::JsonSchema { name, schema, .. }) => {
            // The schema is wanted as a text.
            let schema = json!({"jsonSchema": {"name": name, "schema": schema.as_str()}});
            body.put("outputConfig", &json!({"textFormat": {"type": "json_schema", "structure": schema}}))?;
        }
    }
    if request.effort.is_some_and(|effort| effort != Effort::None) {
        // Each family of models has a field of its own: callers who know their model send
        // `additionalModelRequestFields` as an opaque field.
        mapper.losses.note("effort", LossReason::NoPlace);
    }
    body.put_opaque(&request.opaque, scope, &mut mapper.losses)?;
    Mapped::new(&body, mapper.losses)
}

/// Claude from 4.1 on refuses both at once, and any takes a temperature from 0 to 1.
fn takes(model: &str) -> Sampling {
    if model.contains("claude") { Sampling::OneOf { hottest: 1.0 } } else { Sampling::Free }
}

struct Mapper<'a> {
    scope: &'a AttemptScope<'a>,
    ids: IdMap,
    system: Vec<Json>,
    turns: Turns,
    /// How many came so far.
    documents: usize,
    losses: Losses,
}

impl Mapper<'_> {
    fn message(&mut self, message: &Message) -> Result<(), JsonError> {
        let mut content = Vec::new();
        for part in &message.parts {
            content.extend(self.part(part)?);
        }
        // A document without a word about it is refused.
        let says = |part: &Part| matches!(part, Part::Text(text) if !text.trim().is_empty());
        if message.parts.iter().any(|part| matches!(part, Part::File(_))) && !message.parts.iter().any(says) {
            content.push(Json::of(&json!({"text": "See the document."}))?);
        }
        let role = match message.role {
            Role::System => {
                self.system.extend(content);
                return Ok(());
            }
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        };
        self.turns.push(role, content);
        Ok(())
    }

    fn part(&mut self, part: &Part) -> Result<Option<Json>, JsonError> {
        let block = match part {
            // Blank texts are refused.
            Part::Text(text) if text.trim().is_empty() => return Ok(None),
            Part::Text(text) => json!({"text": text}),
            Part::Image(image) => match self.image(image) {
                Some(image) => image,
                None => return Ok(None),
            },
            Part::File(file) => match self.file(file) {
                Some(document) => document,
                None => return Ok(None),
            },
            Part::ToolCall(call) => return self.call(call).map(Some),
            Part::ToolResult(result) => return self.result(result).map(Some),
            Part::Reasoning { text, proof: Some(proof) } if proof.name == SIGNATURE => {
                if !self.losses.is_at_home(proof, self.scope) {
                    return Ok(None);
                }
                let mut inner = Fields::default();
                inner.put("text", text)?;
                inner.put(SIGNATURE, &proof.value)?;
                return nested(&["reasoningContent", "reasoningText"], &inner).map(Some);
            }
            Part::Opaque(item) => {
                return Ok(self.losses.is_at_home(item, self.scope).then(|| item.value.clone()));
            }
            Part::Reasoning { proof: Some(proof), .. } => {
                if self.losses.is_at_home(proof, self.scope) {
                    self.losses.note(&proof.name, LossReason::NoPlace);
                }
                return Ok(None);
            }
            // Reasoning without its signature is refused.
            Part::Reasoning { proof: None, .. } => {
                self.losses.note("reasoning", LossReason::NoPlace);
                return Ok(None);
            }
        };
        Json::of(&block).map(Some)
    }

    /// An image in the request itself or in S3; the API fetches from nowhere else.
    fn image(&mut self, image: &Image) -> Option<Value> {
        if image.detail.is_some() {
            self.losses.note("image detail", LossReason::NoPlace);
        }
        let Some((format, source)) = source(image) else {
            self.losses.note("image by address or of another format", LossReason::NoPlace);
            return None;
        };
        Some(json!({"image": {"format": format, "source": source}}))
    }

    /// A document in the request itself or in S3. Names must differ.
    fn file(&mut self, file: &File) -> Option<Value> {
        let Some((format, source)) = document(file) else {
            self.losses.note("file", LossReason::NoPlace);
            return None;
        };
        self.documents += 1;
        let mut name = plain_name(file.name.as_deref().unwrap_or_default());
        if self.documents > 1 || name.is_empty() {
            name = ["document", &self.documents.to_string(), &name].join(" ").trim_end().into();
        }
        Some(json!({"document": {"format": format, "name": name, "source": source}}))
    }

    fn call(&mut self, call: &ToolCall) -> Result<Json, JsonError> {
        let mut inner = Fields::default();
        inner.put("toolUseId", &self.ids.get(&call.id))?;
        inner.put("name", &call.name)?;
        inner.put("input", &self.arguments(&call.arguments)?)?;
        nested(&["toolUse"], &inner)
    }

    /// Arguments must be an object here; what a model wrote otherwise cannot go.
    fn arguments(&mut self, text: &str) -> Result<Json, JsonError> {
        let object = Json::parse(text).ok().filter(|json| json.as_str().starts_with('{'));
        if object.is_none() && !text.trim().is_empty() {
            self.losses.note("arguments that are no JSON object", LossReason::NoPlace);
        }
        object.map_or_else(|| Json::parse("{}"), Ok)
    }

    fn result(&mut self, result: &ToolResult) -> Result<Json, JsonError> {
        let mut content = Vec::new();
        for part in &result.parts {
            match part {
                Part::Text(_) | Part::Image(_) | Part::File(_) => content.extend(self.part(part)?),
                Part::ToolCall(_) | Part::ToolResult(_) => {
                    self.losses.note("tool call inside a tool result", LossReason::NoPlace);
                }
                Part::Reasoning { .. } => {
                    self.losses.note("reasoning inside a tool result", LossReason::NoPlace);
                }
                Part::Opaque(opaque) => self.losses.note(&opaque.name, LossReason::NoPlace),
            }
        }
        let mut inner = Fields::default();
        inner.put("toolUseId", &self.ids.get(&result.call_id))?;
        inner.put("content", &content)?;
        inner.put_some("status", result.is_error.then_some(&"error"))?;
        nested(&["toolResult"], &inner)
    }

    /// The tools, unless none may be called: there is no word for that, so none are offered then. A conversation that
    /// has calls already must offer them all the same.
    fn tools(&mut self, request: &ChatRequest) -> Result<Option<Fields>, JsonError> {
        let mut parts = request.messages.iter().flat_map(|message| &message.parts);
        let called = parts.any(|part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_)));
        let forbidden = request.tool_choice == Some(ToolChoice::None);
        if request.tools.is_empty() || (forbidden && !called) {
            return Ok(None);
        }
        let tools = request.tools.iter().map(tool).collect::<Result<Vec<_>, _>>()?;
        let mut fields = Fields::default();
        fields.put("tools", &tools)?;
        match &request.tool_choice {
            None => {}
            Some(ToolChoice::None) => self.losses.note("tool_choice", LossReason::NoPlace),
            Some(ToolChoice::Auto) => fields.put("toolChoice", &json!({"auto": {}}))?,
            Some(ToolChoice::Required) => fields.put("toolChoice", &json!({"any": {}}))?,
            Some(ToolChoice::Named(name)) => fields.put("toolChoice", &json!({"tool": {"name": name}}))?,
        }
        Ok(Some(fields))
    }
}

/// An object inside objects, one a name.
fn nested(names: &[&str], inner: &Fields) -> Result<Json, JsonError> {
    let mut value = Json::of(inner)?;
    for name in names.iter().rev() {
        let mut fields = Fields::default();
        fields.put(name, &value)?;
        value = Json::of(&fields)?;
    }
    Ok(value)
}

/// Whether the API has a place for an image or a file, as it is given.
pub(crate) fn takes_shown(shown: &Part) -> bool {
    if let Part::Image(image) = shown {
        return source(image).is_some();
    }
    !matches!(shown, Part::File(file) if document(file).is_none())
}

/// An image in the request itself or in S3; the API fetches from nowhere else.
fn source(image: &Image) -> Option<(&'static str, Value)> {
    match &image.source {
        ImageSource::Base64 { media_type, data } => {
            format(media_type).map(|format| (format, json!({"bytes": data})))
        }
        ImageSource::Url(url) if url.starts_with("s3://") => {
            let ending = url.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
            format(&format!("image/{ending}")).map(|format| (format, json!({"s3Location": {"uri": url}})))
        }
        ImageSource::Url(url) => url
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(";base64,"))
            .and_then(|(media_type, data)| Some((format(media_type)?, json!({"bytes": data})))),
    }
}

/// A document of a kind that the API reads (API reference, `DocumentBlock`).
fn document(file: &File) -> Option<(&'static str, Value)> {
    let kinds = ["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"];
    let known = file.ending().filter(|ending| kinds.contains(ending));
    match (&file.source, known) {
        (FileSource::Text(text), _) => Some(("txt", json!({"text": text}))),
        (FileSource::Base64 { data, .. }, Some(format)) => Some((format, json!({"bytes": data}))),
        (FileSource::Base64 { .. }, None) => file.text().map(|text| ("txt", json!({"text": text}))),
        (FileSource::Url(url), Some(format)) if url.starts_with("s3://") => {
            Some((format, json!({"s3Location": {"uri": url}})))
        }
        (FileSource::Url(_), _) => None,
    }
}

/// A name of letters, digits, hyphens, brackets and single spaces: the API refuses others.
fn plain_name(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "-()[]".contains(letter) { letter } else { ' ' }
    };
    let plain: String = name.chars().take(200).map(plain).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The API's name for a kind of image that it takes.
fn format(media_type: &str) -> Option<&'static str> {
    Some(match media_type {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return None,
    })
}

fn tool(tool: &Tool) -> Result<Json, JsonError> {
    let mut fields = Fields::default();
    fields.put("name", &tool.name)?;
    fields.put_some("description", tool.description.as_ref())?;
    let mut schema = Fields::default();
    schema.put("json", &tool.parameters)?;
    fields.put("inputSchema", &schema)?;
    // Models without it refuse the field, so only what is wanted is said.
    fields.put_some("strict", tool.strict.filter(|strict| *strict).as_ref())?;
    nested(&["toolSpec"], &fields)
}

#[cfg(test)]
mod tests;

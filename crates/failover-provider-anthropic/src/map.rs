//! The neutral request, mapped to the Messages API. Always from the original, never from an earlier attempt's form.

use crate::decode::CITATIONS;
use failover_provider::{
    AttemptScope, ChatRequest, Dialect, Effort, Fields, File, FileSource, IdMap, Image, ImageSource, Json,
    JsonError, LossReason, Losses, Mapped, Message, Opaque, Part, ResponseFormat, Role, Sampling, Tool,
    ToolCall, ToolChoice, ToolIds, ToolResult, Turns,
};
use serde_json::{Value, json};

/// What the API accepts as the id of a tool call; it names the letters but no length, so a short one.
pub(crate) const TOOL_IDS: ToolIds = ToolIds::UpTo(64);

/// Maps a request for one attempt.
///
/// `longest` is the bound on generated tokens where the request has none.
pub(crate) fn map(
    request: &ChatRequest,
    scope: &AttemptScope<'_>,
    longest: u64,
) -> Result<Mapped, JsonError> {
    let ids = IdMap::of(TOOL_IDS, request);
    let mut mapper = Mapper {
        scope,
        ids,
        system: Vec::new(),
        turns: Turns::new(),
        losses: Losses::of(Dialect::AnthropicMessages),
    };
    for message in &request.messages {
        mapper.message(message)?;
    }
    let mut body = Fields::default();
    body.put("model", scope.model.model())?;
    body.put("max_tokens", &request.max_tokens.unwrap_or(longest))?;
    if !mapper.system.is_empty() {
        body.put("system", &mapper.system)?;
    }
    body.put("messages", &mapper.turns.fields("content")?)?;
    let mut tools = request
        .tools
        .iter()
        .map(|given| tool(given).and_then(|fields| Json::of(&fields)))
        .collect::<Result<Vec<_>, _>>()?;
    tools.extend(request.own_tools(scope, &mut mapper.losses));
    if !tools.is_empty() {
        body.put("tools", &tools)?;
    }
    let choice = request.choice_among(!tools.is_empty(), &mut mapper.losses);
    body.put_some("tool_choice", choice.map(tool_choice).as_ref())?;
    let (temperature, top_p) = request.sampling(takes(scope.model.model()), &mut mapper.losses);
    body.put_some("temperature", temperature.as_ref())?;
    body.put_some("top_p", top_p.as_ref())?;
    let stops = request.stops(None, false, &mut mapper.losses);
    if !stops.is_empty() {
        body.put("stop_sequences", &stops)?;
    }
    let own = |name: &str, losses: &Losses| request.has_own(name, scope, losses);
    match &request.response_format {
        None => {}
        // Who wrote it for this API wrote the format into it.
        Some(ResponseFormat::JsonSchema { .. }) if own("output_config", &mapper.losses) => {}
        Some(ResponseFormat::JsonObject) => mapper.losses.note("response_format", LossReason::NoPlace),
        Some(ResponseFormat::JsonSchema { schema, .. }) => {
            let mut format = Fields::default();
            format.put("type", "json_schema")?;
            format.put("schema", schema)?;
            let mut config = Fields::default();
            config.put("format", &format)?;
            body.put("output_config", &config)?;
        }
    }
    let told = own("thinking", &mapper.losses) || own("output_config", &mapper.losses);
    if request.effort.is_some_and(|effort| effort != Effort::None) && !told {
        // Which field says it, and which others it forbids, differs from model to model: callers who know their
        // model send `thinking` as an opaque field.
        mapper.losses.note("effort", LossReason::NoPlace);
    }
    body.put("stream", &request.stream)?;
    body.put_opaque(
        request.opaque.iter().filter(|opaque| opaque.name != "tools"),
        scope,
        &mut mapper.losses,
    )?;
    Mapped::new(&body, mapper.losses)
}

/// Claude from 4.1 on refuses both at once, and any takes a temperature from 0 to 1
/// (<https://docs.claude.com/en/api/messages>). Other vendors that speak this API are as they are.
fn takes(model: &str) -> Sampling {
    if model.contains("claude") { Sampling::OneOf { hottest: 1.0 } } else { Sampling::Free }
}

/// Whether the API has a place for an image or a file: it reads PDFs and plain texts, and hears nothing
/// (<https://docs.claude.com/en/docs/build-with-claude/pdf-support>).
pub(crate) fn takes_shown(shown: &Part) -> bool {
    let Part::File(file) = shown else { return true };
    let linked = matches!(file.source, FileSource::Url(_));
    file.is_text() || matches!(file.ending(), Some("pdf")) || (linked && file.ending().is_none())
}

struct Mapper<'a> {
    scope: &'a AttemptScope<'a>,
    ids: IdMap,
    system: Vec<Json>,
    turns: Turns,
    losses: Losses,
}

impl Mapper<'_> {
    fn message(&mut self, message: &Message) -> Result<(), JsonError> {
        let mut content = Vec::new();
        for part in &message.parts {
            if let Part::Opaque(own) = part
                && own.name == CITATIONS
            {
                self.cite(own, &mut content)?;
            } else {
                content.extend(self.part(part)?);
            }
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

    /// Puts what a text is from back into its block, which is the last one.
    fn cite(&mut self, own: &Opaque, content: &mut [Json]) -> Result<(), JsonError> {
        if !self.losses.is_at_home(own, self.scope) {
            return Ok(());
        }
        let block = content.last().and_then(|block| serde_json::from_str::<Value>(block.as_str()).ok());
        let text = block.filter(|block| block.get("type").and_then(Value::as_str) == Some("text"));
        let (Some(mut text), Some(place)) = (text, content.last_mut()) else {
            self.losses.note(CITATIONS, LossReason::NoPlace);
            return Ok(());
        };
        if let (Some(fields), Ok(more)) = (text.as_object_mut(), serde_json::from_str(own.value.as_str())) {
            fields.insert(CITATIONS.to_owned(), more);
        }
        *place = Json::of(&text)?;
        Ok(())
    }

    fn part(&mut self, part: &Part) -> Result<Option<Json>, JsonError> {
        let block = match part {
            // Empty texts are refused.
            Part::Text(text) if text.is_empty() => return Ok(None),
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Image(image) => self.image(image),
            Part::File(file) => match self.file(file) {
                Some(block) => block,
                None => return Ok(None),
            },
            Part::ToolCall(call) => return self.call(call).map(Some),
            Part::ToolResult(result) => return self.result(result).map(Some),
            Part::Reasoning { text, proof: Some(proof) } if proof.name == "signature" => {
                if !self.losses.is_at_home(proof, self.scope) {
                    return Ok(None);
                }
                let mut block = Fields::default();
                block.put("type", "thinking")?;
                block.put("thinking", text)?;
                block.put("signature", &proof.value)?;
                return Json::of(&block).map(Some);
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
            // Thinking without its signature is refused.
            Part::Reasoning { proof: None, .. } => {
                self.losses.note("reasoning", LossReason::NoPlace);
                return Ok(None);
            }
        };
        Json::of(&block).map(Some)
    }

    fn image(&mut self, image: &Image) -> Value {
        if image.detail.is_some() {
            self.losses.note("image detail", LossReason::NoPlace);
        }
        let source = match &image.source {
            ImageSource::Url(url) => json!({"type": "url", "url": url}),
            ImageSource::Base64 { media_type, data } => {
                json!({"type": "base64", "media_type": media_type, "data": data})
            }
        };
        json!({"type": "image", "source": source})
    }

    fn file(&mut self, file: &File) -> Option<Value> {
        let source = match &file.source {
            _ if file.is_text() => {
                file.text().map(|text| json!({"type": "text", "media_type": "text/plain", "data": text}))
            }
            FileSource::Url(url) => Some(json!({"type": "url", "url": url})),
            FileSource::Base64 { media_type, data } if file.ending() == Some("pdf") => {
                Some(json!({"type": "base64", "media_type": media_type, "data": data}))
            }
            FileSource::Base64 { .. } | FileSource::Text(_) => None,
        };
        let Some(source) = source else {
            self.losses.note("file", LossReason::NoPlace);
            return None;
        };
        let mut block = json!({"type": "document", "source": source});
        if let (Some(fields), Some(name)) = (block.as_object_mut(), &file.name) {
            fields.insert("title".to_owned(), json!(name));
        }
        Some(block)
    }

    fn call(&mut self, call: &ToolCall) -> Result<Json, JsonError> {
        let mut block = Fields::default();
        block.put("type", "tool_use")?;
        block.put("id", &self.ids.get(&call.id))?;
        block.put("name", &call.name)?;
        block.put("input", &self.arguments(&call.arguments)?)?;
        Json::of(&block)
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
                Part::Text(_) | Part::Image(_) | Part::File(_) | Part::Opaque(_) => {
                    content.extend(self.part(part)?);
                }
                Part::ToolCall(_) | Part::ToolResult(_) => {
                    self.losses.note("tool call inside a tool result", LossReason::NoPlace);
                }
                Part::Reasoning { .. } => {
                    self.losses.note("reasoning inside a tool result", LossReason::NoPlace);
                }
            }
        }
        let mut block = Fields::default();
        block.put("type", "tool_result")?;
        block.put("tool_use_id", &self.ids.get(&result.call_id))?;
        block.put("content", &content)?;
        block.put_some("is_error", result.is_error.then_some(&true))?;
        Json::of(&block)
    }
}

fn tool(tool: &Tool) -> Result<Fields, JsonError> {
    let mut fields = Fields::default();
    fields.put("name", &tool.name)?;
    fields.put_some("description", tool.description.as_ref())?;
    fields.put("input_schema", &tool.parameters)?;
    fields.put_some("strict", tool.strict.as_ref())?;
    Ok(fields)
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
    }
}

#[cfg(test)]
mod tests;

//! The neutral request, mapped to the Responses API. Always from the original, never from an earlier attempt's form.

use super::DIALECT;
use super::decode::REASONING;
use crate::family::{reasons, sampling};
use failover_provider::{
    AttemptScope, ChatRequest, Fields, File, FileSource, IdMap, Image, ImageSource, Json, JsonError,
    LossReason, Losses, Mapped, Message, Opaque, Part, ResponseFormat, Role, Tool, ToolCall, ToolChoice,
    ToolIds, ToolResult,
};
use serde_json::{Value, json};

/// The longest `call_id` that the API takes.
pub(super) const TOOL_IDS: ToolIds = ToolIds::UpTo(64);

/// Maps a request for one attempt.
pub(super) fn map(request: &ChatRequest, scope: &AttemptScope<'_>) -> Result<Mapped, JsonError> {
    let ids = IdMap::of(TOOL_IDS, request);
    let mut mapper =
        Mapper { scope, ids, instructions: Vec::new(), items: Vec::new(), losses: Losses::of(DIALECT) };
    for message in &request.messages {
        mapper.message(message)?;
    }
    let mut body = Fields::default();
    body.put("model", scope.model.model())?;
    if !mapper.instructions.is_empty() {
        body.put("instructions", &mapper.instructions.join("\n\n"))?;
    }
    body.put("input", &mapper.items)?;
    let tools = request.tools.iter().map(|given| tool(given).and_then(|fields| Json::of(&fields)));
    let mut tools = tools.collect::<Result<Vec<_>, _>>()?;
    tools.extend(request.own_tools(scope, &mut mapper.losses));
    if !tools.is_empty() {
        body.put("tools", &tools)?;
    }
    let choice = request.choice_among(!tools.is_empty(), &mut mapper.losses);
    body.put_some("tool_choice", choice.map(tool_choice).as_ref())?;
    let sampling = sampling(scope.model.model(), request.effort);
    let (temperature, top_p) = request.sampling(sampling, &mut mapper.losses);
    body.put_some("temperature", temperature.as_ref())?;
    body.put_some("top_p", top_p.as_ref())?;
    body.put_some("max_output_tokens", request.max_tokens.as_ref())?;
    if !request.stop.is_empty() {
        mapper.losses.note("stop", LossReason::NoPlace);
    }
    // Who wrote it for this API says more than the neutral form.
    let own = |name: &str, losses: &Losses| request.has_own(name, scope, losses);
    if let Some(format) = request.response_format.as_ref().filter(|_| !own("text", &mapper.losses)) {
        let mut text = Fields::default();
        text.put("format", &response_format(format)?)?;
        body.put("text", &text)?;
    }
    if let Some(effort) = request.effort.filter(|_| !own(REASONING, &mapper.losses)) {
        body.put("reasoning", &json!({"effort": effort.as_str()}))?;
    }
    body.put("stream", &request.stream)?;
    let mut asked: Vec<&Opaque> = Vec::new();
    for opaque in request.opaque.iter().filter(|opaque| opaque.name != "tools") {
        let twice = body.has(&opaque.name) || asked.iter().any(|other| other.name == opaque.name);
        if twice {
            mapper.losses.leave_out(opaque, LossReason::NoPlace);
        } else if mapper.losses.is_at_home(opaque, scope) {
            asked.push(opaque);
        }
    }
    let says = |name: &str| asked.iter().any(|opaque| opaque.name == name);
    if !says("store") {
        body.put("store", &false)?;
    }
    if !says("include") && reasons(scope.model.model(), request.effort) {
        // Without it reasoning could not go back: it is stored nowhere.
        body.put("include", &["reasoning.encrypted_content"])?;
    }
    for opaque in asked {
        body.put(&opaque.name, &opaque.value)?;
    }
    Mapped::new(&body, mapper.losses)
}

struct Mapper<'a> {
    scope: &'a AttemptScope<'a>,
    ids: IdMap,
    instructions: Vec<String>,
    items: Vec<Json>,
    losses: Losses,
}

impl Mapper<'_> {
    /// One neutral message becomes one item, or several: calls, results and reasoning are items of their own.
    fn message(&mut self, message: &Message) -> Result<(), JsonError> {
        // Standing instructions have a field of their own; later ones keep their place.
        if message.role == Role::System && self.items.is_empty() {
            let texts: Option<Vec<&str>> = message
                .parts
                .iter()
                .map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
                .collect();
            if let Some(texts) = texts {
                self.instructions.push(texts.concat());
                return Ok(());
            }
        }
        let mut content = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(text) => {
                    let kind = if message.role == Role::Assistant { "output_text" } else { "input_text" };
                    content.push(json!({"type": kind, "text": text}));
                    continue;
                }
                Part::Image(_) if message.role == Role::Assistant => {
                    self.losses.note("image of the assistant", LossReason::NoPlace);
                    continue;
                }
                Part::File(_) if message.role == Role::Assistant => {
                    self.losses.note("file of the assistant", LossReason::NoPlace);
                    continue;
                }
                Part::File(file) => {
                    content.extend(self.file(file));
                    continue;
                }
                Part::Image(image) => {
                    content.push(input_image(image));
                    continue;
                }
                Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning { .. } | Part::Opaque(_) => {}
            }
            // The order of items is the order in which things were said.
            self.said(message.role, &mut content)?;
            let item = match part {
                Part::ToolCall(call) => Some(self.call(call)?),
                Part::ToolResult(result) => Some(self.result(result)?),
                Part::Opaque(item) => self.losses.is_at_home(item, self.scope).then(|| item.value.clone()),
                Part::Reasoning { proof: Some(proof), .. } => {
                    let home = self.losses.is_at_home(proof, self.scope);
                    if home && proof.name != REASONING {
                        self.losses.note(&proof.name, LossReason::NoPlace);
                    }
                    (home && proof.name == REASONING).then(|| proof.value.clone())
                }
                Part::Reasoning { proof: None, .. } => {
                    self.losses.note(REASONING, LossReason::NoPlace);
                    None
                }
                Part::Text(_) | Part::Image(_) | Part::File(_) => None,
            };
            self.items.extend(item);
        }
        self.said(message.role, &mut content)
    }

    fn said(&mut self, role: Role, content: &mut Vec<Value>) -> Result<(), JsonError> {
        let content = std::mem::take(content);
        let mut fields = Fields::default();
        fields.put("role", role_name(role))?;
        match content.as_slice() {
            [] => return Ok(()),
            [one] if one.get("text").is_some() => fields.put("content", one.get("text").unwrap_or(one))?,
            many => fields.put("content", many)?,
        }
        self.items.push(Json::of(&fields)?);
        Ok(())
    }

    /// A file in the words of the API, or a plain text as such.
    fn file(&mut self, file: &File) -> Option<Value> {
        if let Some(text) = file.as_text() {
            return Some(json!({"type": "input_text", "text": text}));
        }
        Some(match &file.source {
            FileSource::Base64 { data, .. } if file.is_audio() => {
                let format = file.ending().unwrap_or_default();
                json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
            }
            FileSource::Base64 { .. } => {
                json!({"type": "input_file", "filename": file.file_name(), "file_data": file.as_url()})
            }
            FileSource::Url(url) => json!({"type": "input_file", "file_url": url}),
            FileSource::Text(_) => {
                self.losses.note("file", LossReason::NoPlace);
                return None;
            }
        })
    }

    fn call(&mut self, call: &ToolCall) -> Result<Json, JsonError> {
        let mut fields = Fields::default();
        fields.put("type", "function_call")?;
        fields.put("call_id", &self.ids.get(&call.id))?;
        fields.put("name", &call.name)?;
        fields.put("arguments", &call.arguments)?;
        Json::of(&fields)
    }

    fn result(&mut self, result: &ToolResult) -> Result<Json, JsonError> {
        let mut content = Vec::new();
        let mut texts = Vec::new();
        for part in &result.parts {
            match part {
                Part::Text(text) => {
                    texts.push(text.as_str());
                    content.push(json!({"type": "input_text", "text": text}));
                }
                Part::Image(image) => content.push(input_image(image)),
                Part::File(file) => content.extend(self.file(file)),
                Part::ToolCall(_) | Part::ToolResult(_) => {
                    self.losses.note("tool call inside a tool result", LossReason::NoPlace);
                }
                Part::Reasoning { .. } => {
                    self.losses.note("reasoning inside a tool result", LossReason::NoPlace);
                }
                Part::Opaque(opaque) => self.losses.note(&opaque.name, LossReason::NoPlace),
            }
        }
        let mut fields = Fields::default();
        fields.put("type", "function_call_output")?;
        fields.put("call_id", &self.ids.get(&result.call_id))?;
        if texts.len() == content.len() {
            fields.put("output", &texts.join("\n"))?;
        } else {
            fields.put("output", &content)?;
        }
        Json::of(&fields)
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    }
}

fn input_image(image: &Image) -> Value {
    let url = match &image.source {
        ImageSource::Url(url) => url.clone(),
        ImageSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    };
    let detail = image.detail.as_deref().unwrap_or("auto");
    json!({"type": "input_image", "image_url": url, "detail": detail})
}

fn tool(tool: &Tool) -> Result<Fields, JsonError> {
    let mut fields = Fields::default();
    fields.put("type", "function")?;
    fields.put("name", &tool.name)?;
    fields.put_some("description", tool.description.as_ref())?;
    fields.put("parameters", &tool.parameters)?;
    // The API takes a tool for strict unless told otherwise; the caller's schema may not allow that.
    fields.put("strict", &tool.strict.unwrap_or(false))?;
    Ok(fields)
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({"type": "function", "name": name}),
    }
}

fn response_format(format: &ResponseFormat) -> Result<Fields, JsonError> {
    let mut fields = Fields::default();
    match format {
        ResponseFormat::JsonObject => fields.put("type", "json_object")?,
        ResponseFormat::JsonSchema { name, schema, strict } => {
            fields.put("type", "json_schema")?;
            fields.put("name", name)?;
            fields.put("schema", schema)?;
            fields.put("strict", strict)?;
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;

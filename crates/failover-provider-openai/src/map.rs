//! The neutral request, mapped to the dialect. Always from the original, never from an earlier attempt's form.

use crate::adapter::DIALECT;
use crate::facts::{EffortField, Facts, Files};
use crate::family::sampling;
use failover_provider::{
    AttemptScope, ChatRequest, Fields, File, FileSource, IdMap, Image, ImageSource, Json, JsonError,
    LossReason, Losses, Mapped, Message, Opaque, Part, ResponseFormat, Role, Sampling, Tool, ToolCall,
    ToolChoice,
};
use serde_json::{Value, json};

/// Maps a request for one attempt.
pub(crate) fn map(
    request: &ChatRequest,
    scope: &AttemptScope<'_>,
    facts: &Facts,
) -> Result<Mapped, JsonError> {
    let mut mapper = Mapper {
        scope,
        ids: IdMap::of(facts.tool_ids, request),
        messages: Vec::new(),
        facts,
        losses: Losses::of(DIALECT),
    };
    for message in &request.messages {
        mapper.message(message)?;
    }
    let mut body = Fields::default();
    body.put("model", scope.model.model())?;
    body.put("messages", &mapper.messages)?;
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
    body.put_some("tool_choice", choice.map(|choice| tool_choice(choice, facts)).as_ref())?;
    let sampling = sampling(scope.model.model(), request.effort);
    let (temperature, top_p) = request.sampling(sampling, &mut mapper.losses);
    body.put_some("temperature", temperature.as_ref())?;
    body.put_some("top_p", top_p.as_ref())?;
    body.put_some(facts.max_tokens, request.max_tokens.as_ref())?;
    let most = if sampling == Sampling::Fixed { Some(0) } else { facts.most_stops };
    let stops = request.stops(most, true, &mut mapper.losses);
    if !stops.is_empty() {
        body.put("stop", &stops)?;
    }
    if let Some(format) = &request.response_format {
        body.put("response_format", &response_format(format)?)?;
    }
    match (request.effort, facts.effort) {
        (None, _) => {}
        (Some(_), EffortField::Nowhere) => mapper.losses.note("effort", LossReason::NoPlace),
        (Some(effort), EffortField::Flat) => body.put("reasoning_effort", effort.as_str())?,
        // Who wrote it for such a server says more than the neutral form.
        (Some(_), EffortField::Nested) if request.has_own("reasoning", scope, &mapper.losses) => {}
        (Some(effort), EffortField::Nested) => body.put("reasoning", &json!({"effort": effort.as_str()}))?,
    }
    body.put("stream", &request.stream)?;
    if request.stream && facts.ask_for_usage {
        body.put("stream_options", &json!({"include_usage": true}))?;
    }
    let (fields, unknown): (Vec<_>, Vec<_>) = request
        .opaque
        .iter()
        .filter(|opaque| opaque.name != "tools")
        .partition(|opaque| takes_field(facts, &opaque.name));
    for opaque in unknown {
        mapper.losses.leave_out(opaque, LossReason::NoPlace);
    }
    body.put_opaque(fields, scope, &mut mapper.losses)?;
    Mapped::new(&body, mapper.losses)
}

/// Whether the server knows a parameter that not every server of the dialect has. Of one that nobody knows, its operator
/// knows more.
fn takes_field(facts: &Facts, name: &str) -> bool {
    name != "reasoning" || facts.effort == EffortField::Nested || facts.is_unknown()
}

/// Whether the server wants the reasoning of earlier turns back, in this field.
fn takes_back(facts: &Facts, name: &str) -> bool {
    facts.returns_reasoning == Some(name)
}

/// Whether a server of the dialect can be sent what its caller wrote, as far as that differs from server to server.
pub(crate) fn takes(facts: &Facts, request: &ChatRequest) -> bool {
    let mut parts = request.messages.iter().flat_map(|message| &message.parts);
    request.opaque.iter().all(|opaque| takes_field(facts, &opaque.name))
        && facts.most_stops.is_none_or(|most| request.stop.len() <= most)
        && parts.all(|part| match part {
            Part::Reasoning { proof, .. } => {
                proof.as_ref().is_some_and(|proof| facts.is_unknown() || takes_back(facts, &proof.name))
            }
            Part::Text(_)
            | Part::Image(_)
            | Part::File(_)
            | Part::ToolCall(_)
            | Part::ToolResult(_)
            | Part::Opaque(_) => true,
        })
}

/// Whether the server has a place for an image or a file.
pub(crate) fn takes_shown(facts: &Facts, shown: &Part) -> bool {
    let Part::File(file) = shown else { return true };
    let linked = matches!(file.source, FileSource::Url(_));
    match facts.files {
        _ if file.is_text() => true,
        _ if file.is_audio() => facts.audio && !linked && matches!(file.ending(), Some("wav" | "mp3")),
        Files::Nowhere => false,
        Files::Inline => !linked,
        Files::Linked | Files::DocumentUrl => true,
    }
}

struct Mapper<'a> {
    scope: &'a AttemptScope<'a>,
    facts: &'a Facts,
    ids: IdMap,
    messages: Vec<Fields>,
    losses: Losses,
}

impl Mapper<'_> {
    /// One neutral message becomes one of the dialect's, or one for each tool result in it.
    fn message(&mut self, message: &Message) -> Result<(), JsonError> {
        let mut content: Vec<Value> = Vec::new();
        let mut calls: Vec<Value> = Vec::new();
        let mut extra = Fields::default();
        let mut shown: Vec<Value> = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(text) => content.push(json!({"type": "text", "text": text})),
                Part::Image(image) => content.push(image_part(image)),
                Part::File(file) => content.extend(self.file(file)),
                Part::ToolCall(call) => calls.push(self.call(call)),
                Part::ToolResult(result) => {
                    let (mut texts, mut files) = (Vec::new(), Vec::new());
                    for part in &result.parts {
                        match part {
                            Part::Text(text) => texts.push(text.as_str()),
                            Part::Image(image) => shown.push(image_part(image)),
                            Part::File(file) => match file.as_text() {
                                Some(text) => files.push(text),
                                None => shown.extend(self.file(file)),
                            },
                            Part::ToolCall(_) | Part::ToolResult(_) => {
                                self.losses.note("tool call inside a tool result", LossReason::NoPlace);
                            }
                            Part::Reasoning { .. } => {
                                self.losses.note("reasoning inside a tool result", LossReason::NoPlace);
                            }
                            Part::Opaque(opaque) => self.losses.note(&opaque.name, LossReason::NoPlace),
                        }
                    }
                    texts.extend(files.iter().map(String::as_str));
                    let mut fields = Fields::default();
                    fields.put("role", "tool")?;
                    fields.put("tool_call_id", &self.ids.get(&result.call_id))?;
                    fields.put("content", &texts.join("\n"))?;
                    self.messages.push(fields);
                }
                Part::Opaque(own) if is_content(own) => {
                    if self.losses.is_at_home(own, self.scope) {
                        content.extend(serde_json::from_str::<Value>(own.value.as_str()).ok());
                    }
                }
                Part::Reasoning { proof: Some(proof), .. } => {
                    if self.losses.is_at_home(proof, self.scope) {
                        if !takes_back(self.facts, &proof.name) {
                            self.losses.leave_out(proof, LossReason::NoPlace);
                        } else if is_content(proof) {
                            content.extend(serde_json::from_str::<Value>(proof.value.as_str()).ok());
                        } else if !extra.has(&proof.name) {
                            extra.put(&proof.name, &proof.value)?;
                        }
                    }
                }
                Part::Opaque(own) => {
                    if self.losses.is_at_home(own, self.scope) && !extra.has(&own.name) {
                        extra.put(&own.name, &own.value)?;
                    }
                }
                // Without a proof nobody wants it back.
                Part::Reasoning { proof: None, .. } => self.losses.note("reasoning", LossReason::NoPlace),
            }
        }
        if !(content.is_empty() && calls.is_empty() && extra.is_empty()) {
            let mut fields = Fields::default();
            fields.put("role", role(message.role))?;
            match content.as_slice() {
                [] => fields.put("content", &Value::Null)?,
                [one] if one.get("type").and_then(Value::as_str) == Some("text") => {
                    fields.put("content", one.get("text").unwrap_or(one))?;
                }
                many => fields.put("content", many)?,
            }
            if !calls.is_empty() {
                fields.put("tool_calls", &calls)?;
            }
            fields.append(extra);
            self.messages.push(fields);
        }
        if !shown.is_empty() {
            // Tool messages hold text only; what a tool showed follows as the user's.
            shown.insert(0, json!({"type": "text", "text": "Images from the tool results above:"}));
            let mut fields = Fields::default();
            fields.put("role", "user")?;
            fields.put("content", &shown)?;
            self.messages.push(fields);
        }
        Ok(())
    }

    /// A file in the words of the server, or a plain text as such.
    fn file(&mut self, file: &File) -> Option<Value> {
        if let Some(text) = file.as_text() {
            return Some(json!({"type": "text", "text": text}));
        }
        let audio = match &file.source {
            FileSource::Base64 { data, .. } => file.ending().filter(|_| file.is_audio()).zip(Some(data)),
            FileSource::Url(_) | FileSource::Text(_) => None,
        };
        if let Some((format, data)) = audio {
            return Some(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}));
        }
        let Some(url) = file.as_url() else {
            self.losses.note("file", LossReason::NoPlace);
            return None;
        };
        Some(if self.facts.files == Files::DocumentUrl {
            json!({"type": "document_url", "document_url": url, "document_name": file.file_name()})
        } else {
            json!({"type": "file", "file": {"filename": file.file_name(), "file_data": url}})
        })
    }

    fn call(&mut self, call: &ToolCall) -> Value {
        json!({"id": self.ids.get(&call.id), "type": "function",
               "function": {"name": call.name, "arguments": call.arguments}})
    }
}

/// Whether it is a part of the content, which says so itself, and not a field of the message.
fn is_content(own: &Opaque) -> bool {
    #[derive(serde::Deserialize)]
    struct Kind {
        r#type: String,
    }
    serde_json::from_str::<Kind>(own.value.as_str()).is_ok_and(|kind| kind.r#type == own.name)
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn image_part(image: &Image) -> Value {
    let url = match &image.source {
        ImageSource::Url(url) => url.clone(),
        ImageSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    };
    let mut part = json!({"url": url});
    if let (Some(fields), Some(detail)) = (part.as_object_mut(), &image.detail) {
        fields.insert("detail".into(), json!(detail));
    }
    json!({"type": "image_url", "image_url": part})
}

fn tool(tool: &Tool) -> Result<Fields, JsonError> {
    let mut function = Fields::default();
    function.put("name", &tool.name)?;
    function.put_some("description", tool.description.as_ref())?;
    function.put("parameters", &tool.parameters)?;
    function.put_some("strict", tool.strict.as_ref())?;
    let mut fields = Fields::default();
    fields.put("type", "function")?;
    fields.put("function", &function)?;
    Ok(fields)
}

fn tool_choice(choice: &ToolChoice, facts: &Facts) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!(facts.required),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn response_format(format: &ResponseFormat) -> Result<Fields, JsonError> {
    let mut fields = Fields::default();
    match format {
        ResponseFormat::JsonObject => fields.put("type", "json_object")?,
        ResponseFormat::JsonSchema { name, schema, strict } => {
            let mut inner = Fields::default();
            inner.put("name", name)?;
            inner.put("schema", schema)?;
            inner.put("strict", strict)?;
            fields.put("type", "json_schema")?;
            fields.put("json_schema", &inner)?;
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;

//! The neutral request, mapped to the chat API. Always from the original, never from an earlier attempt's form.

use failover_provider::{
    AttemptScope, ChatRequest, Effort, Fields, File, IdMap, Image, ImageSource, Json, JsonError, LossReason,
    Losses, Mapped, Message, Part, ResponseFormat, Role, Tool, ToolCall, ToolChoice, ToolIds, ToolResult,
};
use std::collections::HashMap;

/// The server looks at no id; newer ones hand them on.
const TOOL_IDS: ToolIds = ToolIds::UpTo(128);

/// Maps a request for one attempt.
pub(crate) fn map(request: &ChatRequest, scope: &AttemptScope<'_>) -> Result<Mapped, JsonError> {
    let ids = IdMap::of(TOOL_IDS, request);
    let mut mapper =
        Mapper { scope, ids, names: HashMap::new(), messages: Vec::new(), losses: Losses::new() };
    for message in &request.messages {
        mapper.message(message)?;
    }
    let mut body = Fields::default();
    body.put("model", scope.model.model())?;
    body.put("messages", &mapper.messages)?;
    let tools = request.tools.iter().map(|known| mapper.tool(known)).collect::<Result<Vec<_>, _>>()?;
    if !tools.is_empty() {
        body.put("tools", &tools)?;
    }
    if request.tool_choice.as_ref().is_some_and(|choice| *choice != ToolChoice::Auto) {
        mapper.losses.note("tool_choice", LossReason::NoPlace);
    }
    match &request.response_format {
        None => {}
        Some(ResponseFormat::JsonObject) => body.put("format", "json")?,
        Some(ResponseFormat::JsonSchema { schema, .. }) => body.put("format", schema)?,
    }
    match request.effort {
        None => {}
        Some(Effort::None) => body.put("think", &false)?,
        // Its least is low; models without levels take any of them for yes.
        Some(Effort::Minimal | Effort::Low) => body.put("think", "low")?,
        Some(effort) => body.put("think", effort.as_str())?,
    }
    let mut options = Fields::default();
    options.put_some("temperature", request.temperature.as_ref())?;
    options.put_some("top_p", request.top_p.as_ref())?;
    options.put_some("num_predict", request.max_tokens.as_ref())?;
    if !request.stop.is_empty() {
        options.put("stop", &request.stop)?;
    }
    if !options.is_empty() {
        body.put("options", &options)?;
    }
    // Left out, it means yes.
    body.put("stream", &request.stream)?;
    body.put_opaque(&request.opaque, scope, &mut mapper.losses)?;
    Mapped::new(&body, mapper.losses)
}

/// Whether the server has a place for an image or a file, as it is given.
pub(crate) fn takes_shown(shown: &Part) -> bool {
    if let Part::Image(image) = shown {
        return matches!(image.source, ImageSource::Base64 { .. });
    }
    !matches!(shown, Part::File(file) if !file.is_text())
}

struct Mapper<'a> {
    scope: &'a AttemptScope<'a>,
    ids: IdMap,
    /// Names of the tools, by the ids of their calls: results are told apart by name.
    names: HashMap<&'a str, &'a str>,
    messages: Vec<Fields>,
    losses: Losses,
}

/// What one neutral message gives.
#[derive(Default)]
struct Parts {
    texts: Vec<String>,
    images: Vec<String>,
    calls: Vec<Fields>,
    thinking: Option<Json>,
    extra: Fields,
}

impl<'a> Mapper<'a> {
    /// One neutral message becomes one, or one for each tool result in it.
    fn message(&mut self, message: &'a Message) -> Result<(), JsonError> {
        let mut parts = Parts::default();
        let mut shown = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text(text) => parts.texts.push(text.clone()),
                Part::Image(image) => parts.images.extend(self.image(image)),
                Part::File(file) => parts.texts.extend(self.file(file)),
                Part::ToolCall(call) => parts.calls.push(self.call(call)?),
                Part::ToolResult(result) => shown.extend(self.result(result)?),
                Part::Reasoning { proof: Some(proof), .. } if proof.name == "thinking" => {
                    if self.losses.is_at_home(proof, self.scope) {
                        parts.thinking = Some(proof.value.clone());
                    }
                }
                Part::Reasoning { proof: Some(proof), .. } => {
                    if self.losses.is_at_home(proof, self.scope) {
                        self.losses.note(&proof.name, LossReason::NoPlace);
                    }
                }
                Part::Reasoning { proof: None, .. } => self.losses.note("reasoning", LossReason::NoPlace),
                Part::Opaque(item) => {
                    if self.losses.is_at_home(item, self.scope) {
                        parts.extra.put(&item.name, &item.value)?;
                    }
                }
            }
        }
        let role = match message.role {
            Role::System => "system",
            // Results stand in messages of their own; what is left is said by whoever asks.
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        };
        self.push(role, parts)?;
        if !shown.is_empty() {
            let texts = vec!["Images from the tool results above:".to_owned()];
            self.push("user", Parts { texts, images: shown, ..Parts::default() })?;
        }
        Ok(())
    }

    fn push(&mut self, role: &str, parts: Parts) -> Result<(), JsonError> {
        let Parts { texts, images, calls, thinking, extra } = parts;
        let nothing = texts.is_empty() && images.is_empty() && calls.is_empty() && extra.is_empty();
        if nothing && thinking.is_none() {
            return Ok(());
        }
        let mut fields = Fields::default();
        fields.put("role", role)?;
        fields.put("content", &texts.join("\n"))?;
        fields.put_some("thinking", thinking.as_ref())?;
        if !images.is_empty() {
            fields.put("images", &images)?;
        }
        if !calls.is_empty() {
            fields.put("tool_calls", &calls)?;
        }
        fields.append(extra);
        self.messages.push(fields);
        Ok(())
    }

    /// The server fetches nothing: images come in the request.
    fn image(&mut self, image: &Image) -> Option<String> {
        if image.detail.is_some() {
            self.losses.note("image detail", LossReason::NoPlace);
        }
        match &image.source {
            ImageSource::Base64 { data, .. } => Some(data.clone()),
            ImageSource::Url(_) => {
                self.losses.note("image by URL", LossReason::NoPlace);
                None
            }
        }
    }

    /// The server reads plain texts only.
    fn file(&mut self, file: &File) -> Option<String> {
        let text = file.as_text();
        if text.is_none() {
            self.losses.note("file", LossReason::NoPlace);
        }
        text
    }

    fn call(&mut self, call: &'a ToolCall) -> Result<Fields, JsonError> {
        self.names.insert(&call.id, &call.name);
        let mut function = Fields::default();
        function.put("name", &call.name)?;
        function.put("arguments", &self.arguments(&call.arguments)?)?;
        let mut fields = Fields::default();
        fields.put("id", &self.ids.get(&call.id))?;
        fields.put("type", "function")?;
        fields.put("function", &function)?;
        Ok(fields)
    }

    /// Arguments must be an object here; what a model wrote otherwise cannot go.
    fn arguments(&mut self, text: &str) -> Result<Json, JsonError> {
        let object = Json::parse(text).ok().filter(|json| json.as_str().starts_with('{'));
        if object.is_none() && !text.trim().is_empty() {
            self.losses.note("arguments that are no JSON object", LossReason::NoPlace);
        }
        object.map_or_else(|| Json::parse("{}"), Ok)
    }

    /// Adds the message of a result, and gives back the images in it: results are texts.
    fn result(&mut self, result: &ToolResult) -> Result<Vec<String>, JsonError> {
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in &result.parts {
            match part {
                Part::Text(text) => texts.push(text.clone()),
                Part::File(file) => texts.extend(self.file(file)),
                Part::Image(image) => images.extend(self.image(image)),
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
        fields.put("role", "tool")?;
        fields.put("content", &texts.join("\n"))?;
        fields.put_some("tool_name", self.names.get(result.call_id.as_str()))?;
        fields.put("tool_call_id", &self.ids.get(&result.call_id))?;
        self.messages.push(fields);
        Ok(images)
    }

    fn tool(&mut self, tool: &Tool) -> Result<Fields, JsonError> {
        if tool.strict == Some(true) {
            self.losses.note("strict", LossReason::NoPlace);
        }
        let mut function = Fields::default();
        function.put("name", &tool.name)?;
        function.put_some("description", tool.description.as_ref())?;
        function.put("parameters", &tool.parameters)?;
        let mut fields = Fields::default();
        fields.put("type", "function")?;
        fields.put("function", &function)?;
        Ok(fields)
    }
}

#[cfg(test)]
mod tests;

//! What OpenAI's two dialects have in common, and what all three write the same way.

use super::BadRequest;
use super::read::{cut, required};
use failover_provider::{
    Effort, File, FileSource, FinishReason, ImageSource, Json, ResponseFormat, Tool, ToolChoice, Usage,
};
use serde::{Deserialize, Serialize};

/// A function's name and arguments, as calls and choices have them.
#[derive(Deserialize)]
pub(super) struct Function {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Json>,
}

/// A function that the model may call.
#[derive(Deserialize)]
pub(super) struct FunctionTool {
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Json>,
    strict: Option<bool>,
}

impl FunctionTool {
    /// The neutral tool; `outer` goes before the field's name in errors.
    pub(super) fn tool(self, outer: &str) -> Result<Tool, BadRequest> {
        let name = required(self.name, "name").map_err(|bad| bad.at(format!("{outer}name")))?;
        let mut tool = Tool::new(name, schema(self.parameters, &format!("{outer}parameters"))?);
        tool.description = self.description;
        tool.strict = self.strict;
        Ok(tool)
    }
}

/// A schema that is an object; none at all is one that takes nothing.
pub(super) fn schema(schema: Option<Json>, field: &str) -> Result<Json, BadRequest> {
    match schema {
        Some(schema) if schema.as_str().starts_with('{') => Ok(schema),
        Some(schema) if schema.as_str() != "null" => Err(BadRequest::new("is no JSON object").at(field)),
        _ => Json::parse(r#"{"type":"object","properties":{}}"#)
            .map_err(|error| BadRequest::new(error.to_string())),
    }
}

/// A form of the answer that a schema gives.
#[derive(Deserialize)]
pub(super) struct Shaped {
    pub(super) name: Option<String>,
    pub(super) schema: Option<Json>,
    pub(super) strict: Option<bool>,
}

impl Shaped {
    pub(super) fn format(self) -> Result<ResponseFormat, BadRequest> {
        Ok(ResponseFormat::JsonSchema {
            name: required(self.name, "name")?,
            schema: schema(self.schema, "schema")?,
            strict: self.strict.unwrap_or_default(),
        })
    }
}

/// The word for a choice of tools.
pub(super) fn tool_choice(word: &str) -> Result<ToolChoice, BadRequest> {
    match word {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" | "any" => Ok(ToolChoice::Required),
        other => Err(BadRequest::new(format!("there is no choice {:?}", cut(other)))
            .at("tool_choice")
            .hint("use auto, none, required or an object that names a function")),
    }
}

/// The word for an effort; `None` where it is one that the neutral form lacks.
pub(super) fn effort(word: &str) -> Option<Effort> {
    Some(match word {
        "none" => Effort::None,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        // More than hard is hard where there is nothing more.
        "high" | "xhigh" | "max" => Effort::High,
        _ => return None,
    })
}

/// Arguments as text: some clients send the object itself.
pub(super) fn arguments(json: Option<Json>) -> String {
    let Some(json) = json else { return String::new() };
    serde_json::from_str::<String>(json.as_str()).unwrap_or_else(|_| json.as_str().to_owned())
}

/// A recording, as OpenAI's dialects have it.
#[derive(Deserialize)]
pub(super) struct Recording {
    input_audio: Option<AudioData>,
}

#[derive(Deserialize)]
struct AudioData {
    data: Option<String>,
    format: Option<String>,
}

impl Recording {
    pub(super) fn file(self) -> Result<File, BadRequest> {
        let audio = required(self.input_audio, "input_audio")?;
        let format = required(audio.format, "input_audio.format")?;
        let media_type = if format == "mp3" { "audio/mpeg".to_owned() } else { format!("audio/{format}") };
        let data = required(audio.data, "input_audio.data")?;
        Ok(File::new(FileSource::Base64 { media_type, data }))
    }
}

/// A URL of an image, which may have the image in it.
pub(super) fn image_source(url: String) -> ImageSource {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media, data)) => {
            let media_type = media.split(';').next().unwrap_or_default().to_owned();
            ImageSource::Base64 { media_type, data: data.to_owned() }
        }
        None => ImageSource::Url(url),
    }
}

/// The other way round.
pub(super) fn image_url(source: &ImageSource) -> String {
    match source {
        ImageSource::Url(url) => url.clone(),
        ImageSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    }
}

/// The finish reason of chat completions. Words of other vendors become the plain end: clients know a closed set.
pub(super) fn finish_word(finish: &FinishReason) -> &'static str {
    match finish {
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop | FinishReason::Other(_) | _ => "stop",
    }
}

/// Token counts of chat completions.
#[derive(Serialize)]
pub(super) struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: Cached,
    completion_tokens_details: Reasoned,
}

#[derive(Serialize)]
struct Cached {
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
}

#[derive(Serialize)]
struct Reasoned {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
}

impl From<Usage> for ChatUsage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.input,
            completion_tokens: usage.output,
            total_tokens: usage.input.saturating_add(usage.output),
            prompt_tokens_details: Cached { cached_tokens: usage.cached_input },
            completion_tokens_details: Reasoned { reasoning_tokens: usage.reasoning },
        }
    }
}

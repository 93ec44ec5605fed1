//! What servers send: read leniently, because every one of them differs somewhere.

use failover_provider::{FinishReason, Json, Usage};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fmt;

/// A whole answer, or a chunk of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Body {
    pub(crate) id: Option<Id>,
    pub(crate) model: Option<String>,
    pub(crate) choices: Option<Vec<Choice>>,
    pub(crate) usage: Option<Counts>,
    pub(crate) error: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Choice {
    pub(crate) index: u32,
    #[serde(alias = "message")]
    pub(crate) delta: Option<Delta>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) error: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Delta {
    pub(crate) content: Option<Content>,
    pub(crate) refusal: Option<String>,
    pub(crate) reasoning_content: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) reasoning_details: Option<Vec<Json>>,
    pub(crate) tool_calls: Option<Vec<Call>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Call {
    pub(crate) index: Option<u32>,
    pub(crate) id: Option<String>,
    pub(crate) function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Function {
    pub(crate) name: Option<String>,
    pub(crate) arguments: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContentPart {
    text: Option<String>,
    /// Mistral's reasoning stands among the parts, as parts of its own.
    thinking: Option<Content>,
}

/// A text; whatever else a server puts there, as it is written.
#[derive(Debug)]
pub(crate) struct Id(String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = <&RawValue>::deserialize(deserializer)?.get();
        let plain = written.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        Ok(Self(match plain.filter(|text| !text.contains('\\')) {
            Some(text) => text.to_owned(),
            None => serde_json::from_str(written).unwrap_or_else(|_| written.to_owned()),
        }))
    }
}

/// A text, or the texts of a list of parts; and what is thought in those.
#[derive(Debug, Default)]
pub(crate) struct Content {
    text: String,
    thinking: String,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content { text: text.to_owned(), ..Content::default() })
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content { text, ..Content::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
        let mut content = Content::default();
        while let Some(part) = parts.next_element::<Json>()? {
            let part = serde_json::from_str::<ContentPart>(part.as_str()).unwrap_or_default();
            content.text.extend(part.text);
            content.thinking.extend(part.thinking.map(|thought| thought.text));
        }
        Ok(content)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Content, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::default())
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::default())
    }
}

impl Counts {
    pub(crate) fn usage(&self) -> Usage {
        let mut usage =
            Usage::new(self.prompt_tokens.unwrap_or_default(), self.completion_tokens.unwrap_or_default());
        usage.cached_input = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        usage.reasoning =
            self.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        usage
    }
}

impl Body {
    /// The provider's id of the response.
    pub(crate) fn id_text(&mut self) -> Option<String> {
        self.id.take().map(|id| id.0).filter(|id| !id.is_empty())
    }
}

impl Delta {
    /// The text, with the refusal behind it: that is what the model says, too, in a field of its own.
    pub(crate) fn take_text(&mut self) -> String {
        let text = self.content.take().unwrap_or_default().text;
        text + self.refusal.as_deref().unwrap_or_default()
    }

    /// The visible reasoning, under either of its two names, or from among the parts of the content.
    pub(crate) fn reasoning_text(&self) -> &str {
        let thinking = self.content.as_ref().map(|content| content.thinking.as_str());
        let places = [self.reasoning_content.as_deref(), self.reasoning.as_deref(), thinking];
        places.into_iter().flatten().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// A JSON string's text, or the JSON itself: some servers send arguments as an object.
pub(crate) fn text_or_raw(json: &Json) -> String {
    serde_json::from_str::<String>(json.as_str()).unwrap_or_else(|_| json.as_str().to_owned())
}

/// Finish reasons that mean "failed". The words reach the classifier as they are.
const FAILED: &[&str] = &[
    "error",
    "network_error",
    "abort",
    "malformed_response",
    "malformed_function_call",
    "insufficient_system_resource",
    "unknown_error",
];

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it should, one way or another.
    Finished(FinishReason),
    /// With this word for a failure.
    Failed(String),
}

pub(crate) fn ending(word: &str) -> Ending {
    if word == "stop" {
        return Ending::Finished(FinishReason::Stop);
    }
    let folded = word.to_ascii_lowercase();
    if FAILED.contains(&folded.as_str()) {
        return Ending::Failed(word.to_owned());
    }
    Ending::Finished(match folded.as_str() {
        "stop" | "end_turn" | "eos" | "eos_token" => FinishReason::Stop,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "tool_calls" | "tool_use" | "function_call" => FinishReason::ToolCalls,
        "content_filter" | "safety" => FinishReason::ContentFilter,
        _ => FinishReason::Other(word.to_owned()),
    })
}

//! The list of models: `GET /v1/models`.

use super::write::json;
use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

/// A model that clients may name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelEntry {
    /// What clients put into `model`: a route or `provider/model`.
    pub id: String,
    /// Who has it: the provider, or the gateway for a route.
    pub owner: String,
    /// When it came to be, in seconds since the Unix epoch; 0 where nobody knows.
    pub created: u64,
}

impl ModelEntry {
    /// A model of which nobody knows when it came to be.
    pub fn new(id: impl Into<String>, owner: impl Into<String>) -> Self {
        Self { id: id.into(), owner: owner.into(), created: 0 }
    }
}

/// Whose list a client expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every shape must be written")]
pub enum ModelsShape {
    /// OpenAI's.
    OpenAi,
    /// Anthropic's; its clients send the header `anthropic-version`.
    Anthropic,
}

#[derive(Serialize)]
struct OpenAiList<'a> {
    object: &'static str,
    data: Vec<OpenAiModel<'a>>,
}

#[derive(Serialize)]
struct OpenAiModel<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'a str,
}

#[derive(Serialize)]
struct AnthropicList<'a> {
    data: Vec<AnthropicModel<'a>>,
    has_more: bool,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
}

#[derive(Serialize)]
struct AnthropicModel<'a> {
    r#type: &'static str,
    id: &'a str,
    display_name: &'a str,
    created_at: String,
}

/// Writes the list.
pub fn render_models(shape: ModelsShape, models: &[ModelEntry]) -> Bytes {
    match shape {
        ModelsShape::OpenAi => {
            let data = models.iter().map(|model| OpenAiModel {
                id: &model.id,
                object: "model",
                created: model.created,
                owned_by: &model.owner,
            });
            json(&OpenAiList { object: "list", data: data.collect() })
        }
        ModelsShape::Anthropic => {
            let data = models.iter().map(|model| AnthropicModel {
                r#type: "model",
                id: &model.id,
                display_name: &model.id,
                created_at: time(model.created),
            });
            json(&AnthropicList {
                data: data.collect(),
                has_more: false,
                first_id: models.first().map(|model| model.id.as_str()),
                last_id: models.last().map(|model| model.id.as_str()),
            })
        }
    }
}

fn time(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or_default();
    Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

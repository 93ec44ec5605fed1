//! What the API sends, read leniently.

use failover_provider::{Json, Usage};
use serde::Deserialize;

/// A whole answer; streams repeat it at their start and their end.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) status: Option<String>,
    pub(super) output: Option<Vec<Json>>,
    pub(super) incomplete_details: Option<Incomplete>,
    pub(super) usage: Option<Counts>,
    pub(super) error: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Incomplete {
    pub(super) reason: Option<String>,
}

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) response: Option<Response>,
    pub(super) output_index: u32,
    pub(super) item: Option<Json>,
    pub(super) delta: Option<Json>,
    pub(super) arguments: Option<String>,
    pub(super) error: Option<Json>,
}

/// An item of the output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) content: Option<Vec<Piece>>,
    pub(super) summary: Option<Vec<Piece>>,
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
}

/// A piece of a message or of a summary.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    text: Option<String>,
    refusal: Option<String>,
}

impl Piece {
    /// Whether anything is in it.
    pub(super) fn says(&self) -> bool {
        [&self.text, &self.refusal].into_iter().flatten().any(|text| !text.is_empty())
    }
}

impl Item {
    /// What a message says; a refusal is what the model says, in a field of its own.
    pub(super) fn text(&self) -> String {
        let pieces = self.content.iter().flatten();
        pieces.filter_map(|piece| piece.text.as_deref().or(piece.refusal.as_deref())).collect()
    }

    /// What is shown of the reasoning: the text itself, or its summary.
    pub(super) fn reasoning(&self) -> String {
        let text = self.text();
        if !text.is_empty() {
            return text;
        }
        let pieces: Vec<&str> =
            self.summary.iter().flatten().filter_map(|piece| piece.text.as_deref()).collect();
        pieces.join("\n\n")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
    output_tokens_details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

impl Counts {
    pub(super) fn usage(&self) -> Usage {
        let mut usage =
            Usage::new(self.input_tokens.unwrap_or_default(), self.output_tokens.unwrap_or_default());
        usage.cached_input = self.input_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        usage.reasoning = self.output_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        usage
    }
}

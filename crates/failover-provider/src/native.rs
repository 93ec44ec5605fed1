//! Traffic in a vendor's own dialect, carried as it came: a caller that speaks what the provider speaks gets the
//! provider's own bytes, and its own are sent, without being rebuilt on the way.

use crate::ReplyEvent;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// A dialect that callers and providers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI's chat completions.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// OpenAI's responses.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Anthropic's messages.
    AnthropicMessages,
}

/// Parameters that OpenAI's two dialects have under the same name, with the same meaning, and that their servers know. The
/// list is short on purpose: strict servers refuse a whole request for the sake of one field.
const OPENAI_SHARES: &[&str] = &["parallel_tool_calls"];

impl Dialect {
    /// Whether it has a parameter of another dialect: all of its own.
    pub(crate) fn has(self, name: &str, of: Self) -> bool {
        let openai = |dialect| matches!(dialect, Self::OpenAiChat | Self::OpenAiResponses);
        self == of || (openai(self) && openai(of) && OPENAI_SHARES.contains(&name))
    }
}

/// A request's body as its caller wrote it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Native {
    /// What it is written in.
    pub dialect: Dialect,
    /// The body. Besides it the neutral fields must say the same: providers of other dialects get those.
    pub body: Bytes,
    /// Where the fields that decide how it is sent lie, where that is known already.
    places: Option<Places>,
}

/// Equal where the same is sent.
impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        self.dialect == other.dialect && self.body == other.body
    }
}

impl Eq for Native {}

/// Where fields of the top level lie in a body, in bytes.
#[derive(Clone)]
struct Places {
    model: Range<usize>,
    stream_options: Option<Range<usize>>,
}

impl Native {
    /// A body from its parts.
    pub fn new(dialect: Dialect, body: impl Into<Bytes>) -> Self {
        Self { dialect, body: body.into(), places: None }
    }

    /// Tells what a reader of the body has found in it, so that it need not be scanned again: the values of the top-level
    /// `model` and `stream_options`, as slices of the body. Slices of something else are not taken.
    #[must_use]
    pub fn with_places(mut self, model: &RawValue, stream_options: Option<&RawValue>) -> Self {
        self.places = Places::of(&self.body, model, stream_options);
        self
    }

    fn places(&self) -> Result<Places, NativeError> {
        if let Some(places) = &self.places {
            return Ok(places.clone());
        }
        let top: Top<'_> = serde_json::from_slice(&self.body).map_err(|_| NativeError)?;
        Places::of(&self.body, top.model, top.stream_options).ok_or(NativeError)
    }
}

impl Places {
    fn of(body: &[u8], model: &RawValue, stream_options: Option<&RawValue>) -> Option<Self> {
        let stream_options = match stream_options {
            Some(written) => Some(span(body, written.get())?),
            None => None,
        };
        Some(Self { model: span(body, model.get())?, stream_options })
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Native");
        shown.field("dialect", &self.dialect).field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// A piece of a streamed answer in the provider's own bytes.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct NativeFrame {
    /// One or more whole frames of the stream, delimiters included; empty where there is nothing to pass on.
    pub bytes: Bytes,
    /// Whether content is among it: what feeds the idle limit and, delivered, commits a run.
    pub content: bool,
    /// What it says besides content: [`ReplyEvent::Usage`], and [`ReplyEvent::Finish`] in the last frame. Where
    /// the stream has no bytes of its own, every event, content too.
    pub events: Vec<ReplyEvent>,
}

impl NativeFrame {
    /// A frame from its parts.
    pub fn new(bytes: impl Into<Bytes>, content: bool, events: Vec<ReplyEvent>) -> Self {
        Self { bytes: bytes.into(), content, events }
    }

    /// Whether the answer is complete with it.
    pub fn is_last(&self) -> bool {
        self.events.iter().any(|event| matches!(event, ReplyEvent::Finish(_)))
    }
}

impl fmt::Debug for NativeFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeFrame")
            .field("bytes", &self.bytes.len())
            .field("content", &self.content)
            .field("events", &self.events)
            .finish()
    }
}

/// Reads the content of a frame into events. It keeps what it needs from one frame to the next.
pub type ReadFrame = Box<dyn FnMut(&Bytes) -> Vec<ReplyEvent> + Send>;

/// Where a part of a body lies in it, in bytes; `None` where it is a text of its own.
fn span(body: &[u8], part: &str) -> Option<Range<usize>> {
    let from = (part.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    let to = from.checked_add(part.len())?;
    (body.get(from..to)? == part.as_bytes()).then_some(from..to)
}

/// The fields of a body's top level that decide how it is sent.
#[derive(Deserialize)]
struct Top<'a> {
    #[serde(borrow)]
    model: &'a RawValue,
    /// `null` is kept apart from nothing.
    #[serde(borrow, default, deserialize_with = "raw")]
    stream_options: Option<&'a RawValue>,
}

fn raw<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Native {
    /// The body for this model: nothing but the value of the top-level `model` is replaced, found by one scan.
    ///
    /// # Errors
    ///
    /// [`NativeError`] where the body is no JSON object with one `model`.
    pub fn for_model(&self, model: &str) -> Result<Bytes, NativeError> {
        self.splice(&[model_edit(self.places()?.model, model)?])
    }

    /// As [`Native::for_model`], and asks for the token counts of a stream of chat completions where the caller did
    /// not say whether it wants them. Says whether it asked.
    ///
    /// # Errors
    ///
    /// As [`Native::for_model`].
    pub fn for_model_with_usage(&self, model: &str) -> Result<(Bytes, bool), NativeError> {
        let places = self.places()?;
        let model = model_edit(places.model, model)?;
        let asking = match places.stream_options {
            // An object with a model is not empty: the comma is right.
            None => {
                let brace = self.body.iter().position(|byte| *byte == b'{').ok_or(NativeError)?;
                Some((brace + 1..brace + 1, "\"stream_options\":{\"include_usage\":true},".to_owned()))
            }
            Some(span) => {
                let written = self.body.get(span.clone()).and_then(|bytes| std::str::from_utf8(bytes).ok());
                let written = written.ok_or(NativeError)?;
                if written.contains("\"include_usage\"") || !written.starts_with('{') {
                    None
                } else {
                    let empty = written.trim_matches(['{', '}']).trim().is_empty();
                    let at = span.start + 1;
                    Some((at..at, format!("\"include_usage\":true{}", if empty { "" } else { "," })))
                }
            }
        };
        let asked = asking.is_some();
        let mut edits: Vec<_> = asking.into_iter().chain([model]).collect();
        edits.sort_by_key(|(span, _)| span.start);
        Ok((self.splice(&edits)?, asked))
    }

    /// The body with these parts replaced, first to last.
    fn splice(&self, edits: &[(Range<usize>, String)]) -> Result<Bytes, NativeError> {
        if edits.iter().all(|(span, text)| self.body.get(span.clone()) == Some(text.as_bytes())) {
            return Ok(self.body.clone());
        }
        let added: usize = edits.iter().map(|(_, text)| text.len()).sum();
        let mut spliced = Vec::with_capacity(self.body.len() + added);
        let mut from = 0;
        for (span, text) in edits {
            spliced.extend_from_slice(self.body.get(from..span.start).ok_or(NativeError)?);
            spliced.extend_from_slice(text.as_bytes());
            from = span.end;
        }
        spliced.extend_from_slice(self.body.get(from..).ok_or(NativeError)?);
        Ok(spliced.into())
    }
}

fn model_edit(place: Range<usize>, model: &str) -> Result<(Range<usize>, String), NativeError> {
    Ok((place, serde_json::to_string(model).map_err(|_| NativeError)?))
}

/// A body that cannot be passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the body is no JSON object with one model")]
pub struct NativeError;

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn native(body: &'static str) -> Native {
        Native::new(Dialect::OpenAiChat, body)
    }

    #[test_case(r#"{"model":"route","n":1.50}"#, r#"{"model":"m\"2","n":1.50}"#; "a route")]
    #[test_case(r#" {"a":{"model":"x"}, "model" : "route" } "#, r#" {"a":{"model":"x"}, "model" : "m\"2" } "#; "only the top one")]
    #[test_case(r#"{"mod\u0065l":"route"}"#, r#"{"mod\u0065l":"m\"2"}"#; "spelt otherwise")]
    fn only_the_model_is_replaced(body: &'static str, expected: &str) {
        assert_eq!(native(body).for_model("m\"2").unwrap(), expected);
    }

    #[test]
    fn a_body_that_is_right_already_is_not_copied() {
        let native = native(r#"{"model":"m"}"#);
        assert_eq!(native.for_model("m").unwrap().as_ptr(), native.body.as_ptr());
    }

    #[test]
    fn places_that_were_found_before_count_and_others_do_not() {
        let body = r#"{"stream_options":{},"model":"r","x":"q"}"#;
        let read = |body: &'static str| serde_json::from_str::<Top<'static>>(body).unwrap();
        let found = native(body).with_places(read(body).model, read(body).stream_options);
        assert!(found.places.is_some());
        assert_eq!(found.for_model_with_usage("m"), native(body).for_model_with_usage("m"));
        let elsewhere = read(r#"{"model":"r"}"#).model;
        assert!(native(body).with_places(elsewhere, None).places.is_none());
    }

    #[test_case("{}")]
    #[test_case("[]")]
    #[test_case("{\"model\":"; "cut")]
    #[test_case(r#"{"model":"a","model":"b"}"#; "twice")]
    fn what_is_no_request_is_said(body: &'static str) {
        assert_eq!(native(body).for_model("m"), Err(NativeError));
    }

    #[test_case(r#"{"model":"r"}"#, r#"{"stream_options":{"include_usage":true},"model":"m"}"#, true; "missing")]
    #[test_case(r#"{"stream_options":{},"model":"r"}"#, r#"{"stream_options":{"include_usage":true},"model":"m"}"#, true; "empty")]
    #[test_case(
        r#"{"model":"r","stream_options":{"x":1}}"#,
        r#"{"model":"m","stream_options":{"include_usage":true,"x":1}}"#,
        true;
        "with others"
    )]
    #[test_case(
        r#"{"model":"r","stream_options":{"include_usage":false}}"#,
        r#"{"model":"m","stream_options":{"include_usage":false}}"#,
        false;
        "the caller said no"
    )]
    #[test_case(r#"{"model":"r","stream_options":null}"#, r#"{"model":"m","stream_options":null}"#, false; "null")]
    fn usage_is_asked_for_where_nothing_is_said(body: &'static str, expected: &str, asked: bool) {
        let (sent, did) = native(body).for_model_with_usage("m").unwrap();
        assert_eq!((sent, did), (Bytes::copy_from_slice(expected.as_bytes()), asked));
    }
}

//! What the API sends, turned into neutral events. No I/O.

use failover_http::{Answered, Decode, Fault, SseEvent};
use failover_provider::{FinishReason, Json, Opaque, Origin, ReplyEvent, ToolCallDelta, Usage};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The name of what a text block has besides its text: where that is from. It goes back into the block.
pub(crate) const CITATIONS: &str = "citations";

/// A whole answer, or the start of a streamed one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    id: Option<String>,
    model: Option<String>,
    content: Option<Vec<Json>>,
    stop_reason: Option<String>,
    usage: Option<Counts>,
    error: Option<Json>,
}

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    message: Option<Message>,
    index: u32,
    content_block: Option<Json>,
    delta: Option<Delta>,
    usage: Option<Counts>,
    error: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    #[serde(rename = "type")]
    kind: String,
    text: String,
    thinking: String,
    signature: String,
    partial_json: String,
    citation: Option<Json>,
    stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: String,
    thinking: String,
    signature: String,
    id: Option<String>,
    name: Option<String>,
    input: Option<Json>,
    citations: Option<Vec<Json>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Counts {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_creation: Option<u64>,
}

/// A tool call that is being streamed.
#[derive(Clone, Copy, Debug)]
struct Call {
    block: u32,
    index: u32,
}

/// How much is kept of the input of one of the API's own tools, in bytes.
const MAX_INPUT_BYTES: usize = 1024 * 1024;

/// A block of the API's own whose input is still to come.
#[derive(Debug)]
struct Begun {
    block: u32,
    kind: String,
    raw: Json,
    input: String,
}

impl Begun {
    /// The block with its input, as it goes back.
    fn whole(&self) -> Json {
        let fields = serde_json::from_str::<BTreeMap<String, Json>>(self.raw.as_str());
        let input = Json::parse(self.input.as_str()).ok();
        let with_input = fields.ok().zip(input).and_then(|(mut fields, input)| {
            fields.insert("input".to_owned(), input);
            Json::of(&fields).ok()
        });
        with_input.unwrap_or_else(|| self.raw.clone())
    }
}

/// Adds up token counts.
#[derive(Debug, Default)]
pub(crate) struct Counter(Counts);

impl Counter {
    /// Counts are cumulative, and later events name only those that changed.
    pub(crate) fn count(&mut self, counts: Option<Counts>, answered: &mut Answered) {
        let Some(new) = counts else { return };
        let old = &mut self.0;
        old.input = new.input.or(old.input);
        old.output = new.output.or(old.output);
        old.cache_read = new.cache_read.or(old.cache_read);
        old.cache_creation = new.cache_creation.or(old.cache_creation);
        let count = |count: Option<u64>| count.unwrap_or_default();
        let input =
            count(old.input).saturating_add(count(old.cache_read)).saturating_add(count(old.cache_creation));
        let mut usage = Usage::new(input, count(old.output));
        usage.cached_input = old.cache_read;
        answered.ready.push_back(ReplyEvent::Usage(usage));
    }
}

/// Reads answers of the Messages API.
#[derive(Debug)]
pub(crate) struct Decoder {
    origin: Origin,
    counter: Counter,
    calls: u32,
    open_call: Option<Call>,
    begun: Option<Begun>,
}

pub(crate) fn finish(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other(word.to_owned()),
    }
}

impl Decoder {
    pub(crate) fn new(origin: Origin) -> Self {
        Self { origin, counter: Counter::default(), calls: 0, open_call: None, begun: None }
    }

    fn opaque(&self, name: &str, value: Json) -> Opaque {
        Opaque::new(self.origin.clone(), name, value)
    }

    fn proof(&self, signature: &str, answered: &mut Answered) {
        if let (false, Ok(value)) = (signature.is_empty(), Json::of(signature)) {
            answered.ready.push_back(ReplyEvent::ReasoningProof(self.opaque("signature", value)));
        }
    }

    /// Where the text before it has its content from.
    fn cite(&self, citations: &[Json], answered: &mut Answered) {
        if let (false, Ok(value)) = (citations.is_empty(), Json::of(citations)) {
            answered.ready.push_back(ReplyEvent::Opaque(self.opaque(CITATIONS, value)));
        }
    }

    /// The block that was begun is whole.
    fn end_begun(&mut self, answered: &mut Answered) {
        if let Some(begun) = self.begun.take() {
            answered.ready.push_back(ReplyEvent::Opaque(self.opaque(&begun.kind, begun.whole())));
        }
    }

    /// A block: whole, or the start of a streamed one, whose deltas follow.
    fn block(&mut self, at: Option<u32>, raw: &Json, answered: &mut Answered) {
        let Ok(block) = serde_json::from_str::<Block>(raw.as_str()) else {
            tracing::warn!(bytes = raw.as_str().len(), "skipped a malformed block of an answer");
            return;
        };
        match block.kind.as_str() {
            "text" => {
                if !block.text.is_empty() {
                    answered.ready.push_back(ReplyEvent::Text(block.text));
                }
                self.cite(block.citations.as_deref().unwrap_or_default(), answered);
            }
            "thinking" => {
                if !block.thinking.is_empty() {
                    answered.ready.push_back(ReplyEvent::Reasoning(block.thinking));
                }
                self.proof(&block.signature, answered);
            }
            "tool_use" => {
                let index = self.calls;
                self.calls = self.calls.saturating_add(1);
                self.open_call = at.map(|block| Call { block, index });
                // A streamed call begins with an empty object that its deltas replace.
                let input = block.input.as_ref().map(Json::as_str).filter(|_| at.is_none());
                let call = ToolCallDelta::new(index, input.unwrap_or_default());
                answered.ready.push_back(ReplyEvent::ToolCall(call.with_start(block.id, block.name)));
            }
            // What the API's own tools are asked comes like the arguments of a call.
            kind if block.input.as_ref().is_some_and(|input| input.as_str() == "{}") && at.is_some() => {
                let (block, kind) = (at.unwrap_or_default(), kind.to_owned());
                self.begun = Some(Begun { block, kind, raw: raw.clone(), input: String::new() });
            }
            // Redacted thinking, and whatever the API's own tools say, goes back as it came.
            kind => answered.ready.push_back(ReplyEvent::Opaque(self.opaque(kind, raw.clone()))),
        }
    }

    fn delta(&mut self, at: u32, delta: Delta, answered: &mut Answered) {
        match delta.kind.as_str() {
            "text_delta" if !delta.text.is_empty() => {
                answered.ready.push_back(ReplyEvent::Text(delta.text));
            }
            "thinking_delta" if !delta.thinking.is_empty() => {
                answered.ready.push_back(ReplyEvent::Reasoning(delta.thinking));
            }
            "signature_delta" => self.proof(&delta.signature, answered),
            "citations_delta" => self.cite(delta.citation.as_slice(), answered),
            "input_json_delta" if self.begun.as_ref().is_some_and(|begun| begun.block == at) => {
                let room = |begun: &&mut Begun| begun.input.len() <= MAX_INPUT_BYTES;
                if let Some(begun) = self.begun.as_mut().filter(room) {
                    begun.input.push_str(&delta.partial_json);
                }
            }
            "input_json_delta" if !delta.partial_json.is_empty() => {
                if let Some(call) = self.open_call.filter(|call| call.block == at) {
                    let more = ToolCallDelta::new(call.index, delta.partial_json);
                    answered.ready.push_back(ReplyEvent::ToolCall(more));
                }
            }
            _ => {}
        }
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &SseEvent, answered: &mut Answered) -> Result<(), Fault> {
        let data = event.data.trim();
        if event.event == "error" {
            return Err(Fault::Error(data.to_owned()));
        }
        let Ok(event) = serde_json::from_str::<Event>(data) else {
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
            return Ok(());
        };
        if event.error.is_some() || event.kind == "error" {
            return Err(Fault::Error(data.to_owned()));
        }
        if matches!(event.kind.as_str(), "content_block_start" | "content_block_stop" | "message_delta") {
            self.end_begun(answered);
        }
        match event.kind.as_str() {
            "message_start" => {
                let message = event.message.unwrap_or_default();
                answered.head.id = message.id;
                answered.head.model = message.model;
                self.counter.count(message.usage, answered);
            }
            "content_block_start" => {
                if let Some(block) = &event.content_block {
                    self.block(Some(event.index), block, answered);
                }
            }
            "content_block_delta" => self.delta(event.index, event.delta.unwrap_or_default(), answered),
            "message_delta" => {
                let word = event.delta.and_then(|delta| delta.stop_reason);
                answered.finish = word.as_deref().map(finish).or(answered.finish.take());
                self.counter.count(event.usage, answered);
            }
            "message_stop" => answered.done = true,
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, answered: &mut Answered) -> Result<(), Fault> {
        let fault = || Fault::Error(body.to_owned());
        let message = serde_json::from_str::<Message>(body).map_err(|_| fault())?;
        if message.error.is_some() {
            return Err(fault());
        }
        for block in message.content.iter().flatten() {
            self.block(None, block, answered);
        }
        answered.head.id = message.id;
        answered.head.model = message.model;
        answered.finish = message.stop_reason.as_deref().map(finish);
        self.counter.count(message.usage, answered);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

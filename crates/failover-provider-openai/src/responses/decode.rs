//! What the API sends, turned into neutral events. No I/O.

use super::wire::{Event, Item, Response};
use failover_http::{Answered, Decode, Fault, SseEvent};
use failover_provider::{FinishReason, Json, Opaque, Origin, ReplyEvent, ToolCallDelta};
use std::collections::{HashMap, HashSet};

/// The kind of item that holds reasoning, in the open and encrypted. It goes back whole.
pub(super) const REASONING: &str = "reasoning";

/// A tool call that is being streamed.
#[derive(Clone, Copy, Debug)]
struct Call {
    index: u32,
    arguments: bool,
}

/// Reads answers of the Responses API.
#[derive(Debug)]
pub(super) struct Decoder {
    origin: Origin,
    /// Calls by their place in the output.
    calls: HashMap<u32, Call>,
    /// Items that said something piece by piece: their whole says it again.
    told: HashSet<u32>,
    /// Reasoning that shows nothing, kept back until something is said: alone it is no answer.
    held: Vec<ReplyEvent>,
    content: bool,
}

/// Why an answer ended, from its status, the reason for an incomplete one, and whether tools are called.
pub(super) fn finish(status: Option<&str>, reason: Option<&str>, calls: bool) -> FinishReason {
    match (status, reason) {
        (Some("incomplete"), Some("max_output_tokens") | None) => FinishReason::Length,
        (Some("incomplete"), Some("content_filter")) => FinishReason::ContentFilter,
        (Some("incomplete"), Some(other)) => FinishReason::Other(other.to_owned()),
        _ if calls => FinishReason::ToolCalls,
        _ => FinishReason::Stop,
    }
}

impl Decoder {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, calls: HashMap::new(), told: HashSet::new(), held: Vec::new(), content: false }
    }

    fn say(&mut self, event: ReplyEvent, answered: &mut Answered) {
        self.content = true;
        answered.ready.extend(self.held.drain(..));
        answered.ready.push_back(event);
    }

    fn begin_call(&mut self, at: u32, item: &Item, answered: &mut Answered) {
        let index = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        let arguments = item.arguments.as_deref().unwrap_or_default();
        self.calls.insert(at, Call { index, arguments: !arguments.is_empty() });
        let call = ToolCallDelta::new(index, arguments);
        self.say(ReplyEvent::ToolCall(call.with_start(item.call_id.clone(), item.name.clone())), answered);
    }

    fn arguments(&mut self, at: u32, text: String, answered: &mut Answered) {
        let Some(call) = self.calls.get_mut(&at).filter(|_| !text.is_empty()) else { return };
        call.arguments = true;
        let more = ToolCallDelta::new(call.index, text);
        self.say(ReplyEvent::ToolCall(more), answered);
    }

    /// The whole of a call's arguments, where no piece of them came.
    fn all_arguments(&mut self, at: u32, text: Option<String>, answered: &mut Answered) {
        if self.calls.get(&at).is_some_and(|call| !call.arguments) {
            self.arguments(at, text.unwrap_or_default(), answered);
        }
    }

    /// An item that is complete.
    fn item(&mut self, at: u32, raw: &Json, answered: &mut Answered) {
        let Ok(item) = serde_json::from_str::<Item>(raw.as_str()) else {
            tracing::warn!(bytes = raw.as_str().len(), "skipped a malformed item of an answer");
            return;
        };
        let told = !self.told.insert(at);
        match item.kind.as_str() {
            "message" => {
                let text = item.text();
                if !told && !text.is_empty() {
                    self.say(ReplyEvent::Text(text), answered);
                }
            }
            "function_call" if self.calls.contains_key(&at) => {
                self.all_arguments(at, item.arguments, answered);
            }
            "function_call" => self.begin_call(at, &item, answered),
            REASONING => {
                let text = item.reasoning();
                if !told && !text.is_empty() {
                    self.say(ReplyEvent::Reasoning(text), answered);
                }
                let proof = Opaque::new(self.origin.clone(), REASONING, raw.clone());
                let proof = ReplyEvent::ReasoningProof(proof);
                if self.content {
                    self.say(proof, answered);
                } else {
                    self.held.push(proof);
                }
            }
            // What the API's own tools say goes back as it came.
            kind => {
                let opaque = Opaque::new(self.origin.clone(), kind, raw.clone());
                self.say(ReplyEvent::Opaque(opaque), answered);
            }
        }
    }

    /// What a stream repeats at its start, and what its end adds.
    fn head(response: &Response, answered: &mut Answered) {
        answered.head.id = answered.head.id.take().or_else(|| response.id.clone());
        answered.head.model = answered.head.model.take().or_else(|| response.model.clone());
    }

    fn end(&mut self, response: &Response, answered: &mut Answered) {
        Self::head(response, answered);
        let reason = response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
        answered.finish = Some(finish(response.status.as_deref(), reason, !self.calls.is_empty()));
        if let Some(counts) = &response.usage {
            answered.ready.push_back(ReplyEvent::Usage(counts.usage()));
        }
    }

    fn streamed(&mut self, event: Event, answered: &mut Answered) {
        let text =
            || event.delta.as_ref().and_then(|delta| serde_json::from_str::<String>(delta.as_str()).ok());
        let at = event.output_index;
        match event.kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(response) = &event.response {
                    Self::head(response, answered);
                }
            }
            "response.output_item.added" => {
                let item = event.item.and_then(|raw| serde_json::from_str::<Item>(raw.as_str()).ok());
                if let Some(item) = item.filter(|item| item.kind == "function_call") {
                    self.begin_call(at, &item, answered);
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                if let Some(text) = text().filter(|text| !text.is_empty()) {
                    self.told.insert(at);
                    self.say(ReplyEvent::Text(text), answered);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                if let Some(text) = text().filter(|text| !text.is_empty()) {
                    self.told.insert(at);
                    self.say(ReplyEvent::Reasoning(text), answered);
                }
            }
            // A summary of several parts reads as paragraphs.
            "response.reasoning_summary_part.added" if self.told.contains(&at) => {
                self.say(ReplyEvent::Reasoning("\n\n".to_owned()), answered);
            }
            "response.function_call_arguments.delta" => {
                if let Some(text) = text() {
                    self.arguments(at, text, answered);
                }
            }
            "response.function_call_arguments.done" => self.all_arguments(at, event.arguments, answered),
            "response.output_item.done" => {
                if let Some(raw) = &event.item {
                    self.item(at, raw, answered);
                }
            }
            "response.completed" | "response.incomplete" => {
                self.end(&event.response.unwrap_or_default(), answered);
                answered.done = true;
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
        if data == "[DONE]" {
            answered.done = true;
            return Ok(());
        }
        let Ok(event) = serde_json::from_str::<Event>(data) else {
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
            return Ok(());
        };
        let failed = ["error", "response.failed", "response.cancelled"].contains(&event.kind.as_str());
        if failed || event.error.is_some() {
            return Err(Fault::Error(data.to_owned()));
        }
        self.streamed(event, answered);
        Ok(())
    }

    fn whole(&mut self, body: &str, answered: &mut Answered) -> Result<(), Fault> {
        let fault = || Fault::Error(body.to_owned());
        let response = serde_json::from_str::<Response>(body).map_err(|_| fault())?;
        let over = matches!(response.status.as_deref(), Some("completed" | "incomplete") | None);
        if response.error.is_some() || !over {
            return Err(fault());
        }
        for (at, item) in (0..).zip(response.output.iter().flatten()) {
            self.item(at, item, answered);
        }
        self.end(&response, answered);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

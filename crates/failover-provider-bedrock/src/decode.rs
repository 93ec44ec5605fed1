//! What the API sends, turned into neutral events. No I/O.

use crate::frames::EXCEPTION;
use crate::wire::{Block, Body, Delta, Event, Reasoning};
use failover_http::{Answered, Decode, Fault, SseEvent};
use failover_provider::{FinishReason, Json, Opaque, Origin, ReplyEvent, ToolCallDelta};

/// The field that proves reasoning to its origin.
pub(crate) const SIGNATURE: &str = "signature";
/// The kind of block that holds reasoning; where it is redacted, it goes back whole.
pub(crate) const REASONING: &str = "reasoningContent";

/// A tool call that is being streamed.
#[derive(Clone, Copy, Debug)]
struct Call {
    block: u32,
    index: u32,
}

/// Reads answers of the Converse API.
#[derive(Debug)]
pub(crate) struct Decoder {
    origin: Origin,
    calls: u32,
    open_call: Option<Call>,
}

/// How an answer ended: `Err` where the model's output is of no use.
fn finish(word: &str) -> Result<FinishReason, Fault> {
    Ok(match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        "malformed_model_output" | "malformed_tool_use" => return Err(Fault::Finish(word.to_owned())),
        other => FinishReason::Other(other.to_owned()),
    })
}

impl Decoder {
    pub(crate) fn new(origin: Origin) -> Self {
        Self { origin, calls: 0, open_call: None }
    }

    fn opaque(&self, name: &str, value: Json) -> Opaque {
        Opaque::new(self.origin.clone(), name, value)
    }

    fn proof(&self, signature: Option<Json>, answered: &mut Answered) {
        if let Some(signature) = signature.filter(|signature| signature.as_str() != "\"\"") {
            answered.ready.push_back(ReplyEvent::ReasoningProof(self.opaque(SIGNATURE, signature)));
        }
    }

    fn begin_call(
        &mut self,
        block: Option<u32>,
        id: Option<String>,
        name: Option<String>,
        input: &str,
        answered: &mut Answered,
    ) {
        let index = self.calls;
        self.calls = self.calls.saturating_add(1);
        self.open_call = block.map(|block| Call { block, index });
        answered.ready.push_back(ReplyEvent::ToolCall(ToolCallDelta::new(index, input).with_start(id, name)));
    }

    /// A block that came whole.
    fn block(&mut self, raw: &Json, answered: &mut Answered) {
        let Ok(block) = serde_json::from_str::<Block>(raw.as_str()) else {
            tracing::warn!(bytes = raw.as_str().len(), "skipped a malformed block of an answer");
            return;
        };
        match block {
            Block { text: Some(text), .. } => {
                if !text.is_empty() {
                    answered.ready.push_back(ReplyEvent::Text(text));
                }
            }
            Block { tool_use: Some(call), .. } => {
                let input = call.input.as_ref().map_or("{}", Json::as_str);
                self.begin_call(None, call.id, call.name, input, answered);
            }
            Block { reasoning_content: Some(Reasoning { reasoning_text: Some(reasoning), .. }), .. } => {
                if !reasoning.text.is_empty() {
                    answered.ready.push_back(ReplyEvent::Reasoning(reasoning.text));
                }
                self.proof(reasoning.signature, answered);
            }
            // Redacted reasoning, and whatever else a model says, goes back as it came.
            Block { .. } => {
                let fields = serde_json::from_str::<std::collections::BTreeMap<String, Json>>(raw.as_str());
                if let Some(name) = fields.ok().and_then(|fields| fields.into_keys().next()) {
                    answered.ready.push_back(ReplyEvent::Opaque(self.opaque(&name, raw.clone())));
                }
            }
        }
    }

    fn delta(&mut self, at: u32, delta: Delta, answered: &mut Answered) {
        if let Some(text) = delta.text.filter(|text| !text.is_empty()) {
            answered.ready.push_back(ReplyEvent::Text(text));
        }
        if let Some(more) = delta.tool_use.filter(|more| !more.input.is_empty())
            && let Some(call) = self.open_call.filter(|call| call.block == at)
        {
            answered.ready.push_back(ReplyEvent::ToolCall(ToolCallDelta::new(call.index, more.input)));
        }
        if let Some(reasoning) = delta.reasoning_content {
            if let Some(text) = reasoning.text.filter(|text| !text.is_empty()) {
                answered.ready.push_back(ReplyEvent::Reasoning(text));
            }
            self.proof(reasoning.signature, answered);
            if let Some(redacted) = reasoning.redacted_content {
                let block =
                    Json::parse(format!("{{\"{REASONING}\":{{\"redactedContent\":{}}}}}", redacted.as_str()));
                if let Ok(block) = block {
                    answered.ready.push_back(ReplyEvent::Opaque(self.opaque(REASONING, block)));
                }
            }
        }
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &SseEvent, answered: &mut Answered) -> Result<(), Fault> {
        let data = event.data.trim();
        if event.event == EXCEPTION || event.event == "error" {
            return Err(Fault::Error(data.to_owned()));
        }
        let kind = event.event.as_str();
        let Ok(event) = serde_json::from_str::<Event>(data) else {
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
            return Ok(());
        };
        if event.error.is_some() {
            return Err(Fault::Error(data.to_owned()));
        }
        match kind {
            "contentBlockStart" => {
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    self.begin_call(Some(event.content_block_index), call.id, call.name, "", answered);
                }
            }
            "contentBlockDelta" => {
                self.delta(event.content_block_index, event.delta.unwrap_or_default(), answered);
            }
            "messageStop" => {
                answered.finish = event.stop_reason.as_deref().map(finish).transpose()?;
            }
            "metadata" => {
                if let Some(counts) = event.usage {
                    answered.ready.push_back(ReplyEvent::Usage(counts.usage()));
                }
                // It comes once, and last.
                answered.done = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, answered: &mut Answered) -> Result<(), Fault> {
        let fault = || Fault::Error(body.to_owned());
        let read = serde_json::from_str::<Body>(body).map_err(|_| fault())?;
        if read.error.is_some() || read.kind.is_some() {
            return Err(fault());
        }
        for block in read.output.unwrap_or_default().message.content {
            self.block(&block, answered);
        }
        answered.finish = read.stop_reason.as_deref().map(finish).transpose()?;
        if let Some(counts) = read.usage {
            answered.ready.push_back(ReplyEvent::Usage(counts.usage()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! What servers send, turned into neutral events. No I/O.

use crate::facts::Facts;
use crate::wire::{Body, Choice, Delta, Ending, ending, text_or_raw};
use failover_http::{Answered, Decode, Fault, SseEvent};
use failover_provider::{Json, Opaque, Origin, ReplyEvent, ToolCallDelta};
use serde_json::json;
use std::collections::VecDeque;

/// How much of the reasoning to be sent back is kept, in bytes.
const MAX_PROOF_BYTES: usize = 1024 * 1024;

/// Mistral's kind of part for what was thought.
const THINKING: &str = "thinking";

/// Reads answers of the dialect.
pub(crate) struct Decoder {
    origin: Origin,
    returns_reasoning: Option<&'static str>,
    /// Ids of the calls, by index, for servers that leave the index out.
    calls: Vec<String>,
    proof: Vec<String>,
    proof_bytes: usize,
}

impl Decoder {
    pub(crate) fn new(origin: Origin, facts: &Facts) -> Self {
        let returns_reasoning = facts.returns_reasoning;
        Self { origin, returns_reasoning, calls: Vec::new(), proof: Vec::new(), proof_bytes: 0 }
    }

    fn body(&mut self, data: &str, mut body: Body, answered: &mut Answered) -> Result<(), Fault> {
        if body.error.is_some() || body.choices.iter().flatten().any(|choice| choice.error.is_some()) {
            return Err(Fault::Error(data.to_owned()));
        }
        answered.head.id = answered.head.id.take().or_else(|| body.id_text());
        answered.head.model = answered.head.model.take().or(body.model);
        let first = body.choices.unwrap_or_default().into_iter().find(|choice| choice.index == 0);
        let failed = first.map_or(Ok(()), |choice| self.choice(choice, answered));
        if let Some(counts) = body.usage {
            answered.ready.push_back(ReplyEvent::Usage(counts.usage()));
        }
        failed
    }

    fn choice(&mut self, choice: Choice, answered: &mut Answered) -> Result<(), Fault> {
        if let Some(delta) = choice.delta {
            self.delta(delta, &mut answered.ready);
        }
        match choice.finish_reason.as_deref().filter(|word| !word.is_empty()).map(ending) {
            Some(Ending::Failed(word)) => Err(Fault::Finish(word)),
            Some(Ending::Finished(finish)) => {
                if let Some(proof) = self.take_proof() {
                    answered.ready.push_back(ReplyEvent::ReasoningProof(proof));
                }
                answered.finish = Some(finish);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn delta(&mut self, mut delta: Delta, ready: &mut VecDeque<ReplyEvent>) {
        let reasoning = delta.reasoning_text();
        if !reasoning.is_empty() {
            if matches!(self.returns_reasoning, Some("reasoning_content" | THINKING)) {
                self.remember(reasoning.to_owned());
            }
            ready.push_back(ReplyEvent::Reasoning(reasoning.to_owned()));
        }
        if self.returns_reasoning == Some("reasoning_details") {
            for item in delta.reasoning_details.iter().flatten() {
                self.remember(item.as_str().to_owned());
            }
        }
        let text = delta.take_text();
        if !text.is_empty() {
            ready.push_back(ReplyEvent::Text(text));
        }
        for call in delta.tool_calls.iter().flatten() {
            let id = call.id.clone().filter(|id| !id.is_empty());
            let index = call.index.unwrap_or_else(|| self.index_of(id.as_deref()));
            let function = call.function.as_ref();
            let arguments = function
                .and_then(|function| function.arguments.as_ref())
                .map(text_or_raw)
                .unwrap_or_default();
            let name = function.and_then(|function| function.name.clone()).filter(|name| !name.is_empty());
            let more = ToolCallDelta::new(index, arguments).with_start(id, name);
            ready.push_back(ReplyEvent::ToolCall(more));
        }
    }

    /// The place of a call whose server sends no index: its id's, or the last one's.
    fn index_of(&mut self, id: Option<&str>) -> u32 {
        let known = id.and_then(|id| self.calls.iter().position(|known| known == id));
        let at = match (known, id) {
            (Some(at), _) => at,
            (None, Some(id)) => {
                self.calls.push(id.to_owned());
                self.calls.len() - 1
            }
            (None, None) => self.calls.len().saturating_sub(1),
        };
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    fn remember(&mut self, piece: String) {
        self.proof_bytes = self.proof_bytes.saturating_add(piece.len());
        if self.proof_bytes <= MAX_PROOF_BYTES {
            self.proof.push(piece);
        }
    }

    /// What the server wants back in later turns. Kept whole or not at all.
    fn take_proof(&mut self) -> Option<Opaque> {
        let name = self.returns_reasoning?;
        let pieces = std::mem::take(&mut self.proof);
        if pieces.is_empty() || self.proof_bytes > MAX_PROOF_BYTES {
            return None;
        }
        let value = match name {
            "reasoning_content" => Json::of(&pieces.concat()),
            THINKING => {
                let thought = json!([{"type": "text", "text": pieces.concat()}]);
                Json::of(&json!({"type": THINKING, THINKING: thought}))
            }
            _ => Json::parse(format!("[{}]", pieces.join(","))),
        };
        Some(Opaque::new(self.origin.clone(), name, value.ok()?))
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
        if data.is_empty() {
            return Ok(());
        }
        let Ok(body) = serde_json::from_str::<Body>(data) else {
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
            return Ok(());
        };
        self.body(data, body, answered)
    }

    fn whole(&mut self, body: &str, answered: &mut Answered) -> Result<(), Fault> {
        let parsed = serde_json::from_str::<Body>(body).map_err(|_| Fault::Error(body.to_owned()))?;
        self.body(body, parsed, answered)?;
        // Not every server says why it stopped.
        if let Some(proof) = self.take_proof() {
            answered.ready.push_back(ReplyEvent::ReasoningProof(proof));
        }
        // The proof belongs to the reasoning, which comes first.
        let ready = answered.ready.make_contiguous();
        let place = ready.iter().take_while(|event| matches!(event, ReplyEvent::Reasoning(_))).count();
        if let Some(at) = ready.iter().position(|event| matches!(event, ReplyEvent::ReasoningProof(_)))
            && let Some(rest) = ready.get_mut(place..=at)
        {
            rest.rotate_right(1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

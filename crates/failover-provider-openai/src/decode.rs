//! Events of a stream, turned into neutral ones. No I/O.

use crate::facts::Facts;
use crate::wire::{Body, Choice, Delta, Ending, ending, text_or_raw};
use failover_http::SseEvent;
use failover_provider::{FinishReason, Json, Opaque, Origin, ReplyEvent, ReplyHead, ToolCallDelta};
use std::collections::VecDeque;

/// How much of the reasoning to be sent back is kept, in bytes.
const MAX_PROOF_BYTES: usize = 1024 * 1024;

/// A stream that says itself that it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An error event, as it came.
    Event(String),
    /// A finish reason that means "failed".
    Finish(String),
}

/// Gathers what a stream says.
pub(crate) struct Decoder {
    origin: Origin,
    returns_reasoning: Option<&'static str>,
    pub(crate) head: ReplyHead,
    pub(crate) ready: VecDeque<ReplyEvent>,
    pub(crate) finish: Option<FinishReason>,
    /// The sentinel came: nothing follows.
    pub(crate) done: bool,
    pub(crate) malformed: u32,
    /// Ids of the calls, by index, for servers that leave the index out.
    calls: Vec<String>,
    proof: Vec<String>,
    proof_bytes: usize,
}

impl Decoder {
    pub(crate) fn new(origin: Origin, facts: &Facts, head: ReplyHead) -> Self {
        Self {
            origin,
            returns_reasoning: facts.returns_reasoning,
            head,
            ready: VecDeque::new(),
            finish: None,
            done: false,
            malformed: 0,
            calls: Vec::new(),
            proof: Vec::new(),
            proof_bytes: 0,
        }
    }

    /// Takes one event. A malformed one is skipped and counted.
    pub(crate) fn take(&mut self, event: &SseEvent) -> Result<(), Fault> {
        let data = event.data.trim();
        if event.event == "error" {
            return Err(Fault::Event(data.to_owned()));
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let Ok(body) = serde_json::from_str::<Body>(data) else {
            self.malformed += 1;
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
            return Ok(());
        };
        if body.error.is_some() || body.choices.iter().flatten().any(|choice| choice.error.is_some()) {
            return Err(Fault::Event(data.to_owned()));
        }
        self.head.id = self.head.id.take().or_else(|| body.id_text());
        self.head.model = self.head.model.take().or(body.model);
        let first = body.choices.unwrap_or_default().into_iter().find(|choice| choice.index == 0);
        let failed = first.map_or(Ok(()), |choice| self.choice(&choice));
        if let Some(counts) = body.usage {
            self.ready.push_back(ReplyEvent::Usage(counts.usage()));
        }
        failed
    }

    fn choice(&mut self, choice: &Choice) -> Result<(), Fault> {
        if let Some(delta) = &choice.delta {
            self.delta(delta);
        }
        match choice.finish_reason.as_deref().filter(|word| !word.is_empty()).map(ending) {
            Some(Ending::Failed(word)) => Err(Fault::Finish(word)),
            Some(Ending::Finished(finish)) => {
                self.finish = Some(finish);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn delta(&mut self, delta: &Delta) {
        let reasoning = delta.reasoning_text();
        if !reasoning.is_empty() {
            if self.returns_reasoning == Some("reasoning_content") {
                self.remember(reasoning.to_owned());
            }
            self.ready.push_back(ReplyEvent::Reasoning(reasoning.to_owned()));
        }
        if self.returns_reasoning == Some("reasoning_details") {
            for item in delta.reasoning_details.iter().flatten() {
                self.remember(item.as_str().to_owned());
            }
        }
        let text = delta.text();
        if !text.is_empty() {
            self.ready.push_back(ReplyEvent::Text(text));
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
            self.ready.push_back(ReplyEvent::ToolCall(more));
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
    pub(crate) fn take_proof(&mut self) -> Option<Opaque> {
        let name = self.returns_reasoning?;
        let pieces = std::mem::take(&mut self.proof);
        if pieces.is_empty() || self.proof_bytes > MAX_PROOF_BYTES {
            return None;
        }
        let value = if name == "reasoning_content" {
            Json::of(&pieces.concat())
        } else {
            Json::parse(format!("[{}]", pieces.join(",")))
        };
        Some(Opaque::new(self.origin.clone(), name, value.ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FACTS;
    use failover_types::ProviderId;
    use proptest::prelude::*;

    fn decoder() -> Decoder {
        let origin = Origin::new(ProviderId::new("openrouter").unwrap());
        let facts = FACTS.iter().find(|facts| facts.id == "openrouter").unwrap();
        Decoder::new(origin, facts, ReplyHead::default())
    }

    fn event(data: &str) -> SseEvent {
        let mut event = SseEvent::default();
        data.clone_into(&mut event.data);
        event
    }

    // spec: P-3
    #[test]
    fn a_malformed_event_is_counted_and_skipped() {
        let mut decoder = decoder();
        decoder.take(&event("{\"choices\":[{")).unwrap();
        decoder.take(&event(r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}"#)).unwrap();
        assert_eq!((decoder.malformed, decoder.ready.pop_front()), (1, Some(ReplyEvent::Text("a".into()))));
    }

    #[test]
    fn a_proof_that_is_too_long_is_left_out_whole() {
        let mut decoder = decoder();
        let item =
            format!(r#"{{"choices":[{{"delta":{{"reasoning_details":["{}"]}}}}]}}"#, "x".repeat(700_000));
        decoder.take(&event(&item)).unwrap();
        decoder.take(&event(&item)).unwrap();
        assert_eq!(decoder.take_proof(), None);
    }

    proptest! {
        #[test]
        fn any_event_is_harmless(data in "\\PC{0,80}", pieces in proptest::collection::vec(prop_oneof![
            Just("{"), Just("}"), Just("["), Just("]"), Just(":"), Just(","), Just("null"), Just("\"choices\""),
            Just("\"delta\""), Just("\"content\""), Just("\"tool_calls\""), Just("\"index\""), Just("-1"), Just("\"x\"")
        ], 0..40)) {
            let mut decoder = decoder();
            // Whether it is a fault does not matter; that it does not panic does.
            let _ = decoder.take(&event(&data));
            let _ = decoder.take(&event(&pieces.concat()));
        }
    }
}

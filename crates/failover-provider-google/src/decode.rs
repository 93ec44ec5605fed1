//! What the API sends, turned into neutral events. No I/O.

use crate::wire::{Body, Call, Candidate, Ending, Part, ending};
use failover_http::{Answered, Decode, Fault, SseEvent};
use failover_provider::{FinishReason, Json, Opaque, Origin, ReplyEvent, ToolCallDelta};

/// The field that proves a part to its origin.
pub(crate) const SIGNATURE: &str = "thoughtSignature";

/// Reads answers of the Gemini API.
#[derive(Debug)]
pub(crate) struct Decoder {
    origin: Origin,
    /// Goes into the ids of calls that have none.
    made_at: u64,
    calls: u32,
    /// Signed parts that say nothing, kept back until something is said: alone they are no answer.
    held: Vec<ReplyEvent>,
    content: bool,
}

impl Decoder {
    /// A decoder for one answer, asked for at `made_at` (milliseconds).
    pub(crate) fn new(origin: Origin, made_at: u64) -> Self {
        Self { origin, made_at, calls: 0, held: Vec::new(), content: false }
    }

    fn opaque(&self, name: &str, value: Json) -> Opaque {
        Opaque::new(self.origin.clone(), name, value)
    }

    fn say(&mut self, event: ReplyEvent, answered: &mut Answered) {
        self.content = true;
        answered.ready.extend(self.held.drain(..));
        answered.ready.push_back(event);
    }

    fn part(&mut self, raw: &Json, answered: &mut Answered) {
        let Ok(part) = serde_json::from_str::<Part>(raw.as_str()) else {
            tracing::warn!(bytes = raw.as_str().len(), "skipped a malformed part of an answer");
            return;
        };
        // It stands before what it signs, and goes back on it.
        let proof =
            part.thought_signature.map(|value| ReplyEvent::ReasoningProof(self.opaque(SIGNATURE, value)));
        match (part.function_call, part.text) {
            (Some(call), _) => {
                let event = self.call(call, answered);
                for event in proof.into_iter().chain([event]) {
                    self.say(event, answered);
                }
            }
            (None, Some(text)) if text.is_empty() => {
                let kept = ReplyEvent::Opaque(self.opaque(SIGNATURE, raw.clone()));
                match (proof, self.content) {
                    (None, _) => {}
                    (Some(_), true) => self.say(kept, answered),
                    (Some(_), false) => self.held.push(kept),
                }
            }
            (None, Some(text)) if part.thought => {
                self.say(ReplyEvent::Reasoning(text), answered);
                if let Some(proof) = proof {
                    self.say(proof, answered);
                }
            }
            (None, Some(text)) => {
                for event in proof.into_iter().chain([ReplyEvent::Text(text)]) {
                    self.say(event, answered);
                }
            }
            // Images, code and its results: whole, for the origin.
            (None, None) => {
                if let Some(name) = only_field(raw) {
                    self.say(ReplyEvent::Opaque(self.opaque(&name, raw.clone())), answered);
                }
            }
        }
    }

    /// A call comes whole, and often without an id: then it gets one that no other answer gives.
    fn call(&mut self, call: Call, answered: &Answered) -> ReplyEvent {
        let index = self.calls;
        self.calls = self.calls.saturating_add(1);
        let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| match &answered.head.id {
            Some(answer) => format!("call_{answer}_{index}"),
            None => format!("call_{}_{index}", self.made_at),
        });
        let arguments = call.args.as_ref().map_or("{}", Json::as_str);
        ReplyEvent::ToolCall(ToolCallDelta::new(index, arguments).with_start(Some(id), call.name))
    }

    fn candidate(&mut self, candidate: Candidate, answered: &mut Answered) -> Result<(), Fault> {
        for part in candidate.content.and_then(|content| content.parts).iter().flatten() {
            self.part(part, answered);
        }
        let word = candidate.finish_reason.filter(|word| !word.is_empty());
        let Some(word) = word else { return Ok(()) };
        answered.finish = Some(match ending(&word) {
            // There is no word of its own for it.
            Ending::Finished(FinishReason::Stop) if self.calls > 0 => FinishReason::ToolCalls,
            Ending::Finished(finish) => finish,
            Ending::Failed => return Err(Fault::Finish(word)),
        });
        Ok(())
    }

    fn body(&mut self, data: &str, body: Body, answered: &mut Answered) -> Result<(), Fault> {
        let blocked = body.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some());
        if body.error.is_some() || blocked {
            return Err(Fault::Error(data.to_owned()));
        }
        answered.head.id = answered.head.id.take().or(body.response_id);
        answered.head.model = answered.head.model.take().or(body.model_version);
        let first = body.candidates.unwrap_or_default().into_iter().find(|candidate| candidate.index == 0);
        let outcome = first.map_or(Ok(()), |candidate| self.candidate(candidate, answered));
        if let Some(counts) = body.usage_metadata {
            answered.ready.push_back(ReplyEvent::Usage(counts.usage()));
        }
        outcome
    }
}

/// The field that says what an unknown part is; signatures may stand beside it.
fn only_field(raw: &Json) -> Option<String> {
    let fields = serde_json::from_str::<std::collections::BTreeMap<String, Json>>(raw.as_str()).ok()?;
    fields.into_keys().find(|name| name != SIGNATURE && name != "thought")
}

impl Decode for Decoder {
    fn event(&mut self, event: &SseEvent, answered: &mut Answered) -> Result<(), Fault> {
        let data = event.data.trim();
        if event.event == "error" {
            return Err(Fault::Error(data.to_owned()));
        }
        if let Ok(body) = serde_json::from_str::<Body>(data) {
            return self.body(data, body, answered);
        }
        // `[DONE]` is none of this API's; gateways in between add it.
        if data != "[DONE]" {
            tracing::warn!(bytes = data.len(), "skipped a malformed event of a stream");
        }
        Ok(())
    }

    /// An answer, or a list of the pieces of one: what a stream becomes where a proxy drops `alt=sse`.
    fn whole(&mut self, body: &str, answered: &mut Answered) -> Result<(), Fault> {
        let fault = || Fault::Error(body.to_owned());
        let pieces = if body.starts_with('[') {
            serde_json::from_str::<Vec<Json>>(body).map_err(|_| fault())?
        } else {
            vec![Json::parse(body).map_err(|_| fault())?]
        };
        for piece in pieces {
            let read = serde_json::from_str::<Body>(piece.as_str()).map_err(|_| fault())?;
            self.body(piece.as_str(), read, answered)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! What the server sends, turned into neutral events. No I/O.

use failover_http::{Answered, Decode, Fault, Framing, SseEvent};
use failover_provider::{FinishReason, Json, Opaque, Origin, ReplyEvent, ToolCallDelta, Usage};
use serde::Deserialize;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How much thinking is kept to be sent back, in bytes.
const MAX_PROOF_BYTES: usize = 1024 * 1024;

/// A whole answer, or a line of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    model: Option<String>,
    created_at: String,
    message: Option<Said>,
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Json>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    content: String,
    thinking: String,
    tool_calls: Vec<Call>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Call {
    id: Option<String>,
    function: Function,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function {
    name: String,
    arguments: Option<Json>,
}

/// Reads answers of the chat API.
#[derive(Debug)]
pub(crate) struct Decoder {
    origin: Origin,
    calls: u32,
    /// What was thought, for the turns to come.
    thinking: String,
}

fn finish(word: Option<&str>, called: bool) -> FinishReason {
    match word {
        // It has no word of its own for calls.
        Some("stop") | None if called => FinishReason::ToolCalls,
        Some("stop") | None => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(word) => FinishReason::Other(word.to_owned()),
    }
}

impl Decoder {
    pub(crate) fn new(origin: Origin) -> Self {
        Self { origin, calls: 0, thinking: String::new() }
    }

    fn take(&mut self, line: Line, answered: &mut Answered) {
        answered.head.model = answered.head.model.take().or(line.model);
        let said = line.message.unwrap_or_default();
        if !said.thinking.is_empty() {
            if self.thinking.len() <= MAX_PROOF_BYTES {
                self.thinking.push_str(&said.thinking);
            }
            answered.ready.push_back(ReplyEvent::Reasoning(said.thinking));
        }
        if !said.content.is_empty() || !said.tool_calls.is_empty() || line.done {
            self.prove(answered);
        }
        if !said.content.is_empty() {
            answered.ready.push_back(ReplyEvent::Text(said.content));
        }
        for call in said.tool_calls {
            self.call(call, &line.created_at, answered);
        }
        if line.done {
            if line.prompt_eval_count.is_some() || line.eval_count.is_some() {
                let count = |count: Option<u64>| count.unwrap_or_default();
                let usage = Usage::new(count(line.prompt_eval_count), count(line.eval_count));
                answered.ready.push_back(ReplyEvent::Usage(usage));
            }
            answered.finish = Some(finish(line.done_reason.as_deref(), self.calls > 0));
            answered.done = true;
        }
    }

    /// The thinking so far, to be sent back with the turn: whole, or not at all.
    fn prove(&mut self, answered: &mut Answered) {
        let thinking = std::mem::take(&mut self.thinking);
        if let (1..=MAX_PROOF_BYTES, Ok(value)) = (thinking.len(), Json::of(&thinking)) {
            let proof = Opaque::new(self.origin.clone(), "thinking", value);
            answered.ready.push_back(ReplyEvent::ReasoningProof(proof));
        }
    }

    /// Calls come whole. Older servers give them no id, which others need.
    fn call(&mut self, call: Call, created_at: &str, answered: &mut Answered) {
        let index = self.calls;
        self.calls = self.calls.saturating_add(1);
        let arguments = call.function.arguments.as_ref().map_or("{}", Json::as_str);
        let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| {
            let mut hasher = DefaultHasher::new();
            (created_at, index, &call.function.name, arguments).hash(&mut hasher);
            format!("call_{:016x}", hasher.finish())
        });
        let delta = ToolCallDelta::new(index, arguments).with_start(Some(id), Some(call.function.name));
        answered.ready.push_back(ReplyEvent::ToolCall(delta));
    }
}

impl Decode for Decoder {
    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn event(&mut self, event: &SseEvent, answered: &mut Answered) -> Result<(), Fault> {
        let data = event.data.trim();
        let Ok(line) = serde_json::from_str::<Line>(data) else {
            tracing::warn!(bytes = data.len(), "skipped a malformed line of a stream");
            return Ok(());
        };
        if line.error.is_some() {
            return Err(Fault::Error(data.to_owned()));
        }
        self.take(line, answered);
        Ok(())
    }

    fn whole(&mut self, body: &str, answered: &mut Answered) -> Result<(), Fault> {
        let fault = || Fault::Error(body.to_owned());
        let line = serde_json::from_str::<Line>(body).map_err(|_| fault())?;
        // A whole answer is always done; what is not is the first line of a stream that broke off.
        if line.error.is_some() || !line.done {
            return Err(fault());
        }
        self.take(line, answered);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! A streamed response: numbered events, each item added, filled and done.

use super::object::{self, Content, Item, Output, OutputKind, Response, Status, ending, item_id};
use crate::dialect::nesting::Nesting;
use crate::dialect::write::put_event;
use crate::dialect::{ErrorBody, Meta};
use bytes::BytesMut;
use failover_provider::{Opaque, ReplyEvent, ToolCallDelta, Usage};
use serde::Serialize;

/// Writes events.
#[derive(Debug)]
pub(in crate::dialect) struct Events {
    id: String,
    meta: Meta,
    begun: bool,
    usage: Option<Usage>,
    number: u64,
    outputs: Vec<Output>,
}

#[derive(Serialize)]
struct Numbered<B> {
    r#type: &'static str,
    sequence_number: u64,
    #[serde(flatten)]
    body: B,
}

#[derive(Serialize)]
struct Of<'a> {
    response: Response<'a>,
}

#[derive(Serialize)]
struct ItemAt<'a> {
    output_index: usize,
    item: Item<'a>,
}

/// What is said about a place in an item; which fields stand there depends on the event.
#[derive(Default, Serialize)]
struct At<'a> {
    item_id: &'a str,
    output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<[(); 0]>,
}

/// Writes one event and counts it.
fn put(number: &mut u64, r#type: &'static str, body: impl Serialize, out: &mut BytesMut) {
    put_event(out, r#type, &Numbered { r#type, sequence_number: *number, body });
    *number = number.saturating_add(1);
}

/// The number of the last event among some bytes of a stream. It stands at an event's start, before what is said there.
fn last_number(bytes: &[u8]) -> Option<u64> {
    let name = br#""sequence_number":"#;
    let from = memchr::memmem::rfind(bytes, name)?.checked_add(name.len())?;
    let digits = bytes.get(from..)?.trim_ascii_start();
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(digits.get(..length)?).ok()?.parse().ok()
}

impl Events {
    pub(in crate::dialect) fn new(meta: Meta) -> Self {
        let id = meta.prefixed("resp_");
        Self { id, meta, begun: false, usage: None, number: 0, outputs: Vec::new() }
    }

    pub(in crate::dialect) fn adopt(&mut self, id: Option<&str>, model: Option<&str>) {
        if let Some(id) = id {
            id.clone_into(&mut self.id);
        }
        if let Some(model) = model {
            model.clone_into(&mut self.meta.model);
        }
        self.begun = true;
    }

    pub(in crate::dialect) fn passed(&mut self, bytes: &[u8]) {
        if let Some(number) = last_number(bytes) {
            self.number = number.saturating_add(1);
        }
    }

    fn response(&mut self, name: &'static str, status: Status<'_>, out: &mut BytesMut) {
        let response = Response::new(&self.id, &self.meta, status, &self.outputs, self.usage);
        put(&mut self.number, name, Of { response }, out);
    }

    pub(in crate::dialect) fn start(&mut self, out: &mut BytesMut) {
        if !std::mem::replace(&mut self.begun, true) {
            // What is counted is told at the end.
            let usage = self.usage.take();
            self.response("response.created", Status::InProgress, out);
            self.response("response.in_progress", Status::InProgress, out);
            self.usage = usage;
        }
    }

    pub(in crate::dialect) fn push(&mut self, event: &ReplyEvent, out: &mut BytesMut) {
        if let ReplyEvent::Usage(usage) = event {
            self.usage = Some(*usage);
            return;
        }
        self.start(out);
        match event {
            ReplyEvent::Text(text) => self.text(text, out),
            ReplyEvent::Reasoning(text) => self.reasoning(text, out),
            ReplyEvent::ReasoningProof(proof) => self.proof(proof, out),
            ReplyEvent::Opaque(opaque) => {
                if let Some(kind) = object::opaque(opaque, &self.meta) {
                    self.close_all(out);
                    let at = self.open(kind, out);
                    self.close(at, out);
                }
            }
            ReplyEvent::ToolCall(delta) => self.call(delta, out),
            ReplyEvent::Finish(finish) => {
                self.close_all(out);
                let status = Status::Finished(finish);
                self.response(ending(status).2, status, out);
            }
            ReplyEvent::Usage(_) | _ => {}
        }
    }

    pub(in crate::dialect) fn fail(&mut self, error: &ErrorBody, out: &mut BytesMut) {
        self.start(out);
        let status = Status::Failed(error);
        self.response(ending(status).2, status, out);
    }

    /// Adds an item and says so.
    fn open(&mut self, kind: OutputKind, out: &mut BytesMut) -> usize {
        let output_index = self.outputs.len();
        let output = Output { id: item_id(&kind, &self.meta, output_index), kind, done: false };
        put(
            &mut self.number,
            "response.output_item.added",
            ItemAt { output_index, item: output.item() },
            out,
        );
        let at = At { item_id: &output.id, output_index, ..At::default() };
        match &output.kind {
            OutputKind::Message { .. } => {
                let part = Some(Content::output(""));
                let at = At { content_index: Some(0), part, ..at };
                put(&mut self.number, "response.content_part.added", at, out);
            }
            OutputKind::Reasoning { .. } | OutputKind::Call { .. } | OutputKind::Own(_) => {}
        }
        self.outputs.push(output);
        output_index
    }

    /// The last item, where it is not done.
    fn last(&mut self) -> Option<(usize, &mut Output)> {
        let at = self.outputs.len().checked_sub(1)?;
        self.outputs.last_mut().filter(|output| !output.done).map(|output| (at, output))
    }

    fn text(&mut self, delta: &str, out: &mut BytesMut) {
        if !matches!(self.last(), Some((_, Output { kind: OutputKind::Message { .. }, .. }))) {
            self.close_all(out);
            self.open(OutputKind::Message { text: String::new() }, out);
        }
        let Some((output_index, output)) = self.outputs.iter_mut().enumerate().next_back() else { return };
        if let OutputKind::Message { text } = &mut output.kind {
            text.push_str(delta);
            let (content_index, logprobs) = (Some(0), Some([]));
            let item_id = output.id.as_str();
            let delta = Some(delta);
            let at = At { item_id, output_index, content_index, delta, logprobs, ..At::default() };
            put(&mut self.number, "response.output_text.delta", at, out);
        }
    }

    /// The reasoning item that is open.
    fn think(&mut self, out: &mut BytesMut) {
        if !matches!(self.last(), Some((_, Output { kind: OutputKind::Reasoning { .. }, .. }))) {
            self.close_all(out);
            self.open(OutputKind::Reasoning { text: String::new(), encrypted: None }, out);
        }
    }

    fn reasoning(&mut self, delta: &str, out: &mut BytesMut) {
        self.think(out);
        let Some((output_index, output)) = self.outputs.iter_mut().enumerate().next_back() else { return };
        if let OutputKind::Reasoning { text, .. } = &mut output.kind {
            let at = || At { item_id: &output.id, output_index, summary_index: Some(0), ..At::default() };
            if text.is_empty() {
                let part = Some(Content::SummaryText { text: "" });
                put(&mut self.number, "response.reasoning_summary_part.added", At { part, ..at() }, out);
            }
            let more = At { delta: Some(delta), ..at() };
            put(&mut self.number, "response.reasoning_summary_text.delta", more, out);
            text.push_str(delta);
        }
    }

    fn proof(&mut self, proof: &Opaque, out: &mut BytesMut) {
        let Some(carried) = object::encrypted(proof, &self.meta) else { return };
        self.think(out);
        let Some((at, output)) = self.last() else { return };
        if let OutputKind::Reasoning { encrypted, .. } = &mut output.kind {
            *encrypted = Some(carried);
        }
        // What is thought after it has a proof of its own.
        self.close(at, out);
    }

    fn call(&mut self, delta: &ToolCallDelta, out: &mut BytesMut) {
        let known = self
            .outputs
            .iter()
            .position(|output| matches!(output.kind, OutputKind::Call { call, .. } if call == delta.index));
        let output_index = known.unwrap_or_else(|| {
            self.close_complete(out);
            let minted = || format!("call_{}_{}", self.meta.id, delta.index);
            let kind = OutputKind::Call {
                call: delta.index,
                // Clients need an id; some servers give none.
                call_id: delta.id.clone().unwrap_or_else(minted),
                name: delta.name.clone().unwrap_or_default(),
                arguments: String::new(),
                nesting: Nesting::default(),
            };
            self.open(kind, out)
        });
        let Some(output) = self.outputs.get_mut(output_index) else { return };
        if delta.arguments.is_empty() || output.done {
            return;
        }
        if let OutputKind::Call { arguments, nesting, .. } = &mut output.kind {
            arguments.push_str(&delta.arguments);
            nesting.push(&delta.arguments);
            let delta = Some(delta.arguments.as_str());
            let at = At { item_id: &output.id, output_index, delta, ..At::default() };
            put(&mut self.number, "response.function_call_arguments.delta", at, out);
        }
    }

    fn close_all(&mut self, out: &mut BytesMut) {
        for at in 0..self.outputs.len() {
            self.close(at, out);
        }
    }

    /// Closes what is done before a call begins: everything but calls that may still grow.
    fn close_complete(&mut self, out: &mut BytesMut) {
        for at in 0..self.outputs.len() {
            let grows = self.outputs.get(at).is_some_and(
                |output| matches!(&output.kind, OutputKind::Call { nesting, .. } if !nesting.is_complete()),
            );
            if !grows {
                self.close(at, out);
            }
        }
    }

    fn close(&mut self, output_index: usize, out: &mut BytesMut) {
        let Some(output) = self.outputs.get_mut(output_index).filter(|output| !output.done) else { return };
        output.done = true;
        let number = &mut self.number;
        let at = || At { item_id: &output.id, output_index, ..At::default() };
        match &output.kind {
            OutputKind::Message { text } => {
                let at = || At { content_index: Some(0), ..at() };
                let said = At { text: Some(text), logprobs: Some([]), ..at() };
                put(number, "response.output_text.done", said, out);
                let part = Some(Content::output(text));
                put(number, "response.content_part.done", At { part, ..at() }, out);
            }
            OutputKind::Reasoning { text, .. } if !text.is_empty() => {
                let at = || At { summary_index: Some(0), ..at() };
                put(number, "response.reasoning_summary_text.done", At { text: Some(text), ..at() }, out);
                let part = Some(Content::SummaryText { text });
                put(number, "response.reasoning_summary_part.done", At { part, ..at() }, out);
            }
            OutputKind::Call { name, arguments, .. } => {
                let said = At { name: Some(name), arguments: Some(arguments), ..at() };
                put(number, "response.function_call_arguments.done", said, out);
            }
            OutputKind::Reasoning { .. } | OutputKind::Own(_) => {}
        }
        put(number, "response.output_item.done", ItemAt { output_index, item: output.item() }, out);
    }
}

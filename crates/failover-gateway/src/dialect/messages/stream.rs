//! A streamed message: one block after the other, each opened, filled and closed.

use super::render::{Block, Counts, Message, citations, item, signature, stop_reason};
use crate::dialect::nesting::Nesting;
use crate::dialect::write::{put_comment, put_event};
use crate::dialect::{ClientDialect, ErrorBody, Meta};
use bytes::{BufMut, BytesMut};
use failover_provider::{FinishReason, Json, Opaque, ReplyEvent, ToolCallDelta, Usage};
use serde::Serialize;
use std::collections::VecDeque;

/// Writes events.
#[derive(Debug)]
pub(in crate::dialect) struct Events {
    id: String,
    meta: Meta,
    begun: bool,
    usage: Option<Usage>,
    /// Index of the next block.
    next: u32,
    open: Option<Open>,
    /// Calls whose blocks were opened, by index.
    calls: Vec<u32>,
    /// Pieces of calls that must wait until the open one is complete: blocks do not overlap.
    waiting: VecDeque<ToolCallDelta>,
}

#[derive(Debug)]
struct Open {
    index: u32,
    kind: OpenKind,
}

#[derive(Debug)]
enum OpenKind {
    Text {
        /// It was said where the text is from: what follows is another one.
        cited: bool,
    },
    Thinking,
    Call {
        call: u32,
        arguments: Nesting,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a, B> {
    MessageStart { message: Message<'a> },
    ContentBlockStart { index: u32, content_block: B },
    ContentBlockDelta { index: u32, delta: Delta<'a> },
    ContentBlockStop { index: u32 },
    MessageDelta { delta: Stopped<'a>, usage: Counts },
    MessageStop,
}

/// An event that begins no block.
type Plain<'a> = Event<'a, ()>;

impl<B: Serialize> Event<'_, B> {
    fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
        }
    }

    fn put(&self, out: &mut BytesMut) {
        put_event(out, self.name(), self);
    }
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Delta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
    #[serde(rename = "citations_delta")]
    Citation { citation: &'a Json },
}

/// The arguments of a call that begins.
#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Stopped<'a> {
    stop_reason: &'a str,
    stop_sequence: Option<()>,
}

impl Events {
    pub(in crate::dialect) fn new(meta: Meta) -> Self {
        Self {
            id: meta.prefixed("msg_"),
            meta,
            begun: false,
            usage: None,
            next: 0,
            open: None,
            calls: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(in crate::dialect) fn start(&mut self, out: &mut BytesMut) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let message = Message {
            id: &self.id,
            r#type: "message",
            role: "assistant",
            model: &self.meta.model,
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: self.usage.unwrap_or_default().into(),
        };
        Plain::MessageStart { message }.put(out);
    }

    pub(in crate::dialect) fn push(&mut self, event: &ReplyEvent, out: &mut BytesMut) {
        if let ReplyEvent::Usage(usage) = event {
            self.usage = Some(*usage);
            return;
        }
        self.start(out);
        match event {
            ReplyEvent::Text(text) => {
                if !matches!(self.open, Some(Open { kind: OpenKind::Text { cited: false }, .. })) {
                    self.begin_text(out);
                }
                self.delta(Delta::Text { text }, out);
            }
            ReplyEvent::Reasoning(text) => {
                self.think(out);
                self.delta(Delta::Thinking { thinking: text }, out);
            }
            ReplyEvent::ReasoningProof(proof) => self.proof(proof, out),
            ReplyEvent::Opaque(opaque) => self.opaque(opaque, out),
            ReplyEvent::ToolCall(delta) => self.call(delta, out),
            ReplyEvent::Finish(finish) => self.finish(finish, out),
            ReplyEvent::Usage(_) | _ => {}
        }
    }

    fn begin(&mut self, kind: OpenKind, content_block: &Block<'_, Empty>, out: &mut BytesMut) {
        Event::ContentBlockStart { index: self.next, content_block }.put(out);
        self.open = Some(Open { index: self.next, kind });
        self.next = self.next.saturating_add(1);
    }

    fn begin_text(&mut self, out: &mut BytesMut) {
        self.flush(out);
        self.begin(OpenKind::Text { cited: false }, &Block::Text { text: "" }, out);
    }

    fn cite(&mut self, citations: &[Json], out: &mut BytesMut) {
        if !matches!(self.open, Some(Open { kind: OpenKind::Text { .. }, .. })) {
            self.begin_text(out);
        }
        for citation in citations {
            self.delta(Delta::Citation { citation }, out);
        }
        if let Some(Open { kind: OpenKind::Text { cited }, .. }) = &mut self.open {
            *cited = true;
        }
    }

    fn delta(&self, delta: Delta<'_>, out: &mut BytesMut) {
        if let Some(open) = &self.open {
            Plain::ContentBlockDelta { index: open.index, delta }.put(out);
        }
    }

    fn close(&mut self, out: &mut BytesMut) {
        if let Some(open) = self.open.take() {
            Plain::ContentBlockStop { index: open.index }.put(out);
        }
    }

    /// Closes the open block and writes the calls that wait, each as a block.
    fn flush(&mut self, out: &mut BytesMut) {
        self.close(out);
        while let Some(delta) = self.waiting.pop_front() {
            self.call_now(&delta, out);
        }
        self.close(out);
    }

    fn think(&mut self, out: &mut BytesMut) {
        if !matches!(self.open, Some(Open { kind: OpenKind::Thinking, .. })) {
            self.flush(out);
            self.begin(OpenKind::Thinking, &Block::Thinking { thinking: "", signature: "" }, out);
        }
    }

    fn proof(&mut self, proof: &Opaque, out: &mut BytesMut) {
        let signature = signature(Some(proof), &self.meta);
        if !signature.is_empty() {
            self.think(out);
            self.delta(Delta::Signature { signature: &signature }, out);
            // What is thought after it has a proof of its own.
            self.close(out);
        }
    }

    fn opaque(&mut self, opaque: &Opaque, out: &mut BytesMut) {
        if let Some(citations) = citations(opaque, &self.meta) {
            return self.cite(&citations, out);
        }
        self.flush(out);
        if let Some(content_block) = item(opaque, &self.meta) {
            Event::ContentBlockStart { index: self.next, content_block }.put(out);
            Plain::ContentBlockStop { index: self.next }.put(out);
            self.next = self.next.saturating_add(1);
        }
    }

    fn call(&mut self, delta: &ToolCallDelta, out: &mut BytesMut) {
        match self.open_call() {
            Some((call, complete)) if call != delta.index && !complete => self.wait(delta),
            _ => self.call_now(delta, out),
        }
        while self.open_call().is_some_and(|(_, complete)| complete) {
            let Some(next) = self.waiting.pop_front() else { break };
            self.call_now(&next, out);
        }
    }

    /// The call whose block is open, and whether it is complete.
    fn open_call(&self) -> Option<(u32, bool)> {
        match &self.open {
            Some(Open { kind: OpenKind::Call { call, arguments }, .. }) => {
                Some((*call, arguments.is_complete()))
            }
            _ => None,
        }
    }

    fn call_now(&mut self, delta: &ToolCallDelta, out: &mut BytesMut) {
        if self.open_call().is_none_or(|(call, _)| call != delta.index) {
            if self.calls.contains(&delta.index) {
                // It was complete; nothing but white space can follow.
                return;
            }
            self.calls.push(delta.index);
            self.close(out);
            // Clients need an id; some servers give none.
            let minted = format!("toolu_{}_{}", self.meta.id, delta.index);
            let block = Block::ToolUse {
                id: delta.id.as_deref().unwrap_or(&minted),
                name: delta.name.as_deref().unwrap_or_default(),
                input: Empty {},
            };
            self.begin(OpenKind::Call { call: delta.index, arguments: Nesting::default() }, &block, out);
        }
        if delta.arguments.is_empty() {
            return;
        }
        self.delta(Delta::InputJson { partial_json: &delta.arguments }, out);
        if let Some(Open { kind: OpenKind::Call { arguments, .. }, .. }) = &mut self.open {
            arguments.push(&delta.arguments);
        }
    }

    fn wait(&mut self, delta: &ToolCallDelta) {
        match self.waiting.iter_mut().find(|waiting| waiting.index == delta.index) {
            Some(waiting) => {
                waiting.arguments.push_str(&delta.arguments);
                waiting.id = waiting.id.take().or_else(|| delta.id.clone());
                waiting.name = waiting.name.take().or_else(|| delta.name.clone());
            }
            None => self.waiting.push_back(delta.clone()),
        }
    }

    fn finish(&mut self, finish: &FinishReason, out: &mut BytesMut) {
        self.flush(out);
        let delta = Stopped { stop_reason: stop_reason(finish), stop_sequence: None };
        Plain::MessageDelta { delta, usage: self.usage.unwrap_or_default().into() }.put(out);
        Plain::MessageStop.put(out);
    }

    pub(in crate::dialect) fn fail(error: &ErrorBody, out: &mut BytesMut) {
        out.put_slice(b"event: error\ndata: ");
        out.put_slice(&error.render(ClientDialect::Messages));
        out.put_slice(b"\n\n");
    }

    pub(in crate::dialect) fn keep_alive(&self, out: &mut BytesMut) {
        if self.begun {
            out.put_slice(b"event: ping\ndata: {\"type\":\"ping\"}\n\n");
        } else {
            // The first event is the start of the message.
            put_comment(out);
        }
    }
}

//! A streamed chat completion: chunks, the role first, the sentinel last.

use super::render;
use crate::dialect::shared::{ChatUsage, finish_word};
use crate::dialect::write::{put_data, put_json};
use crate::dialect::{ErrorBody, Meta};
use bytes::{BufMut, Bytes, BytesMut};
use failover_provider::{FinishReason, Json, Opaque, ReplyEvent, ToolCallDelta, Usage};
use serde::Serialize;

/// Writes chunks.
#[derive(Debug)]
pub(in crate::dialect) struct Chunks {
    id: String,
    /// Everything of a chunk up to its delta.
    before: Bytes,
    /// Everything after it, where the answer goes on.
    after: Bytes,
    meta: Meta,
    begun: bool,
    usage: Option<Usage>,
    /// Calls that have begun, by index.
    calls: Vec<u32>,
}

#[derive(Serialize)]
struct Head<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasoning_details: &'a [Json],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[Call<'a>; 1]>,
}

#[derive(Serialize)]
struct Call<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Last<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    choices: [(); 0],
    usage: Option<ChatUsage>,
}

#[derive(Serialize)]
struct Failed<E> {
    error: E,
}

impl Chunks {
    pub(in crate::dialect) fn new(meta: Meta) -> Self {
        let id = meta.prefixed("chatcmpl-");
        let mut head = BytesMut::new();
        put_json(&mut head, &head_of(&id, &meta));
        // The head's closing brace makes room for the choice.
        head.truncate(head.len().saturating_sub(1));
        let mut before = BytesMut::from(&b"data: "[..]);
        before.unsplit(head);
        before.put_slice(br#","choices":[{"index":0,"delta":"#);
        let after: &[u8] = if meta.include_usage {
            b",\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n"
        } else {
            b",\"logprobs\":null,\"finish_reason\":null}]}\n\n"
        };
        Self {
            id,
            before: before.freeze(),
            after: Bytes::from_static(after),
            meta,
            begun: false,
            usage: None,
            calls: Vec::new(),
        }
    }

    fn chunk(&self, delta: &Delta<'_>, out: &mut BytesMut) {
        out.put_slice(&self.before);
        put_json(out, delta);
        out.put_slice(&self.after);
    }

    pub(in crate::dialect) fn start(&mut self, out: &mut BytesMut) {
        if !std::mem::replace(&mut self.begun, true) {
            let delta = Delta { role: Some("assistant"), content: Some(""), ..Delta::default() };
            self.chunk(&delta, out);
        }
    }

    pub(in crate::dialect) fn push(&mut self, event: &ReplyEvent, out: &mut BytesMut) {
        if let ReplyEvent::Usage(usage) = event {
            self.usage = Some(*usage);
            return;
        }
        self.start(out);
        match event {
            ReplyEvent::Text(text) => {
                self.chunk(&Delta { content: Some(text), ..Delta::default() }, out);
            }
            ReplyEvent::Reasoning(text) => {
                self.chunk(&Delta { reasoning_content: Some(text), ..Delta::default() }, out);
            }
            ReplyEvent::ReasoningProof(opaque) => self.details(&render::proof(opaque), out),
            ReplyEvent::Opaque(opaque) => self.opaque(opaque, out),
            ReplyEvent::ToolCall(delta) => self.call(delta, out),
            ReplyEvent::Finish(finish) => self.finish(finish, out),
            ReplyEvent::Usage(_) | _ => {}
        }
    }

    fn opaque(&self, opaque: &Opaque, out: &mut BytesMut) {
        self.details(render::item(opaque).as_slice(), out);
    }

    fn details(&self, entries: &[Json], out: &mut BytesMut) {
        if !entries.is_empty() {
            self.chunk(&Delta { reasoning_details: entries, ..Delta::default() }, out);
        }
    }

    fn call(&mut self, delta: &ToolCallDelta, out: &mut BytesMut) {
        let first = !self.calls.contains(&delta.index);
        let minted = format!("call_{}_{}", self.meta.id, delta.index);
        let call = Call {
            index: delta.index,
            // Clients need an id; some servers give none.
            id: delta.id.as_deref().or(first.then_some(minted.as_str())),
            r#type: first.then_some("function"),
            function: Function { name: delta.name.as_deref(), arguments: &delta.arguments },
        };
        self.chunk(&Delta { tool_calls: Some([call]), ..Delta::default() }, out);
        if first {
            self.calls.push(delta.index);
        }
    }

    fn finish(&self, finish: &FinishReason, out: &mut BytesMut) {
        out.put_slice(&self.before);
        out.put_slice(b"{},\"logprobs\":null,\"finish_reason\":\"");
        out.put_slice(finish_word(finish).as_bytes());
        let end: &[u8] = if self.meta.include_usage { b"\"}],\"usage\":null}\n\n" } else { b"\"}]}\n\n" };
        out.put_slice(end);
        if self.meta.include_usage {
            let usage = self.usage.map(ChatUsage::from);
            put_data(out, &Last { head: head_of(&self.id, &self.meta), choices: [], usage });
        }
        out.put_slice(b"data: [DONE]\n\n");
    }

    pub(in crate::dialect) fn fail(error: &ErrorBody, out: &mut BytesMut) {
        put_data(out, &Failed { error: error.openai() });
    }
}

fn head_of<'a>(id: &'a str, meta: &'a Meta) -> Head<'a> {
    Head { id, object: "chat.completion.chunk", created: meta.created, model: &meta.model }
}

//! What is done about a stream that breaks off: it is held back until it is complete, or another model goes on with it.

use crate::gateway::State;
use crate::relay::{Piece, events_of};
use bytes::Bytes;
use failover::provider::{
    AttemptFailure, ChatRequest, Dialect, Message, NativeFrame, Part, Progress, Reply, ReplyEvent, ReplyHead,
    ReplyStream, Role,
};
use failover::runner::Watcher;
use failover::runner::plan::Visit;
use failover::types::{BoxFuture, ModelRef, ProviderId};
use failover::{Route, Turn};
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What an event costs in memory besides its text.
const EVENT_BYTES: usize = 96;

/// An answer, as far as it is there.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) pieces: VecDeque<Piece>,
    /// What is to come.
    pub(crate) tail: Option<ReplyStream>,
    /// The tail's own bytes are the client's dialect, and are wanted.
    pub(crate) native: bool,
    /// What is known of it besides.
    pub(crate) head: ReplyHead,
}

impl Kept {
    /// An answer that is passed on as it comes. Its own bytes go on where they are in this dialect.
    pub(crate) fn of(reply: Reply, dialect: Option<Dialect>) -> Self {
        match reply {
            Reply::Complete(mut reply) => {
                let head = std::mem::take(&mut reply.head);
                Self { pieces: events_of(reply), tail: None, native: false, head }
            }
            Reply::Stream(stream) => {
                let native = dialect.is_some() && stream.dialect() == dialect;
                let head = stream.head().clone();
                Self { pieces: VecDeque::new(), tail: Some(stream), native, head }
            }
        }
    }

    /// Reads an answer to its end and keeps it, so that one that breaks off is an attempt that failed and the next model
    /// may answer. Of an answer that is longer than `most` bytes the rest comes as it comes.
    pub(crate) async fn whole(
        reply: Reply,
        dialect: Option<Dialect>,
        most: usize,
    ) -> Result<Self, AttemptFailure> {
        let mut kept = Self::of(reply, dialect);
        let mut bytes = 0_usize;
        while let Some(stream) = kept.tail.as_mut().filter(|_| bytes <= most) {
            let piece = if kept.native {
                stream.next_frame().await.map(|frame| frame.map(|frame| Piece::Native(own(frame))))
            } else {
                stream.next().await.map(|event| event.map(Piece::Event))
            };
            match piece {
                Some(Ok(piece)) => {
                    bytes = bytes.saturating_add(size(&piece));
                    kept.pieces.push_back(piece);
                }
                Some(Err(failure)) => return Err(failure.with_progress(Progress::Answered)),
                None => kept.tail = None,
            }
        }
        Ok(kept)
    }

    /// Holds what is yet to come against who gives it, should it break off.
    pub(crate) fn watched_by(mut self, watcher: Watcher) -> Self {
        self.tail = self.tail.map(|tail| watcher.over(tail));
        self
    }
}

/// A frame that is kept: as a slice it would keep the buffer that it was read into, which is many times as long.
fn own(mut frame: NativeFrame) -> NativeFrame {
    frame.bytes = Bytes::copy_from_slice(&frame.bytes);
    frame
}

fn size(piece: &Piece) -> usize {
    let own = match piece {
        Piece::Native(frame) => frame.bytes.len(),
        Piece::Event(ReplyEvent::Text(text) | ReplyEvent::Reasoning(text)) => text.len(),
        Piece::Event(ReplyEvent::ToolCall(delta)) => delta.arguments.len(),
        Piece::Event(ReplyEvent::Opaque(opaque) | ReplyEvent::ReasoningProof(opaque)) => {
            opaque.value.as_str().len()
        }
        Piece::Event(_) => 0,
    };
    own + EVENT_BYTES
}

/// What is needed to go on with an answer that breaks off.
pub(crate) struct Continuation {
    state: Arc<State>,
    route: Arc<Route>,
    request: ChatRequest,
    /// The provider that the client asked.
    asked: Option<ProviderId>,
}

/// Another model is being asked to go on.
pub(crate) struct Going {
    run: BoxFuture<'static, Option<GoneOn>>,
    failure: AttemptFailure,
}

/// Another model goes on.
pub(crate) struct GoneOn {
    pub(crate) reply: Reply,
    pub(crate) served: ModelRef,
    pub(crate) trail: Vec<Visit>,
    pub(crate) attempts: u32,
}

impl Going {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<GoneOn>> {
        self.run.as_mut().poll(cx)
    }

    /// Why the first answer broke off.
    pub(crate) fn into_failure(self) -> AttemptFailure {
        self.failure
    }
}

impl Continuation {
    pub(crate) fn new(
        state: Arc<State>,
        route: Arc<Route>,
        request: ChatRequest,
        asked: Option<ProviderId>,
    ) -> Self {
        Self { state, route, request, asked }
    }

    /// Asks the models that are known to take a begun answer to go on with what had come. `None` where that cannot be
    /// gone on with: it is more than text, or more than is remembered.
    pub(crate) fn go_on(self: Box<Self>, failure: &AttemptFailure) -> Option<Going> {
        let Self { state, route, mut request, asked } = *self;
        let begun = failure.incomplete.as_ref().filter(|begun| !begun.truncated)?;
        let only_text = begun.parts.iter().all(|part| matches!(part, Part::Text(_) | Part::Reasoning { .. }));
        let text = begun.text();
        // A begun answer must not end in white space: providers refuse that.
        let kept = text.trim_end();
        if !only_text || kept.is_empty() {
            return None;
        }
        let spaced = kept.len() < text.len();
        request.messages.push(Message::text(Role::Assistant, kept));
        request.native = None;
        request.stream = true;
        let run = async move {
            let mut turn = Turn::new(request).with_route(route);
            turn.asked = asked;
            let answer = state.engine.chat(&turn).await.ok()?;
            let (attempts, _) = crate::failure::summary(&answer.trail);
            let served = answer.model;
            let reply = if spaced { unspaced(answer.value, served.provider()) } else { answer.value };
            Some(GoneOn { reply, served, trail: answer.trail, attempts })
        };
        Some(Going { run: Box::pin(run), failure: failure.clone() })
    }
}

/// The client has the white space already.
fn unspaced(reply: Reply, provider: &ProviderId) -> Reply {
    match reply {
        Reply::Complete(mut reply) => {
            if let Some(Part::Text(text)) = reply.parts.first_mut() {
                *text = text.trim_start().to_owned();
            }
            Reply::Complete(reply)
        }
        Reply::Stream(stream) => {
            let head = stream.head().clone();
            let mut first = true;
            let events = stream.map(move |event| match event {
                Ok(ReplyEvent::Text(text)) if std::mem::take(&mut first) => {
                    Ok(ReplyEvent::Text(text.trim_start().to_owned()))
                }
                event => event,
            });
            Reply::Stream(ReplyStream::new(provider.clone(), events).with_head(head))
        }
    }
}

//! A streamed answer on its way to the client: pulled as the client takes it, so backpressure reaches the provider, and
//! never more in memory than what is being written.

use crate::dialect::StreamRenderer;
use crate::failure;
use crate::gateway::State;
use crate::gather::Gathered;
use crate::record::{Outcome, Record};
use crate::rescue::{Continuation, Going, GoneOn, Kept};
use bytes::Bytes;
use failover::provider::{
    AttemptFailure, ChatReply, NativeFrame, Part, Reply, ReplyEvent, ReplyStream, ToolCallDelta,
};
use failover::types::{Clock, FailoverReason, ModelRef, Timestamp};
use failover_http::Timer;
use futures_core::Stream;
use http::StatusCode;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A piece of an answer.
#[derive(Debug)]
pub(crate) enum Piece {
    /// To be written in the client's dialect.
    Event(ReplyEvent),
    /// In it already.
    Native(NativeFrame),
}

/// The events of an answer that came whole.
pub(crate) fn events_of(reply: ChatReply) -> VecDeque<Piece> {
    let mut events = Vec::new();
    let mut calls = 0;
    for part in reply.parts {
        match part {
            Part::Text(text) => events.push(ReplyEvent::Text(text)),
            Part::Reasoning { text, proof } => {
                events.push(ReplyEvent::Reasoning(text));
                events.extend(proof.map(ReplyEvent::ReasoningProof));
            }
            Part::ToolCall(call) => {
                let delta = ToolCallDelta::new(calls, call.arguments);
                events.push(ReplyEvent::ToolCall(delta.with_start(Some(call.id), Some(call.name))));
                calls += 1;
            }
            Part::Opaque(opaque) => events.push(ReplyEvent::Opaque(opaque)),
            // Models answer with neither.
            Part::Image(_) | Part::File(_) | Part::ToolResult(_) => {}
        }
    }
    events.extend(reply.usage.map(ReplyEvent::Usage));
    events.push(ReplyEvent::Finish(reply.finish));
    events.into_iter().map(Piece::Event).collect()
}

/// An answer as it is being passed on.
pub(crate) struct Relay {
    state: Arc<State>,
    record: Box<Record>,
    /// Who answers.
    served: ModelRef,
    renderer: StreamRenderer,
    /// What is there already.
    ahead: VecDeque<Piece>,
    /// What is to come.
    stream: Option<ReplyStream>,
    /// The stream's own bytes are the client's dialect.
    native: bool,
    /// How a break is mended, where the route wants that.
    continuation: Option<Box<Continuation>>,
    going: Option<Going>,
    /// Why it broke off, once it did.
    broken: Option<FailoverReason>,
    silence: Silence,
    over: bool,
    /// What is written next.
    out: Gathered,
}

/// Says when a silent stream needs a sign of life.
pub(crate) struct Silence {
    clock: Arc<dyn Clock>,
    every: Duration,
    last: Timestamp,
    timer: Option<Timer>,
}

impl Silence {
    pub(crate) fn new(clock: Arc<dyn Clock>, every: Duration) -> Self {
        Self { last: clock.now(), clock, every, timer: None }
    }

    /// Something was written.
    fn broken(&mut self) {
        self.last = self.clock.now();
    }

    /// Ready when nothing was written for the whole time. The timer is left to run out rather than set anew for each
    /// piece: a stream that talks costs nothing here.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let due = self.last.after(self.every);
            let timer = self.timer.get_or_insert_with(|| Timer::new(&self.clock, due));
            if timer.poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            if self.clock.now() >= self.last.after(self.every) {
                self.broken();
                return Poll::Ready(());
            }
        }
    }
}

impl Relay {
    /// An answer of which `kept` is there already.
    pub(crate) fn new(
        state: Arc<State>,
        record: Box<Record>,
        served: ModelRef,
        mut renderer: StreamRenderer,
        kept: Kept,
        continuation: Option<Box<Continuation>>,
        silence: Silence,
    ) -> Self {
        let Kept { pieces, tail, native, head } = kept;
        if native {
            renderer.adopt(head.id.as_deref(), head.model.as_deref());
        }
        Self {
            state,
            record,
            served,
            renderer,
            ahead: pieces,
            stream: tail,
            native,
            continuation,
            going: None,
            broken: None,
            silence,
            over: false,
            out: Gathered::new(),
        }
    }

    /// The next bytes; `None` when the answer is over.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while !self.over && !self.out.is_full() {
            let Poll::Ready(piece) = self.poll_piece(cx) else {
                if self.out.is_empty() {
                    if self.silence.poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    self.renderer.keep_alive(self.out.room());
                } else if self.out.looks_again() {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                break;
            };
            self.out.piece();
            match piece {
                Some(Ok(Piece::Native(frame))) => {
                    frame.events.iter().for_each(|event| self.note(event));
                    if frame.content {
                        self.record.content();
                    }
                    if self.over {
                        self.answered();
                    }
                    self.renderer.passed(&frame.bytes);
                    self.out.push(frame.bytes);
                    if self.out.is_alone() {
                        break;
                    }
                }
                Some(Ok(Piece::Event(event))) => {
                    self.note(&event);
                    if event.is_content() {
                        self.record.content();
                    }
                    self.renderer.push(&event, self.out.room());
                    if self.over {
                        self.answered();
                    }
                }
                Some(Err(failure)) => self.broke_off(&failure),
                None => self.over = true,
            }
        }
        if self.out.is_empty() {
            return Poll::Ready(None);
        }
        self.silence.broken();
        Poll::Ready(Some(self.out.take()))
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, AttemptFailure>>> {
        if let Some(piece) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        if let Some(going) = &mut self.going {
            let Poll::Ready(ended) = going.poll(cx) else { return Poll::Pending };
            let going = self.going.take();
            if let Some(gone_on) = ended {
                self.gone_on(gone_on);
                return self.poll_piece(cx);
            }
            // The client is told of the break, never of what became of the attempt to mend it.
            self.record.rescued("continue", false);
            return Poll::Ready(going.map(|going| Err(going.into_failure())));
        }
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        if self.native {
            return stream.poll_frame(cx).map(|frame| frame.map(|frame| frame.map(Piece::Native)));
        }
        Pin::new(stream).poll_next(cx).map(|event| event.map(|event| event.map(Piece::Event)))
    }

    /// Another model goes on with the answer.
    fn gone_on(&mut self, gone_on: GoneOn) {
        let GoneOn { reply, served, trail, attempts } = gone_on;
        self.record.rescued("continue", true);
        self.record.walked(trail, attempts, None, None);
        self.served = served;
        match reply {
            Reply::Complete(reply) => self.ahead = events_of(reply),
            Reply::Stream(stream) => self.stream = Some(stream),
        }
    }

    fn note(&mut self, event: &ReplyEvent) {
        if let ReplyEvent::Usage(usage) = event {
            self.record.usage = Some(*usage);
        } else if let ReplyEvent::Finish(finish) = event {
            self.record.finish = Some(finish.clone());
            self.over = true;
        }
    }

    fn answered(&mut self) {
        self.stream = None;
        self.record.close(Outcome::Answered, StatusCode::OK);
    }

    /// The answer broke off: another model goes on with it, or the client is told.
    fn broke_off(&mut self, failure: &AttemptFailure) {
        self.stream = None;
        let model = &self.served;
        // It is held against its giver by who watches the stream.
        let reason = match self.broken {
            Some(reason) => reason,
            None => self.state.engine.runner().judge(model, failure).reason,
        };
        if let Some(continuation) = self.continuation.take() {
            if let Some(going) = continuation.go_on(failure) {
                self.broken = Some(reason);
                self.going = Some(going);
                return;
            }
            self.record.rescued("continue", false);
        }
        let body = failure::broken_off(&model.to_string(), reason, failure);
        self.record.close_with(Outcome::Incomplete, StatusCode::OK, &body.message);
        self.renderer.fail(&body, self.out.room());
        self.over = true;
    }
}

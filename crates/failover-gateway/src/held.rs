//! An answer that is held back until it is complete, while comments keep its client's connection alive.

use crate::chat::Asked;
use crate::dialect::StreamRenderer;
use crate::relay::{Relay, Silence};
use crate::rescue::Kept;
use bytes::{Bytes, BytesMut};
use failover::provider::AttemptFailure;
use failover::runner::{Answer, RunError};
use failover::types::BoxFuture;
use http::HeaderMap;
use std::task::{Context, Poll};

/// A run whose answer is kept.
pub(crate) type Keeping = BoxFuture<'static, Result<Answer<Kept>, RunError<AttemptFailure>>>;

/// The body of a response that began before there was an answer.
pub(crate) struct Held {
    stage: Stage,
    renderer: StreamRenderer,
    silence: Silence,
    /// The first sign of life, at once: that the time was up is why this body began.
    greeted: bool,
}

enum Stage {
    Waiting(Keeping, Box<Asked>),
    Writing(Box<Relay>),
    Over,
}

impl Held {
    pub(crate) fn new(keeping: Keeping, asked: Asked, renderer: StreamRenderer, silence: Silence) -> Self {
        Self { stage: Stage::Waiting(keeping, Box::new(asked)), renderer, silence, greeted: false }
    }

    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = BytesMut::new();
        if !std::mem::replace(&mut self.greeted, true) {
            self.renderer.keep_alive(&mut out);
            return Poll::Ready(Some(out.freeze()));
        }
        let ended = match &mut self.stage {
            Stage::Over => return Poll::Ready(None),
            Stage::Writing(relay) => return relay.poll_bytes(cx),
            Stage::Waiting(keeping, _) => keeping.as_mut().poll(cx),
        };
        let Poll::Ready(ended) = ended else {
            if self.silence.poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.renderer.keep_alive(&mut out);
            return Poll::Ready(Some(out.freeze()));
        };
        let Stage::Waiting(_, asked) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Poll::Ready(None);
        };
        match ended {
            Ok(answer) => {
                let (headers, relay) = asked.relay(answer);
                self.stage = Stage::Writing(Box::new(relay));
                tell(&headers, &mut out);
                Poll::Ready(Some(out.freeze()))
            }
            Err(error) => {
                let body = asked.failed_late(&error);
                self.renderer.fail(&body, &mut out);
                Poll::Ready(Some(out.freeze()))
            }
        }
    }
}

/// The headers that came too late, as comments of the stream: who answered, and why not another one.
fn tell(headers: &HeaderMap, out: &mut BytesMut) {
    for (name, value) in headers {
        for part in [b": ", name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\n");
}

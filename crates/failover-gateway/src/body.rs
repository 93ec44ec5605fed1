//! Bodies of responses.

use crate::held::Held;
use crate::relay::Relay;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What a response carries. Dropping it lets go of everything behind it, the provider's connection included.
pub(crate) enum Body {
    /// All of it.
    Whole(Bytes),
    /// An answer that streams.
    Relay(Box<Relay>),
    /// An answer that is held back until it is complete.
    Held(Box<Held>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready(Some(bytes).filter(|bytes| !bytes.is_empty()))
            }
            Self::Relay(relay) => relay.poll_bytes(cx),
            Self::Held(held) => held.poll_bytes(cx),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Relay(_) | Self::Held(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Relay(_) | Self::Held(_) => SizeHint::default(),
        }
    }
}

//! The one seam for HTTP: send a request, get a response whose body streams.

use crate::TransportError;
use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// Sends one request. No retry, no redirect, no decompression, no time limit of its own.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends the request and resolves with the head of the response.
    ///
    /// Calls [`Connected::signal`] as soon as a connection stands, new or reused: until then the connect limit runs,
    /// and a failure counts as *not sent*.
    ///
    /// # Errors
    ///
    /// [`TransportError`], with the whole chain of causes.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future, or the response's body, closes the connection (HTTP/1.1) or resets the
    /// stream (HTTP/2).
    async fn send(
        &self,
        request: http::Request<Bytes>,
        connected: Connected,
    ) -> Result<http::Response<ResponseBody>, TransportError>;
}

/// Tells that a connection stands. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct Connected(Arc<AtomicBool>);

impl Connected {
    /// Not yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// It stands.
    pub fn signal(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it stands.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// The body of a response, as it comes. Dropping it ends the exchange.
pub struct ResponseBody(Chunks);

impl ResponseBody {
    /// Wraps a stream of chunks.
    pub fn new(chunks: impl Stream<Item = Result<Bytes, TransportError>> + Send + 'static) -> Self {
        Self(Box::pin(chunks))
    }
}

impl Stream for ResponseBody {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseBody")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seam stays object safe.
    fn _object_safe(_: &dyn Transport) {}
}

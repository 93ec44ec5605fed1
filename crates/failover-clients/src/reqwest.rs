//! reqwest: its errors, and answers that are refusals.

use crate::ClientError;
use crate::told::{Told, broke};
use ::reqwest::header::HeaderMap;
use ::reqwest::{Error, Response, StatusCode};
use failover_classify::{AsSignal, Signal};
use failover_provider::BodyCapture;
use std::fmt;

/// A connection that was not made or broke, a limit that passed, an answer that is no JSON.
///
/// An error of `error_for_status` has its status and nothing else: use [`check`] instead.
impl AsSignal for ClientError<Error> {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        tell(&self.0).with_signal(with)
    }
}

pub(crate) fn tell(error: &Error) -> Told<'_> {
    if let Some(status) = error.status() {
        return Told { status: Some(status.as_u16()), ..Told::default() };
    }
    if error.is_timeout() {
        return Told::timeout(error);
    }
    if error.is_builder() || error.is_redirect() || error.is_decode() && !broke(error) {
        return Told::words(error, |_| None);
    }
    // A body that broke off in the middle is a failure to decode as well.
    if error.is_body() || error.is_decode() { Told::cut(error) } else { Told::transport(error) }
}

/// An answer with an error status: everything of it that tells why.
///
/// `Debug` and `Display` show the status only: the body may quote the request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseError {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body: its first 64 KiB and its last 4 KiB.
    pub body: Vec<u8>,
}

impl AsSignal for ResponseError {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        Told::answer(self.status.as_u16(), Some(&self.headers), &self.body).with_signal(with)
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the provider answered {}", self.status)
    }
}

impl fmt::Debug for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseError").field("status", &self.status).finish_non_exhaustive()
    }
}

impl std::error::Error for ResponseError {}

/// How a call with reqwest failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The provider refused or failed.
    Response(ResponseError),
    /// The call did not come to an answer, or the answer could not be read.
    Request(Error),
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Request(error)
    }
}

impl From<ResponseError> for CallError {
    fn from(error: ResponseError) -> Self {
        Self::Response(error)
    }
}

impl AsSignal for CallError {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        match self {
            Self::Response(error) => error.with_signal(with),
            Self::Request(error) => tell(error).with_signal(with),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(error) => error.fmt(f),
            Self::Request(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Response(_) => None,
            Self::Request(error) => error.source(),
        }
    }
}

/// Passes an answer on, unless its status is an error: then with its headers, and as much of its body as is read.
///
/// In place of `error_for_status`, which drops both.
///
/// # Errors
///
/// [`ResponseError`] for every status from 400.
///
/// # Cancel safety
///
/// Cancel safe: what was read of the body is dropped with the answer.
pub async fn check(mut response: Response) -> Result<Response, ResponseError> {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return Ok(response);
    }
    let headers = std::mem::take(response.headers_mut());
    let mut body = BodyCapture::new();
    // What broke off tells what it told.
    while let Ok(Some(bytes)) = response.chunk().await {
        body.push(&bytes);
    }
    Err(ResponseError { status, headers, body: body.into_bytes() })
}

//! What the errors of well-known Rust clients tell: status, headers, code, body and the chain of causes, as the
//! classifier and the runner read them.
//!
//! Whoever keeps a client of their own hands its error on in a [`ClientError`], and the runner does the rest:
//!
//! ```
//! use failover_classify::{AsSignal, Classifier};
//! use failover_clients::ClientError;
//!
//! // A client that hands over a text only.
//! fn ask() -> Result<(), ClientError<String>> {
//!     Err(r#"HTTP 429 Too Many Requests: {"error":{"code":"insufficient_quota","message":"no credit"}}"#.to_owned())?
//! }
//!
//! let classifier = Classifier::standard().unwrap();
//! let verdict = ask().unwrap_err().with_signal(|signal| classifier.classify(signal));
//! assert_eq!(verdict.reason.as_str(), "billing");
//! ```
//!
//! | error | feature | status | headers, with `Retry-After` | body |
//! |---|---|---|---|---|
//! | `genai::Error` | `genai` | yes | yes | yes |
//! | `rig_core::error::ProviderError` | `rig` | yes | yes | yes |
//! | `reqwest::Error` | `reqwest` | of `error_for_status` | no | no |
//! | [`ResponseError`](crate::reqwest::ResponseError), by [`check`](crate::reqwest::check) | `reqwest` | yes | yes | yes |
//! | `SdkError` of the AWS SDK | `aws` | yes | yes | yes |
//! | `async_openai::error::OpenAIError` | `async-openai` | mostly | **no: reset times are lost** | its parts |
//! | `String`, `&str`, `Box<dyn Error + Send + Sync>` | – | read from the text | no | read from the text |
//!
//! Switch off the retries of the client itself: there should be one owner of retries.
//!
//! - genai has none.
//! - rig has none in a model's call.
//! - reqwest repeats some requests over HTTP/2 unless it is built with `retry(reqwest::retry::never())`.
//! - The AWS SDK tries three times unless it is configured with `RetryConfig::disabled()`.
//! - async-openai tries a request four times, and **sits out** waits of its own between, unless it gets a service
//!   without retries: `client.with_http_service(ReqwestService::new(reqwest::Client::new()))`, behind its feature
//!   `middleware`. From `Retry-After` the classifier would know how long a key is spent; async-openai drops all headers,
//!   so that the ladder of cooldowns and what the body says is all there is.

#[cfg(feature = "async-openai")]
mod async_openai;
#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "genai")]
mod genai;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "rig")]
mod rig;
mod text;
mod told;

use std::error::Error;
use std::fmt;

/// A client's error, readable by the classifier. The error itself stays as it came, in field 0.
///
/// `?` wraps an error of the client's, and so does `.map_err(ClientError)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper, to be made and opened by anyone")]
pub struct ClientError<E>(pub E);

impl<E> From<E> for ClientError<E> {
    fn from(error: E) -> Self {
        Self(error)
    }
}

impl<E: fmt::Display> fmt::Display for ClientError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: Error> Error for ClientError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

//! genai: everything that the provider said is in its errors.

use crate::ClientError;
use crate::reqwest::tell as tell_reqwest;
use crate::told::Told;
use ::genai::webc::Error as WebError;
use ::genai::{BoxError, Error};
use failover_classify::{AsSignal, Signal, Surface};
use failover_provider::FailureCause;

/// Status, headers and body of a refusal, the events of a stream, the connection below.
///
/// genai ends a stream that lacks its finish marker without an error: look at the stop reason of its last event.
impl AsSignal for ClientError<Error> {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        tell(&self.0).with_signal(with)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an open list: what is not known here says so in words")]
fn tell(error: &Error) -> Told<'_> {
    match error {
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => web(webc_error),
        Error::HttpError { status, body, headers, .. } => {
            Told::answer(status.as_u16(), Some(headers), body.as_bytes())
        }
        Error::ChatResponse { body, .. } => Told::new(Surface::StreamEvent).with_body(body.to_string()),
        Error::WebStream { error, .. } => boxed(error),
        // What it prints quotes the request.
        Error::ChatResponseGeneration { response_body, cause, .. } => match &**response_body {
            serde_json::Value::Null => Told::text(cause),
            body => Told::new(Surface::Http).with_body(body.to_string()),
        },
        other => Told::text(other.to_string()),
    }
}

fn web(error: &WebError) -> Told<'_> {
    match error {
        WebError::ResponseFailedStatus { status, body, headers } => {
            Told::answer(status.as_u16(), Some(headers), body.as_bytes())
        }
        WebError::ResponseFailedNotJson { body, .. } => Told::new(Surface::Http).with_body(body),
        // Cut in the middle, or never JSON: the words for it count, and what the body says.
        WebError::ResponseFailedInvalidJson { body, cause } => {
            Told::text(body).with_causes(vec![FailureCause::new(cause)])
        }
        WebError::Reqwest(error) => tell_reqwest(error),
        WebError::JsonValueExt(error) => Told::text(error.to_string()),
    }
}

/// The error of a stream: reqwest's, genai's own for a refusal, or one that only prints.
fn boxed(error: &BoxError) -> Told<'_> {
    if let Some(error) = error.downcast_ref::<Error>() {
        return tell(error);
    }
    if let Some(error) = error.downcast_ref::<::reqwest::Error>() {
        return tell_reqwest(error);
    }
    Told::cut(&**error)
}

//! async-openai: the parts of an error that it keeps. Headers are not among them.

use crate::ClientError;
use crate::reqwest::tell as tell_reqwest;
use crate::told::Told;
use ::async_openai::error::{ApiErrorResponse, OpenAIError, StreamError};
use failover_classify::{AsSignal, Signal, Surface};
use failover_provider::{FailureCause, io_code};

/// Status, type, code and message of an API error; the text of an answer that has another shape, **without** its status;
/// the connection below. Headers are lost, and with them `Retry-After` and every reset time that is not in the message.
impl AsSignal for ClientError<OpenAIError> {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        tell(&self.0).with_signal(with)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "variants come with features of async-openai")]
fn tell(error: &OpenAIError) -> Told<'_> {
    match error {
        OpenAIError::Reqwest(error) => tell_reqwest(error),
        OpenAIError::ApiError(answer) => api(answer),
        // What is wrong with it counts where it says nothing itself: it was cut, perhaps.
        OpenAIError::JSONDeserialize(error, content) => {
            let why = FailureCause::new(error.to_string());
            Told::new(Surface::Http).with_body(content).with_causes(vec![why])
        }
        OpenAIError::StreamError(error) => match &**error {
            StreamError::UnknownEvent(event) => Told::new(Surface::StreamEvent).with_body(&event.data),
            // The chain of causes is lost: this is what became of a connection that broke.
            StreamError::EventStream(text) => {
                Told::new(Surface::Transport).with_causes(vec![FailureCause::new(text)])
            }
        },
        other => Told::words(other, io_code),
    }
}

fn api(answer: &ApiErrorResponse) -> Told<'_> {
    let error = &answer.api_error;
    let told = Told { status: Some(answer.status_code.as_u16()), ..Told::default() };
    // Of a 5xx the message is the body as it came.
    if error.r#type.is_none() && error.code.is_none() && error.param.is_none() {
        return told.with_body(&error.message);
    }
    let body = serde_json::json!({
        "error": {
            "message": error.message,
            "type": error.r#type,
            "param": error.param,
            "code": error.code,
        }
    });
    told.with_body(body.to_string())
}

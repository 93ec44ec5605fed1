//! The AWS SDK: every service's errors, with the raw answer.

use crate::ClientError;
use crate::told::{Told, broke};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_smithy_types::event_stream::RawMessage;
use failover_classify::{AsSignal, Signal, Surface};
use failover_provider::FailureCause;
use std::error::Error;
use std::fmt;

/// The error of a call: status, headers, code and body of the answer, and the connection below.
impl<E> AsSignal for ClientError<SdkError<E, HttpResponse>>
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        tell(&self.0, answered).with_signal(with)
    }
}

/// The error of an event stream: the exception that came as an event, and the connection below.
impl<E> AsSignal for ClientError<SdkError<E, RawMessage>>
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        tell(&self.0, event).with_signal(with)
    }
}

fn tell<E, R>(error: &SdkError<E, R>, raw: impl Fn(&R) -> Told<'_>) -> Told<'_>
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
    R: fmt::Debug + 'static,
{
    match error {
        SdkError::TimeoutError(_) => Told::timeout(error),
        SdkError::DispatchFailure(failure) if failure.is_timeout() => Told::timeout(error),
        SdkError::DispatchFailure(_) => Told::transport(error),
        SdkError::ServiceError(service) => {
            let code = service.err().code().map(Into::into);
            let told = raw(service.raw()).with_causes(FailureCause::chain(service.err(), |_| None));
            Told { code: told.code.or(code), ..told }
        }
        // An answer that could not be read: it broke off, or it is not what the service promises.
        SdkError::ResponseError(_) if broke(error) => Told::cut(error),
        SdkError::ResponseError(response) => {
            raw(response.raw()).with_causes(FailureCause::chain(error, |_| None))
        }
        // Nothing was sent: no credentials, no region, an impossible request.
        SdkError::ConstructionFailure(_) | _ => Told::words(error, |_| None),
    }
}

fn answered(raw: &HttpResponse) -> Told<'_> {
    let headers = raw.headers().iter_bytes().map(|(name, value)| (name, String::from_utf8_lossy(value)));
    Told {
        status: Some(raw.status().as_u16()),
        headers: headers.collect(),
        body: raw.body().bytes().unwrap_or_default().into(),
        ..Told::default()
    }
}

fn event(raw: &RawMessage) -> Told<'_> {
    let told = Told::new(Surface::StreamEvent);
    match raw {
        RawMessage::Decoded(message) => {
            let named = |name: &str| {
                let header = message.headers().iter().find(|header| header.name().as_str() == name)?;
                header.value().as_string().ok().map(|value| value.as_str().into())
            };
            let code = named(":exception-type").or_else(|| named(":error-code"));
            Told { code, body: (&**message.payload()).into(), ..told }
        }
        RawMessage::Invalid(bytes) => Told { body: bytes.as_deref().unwrap_or_default().into(), ..told },
        _ => told,
    }
}

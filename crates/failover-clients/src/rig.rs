//! rig: the provider's reply is kept whole.

use crate::ClientError;
use crate::reqwest::tell as tell_reqwest;
use crate::told::Told;
use failover_classify::{AsSignal, Signal, Surface};
use failover_provider::FailureCause;
use rig_core::ProviderResponseError;
use rig_core::error::ProviderError;
use rig_core::http_client::Error as HttpError;

/// Status, headers, code and body of a reply, and the connection below.
impl AsSignal for ClientError<ProviderError> {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        tell(&self.0).with_signal(with)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an open list: what is not known here says so in words")]
fn tell(error: &ProviderError) -> Told<'_> {
    if let Some(reply) = error.provider_response() {
        return replied(reply);
    }
    match error {
        ProviderError::Http(error) => http(error),
        ProviderError::Truncated => Told::cut(error),
        other => Told::words(other, |_| None),
    }
}

fn replied(reply: &ProviderResponseError) -> Told<'_> {
    let status = reply.status.map(|status| status.as_u16());
    let told = Told::answer(status.unwrap_or_default(), reply.headers.as_ref(), reply.body.as_bytes());
    Told { status, code: reply.code.as_deref().map(Into::into), ..told }
}

fn http(error: &HttpError) -> Told<'_> {
    match error {
        HttpError::InvalidStatusCodeWithDetails { status, body, headers } => {
            Told::answer(status.as_u16(), Some(headers), body.as_bytes())
        }
        // Its own words, "stream ended", could mean any end.
        HttpError::StreamEnded => {
            Told::new(Surface::Transport).with_causes(vec![FailureCause::new("stream ended unexpectedly")])
        }
        HttpError::Instance(error) => {
            error.downcast_ref().map_or_else(|| Told::transport(&**error), tell_reqwest)
        }
        HttpError::Protocol(_)
        | HttpError::InvalidHeaderValue(_)
        | HttpError::NoHeaders
        | HttpError::InvalidContentType(_) => Told::text(error.to_string()),
    }
}

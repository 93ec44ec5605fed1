//! An answer that came whole.

use crate::decode::{Decoder, Fault};
use crate::wire::Body;
use failover_http::SseEvent;
use failover_provider::{ChatReply, FinishReason, ReplyEvent, ReplyStream};
use failover_types::ProviderId;
use futures_util::{FutureExt, stream};

/// Why a whole answer is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// No JSON, an error, no choices, nothing in them.
    Body,
    /// A finish reason that means "failed", or that explains why there is nothing.
    Finish(String),
}

/// Reads a whole answer. It goes the way of a stream of one event, so that both are read by the same rules.
pub(crate) fn read(body: &[u8], provider: &ProviderId, mut decoder: Decoder) -> Result<ChatReply, Unusable> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    serde_json::from_str::<Body>(text).map_err(|_| Unusable::Body)?;
    let mut event = SseEvent::default();
    text.clone_into(&mut event.data);
    decoder.take(&event).map_err(|fault| match fault {
        Fault::Event(_) => Unusable::Body,
        Fault::Finish(word) => Unusable::Finish(word),
    })?;
    let mut events: Vec<ReplyEvent> = decoder.ready.drain(..).collect();
    // A whole document is its own finish marker.
    let finish = decoder.finish.take().unwrap_or(FinishReason::Stop);
    if !events.iter().any(ReplyEvent::is_content) {
        let filtered = finish == FinishReason::ContentFilter;
        return Err(if filtered { Unusable::Finish(finish.as_str().to_owned()) } else { Unusable::Body });
    }
    // The proof belongs to the reasoning, which comes first.
    let place = events.iter().take_while(|event| matches!(event, ReplyEvent::Reasoning(_))).count();
    if let Some(proof) = decoder.take_proof() {
        events.insert(place, ReplyEvent::ReasoningProof(proof));
    }
    events.push(ReplyEvent::Finish(finish));
    let stream =
        ReplyStream::new(provider.clone(), stream::iter(events.into_iter().map(Ok))).with_head(decoder.head);
    // Nothing in it waits.
    stream.into_reply().now_or_never().and_then(Result::ok).ok_or(Unusable::Body)
}

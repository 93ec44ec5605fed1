//! The binary event stream, as a transport that hands it on as server-sent events.
//!
//! Whatever reads streams then reads this one too, and judges its beginnings, its limits and its end alike.

use async_trait::async_trait;
use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_types::event_stream::Message;
use bytes::{Buf, Bytes, BytesMut};
use failover_http::{
    Connected, MAX_EVENT_BYTES, ResponseBody, Transport, TransportError, TransportErrorKind,
};
use failover_provider::FailureCause;
use futures_util::{Stream, StreamExt, stream};

/// The type of an event that says that the stream failed.
pub(crate) const EXCEPTION: &str = "exception";

/// Hands on what `0` receives; bodies that begin like a binary event stream as server-sent events.
pub(crate) struct Framed<'a>(pub(crate) &'a dyn Transport);

#[async_trait]
impl Transport for Framed<'_> {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        connected: Connected,
    ) -> Result<http::Response<ResponseBody>, TransportError> {
        let response = self.0.send(request, connected).await?;
        Ok(response.map(|body| ResponseBody::new(translated(body))))
    }
}

/// What a body turned out to be.
enum Body {
    Unknown,
    /// Handed on as it is.
    Plain,
    Frames(Decoder),
    Over,
}

/// A body of another kind passes unchanged: no text begins with a zero byte, and every frame shorter than 16 MiB does.
fn translated(body: ResponseBody) -> impl Stream<Item = Result<Bytes, TransportError>> + Send + 'static {
    stream::unfold((body, Body::Unknown), |(mut body, mut kind)| async move {
        loop {
            if matches!(kind, Body::Over) {
                return None;
            }
            let chunk = match body.next().await? {
                Ok(chunk) => chunk,
                Err(error) => return Some((Err(error), (body, Body::Over))),
            };
            if let (Body::Unknown, Some(first)) = (&kind, chunk.first()) {
                kind = if *first == 0 { Body::Frames(Decoder::default()) } else { Body::Plain };
            }
            match &mut kind {
                Body::Unknown | Body::Over => {}
                Body::Plain => return Some((Ok(chunk), (body, kind))),
                Body::Frames(decoder) => match decoder.take(&chunk) {
                    Ok(events) if events.is_empty() => {}
                    Ok(events) => return Some((Ok(Bytes::from(events)), (body, kind))),
                    Err(error) => return Some((Err(error), (body, Body::Over))),
                },
            }
        }
    })
}

/// Length, length of the headers, and the checksum of both.
const PRELUDE_BYTES: usize = 12;

/// Cuts bytes into frames, checksums and all.
#[derive(Default)]
struct Decoder(BytesMut);

fn broken(what: &str) -> TransportError {
    let mut error = TransportError::new(TransportErrorKind::Protocol, Some("EPROTO"));
    error.causes.push(FailureCause::new(format!("stream cut: {what}")));
    error
}

impl Decoder {
    /// Takes the next bytes and gives the complete frames among them, as events.
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, TransportError> {
        self.0.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(mut prelude) = self.0.get(..PRELUDE_BYTES) {
            // Before the frame is waited for: a wrong length would be waited for to no end.
            let sum = crc32fast::hash(prelude.split_at(PRELUDE_BYTES - 4).0);
            let length = usize::try_from(prelude.get_u32()).unwrap_or(usize::MAX);
            prelude.advance(4);
            if prelude.get_u32() != sum {
                return Err(broken("the start of a frame does not match its checksum"));
            }
            if length > MAX_EVENT_BYTES {
                return Err(broken("a frame is too long"));
            }
            if self.0.len() < length {
                break;
            }
            let message = read_message_from(self.0.split_to(length).freeze());
            let message = message.map_err(|error| broken(&format!("a frame is broken: {error}")))?;
            write(&message, &mut events);
        }
        Ok(events)
    }
}

fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let found = message.headers().iter().find(|header| header.name().as_str() == name)?;
    found.value().as_string().ok().map(aws_smithy_types::str_bytes::StrBytes::as_str)
}

/// Writes a frame as an event. An exception's type goes into its data, where a body of the API has it.
fn write(message: &Message, events: &mut Vec<u8>) {
    let payload = String::from_utf8_lossy(message.payload());
    let kind = header(message, ":message-type");
    let (name, data) = match kind {
        Some("exception") => (EXCEPTION, exception(header(message, ":exception-type"), &payload)),
        Some("error") => {
            let text = serde_json::Value::from(header(message, ":error-message").unwrap_or_default());
            (EXCEPTION, exception(header(message, ":error-code"), &format!("{{\"message\":{text}}}")))
        }
        _ => (header(message, ":event-type").unwrap_or_default(), payload.into_owned()),
    };
    let line = |text: &str| text.replace(['\r', '\n'], " ");
    events.extend_from_slice(format!("event: {}\ndata: {}\n\n", line(name), line(&data)).as_bytes());
}

fn exception(kind: Option<&str>, payload: &str) -> String {
    // The API's own spelling in bodies: `ThrottlingException` for `throttlingException`.
    let kind = kind.unwrap_or("unknown");
    let mut letters = kind.chars();
    let kind: String =
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect();
    let kind = serde_json::Value::from(kind);
    match payload.trim().strip_prefix('{').map(str::trim_start) {
        Some("}") => format!("{{\"__type\":{kind}}}"),
        Some(rest) => format!("{{\"__type\":{kind},{rest}"),
        None => format!("{{\"__type\":{kind},\"message\":{}}}", serde_json::Value::from(payload)),
    }
}

#[cfg(test)]
mod tests;

//! Frames of the binary event stream, whole and broken.

use super::*;
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue};
use proptest::prelude::*;
use test_case::test_case;

fn frame(headers: &[(&'static str, &'static str)], payload: &'static str) -> Vec<u8> {
    let headers =
        headers.iter().map(|(name, value)| Header::new(*name, HeaderValue::String((*value).into())));
    let mut bytes = Vec::new();
    write_message_to(&Message::new_from_parts(headers.collect(), payload.as_bytes()), &mut bytes).unwrap();
    bytes
}

fn delta() -> Vec<u8> {
    frame(&[(":message-type", "event"), (":event-type", "contentBlockDelta")], "{\"a\":\n1}")
}

const DELTA: &str = "event: contentBlockDelta\ndata: {\"a\": 1}\n\n";

fn text(events: Result<Vec<u8>, TransportError>) -> String {
    String::from_utf8(events.unwrap()).unwrap()
}

#[test]
fn frames_become_events_wherever_they_are_split() {
    let bytes = [delta(), delta()].concat();
    for size in [1, 3, 11, 12, 13, bytes.len()] {
        let mut decoder = Decoder::default();
        let events: String = bytes.chunks(size).map(|piece| text(decoder.take(piece))).collect();
        assert_eq!(events, DELTA.repeat(2), "split into pieces of {size}");
    }
}

// spec: P-4
#[test_case(&[(":message-type", "exception"), (":exception-type", "throttlingException")], "{\"message\":\"slow down\"}",
    "{\"__type\":\"ThrottlingException\",\"message\":\"slow down\"}"; "exception")]
#[test_case(&[(":message-type", "exception"), (":exception-type", "internalServerException")], "{}",
    "{\"__type\":\"InternalServerException\"}"; "exception without words")]
#[test_case(&[(":message-type", "exception"), (":exception-type", "x")], "oops \"",
    "{\"__type\":\"X\",\"message\":\"oops \\\"\"}"; "exception without json")]
#[test_case(&[(":message-type", "error"), (":error-code", "InternalError"), (":error-message", "it \"broke\"")], "",
    "{\"__type\":\"InternalError\",\"message\":\"it \\\"broke\\\"\"}"; "error")]
fn exceptions_keep_their_type(headers: &[(&'static str, &'static str)], payload: &'static str, data: &str) {
    let events = text(Decoder::default().take(&frame(headers, payload)));
    assert_eq!(events, format!("event: exception\ndata: {data}\n\n"));
    serde_json::from_str::<serde_json::Value>(data).unwrap();
}

// spec: P-3
#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let good = delta();
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        let mut decoder = Decoder::default();
        let error = decoder.take(&bytes).unwrap_err();
        assert_eq!((error.kind, error.code), (TransportErrorKind::Protocol, Some("EPROTO")), "byte {at}");
    }
}

#[test]
fn a_frame_that_is_too_long_is_not_waited_for() {
    let mut prelude = [0_u8; 12];
    prelude[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    let sum = crc32fast::hash(&prelude[..8]);
    prelude[8..].copy_from_slice(&sum.to_be_bytes());
    assert!(Decoder::default().take(&prelude).is_err());
}

#[tokio::test]
async fn other_bodies_pass_unchanged() {
    let chunks = ["", "{\"mess", "age\":1}"].map(|chunk| Ok(Bytes::from_static(chunk.as_bytes())));
    let body = ResponseBody::new(stream::iter(chunks));
    let out: Vec<Bytes> = translated(body).map(Result::unwrap).collect().await;
    assert_eq!(out.concat(), b"{\"message\":1}");
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Decoder::default().take(&[vec![0], bytes].concat());
    }
}

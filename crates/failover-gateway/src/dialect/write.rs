//! Writing JSON and events into buffers.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;

/// A value as JSON. What is written here has no maps with odd keys and no failing `Serialize`; were it otherwise, the
/// client would see an empty body rather than half of one.
pub(super) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Appends a value as JSON.
pub(super) fn put_json(out: &mut BytesMut, value: &(impl Serialize + ?Sized)) {
    let begun = out.len();
    if serde_json::to_writer(out.writer(), value).is_err() {
        // Only memory could fail here, and that does not return.
        out.truncate(begun);
        out.put_slice(b"null");
    }
}

/// Appends an event without a type.
pub(super) fn put_data(out: &mut BytesMut, value: &impl Serialize) {
    out.put_slice(b"data: ");
    put_json(out, value);
    out.put_slice(b"\n\n");
}

/// Appends an event with a type.
pub(super) fn put_event(out: &mut BytesMut, event: &str, value: &impl Serialize) {
    out.put_slice(b"event: ");
    out.put_slice(event.as_bytes());
    out.put_slice(b"\n");
    put_data(out, value);
}

/// Appends a comment: keeps the connection alive and means nothing.
pub(super) fn put_comment(out: &mut BytesMut) {
    out.put_slice(b": keep-alive\n\n");
}

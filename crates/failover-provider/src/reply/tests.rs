//! What every stream is held to.

use super::*;
use crate::{Json, Origin, Progress};
use futures_util::{FutureExt, StreamExt, stream};

fn provider() -> ProviderId {
    ProviderId::new("acme").unwrap()
}

fn replay(events: Vec<Result<ReplyEvent, AttemptFailure>>) -> ReplyStream {
    ReplyStream::new(provider(), stream::iter(events))
}

#[expect(clippy::unnecessary_wraps, reason = "items of a stream of results")]
fn text(text: &str) -> Result<ReplyEvent, AttemptFailure> {
    Ok(ReplyEvent::Text(text.into()))
}

fn broken() -> Result<ReplyEvent, AttemptFailure> {
    Err(AttemptFailure::new(provider(), Surface::StreamEvent).with_code("overloaded"))
}

fn all(stream: ReplyStream) -> Vec<Result<ReplyEvent, AttemptFailure>> {
    StreamExt::collect(stream).now_or_never().unwrap()
}

// spec: P-3
#[test]
fn an_end_without_finish_is_a_failure_with_what_came() {
    let events = all(replay(vec![text("to be or"), text(" not")]));
    let failure = events.last().unwrap().as_ref().unwrap_err();
    assert_eq!(failure.incomplete.as_ref().unwrap().text(), "to be or not");
    assert_eq!(failure.progress, Progress::Delivered);
    assert_eq!(events.len(), 3);
}

// spec: P-3
#[test]
fn a_failure_ends_the_stream_and_carries_what_came() {
    let events = all(replay(vec![text("a"), broken(), text("late")]));
    assert_eq!(events.len(), 2);
    let failure = events.last().unwrap().as_ref().unwrap_err();
    assert_eq!(failure.code.as_deref(), Some("overloaded"), "the adapter's own failure is kept");
    assert_eq!(failure.incomplete.as_ref().unwrap().text(), "a");
}

#[test]
fn nothing_comes_after_finish() {
    let events =
        all(replay(vec![text("a"), Ok(ReplyEvent::Finish(FinishReason::Stop)), text("late"), broken()]));
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(Result::is_ok));
}

#[test]
fn parts_keep_their_order_and_calls_their_pieces() {
    let proof = Opaque::new(Origin::new(provider()), "signature", Json::parse("\"x\"").unwrap());
    let reply = replay(vec![
        Ok(ReplyEvent::Reasoning("hm".into())),
        Ok(ReplyEvent::ReasoningProof(proof.clone())),
        text("I "),
        text("call"),
        Ok(ReplyEvent::ToolCall(
            ToolCallDelta::new(0, "{\"a\"").with_start(Some("c0".into()), Some("f".into())),
        )),
        Ok(ReplyEvent::ToolCall(ToolCallDelta::new(1, "{}").with_start(Some("c1".into()), Some("g".into())))),
        Ok(ReplyEvent::ToolCall(ToolCallDelta::new(0, ":1}"))),
        Ok(ReplyEvent::Usage(Usage::new(1, 1))),
        Ok(ReplyEvent::Usage(Usage::new(1, 5))),
        Ok(ReplyEvent::Finish(FinishReason::ToolCalls)),
    ])
    .into_reply()
    .now_or_never()
    .unwrap()
    .unwrap();
    assert_eq!(
        reply.parts,
        [
            Part::Reasoning { text: "hm".into(), proof: Some(proof) },
            Part::Text("I call".into()),
            Part::ToolCall(ToolCall::new("c0", "f", "{\"a\":1}")),
            Part::ToolCall(ToolCall::new("c1", "g", "{}")),
        ]
    );
    assert_eq!((reply.usage, reply.finish), (Some(Usage::new(1, 5)), FinishReason::ToolCalls));
}

#[test]
fn what_is_remembered_is_bounded() {
    let big = "x".repeat(RECEIVED_CAP_BYTES / 2);
    let events = all(replay(vec![text(&big), text(&big), text("more")]));
    let failure = events.last().unwrap().as_ref().unwrap_err();
    let incomplete = failure.incomplete.as_ref().unwrap();
    assert!(incomplete.truncated);
    assert_eq!(incomplete.text().len(), RECEIVED_CAP_BYTES);
}

#[expect(clippy::unnecessary_wraps, reason = "items of a stream of results")]
fn frame(text: &str) -> Result<NativeFrame, AttemptFailure> {
    Ok(NativeFrame::new(Bytes::copy_from_slice(text.as_bytes()), true, Vec::new()))
}

fn passing(frames: Vec<Result<NativeFrame, AttemptFailure>>) -> ReplyStream {
    let read: ReadFrame =
        Box::new(|bytes| vec![ReplyEvent::Text(String::from_utf8_lossy(bytes).into_owned())]);
    ReplyStream::of_frames(provider(), Dialect::OpenAiChat, stream::iter(frames), read)
}

#[expect(clippy::unnecessary_wraps, reason = "items of a stream of results")]
fn last() -> Result<NativeFrame, AttemptFailure> {
    let events = vec![ReplyEvent::Usage(Usage::new(1, 2)), ReplyEvent::Finish(FinishReason::Stop)];
    Ok(NativeFrame::new(Bytes::new(), false, events))
}

// spec: P-3
#[test]
fn frames_pass_unread_and_a_failure_still_tells_what_came() {
    let mut stream = passing(vec![frame("a"), frame("b"), broken().map(|_| unreachable!())]);
    assert_eq!(stream.dialect(), Some(Dialect::OpenAiChat));
    let next = |stream: &mut ReplyStream| stream.next_frame().now_or_never().unwrap();
    assert_eq!(next(&mut stream).unwrap().unwrap().bytes, "a");
    assert_eq!(next(&mut stream).unwrap().unwrap().bytes, "b");
    let failure = next(&mut stream).unwrap().unwrap_err();
    assert_eq!(failure.incomplete.as_ref().unwrap().text(), "ab");
    assert_eq!((failure.progress, next(&mut stream)), (Progress::Delivered, None));

    let mut cut = passing(vec![frame("a")]);
    next(&mut cut).unwrap().unwrap();
    assert_eq!(next(&mut cut).unwrap().unwrap_err().code.as_deref(), Some("incomplete_stream"));
    assert_eq!(next(&mut cut), None);

    let mut whole = passing(vec![frame("a"), last(), frame("late")]);
    next(&mut whole).unwrap().unwrap();
    assert!(next(&mut whole).unwrap().unwrap().is_last());
    assert_eq!(next(&mut whole), None);
}

#[test]
fn frames_can_be_read_as_events_and_events_as_frames() {
    let reply = passing(vec![frame("a"), frame("b"), last()]).into_reply().now_or_never().unwrap().unwrap();
    assert_eq!((reply.text().as_str(), reply.usage), ("ab", Some(Usage::new(1, 2))));
    let mut plain = replay(vec![text("a"), Ok(ReplyEvent::Finish(FinishReason::Stop))]);
    let frames: Vec<_> =
        std::iter::from_fn(|| plain.next_frame().now_or_never().unwrap()).map(Result::unwrap).collect();
    assert_eq!(frames.len(), 2);
    assert!(frames.iter().all(|frame| frame.bytes.is_empty()) && frames[0].content && frames[1].is_last());
}

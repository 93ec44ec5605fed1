//! A caller's own body goes out as it is, and the provider's bytes come back: judged by the same rules.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_http::TargetConfig;
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Dialect, FinishReason, Native, NativeFrame, ProviderAdapter,
    Reply, ReplyEvent, ReplyStream,
};
use failover_provider_anthropic::Anthropic;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, FrameKind, Messages, Piece, Step, Upstream};
use failover_types::{ModelRef, ProviderId};
use std::sync::Arc;
use test_case::test_case;

const BODY: &str =
    r#"{"max_tokens":5,"model":"route","messages":[],"stream":true,"thinking":{"type":"enabled"}}"#;

async fn open(step: impl Into<Step>, body: &'static str) -> (Upstream, Result<Reply, AttemptFailure>) {
    let clock = Arc::new(ManualClock::default());
    let dialects: Vec<Box<dyn failover_testkit::upstream::Dialect>> = vec![Box::new(Messages::default())];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script("m", [step.into()]);
    let config = TargetConfig::new().base_url(upstream.base_url());
    let adapter = Anthropic::new(ProviderId::new("anthropic").unwrap(), config).unwrap();
    let model: ModelRef = "anthropic/m".parse().unwrap();
    let native = Native::new(Dialect::AnthropicMessages, body);
    let request = ChatRequest::prompt("hi").with_stream(body.contains("stream")).with_native(native);
    let reply = adapter.open(&request, AttemptScope::new(&model, clock)).await;
    (upstream, reply)
}

fn stream(reply: Result<Reply, AttemptFailure>) -> ReplyStream {
    match reply {
        Ok(Reply::Stream(stream)) => stream,
        other => panic!("{other:?}"),
    }
}

async fn frames(mut stream: ReplyStream) -> Vec<Result<NativeFrame, AttemptFailure>> {
    let mut frames = Vec::new();
    while let Some(frame) = stream.next_frame().await {
        frames.push(frame);
    }
    frames
}

fn passed(frames: &[Result<NativeFrame, AttemptFailure>]) -> String {
    let bytes = frames.iter().flatten().flat_map(|frame| frame.bytes.to_vec()).collect();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn the_callers_words_go_out_and_the_providers_come_back() {
    let answer = Answer::new(vec![Piece::Reasoning("hm".into()), Piece::Text("one".into())]);
    let (upstream, reply) = open(answer, BODY).await;
    let stream = stream(reply);
    assert_eq!(
        (stream.dialect(), stream.head().id.as_deref()),
        (Some(Dialect::AnthropicMessages), Some("msg_scripted"))
    );
    let frames = frames(stream).await;
    assert_eq!(upstream.log()[0].body, BODY.replace("route", "m"));
    let text = passed(&frames);
    assert!(
        text.starts_with("event: message_start\n") && text.contains("\"signature\":\"c2lnbmVk\""),
        "{text}"
    );
    assert_eq!(text.matches("event: message_stop").count(), 1);
    let events: Vec<&ReplyEvent> = frames.iter().flatten().flat_map(|frame| &frame.events).collect();
    let [.., ReplyEvent::Usage(usage), ReplyEvent::Finish(FinishReason::Stop)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((usage.input, usage.output), (11, 7));
}

#[tokio::test]
async fn a_whole_answer_keeps_its_bytes() {
    let whole = r#"{"model":"route","max_tokens":5,"messages":[]}"#;
    let (_, reply) = open(Answer::text(["one"]), whole).await;
    let Ok(Reply::Complete(reply)) = reply else { panic!("no answer") };
    assert!(String::from_utf8_lossy(reply.native.as_ref().unwrap()).contains("msg_scripted"));
    assert_eq!(reply.text(), "one");
}

// spec: P-2
#[test_case(Step::json(529, r#"{"type":"error","error":{"type":"overloaded_error"}}"#); "status")]
#[test_case(Step::events("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"); "error event")]
#[test_case(Answer::blank().into(); "blank")]
#[test_case(Answer::text(["x"]).cut_after(0).into(); "cut before content")]
#[tokio::test]
async fn nothing_is_passed_on_before_content(step: Step) {
    assert!(open(step, BODY).await.1.unwrap_err().incomplete.is_none());
}

// spec: P-3
#[test_case(&Answer::text(["one", "two"]).cut_after(1); "cut")]
#[test_case(&Answer::text(["one", "two"]).error_after(1, r#"{"error":{"type":"overloaded_error"}}"#); "error event")]
#[test_case(&Answer::text(["one"]).without(FrameKind::Finish).without(FrameKind::Done); "no finish marker")]
#[tokio::test]
async fn an_incomplete_stream_is_never_passed_off_as_complete(answer: &Answer) {
    let frames = frames(stream(open(answer.clone(), BODY).await.1)).await;
    let failure = frames.last().unwrap().as_ref().unwrap_err();
    assert_eq!(failure.incomplete.as_ref().unwrap().text(), "one");
}

// spec: P-3
#[tokio::test]
async fn a_missing_end_is_added() {
    let answer = Answer::text(["one"]).without(FrameKind::Done);
    let text = passed(&frames(stream(open(answer, BODY).await.1)).await);
    assert!(text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), "{text}");
}

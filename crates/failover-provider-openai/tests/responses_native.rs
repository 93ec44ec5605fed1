//! A caller's own body for the Responses API goes out as it is, and the provider's bytes come back.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_http::TargetConfig;
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Dialect, FinishReason, Native, NativeFrame, ProviderAdapter,
    Reply, ReplyEvent, ReplyStream,
};
use failover_provider_openai::Responses;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, FrameKind, Piece, Responses as Speaks, Step, Upstream};
use failover_types::{ModelRef, ProviderId};
use std::sync::Arc;
use test_case::test_case;

const BODY: &str = r#"{"input":[],"model":"route","store":true,"stream":true,"metadata":{"a":"b"}}"#;

async fn open(step: impl Into<Step>, body: &'static str) -> (Upstream, Result<Reply, AttemptFailure>) {
    let clock = Arc::new(ManualClock::default());
    let dialects: Vec<Box<dyn failover_testkit::upstream::Dialect>> = vec![Box::new(Speaks::default())];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script("m", [step.into()]);
    let config = TargetConfig::new().base_url(upstream.base_url());
    let adapter = Responses::new(ProviderId::new("openai").unwrap(), config).unwrap();
    let model: ModelRef = "openai/m".parse().unwrap();
    let native = Native::new(Dialect::OpenAiResponses, body);
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

#[test_case("stop", &FinishReason::Stop)]
#[test_case("tool_calls", &FinishReason::ToolCalls)]
#[test_case("length", &FinishReason::Length)]
#[tokio::test]
async fn the_callers_words_go_out_and_the_providers_come_back(word: &str, finish: &FinishReason) {
    let mut pieces = vec![Piece::Reasoning("hm".into()), Piece::Text("one".into())];
    if word == "tool_calls" {
        pieces.push(Piece::ToolCall { id: "c".into(), name: "f".into(), arguments: "{}".into() });
    }
    let (upstream, reply) = open(Answer::new(pieces).finish(word), BODY).await;
    let stream = stream(reply);
    assert_eq!(
        (stream.dialect(), stream.head().id.as_deref()),
        (Some(Dialect::OpenAiResponses), Some("resp_scripted"))
    );
    let frames = frames(stream).await;
    assert_eq!(upstream.log().first().unwrap().body, BODY.replace("route", "m"));
    let text = passed(&frames);
    assert!(text.starts_with("event: response.created\n") && text.contains("c2VhbGVk"), "{text}");
    let ends = ["response.completed", "response.incomplete"];
    assert_eq!(ends.iter().map(|end| text.matches(&format!("event: {end}")).count()).sum::<usize>(), 1);
    let events: Vec<&ReplyEvent> = frames.iter().flatten().flat_map(|frame| &frame.events).collect();
    let [.., ReplyEvent::Usage(usage), ReplyEvent::Finish(got)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((usage.input, usage.output, got), (11, 7, finish));
}

#[tokio::test]
async fn a_whole_answer_keeps_its_bytes() {
    let (_, reply) = open(Answer::text(["one"]), r#"{"model":"route","input":"hi"}"#).await;
    let Ok(Reply::Complete(reply)) = reply else { panic!("no answer") };
    assert!(String::from_utf8_lossy(reply.native.as_ref().unwrap()).contains("resp_scripted"));
    assert_eq!(reply.text(), "one");
}

// spec: P-2
#[test_case(Step::json(429, r#"{"error":{"code":"rate_limit_exceeded"}}"#); "status")]
#[test_case(Step::events("data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n"); "failed")]
#[test_case(Answer::blank().into(); "blank")]
#[test_case(Answer::text(["x"]).cut_after(0).into(); "cut before content")]
#[tokio::test]
async fn nothing_is_passed_on_before_content(step: Step) {
    assert!(open(step, BODY).await.1.unwrap_err().incomplete.is_none());
}

// spec: P-3
#[test_case(&Answer::text(["one", "two"]).cut_after(1); "cut")]
#[test_case(&Answer::text(["one", "two"]).error_after(1, r#"{"error":{"code":"server_error"}}"#); "error event")]
#[test_case(&Answer::text(["one"]).without(FrameKind::Finish); "no end")]
#[tokio::test]
async fn an_incomplete_stream_is_never_passed_off_as_complete(answer: &Answer) {
    let frames = frames(stream(open(answer.clone(), BODY).await.1)).await;
    let failure = frames.last().unwrap().as_ref().unwrap_err();
    assert_eq!(failure.incomplete.as_ref().unwrap().text(), "one");
}

//! A caller's own body goes out as it is, and the provider's bytes come back: judged by the same rules.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_provider::{
    AttemptFailure, AttemptLimits, AttemptScope, ChatRequest, Dialect, FinishReason, Json, Limit, Message,
    Native, NativeFrame, Opaque, Origin, Part, ProviderAdapter, Reply, ReplyEvent, ReplyStream, Role,
    ToolCall,
};
use failover_provider_openai::OpenAi;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Act, Answer, FrameKind, Step, Upstream};
use failover_types::{Clock, ModelRef, ProviderId};
use std::sync::Arc;
use std::time::Duration;
use test_case::test_case;

const BODY: &str = r#"{"messages":[{"role":"user","content":"hi"}], "model":"route", "n":1.0,"stream":true}"#;

struct World {
    clock: Arc<ManualClock>,
    upstream: Upstream,
    adapter: OpenAi,
    model: ModelRef,
}

impl World {
    async fn new(provider: &str, step: impl Into<Step>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let upstream = Upstream::start(Arc::<ManualClock>::clone(&clock)).await.unwrap();
        upstream.script("m", [step.into()]);
        let builder = OpenAi::builder(ProviderId::new(provider).unwrap()).base_url(upstream.base_url());
        let model = format!("{provider}/m").parse().unwrap();
        Self { clock, upstream, adapter: builder.build().unwrap(), model }
    }

    async fn open(&self, request: &ChatRequest, limits: AttemptLimits) -> Result<Reply, AttemptFailure> {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        self.adapter.open(request, AttemptScope::new(&self.model, clock).with_limits(limits)).await
    }

    async fn stream(&self) -> ReplyStream {
        match self.open(&request(), AttemptLimits::none()).await {
            Ok(Reply::Stream(stream)) => stream,
            other => panic!("{other:?}"),
        }
    }
}

fn request() -> ChatRequest {
    let neutral = ChatRequest::prompt("hi").with_stream(true);
    neutral.with_native(Native::new(Dialect::OpenAiChat, BODY))
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
    let world = World::new("openai", Answer::text(["one ", "two"])).await;
    let stream = world.stream().await;
    assert_eq!(stream.dialect(), Some(Dialect::OpenAiChat));
    assert_eq!(stream.head().model.as_deref(), Some("m"));
    let frames = frames(stream).await;
    let sent = &world.upstream.log()[0].body;
    let expected =
        BODY.replace("\"route\"", "\"m\"").replacen('{', "{\"stream_options\":{\"include_usage\":true},", 1);
    assert_eq!(*sent, expected, "the model, and the wish for usage, and nothing else");
    let text = passed(&frames);
    assert!(text.contains("\"content\":\"one \"") && text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(!text.contains("prompt_tokens"), "the caller did not ask for usage");
    let events: Vec<&ReplyEvent> = frames.iter().flatten().flat_map(|frame| &frame.events).collect();
    assert!(
        matches!(events.as_slice(), [ReplyEvent::Usage(usage), ReplyEvent::Finish(FinishReason::Stop)] if usage.output == 7)
    );
}

#[tokio::test]
async fn a_whole_answer_keeps_its_bytes() {
    let world = World::new("openai", Answer::text(["one ", "two"])).await;
    let whole = r#"{"model":"route","messages":[]}"#;
    let request = ChatRequest::prompt("hi").with_native(Native::new(Dialect::OpenAiChat, whole));
    let Ok(Reply::Complete(reply)) = world.open(&request, AttemptLimits::none()).await else {
        panic!("no answer")
    };
    assert_eq!(world.upstream.log()[0].body, whole.replace("route", "m"));
    let native = String::from_utf8(reply.native.clone().unwrap().to_vec()).unwrap();
    assert!(native.starts_with('{') && native.contains("chatcmpl-scripted"), "{native}");
    assert_eq!((reply.text().as_str(), reply.usage.unwrap().output), ("one two", 7));
}

#[tokio::test]
async fn what_is_not_at_home_or_does_not_fit_is_mapped() {
    let elsewhere = Origin::new(ProviderId::new("elsewhere").unwrap());
    let proof = Opaque::new(elsewhere, "reasoning_details", Json::parse("[]").unwrap());
    let foreign = Part::Reasoning { text: "hm".into(), proof: Some(proof) };
    let call = Part::ToolCall(ToolCall::new("call_of_another_server", "look", "{}"));
    for (provider, part) in [("openai", foreign), ("mistral", call)] {
        let world = World::new(provider, Answer::text(["x"])).await;
        let mut request = request();
        request.messages.push(Message::new(Role::Assistant, vec![part]));
        let Ok(Reply::Stream(stream)) = world.open(&request, AttemptLimits::none()).await else {
            panic!("no stream")
        };
        assert_eq!(stream.dialect(), None);
        assert!(!world.upstream.log()[0].body.contains("route"));
    }
    // A body of another dialect is none of this adapter's business.
    let world = World::new("openai", Answer::text(["x"])).await;
    let other = ChatRequest::prompt("hi").with_native(Native::new(Dialect::AnthropicMessages, BODY));
    world.open(&other, AttemptLimits::none()).await.unwrap();
    assert!(!world.upstream.log()[0].body.contains("route"));
}

// spec: P-2, P-3
#[test_case(Step::json(429, "{}"); "status")]
#[test_case(Step::json(200, r#"{"error":{"message":"no"}}"#); "error with status 200")]
#[test_case(Step::html(200, "Sign in"); "page")]
#[test_case(Step::events("data: {\"error\":{\"message\":\"busy\"}}\n\n"); "error event")]
#[test_case(Step::events(""); "empty")]
#[test_case(Step::events("data: [DONE]\n\n"); "only the sentinel")]
#[test_case(Step::events(": ping\n\n"); "only comments")]
#[test_case(Answer::blank().into(); "blank")]
#[test_case(Answer::no_choices().into(); "no choices")]
#[test_case(Answer::text(["x"]).cut_after(0).into(); "cut before content")]
#[tokio::test]
async fn nothing_is_passed_on_before_content(step: Step) {
    let world = World::new("openai", step).await;
    let failure = world.open(&request(), AttemptLimits::none()).await.unwrap_err();
    assert!(failure.incomplete.is_none());
}

// spec: P-3
#[test_case(&Answer::text(["one", "two"]).cut_after(1); "cut")]
#[test_case(&Answer::text(["one", "two"]).reset_after(1); "reset")]
#[test_case(&Answer::text(["one", "two"]).error_after(1, r#"{"error":{"message":"died"}}"#); "error event")]
#[test_case(&Answer::text(["one"]).without(FrameKind::Finish); "no finish marker")]
#[test_case(&Answer::text(["one"]).finish("error"); "finish that means failed")]
#[tokio::test]
async fn an_incomplete_stream_is_never_passed_off_as_complete(answer: &Answer) {
    let world = World::new("openai", answer.clone()).await;
    let frames = frames(world.stream().await).await;
    let failure = frames.last().unwrap().as_ref().unwrap_err();
    assert_eq!(failure.incomplete.as_ref().unwrap().text(), "one", "what came is read after all");
    assert!(!passed(&frames).contains("died") && !passed(&frames).contains("finish_reason\":\"error"));
}

// spec: P-3
#[tokio::test]
async fn small_faults_are_mended_on_the_way() {
    let answer = || Answer::text(["one", "two"]);
    let world = World::new("openai", answer().bytes_after(1, "data: {\"choices\":[{\n\n")).await;
    let text = passed(&frames(world.stream().await).await);
    assert!(text.contains("two") && !text.contains("\"choices\":[{\n\n"), "{text}");
    let world = World::new("openai", answer().without(FrameKind::Done)).await;
    let text = passed(&frames(world.stream().await).await);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let world = World::new("openai", answer().bytes_after(1, ": ping\n\n")).await;
    assert!(passed(&frames(world.stream().await).await).contains(": ping\n\n"), "heartbeats pass");
}

// spec: R-16
#[tokio::test]
async fn heartbeats_do_not_feed_the_idle_limit() {
    let second = Duration::from_secs(1);
    let mut answer = Answer::text(["x", "y"]);
    for _ in 0..9 {
        answer = answer.act_after(1, Act::Wait(2 * second)).bytes_after(1, ": ping\n\n");
    }
    let world = World::new("openai", answer).await;
    let limits = AttemptLimits::none().with_idle(6 * second);
    let Ok(Reply::Stream(stream)) = world.open(&request(), limits).await else { panic!("no stream") };
    let mut reading = std::pin::pin!(frames(stream));
    let frames = loop {
        tokio::select! {
            biased;
            frames = &mut reading => break frames,
            () = async { world.clock.until_waiting(2).await; for _ in 0..200 { tokio::task::yield_now().await } } => {
                world.clock.advance_to_next();
            }
        }
    };
    assert_eq!(frames.last().unwrap().as_ref().unwrap_err().limit, Some(Limit::Idle));
}

// The connection of a finished stream serves the next request.
#[tokio::test]
async fn connections_are_used_again_after_a_stream() {
    let world = World::new("openai", Answer::text(["one"])).await;
    for native in [true, false, true] {
        let mut request = request();
        request.native = request.native.filter(|_| native);
        let Ok(Reply::Stream(stream)) = world.open(&request, AttemptLimits::none()).await else {
            panic!("no stream")
        };
        stream.into_reply().await.unwrap();
        // The end of the body may come behind the sentinel.
        tokio::time::timeout(Duration::from_secs(5), async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    }
    let connections: Vec<u64> = world.upstream.log().iter().map(|attempt| attempt.connection).collect();
    assert_eq!(connections, [1, 1, 1]);
}

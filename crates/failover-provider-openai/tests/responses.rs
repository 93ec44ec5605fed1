//! The second adapter: the published suite, verdicts, and what only it does, over real sockets.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_classify::{AsSignal, Classifier};
use failover_http::TargetConfig;
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FinishReason, Message, Part, ProviderAdapter, Reply, Role,
};
use failover_provider_openai::Responses;
use failover_testkit::ManualClock;
use failover_testkit::provider::Subject;
use failover_testkit::upstream::{Answer, Dialect, Piece, Responses as Speaks, Step, Upstream};
use failover_types::FailoverReason::{
    self, Auth, Billing, ContentRefusal, ContextOverflow, EmptyResponse, ModelNotFound, RateLimit,
    ServerError, SessionExpired, Timeout,
};
use failover_types::{CredentialKind, ModelRef, ProfileId, ProviderId, ResolvedCredential, Secret};
use futures_util::StreamExt;
use std::sync::Arc;

fn adapter(base: &str) -> Responses {
    let config = TargetConfig::new().base_url(format!("{base}/v1"));
    Responses::new(ProviderId::new("openai").unwrap(), config).unwrap()
}

// spec: P-2, P-3, P-4, P-5, P-6, P-7, R-16, R-17, R-18, C-23
failover_testkit::provider_conformance!(
    Subject::new(|base| Arc::new(adapter(base))).with_dialect(|| Box::new(Speaks::default()))
);

struct World {
    upstream: Upstream,
    adapter: Responses,
    model: ModelRef,
    clock: Arc<ManualClock>,
}

impl World {
    async fn new(step: impl Into<Step>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let dialects: Vec<Box<dyn Dialect>> = vec![Box::new(Speaks::default())];
        let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
        upstream.script("m", [step.into()]);
        let adapter = adapter(&format!("http://{}", upstream.address()));
        Self { upstream, adapter, model: "openai/m".parse().unwrap(), clock }
    }

    async fn open(&self, request: &ChatRequest, account: &str) -> Result<Reply, AttemptFailure> {
        let profile = ProfileId::new(format!("openai:{account}")).unwrap();
        let key = ResolvedCredential::new(profile, CredentialKind::ApiKey, Secret::new("sk-0123456789"));
        let clock = Arc::<ManualClock>::clone(&self.clock);
        self.adapter.open(request, AttemptScope::new(&self.model, clock).with_credential(&key)).await
    }
}

async fn failure(step: Step, stream: bool) -> AttemptFailure {
    let world = World::new(step).await;
    match world.open(&ChatRequest::prompt("hi").with_stream(stream), "default").await {
        Err(failure) => failure,
        Ok(Reply::Stream(stream)) => match stream.collect::<Vec<_>>().await.pop() {
            Some(Err(failure)) => failure,
            other => panic!("{other:?}"),
        },
        Ok(reply) => panic!("{reply:?}"),
    }
}

fn error(status: u16, code: &str, message: &str) -> Step {
    let body = format!(
        r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":null,"code":"{code}"}}}}"#
    );
    Step::json(status, body)
}

fn events(data: &[&str]) -> Step {
    let start = r#"{"type":"response.created","response":{"id":"r","status":"in_progress","error":null}}"#;
    let all: Vec<String> = [start].iter().chain(data).map(|data| format!("data: {data}\n\n")).collect();
    Step::events(all.concat())
}

fn failed(code: &str, message: &str) -> Step {
    let error = format!(r#"{{"code":"{code}","message":"{message}"}}"#);
    events(&[&format!(
        r#"{{"type":"response.failed","response":{{"id":"r","status":"failed","error":{error}}}}}"#
    )])
}

fn error_event(code: &str, message: &str) -> Step {
    events(&[&format!(r#"{{"type":"error","code":"{code}","message":"{message}","param":null}}"#)])
}

// spec: P-4, C-3, C-8, C-13, C-14, C-15, C-18
fn cases() -> Vec<(&'static str, Step, FailoverReason)> {
    vec![
        (
            "session gone",
            error(400, "previous_response_not_found", "Previous response with id 'resp_1' not found."),
            SessionExpired,
        ),
        (
            "reasoning of another",
            error(400, "invalid_encrypted_content", "The encrypted content gAAA could not be verified."),
            SessionExpired,
        ),
        (
            "item gone",
            error(
                404,
                "",
                "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
            ),
            SessionExpired,
        ),
        ("key", error(401, "invalid_api_key", "Incorrect API key provided."), Auth),
        (
            "model",
            error(404, "model_not_found", "The model `m` does not exist or you do not have access to it."),
            ModelNotFound,
        ),
        (
            "too long",
            error(400, "context_length_exceeded", "Your input exceeds the context window of this model."),
            ContextOverflow,
        ),
        (
            "quota",
            error(
                429,
                "insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            Billing,
        ),
        ("failed", failed("server_error", "An error occurred while processing your request."), ServerError),
        (
            "failed by a limit",
            failed(
                "rate_limit_exceeded",
                "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000. Please try again in 6s.",
            ),
            RateLimit,
        ),
        (
            "failed by length",
            failed("context_length_exceeded", "Your input exceeds the context window of this model."),
            ContextOverflow,
        ),
        ("limit in a stream", error_event("rate_limit_exceeded", "Rate limit reached."), RateLimit),
        ("error in a stream", error_event("server_error", "The server had an error."), ServerError),
        (
            "error after content",
            Answer::text(["one", "two"])
                .error_after(1, r#"{"code":"server_error","message":"The server had an error."}"#)
                .into(),
            ServerError,
        ),
        ("cut after content", Answer::text(["one", "two"]).cut_after(1).into(), Timeout),
        ("page", Step::html(502, "Bad Gateway"), ServerError),
        ("refused", Answer::blank().finish("content_filter").into(), ContentRefusal),
        ("blank", Answer::blank().into(), EmptyResponse),
        ("thought to the end", Answer::blank().finish("length").into(), EmptyResponse),
    ]
}

#[tokio::test]
async fn faults_reach_their_verdict() {
    let classifier = Classifier::standard().unwrap();
    let mut wrong = Vec::new();
    for (name, step, expected) in cases() {
        for stream in [true, false] {
            // What happens between two pieces happens in a stream.
            if !stream && matches!(&step, Step::Answer(answer) if !answer.acts.is_empty()) {
                continue;
            }
            let failure = failure(step.clone(), stream).await;
            let verdict = failure.with_signal(|signal| classifier.classify(signal));
            if verdict.reason != expected {
                wrong.push(format!(
                    "{name}, stream {stream}: {:?} by {}",
                    verdict.reason, verdict.evidence.rule
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

// spec: P-5
#[tokio::test]
async fn reasoning_goes_back_to_its_account_and_to_no_other() {
    let answer = Answer::new(vec![
        Piece::Reasoning("hm".into()),
        Piece::Text("I look.".into()),
        Piece::ToolCall { id: "call_1".into(), name: "look".into(), arguments: "{\"at\":1}".into() },
    ]);
    for stream in [false, true] {
        let world = World::new(answer.clone()).await;
        let request = ChatRequest::prompt("hi").with_stream(stream);
        let reply = match world.open(&request, "default").await.unwrap() {
            Reply::Complete(reply) => reply,
            Reply::Stream(stream) => stream.into_reply().await.unwrap(),
        };
        assert_eq!((&reply.finish, reply.text().as_str()), (&FinishReason::ToolCalls, "I look."));
        let Some(Part::Reasoning { text, proof: Some(_) }) = reply.parts.first() else {
            panic!("{:?}", reply.parts)
        };
        assert_eq!(text, "hm");
        let mut next = ChatRequest::prompt("hi");
        next.messages.push(Message::new(Role::Assistant, reply.parts));
        for (account, kinds) in [
            ("default", vec!["message", "reasoning", "message", "function_call"]),
            ("other", vec!["message", "message", "function_call"]),
        ] {
            let Ok(Reply::Complete(reply)) = world.open(&next, account).await else { panic!("no answer") };
            assert_eq!(reply.head.losses.is_empty(), account == "default");
            let sent: serde_json::Value =
                serde_json::from_str(&world.upstream.log().last().unwrap().body).unwrap();
            let sent = sent["input"].as_array().unwrap().iter();
            let sent: Vec<_> = sent.map(|item| item["type"].as_str().unwrap_or("message")).collect();
            assert_eq!(sent, kinds, "{account}");
        }
    }
}

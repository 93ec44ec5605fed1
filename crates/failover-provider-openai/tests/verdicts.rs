//! From a real fault on a socket to the classifier's verdict: nothing that decides is lost on the way.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_classify::{AsSignal, Classifier};
use failover_provider::{AttemptScope, ChatRequest, ProviderAdapter, Reply};
use failover_provider_openai::OpenAi;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, Respond, Step, Upstream};
use failover_types::FailoverReason::{
    self, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Overloaded,
};
use failover_types::FailoverReason::{RateLimit, ServerError, Timeout};
use failover_types::{ModelRef, ProviderId};
use futures_util::StreamExt;
use std::sync::Arc;
use test_case::test_case;

const QUOTA: &str = r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#;
const LONG: &str = r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
const LIMIT: &str = r#"{"error":{"message":"Rate limit reached for m. Please try again in 1.5s.","type":"requests","code":"rate_limit_exceeded"}}"#;
const BUSY: &str = r#"{"error":{"message":"The server is overloaded","type":"overloaded_error"}}"#;

async fn verdict(step: Step, stream: bool) -> (FailoverReason, bool) {
    let clock = Arc::new(ManualClock::default());
    let upstream = Upstream::start(Arc::<ManualClock>::clone(&clock)).await.unwrap();
    upstream.script("m", [step]);
    let adapter =
        OpenAi::builder(ProviderId::new("openai").unwrap()).base_url(upstream.base_url()).build().unwrap();
    let model: ModelRef = "openai/m".parse().unwrap();
    let request = ChatRequest::prompt("hi").with_stream(stream);
    let failure = match adapter.open(&request, AttemptScope::new(&model, clock)).await {
        Err(failure) => failure,
        Ok(Reply::Stream(stream)) => match stream.collect::<Vec<_>>().await.pop() {
            Some(Err(failure)) => failure,
            other => panic!("{other:?}"),
        },
        Ok(reply) => panic!("{reply:?}"),
    };
    let verdict = failure.with_signal(|signal| Classifier::standard().unwrap().classify(signal));
    (verdict.reason, verdict.hint.is_some())
}

// spec: P-4, C-3, C-8, C-18
#[test_case(Step::json(429, QUOTA), Billing; "quota behind 429")]
#[test_case(Step::json(200, QUOTA), Billing; "quota behind 200")]
#[test_case(Step::json(400, LONG), ContextOverflow; "too long")]
#[test_case(Step::json(503, BUSY), Overloaded; "overloaded")]
#[test_case(Step::events(format!("data: {BUSY}\n\n")), Overloaded; "overloaded in a stream")]
#[test_case(Answer::text(["one", "two"]).error_after(1, BUSY).into(), Overloaded; "overloaded after content")]
#[test_case(Step::html(502, "Bad Gateway"), ServerError; "page")]
#[test_case(Step::reset(), Timeout; "reset")]
#[test_case(Answer::text(["one", "two"]).cut_after(1).into(), Timeout; "cut after content")]
#[test_case(Answer::blank().finish("error").into(), Timeout; "finish reason error")]
#[test_case(Answer::blank().finish("content_filter").into(), ContentRefusal; "filtered")]
#[test_case(Answer::no_choices().into(), EmptyResponse; "no choices")]
#[test_case(Answer::blank().into(), EmptyResponse; "blank")]
#[test_case(Step::events(""), EmptyResponse; "empty stream")]
#[tokio::test]
async fn faults_reach_their_verdict(step: Step, expected: FailoverReason) {
    assert_eq!(verdict(step, true).await.0, expected);
}

// spec: C-20
#[tokio::test]
async fn hints_arrive() {
    assert_eq!(verdict(Step::json(429, LIMIT), true).await, (RateLimit, true), "from the text");
    let header = Respond::new(429).header("retry-after", "7").body("{}");
    assert_eq!(verdict(header.into(), false).await, (RateLimit, true), "from a header");
}

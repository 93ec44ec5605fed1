//! From a real fault on a socket to the classifier's verdict: nothing that decides is lost on the way.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_classify::{AsSignal, Classifier};
use failover_http::TargetConfig;
use failover_provider::{AttemptScope, ChatRequest, ProviderAdapter, Reply};
use failover_provider_anthropic::Anthropic;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, Dialect, Messages, Respond, Step, Upstream};
use failover_types::FailoverReason::{
    self, Auth, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Overloaded, RateLimit, ServerError,
    Timeout,
};
use failover_types::{ModelRef, ProviderId};
use futures_util::StreamExt;
use std::sync::Arc;
use test_case::test_case;

const CREDIT: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#;
const LONG: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
const KEY: &str = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
const BUSY: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
const LIMIT: &str = r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 50 requests per minute."}}"#;

async fn verdict(step: Step, stream: bool) -> (FailoverReason, bool) {
    let clock = Arc::new(ManualClock::default());
    let dialects: Vec<Box<dyn Dialect>> = vec![Box::new(Messages::default())];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script("m", [step]);
    let config = TargetConfig::new().base_url(upstream.base_url());
    let adapter = Anthropic::new(ProviderId::new("anthropic").unwrap(), config).unwrap();
    let model: ModelRef = "anthropic/m".parse().unwrap();
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
#[test_case(Step::json(400, CREDIT), Billing; "credit behind 400")]
#[test_case(Step::json(200, CREDIT), Billing; "credit behind 200")]
#[test_case(Step::json(400, LONG), ContextOverflow; "too long")]
#[test_case(Step::json(401, KEY), Auth; "key")]
#[test_case(Step::json(529, BUSY), Overloaded; "overloaded")]
#[test_case(Step::events(format!("event: error\ndata: {BUSY}\n\n")), Overloaded; "overloaded in a stream")]
#[test_case(Answer::text(["one", "two"]).error_after(1, BUSY).into(), Overloaded; "overloaded after content")]
#[test_case(Step::html(502, "Bad Gateway"), ServerError; "page")]
#[test_case(Step::reset(), Timeout; "reset")]
#[test_case(Answer::text(["one", "two"]).cut_after(1).into(), Timeout; "cut after content")]
#[test_case(Answer::blank().finish("content_filter").into(), ContentRefusal; "refused")]
#[test_case(Answer::no_choices().into(), EmptyResponse; "no stop reason, no content")]
#[test_case(Answer::blank().into(), EmptyResponse; "blank")]
#[test_case(Step::events(""), EmptyResponse; "empty stream")]
#[tokio::test]
async fn faults_reach_their_verdict(step: Step, expected: FailoverReason) {
    assert_eq!(verdict(step, true).await.0, expected);
}

// spec: C-20
#[tokio::test]
async fn hints_arrive() {
    let header = Respond::new(429).header("retry-after", "7").body(LIMIT);
    assert_eq!(verdict(header.into(), false).await, (RateLimit, true));
}

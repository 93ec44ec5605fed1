//! Farewells of HTTP/2, before and inside an answer: typed failures, and what of them may be repeated at once.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use bytes::Bytes;
use failover_classify::{AsSignal, Classifier};
use failover_http::{HyperTransport, TransportConfig};
use failover_provider::{AttemptFailure, AttemptScope, ChatRequest, Incomplete, ProviderAdapter, Reply};
use failover_provider_openai::OpenAi;
use failover_runner::plan::{Candidate, Failed, PolicyConfig, RunPolicy};
use failover_runner::{Runner, SystemClock};
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Http2Step, Http2Upstream};
use failover_types::{FailoverReason, ModelRef, ProviderId, Timestamp};
use std::sync::Arc;
use test_case::test_case;

const HEARTBEAT: Bytes = Bytes::from_static(b": ping\n\n");
const CONTENT: Bytes =
    Bytes::from_static(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n");
const WHOLE: Bytes = Bytes::from_static(
    b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n\
      data: [DONE]\n\n",
);

fn adapter(upstream: &Http2Upstream) -> OpenAi {
    let config = TransportConfig::new().roots_pem(upstream.ca_pem().as_bytes()).unwrap();
    let transport = HyperTransport::with(config).unwrap();
    let base = format!("{}/v1", upstream.base_url());
    let id = ProviderId::new("openai").unwrap();
    OpenAi::builder(id).base_url(base).transport(Arc::new(transport)).build().unwrap()
}

/// How an attempt ends whose first request meets this step, and how many requests there were.
async fn failure(step: Http2Step) -> (AttemptFailure, usize) {
    let upstream = Http2Upstream::start([step]).await.unwrap();
    let model: ModelRef = "openai/m".parse().unwrap();
    let scope = AttemptScope::new(&model, Arc::new(ManualClock::default()));
    let request = ChatRequest::prompt("hi").with_stream(true);
    let failure = match adapter(&upstream).open(&request, scope).await {
        Err(failure) => failure,
        Ok(Reply::Stream(stream)) => stream.into_reply().await.unwrap_err(),
        Ok(Reply::Complete(reply)) => panic!("{reply:?}"),
    };
    (failure, upstream.counts().1)
}

// spec: P-3, P-4, R-15, C-8
#[test_case(Http2Step::Refuse, true, None; "the stream is refused")]
#[test_case(Http2Step::GoAwayBefore, true, None; "goaway before the head")]
#[test_case(Http2Step::GoAwayInside(HEARTBEAT), false, None; "goaway before content")]
#[test_case(Http2Step::ResetInside(HEARTBEAT), false, None; "reset before content")]
#[test_case(Http2Step::GoAwayInside(CONTENT), false, Some("hello"); "goaway inside the answer")]
#[test_case(Http2Step::ResetInside(CONTENT), false, Some("hello"); "reset inside the answer")]
#[tokio::test]
async fn a_farewell_is_a_typed_failure(step: Http2Step, repeatable: bool, received: Option<&str>) {
    let (failure, requests) = failure(step).await;
    assert_eq!(requests, 1, "one attempt");
    assert_eq!(failure.incomplete.as_ref().map(Incomplete::text).as_deref(), received);
    // Whoever had begun to answer has the request, and may have acted on it.
    assert_eq!(failure.status, (!repeatable).then_some(200));
    let classifier = Classifier::standard().unwrap();
    failure.with_signal(|signal| {
        let verdict = classifier.classify(signal);
        assert_eq!(verdict.reason, FailoverReason::Timeout, "{verdict:?}");
        assert_eq!(Failed::from_verdict(signal, &verdict, Timestamp::from_millis(0)).repeatable, repeatable);
    });
}

// spec: R-15
#[test_case(Http2Step::Refuse; "the stream is refused")]
#[test_case(Http2Step::GoAwayBefore; "goaway before the head")]
#[tokio::test]
async fn what_was_not_looked_at_is_sent_again(step: Http2Step) {
    let upstream = Http2Upstream::start([step, Http2Step::Answer(WHOLE)]).await.unwrap();
    let adapter = adapter(&upstream);
    let mut config = PolicyConfig::default();
    config.retry_in_place.jitter_ms = 0;
    let runner =
        Runner::builder(Classifier::standard().unwrap()).policy(RunPolicy::new(config).unwrap()).build();
    let chain = vec![Candidate::new("openai/m".parse().unwrap())];
    let request = ChatRequest::prompt("hi").with_stream(true);
    let (adapter, request) = (&adapter, &request);
    let answer = runner.run(chain, |attempt| async move {
        let scope = AttemptScope::new(&attempt.model, Arc::new(SystemClock::new()));
        adapter.open(request, scope).await
    });
    let Reply::Stream(stream) = answer.await.unwrap().value else { panic!("a stream was asked for") };
    assert_eq!(stream.into_reply().await.unwrap().text(), "hello");
    assert_eq!(upstream.counts().1, 2);
}

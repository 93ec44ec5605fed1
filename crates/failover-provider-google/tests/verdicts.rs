//! From a real fault on a socket to the classifier's verdict: nothing that decides is lost on the way.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_classify::{AsSignal, Classifier};
use failover_http::TargetConfig;
use failover_provider::{AttemptFailure, AttemptScope, ChatRequest, ProviderAdapter, Reply};
use failover_provider_google::Google;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, Dialect, Gemini, Step, Upstream};
use failover_types::FailoverReason::{
    self, Auth, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Format, ModelNotFound, Overloaded,
    RateLimit, ServerError, SessionExpired, Timeout,
};
use failover_types::{ModelRef, ProviderId};
use futures_util::StreamExt;
use std::sync::Arc;

fn error(code: u16, status: &str, message: &str) -> Step {
    Step::json(code, format!(r#"{{"error":{{"code":{code},"message":"{message}","status":"{status}"}}}}"#))
}

fn event(data: &str) -> Step {
    Step::events(format!("data: {data}\n\n"))
}

const QUOTA: &str = r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}"#;
const BUSY: &str = r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#;

async fn failure(step: Step, stream: bool) -> AttemptFailure {
    let clock = Arc::new(ManualClock::default());
    let dialects: Vec<Box<dyn Dialect>> = vec![Box::new(Gemini::default())];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script("m", [step]);
    let config = TargetConfig::new().base_url(upstream.base_url());
    let adapter = Google::new(ProviderId::new("google").unwrap(), config).unwrap();
    let model: ModelRef = "google/m".parse().unwrap();
    let request = ChatRequest::prompt("hi").with_stream(stream);
    match adapter.open(&request, AttemptScope::new(&model, clock)).await {
        Err(failure) => failure,
        Ok(Reply::Stream(stream)) => match stream.collect::<Vec<_>>().await.pop() {
            Some(Err(failure)) => failure,
            other => panic!("{other:?}"),
        },
        Ok(reply) => panic!("{reply:?}"),
    }
}

// spec: P-4, C-3, C-8, C-14, C-15, C-18
fn cases() -> Vec<(&'static str, Step, FailoverReason)> {
    vec![
        (
            "key behind 400",
            error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            Auth,
        ),
        ("no key", error(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers."), Auth),
        (
            "too long",
            error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
            ),
            ContextOverflow,
        ),
        (
            "order of turns",
            error(
                400,
                "INVALID_ARGUMENT",
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            ),
            Format,
        ),
        (
            "signature missing",
            error(
                400,
                "INVALID_ARGUMENT",
                "Function call is missing a thought_signature in functionCall parts.",
            ),
            Format,
        ),
        (
            "model",
            error(
                404,
                "NOT_FOUND",
                "models/m is not found for API version v1beta, or is not supported for generateContent.",
            ),
            ModelNotFound,
        ),
        (
            "cache gone",
            error(403, "PERMISSION_DENIED", "CachedContent not found (or permission denied)"),
            SessionExpired,
        ),
        ("internal", error(500, "INTERNAL", "An internal error has occurred."), ServerError),
        (
            "deadline",
            error(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
            Timeout,
        ),
        ("prepaid", error(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), Billing),
        ("quota with its wait", Step::json(429, QUOTA), RateLimit),
        ("overloaded", Step::json(503, BUSY), Overloaded),
        ("overloaded in a list", Step::json(503, format!("[{BUSY}]")), Overloaded),
        ("overloaded in a stream", event(BUSY), Overloaded),
        ("overloaded after content", Answer::text(["one", "two"]).error_after(1, BUSY).into(), Overloaded),
        ("page", Step::html(502, "Bad Gateway"), ServerError),
        ("cut after content", Answer::text(["one", "two"]).cut_after(1).into(), Timeout),
        ("unsafe answer", Answer::blank().finish("SAFETY").into(), ContentRefusal),
        ("recitation", Answer::blank().finish("RECITATION").into(), ContentRefusal),
        ("prohibited", Answer::blank().finish("PROHIBITED_CONTENT").into(), ContentRefusal),
        ("unsafe prompt", event(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#), ContentRefusal),
        (
            "prohibited prompt",
            event(
                r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":5}}"#,
            ),
            ContentRefusal,
        ),
        (
            "blocked for another reason",
            event(r#"{"promptFeedback":{"blockReason":"OTHER"}}"#),
            ContentRefusal,
        ),
        ("malformed call", Answer::blank().finish("MALFORMED_FUNCTION_CALL").into(), EmptyResponse),
        ("unexpected call", Answer::blank().finish("UNEXPECTED_TOOL_CALL").into(), EmptyResponse),
        ("too many calls", Answer::blank().finish("TOO_MANY_TOOL_CALLS").into(), EmptyResponse),
        ("malformed response", Answer::blank().finish("MALFORMED_RESPONSE").into(), Timeout),
        (
            "signature missing in the replay",
            Answer::blank().finish("MISSING_THOUGHT_SIGNATURE").into(),
            Format,
        ),
        ("no candidates", Answer::no_choices().into(), EmptyResponse),
        ("blank", Answer::blank().into(), EmptyResponse),
        ("thought to the end", Answer::blank().finish("MAX_TOKENS").into(), EmptyResponse),
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

// spec: C-20
#[tokio::test]
async fn the_wait_of_a_quota_arrives() {
    let failure = failure(Step::json(429, QUOTA), true).await;
    let verdict = failure.with_signal(|signal| Classifier::standard().unwrap().classify(signal));
    let hint = verdict.hint.unwrap();
    assert!(format!("{hint:?}").contains("34"), "{hint:?}");
}

//! From a real fault on a socket to the classifier's verdict: nothing that decides is lost on the way.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_classify::{AsSignal, Classifier};
use failover_http::TargetConfig;
use failover_provider::{AttemptFailure, AttemptScope, ChatRequest, ProviderAdapter, Reply};
use failover_provider_bedrock::Bedrock;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, Converse, Dialect, Respond, Step, Upstream};
use failover_types::FailoverReason::{
    self, Auth, ContentRefusal, ContextOverflow, EmptyResponse, Format, ModelNotFound, Overloaded, RateLimit,
    ServerError, Timeout,
};
use failover_types::{ModelRef, ProviderId};
use futures_util::StreamExt;
use std::sync::Arc;

/// A refusal as the API sends it: its type stands in a header, and the body has nothing but the words.
fn error(status: u16, kind: &str, message: &str) -> Step {
    let kind = format!("{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/");
    Respond::new(status)
        .header("content-type", "application/json")
        .header("x-amzn-errortype", &kind)
        .body(format!(r#"{{"message":"{message}"}}"#))
        .into()
}

fn exception(kind: &str, message: &str, after: usize) -> Step {
    let error = format!(r#"{{"__type":"{kind}","message":"{message}"}}"#);
    Answer::text(["one", "two"]).error_after(after, &error).into()
}

async fn failure(step: Step, stream: bool) -> AttemptFailure {
    let clock = Arc::new(ManualClock::default());
    let dialects: Vec<Box<dyn Dialect>> = vec![Box::new(Converse::default())];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script("m", [step]);
    let config = TargetConfig::new().base_url(format!("http://{}", upstream.address()));
    let adapter = Bedrock::new(ProviderId::new("amazon-bedrock").unwrap(), config).unwrap();
    let model: ModelRef = "amazon-bedrock/m".parse().unwrap();
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

type Case = (&'static str, Step, FailoverReason);

/// Refusals: name, status, the API's type, its words.
const REFUSED: &[(&str, u16, &str, &str, FailoverReason)] = &[
    (
        "throttled",
        429,
        "ThrottlingException",
        "Too many requests, please wait before trying again.",
        RateLimit,
    ),
    ("tokens", 429, "ThrottlingException", "Too many tokens, please wait before trying again.", RateLimit),
    (
        "quota",
        400,
        "ServiceQuotaExceededException",
        "Your request exceeds the service quota for your account.",
        RateLimit,
    ),
    (
        "not ready",
        429,
        "ModelNotReadyException",
        "The model is not ready to serve inference requests.",
        Overloaded,
    ),
    (
        "unavailable",
        503,
        "ServiceUnavailableException",
        "Bedrock is unable to process your request.",
        ServerError,
    ),
    ("internal", 500, "InternalServerException", UNEXPECTED, ServerError),
    ("model error", 424, "ModelErrorException", UNEXPECTED, ServerError),
    (
        "model timeout",
        408,
        "ModelTimeoutException",
        "Model has timed out in processing the request.",
        Timeout,
    ),
    (
        "signature",
        403,
        "InvalidSignatureException",
        "The request signature we calculated does not match the signature you provided.",
        Auth,
    ),
    (
        "expired token",
        403,
        "ExpiredTokenException",
        "The security token included in the request is expired",
        Auth,
    ),
    (
        "unknown token",
        403,
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
        Auth,
    ),
    (
        "no access to the model",
        403,
        "AccessDeniedException",
        "You don't have access to the model with the specified model ID.",
        ModelNotFound,
    ),
    ("wrong model", 400, "ValidationException", "The provided model identifier is invalid.", ModelNotFound),
    (
        "on demand",
        400,
        "ValidationException",
        "Invocation of model ID m with on-demand throughput isn't supported. Retry your request with the ID or ARN of an inference profile that contains this model.",
        ModelNotFound,
    ),
    ("no tools", 400, "ValidationException", "This model doesn't support tool use.", ModelNotFound),
    ("too long", 400, "ValidationException", "Input is too long for requested model.", ContextOverflow),
    (
        "order of turns",
        400,
        "ValidationException",
        "A conversation must alternate between user and assistant roles.",
        Format,
    ),
];

/// Exceptions in a stream, after so many pieces of content.
const EXCEPTIONS: &[(&str, &str, &str, usize, FailoverReason)] = &[
    (
        "throttled in the stream",
        "ThrottlingException",
        "Too many tokens, please wait before trying again.",
        0,
        RateLimit,
    ),
    (
        "throttled after content",
        "ThrottlingException",
        "Too many tokens, please wait before trying again.",
        1,
        RateLimit,
    ),
    (
        "unavailable after content",
        "ServiceUnavailableException",
        "Bedrock is unable to process your request.",
        1,
        ServerError,
    ),
    ("internal after content", "InternalServerException", UNEXPECTED, 1, ServerError),
    ("model stream error", "ModelStreamErrorException", UNEXPECTED, 1, ServerError),
    (
        "too long in the stream",
        "ValidationException",
        "Input is too long for requested model.",
        0,
        ContextOverflow,
    ),
];

const UNEXPECTED: &str =
    "The system encountered an unexpected error during processing. Try again your request.";

// spec: P-4, C-3, C-8, C-13, C-14, C-15, C-18
fn cases() -> Vec<Case> {
    let refused = REFUSED
        .iter()
        .map(|(name, status, kind, message, reason)| (*name, error(*status, kind, message), *reason));
    let exceptions = EXCEPTIONS
        .iter()
        .map(|(name, kind, message, after, reason)| (*name, exception(kind, message, *after), *reason));
    let ended = |word: &str| Answer::blank().finish(word).into();
    let others = [
        ("cut after content", Answer::text(["one", "two"]).cut_after(1).into(), Timeout),
        ("page", Step::html(502, "Bad Gateway"), ServerError),
        ("guardrail", ended("guardrail_intervened"), ContentRefusal),
        ("filtered", ended("content_filter"), ContentRefusal),
        ("malformed call", ended("malformed_tool_use"), EmptyResponse),
        ("malformed output", ended("malformed_model_output"), EmptyResponse),
        ("blank", Answer::blank().into(), EmptyResponse),
        ("no reason, no content", Answer::no_choices().into(), EmptyResponse),
    ];
    refused.chain(exceptions).chain(others).collect()
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

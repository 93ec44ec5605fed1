//! async-openai.

use crate::support::{below_http, broken_streams, refusals, replay_cases, told, waits_and_junk};
use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::ReqwestService;
use async_openai::types::chat::{ChatCompletionRequestUserMessage, CreateChatCompletionRequest};
use failover_clients::ClientError;
use failover_testkit::corpus::Case;
use failover_types::FailoverReason;
use futures_util::StreamExt;
use serde_json::Value;
use std::time::Duration;

/// Without the retries that it makes by itself.
fn client(base: &str, patience: Duration) -> Client<OpenAIConfig> {
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).timeout(patience).build().unwrap();
    let config = OpenAIConfig::new().with_api_base(base).with_api_key("k");
    Client::with_config(config).with_http_service(ReqwestService::new(http))
}

fn request(stream: bool) -> CreateChatCompletionRequest {
    let mut request = CreateChatCompletionRequest { model: "m".into(), ..Default::default() };
    request.messages.push(ChatCompletionRequestUserMessage::from("hello").into());
    request.stream = stream.then_some(true);
    request
}

async fn ask(base: &str, patience: Duration) -> ClientError<OpenAIError> {
    client(base, patience).chat().create(request(false)).await.expect_err("every script is a failure").into()
}

/// The first error of a streamed answer.
async fn ask_streamed(base: &str, patience: Duration) -> ClientError<OpenAIError> {
    let mut stream = match client(base, patience).chat().create_stream(request(true)).await {
        Ok(stream) => stream,
        Err(error) => return error.into(),
    };
    loop {
        if let Err(error) = stream.next().await.expect("every script is a failure") {
            return error.into();
        }
    }
}

/// Whether async-openai keeps what an answer says: it has OpenAI's shape, or it is a crash.
fn kept(case: &Case) -> bool {
    let body: Value = serde_json::from_str(&case.body).unwrap_or_default();
    let field = |name: &str| body.get("error").and_then(|error| error.get(name)).unwrap_or(&Value::Null);
    let text = |name: &str| field(name).is_null() || field(name).is_string();
    let shaped = field("message").is_string() && ["type", "param", "code"].into_iter().all(text);
    shaped || case.status.is_some_and(|status| status >= 500)
}

// spec: P-7
#[tokio::test]
async fn a_refusal_in_the_shape_of_openai_keeps_its_verdict() {
    let mut cases = refusals();
    cases.retain(kept);
    assert!(cases.len() > 250, "{} cases", cases.len());
    assert_eq!(replay_cases(&cases, ask, false).await, [""; 0]);
}

// spec: P-7
#[tokio::test]
async fn of_another_shape_the_body_is_kept_and_the_status_is_lost() {
    let mut cases = refusals();
    cases.retain(|case| !kept(case));
    let other = replay_cases(&cases, ask, false).await;
    // A text that says enough by itself.
    assert!(!other.is_empty() && other.len() < cases.len() / 3, "{} of {}", other.len(), cases.len());
}

// spec: P-7, C-8
#[tokio::test]
async fn faults_below_http_are_told_apart() {
    below_http(ask).await;
}

// spec: P-7, C-20
#[tokio::test]
async fn the_wait_is_lost_and_broken_json_is_a_failure() {
    let (busy, junk) = waits_and_junk(ask).await;
    assert_eq!(told(&busy), (FailoverReason::RateLimit, None), "it keeps no headers");
    assert_eq!(told(&junk).0, FailoverReason::Timeout);
}

// spec: P-7, C-8
#[tokio::test]
async fn a_stream_that_breaks_or_complains_is_told() {
    broken_streams(ask_streamed).await;
}

//! rig.

use crate::support::{below_http, broken_streams, replay, told, waits_and_junk};
use failover_clients::ClientError;
use failover_types::FailoverReason;
use futures_util::StreamExt;
use rig_core::completion::CompletionRequest;
use rig_core::error::ProviderError;
use rig_core::providers::openai::{OpenAI, OpenAIConfig, Route};
use std::time::Duration;

fn client(base: &str, patience: Duration) -> OpenAI {
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).timeout(patience).build().unwrap();
    let config = OpenAIConfig::new("k").with_base_url(base).with_route(Route::Chat);
    config.connect(rig_reqwest::ReqwestClient::from(http))
}

async fn ask(base: &str, patience: Duration) -> ClientError<ProviderError> {
    let answer = client(base, patience).completion("m").call(CompletionRequest::new("hello")).await;
    answer.map(drop).expect_err("every script is a failure").into()
}

/// The first error of a streamed answer.
async fn ask_streamed(base: &str, patience: Duration) -> ClientError<ProviderError> {
    let mut stream = match client(base, patience).completion("m").stream(CompletionRequest::new("hello")) {
        Ok(stream) => stream,
        Err(error) => return error.into(),
    };
    loop {
        if let Err(error) = stream.next().await.expect("every script is a failure") {
            return error.into();
        }
    }
}

// spec: P-7
#[tokio::test]
async fn every_refusal_of_the_corpus_keeps_its_verdict() {
    assert_eq!(replay(ask).await, [""; 0]);
}

// spec: P-7
#[tokio::test]
async fn every_refusal_of_the_corpus_keeps_its_verdict_when_a_stream_was_asked_for() {
    assert_eq!(replay(ask_streamed).await, [""; 0]);
}

// spec: P-7, C-8
#[tokio::test]
async fn faults_below_http_are_told_apart() {
    below_http(ask).await;
}

// spec: P-7, C-20
#[tokio::test]
async fn the_wait_is_kept_and_broken_json_is_a_failure() {
    let (busy, junk) = waits_and_junk(ask).await;
    assert_eq!(told(&busy), (FailoverReason::RateLimit, Some(Duration::from_secs(7))));
    assert_eq!(told(&junk).0, FailoverReason::Timeout);
}

// spec: P-7, C-8
#[tokio::test]
async fn a_stream_that_breaks_or_complains_is_told() {
    broken_streams(ask_streamed).await;
}

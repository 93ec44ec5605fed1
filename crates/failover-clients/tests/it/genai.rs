//! genai.

use crate::support::{below_http, broken_streams, replay, told, waits_and_junk};
use failover_clients::ClientError;
use failover_types::FailoverReason;
use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::ChatRequest;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use std::time::Duration;

fn client(base: &str, patience: Duration) -> Client {
    let base = format!("{base}/");
    let target = move |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
        let model = ModelIden::new(AdapterKind::OpenAI, target.model.model_name);
        Ok(ServiceTarget {
            endpoint: Endpoint::from_owned(base.clone()),
            auth: AuthData::from_single("k"),
            model,
        })
    };
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).timeout(patience).build().unwrap();
    Client::builder().with_reqwest(http).with_service_target_resolver_fn(target).build().unwrap()
}

async fn ask(base: &str, patience: Duration) -> ClientError<genai::Error> {
    let answer = client(base, patience).exec_chat("m", ChatRequest::from_user("hello"), None).await;
    answer.expect_err("every script is a failure").into()
}

/// The first error of a streamed answer.
async fn ask_streamed(base: &str, patience: Duration) -> ClientError<genai::Error> {
    let answer = client(base, patience).exec_chat_stream("m", ChatRequest::from_user("hello"), None).await;
    let mut stream = match answer {
        Ok(answer) => answer.stream,
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

// spec: P-7
#[tokio::test]
async fn what_genai_finds_out_by_itself_is_told_in_words() {
    let error =
        Client::new().unwrap().exec_chat("gpt-5-nano", ChatRequest::new(Vec::new()), None).await.unwrap_err();
    let error = ClientError(error);
    assert_eq!(told(&error).0, FailoverReason::Auth, "{error}");
}

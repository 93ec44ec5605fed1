//! reqwest.

use crate::support::{LONG, below_http, replay, told, upstream, waits_and_junk};
use failover_classify::AsSignal;
use failover_clients::ClientError;
use failover_clients::reqwest::{CallError, check};
use failover_testkit::upstream::{On, Step};
use failover_types::FailoverReason;
use reqwest::Client;
use serde_json::{Value, json};
use std::time::Duration;

fn client(patience: Duration) -> Client {
    Client::builder().retry(reqwest::retry::never()).timeout(patience).build().unwrap()
}

async fn call(base: &str, patience: Duration) -> Result<Value, CallError> {
    let request = client(patience).post(format!("{base}/chat/completions")).json(&json!({"model": "m"}));
    Ok(check(request.send().await?).await?.json().await?)
}

async fn ask(base: &str, patience: Duration) -> CallError {
    call(base, patience).await.expect_err("every script is a failure")
}

// spec: P-7
#[tokio::test]
async fn every_refusal_of_the_corpus_keeps_its_verdict() {
    assert_eq!(replay(ask).await, [""; 0]);
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

// spec: P-7
#[tokio::test]
async fn error_for_status_leaves_the_status() {
    let upstream = upstream().await;
    upstream.script(On::any(), [Step::json(402, r#"{"error":{"message":"no credit"}}"#)]);
    let answer =
        client(LONG).post(format!("{}/chat/completions", upstream.base_url())).body(r#"{"model":"m"}"#);
    let error = answer.send().await.unwrap().error_for_status().unwrap_err();
    assert_eq!(told(&ClientError(error)).0, FailoverReason::Billing);
}

// spec: P-7
#[tokio::test]
async fn an_impossible_address_is_told_in_words() {
    let error = Client::new().get("no address").send().await.unwrap_err();
    // The next provider has another address.
    let error = ClientError(error);
    assert_eq!(told(&error).0, FailoverReason::Unclassified);
    error.with_signal(|signal| assert!(signal.body.starts_with(b"builder error"), "{signal:?}"));
}

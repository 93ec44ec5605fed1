//! The AWS SDK, with its client for Bedrock.

use crate::support::{LONG, below_http, replay, told, upstream};
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::http::HttpResponse;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::timeout::TimeoutConfig;
use aws_sdk_bedrockruntime::config::{BehaviorVersion, Builder, Config, Region, Token};
use aws_sdk_bedrockruntime::error::SdkError;
use aws_sdk_bedrockruntime::operation::converse::ConverseError;
use aws_sdk_bedrockruntime::types::error::ConverseStreamOutputError;
use aws_sdk_bedrockruntime::types::{ContentBlock, ConversationRole, Message};
use aws_smithy_types::event_stream::RawMessage;
use failover_clients::ClientError;
use failover_testkit::upstream::{Answer, On, Respond, Step};
use failover_types::FailoverReason;
use std::time::Duration;

fn config(base: &str, patience: Duration) -> Builder {
    let http = aws_smithy_http_client::Builder::new().build_http();
    Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(base)
        .http_client(http)
        .sleep_impl(aws_smithy_async::rt::sleep::TokioSleep::new())
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::builder().operation_timeout(patience).build())
}

fn client(base: &str, patience: Duration) -> Client {
    Client::from_conf(config(base, patience).bearer_token(Token::new("k", None)).build())
}

fn hello() -> Message {
    let message = Message::builder().role(ConversationRole::User).content(ContentBlock::Text("hello".into()));
    message.build().unwrap()
}

type CallError = ClientError<SdkError<ConverseError, HttpResponse>>;

async fn ask(base: &str, patience: Duration) -> CallError {
    let answer = client(base, patience).converse().model_id("m").messages(hello()).send().await;
    answer.expect_err("every script is a failure").into()
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
async fn the_code_and_the_wait_are_kept_and_broken_json_is_a_failure() {
    let upstream = upstream().await;
    let busy = Respond::new(429)
        .header("content-type", "application/json")
        .header("x-amzn-errortype", "ThrottlingException:http://internal.amazon.com/coral/")
        .header("retry-after", "7")
        .body(r#"{"message":"Too many requests, please wait before trying again."}"#);
    upstream.script(On::any(), [busy.into(), Step::json(200, r#"{"output":{"message":{"#)]);
    let busy = ask(&upstream.base_url(), LONG).await;
    assert_eq!(told(&busy), (FailoverReason::RateLimit, Some(Duration::from_secs(7))));
    let junk = ask(&upstream.base_url(), LONG).await;
    // The SDK's own words for it say nothing of why; the next candidate is tried.
    assert_eq!(told(&junk).0, FailoverReason::Unclassified);
}

/// The error in the middle of a streamed answer.
async fn broken_stream(
    base: &str,
    patience: Duration,
) -> ClientError<SdkError<ConverseStreamOutputError, RawMessage>> {
    let answer = client(base, patience).converse_stream().model_id("m").messages(hello()).send().await;
    let mut stream = answer.expect("it begins well").stream;
    loop {
        match stream.recv().await {
            Ok(event) => assert!(event.is_some(), "every script is a failure"),
            Err(error) => return error.into(),
        }
    }
}

// spec: P-7, C-8
#[tokio::test]
async fn a_stream_that_breaks_or_complains_is_told() {
    let upstream = upstream().await;
    let throttled = r#"{"__type":"throttlingException","message":"Too many tokens, please wait"}"#;
    upstream.script(
        On::any(),
        [
            Answer::text(["a", "b"]).cut_after(1).into(),
            Answer::text(["a", "b"]).reset_after(1).into(),
            Answer::text(["a", "b"]).error_after(1, throttled).into(),
        ],
    );
    for reason in [FailoverReason::Timeout, FailoverReason::Timeout, FailoverReason::RateLimit] {
        let error = broken_stream(&upstream.base_url(), LONG).await;
        assert_eq!(told(&error).0, reason, "{error:?}");
    }
}

// spec: P-7
#[tokio::test]
async fn without_credentials_nothing_is_sent_and_that_is_told() {
    let upstream = upstream().await;
    let client = Client::from_conf(config(&upstream.base_url(), LONG).build());
    let error = client.converse().model_id("m").messages(hello()).send().await.unwrap_err();
    assert_eq!(told(&ClientError(error)).0, FailoverReason::Auth);
    assert!(upstream.log().is_empty());
}

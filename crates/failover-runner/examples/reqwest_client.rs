//! A team that calls its providers with reqwest: one request per attempt, and an error that keeps what was said.
//!
//! `cargo run -p failover-runner --example reqwest_client`
//!
//! Two servers on this machine stand in for the providers: the first crashes, the second answers.

use failover_classify::{AsSignal, Cause, Classifier, Signal, Surface};
use failover_runner::plan::Candidate;
use failover_runner::{Attempt, Runner, SystemClock};
use failover_testkit::upstream::{On, Step, Upstream};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

/// What classification reads: the status, the headers and the body of a response, or the causes below HTTP.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("HTTP {status}: {body}")]
    Response { status: u16, headers: Vec<(String, String)>, body: String },
    #[error("the request failed")]
    Request(#[from] reqwest::Error),
}

impl AsSignal for CallError {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        match self {
            Self::Response { status, headers, body } => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let signal = Signal::new(Surface::Http).with_status(*status).with_body(body.as_bytes());
                with(&signal.with_headers(&headers))
            }
            Self::Request(error) => {
                let mut messages = vec![error.to_string()];
                let mut source = error.source();
                while let Some(cause) = source {
                    messages.push(cause.to_string());
                    source = cause.source();
                }
                let causes: Vec<Cause<'_>> = messages.iter().map(|text| Cause::new(text)).collect();
                with(&Signal::new(Surface::Transport).with_causes(&causes))
            }
        }
    }
}

/// One attempt: one request, no retry of reqwest's own.
async fn ask(
    client: &reqwest::Client,
    hosts: &HashMap<String, String>,
    attempt: Attempt,
) -> Result<String, CallError> {
    let host = hosts.get(attempt.model.provider().as_str()).map(String::as_str).unwrap_or_default();
    let mut request = client
        .post(format!("{host}/chat/completions"))
        .header("idempotency-key", &*attempt.idempotency_key)
        .json(&json!({
            "model": attempt.model.model(),
            "messages": [{ "role": "user", "content": "hello" }],
        }));
    if let Some(limit) = attempt.limits.first_byte {
        request = request.timeout(limit);
    }
    let response = request.send().await?;
    let status = response.status().as_u16();
    if status >= 400 {
        let text =
            |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers =
            response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        return Err(CallError::Response { status, headers, body: response.text().await? });
    }
    let body: Value = response.json().await?;
    let content = body.pointer("/choices/0/message/content").and_then(Value::as_str);
    Ok(content.unwrap_or_default().to_owned())
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (first, second) = (
        Upstream::start(Arc::new(SystemClock::new())).await?,
        Upstream::start(Arc::new(SystemClock::new())).await?,
    );
    let crash = r#"{"error":{"type":"server_error","message":"internal error"}}"#;
    first.script(On::any(), [Step::json(500, crash), Step::json(500, crash)]);
    second.script(On::any(), [Step::text("hello from the second")]);
    let hosts =
        HashMap::from([("first".to_owned(), first.base_url()), ("second".to_owned(), second.base_url())]);

    let client = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
    let mut chain = Vec::new();
    for model in ["first/small", "second/small"] {
        chain.push(Candidate::new(model.parse()?));
    }
    let runner = Runner::new(Classifier::standard()?);
    let answer = runner.run(chain, |attempt| ask(&client, &hosts, attempt)).await?;
    println!("{}", answer.value);
    for visit in &answer.trail {
        println!("  {visit}");
    }
    Ok(())
}

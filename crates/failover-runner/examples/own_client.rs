//! A team with its own client: a closure that makes one attempt, and an error that says what it knows.
//!
//! `cargo run -p failover-runner --example own_client`

use failover_classify::{AsSignal, Classifier, Signal, Surface};
use failover_runner::{Attempt, plan::Candidate};

/// What the client's own error is made of.
#[derive(Debug, thiserror::Error)]
#[error("HTTP {status}: {body}")]
struct HttpError {
    status: u16,
    retry_after: Option<String>,
    body: String,
}

impl AsSignal for HttpError {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        let headers: Vec<(&str, &str)> =
            self.retry_after.iter().map(|wait| ("retry-after", wait.as_str())).collect();
        let signal = Signal::new(Surface::Http).with_status(self.status).with_body(self.body.as_bytes());
        with(&signal.with_headers(&headers))
    }
}

/// Stands in for the client: the first provider is out of credit, the second answers.
async fn ask(attempt: Attempt) -> Result<String, HttpError> {
    // A real client sends `attempt.idempotency_key` along and keeps `attempt.limits`.
    match attempt.model.provider().as_str() {
        "openai" => Err(HttpError {
            status: 429,
            retry_after: Some("3600".to_owned()),
            body: r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#
                .to_owned(),
        }),
        _ => Ok(format!("hello from {}", attempt.model)),
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut chain = Vec::new();
    for model in ["openai/gpt-5", "anthropic/claude-sonnet-4-5"] {
        chain.push(Candidate::new(model.parse()?));
    }
    let answer = failover_runner::run(Classifier::standard()?, chain, ask).await?;
    println!("{}", answer.value);
    for visit in &answer.trail {
        println!("  {visit}");
    }
    Ok(())
}

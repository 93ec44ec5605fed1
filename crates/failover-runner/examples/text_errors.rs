//! A client whose errors are nothing but text: classification reads the text.
//!
//! `cargo run -p failover-runner --example text_errors`

use failover_classify::{AsSignal, Classifier, Signal};
use failover_runner::{Attempt, RunError, Runner, plan::Candidate};

/// A text, and no more.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct TextError(&'static str);

impl AsSignal for TextError {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        with(&Signal::text(self.0))
    }
}

async fn ask(attempt: Attempt) -> Result<String, TextError> {
    match attempt.model.provider().as_str() {
        "groq" => Err(TextError("Rate limit reached for requests per minute. Please try again in 7m12s.")),
        "mistral" => Err(TextError("The model `old` does not exist")),
        _ => Ok("an answer".to_owned()),
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runner = Runner::new(Classifier::standard()?);
    let chain = |models: &[&str]| {
        models.iter().map(|model| model.parse().map(Candidate::new)).collect::<Result<Vec<_>, _>>()
    };
    let answer = runner.run(chain(&["groq/llama", "mistral/old", "ollama/qwen"])?, ask).await?;
    println!("{} answered: {}", answer.model, answer.value);

    // The second run knows that the first provider is cooling, and does not ask it.
    match runner.run(chain(&["groq/llama", "mistral/old"])?, ask).await {
        Err(RunError::Exhausted(summary)) => println!("{summary}"),
        Ok(answer) => println!("{} answered", answer.model),
        Err(error) => println!("{error}"),
    }
    Ok(())
}

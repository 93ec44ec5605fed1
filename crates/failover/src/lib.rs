//! Keeps an LLM application answering when credentials, models and providers fail.
//!
//! It says *why* a call failed, tries another credential of the same provider, then the next model, remembers it in
//! the session without ever overwriting what a person chose meanwhile, and explains every step.
//!
//! # With your own client
//!
//! No adapter, no store and no config is needed: a closure that makes one attempt is enough.
//!
//! ```
//! use failover::classify::{AsSignal, Classifier, Signal};
//! use failover::runner::plan::Candidate;
//!
//! #[derive(Debug)]
//! struct MyError(u16, &'static str);
//!
//! impl AsSignal for MyError {
//!     fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
//!         with(&Signal::text(self.1).with_status(self.0))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chain = vec![Candidate::new("openai/gpt-5".parse()?), Candidate::new("anthropic/claude-sonnet".parse()?)];
//! let answer = failover::runner::run(Classifier::standard()?, chain, |attempt| async move {
//!     match attempt.model.provider().as_str() {
//!         "openai" => Err(MyError(402, "insufficient credits")),
//!         _ => Ok("hello"),
//!     }
//! })
//! .await
//! .map_err(|error| error.to_string())?;
//! assert_eq!((answer.value, answer.model.model()), ("hello", "claude-sonnet"));
//! # Ok(())
//! # }
//! ```
//!
//! # With config, adapters and a store
//!
//! [`Engine`] furnishes a runner from a config file: chain, policies, credentials, adapters, sessions.

mod engine;
mod keys;
mod settings;

pub use engine::{Engine, EngineBuilder, EngineError, Setup, Turn};
pub use settings::{SettingsError, chain_config, classifier, cooldown_policy, run_policy};

pub use failover_auth as auth;
pub use failover_chain as chain;
pub use failover_classify as classify;
pub use failover_config as config;
pub use failover_credentials as credentials;
pub use failover_provider as provider;
pub use failover_runner as runner;
pub use failover_session as session;
pub use failover_store as store;
pub use failover_types as types;

#[cfg(feature = "provider-openai")]
pub use failover_provider_openai as provider_openai;
#[cfg(feature = "store-sled")]
pub use failover_store_sled as store_sled;

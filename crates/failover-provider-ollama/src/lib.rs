//! Ollama's own chat API, on a machine of one's own or in its cloud.
//!
//! Its servers speak chat completions too (`failover-provider-openai`); this API has what those leave out: thinking,
//! and token counts in every stream.
//!
//! ```no_run
//! use failover_http::TargetConfig;
//! use failover_provider_ollama::Ollama;
//! use failover_types::ProviderId;
//!
//! let adapter = Ollama::new(ProviderId::new("ollama")?, TargetConfig::new())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapter;
mod decode;
mod map;

pub use adapter::{BASE_URL, Ollama};

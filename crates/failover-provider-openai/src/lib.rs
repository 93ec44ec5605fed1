//! Chat completions: OpenAI, and every server that speaks its dialect. And OpenAI's Responses API: [`Responses`].
//!
//! What differs between servers is data: one row of [`Facts`] each. A server without a row gets the plainest one.
//!
//! ```no_run
//! use failover_provider_openai::OpenAi;
//! use failover_types::ProviderId;
//!
//! let adapter = OpenAi::builder(ProviderId::new("vllm")?).base_url("http://127.0.0.1:8000/v1").build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapter;
mod decode;
mod facts;
mod family;
mod look;
mod map;
mod responses;
mod wire;

pub use adapter::{Builder, ConfigError, OpenAi};
pub use facts::{Auth, EffortField, FACTS, Facts, Files, facts_for};
pub use failover_provider::ToolIds;
pub use responses::Responses;

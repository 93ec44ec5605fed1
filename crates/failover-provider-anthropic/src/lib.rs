//! Anthropic's Messages API.
//!
//! ```no_run
//! use failover_http::TargetConfig;
//! use failover_provider_anthropic::Anthropic;
//! use failover_types::ProviderId;
//!
//! let adapter = Anthropic::new(ProviderId::new("anthropic")?, TargetConfig::new())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapter;
mod decode;
mod limits;
mod longest;
mod look;
mod map;

pub use adapter::{Anthropic, BASE_URL};

//! Gemini, by Google's Gemini API and by Vertex AI.
//!
//! ```no_run
//! use failover_http::TargetConfig;
//! use failover_provider_google::{Google, vertex_base_url};
//! use failover_types::ProviderId;
//!
//! let gemini = Google::new(ProviderId::new("google")?, TargetConfig::new())?;
//! let vertex = TargetConfig::new().base_url(vertex_base_url("my-project", "europe-west1"));
//! let vertex = Google::new(ProviderId::new("google-vertex")?, vertex)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A credential of the kind API key goes into `x-goog-api-key`, everything else is a bearer token.

mod adapter;
mod decode;
mod map;
mod wire;

pub use adapter::{BASE_URL, Google, vertex_base_url};

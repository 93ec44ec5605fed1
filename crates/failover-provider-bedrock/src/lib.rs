//! The Converse API of Amazon Bedrock.
//!
//! ```no_run
//! use failover_http::TargetConfig;
//! use failover_provider_bedrock::{Bedrock, base_url};
//! use failover_types::ProviderId;
//!
//! let config = TargetConfig::new().base_url(base_url("eu-central-1"));
//! let adapter = Bedrock::new(ProviderId::new("amazon-bedrock")?, config)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Credentials
//!
//! The secret of a credential is one of these:
//!
//! - an API key of Bedrock: it is sent as a bearer token;
//! - `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, or `ACCESS_KEY_ID:SECRET_ACCESS_KEY:SESSION_TOKEN`: requests are signed
//!   (Signature Version 4);
//! - what `aws configure export-credentials` prints, a JSON object with `AccessKeyId`, `SecretAccessKey` and
//!   `SessionToken`: requests are signed.
//!
//! Requests are signed for the region that the host names, or the one of [`Bedrock::in_region`].

mod adapter;
mod decode;
mod frames;
mod keys;
mod map;
mod sign;
mod wire;

pub use adapter::{Bedrock, DEFAULT_REGION, base_url};

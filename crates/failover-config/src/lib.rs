//! The config file: JSON5 with OpenClaw's key names for what the two share.
//!
//! Text goes through three stages, and nothing half valid comes out of any of them:
//! [`Document`] (syntax, positions) → [`Config`] (known keys, types, no secret in it) → what the crates take.
//! Every fault has file, line, column and, where there is one, a hint; all faults are reported at once.

mod diagnostic;
mod document;
mod gateway;
pub mod import;
mod keys;
mod load;
mod meaning;
mod schema;
mod value;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use document::{Document, Position};
pub use gateway::{
    DEFAULT_LISTEN, Gateway, GatewayAdmin, GatewayLimits, GatewayRoute, GatewayTelemetry, GatewayToken,
    SessionsFrom, StreamRescue,
};
pub use keys::{
    Agent, AgentSettings, Agents, Auth, AuthMode, Classifier, Config, Cooldowns, Heartbeat, Limits,
    ModelEntry, ModelFacts, Models, OperatorRule, Overrides, Profile, Provider, ProviderApi, ProviderProxy,
    ProviderRequest, ProviderTls, RetryInPlace, RunRetries, UserPin,
};
pub use load::{LoadError, Loaded, load, load_text};
pub use schema::json_schema;
pub use value::{Fallbacks, KeySource, ModelChoice};

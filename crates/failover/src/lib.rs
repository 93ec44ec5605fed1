//! Keeps an LLM application answering when credentials, models and providers fail.
//!
//! It says *why* a call failed, tries another credential of the same provider, then the next model, remembers it in
//! the session without ever overwriting what a person chose meanwhile, and explains every step.
//!
//! # With your own client
//!
//! No adapter, no store and no config is needed: [`runner::run`] takes a chain and a closure that makes one attempt. The
//! README has an example.
//!
//! # With config, adapters and a store
//!
//! [`Engine`] furnishes a runner from a config file: chain, policies, credentials, adapters, sessions.

mod accounts;
mod engine;
mod follow;
mod import;
mod keys;
mod known;
mod known_sessions;
mod limits;
mod needs;
mod opening;
#[cfg(feature = "http")]
mod providers;
#[cfg(not(feature = "http"))]
#[path = "no_providers.rs"]
mod providers;
mod roster;
mod route;
mod settings;
#[cfg(feature = "store-redis")]
mod shared;
mod turn;

pub use accounts::{Account, Probed, ProbedEnd};
pub use engine::{Engine, EngineBuilder, EngineError, Setup, TurnExplanation};
pub use import::{ImportReport, Taken, TakenWhat, import_openclaw};
pub use known::UnknownName;
pub use route::Route;
pub use settings::{
    SettingsError, chain_config, check, classifier, configured_profiles, cooldown_policy, run_policy,
    sessions_idle,
};
pub use turn::Turn;

#[cfg(feature = "store-redis")]
pub use shared::{Shared, SharedStoreError, shared_store};

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

#[cfg(feature = "http")]
pub use failover_http as http;
#[cfg(feature = "provider-anthropic")]
pub use failover_provider_anthropic as provider_anthropic;
#[cfg(feature = "provider-bedrock")]
pub use failover_provider_bedrock as provider_bedrock;
#[cfg(feature = "provider-google")]
pub use failover_provider_google as provider_google;
#[cfg(feature = "provider-ollama")]
pub use failover_provider_ollama as provider_ollama;
#[cfg(feature = "provider-openai")]
pub use failover_provider_openai as provider_openai;
#[cfg(feature = "store-redis")]
pub use failover_store_redis as store_redis;
#[cfg(feature = "store-sled")]
pub use failover_store_sled as store_sled;

/// The README's example compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So do the examples of the quick start.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Library;

//! A selection *and where it came from*, plus the config, give the candidates of a run: a pure function.
//!
//! The requested model is first, what the operator wrote follows, nothing else ever gets in. Each [`Candidate`]
//! names the [`Rule`] and the config line that put it there, so that a reader can be told why.
//!
//! ```
//! use failover_chain::{ChainConfig, Fallbacks, Reference, resolve};
//!
//! let mut config = ChainConfig::default();
//! config.defaults.primary = Some(Reference::new("openai/gpt-5"));
//! config.defaults.fallbacks = Fallbacks::list(["anthropic/claude-sonnet-4-5", "openai/gpt-5-mini"]);
//!
//! let chain = resolve(&config.selection()?, &config, None);
//! let models: Vec<String> = chain.candidates().iter().map(|c| c.model.to_string()).collect();
//! assert_eq!(models, ["openai/gpt-5", "anthropic/claude-sonnet-4-5", "openai/gpt-5-mini"]);
//! # Ok::<(), failover_chain::ChainError>(())
//! ```

mod capability;
mod config;
mod reference;
mod resolve;
mod selection;

pub use capability::{Capabilities, Needs, Unfit};
pub use config::{ChainConfig, ChainError, DroppedChain, ModelChainConfig, Rescue};
pub use reference::{Aliases, Fallbacks, FallbacksKind, Origin, Reference, Unresolved};
pub use resolve::{Candidate, Chain, Policy, Rule, resolve, resolve_image, resolve_rescue};
pub use selection::{FallbacksOverride, Selection, SelectionSource};

//! A model and who chose it, in one type: a bare model string cannot start a run.

use crate::Reference;
use failover_types::{ModelRef, ProfileId};

/// Who chose the model of a run. It decides whether there is a chain at all; see [`crate::resolve`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new source must say whether it may fall back")]
pub enum SelectionSource {
    /// `agents.defaults.model`: its chain.
    ConfiguredDefault,
    /// The agent's own primary: strict, unless it has fallbacks of its own.
    AgentPrimary,
    /// A fallback that an earlier run wrote to the session: the chain of its origin.
    AutoOverride {
        /// What had been selected when that run fell back.
        origin: ModelRef,
    },
    /// A person chose it for the session: this model and no other.
    UserOverride,
    /// An override without a source, from an older version: treated as a person's.
    LegacyOverride,
    /// The model of a scheduled job: a primary of its own with the configured fallbacks, or its payload's.
    Cron {
        /// The job's `payload.fallbacks`; an empty list is strict, `None` means the configured ones.
        fallbacks: Option<Vec<Reference>>,
    },
    /// The model set for heartbeats: strict.
    Heartbeat,
    /// Given for one call, as by a command line flag: strict.
    OneOff,
}

impl SelectionSource {
    /// The name that logs and explanations use.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::ConfiguredDefault => "configured_default",
            Self::AgentPrimary => "agent_primary",
            Self::AutoOverride { .. } => "auto_override",
            Self::UserOverride => "user_override",
            Self::LegacyOverride => "legacy_override",
            Self::Cron { .. } => "cron",
            Self::Heartbeat => "heartbeat",
            Self::OneOff => "one_off",
        }
    }
}

/// What a run was asked to use, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    model: ModelRef,
    profile: Option<ProfileId>,
    source: SelectionSource,
}

impl Selection {
    /// A selection. There is no way to make one without its source.
    pub fn new(model: ModelRef, profile: Option<ProfileId>, source: SelectionSource) -> Self {
        Self { model, profile, source }
    }

    /// The chosen model.
    pub fn model(&self) -> &ModelRef {
        &self.model
    }

    /// The credential that was chosen with it, where one was.
    pub fn profile(&self) -> Option<&ProfileId> {
        self.profile.as_ref()
    }

    /// Who chose it.
    pub fn source(&self) -> &SelectionSource {
        &self.source
    }
}

/// Fallbacks given for this run: exactly these follow the requested model. An empty list means no fallback at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FallbacksOverride {
    /// The fallbacks, in order.
    pub list: Vec<Reference>,
}

impl FallbacksOverride {
    /// An override with these fallbacks.
    pub fn new(list: Vec<Reference>) -> Self {
        Self { list }
    }
}

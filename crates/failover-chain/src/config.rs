//! What the operator wrote about models, as far as chains go.

use crate::{Aliases, Capabilities, Fallbacks, Reference, Selection, SelectionSource, Unresolved};
use failover_types::{FailoverReason, ModelRef, ModelSelector};
use std::collections::{BTreeMap, BTreeSet};

/// A `model` setting: a primary and its fallbacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelChainConfig {
    /// The model to use.
    pub primary: Option<Reference>,
    /// What follows it.
    pub fallbacks: Fallbacks,
}

impl ModelChainConfig {
    /// A primary and its fallbacks.
    pub fn new(primary: Option<Reference>, fallbacks: Fallbacks) -> Self {
        Self { primary, fallbacks }
    }
}

/// The failures of a request that may have a chain of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: the two optional chains")]
pub enum Rescue {
    /// `onContextOverflow`.
    ContextOverflow,
    /// `onContentRefusal`.
    ContentRefusal,
}

impl Rescue {
    /// The rescue that a reason asks for, if any.
    pub fn of(reason: FailoverReason) -> Option<Self> {
        [
            (FailoverReason::ContextOverflow, Self::ContextOverflow),
            (FailoverReason::ContentRefusal, Self::ContentRefusal),
        ]
        .into_iter()
        .find_map(|(of, rescue)| (of == reason).then_some(rescue))
    }
}

/// Everything about models that decides a chain, for one agent.
///
/// The config crate fills it from files; a team without config files fills it by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainConfig {
    /// `agents.defaults.model`.
    pub defaults: ModelChainConfig,
    /// The agent's own `model`; nothing in it means the defaults.
    pub agent: ModelChainConfig,
    /// `imageModel`: a chain of its own.
    pub image: ModelChainConfig,
    /// The model of heartbeat runs.
    pub heartbeat: Option<Reference>,
    /// `onContextOverflow`: off unless it lists something.
    pub on_context_overflow: Fallbacks,
    /// `onContentRefusal`: off unless it lists something.
    pub on_content_refusal: Fallbacks,
    /// Short names.
    pub aliases: Aliases,
    /// What models can do, where known.
    pub capabilities: BTreeMap<ModelRef, Capabilities>,
    /// What people may select; `None` allows everything. It never filters fallbacks: the operator wrote those.
    pub allowed: Option<BTreeSet<ModelRef>>,
}

/// Why there is no selection or no chain. The operator's to mend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No primary model anywhere.
    #[error("no model is configured: set agents.defaults.model.primary")]
    NoModel,
    /// Neither a primary image model nor a fallback of it.
    #[error("no image model is configured: set agents.defaults.imageModel.primary or its fallbacks")]
    NoImageModel,
    /// A model that a run must begin with cannot be read.
    #[error("{0}")]
    Unresolved(Box<Unresolved>),
}

/// An agent's plain model string that drops the chain of the defaults: seldom meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedChain {
    /// The agent's primary.
    pub primary: Reference,
    /// Fallbacks of the defaults that do not apply to it.
    pub dropped: Vec<Reference>,
}

impl ChainConfig {
    /// Reads one reference.
    ///
    /// # Errors
    ///
    /// [`ChainError::Unresolved`] says where it stands and what is wrong.
    pub fn read(&self, reference: &Reference) -> Result<ModelSelector, ChainError> {
        self.aliases
            .read(&reference.text)
            .map_err(|why| ChainError::Unresolved(Box::new(Unresolved { reference: reference.clone(), why })))
    }

    /// The selection of a run for which nobody selected anything: the agent's primary, else the configured default.
    ///
    /// # Errors
    ///
    /// [`ChainError`] where no primary is configured, or it names no model.
    pub fn selection(&self) -> Result<Selection, ChainError> {
        let (primary, source) = match (&self.agent.primary, &self.defaults.primary) {
            (Some(primary), _) => (primary, SelectionSource::AgentPrimary),
            (None, Some(primary)) => (primary, SelectionSource::ConfiguredDefault),
            (None, None) => return Err(ChainError::NoModel),
        };
        let selector = self.read(primary)?;
        Ok(Selection::new(selector.model, selector.profile, source))
    }

    /// The selection of a heartbeat run; `None` where heartbeats have no model of their own.
    ///
    /// # Errors
    ///
    /// [`ChainError`] where it names no model.
    pub fn heartbeat_selection(&self) -> Result<Option<Selection>, ChainError> {
        let Some(reference) = &self.heartbeat else { return Ok(None) };
        let selector = self.read(reference)?;
        Ok(Some(Selection::new(selector.model, selector.profile, SelectionSource::Heartbeat)))
    }

    /// The selection of a run that reads images: the primary image model, else the first of its fallbacks.
    ///
    /// # Errors
    ///
    /// [`ChainError::NoImageModel`] where none is configured, [`ChainError::Unresolved`] where it names no model.
    pub fn image_selection(&self) -> Result<Selection, ChainError> {
        let first = self.image.primary.as_ref().or_else(|| self.image.fallbacks.references().first());
        let selector = self.read(first.ok_or(ChainError::NoImageModel)?)?;
        Ok(Selection::new(selector.model, selector.profile, SelectionSource::ConfiguredDefault))
    }

    /// The selection of a turn with images, where it is another than `selected`: the image model, where one is
    /// configured, nobody chose a model for the turn or its session, and the selected one is not known to read images.
    ///
    /// # Errors
    ///
    /// [`ChainError::Unresolved`] where the image model names none.
    pub fn image_selection_for(&self, selected: &Selection) -> Result<Option<Selection>, ChainError> {
        let chosen = match selected.source() {
            SelectionSource::UserOverride
            | SelectionSource::LegacyOverride
            | SelectionSource::Cron { .. }
            | SelectionSource::Heartbeat
            | SelectionSource::OneOff => true,
            SelectionSource::ConfiguredDefault
            | SelectionSource::AgentPrimary
            | SelectionSource::AutoOverride { .. } => false,
        };
        let known = self.capabilities.get(&self.aliases.normalize(selected.model()));
        if chosen || known.is_some_and(|known| known.images == Some(true)) {
            return Ok(None);
        }
        match self.image_selection() {
            Err(ChainError::NoImageModel) => Ok(None),
            image => image.map(Some),
        }
    }

    /// Whether people may select this model.
    pub fn may_select(&self, model: &ModelRef) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(model))
    }

    /// What `doctor` warns of: the agent's plain model string makes it strict, though the defaults have a chain.
    pub fn dropped_chain(&self) -> Option<DroppedChain> {
        let primary = self.agent.primary.clone()?;
        let dropped = self.defaults.fallbacks.references().to_vec();
        (self.agent.fallbacks == Fallbacks::Absent && !dropped.is_empty())
            .then_some(DroppedChain { primary, dropped })
    }

    /// The fallbacks of a rescue.
    pub(crate) fn rescue(&self, rescue: Rescue) -> &Fallbacks {
        match rescue {
            Rescue::ContextOverflow => &self.on_context_overflow,
            Rescue::ContentRefusal => &self.on_content_refusal,
        }
    }

    /// The reference by which a setting names a model.
    pub(crate) fn written<'a>(&self, model: &ModelRef, of: &'a ModelChainConfig) -> Option<&'a Reference> {
        let mut named = of.primary.iter().chain(of.fallbacks.references());
        named.find(|reference| self.read(reference).is_ok_and(|read| read.model == *model))
    }
}

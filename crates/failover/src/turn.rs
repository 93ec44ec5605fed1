//! What an engine is asked.

use crate::route::{Route, walk};
use failover_chain::{
    Chain, ChainConfig, ChainError, FallbacksOverride, Selection, SelectionSource, resolve, resolve_image,
};
use failover_provider::ChatRequest;
use failover_runner::plan::Candidate;
use failover_types::{ModelSelector, ProviderId, SessionId};
use std::sync::Arc;

/// A turn of a conversation, or a single question.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Turn {
    /// What to ask. It stays as it is; each attempt maps from it.
    pub request: ChatRequest,
    /// The conversation; without one nothing but health is remembered.
    pub session: Option<SessionId>,
    /// The model for this turn only; without it, what the session or the config says.
    pub model: Option<ModelSelector>,
    /// The selection of this turn only, with its source: for a host's scheduled jobs. `model` goes before it.
    pub selection: Option<Selection>,
    /// What may follow the selected model, in place of what is configured.
    pub fallbacks: Option<FallbacksOverride>,
    /// A heartbeat of the host, not a person's turn.
    pub heartbeat: bool,
    /// The chain in place of the configured one.
    pub route: Option<Arc<Route>>,
    /// The provider that the caller asked, where that is not the one that the selection says: what stands in the caller's
    /// history without its origin is that one's.
    pub asked: Option<ProviderId>,
}

impl Turn {
    /// A turn outside of any session, with the configured model.
    pub fn new(request: ChatRequest) -> Self {
        Self {
            request,
            session: None,
            model: None,
            selection: None,
            fallbacks: None,
            heartbeat: false,
            route: None,
            asked: None,
        }
    }

    /// Puts the turn into a session.
    #[must_use]
    pub fn in_session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }

    /// Asks this model, for this turn only.
    #[must_use]
    pub fn with_model(mut self, model: ModelSelector) -> Self {
        self.model = Some(model);
        self
    }

    /// Begins with this selection, for this turn only: nothing is written into the session. Its source decides what may
    /// follow (requirement H-7).
    #[must_use]
    pub fn with_selection(mut self, selection: Selection) -> Self {
        self.selection = Some(selection);
        self
    }

    /// Lets exactly these follow the selected model, whoever selected it; an empty list lets nobody (requirement H-5).
    #[must_use]
    pub fn with_fallbacks(mut self, fallbacks: FallbacksOverride) -> Self {
        self.fallbacks = Some(fallbacks);
        self
    }

    /// Makes it a heartbeat. It asks the model for heartbeats and writes nothing into the session, where the config has
    /// one; else it is a turn like any other, and first clears an override of the session whose origin is not what is
    /// configured any more (requirement S-8).
    #[must_use]
    pub fn as_heartbeat(mut self) -> Self {
        self.heartbeat = true;
        self
    }

    /// Follows this chain in place of the configured one. A session goes on with what it fell back to within it.
    #[must_use]
    pub fn with_route(mut self, route: Arc<Route>) -> Self {
        self.route = Some(route);
        self
    }

    /// Says which provider the caller asked, where that is not the one that the selection says.
    #[must_use]
    pub fn with_asked(mut self, provider: ProviderId) -> Self {
        self.asked = Some(provider);
        self
    }

    /// The chain config that counts.
    pub(crate) fn chain<'a>(&'a self, configured: &'a ChainConfig) -> &'a ChainConfig {
        self.route.as_ref().map_or(configured, |route| route.config())
    }

    /// What is selected where nobody selected anything.
    pub(crate) fn configured(&self, chain: &ChainConfig) -> Result<Selection, ChainError> {
        self.route.as_ref().map_or_else(|| chain.selection(), |route| Ok(route.selection().clone()))
    }

    /// What is selected for this turn only. Such a turn writes nothing into its session (requirement S-3).
    pub(crate) fn given(&self, chain: &ChainConfig) -> Result<Option<Selection>, ChainError> {
        if let Some(ModelSelector { model, profile, .. }) = &self.model {
            return Ok(Some(Selection::new(model.clone(), profile.clone(), SelectionSource::OneOff)));
        }
        match &self.selection {
            Some(selection) => Ok(Some(selection.clone())),
            None if self.heartbeat => self.chain(chain).heartbeat_selection(),
            None => Ok(None),
        }
    }
}

/// What a turn begins with.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// What is selected.
    pub(crate) selected: Selection,
    /// What is asked in its place, since the turn has images (requirement H-8).
    pub(crate) image: Option<Selection>,
}

impl Start {
    /// What a turn begins with, that has images or not.
    pub(crate) fn new(selected: Selection, images: bool, chain: &ChainConfig) -> Result<Self, ChainError> {
        let image = if images { chain.image_selection_for(&selected)? } else { None };
        Ok(Self { selected, image })
    }

    /// The provider that the caller of `turn` asked. A session that is on a fallback asked its origin.
    pub(crate) fn asked<'a>(&'a self, turn: &'a Turn) -> &'a ProviderId {
        let selected = match self.selected.source() {
            SelectionSource::AutoOverride { origin } => origin,
            SelectionSource::ConfiguredDefault
            | SelectionSource::AgentPrimary
            | SelectionSource::UserOverride
            | SelectionSource::LegacyOverride
            | SelectionSource::Cron { .. }
            | SelectionSource::Heartbeat
            | SelectionSource::OneOff => self.selected.model(),
        };
        turn.asked.as_ref().unwrap_or(selected.provider())
    }

    /// The chain of `turn`.
    pub(crate) fn chain(&self, turn: &Turn, configured: &ChainConfig) -> Chain {
        let (config, given) = (turn.chain(configured), turn.fallbacks.as_ref());
        let image = self.image.as_ref().and_then(|image| resolve_image(image, config, given).ok());
        image.unwrap_or_else(|| resolve(&self.selected, config, given))
    }

    /// The candidates of `turn`, and those of its rescues: of a context overflow, of a content refusal.
    pub(crate) fn walk(&self, turn: &Turn, configured: &ChainConfig) -> [Vec<Candidate>; 3] {
        if turn.fallbacks.is_some() {
            // Exactly those, and no others for any reason.
            return [Candidate::of_chain(&self.chain(turn, configured)), Vec::new(), Vec::new()];
        }
        let Some(image) = &self.image else {
            return match &turn.route {
                Some(route) => route.walk(&self.selected),
                None => walk(&self.selected, configured),
            };
        };
        let [_, on_context_overflow, on_content_refusal] = walk(image, turn.chain(configured));
        [Candidate::of_chain(&self.chain(turn, configured)), on_context_overflow, on_content_refusal]
    }
}

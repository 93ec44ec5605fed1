//! Chains beside the configured one: what a gateway offers as a model by a name of its own.

use failover_chain::{
    ChainConfig, ChainError, Fallbacks, ModelChainConfig, Reference, Rescue, Selection, Unresolved, resolve,
    resolve_rescue,
};
use failover_runner::plan::Candidate;

/// A chain of its own, resolved once. A turn that follows it needs no model in the config.
#[derive(Clone, Debug)]
pub struct Route {
    config: ChainConfig,
    selection: Selection,
    chain: Vec<Candidate>,
    on_context_overflow: Vec<Candidate>,
    on_content_refusal: Vec<Candidate>,
}

impl Route {
    /// The route of a chain config.
    ///
    /// # Errors
    ///
    /// [`ChainError`] where it has no model, or one of them cannot be read.
    pub fn new(config: ChainConfig) -> Result<Self, ChainError> {
        let selection = config.selection()?;
        let chain = resolve(&selection, &config, None);
        if let Some(unresolved) = chain.unresolved().first() {
            let unresolved: Unresolved = unresolved.clone();
            return Err(ChainError::Unresolved(Box::new(unresolved)));
        }
        Ok(Self {
            chain: Candidate::of_chain(&chain),
            on_context_overflow: rescue(Rescue::ContextOverflow, &selection, &config),
            on_content_refusal: rescue(Rescue::ContentRefusal, &selection, &config),
            selection,
            config,
        })
    }

    /// The route of these models in this order, with the aliases, the facts and the rescues of `config`. Turns with images
    /// go to these, too, and not to the image model.
    ///
    /// # Errors
    ///
    /// As [`Route::new`].
    pub fn of_models(config: &ChainConfig, models: Vec<Reference>) -> Result<Self, ChainError> {
        let mut models = models.into_iter();
        let primary = models.next();
        let mut own = config.clone();
        (own.agent, own.image) = (ModelChainConfig::default(), ModelChainConfig::default());
        own.defaults = ModelChainConfig::new(primary, Fallbacks::from_list(models.collect(), None));
        Self::new(own)
    }

    /// What its turns begin with where no session says otherwise.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The models to try, in order.
    pub fn candidates(&self) -> &[Candidate] {
        &self.chain
    }

    /// The chain config behind it.
    pub fn config(&self) -> &ChainConfig {
        &self.config
    }

    /// The chain that a selection leads to, and its rescues.
    pub(crate) fn walk(&self, selection: &Selection) -> [Vec<Candidate>; 3] {
        if *selection == self.selection {
            return [self.chain.clone(), self.on_context_overflow.clone(), self.on_content_refusal.clone()];
        }
        walk(selection, &self.config)
    }
}

/// The chain that a selection leads to, and its rescues: of a context overflow, of a content refusal.
pub(crate) fn walk(selection: &Selection, config: &ChainConfig) -> [Vec<Candidate>; 3] {
    [
        Candidate::of_chain(&resolve(selection, config, None)),
        rescue(Rescue::ContextOverflow, selection, config),
        rescue(Rescue::ContentRefusal, selection, config),
    ]
}

fn rescue(rescue: Rescue, selection: &Selection, config: &ChainConfig) -> Vec<Candidate> {
    let chain = resolve_rescue(rescue, selection, config);
    chain.map(|chain| Candidate::of_chain(&chain)).unwrap_or_default()
}

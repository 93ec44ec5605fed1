//! Names that people write by hand, looked up before anything is kept under them: what is kept under a slip of the pen
//! does nothing, and nobody is told.

use crate::{Engine, settings};
use failover_auth::{WindowScope, auth_aliases};
use failover_runner::health::Subject;
use failover_types::{ModelRef, ModelSelector, ProfileId, ProviderId};

/// A name that nothing stands behind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownName {
    /// No such provider.
    #[error("there is no provider {provider} here")]
    Provider {
        /// As it was written.
        provider: ProviderId,
        /// Those that there are.
        known: Vec<ProviderId>,
    },
    /// No such credential of this provider.
    #[error("there is no profile {profile} for {provider}")]
    Profile {
        /// As it was written.
        profile: ProfileId,
        /// Whose models were asked for.
        provider: ProviderId,
        /// Those that there are.
        known: Vec<ProfileId>,
    },
    /// A model of somebody else.
    #[error("{written} is a model of {other}, not of {provider}")]
    Foreign {
        /// As it was written.
        written: String,
        /// Whose it is.
        other: ProviderId,
        /// Whose models were asked for.
        provider: ProviderId,
    },
    /// A model that the config does not list among those that people may choose.
    #[error("the config does not let {model} be chosen")]
    NotAllowed {
        /// As it was written.
        model: ModelRef,
        /// Those that may be.
        known: Vec<ModelRef>,
    },
    /// Neither a model that the config speaks of, nor written as `provider/model`.
    #[error("the config speaks of no model {written:?} of {provider}")]
    Model {
        /// As it was written.
        written: String,
        /// Whose models were asked for.
        provider: ProviderId,
        /// Those that the config speaks of.
        known: Vec<ModelRef>,
    },
}

impl UnknownName {
    /// What to write instead.
    pub fn hint(&self) -> String {
        fn list<T: ToString>(known: &[T]) -> String {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        }
        match self {
            Self::Provider { known, .. } => format!("known are: {}", list(known)),
            Self::Profile { known, .. } => format!("known are: {}", list(known)),
            Self::NotAllowed { known, .. } => {
                format!("list it in agents.defaults.models; those that may be chosen are: {}", list(known))
            }
            Self::Foreign { provider, .. } => format!("name a model of {provider}"),
            Self::Model { written, provider, known } => {
                format!(
                    "known are: {}; any other is written with its provider: {provider}/{written}",
                    list(known)
                )
            }
        }
    }
}

impl Engine {
    /// Whether somebody can be asked for a choice at all: its provider is known, and its profile where it names one.
    ///
    /// # Errors
    ///
    /// [`UnknownName`].
    pub fn check_choice(&self, choice: &ModelSelector) -> Result<(), UnknownName> {
        let provider = choice.model.provider();
        if !self.adapters().serves(provider) {
            return Err(self.no_provider(provider));
        }
        match &choice.profile {
            Some(profile) => self.check_profile_for(profile, provider),
            None => Ok(()),
        }
    }

    /// Whether there is such a credential, of the provider that its name says.
    ///
    /// # Errors
    ///
    /// [`UnknownName`].
    pub fn check_profile(&self, profile: &ProfileId) -> Result<(), UnknownName> {
        self.check_profile_for(profile, &profile.provider_id())
    }

    /// Whether there is such a credential, or such a provider.
    ///
    /// # Errors
    ///
    /// [`UnknownName`].
    pub fn check_subject(&self, subject: &Subject) -> Result<(), UnknownName> {
        match subject {
            Subject::Profile(profile) => self.check_profile(profile),
            Subject::Provider(provider) if self.adapters().serves(provider) => Ok(()),
            Subject::Provider(provider) => Err(self.no_provider(provider)),
        }
    }

    fn no_provider(&self, provider: &ProviderId) -> UnknownName {
        let known = self.adapters().providers().cloned().collect();
        UnknownName::Provider { provider: provider.clone(), known }
    }

    fn check_profile_for(&self, profile: &ProfileId, provider: &ProviderId) -> Result<(), UnknownName> {
        let mut by_provider = self.profiles_by_provider();
        let mut known: Vec<ProfileId> =
            owners(provider).filter_map(|owner| by_provider.remove(&owner)).flatten().collect();
        if known.contains(profile) {
            return Ok(());
        }
        known.sort();
        Err(UnknownName::Profile { profile: profile.clone(), provider: provider.clone(), known })
    }

    /// Whether a person may choose this for a session: [`Engine::check_choice`], and the config lets it be chosen.
    ///
    /// # Errors
    ///
    /// [`UnknownName`].
    pub fn check_selection(&self, choice: &ModelSelector) -> Result<(), UnknownName> {
        self.check_choice(choice)?;
        let chain = self.chain_config();
        let model = chain.aliases.normalize(&choice.model);
        if chain.may_select(&model) {
            return Ok(());
        }
        let known = chain.allowed.iter().flatten().cloned().collect();
        Err(UnknownName::NotAllowed { model, known })
    }

    /// The model that a person means who speaks of `provider`, or of a credential of its: by the provider's own name for
    /// it or an alias, where the config speaks of it; any other by `provider/model`.
    ///
    /// # Errors
    ///
    /// [`UnknownName`].
    pub fn model_meant(&self, provider: &ProviderId, written: &str) -> Result<ModelRef, UnknownName> {
        // A credential may serve the models of a provider that is called otherwise (requirement A-9).
        let theirs = |of: &ProviderId| owners(of).any(|owner| owner == *provider);
        let models = settings::models(self.reader().config(), self.chain_config());
        let known: Vec<ModelRef> = models.into_iter().filter(|model| theirs(model.provider())).collect();
        if let Some(model) = known.iter().find(|model| model.model() == written) {
            return Ok(model.clone());
        }
        let provider = provider.clone();
        match self.chain_config().aliases.read(written) {
            Ok(choice) if choice.profile.is_none() && theirs(choice.model.provider()) => Ok(choice.model),
            Ok(choice)
                if !theirs(choice.model.provider()) && self.adapters().serves(choice.model.provider()) =>
            {
                let other = choice.model.provider().clone();
                Err(UnknownName::Foreign { written: written.to_owned(), other, provider })
            }
            Ok(_) | Err(_) => Err(UnknownName::Model { written: written.to_owned(), provider, known }),
        }
    }

    /// What a pause of `subject`, or a window that is lifted by hand, covers where a person names a model. What stands
    /// already may be ended (`ends`) under whatever name it has.
    ///
    /// # Errors
    ///
    /// [`UnknownName`].
    pub fn scope_meant(
        &self,
        subject: &Subject,
        written: &str,
        ends: bool,
    ) -> Result<WindowScope, UnknownName> {
        let scope = WindowScope::Model(written.into());
        let usage = self.runner().health().usage(subject);
        let stands = usage.pauses().any(|pause| pause.scope == scope)
            || usage.windows().iter().any(|window| window.scope == scope);
        if ends && stands {
            return Ok(scope);
        }
        let provider = match subject {
            Subject::Profile(profile) => profile.provider_id(),
            Subject::Provider(provider) => provider.clone(),
        };
        self.model_meant(&provider, written).map(|model| WindowScope::Model(model.model().into()))
    }
}

/// Whose credentials serve the models of `provider`.
fn owners(provider: &ProviderId) -> impl Iterator<Item = ProviderId> {
    let aliases = auth_aliases(provider).iter().filter_map(|alias| ProviderId::new(alias).ok());
    std::iter::once(provider.clone()).chain(aliases)
}

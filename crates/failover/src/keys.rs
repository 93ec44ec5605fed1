//! Which profiles there are, and the secret of each: references of the config first, then the agent's secret store.

use crate::providers::variables;
use failover_auth::{Profile, UsageStats};
use failover_config::Config;
use failover_credentials::{CredentialError, Credentials, Environment, Secrets, SourceError};
use failover_provider::AttemptFailure;
use failover_runner::CredentialSource;
use failover_types::{
    BoxFuture, Credential, CredentialKind, ProfileId, ProviderId, ResolvedCredential, Secret, SecretSource,
    Timestamp,
};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Where the secret of a profile of the config comes from.
#[derive(Clone)]
pub(crate) enum Origin {
    /// The server wants none.
    Keyless,
    /// Read at each use.
    Reference(CredentialKind, SecretSource),
}

/// Where the secrets of the config's profiles come from. There are few: comparing is quicker than hashing.
pub(crate) type Origins = BTreeMap<ProfileId, Origin>;

/// The secrets of an engine.
pub(crate) struct Keys {
    config: RwLock<Origins>,
    secrets: Secrets,
    stored: Credentials,
}

/// A credential; `None` for a server that wants none.
type Resolved = Result<Option<ResolvedCredential>, AttemptFailure>;

/// What the config says of profiles: which there are, and which cannot be used.
pub(crate) struct Listed {
    /// For rotation; without any usage yet.
    pub(crate) profiles: Vec<Profile>,
    /// A line for each reference that leads nowhere.
    pub(crate) warnings: Vec<String>,
    origins: Origins,
}

impl Listed {
    /// Reads the references of the config. A variable that is not set takes its profile out, and nothing else: the
    /// others may still answer.
    pub(crate) fn new(config: &Config, environment: &Environment) -> Self {
        let mut listed = Self { profiles: Vec::new(), warnings: Vec::new(), origins: Origins::new() };
        for (id, profile) in &config.auth.profiles {
            if let Some(key) = &profile.key {
                listed.reference(
                    id,
                    &profile.provider,
                    key.source(),
                    environment,
                    &format!("auth.profiles.{id}"),
                );
            }
        }
        for (provider, settings) in &config.models.providers {
            let Ok(id) = ProfileId::for_account(provider, None) else { continue };
            if let Some(key) = &settings.api_key {
                let path = format!("models.providers.{provider}.apiKey");
                listed.reference(&id, provider, key.source(), environment, &path);
            }
        }
        listed
    }

    fn reference(
        &mut self,
        id: &ProfileId,
        provider: &ProviderId,
        source: &SecretSource,
        environment: &Environment,
        path: &str,
    ) {
        if let SecretSource::Env(name) = source
            && environment(name).is_none_or(|value| value.trim().is_empty())
        {
            self.warnings.push(format!("{id} is left out: the variable {name} is not set ({path})"));
            return;
        }
        self.add(id.clone(), provider, source.clone());
    }

    fn add(&mut self, id: ProfileId, provider: &ProviderId, source: SecretSource) {
        let credential = Credential::ApiKey { provider: provider.clone(), key: source.clone() };
        self.profiles.push(Profile::new(id.clone(), &credential, UsageStats::default()));
        self.origins.insert(id, Origin::Reference(CredentialKind::ApiKey, source));
    }

    /// The conventional variable of a provider without any profile, where it is set: `OPENAI_API_KEY`.
    pub(crate) fn conventional(&mut self, provider: &ProviderId, environment: &Environment) -> bool {
        let is_set = |name: &String| environment(name).is_some_and(|value| !value.trim().is_empty());
        let Some(name) = variables(provider).into_iter().find(is_set) else { return false };
        if let Ok(id) = ProfileId::for_account(provider, None) {
            self.add(id, provider, SecretSource::Env(name));
        }
        true
    }

    /// A provider of the operator's own that is called without a key.
    pub(crate) fn keyless(&mut self, provider: &ProviderId) {
        let Ok(id) = ProfileId::for_account(provider, None) else { return };
        self.add(id.clone(), provider, SecretSource::Env(variable(provider)));
        self.origins.insert(id, Origin::Keyless);
    }

    /// Whether the provider has a profile.
    pub(crate) fn has(&self, provider: &ProviderId) -> bool {
        self.profiles.iter().any(|profile| profile.provider == *provider)
    }

    /// Where the secrets of these profiles come from.
    pub(crate) fn into_origins(self) -> Origins {
        self.origins
    }
}

impl Keys {
    /// The secrets of the config's profiles, and of those in the store.
    pub(crate) fn new(origins: Origins, secrets: Secrets, stored: Credentials) -> Self {
        Self { config: RwLock::new(origins), secrets, stored }
    }

    /// Whether the secret of a profile comes from the config or by custom, and not from the agent's store.
    pub(crate) fn is_from_config(&self, profile: &ProfileId) -> bool {
        self.config.read().unwrap_or_else(PoisonError::into_inner).contains_key(profile)
    }

    /// The profiles of the config have changed: a conventional one may have given way to a stored one.
    pub(crate) fn set_origins(&self, origins: Origins) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = origins;
    }

    /// The credential of a profile of the config, where nobody need wait for its secret.
    fn at_hand(&self, profile: &ProfileId) -> Option<Resolved> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        let Origin::Reference(kind, source) = config.get(profile)? else { return Some(Ok(None)) };
        let resolved = named(profile, *kind, self.secrets.at_hand(source)?);
        Some(resolved.map(Some).map_err(|error| error.into_failure(profile.provider_id())))
    }

    fn origin(&self, profile: &ProfileId) -> Option<Origin> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).get(profile).cloned()
    }
}

/// The variable in which a provider's key is kept by custom.
pub(crate) fn variable(provider: &ProviderId) -> String {
    let upper = provider.as_str().to_ascii_uppercase();
    format!("{}_API_KEY", upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_"))
}

impl CredentialSource for Keys {
    fn resolve<'a>(&'a self, profile: &'a ProfileId, _now: Timestamp) -> BoxFuture<'a, Resolved> {
        // What is at hand needs no future that is large enough to wait for a command.
        if let Some(read) = self.at_hand(profile) {
            return Box::pin(std::future::ready(read));
        }
        Box::pin(async move {
            let resolved = match self.origin(profile) {
                Some(Origin::Keyless) => return Ok(None),
                Some(Origin::Reference(kind, source)) => {
                    named(profile, kind, self.secrets.read(&source).await)
                }
                None => self.stored.resolve(profile).await,
            };
            resolved.map(Some).map_err(|error| error.into_failure(profile.provider_id()))
        })
    }
}

/// What was read, as the credential of a profile.
fn named(
    profile: &ProfileId,
    kind: CredentialKind,
    read: Result<Secret, SourceError>,
) -> Result<ResolvedCredential, CredentialError> {
    read.map(|secret| ResolvedCredential::new(profile.clone(), kind, secret))
        .map_err(|source| CredentialError::Source { profile: profile.clone(), source })
}

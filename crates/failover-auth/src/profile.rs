//! The profiles that an agent has, without their secrets.

use crate::UsageStats;
use failover_types::{Credential, CredentialKind, ProfileId, ProviderId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A stored profile: what routing needs to know, and its usage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// Its id.
    pub id: ProfileId,
    /// Whose credential it is.
    pub provider: ProviderId,
    /// Which kind of credential.
    pub kind: CredentialKind,
    /// When its bearer part runs out, where it does.
    pub expires: Option<Timestamp>,
    /// Whether it can be renewed once it has run out.
    pub refreshable: bool,
    /// Its routing state.
    pub usage: UsageStats,
}

impl Profile {
    /// What routing needs to know of a credential.
    pub fn new(id: ProfileId, credential: &Credential, usage: UsageStats) -> Self {
        let refreshable =
            matches!(credential, Credential::OAuth(oauth) if !oauth.refresh.expose().is_empty());
        Self {
            id,
            provider: credential.provider().clone(),
            kind: credential.kind(),
            expires: credential.expires(),
            refreshable,
            usage,
        }
    }

    /// Whether its bearer part has run out.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// A profile as config names it (`auth.profiles`): metadata and routing only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfiguredProfile {
    /// Its id.
    pub id: ProfileId,
    /// Whose credential it should be.
    pub provider: ProviderId,
    /// Which kind it should be, where config says so.
    pub kind: Option<CredentialKind>,
}

impl ConfiguredProfile {
    /// A configured profile.
    pub fn new(id: ProfileId, provider: ProviderId, kind: Option<CredentialKind>) -> Self {
        Self { id, provider, kind }
    }

    /// Whether a stored credential is of the kind that was meant. A static token may stand in for OAuth: both are
    /// bearers.
    pub(crate) fn accepts(&self, kind: CredentialKind) -> bool {
        match self.kind {
            None => true,
            Some(CredentialKind::OAuth) => matches!(kind, CredentialKind::OAuth | CredentialKind::Token),
            Some(wanted @ (CredentialKind::Token | CredentialKind::ApiKey)) => wanted == kind,
        }
    }
}

/// The stored profiles of an agent, found by id and by provider.
#[derive(Clone, Debug, Default)]
pub struct ProfileSet {
    by_id: BTreeMap<ProfileId, Profile>,
    by_provider: BTreeMap<ProviderId, BTreeSet<ProfileId>>,
}

impl ProfileSet {
    /// No profiles.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a profile.
    pub fn insert(&mut self, profile: Profile) {
        self.remove(&profile.id.clone());
        self.by_provider.entry(profile.provider.clone()).or_default().insert(profile.id.clone());
        self.by_id.insert(profile.id.clone(), profile);
    }

    /// Takes a profile out.
    pub fn remove(&mut self, id: &ProfileId) -> Option<Profile> {
        let old = self.by_id.remove(id)?;
        if let Some(ids) = self.by_provider.get_mut(&old.provider) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_provider.remove(&old.provider);
            }
        }
        Some(old)
    }

    /// A profile by id.
    pub fn get(&self, id: &ProfileId) -> Option<&Profile> {
        self.by_id.get(id)
    }

    /// Replaces the routing state of a profile; `false` if there is no such profile.
    pub fn set_usage(&mut self, id: &ProfileId, usage: UsageStats) -> bool {
        self.by_id.get_mut(id).map(|profile| profile.usage = usage).is_some()
    }

    /// The profiles of one provider, by id.
    pub fn of_provider(&self, provider: &ProviderId) -> impl Iterator<Item = &Profile> {
        self.by_provider.get(provider).into_iter().flatten().filter_map(|id| self.by_id.get(id))
    }

    /// Every profile, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.by_id.values()
    }

    /// How many profiles there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

impl FromIterator<Profile> for ProfileSet {
    fn from_iter<I: IntoIterator<Item = Profile>>(profiles: I) -> Self {
        let mut set = Self::new();
        for profile in profiles {
            set.insert(profile);
        }
        set
    }
}

/// Providers whose credentials serve `provider` too: the OpenAI models take an API key or a subscription.
pub fn auth_aliases(provider: &ProviderId) -> &'static [&'static str] {
    match provider.as_str() {
        "openai" => &["openai-codex"],
        _ => &[],
    }
}

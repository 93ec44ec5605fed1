//! In which order the profiles of a provider are tried, and who is left out.

use crate::{Availability, ConfiguredProfile, Profile, ProfileSet, UsageStats, auth_aliases, availability};
use failover_types::{CredentialKind, ProfileId, ProviderId, Timestamp};
use std::fmt;

/// What an order is made from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OrderRequest<'a> {
    /// Whose models are asked.
    pub provider: &'a ProviderId,
    /// The provider's own name of the model that is wanted; windows of other models are ignored.
    pub model: Option<&'a str>,
    /// The agent's profiles.
    pub profiles: &'a ProfileSet,
    /// The provider's own record.
    pub provider_usage: Option<&'a UsageStats>,
    /// The order that was stored for the agent. Empty means none.
    pub stored_order: &'a [ProfileId],
    /// The order in config (`auth.order`). Empty means none.
    pub config_order: &'a [ProfileId],
    /// The profiles in config (`auth.profiles`), of all providers.
    pub configured: &'a [ConfiguredProfile],
    /// The time.
    pub now: Timestamp,
}

impl<'a> OrderRequest<'a> {
    /// An order of the stored profiles of `provider`, without any configuration.
    pub fn new(provider: &'a ProviderId, profiles: &'a ProfileSet, now: Timestamp) -> Self {
        Self {
            provider,
            model: None,
            profiles,
            provider_usage: None,
            stored_order: &[],
            config_order: &[],
            configured: &[],
            now,
        }
    }

    /// For requests of one model.
    #[must_use]
    pub fn model(mut self, model: Option<&'a str>) -> Self {
        self.model = model;
        self
    }

    /// With the provider's own record.
    #[must_use]
    pub fn provider_usage(mut self, usage: Option<&'a UsageStats>) -> Self {
        self.provider_usage = usage;
        self
    }

    /// With the order that was stored for the agent.
    #[must_use]
    pub fn stored_order(mut self, order: &'a [ProfileId]) -> Self {
        self.stored_order = order;
        self
    }

    /// Why `profile` is not in `order`, which was made from this request; `None` where it is. A profile that nothing
    /// lists is told from one that nobody stored.
    pub fn why_left_out(&self, order: &Order, profile: &ProfileId) -> Option<LeftOutReason> {
        if order.position(profile).is_some() {
            return None;
        }
        let listed = order.left_out.iter().find(|out| out.profile == *profile).map(|out| out.reason);
        let stored = || match self.profiles.get(profile) {
            None => LeftOutReason::Unknown,
            Some(found) if serves(self.provider, &found.provider) => LeftOutReason::NotListed,
            Some(_) => LeftOutReason::WrongProvider,
        };
        Some(listed.unwrap_or_else(stored))
    }

    /// With what config says.
    #[must_use]
    pub fn config(mut self, order: &'a [ProfileId], profiles: &'a [ConfiguredProfile]) -> Self {
        self.config_order = order;
        self.configured = profiles;
        self
    }
}

/// Where an order comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OrderSource {
    /// The order stored for the agent.
    StoredOrder,
    /// `auth.order` in config.
    ConfigOrder,
    /// `auth.profiles` in config, in round robin.
    ConfigProfiles,
    /// The stored profiles, in round robin.
    StoredProfiles,
}

impl OrderSource {
    /// A stable code for lists and logs.
    pub fn code(self) -> &'static str {
        match self {
            Self::StoredOrder => "stored_order",
            Self::ConfigOrder => "config_order",
            Self::ConfigProfiles => "config_profiles",
            Self::StoredProfiles => "stored_profiles",
        }
    }

    fn is_explicit(self) -> bool {
        matches!(self, Self::StoredOrder | Self::ConfigOrder)
    }
}

/// Why a profile stands where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// The explicit order says so.
    Listed,
    /// Kind of key, then least recently used.
    RoundRobin,
    /// It is out: behind all others, the one that is free soonest first.
    Waiting,
    /// The session's pin puts it first.
    Pinned,
}

impl Why {
    /// A stable code for lists and logs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::RoundRobin => "round_robin",
            Self::Waiting => "waiting",
            Self::Pinned => "pinned",
        }
    }
}

/// One profile in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot {
    /// Which profile.
    pub profile: ProfileId,
    /// Which kind of credential.
    pub kind: CredentialKind,
    /// Whether it may be used now.
    pub availability: Availability,
    /// Why it stands here.
    pub why: Why,
}

/// Why a profile is not in an order at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// No credential is stored under this id.
    Unknown,
    /// The credential belongs to another provider.
    WrongProvider,
    /// The credential is of another kind than config says.
    WrongKind,
    /// The token has run out and cannot be renewed.
    Expired,
    /// A person paused it.
    Paused,
    /// A credential is stored, and the explicit order or the config does not list it.
    NotListed,
}

impl LeftOutReason {
    /// A stable code for lists and logs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::WrongProvider => "wrong_provider",
            Self::WrongKind => "wrong_kind",
            Self::Expired => "expired",
            Self::Paused => "paused",
            Self::NotListed => "not_listed",
        }
    }
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no credential is stored for it",
            Self::WrongProvider => "its credential belongs to another provider",
            Self::WrongKind => "its credential is of another kind than the config says",
            Self::Expired => "its token has run out and cannot be renewed",
            Self::Paused => "it is paused",
            Self::NotListed => "the order of its provider does not list it",
        })
    }
}

/// A profile that is not in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Which profile.
    pub profile: ProfileId,
    /// Why.
    pub reason: LeftOutReason,
}

impl LeftOut {
    /// A profile that is left out.
    pub fn new(profile: ProfileId, reason: LeftOutReason) -> Self {
        Self { profile, reason }
    }
}

/// The profiles of a provider in the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Order {
    /// Usable ones first; those that are out last, by soonest expiry.
    pub slots: Vec<Slot>,
    /// Who is not in it, and why.
    pub left_out: Vec<LeftOut>,
    /// Where it comes from.
    pub source: OrderSource,
}

impl Order {
    /// Those that may be used now.
    pub fn usable(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.availability.is_usable())
    }

    /// The place of a profile.
    pub fn position(&self, profile: &ProfileId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.profile == *profile)
    }
}

/// Whether a credential of `owner` may be used for the models of `provider` (requirement A-9).
fn serves(provider: &ProviderId, owner: &ProviderId) -> bool {
    owner == provider || auth_aliases(provider).contains(&owner.as_str())
}

/// Puts the profiles of a provider in order. Deterministic; O(k log k) in the profiles that are looked at.
pub fn order(request: &OrderRequest<'_>) -> Order {
    let serves = |provider: &ProviderId| serves(request.provider, provider);
    let (source, ids) = candidates(request, serves);
    let whole = request
        .provider_usage
        .map_or(Availability::Usable, |stats| availability(stats, request.model, request.now));

    let mut left_out = Vec::new();
    let mut ranked: Vec<(usize, &Profile, Availability)> = Vec::with_capacity(ids.len());
    for (at, id) in ids.into_iter().enumerate() {
        if ranked.iter().any(|(_, profile, _)| profile.id == *id)
            || left_out.iter().any(|out: &LeftOut| out.profile == *id)
        {
            continue;
        }
        match judge(request, id, serves) {
            Ok(profile) => {
                let own = availability(&profile.usage, request.model, request.now);
                ranked.push((at, profile, own.and(whole.clone())));
            }
            Err(reason) => left_out.push(LeftOut { profile: id.clone(), reason }),
        }
    }
    // `None` sorts first: usable ones come before those that wait, which come by their end.
    ranked.sort_by(|(a_at, a, a_state), (b_at, b, b_state)| {
        let listed = || a_at.cmp(b_at);
        let robin = || rotation(a, request.now).cmp(&rotation(b, request.now));
        let ties = || if source.is_explicit() { listed() } else { robin() };
        a_state.until().cmp(&b_state.until()).then_with(ties)
    });
    let slots = ranked.into_iter().map(|(_, profile, availability)| {
        let why = match () {
            () if !availability.is_usable() => Why::Waiting,
            () if source.is_explicit() => Why::Listed,
            () => Why::RoundRobin,
        };
        Slot { profile: profile.id.clone(), kind: profile.kind, availability, why }
    });
    Order { slots: slots.collect(), left_out, source }
}

/// Round robin: kind of key, then a bearer that works without a refresh, then the longest unused, then the id.
fn rotation(profile: &Profile, now: Timestamp) -> (CredentialKind, bool, Option<Timestamp>, &ProfileId) {
    (profile.kind, profile.is_expired(now), profile.usage.last_used(), &profile.id)
}

/// The first source that names anybody.
fn candidates<'a>(
    request: &OrderRequest<'a>,
    serves: impl Fn(&ProviderId) -> bool,
) -> (OrderSource, Vec<&'a ProfileId>) {
    if !request.stored_order.is_empty() {
        return (OrderSource::StoredOrder, request.stored_order.iter().collect());
    }
    if !request.config_order.is_empty() {
        return (OrderSource::ConfigOrder, request.config_order.iter().collect());
    }
    let configured: Vec<_> = request
        .configured
        .iter()
        .filter(|profile| serves(&profile.provider))
        .map(|profile| &profile.id)
        .collect();
    if !configured.is_empty() {
        return (OrderSource::ConfigProfiles, configured);
    }
    let own = request.profiles.of_provider(request.provider);
    let aliased = auth_aliases(request.provider)
        .iter()
        .filter_map(|alias| ProviderId::new(alias).ok())
        .flat_map(|alias| request.profiles.of_provider(&alias).collect::<Vec<_>>());
    (OrderSource::StoredProfiles, own.chain(aliased).map(|profile| &profile.id).collect())
}

fn judge<'a>(
    request: &OrderRequest<'a>,
    id: &ProfileId,
    serves: impl Fn(&ProviderId) -> bool,
) -> Result<&'a Profile, LeftOutReason> {
    let profile = request.profiles.get(id).ok_or(LeftOutReason::Unknown)?;
    let configured = request.configured.iter().find(|configured| configured.id == *id);
    if !serves(&profile.provider) || configured.is_some_and(|configured| !serves(&configured.provider)) {
        return Err(LeftOutReason::WrongProvider);
    }
    if configured.is_some_and(|configured| !configured.accepts(profile.kind)) {
        return Err(LeftOutReason::WrongKind);
    }
    if profile.is_expired(request.now) && !profile.refreshable {
        return Err(LeftOutReason::Expired);
    }
    if profile.usage.paused(request.model).is_some()
        || request.provider_usage.is_some_and(|usage| usage.paused(request.model).is_some())
    {
        return Err(LeftOutReason::Paused);
    }
    Ok(profile)
}

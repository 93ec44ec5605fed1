//! The profiles of an engine, as config, environment and store have them: read at the start, and again once somebody
//! has changed a credential or an order (requirement A-23).

use crate::keys::{Keys, Listed, Origins};
use crate::{providers, settings};
use failover_auth::{ProfileSet, UsageStats, auth_aliases};
use failover_config::{Config, Loaded};
use failover_credentials::{Environment, Profiles, Unreadable};
use failover_runner::health::{Health, Roster};
use failover_store::{StoreError, Version};
use failover_types::{Clock, ProfileId, ProviderId, Timestamp};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How old a look at the store may be: a change made elsewhere is known within a second (requirement K-3).
const FRESH: Duration = Duration::from_millis(500);
/// How long an engine that is made waits for its credentials: without them there is little that it could ask.
const FIRST: Duration = Duration::from_secs(2);

/// Reads the roster.
pub(crate) struct Reader {
    loaded: Loaded,
    /// The providers that the config or the caller names.
    named: Vec<ProviderId>,
    environment: Environment,
    profiles: Profiles,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
    reading: AtomicBool,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    version: Option<Version>,
    at: Timestamp,
}

/// What was read.
pub(crate) struct Read {
    pub(crate) roster: Roster,
    pub(crate) origins: Origins,
    /// What was left out, a line each.
    pub(crate) warnings: Vec<String>,
}

/// What the store holds.
#[derive(Default)]
struct Stored {
    set: ProfileSet,
    unreadable: Vec<Unreadable>,
    orders: HashMap<ProviderId, Vec<ProfileId>>,
}

impl Reader {
    pub(crate) fn new(
        loaded: Loaded,
        named: Vec<ProviderId>,
        environment: Environment,
        profiles: Profiles,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (seen, reading) = (Mutex::default(), AtomicBool::new(false));
        Self { loaded, named, environment, profiles, clock, seen, reading }
    }

    /// What the operator wrote.
    pub(crate) fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The providers that the config or the caller names.
    pub(crate) fn providers(&self) -> Vec<ProviderId> {
        self.named.clone()
    }

    /// Whether `auth.order` names the profile.
    pub(crate) fn is_in_config_order(&self, provider: &ProviderId, profile: &ProfileId) -> bool {
        self.loaded.config.auth.order.get(provider).is_some_and(|order| order.contains(profile))
    }

    /// Reads everything for the first time. A store that fails, or takes its time, costs its profiles until the next
    /// look, and a warning.
    pub(crate) async fn first(&self) -> Read {
        let now = self.clock.now();
        self.seen().at = now;
        let until = now.after(FIRST);
        let why = tokio::select! {
            biased;
            stored = self.all(now) => match stored {
                Ok(stored) => return self.put_together(stored, Some(until)).await,
                Err(error) => error.to_string(),
            },
            () = self.clock.sleep_until(until) => format!("the store took longer than {} s", FIRST.as_secs()),
        };
        let mut read = self.put_together(Stored::default(), Some(now)).await;
        read.warnings.insert(0, format!("stored credentials cannot be read: {why}"));
        read
    }

    async fn all(&self, now: Timestamp) -> Result<Stored, StoreError> {
        // Looked at before the rows are: what changes in between is read again.
        let version = self.profiles.roster_version().await?;
        let stored = self.stored().await?;
        *self.seen() = Seen { version, at: now };
        Ok(stored)
    }

    /// Looks whether somebody changed a credential or an order, if the last look is old, and takes that over. What comes
    /// later than `until` goes on behind the caller.
    pub(crate) async fn refresh(self: &Arc<Self>, health: &Arc<Health>, keys: &Arc<Keys>, until: Timestamp) {
        let now = self.clock.now();
        let Seen { at, .. } = *self.seen();
        if now >= at && now.since(at) < FRESH || self.reading.swap(true, Ordering::AcqRel) {
            return;
        }
        let (reader, health, keys) = (Arc::clone(self), Arc::clone(health), Arc::clone(keys));
        #[expect(clippy::disallowed_methods, reason = "a slow store must not hold a turn up")]
        let look = tokio::spawn(async move { reader.look(&health, &keys).await });
        tokio::select! {
            biased;
            _ = look => {}
            () = self.clock.sleep_until(until) => {}
        }
    }

    async fn look(&self, health: &Health, keys: &Keys) {
        let busy = Busy(&self.reading);
        let now = self.clock.now();
        match self.changed(now).await {
            Ok(None) => {}
            Ok(Some((stored, seen))) => {
                let Read { roster, origins, .. } = self.put_together(stored, None).await;
                keys.set_origins(origins);
                health.set_roster(roster);
                *self.seen() = seen;
            }
            Err(error) => {
                self.seen().at = now;
                tracing::warn!(%error, "the credentials cannot be read again; those known so far are used");
            }
        }
        drop(busy);
    }

    async fn changed(&self, now: Timestamp) -> Result<Option<(Stored, Seen)>, StoreError> {
        let version = self.profiles.roster_version().await?;
        self.seen().at = now;
        if self.seen().version == version {
            return Ok(None);
        }
        Ok(Some((self.stored().await?, Seen { version, at: now })))
    }

    async fn stored(&self) -> Result<Stored, StoreError> {
        let (set, unreadable) = self.profiles.load().await?;
        Ok(Stored { set, unreadable, orders: self.profiles.orders().await? })
    }

    /// `until` bounds the wait for what the store knows of keys that do not lie in it: a run reads that, too.
    async fn put_together(&self, stored: Stored, until: Option<Timestamp>) -> Read {
        let Self { loaded, named, environment, profiles, .. } = self;
        let Stored { mut set, unreadable, orders } = stored;
        let mut listed = Listed::new(&loaded.config, environment);
        let mut warnings = std::mem::take(&mut listed.warnings);
        warnings.extend(unreadable.iter().map(|row| format!("{} is left out: {}", row.key, row.error)));
        for provider in named {
            if listed.has(provider) || has_any(&set, provider) {
                continue;
            }
            if listed.conventional(provider, environment) || settings::names_key(&loaded.config, provider) {
                continue;
            }
            if providers::wants_key(provider) {
                let name = providers::variables(provider).join(" or ");
                warnings.push(format!(
                    "{provider} has no key: set {name}, or run `failover auth add {provider}`"
                ));
            } else {
                listed.keyless(provider);
            }
        }
        for mut profile in listed.profiles.drain(..) {
            let usage = profiles.usage(&profile.id);
            profile.usage = match until {
                None => usage.await.unwrap_or_default(),
                Some(until) => tokio::select! {
                    biased;
                    usage = usage => usage.unwrap_or_default(),
                    () = self.clock.sleep_until(until) => UsageStats::default(),
                },
            };
            set.insert(profile);
        }
        warnings.extend(settings::ghosts(loaded, |profile| set.get(profile).is_some()));
        let mut roster = Roster::default();
        roster.config_order = config_order(loaded, named, &set);
        roster.stored_order = orders;
        roster.profiles = set;
        roster.configured = settings::configured_profiles(&loaded.config);
        Read { roster, origins: listed.into_origins(), warnings }
    }

    /// Every change of it is whole, so a poisoned lock is still good.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The order of profiles per provider. One without any profile gets its default one as its order, which is then left out
/// as unknown: without that the runner would ask under that name, fail, and hold the failure against it.
fn config_order(
    loaded: &Loaded,
    named: &[ProviderId],
    set: &ProfileSet,
) -> HashMap<ProviderId, Vec<ProfileId>> {
    let mut order: HashMap<_, _> = loaded.config.auth.order.clone().into_iter().collect();
    for provider in named.iter().cloned() {
        if !has_any(set, &provider) {
            let id = ProfileId::for_account(&provider, None);
            order.entry(provider).or_insert_with(Vec::new).extend(id);
        }
    }
    order
}

/// Whether a credential is known that serves `provider` (requirement A-9).
fn has_any(set: &ProfileSet, provider: &ProviderId) -> bool {
    let aliases = auth_aliases(provider).iter().filter_map(|alias| ProviderId::new(alias).ok());
    std::iter::once(provider.clone()).chain(aliases).any(|owner| set.of_provider(&owner).next().is_some())
}

struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

//! The tables of one agent: credentials, usage, orders, leases.

use crate::rows::{CredentialRow, LeaseRow, OrderRow, RosterRow};
use failover_auth::{
    ClearScope, Lease, LeaseClaim, LeaseTerms, Profile, ProfileSet, UsageError, UsageStats, clear,
    probe_lease_key, profile_usage_key, provider_usage_key, resume, secret_stored,
};
use failover_store::{
    Durability, Edit, Expect, Key, KeyError, KeyValue, Prefix, StoreError, Swap, Table, Value, Version,
    Versioned, WriteOptions,
};
use failover_types::{AgentId, Credential, ModelRef, OAuth, ProfileId, ProviderId, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Rows read at a time when all profiles are listed.
const PAGE: usize = 256;
/// Tries of one swap. Each lost one means that another writer got through.
const MAX_ATTEMPTS: u32 = 128;
/// How many damaged records a look at all rows goes on past.
const MAX_DAMAGED: u32 = 1_000;
/// Names in a stored order.
const MAX_ORDER: usize = 1_000;
/// How long a lease that ran out is remembered.
const REMEMBER_LEASE: Duration = Duration::from_hours(1);

/// The tables of one agent. Clones share the store.
///
/// Keys are `agent/<id>/credential/<profile>`, `…/order/<provider>`, `…/refresh/<profile>`, `…/roster`, and those of
/// [`profile_usage_key`] and [`provider_usage_key`]. Credentials, orders and what a person steers are written durably,
/// the rest softly.
#[derive(Clone)]
pub struct Profiles {
    agent: AgentId,
    credentials: Table<CredentialRow>,
    store: Arc<dyn KeyValue>,
    orders: Table<OrderRow>,
    leases: Table<LeaseRow>,
    rosters: Table<RosterRow>,
}

impl fmt::Debug for Profiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Profiles of {}", self.agent)
    }
}

/// A credential as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCredential {
    /// The state that was read.
    pub version: Version,
    /// The credential.
    pub credential: Credential,
}

/// A record that was left out of a list because it cannot be read. It stays in the store as it is.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unreadable {
    /// Its key.
    pub key: Key,
    /// Why.
    pub error: StoreError,
}

impl Profiles {
    /// The tables of `agent` in `store`.
    pub fn new(store: Arc<dyn KeyValue>, agent: AgentId) -> Self {
        Self {
            agent,
            credentials: Table::new(Arc::clone(&store)),
            orders: Table::new(Arc::clone(&store)),
            leases: Table::new(Arc::clone(&store)),
            rosters: Table::new(Arc::clone(&store)),
            store,
        }
    }

    /// Whose tables these are.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    fn key(&self, kind: &str, rest: &[&str]) -> Result<Key, StoreError> {
        let segments: Vec<&str> =
            ["agent", self.agent.as_str(), kind].into_iter().chain(rest.iter().copied()).collect();
        Key::new(&segments).map_err(|e| bad_key(kind, rest, &e))
    }

    fn prefix(&self, below: &[&str]) -> Result<Prefix, StoreError> {
        let segments: Vec<&str> =
            ["agent", self.agent.as_str()].into_iter().chain(below.iter().copied()).collect();
        Prefix::new(&segments).map_err(|e| bad_key("prefix", below, &e))
    }

    fn usage_key(&self, profile: &ProfileId) -> Result<Key, StoreError> {
        profile_usage_key(&self.agent, profile).map_err(|e| bad_key("usage", &[profile.as_str()], &e))
    }

    fn provider_key(&self, provider: &ProviderId) -> Result<Key, StoreError> {
        provider_usage_key(&self.agent, provider).map_err(|e| bad_key("usage", &[provider.as_str()], &e))
    }

    /// Reads a credential.
    ///
    /// # Errors
    ///
    /// As [`Table::read`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn credential(&self, profile: &ProfileId) -> Result<Option<StoredCredential>, StoreError> {
        let key = self.key("credential", &[profile.as_str()])?;
        let found = self.credentials.read(&key).await?;
        Ok(found.map(|stored| StoredCredential { version: stored.version, credential: stored.row.0 }))
    }

    /// Stores a credential durably, over whatever stands there, and clears what was held against an older secret in
    /// auth and billing.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may or may not have been done.
    pub async fn put(
        &self,
        profile: &ProfileId,
        credential: &Credential,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let key = self.key("credential", &[profile.as_str()])?;
        let put = |_: Option<&CredentialRow>| Edit::Put(CredentialRow(credential.clone()));
        self.credentials.update(&key, WriteOptions::durable(), put).await?;
        self.update_usage(profile, |stats| secret_stored(stats, now)).await?;
        self.mark_roster().await
    }

    /// Puts a new OAuth pair durably in the place of `old`, unless another stands there by now. Gives back the pair
    /// that stands afterwards; `None` where the profile is gone or holds no pair any more.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may or may not have been done.
    pub async fn replace_pair(
        &self,
        profile: &ProfileId,
        old: &OAuth,
        new: &OAuth,
    ) -> Result<Option<OAuth>, StoreError> {
        let key = self.key("credential", &[profile.as_str()])?;
        let replace = |row: Option<&CredentialRow>| match row {
            Some(CredentialRow(Credential::OAuth(stands))) if stands.refresh == old.refresh => {
                Edit::Put(CredentialRow(Credential::OAuth(new.clone())))
            }
            _ => Edit::Keep,
        };
        let stands = self.credentials.update(&key, WriteOptions::durable(), replace).await?;
        // The pair is durable: that somebody learns of its new end a little later is no reason to lose it.
        let _ = self.mark_roster().await;
        Ok(stands.and_then(|stored| pair(stored.row.0)))
    }

    /// Takes a profile out: its credential, durably, and what was held against it, pauses included. Gives back whether
    /// there was a credential.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may or may not have been done.
    pub async fn remove(&self, profile: &ProfileId, now: Timestamp) -> Result<bool, StoreError> {
        let mut there = false;
        let delete = |row: Option<&CredentialRow>| {
            there = row.is_some();
            Edit::Delete
        };
        let key = self.key("credential", &[profile.as_str()])?;
        self.credentials.update(&key, WriteOptions::durable(), delete).await?;
        // The record stays, lifted: one that were gone would be brought back by whoever still remembers it.
        let lifted = |stats: &UsageStats| {
            let pauses: Vec<_> = stats.pauses().map(|pause| pause.scope.clone()).collect();
            let cleared = clear(stats, &ClearScope::All, now);
            pauses.into_iter().fold(cleared, |stats, scope| resume(&stats, scope, "removal", now))
        };
        self.update_usage(profile, lifted).await?;
        self.mark_roster().await?;
        Ok(there)
    }

    /// Names the state of credentials and orders: it changes with every change of theirs.
    ///
    /// # Errors
    ///
    /// Whatever the store says.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn roster_version(&self) -> Result<Option<Version>, StoreError> {
        Ok(self.store.get(&self.key("roster", &[])?).await?.map(|found| found.version))
    }

    async fn mark_roster(&self) -> Result<(), StoreError> {
        let key = self.key("roster", &[])?;
        let next = |row: Option<&RosterRow>| {
            Edit::Put(RosterRow { changes: row.copied().unwrap_or_default().changes.wrapping_add(1) })
        };
        self.rosters.update(&key, WriteOptions::soft(), next).await.map(drop)
    }

    /// Every profile with its usage. Records that cannot be read are told apart, and hide no other.
    ///
    /// # Errors
    ///
    /// Whatever the store says.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn load(&self) -> Result<(ProfileSet, Vec<Unreadable>), StoreError> {
        let mut unreadable = Vec::new();
        let mut usage = std::collections::HashMap::new();
        let prefix = self.prefix(&["usage", "profile"])?;
        let mut after: Option<Key> = None;
        loop {
            let page = self.store.scan(&prefix, after.as_ref(), PAGE).await?;
            for (key, found) in &page {
                match decode(key, found) {
                    Ok(stats) => {
                        usage.insert(last(key), stats);
                    }
                    Err(error) => unreadable.push(Unreadable { key: key.clone(), error }),
                }
            }
            after = page.last().map(|(key, _)| key.clone());
            if page.len() < PAGE {
                break;
            }
        }
        let mut set = ProfileSet::new();
        for (key, row) in self.rows(&self.credentials, "credential").await? {
            match (row, ProfileId::new(last(&key))) {
                (Ok(CredentialRow(credential)), Ok(id)) => {
                    let stats = usage.remove(id.as_str()).unwrap_or_default();
                    set.insert(Profile::new(id, &credential, stats));
                }
                (Err(error), _) => unreadable.push(Unreadable { key, error }),
                (Ok(_), Err(e)) => {
                    let error = StoreError::Misfit { key: key.to_string(), why: e.to_string() };
                    unreadable.push(Unreadable { key, error });
                }
            }
        }
        Ok((set, unreadable))
    }

    async fn rows<T: failover_store::Row>(
        &self,
        table: &Table<T>,
        kind: &str,
    ) -> Result<Vec<(Key, Result<T, StoreError>)>, StoreError> {
        let prefix =
            Prefix::new(&["agent", self.agent.as_str(), kind]).map_err(|e| bad_key(kind, &[], &e))?;
        let (mut all, mut damaged) = (Vec::new(), 0);
        let mut after: Option<Key> = None;
        loop {
            let page = match table.page(&prefix, after.as_ref(), PAGE).await {
                // Set aside by now: the same page comes without it, and those that stood beside it.
                Err(StoreError::Damaged { key, why }) if damaged < MAX_DAMAGED => {
                    damaged += 1;
                    if let Ok(name) = Key::from_stored(&key) {
                        all.push((name, Err(StoreError::Damaged { key, why })));
                    }
                    continue;
                }
                page => page?,
            };
            let full = page.len() == PAGE;
            after = page.last().map(|(key, _)| key.clone());
            all.extend(page.into_iter().map(|(key, row)| (key, row.map(|stored| stored.row))));
            if !full {
                return Ok(all);
            }
        }
    }

    /// Reads the usage of a profile.
    ///
    /// # Errors
    ///
    /// As [`Table::read`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn usage(&self, profile: &ProfileId) -> Result<UsageStats, StoreError> {
        self.read_usage(&self.usage_key(profile)?).await
    }

    /// Reads a provider's own record.
    ///
    /// # Errors
    ///
    /// As [`Table::read`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn provider_usage(&self, provider: &ProviderId) -> Result<UsageStats, StoreError> {
        self.read_usage(&self.provider_key(provider)?).await
    }

    async fn read_usage(&self, key: &Key) -> Result<UsageStats, StoreError> {
        self.store.get(key).await?.map_or_else(|| Ok(UsageStats::default()), |found| decode(key, &found))
    }

    /// Changes the usage of a profile by compare-and-swap; writes nothing where nothing changes. Gives back what
    /// stands afterwards. `change` may run several times.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may or may not have been done.
    pub async fn update_usage<F>(&self, profile: &ProfileId, change: F) -> Result<UsageStats, StoreError>
    where
        F: FnMut(&UsageStats) -> UsageStats + Send,
    {
        self.change_usage(&self.usage_key(profile)?, Durability::Soft, change).await
    }

    /// As [`Profiles::update_usage`], for a provider's own record.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may or may not have been done.
    pub async fn update_provider_usage<F>(
        &self,
        provider: &ProviderId,
        change: F,
    ) -> Result<UsageStats, StoreError>
    where
        F: FnMut(&UsageStats) -> UsageStats + Send,
    {
        self.change_usage(&self.provider_key(provider)?, Durability::Soft, change).await
    }

    /// As [`Profiles::update_usage`], but survives a power cut once acknowledged: for what a person decides, such as a
    /// pause.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may or may not have been done.
    pub async fn steer_usage<F>(&self, profile: &ProfileId, change: F) -> Result<UsageStats, StoreError>
    where
        F: FnMut(&UsageStats) -> UsageStats + Send,
    {
        self.change_usage(&self.usage_key(profile)?, Durability::Durable, change).await
    }

    /// As [`Profiles::steer_usage`], for a provider's own record.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may or may not have been done.
    pub async fn steer_provider_usage<F>(
        &self,
        provider: &ProviderId,
        change: F,
    ) -> Result<UsageStats, StoreError>
    where
        F: FnMut(&UsageStats) -> UsageStats + Send,
    {
        self.change_usage(&self.provider_key(provider)?, Durability::Durable, change).await
    }

    async fn change_usage<F>(
        &self,
        key: &Key,
        durability: Durability,
        mut change: F,
    ) -> Result<UsageStats, StoreError>
    where
        F: FnMut(&UsageStats) -> UsageStats + Send,
    {
        let mut current = self.store.get(key).await?;
        for _ in 0..MAX_ATTEMPTS {
            let stands = current.as_ref().map(|found| decode(key, found)).transpose()?.unwrap_or_default();
            let next = change(&stands);
            if next == stands {
                return Ok(next);
            }
            let lapses =
                next.lapses_at(next.last_failure_at().max(next.last_used()).unwrap_or(Timestamp::MAX));
            let mut write = WriteOptions::default();
            (write.durability, write.expires_at) = (durability, lapses);
            let expect = Expect::from(current.as_ref());
            match self.store.swap(key, expect, Some(Value::new(next.encode())), write).await? {
                Swap::Done(_) => return Ok(next),
                Swap::Lost(stands) => current = stands,
            }
        }
        Err(StoreError::Contended { key: key.to_string(), attempts: MAX_ATTEMPTS })
    }

    /// The order that was stored for a provider; empty where there is none.
    ///
    /// # Errors
    ///
    /// As [`Table::read`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn order(&self, provider: &ProviderId) -> Result<Vec<ProfileId>, StoreError> {
        let key = self.key("order", &[provider.as_str()])?;
        Ok(self.orders.read(&key).await?.map(|stored| stored.row.0).unwrap_or_default())
    }

    /// Every order that was stored, by provider. One that cannot be read counts as none.
    ///
    /// # Errors
    ///
    /// Whatever the store says.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn orders(&self) -> Result<std::collections::HashMap<ProviderId, Vec<ProfileId>>, StoreError> {
        let rows = self.rows(&self.orders, "order").await?;
        let readable = rows.into_iter().filter_map(|(key, row)| {
            let OrderRow(order) = row.ok()?;
            Some((ProviderId::new(last(&key)).ok()?, order))
        });
        Ok(readable.collect())
    }

    /// Stores an order for a provider durably; an empty one takes the stored one away. At most 1,000 are kept.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may or may not have been done.
    pub async fn set_order(&self, provider: &ProviderId, order: &[ProfileId]) -> Result<(), StoreError> {
        let key = self.key("order", &[provider.as_str()])?;
        let edit = |_: Option<&OrderRow>| match order {
            [] => Edit::Delete,
            order => Edit::Put(OrderRow(order.iter().take(MAX_ORDER).cloned().collect())),
        };
        self.orders.update(&key, WriteOptions::durable(), edit).await?;
        self.mark_roster().await
    }

    /// The lease on probes of a profile and model, where one was granted not long ago.
    ///
    /// # Errors
    ///
    /// Whatever the store says.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn probe_lease(
        &self,
        profile: &ProfileId,
        model: &ModelRef,
    ) -> Result<Option<Lease>, StoreError> {
        let key = probe_lease_key(&self.agent, profile, model)
            .map_err(|e| bad_key("lease", &[profile.as_str()], &e))?;
        let found = self.store.get(&key).await?;
        Ok(found.and_then(|found| serde_json::from_slice(found.value.as_bytes()).ok()))
    }

    /// Takes the lease on the refresh of a login if it is free.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a lease that nobody knows of runs out by itself.
    pub async fn claim_refresh(
        &self,
        profile: &ProfileId,
        holder: &str,
        terms: LeaseTerms,
        now: Timestamp,
    ) -> Result<LeaseClaim, StoreError> {
        let key = self.key("refresh", &[profile.as_str()])?;
        let mut claim = LeaseClaim::Denied { until: now };
        let edit = |row: Option<&LeaseRow>| {
            claim = Lease::claim(row.map(|row| &row.0), holder, terms, now);
            match &claim {
                LeaseClaim::Granted(lease) => Edit::Put(LeaseRow(lease.clone())),
                LeaseClaim::Denied { .. } => Edit::Keep,
            }
        };
        let lapses = now.after(terms.lasts.max(terms.every)).after(REMEMBER_LEASE);
        self.leases.update(&key, WriteOptions::soft().expiring(lapses), edit).await?;
        Ok(claim)
    }

    /// Gives the lease on the refresh of a login back, if `holder` still has it.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a lease that was not given back runs out by itself.
    pub async fn release_refresh(
        &self,
        profile: &ProfileId,
        holder: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let key = self.key("refresh", &[profile.as_str()])?;
        let edit = |row: Option<&LeaseRow>| match row.and_then(|row| row.0.release(holder)) {
            Some(free) => Edit::Put(LeaseRow(free)),
            None => Edit::Keep,
        };
        let lapses = now.after(REMEMBER_LEASE);
        self.leases.update(&key, WriteOptions::soft().expiring(lapses), edit).await.map(drop)
    }
}

/// The OAuth pair in a credential.
pub(crate) fn pair(credential: Credential) -> Option<OAuth> {
    if let Credential::OAuth(pair) = credential { Some(pair) } else { None }
}

fn last(key: &Key) -> String {
    key.segments().last().unwrap_or_default()
}

fn bad_key(kind: &str, rest: &[&str], error: &KeyError) -> StoreError {
    StoreError::Misfit { key: format!("{kind}/{}", rest.join("/")), why: error.to_string() }
}

fn decode(key: &Key, found: &Versioned) -> Result<UsageStats, StoreError> {
    UsageStats::decode(found.value.as_bytes()).map_err(|error| {
        if let UsageError::Newer { found, known } = error {
            return StoreError::Newer { key: key.to_string(), found, known };
        }
        // serde's messages may quote a value: only the kind of fault is told.
        StoreError::Misfit { key: key.to_string(), why: "it is no usage record".to_owned() }
    })
}

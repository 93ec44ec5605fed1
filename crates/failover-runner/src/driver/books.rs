//! Bookkeeping: health and leases in the store.

use crate::health::{Health, Subject, Unwritten};
use failover_auth::{
    Lease, LeaseClaim, LeaseTerms, UsageError, UsageStats, merge, probe_lease_key, profile_usage_key,
    provider_usage_key,
};
use failover_store::{Expect, Key, KeyError, KeyValue, StoreError, Swap, Value, WriteOptions};
use failover_types::{AgentId, Clock, ModelRef, ProfileId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How old what was read may be before it is read again: a cooldown learnt elsewhere is known within a second (K-3).
const FRESH: Duration = Duration::from_millis(500);
/// Tries of one swap. Each lost one means that another writer got through.
const MOST_TRIES: u32 = 16;
/// A lease that was given back is forgotten after this, and with it the time of the last probe.
const KEPT: Duration = Duration::from_hours(40 * 24);

/// Where a usage record stands in the store: `agent/<id>/usage/profile/<profile>`, or `…/provider/<provider>`.
///
/// # Errors
///
/// [`KeyError`] where the whole is too long.
pub fn usage_key(agent: &AgentId, subject: &Subject) -> Result<Key, KeyError> {
    match subject {
        Subject::Profile(id) => profile_usage_key(agent, id),
        Subject::Provider(id) => provider_usage_key(agent, id),
    }
}

/// The store's side of one agent.
pub(super) struct Books {
    store: Arc<dyn KeyValue>,
    agent: AgentId,
    health: Arc<Health>,
    clock: Arc<dyn Clock>,
    flushing: AtomicBool,
}

impl Books {
    pub(super) fn new(
        store: Arc<dyn KeyValue>,
        agent: AgentId,
        health: Arc<Health>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { store, agent, health, clock, flushing: AtomicBool::new(false) }
    }

    /// What concerns `model` and should be read again.
    pub(super) fn stale(&self, model: &ModelRef) -> Vec<Subject> {
        self.health.stale(model, self.clock.now().before(FRESH))
    }

    /// Reads records. Whatever cannot be read counts as absent and is reported.
    pub(super) async fn read(self: Arc<Self>, subjects: Vec<Subject>) {
        let now = self.clock.now();
        for subject in subjects {
            self.health.looked(&subject, now);
            let Ok(key) = usage_key(&self.agent, &subject) else { continue };
            match self.store.get(&key).await {
                Ok(None) => self.health.absent(&subject),
                Ok(Some(found)) => match UsageStats::decode(found.value.as_bytes()) {
                    Ok(stats) => self.health.learn(&subject, &stats, now),
                    Err(error) => tracing::warn!(%key, %error, "a usage record cannot be read"),
                },
                Err(error) => tracing::warn!(%key, %error, "health cannot be read from the store"),
            }
        }
    }

    /// Writes what the store has not seen. What cannot be written stays, and is tried again with the next run.
    pub(super) async fn flush(self: Arc<Self>) {
        self.write_all(self.health.unwritten()).await;
    }

    /// Writes what the store must see now.
    pub(super) async fn tell(self: Arc<Self>, due: Vec<Unwritten>) {
        self.write_all(due).await;
    }

    /// What the store must see now.
    pub(super) fn due(&self) -> Vec<Unwritten> {
        self.health.due(self.clock.now())
    }

    async fn write_all(&self, all: Vec<Unwritten>) {
        if self.flushing.swap(true, Ordering::AcqRel) {
            return;
        }
        let busy = Busy(&self.flushing);
        for unwritten in all {
            if let Err(error) = self.write(&unwritten).await {
                tracing::warn!(%error, "health cannot be written to the store; it is kept and tried again");
                // What is wrong with one record says nothing of those behind it.
                if matches!(error, StoreError::Unavailable { .. } | StoreError::Locked { .. }) {
                    break;
                }
            }
        }
        drop(busy);
    }

    /// Writes what the store has not seen of one profile and its provider.
    pub(super) async fn write_of(self: Arc<Self>, profile: &ProfileId, model: &ModelRef) {
        for unwritten in self.health.unwritten() {
            let concerned = match &unwritten.subject {
                Subject::Profile(id) => id == profile,
                Subject::Provider(id) => id == model.provider(),
            };
            if concerned && let Err(error) = self.write(&unwritten).await {
                tracing::warn!(%error, "health cannot be written to the store; it is kept and tried again");
            }
        }
    }

    async fn write(&self, unwritten: &Unwritten) -> Result<(), StoreError> {
        let Ok(key) = usage_key(&self.agent, &unwritten.subject) else { return Ok(()) };
        let mut current = self.store.get(&key).await?;
        for _ in 0..MOST_TRIES {
            let stored = current.as_ref().map(|found| UsageStats::decode(found.value.as_bytes()));
            let next = match stored {
                Some(Ok(stored)) => merge(&stored, &unwritten.stats),
                // The record of a newer version is not ours to overwrite (K-4).
                Some(Err(UsageError::Newer { .. })) => return Ok(()),
                Some(Err(_)) | None => unwritten.stats.clone(),
            };
            let expect = current.as_ref().map_or(Expect::Absent, |found| Expect::Version(found.version));
            let lapses = next.lapses_at(self.clock.now());
            let options = lapses.map_or_else(WriteOptions::soft, |at| WriteOptions::soft().expiring(at));
            match self.store.swap(&key, expect, Some(Value::new(next.encode())), options).await? {
                Swap::Done(_) => {
                    self.health.learn(&unwritten.subject, &next, self.clock.now());
                    self.health.written(unwritten, self.clock.now());
                    return Ok(());
                }
                Swap::Lost(found) => current = found,
            }
        }
        Ok(())
    }

    /// Asks the other processes for leave to try a profile (requirement A-26). `None` is leave: a store that fails
    /// keeps nobody from trying.
    pub(super) async fn lease(
        self: Arc<Self>,
        profile: ProfileId,
        model: ModelRef,
        holder: String,
        terms: LeaseTerms,
    ) -> Option<Timestamp> {
        let key = probe_lease_key(&self.agent, &profile, &model).ok()?;
        let now = self.clock.now();
        let mut current = self.store.get(&key).await.ok()?;
        for _ in 0..MOST_TRIES {
            let known: Option<Lease> =
                current.as_ref().and_then(|found| serde_json::from_slice(found.value.as_bytes()).ok());
            let granted = match Lease::claim(known.as_ref(), &holder, terms, now) {
                LeaseClaim::Denied { until } => return Some(until),
                LeaseClaim::Granted(lease) => lease,
            };
            let bytes = serde_json::to_vec(&granted).ok()?;
            let expect = current.as_ref().map_or(Expect::Absent, |found| Expect::Version(found.version));
            let options = WriteOptions::soft().expiring(granted.until.after(terms.every));
            match self.store.swap(&key, expect, Some(Value::new(bytes)), options).await.ok()? {
                Swap::Lost(found) => current = found,
                Swap::Done(_) => return None,
            }
        }
        None
    }

    /// Gives a lease back to the other processes. The record stays, and with it the time of the last probe.
    pub(super) async fn give_back(self: Arc<Self>, profile: ProfileId, model: ModelRef, holder: String) {
        let Ok(key) = probe_lease_key(&self.agent, &profile, &model) else { return };
        let Ok(Some(found)) = self.store.get(&key).await else { return };
        let Ok(lease) = serde_json::from_slice::<Lease>(found.value.as_bytes()) else { return };
        let Some(Ok(bytes)) = lease.release(&holder).map(|free| serde_json::to_vec(&free)) else { return };
        let options = WriteOptions::soft().expiring(lease.granted_at.after(KEPT));
        let swap = self.store.swap(&key, Expect::Version(found.version), Some(Value::new(bytes)), options);
        if let Err(error) = swap.await {
            tracing::warn!(%key, %error, "a lease cannot be given back; it runs out by itself");
        }
    }
}

struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

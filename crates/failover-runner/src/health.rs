//! What this process knows of profiles: one view that every run reads and writes at once (requirement R-14).
//!
//! The view is in front of the store: an outcome counts here the moment it is recorded, and is written to the store
//! when the store is ready (requirement A-25). No clock, no I/O and no lock across an await.

use crate::plan::{
    Candidate, LeaseAnswer, LeaseKind, LeaseStep, OrderProfiles, RecordAnswer, RecordStep, RunPolicy, Slot,
    Slots, Standing,
};
use failover_auth::{
    Availability, Choice, ConfiguredProfile, CooldownPolicy, OrderRequest, Outcome, Pin, ProfileSet,
    SkipCache, UsageStats, UserPinMode, availability, choose, infer_reason, merge, next_usage, order,
    recovering,
};
use failover_types::{ModelRef, ProfileId, ProviderId, SessionId, Timestamp};
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin as StdPin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Wakers kept of those who wait for a change.
const MAX_WAITING: usize = 4096;

/// The profiles of an agent and the order that was asked for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Roster {
    /// The stored profiles. Their usage is where this process starts from.
    pub profiles: ProfileSet,
    /// The order stored for the agent.
    pub stored_order: Vec<ProfileId>,
    /// `auth.order` by provider.
    pub config_order: HashMap<ProviderId, Vec<ProfileId>>,
    /// `auth.profiles`.
    pub configured: Vec<ConfiguredProfile>,
}

/// What a usage record is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "each has a key of its own in the store")]
pub enum Subject {
    /// A profile.
    Profile(ProfileId),
    /// A provider as a whole.
    Provider(ProviderId),
}

/// How a session wants its profiles.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Preference {
    /// The session's pin.
    pub pin: Option<Pin>,
    /// The session's compaction count.
    pub compactions: u64,
    /// What a person's pin means.
    pub mode: UserPinMode,
}

impl Preference {
    /// A session's pin.
    pub fn pinned(pin: Pin, compactions: u64, mode: UserPinMode) -> Self {
        Self { pin: Some(pin), compactions, mode }
    }
}

/// A record that the store has not seen yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unwritten {
    /// What it is about.
    pub subject: Subject,
    /// What is known.
    pub stats: UsageStats,
    change: u64,
}

/// The view. Share it behind an `Arc`; there is one per agent.
#[derive(Debug)]
pub struct Health {
    policy: CooldownPolicy,
    board: Mutex<Board>,
}

#[derive(Debug, Default)]
struct Board {
    roster: Roster,
    records: HashMap<Subject, Record>,
    leases: Vec<Lease>,
    last_lease: u64,
    probes: HashMap<ProviderId, Probes>,
    skips: SkipCache,
    /// Raised whenever a standing or a lease may have changed.
    generation: u64,
    waiting: Vec<Waker>,
}

#[derive(Debug, Default)]
struct Record {
    stats: UsageStats,
    /// Counts the changes, and tells which of them the store has seen.
    change: u64,
    written: u64,
    /// An attempt has ended, whichever way: nobody need go first any more.
    met: bool,
    read_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Lease {
    id: u64,
    profile: ProfileId,
    model: ModelRef,
    until: Timestamp,
}

#[derive(Debug)]
struct Probes {
    last: Timestamp,
    /// The end of the window that was probed, and how often it was.
    window: Timestamp,
    count: u32,
}

/// Leave to try a profile. Dropping it gives the lease back.
#[derive(Debug)]
#[must_use = "dropping it gives the lease back"]
pub struct LeaseGuard {
    health: Arc<Health>,
    id: u64,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut board = self.health.board();
        board.leases.retain(|lease| lease.id != self.id);
        board.changed();
    }
}

impl Board {
    fn changed(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        for waker in self.waiting.drain(..) {
            waker.wake();
        }
    }

    fn stats(&self, subject: &Subject) -> Option<&UsageStats> {
        self.records.get(subject).map(|record| &record.stats)
    }

    fn record(&mut self, subject: &Subject) -> &mut Record {
        if !self.records.contains_key(subject) {
            let known = match subject {
                Subject::Profile(id) => self.roster.profiles.get(id).map(|profile| profile.usage.clone()),
                Subject::Provider(_) => None,
            };
            let record = Record { stats: known.unwrap_or_default(), ..Record::default() };
            self.records.insert(subject.clone(), record);
        }
        self.records.entry(subject.clone()).or_default()
    }

    fn set_stats(&mut self, subject: &Subject, stats: UsageStats) {
        if let Subject::Profile(id) = subject {
            self.roster.profiles.set_usage(id, stats.clone());
        }
        self.record(subject).stats = stats;
    }

    fn standing(&self, profile: &ProfileId, provider: &ProviderId, model: &str, now: Timestamp) -> Standing {
        let subject = Subject::Profile(profile.clone());
        let own = self.stats(&subject).or_else(|| self.roster.profiles.get(profile).map(|p| &p.usage));
        let whole = self.stats(&Subject::Provider(provider.clone()));
        let state = |stats: Option<&UsageStats>| {
            stats.map_or(Availability::Usable, |stats| availability(stats, Some(model), now))
        };
        match state(own).and(state(whole)) {
            Availability::Paused => return Standing::Paused,
            Availability::Cooling { until, reason, .. }
            | Availability::Blocked { until, reason }
            | Availability::Disabled { until, reason } => return Standing::Out { reason, until },
            Availability::Usable => {}
        }
        for stats in [own, whole].into_iter().flatten() {
            if recovering(stats, Some(model), now) {
                let ended = stats.windows().iter().filter(|window| window.scope.covers(Some(model)));
                if let Some(window) = ended.max_by_key(|window| window.until) {
                    return Standing::Recovering { reason: window.reason };
                }
            }
        }
        let met = self.records.get(&subject).is_some_and(|record| record.met);
        let unknown = own.is_none_or(|stats| stats.last_used().is_none() && stats.windows().is_empty());
        if unknown && !met { Standing::Cold } else { Standing::Ready }
    }
}

impl Health {
    /// A view of which nothing is known yet. `skip` is how long a refused fallback is not tried again.
    pub fn new(policy: CooldownPolicy, skip: Option<Duration>) -> Self {
        let skips = skip.map_or_else(SkipCache::off, SkipCache::new);
        Self { policy, board: Mutex::new(Board { skips, ..Board::default() }) }
    }

    /// Every change of the board is whole, so a poisoned lock is still good.
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cooldown rules.
    pub fn policy(&self) -> &CooldownPolicy {
        &self.policy
    }

    /// Sets the profiles and their order. What is known of those that stay is kept.
    pub fn set_roster(&self, mut roster: Roster) {
        let mut board = self.board();
        let known: Vec<ProfileId> = roster.profiles.iter().map(|profile| profile.id.clone()).collect();
        for id in known {
            if let Some(record) = board.records.get(&Subject::Profile(id.clone())) {
                roster.profiles.set_usage(&id, record.stats.clone());
            }
        }
        board.roster = roster;
        board.changed();
    }

    /// Who could serve `model` now, in order. A provider without profiles has one, `provider:default`.
    pub fn slots(
        &self,
        wanted: &OrderProfiles,
        preference: &Preference,
        session: Option<&SessionId>,
        now: Timestamp,
    ) -> Slots {
        let model = &wanted.model;
        let board = self.board();
        let provider = model.provider();
        let roster = &board.roster;
        let whole = board.stats(&Subject::Provider(provider.clone()));
        let none: &[ProfileId] = &[];
        let request = OrderRequest::new(provider, &roster.profiles, now)
            .model(Some(model.model()))
            .provider_usage(whole)
            .stored_order(&roster.stored_order)
            .config(roster.config_order.get(provider).map_or(none, Vec::as_slice), &roster.configured);
        let order = order(&request);
        // Named with the model, or pinned to the session; a pin of another provider is none here (A-9 aliases apart).
        let named = wanted.profile.clone().map(Pin::user);
        let here = |pin: &&Pin| {
            pin.profile.provider() == provider.as_str() || order.position(&pin.profile).is_some()
        };
        let pin = named.as_ref().or(preference.pin.as_ref().filter(here));
        let Choice { slots, strict, force_probe, .. } =
            choose(&order, pin, preference.compactions, preference.mode);
        let mut ids: Vec<ProfileId> = slots.into_iter().map(|slot| slot.profile).collect();
        if ids.is_empty() && order.left_out.is_empty() && !strict {
            ids.extend(ProfileId::for_account(provider, None));
        }
        let slots: Vec<Slot> = ids
            .into_iter()
            .map(|profile| {
                let standing = board.standing(&profile, provider, model.model(), now);
                let skipped =
                    session.is_some_and(|session| board.skips.skips(session, model, &profile, false, now));
                Slot { profile, standing, skipped }
            })
            .collect();
        let inferred = if slots.iter().all(|slot| matches!(slot.standing, Standing::Out { .. })) {
            let stats = slots.iter().filter_map(|slot| board.stats(&Subject::Profile(slot.profile.clone())));
            infer_reason(stats.chain(whole), Some(model.model()), now)
        } else {
            None
        };
        Slots { slots, strict, force_probe, inferred }
    }

    /// Asks for leave to try a profile. The guard gives it back when it is dropped.
    pub fn lease(
        self: &Arc<Self>,
        step: &LeaseStep,
        policy: &RunPolicy,
        now: Timestamp,
    ) -> (LeaseAnswer, Option<LeaseGuard>) {
        let mut board = self.board();
        board.leases.retain(|lease| lease.until > now);
        let standing = board.standing(&step.profile, step.model.provider(), step.model.model(), now);
        let answer = board.may_lease(step, standing, policy, now);
        let unguarded = match (step.kind, standing) {
            (LeaseKind::Cold | LeaseKind::Recovering, Standing::Ready) => true,
            (LeaseKind::Cold | LeaseKind::Recovering | LeaseKind::Probe { .. }, _) => false,
        };
        if unguarded || answer != LeaseAnswer::Granted {
            return (answer, None);
        }
        if let (LeaseKind::Probe { .. }, Standing::Out { until, .. }) = (step.kind, standing) {
            board.note_probe(step.model.provider(), until, now);
        }
        board.last_lease += 1;
        let id = board.last_lease;
        board.leases.push(Lease {
            id,
            profile: step.profile.clone(),
            model: step.model.clone(),
            until: now.after(Duration::from_millis(policy.probe.lease_ms)),
        });
        (answer, Some(LeaseGuard { health: Arc::clone(self), id }))
    }

    /// What [`Health::lease`] would answer. Nothing is granted.
    pub fn would_lease(&self, step: &LeaseStep, policy: &RunPolicy, now: Timestamp) -> LeaseAnswer {
        let board = self.board();
        let standing = board.standing(&step.profile, step.model.provider(), step.model.model(), now);
        board.may_lease(step, standing, policy, now)
    }

    /// When the last window for `model` ends, or ended, on the profile where that is soonest; `None` where a profile
    /// never had one. This is when the origin of a session's override is worth another look (requirement S-7).
    pub fn free_at(&self, model: &ModelRef, now: Timestamp) -> Option<Timestamp> {
        let wanted = OrderProfiles::from(&Candidate::new(model.clone()));
        let slots = self.slots(&wanted, &Preference::default(), None, now).slots;
        let board = self.board();
        let whole = board.stats(&Subject::Provider(model.provider().clone()));
        let end = |slot: &Slot| {
            let own = board.stats(&Subject::Profile(slot.profile.clone()));
            let windows = own.into_iter().chain(whole).flat_map(UsageStats::windows);
            let ends =
                windows.filter(|window| window.scope.covers(Some(model.model()))).map(|window| window.until);
            ends.filter(|until| *until > Timestamp::ZERO).max()
        };
        slots.iter().map(end).collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// An attempt with the profile has ended in a way that blames nobody: at least it is no stranger any more.
    pub fn met(&self, profile: &ProfileId) {
        let mut board = self.board();
        let record = board.record(&Subject::Profile(profile.clone()));
        if !std::mem::replace(&mut record.met, true) {
            board.changed();
        }
    }

    /// Remembers how an attempt ended, for every run at once.
    pub fn record(&self, step: &RecordStep, session: Option<&SessionId>, now: Timestamp) -> RecordAnswer {
        let mut board = self.board();
        let provider = step.model.provider();
        let subject = match &step.outcome {
            Outcome::Failure(failure) if failure.blames_provider() => Subject::Provider(provider.clone()),
            Outcome::Failure(_) | Outcome::Success(_) => Subject::Profile(step.profile.clone()),
        };
        if let (Outcome::Failure(failure), Some(session)) = (&step.outcome, session) {
            board.skips.record(session, &step.model, &step.profile, failure.reason, step.primary, now);
        }
        let before = board.standing(&step.profile, provider, step.model.model(), now);
        let record = board.record(&subject);
        record.met = true;
        let next = next_usage(&record.stats, &step.outcome, &self.policy, now);
        if next == record.stats {
            return RecordAnswer::Known;
        }
        record.change += 1;
        board.set_stats(&subject, next);
        if before != Standing::Ready || matches!(step.outcome, Outcome::Failure(_)) {
            board.changed();
        }
        RecordAnswer::Changed
    }

    /// What is known of a record, for lists and `explain`.
    pub fn usage(&self, subject: &Subject) -> UsageStats {
        let board = self.board();
        let listed = || match subject {
            Subject::Profile(id) => board.roster.profiles.get(id).map(|profile| &profile.usage),
            Subject::Provider(_) => None,
        };
        board.stats(subject).or_else(listed).cloned().unwrap_or_default()
    }

    /// Takes over what the store says of a record: what is newer on either side stays.
    pub fn learn(&self, subject: &Subject, stored: &UsageStats, now: Timestamp) {
        let mut board = self.board();
        let record = board.record(subject);
        record.read_at = Some(now);
        let next = merge(&record.stats, stored);
        if next != record.stats {
            board.set_stats(subject, next);
            board.changed();
        }
    }

    /// Records that concern `model` and were not read from the store since `since`.
    pub fn stale(&self, model: &ModelRef, since: Timestamp) -> Vec<Subject> {
        let board = self.board();
        let provider = model.provider();
        let mut profiles: HashSet<ProfileId> =
            board.roster.profiles.of_provider(provider).map(|profile| profile.id.clone()).collect();
        if profiles.is_empty() {
            profiles.extend(ProfileId::for_account(provider, None));
        }
        profiles
            .into_iter()
            .map(Subject::Profile)
            .chain([Subject::Provider(provider.clone())])
            .filter(|subject| {
                let read = board.records.get(subject).and_then(|record| record.read_at);
                read.is_none_or(|at| at < since)
            })
            .collect()
    }

    /// Notes that a record was looked for in the store, so that an absent one is not looked for on every step.
    pub fn looked(&self, subject: &Subject, now: Timestamp) {
        self.board().record(subject).read_at = Some(now);
    }

    /// What the store has not seen yet.
    pub fn unwritten(&self) -> Vec<Unwritten> {
        let board = self.board();
        let dirty = board.records.iter().filter(|(_, record)| record.written < record.change);
        dirty
            .map(|(subject, record)| Unwritten {
                subject: subject.clone(),
                stats: record.stats.clone(),
                change: record.change,
            })
            .collect()
    }

    /// The store has seen it.
    pub fn written(&self, unwritten: &Unwritten) {
        let mut board = self.board();
        let record = board.record(&unwritten.subject);
        record.written = record.written.max(unwritten.change);
    }

    /// Resolves when a standing or a lease may have changed since `seen` ([`Health::generation`]).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub fn changed(&self, seen: u64) -> impl Future<Output = ()> + Send + '_ {
        Changed { health: self, seen }
    }

    /// Names the state that [`Health::changed`] waits to pass.
    pub fn generation(&self) -> u64 {
        self.board().generation
    }
}

impl Board {
    /// Whether a profile may be tried under a lease.
    fn may_lease(
        &self,
        step: &LeaseStep,
        standing: Standing,
        policy: &RunPolicy,
        now: Timestamp,
    ) -> LeaseAnswer {
        let held = || self.leases.iter().filter(|lease| lease.profile == step.profile && lease.until > now);
        let until = match (step.kind, standing) {
            // Somebody else has found out since the profiles were put in order.
            (LeaseKind::Cold | LeaseKind::Recovering, Standing::Out { .. } | Standing::Paused) => {
                Some(now.after(Duration::from_millis(1)))
            }
            (LeaseKind::Cold, Standing::Cold | Standing::Recovering { .. }) => {
                let most = usize::try_from(policy.cold_start.concurrent).unwrap_or(usize::MAX);
                let full = most > 0 && held().count() >= most;
                held().map(|lease| lease.until).min().filter(|_| full)
            }
            (LeaseKind::Recovering, Standing::Cold | Standing::Recovering { .. }) => {
                held().filter(|lease| lease.model == step.model).map(|lease| lease.until).max()
            }
            (LeaseKind::Probe { interval }, Standing::Out { until, .. }) if !interval.is_zero() => {
                self.next_probe(step.model.provider(), until, interval, policy).filter(|next| *next > now)
            }
            (LeaseKind::Cold | LeaseKind::Recovering, Standing::Ready) | (LeaseKind::Probe { .. }, _) => None,
        };
        until.map_or(LeaseAnswer::Granted, |until| LeaseAnswer::Held { until })
    }

    /// When a provider whose window ends at `window` may be probed (requirement R-6).
    fn next_probe(
        &self,
        provider: &ProviderId,
        window: Timestamp,
        interval: Duration,
        policy: &RunPolicy,
    ) -> Option<Timestamp> {
        let last = self.probes.get(provider);
        let count = last.filter(|last| last.window == window).map_or(0, |last| last.count);
        // The failure that opened the window was a look at it, too.
        let concerns = |subject: &&Subject| match subject {
            Subject::Profile(id) => id.provider() == provider.as_str(),
            Subject::Provider(id) => id == provider,
        };
        let set =
            self.records.keys().filter(concerns).filter_map(|id| self.stats(id)?.last_failure_at()).max();
        let slow = Duration::from_millis(policy.probe.slow_ms);
        let interval = if count >= policy.probe.per_window { interval.max(slow) } else { interval };
        last.map(|last| last.last).max(set).map(|last| last.after(interval))
    }

    fn note_probe(&mut self, provider: &ProviderId, window: Timestamp, now: Timestamp) {
        let last = self.probes.get(provider).filter(|last| last.window == window);
        let count = last.map_or(0, |last| last.count).saturating_add(1);
        self.probes.insert(provider.clone(), Probes { last: now, window, count });
    }
}

struct Changed<'a> {
    health: &'a Health,
    seen: u64,
}

impl Future for Changed<'_> {
    type Output = ();

    fn poll(self: StdPin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut board = self.health.board();
        if board.generation != self.seen {
            return Poll::Ready(());
        }
        if board.waiting.len() >= MAX_WAITING {
            // Waits that ended by themselves leave their wakers behind; whoever still waits looks again.
            board.waiting.drain(..).for_each(Waker::wake);
        }
        if !board.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            board.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

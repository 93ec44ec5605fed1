//! What this process knows of profiles: one view that every run reads and writes at once (requirement R-14).
//!
//! The view is in front of the store: an outcome counts here the moment it is recorded, and is written to the store
//! when the store is ready (requirement A-25). No clock, no I/O and no lock across an await.

use crate::plan::{
    Candidate, LeaseAnswer, LeaseKind, LeaseStep, OrderProfiles, RecordAnswer, RecordStep, RunPolicy, Slot,
    Slots, Standing,
};
use failover_auth::{
    Availability, Choice, ConfiguredProfile, CooldownPolicy, LeftOut, OrderRequest, Outcome, Pin, ProfileSet,
    SkipCache, UsageStats, UserPinMode, Window, auth_aliases, availability, choose, infer_reason, merge,
    next_usage, order, recovering,
};
use failover_types::{ModelRef, ProfileId, ProviderId, SessionId, Timestamp};
use std::collections::{BTreeMap, HashMap, HashSet};
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
    /// The orders stored for the agent, by provider.
    pub stored_order: HashMap<ProviderId, Vec<ProfileId>>,
    /// `auth.order` by provider.
    pub config_order: HashMap<ProviderId, Vec<ProfileId>>,
    /// `auth.profiles`.
    pub configured: Vec<ConfiguredProfile>,
}

impl Roster {
    /// What the order of `provider`'s profiles is made from; a model and the provider's own record are yet to be added.
    pub fn request<'a>(&'a self, provider: &'a ProviderId, now: Timestamp) -> OrderRequest<'a> {
        let named = |orders: &'a HashMap<ProviderId, Vec<ProfileId>>| {
            orders.get(provider).map_or(&[] as &[ProfileId], Vec::as_slice)
        };
        OrderRequest::new(provider, &self.profiles, now)
            .stored_order(named(&self.stored_order))
            .config(named(&self.config_order), &self.configured)
    }
}

/// What a usage record is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// There are few, and each run looks them up dozens of times: comparing is quicker than hashing.
    records: BTreeMap<Subject, Record>,
    /// Those that the store has not seen.
    dirty: Vec<Subject>,
    leases: Vec<Lease>,
    last_lease: u64,
    /// When each provider was last probed.
    probes: HashMap<ProviderId, Timestamp>,
    skips: SkipCache,
    /// Raised whenever a standing or a lease may have changed.
    generation: u64,
    waiting: Vec<Waker>,
}

/// How often the store is told that a profile still answers: as soon as other processes look (K-3).
const TELL_EVERY: Duration = Duration::from_secs(1);

/// How long an answer speaks for its credential: one that is older may have died since, unseen.
const PROOF_LASTS: Duration = Duration::from_hours(1);

#[derive(Debug, Default)]
struct Record {
    stats: UsageStats,
    /// Counts the changes, and tells which of them the store has seen.
    change: u64,
    written: u64,
    /// When the store was last told.
    written_at: Option<Timestamp>,
    /// What the store has not seen is no more than when it last answered.
    calm: bool,
    /// An attempt has ended, whichever way: it is no stranger any more.
    met: bool,
    read_at: Option<Timestamp>,
    /// The store has said what it knows of it, or that it knows nothing.
    heard: bool,
    /// Ordinary calls under way.
    in_flight: u32,
    /// How many calls at a time have been seen to work since it was last out.
    proven: u32,
    /// Runs that were told to wait since the last answer, and when the first of them was.
    held_back: u32,
    pressed_since: Option<Timestamp>,
    /// The end of the window within which a person's choice has had its one probe at once.
    forced: Timestamp,
    /// When a failure of it, for whatever model, or of its provider was last told.
    failed_at: Option<Timestamp>,
    /// Calls that have failed within the window that ends then.
    spent: (Timestamp, u32),
}

impl Record {
    /// Whether the store is to be told now. That it answered once more can wait for a moment: who is told of every
    /// answer of a busy profile has no time for anything else.
    fn is_due(&self, now: Timestamp) -> bool {
        let told = self.written_at.filter(|at| *at <= now);
        !self.calm || told.is_none_or(|at| now.since(at) >= TELL_EVERY)
    }

    /// How many ordinary calls may be under way before one of them has answered, and when it will be more, should nobody
    /// answer; `None` without a limit.
    ///
    /// Those who wait for an answer that does not come go in growing numbers: after the wait twice as many, and so again
    /// with every tenth of it, until at double the wait nobody is held back any more. So a dead credential that is slow
    /// to say so costs few calls, and a slow one that is well holds nobody up for long.
    fn most_at_a_time(&self, policy: &RunPolicy, now: Timestamp) -> Option<(u32, Timestamp)> {
        let few = policy.cold_start.concurrent;
        let used = self.stats.last_used().filter(|at| *at <= now && now.since(*at) < PROOF_LASTS);
        let wait = policy.cold_start.wait(used.is_some());
        let since = self.pressed_since.unwrap_or(now).min(now);
        let waited = now.since(since);
        if few == 0 || waited >= wait.saturating_mul(2) {
            return None;
        }
        let most = few.max(self.proven.saturating_mul(2));
        let Some(over) = waited.checked_sub(wait) else { return Some((most, since.after(wait))) };
        let tenth = (wait / 10).max(Duration::from_millis(1));
        let steps =
            u32::try_from(over.as_millis() / tenth.as_millis().max(1)).unwrap_or(u32::MAX).saturating_add(1);
        let most = most.saturating_mul(2_u32.saturating_pow(steps));
        Some((most, since.after(wait).after(tenth.saturating_mul(steps))))
    }

    /// It works: those who wait may all go, and so may as many at a time from now on. Gives whether anybody waits.
    fn works(&mut self) -> bool {
        self.proven = self.proven.max(self.in_flight.saturating_add(self.held_back));
        self.pressed_since = None;
        std::mem::take(&mut self.held_back) > 0
    }

    /// How many calls the window that ends at `until` has cost.
    fn spent_on(&self, until: Timestamp) -> u32 {
        if self.spent.0 == until { self.spent.1 } else { 0 }
    }
}

#[derive(Debug)]
struct Lease {
    id: u64,
    profile: ProfileId,
    model: ModelRef,
    until: Timestamp,
}

/// Leave to try a profile. Dropping it gives the lease back.
#[derive(Debug)]
#[must_use = "dropping it gives the lease back"]
pub struct LeaseGuard {
    health: Arc<Health>,
    held: HeldLease,
    since: Timestamp,
    /// Its call has come to an end of its own.
    ended: bool,
}

impl LeaseGuard {
    /// Says that its call has ended, well or not, and was not given up. Where nobody is to blame for how, so many calls
    /// at a time were borne.
    pub fn ended(&mut self) {
        self.ended = true;
    }
}

#[derive(Debug)]
enum HeldLease {
    /// One of several at a time.
    Call(Subject),
    /// The only one; a lease of the board.
    Only(u64),
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut board = self.health.board();
        match &self.held {
            HeldLease::Only(id) => {
                board.leases.retain(|lease| lease.id != *id);
                board.changed();
            }
            HeldLease::Call(subject) => {
                let Some(record) = board.records.get_mut(subject) else { return };
                let blameless = record.failed_at.is_none_or(|at| at < self.since);
                if self.ended && blameless && record.works() {
                    board.changed();
                }
                let Some(record) = board.records.get_mut(subject) else { return };
                record.in_flight = record.in_flight.saturating_sub(1);
                if record.in_flight == 0 {
                    record.pressed_since = None;
                }
                if record.held_back > 0 {
                    // There is room for one more; to wake a thousand for it would be a stampede.
                    record.held_back -= 1;
                    board.wake_some(2);
                }
            }
        }
    }
}

impl Board {
    fn changed(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        for waker in self.waiting.drain(..) {
            waker.wake();
        }
    }

    /// As [`Board::changed`], for a change that is of use to a few only.
    fn wake_some(&mut self, count: usize) {
        self.generation = self.generation.wrapping_add(1);
        let count = count.min(self.waiting.len());
        for waker in self.waiting.drain(..count) {
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

    /// The profiles and their order, with what is known of them.
    pub fn roster(&self) -> Roster {
        self.board().roster.clone()
    }

    /// Sets the profiles and their order. What is known of those that stay is kept; those that are gone are forgotten,
    /// and so are refusals of single sessions, since a secret may be another one by now.
    pub fn set_roster(&self, mut roster: Roster) {
        let mut board = self.board();
        let gone =
            |id: &ProfileId| board.roster.profiles.get(id).is_some() && roster.profiles.get(id).is_none();
        let gone: HashSet<ProfileId> =
            board.roster.profiles.iter().map(|profile| &profile.id).filter(|id| gone(id)).cloned().collect();
        board.records.retain(|subject, _| match subject {
            Subject::Profile(id) => !gone.contains(id),
            Subject::Provider(_) => true,
        });
        board.skips.clear();
        let known: Vec<ProfileId> = roster.profiles.iter().map(|profile| profile.id.clone()).collect();
        for id in known {
            // A roster may have been read while the store did not say what it knows of one: what was known stands.
            let before = board.roster.profiles.get(&id).map(|profile| &profile.usage);
            let stats = board.stats(&Subject::Profile(id.clone())).or(before);
            if let (Some(stats), Some(read)) = (stats, roster.profiles.get(&id)) {
                let stats = merge(stats, &read.usage);
                roster.profiles.set_usage(&id, stats);
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
        let whole = board.stats(&Subject::Provider(provider.clone()));
        let request = board.roster.request(provider, now).model(Some(model.model())).provider_usage(whole);
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
        let unheard = |record: &Record| record.read_at.is_some() && !record.heard;
        let unknown = slots
            .iter()
            .any(|slot| board.records.get(&Subject::Profile(slot.profile.clone())).is_some_and(unheard));
        let inferred = if slots.iter().all(|slot| matches!(slot.standing, Standing::Out { .. })) {
            let stats = slots.iter().filter_map(|slot| board.stats(&Subject::Profile(slot.profile.clone())));
            infer_reason(stats.chain(whole), Some(model.model()), now)
        } else {
            None
        };
        let left_out = match (slots.is_empty(), pin) {
            (false, _) => Vec::new(),
            (true, None) => order.left_out,
            (true, Some(pin)) => {
                let why = request.why_left_out(&order, &pin.profile);
                why.map(|why| LeftOut::new(pin.profile.clone(), why)).into_iter().collect()
            }
        };
        Slots { slots, strict, force_probe, inferred, left_out, unknown }
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
        let subject = Subject::Profile(step.profile.clone());
        if answer != LeaseAnswer::Granted {
            if !matches!(step.kind, LeaseKind::Probe { .. }) {
                let record = board.record(&subject);
                record.held_back = record.held_back.saturating_add(1);
                record.pressed_since.get_or_insert(now);
            }
            return (answer, None);
        }
        let held = match step.kind {
            LeaseKind::Plain { .. } => {
                let record = board.record(&subject);
                record.in_flight = record.in_flight.saturating_add(1);
                HeldLease::Call(subject)
            }
            // Somebody else has proved it well meanwhile.
            LeaseKind::Recovering if standing == Standing::Ready => return (answer, None),
            LeaseKind::Recovering | LeaseKind::Probe { .. } => {
                if let (LeaseKind::Probe { forced, .. }, Standing::Out { until, .. }) = (step.kind, standing)
                {
                    board.probes.insert(step.model.provider().clone(), now);
                    if forced {
                        board.record(&subject).forced = until;
                    }
                }
                board.last_lease += 1;
                let id = board.last_lease;
                board.leases.push(Lease {
                    id,
                    profile: step.profile.clone(),
                    model: step.model.clone(),
                    until: now.after(Duration::from_millis(policy.probe.lease_ms)),
                });
                HeldLease::Only(id)
            }
        };
        (answer, Some(LeaseGuard { health: Arc::clone(self), held, since: now, ended: false }))
    }

    /// What [`Health::lease`] would answer. Nothing is granted.
    pub fn would_lease(&self, step: &LeaseStep, policy: &RunPolicy, now: Timestamp) -> LeaseAnswer {
        let board = self.board();
        let standing = board.standing(&step.profile, step.model.provider(), step.model.model(), now);
        board.may_lease(step, standing, policy, now)
    }

    /// Until when the profile is out for the model, where it is.
    pub fn out_until(&self, step: &LeaseStep, now: Timestamp) -> Option<Timestamp> {
        let board = self.board();
        match board.standing(&step.profile, step.model.provider(), step.model.model(), now) {
            Standing::Out { until, .. } => Some(until),
            Standing::Ready | Standing::Cold | Standing::Recovering { .. } | Standing::Paused => None,
        }
    }

    /// Since when, or from when, a session that wants its profiles like this can be served by `model` again: when the soonest
    /// of the windows ends that keep all of them away; now, where some are kept away and others are free; when the last window
    /// ended, or was lifted by a success or a person, where none is kept away; `None` where there never was a window. This is
    /// when the origin of a session's override is worth another look (requirement S-7). Profiles that a person paused do not
    /// count.
    pub fn free_at(&self, model: &ModelRef, preference: &Preference, now: Timestamp) -> Option<Timestamp> {
        let wanted = OrderProfiles::from(&Candidate::new(model.clone()));
        let mut slots = self.slots(&wanted, preference, None, now).slots;
        slots.retain(|slot| slot.standing != Standing::Paused);
        let out = |slot: &Slot| match slot.standing {
            Standing::Out { until, .. } => Some(until),
            Standing::Ready | Standing::Cold | Standing::Recovering { .. } | Standing::Paused => None,
        };
        let kept: Vec<Timestamp> = slots.iter().filter_map(out).collect();
        if let Some(soonest) = kept.iter().min() {
            return Some(if kept.len() < slots.len() { now } else { *soonest });
        }
        let board = self.board();
        let whole = board.stats(&Subject::Provider(model.provider().clone()));
        let ended =
            |window: &Window| if window.until > Timestamp::ZERO { window.until } else { window.set_at };
        let own = slots.iter().filter_map(|slot| board.stats(&Subject::Profile(slot.profile.clone())));
        let windows = own.chain(whole).flat_map(UsageStats::windows);
        windows.filter(|window| window.scope.covers(Some(model.model()))).map(ended).max()
    }

    /// An attempt with the profile has ended in a way that blames nobody: at least it is no stranger any more.
    pub fn met(&self, profile: &ProfileId) {
        let mut board = self.board();
        board.record(&Subject::Profile(profile.clone())).met = true;
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
        let known = next == record.stats;
        if !known {
            let clean = record.written >= record.change;
            record.calm = next.differs_in_use_only(&record.stats) && (clean || record.calm);
            record.change += 1;
            board.set_stats(&subject, next);
            if clean {
                board.dirty.push(subject.clone());
            }
        }
        let mut waiting = false;
        match &step.outcome {
            Outcome::Success(_) => {
                waiting = board.record(&subject).works();
            }
            Outcome::Failure(_) => {
                board.record(&Subject::Profile(step.profile.clone())).failed_at = Some(now);
                let after = board.standing(&step.profile, provider, step.model.model(), now);
                if let Standing::Out { until, .. } = after {
                    let record = board.record(&Subject::Profile(step.profile.clone()));
                    (record.proven, record.held_back, record.pressed_since) = (0, 0, None);
                    record.spent = (until, record.spent_on(until).saturating_add(1));
                }
            }
        }
        if waiting || !known && (before != Standing::Ready || matches!(step.outcome, Outcome::Failure(_))) {
            board.changed();
        }
        if known { RecordAnswer::Known } else { RecordAnswer::Changed }
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
        (record.read_at, record.heard) = (Some(now), true);
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
        let aliases = auth_aliases(provider).iter().filter_map(|alias| ProviderId::new(alias).ok());
        let mut subjects = vec![Subject::Provider(provider.clone())];
        for owner in std::iter::once(provider.clone()).chain(aliases) {
            let profiles = board.roster.profiles.of_provider(&owner);
            subjects.extend(profiles.map(|profile| Subject::Profile(profile.id.clone())));
        }
        if subjects.len() == 1 {
            subjects.extend(ProfileId::for_account(provider, None).map(Subject::Profile));
        }
        subjects.retain(|subject| {
            let read = board.records.get(subject).and_then(|record| record.read_at);
            read.is_none_or(|at| at < since)
        });
        subjects
    }

    /// Everything that has, or could have, a record of its own.
    pub fn subjects(&self) -> Vec<Subject> {
        let board = self.board();
        let mut subjects: HashSet<Subject> = board.records.keys().cloned().collect();
        for profile in board.roster.profiles.iter() {
            subjects.insert(Subject::Profile(profile.id.clone()));
            subjects.insert(Subject::Provider(profile.provider.clone()));
        }
        subjects.into_iter().collect()
    }

    /// Notes that a record was looked for in the store, so that an absent one is not looked for on every step.
    pub fn looked(&self, subject: &Subject, now: Timestamp) {
        self.board().record(subject).read_at = Some(now);
    }

    /// The store knows nothing of it.
    pub fn absent(&self, subject: &Subject) {
        self.board().record(subject).heard = true;
    }

    /// What the store has not seen yet.
    pub fn unwritten(&self) -> Vec<Unwritten> {
        self.unwritten_if(|_| true)
    }

    /// As [`Health::unwritten`], without what can wait: that a profile answered once more.
    pub fn due(&self, now: Timestamp) -> Vec<Unwritten> {
        self.unwritten_if(|record| record.is_due(now))
    }

    fn unwritten_if(&self, wanted: impl Fn(&Record) -> bool) -> Vec<Unwritten> {
        let board = self.board();
        let dirty = board.dirty.iter().filter_map(|subject| Some((subject, board.records.get(subject)?)));
        dirty
            .filter(|(_, record)| wanted(record))
            .map(|(subject, record)| Unwritten {
                subject: subject.clone(),
                stats: record.stats.clone(),
                change: record.change,
            })
            .collect()
    }

    /// The store has seen it.
    pub fn written(&self, unwritten: &Unwritten, now: Timestamp) {
        let mut board = self.board();
        let record = board.record(&unwritten.subject);
        record.written_at = Some(now);
        record.written = record.written.max(unwritten.change);
        if record.written >= record.change {
            board.dirty.retain(|subject| *subject != unwritten.subject);
        }
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
        let record = self.records.get(&Subject::Profile(step.profile.clone()));
        let until = match (step.kind, standing) {
            // Somebody else has found out since the profiles were put in order.
            (LeaseKind::Plain { .. } | LeaseKind::Recovering, Standing::Out { .. } | Standing::Paused) => {
                Some(now.after(Duration::from_millis(1)))
            }
            (LeaseKind::Plain { waited: false }, _) => {
                let limit =
                    record.and_then(|record| Some((record.in_flight, record.most_at_a_time(policy, now)?)));
                limit.and_then(|(in_flight, (most, more))| (in_flight >= most).then_some(more))
            }
            (LeaseKind::Recovering, Standing::Cold | Standing::Recovering { .. }) => {
                let held = self.leases.iter().filter(|lease| {
                    lease.profile == step.profile && lease.model == step.model && lease.until > now
                });
                held.map(|lease| lease.until).max()
            }
            // A person's choice is tried once a window whatever was tried before; then it is like any other.
            (LeaseKind::Probe { forced: true, .. }, Standing::Out { until, .. })
                if record.is_none_or(|record| record.forced != until) =>
            {
                None
            }
            (LeaseKind::Probe { interval, own, .. }, Standing::Out { until, .. }) if !interval.is_zero() => {
                self.next_probe(step, until, interval, own, policy, now).filter(|next| *next > now)
            }
            (LeaseKind::Plain { waited: true } | LeaseKind::Probe { .. }, _)
            | (LeaseKind::Recovering, Standing::Ready) => None,
        };
        until.map_or(LeaseAnswer::Granted, |until| LeaseAnswer::Held { until })
    }

    /// When a profile whose window ends at `window` may be probed (requirement R-6). `own`: so many of the asking
    /// run's calls have failed on it.
    fn next_probe(
        &self,
        step: &LeaseStep,
        window: Timestamp,
        interval: Duration,
        own: u32,
        policy: &RunPolicy,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let provider = step.model.provider();
        // What is later than now was noted before the clock was set back.
        let past = |at: &Timestamp| *at <= now;
        let last = self.probes.get(provider).copied().filter(past);
        let record = self.records.get(&Subject::Profile(step.profile.clone()));
        let (spent, in_flight) = record.map_or((0, 0), |record| (record.spent_on(window), record.in_flight));
        let slow = Duration::from_millis(policy.probe.slow_ms);
        let interval = if spent > policy.probe.per_window { interval.max(slow) } else { interval };
        // Whoever opened the window, alone, may look at once whether a sibling is well; for all others the failure that
        // opened it was a look, too.
        if own > 0 && spent <= own && spent <= policy.probe.per_window && in_flight == 0 {
            return last.map(|last| last.after(interval));
        }
        let concerns = |subject: &&Subject| match subject {
            Subject::Profile(id) => id.provider() == provider.as_str(),
            Subject::Provider(id) => id == provider,
        };
        let set = self.records.keys().filter(concerns).filter_map(|id| self.stats(id)?.last_failure_at());
        last.max(set.filter(past).max()).map(|last| last.after(interval))
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

//! Which profile of which candidate is tried next, and why others are not.

use super::table::{WhenOut, when_out};
use super::{
    AfterWait, AttemptKind, AttemptStep, Chosen, DecisionKind, Held, Here, LeaseAnswer, LeaseKind, Next,
    Plan, Purpose, Skip, Slot, Slots, Standing, State, StepOutcome, Visit, WaitStep, What,
};
use failover_types::{FailoverReason, Lane, ProfileId, ProviderId, Timestamp};
use std::time::Duration;

/// A candidate that is looked at so much more often than it may be tried is not waited for any longer.
const MOST_WAKES: u32 = 1_000;

impl Plan {
    /// Looks at the candidates from `index` on until one may be worth asking for.
    pub(super) fn enter(&mut self, index: usize) -> State {
        self.move_to(index);
        loop {
            let Some(candidate) = self.walk.get(self.at) else { return self.exhausted() };
            self.here = Here::default();
            if let Some(reason) = self.bound_reached() {
                return self.stop(reason);
            }
            let skip = if let Some(reason) = self.provider_out(candidate.model.provider()) {
                Some(Skip::ProviderOut { reason })
            } else {
                candidate.capabilities.unfit(&self.spec.needs).map(Skip::Unfit)
            };
            match skip {
                Some(skip) => self.note_skip(skip),
                None => return State::Ordering,
            }
        }
    }

    /// The profiles of the candidate at hand are known.
    pub(super) fn ordered(&mut self, slots: Slots) -> State {
        self.here.slots = slots;
        self.here.held.clear();
        self.here.looks += 1;
        if let Some(reason) = self.bound_reached() {
            return self.stop(reason);
        }
        self.choose()
    }

    /// The first profile that may be tried; else what R-6 says of a candidate that is out.
    fn choose(&mut self) -> State {
        let bound = self.spec.policy.inner_bound(self.here.slots.slots.len());
        if self.here.attempts >= bound || self.here.looks > bound.saturating_add(MOST_WAKES) {
            return self.nobody_left();
        }
        for slot in &self.here.slots.slots {
            if !self.may_try(slot) {
                continue;
            }
            let chosen = |kind| Chosen { profile: slot.profile.clone(), kind, transient_probe: false };
            match slot.standing {
                Standing::Ready | Standing::Cold => {
                    let kind = LeaseKind::Plain { waited: false };
                    return State::Leasing { chosen: chosen(AttemptKind::Plain), kind, out: None };
                }
                Standing::Recovering { .. } => {
                    let chosen = chosen(AttemptKind::Probe);
                    return State::Leasing { chosen, kind: LeaseKind::Recovering, out: None };
                }
                Standing::Out { .. } | Standing::Paused => {}
            }
        }
        if let Some(wait) = self.worth_waiting_for_others() {
            return State::Waiting { wait, then: AfterWait::Order };
        }
        self.nobody_left()
    }

    /// Whether nothing but its standing speaks against trying it.
    fn may_try(&self, slot: &Slot) -> bool {
        !self.here.tried.contains(&slot.profile)
            && !self.here.held.iter().any(|held| held.profile == slot.profile)
            && (self.at == 0 || !slot.skipped)
    }

    /// Whether a profile that was not tried yet, other than `but`, could be, as far as is known.
    pub(super) fn another_usable(&self, but: Option<&ProfileId>) -> bool {
        !self.here.slots.strict
            && self.here.slots.slots.iter().any(|slot| {
                Some(&slot.profile) != but
                    && self.may_try(slot)
                    && match slot.standing {
                        Standing::Ready | Standing::Cold | Standing::Recovering { .. } => true,
                        Standing::Out { .. } | Standing::Paused => false,
                    }
            })
    }

    /// A wait for the runs that hold the leases: always (and shortly) where they are about to show whether the profile
    /// works, and as the last resort where one is being tried after its window.
    fn worth_waiting_for_others(&mut self) -> Option<WaitStep> {
        let plain = self.here.held.iter().any(|held| matches!(held.kind, LeaseKind::Plain { .. }));
        let last = self.at + 1 >= self.walk.len() && self.here.tried.is_empty();
        let most = match (plain, last) {
            (true, _) => self.spec.policy.cold_start.longest_wait(),
            (false, true) => Duration::from_millis(self.spec.policy.probe.wait_ms),
            (false, false) => return None,
        };
        let until = self.here.held.iter().map(|held| held.until).min()?;
        let since = *self.here.waiting_since.get_or_insert(self.now);
        let until = until.min(since.after(most));
        let until = match self.deadline {
            None => until,
            // Half of what the candidate may take of the run's time stays for the call itself.
            Some(deadline) if plain => {
                let left = u32::try_from(self.candidates_left()).unwrap_or(u32::MAX);
                until.min(since.after(deadline.since(since) / left.max(1).saturating_mul(2)))
            }
            Some(deadline) => until.min(deadline),
        };
        (until > self.now).then_some(WaitStep { until, wake_on_health: true })
    }

    /// No profile of the candidate may be tried in the ordinary way.
    fn nobody_left(&mut self) -> State {
        if !self.here.tried.is_empty() {
            return self.give_up();
        }
        // Waited long enough for somebody's answer: go without it.
        let plain = |held: &&Held| matches!(held.kind, LeaseKind::Plain { .. });
        if let Some(held) = self.here.held.iter().find(plain) {
            let chosen =
                Chosen { profile: held.profile.clone(), kind: AttemptKind::Plain, transient_probe: false };
            return State::Leasing { chosen, kind: LeaseKind::Plain { waited: true }, out: None };
        }
        let Slots { slots, left_out, strict, .. } = &self.here.slots;
        if slots.is_empty() {
            return self.skip(Skip::of_left_out(left_out, *strict));
        }
        if let Some(until) = self.here.held.iter().map(|held| held.until).min() {
            return self.skip(Skip::Leased { until });
        }
        let slots = &self.here.slots.slots;
        let soonest = slots
            .iter()
            .filter(|slot| self.may_try(slot))
            .filter_map(|slot| match slot.standing {
                Standing::Out { reason, until } => Some((until, reason, slot.profile.clone())),
                Standing::Ready | Standing::Cold | Standing::Recovering { .. } | Standing::Paused => None,
            })
            .min();
        match soonest {
            Some((until, reason, profile)) => {
                let reason = self.here.slots.inferred.unwrap_or(reason);
                self.all_out(reason, until, profile)
            }
            None if slots.iter().any(|slot| slot.standing != Standing::Paused) => self.skip(Skip::SkipCache),
            None => self.skip(Skip::Paused),
        }
    }

    /// Every profile is out (requirement R-6).
    fn all_out(&mut self, reason: FailoverReason, until: Timestamp, profile: ProfileId) -> State {
        let policy = &self.spec.policy.probe;
        let provider = self.candidate().model.provider().clone();
        let primary = self.at == 0;
        let alone = self.walk.len() == 1;
        let sibling = self.walk.iter().take(self.at).any(|candidate| *candidate.model.provider() == provider);
        let near = until <= self.now.after(Duration::from_millis(policy.margin_ms));
        let interval = Duration::from_millis(if near || alone { policy.throttle_ms } else { policy.slow_ms });
        let throttle = Duration::from_millis(policy.throttle_ms);
        let when = when_out(reason.lane());
        let forced = self.here.slots.force_probe;
        let interval = match when {
            // Whoever asks whether it is well means now.
            _ if forced && self.spec.purpose == Purpose::Probe => Some(Duration::ZERO),
            _ if forced => Some(interval),
            WhenOut::SkipProvider => None,
            WhenOut::ProbePrimary => primary.then_some(interval),
            WhenOut::ProbeTransient if primary => Some(interval),
            WhenOut::ProbeTransient => sibling.then_some(throttle),
        };
        let whole = match when {
            WhenOut::SkipProvider | WhenOut::ProbePrimary => !self.here.slots.strict,
            WhenOut::ProbeTransient => false,
        };
        let Some(interval) = interval else {
            if whole {
                self.take_out(provider, reason);
            }
            return self.skip(Skip::Cooling { reason, until });
        };
        let transient_probe = when == WhenOut::ProbeTransient && !forced;
        if transient_probe && self.probes_spent.contains(&provider) {
            return self.skip(Skip::ProbeSpent { reason, until });
        }
        let own = if transient_probe && !primary { self.failed_on(&profile) } else { 0 };
        let chosen = Chosen { profile, kind: AttemptKind::Probe, transient_probe };
        State::Leasing {
            chosen,
            kind: LeaseKind::Probe { interval, own, forced },
            out: Some((reason, until)),
        }
    }

    /// How many of this run's calls have failed on the profile.
    fn failed_on(&self, profile: &ProfileId) -> u32 {
        let failed = self.trail.iter().filter(|visit| match &visit.what {
            What::Attempt(attempt) => attempt.profile == *profile && attempt.error.is_some(),
            What::Skip(_) => false,
        });
        u32::try_from(failed.count()).unwrap_or(u32::MAX)
    }

    /// Whether the profile may be tried is known.
    pub(super) fn leased(
        &mut self,
        chosen: Chosen,
        kind: LeaseKind,
        out: Option<(FailoverReason, Timestamp)>,
        answer: LeaseAnswer,
    ) -> State {
        match (answer, out) {
            (LeaseAnswer::Granted, None) => self.begin(chosen),
            (LeaseAnswer::Granted, Some((reason, _))) => {
                self.decide(DecisionKind::ProbeCooldownCandidate, Some(&chosen.profile), Some(reason), None);
                self.begin(chosen)
            }
            (LeaseAnswer::Held { .. }, Some((reason, until))) => self.skip(Skip::Cooling { reason, until }),
            // It has gone out since the profiles were put in order.
            (LeaseAnswer::Held { .. }, None) if kind == LeaseKind::Plain { waited: true } => State::Ordering,
            (LeaseAnswer::Held { until }, None) => {
                self.here.held.push(Held { profile: chosen.profile, kind, until });
                self.choose()
            }
        }
    }

    /// Tries the profile; a fallback of a session is written into it first (requirement S-2).
    fn begin(&mut self, chosen: Chosen) -> State {
        let sticky = match self.spec.policy.persistence {
            super::Persistence::Sticky => true,
            super::Persistence::TurnLocal => false,
        };
        if self.spec.claims && sticky && self.at > 0 {
            State::Claiming { chosen }
        } else {
            self.attempt(chosen)
        }
    }

    /// Makes the attempt, unless a bound of the run or of the candidate is reached.
    pub(super) fn attempt(&mut self, chosen: Chosen) -> State {
        if let Some(reason) = self.bound_reached() {
            return self.stop(reason);
        }
        if self.here.attempts >= self.spec.policy.inner_bound(self.here.slots.slots.len()) {
            return self.give_up();
        }
        let limits = self.limits();
        self.attempts += 1;
        self.here.attempts += 1;
        let step = AttemptStep {
            model: self.candidate().model.clone(),
            profile: chosen.profile.clone(),
            candidate: self.at,
            number: self.attempts,
            idempotency_key: std::sync::Arc::clone(&self.spec.idempotency_key),
            limits,
            kind: chosen.kind,
            started_at: self.now,
        };
        State::Attempting { chosen, step }
    }

    /// Notes that the candidate at hand is not tried, and goes on behind it.
    fn skip(&mut self, skip: Skip) -> State {
        self.note_skip(skip);
        self.enter(self.at)
    }

    fn note_skip(&mut self, skip: Skip) {
        let outcome = if self.at + 1 < self.walk.len() {
            StepOutcome::NextFallback
        } else {
            StepOutcome::ChainExhausted
        };
        let reason = skip.reason();
        self.decide(DecisionKind::SkipCandidate { why: skip.code() }, None, reason, Some(outcome));
        if self.at == 0 {
            self.primary_reason = skip.stands_for();
        }
        let model = self.candidate().model.clone();
        self.trail.push(Visit { candidate: self.at, model, what: What::Skip(skip) });
        self.move_to(self.at + 1);
    }

    /// Why the provider is skipped in this run, where it is.
    pub(super) fn provider_out(&self, provider: &ProviderId) -> Option<FailoverReason> {
        self.providers_out.iter().find(|(out, _)| out == provider).map(|(_, reason)| *reason)
    }

    /// The candidate at hand is given up: the next one.
    pub(super) fn give_up(&mut self) -> State {
        let last = self.at + 1 >= self.walk.len();
        let outcome = if last { StepOutcome::ChainExhausted } else { StepOutcome::NextFallback };
        self.decide(DecisionKind::CandidateFailed, None, self.last_reason, Some(outcome));
        if self.at == 0 {
            self.primary_reason = self.last_reason;
        }
        self.leave(Next::Candidate(self.at + 1))
    }

    /// Whether a probe that failed in this lane has spent its provider's only one of the run.
    pub(super) fn spend_probe(&mut self, chosen: &Chosen, lane: Lane) {
        if chosen.transient_probe && super::table::spends_probe(lane) {
            self.probes_spent.push(self.candidate().model.provider().clone());
        }
    }
}

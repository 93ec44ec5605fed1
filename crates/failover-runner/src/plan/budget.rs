//! Time and attempts: how much an attempt gets, and the worst case of a whole run.

use super::{AttemptLimits, End, Plan, RunPolicy, StopReason};
use failover_types::{FailoverReason, ProviderId};
use std::time::Duration;

/// The worst case of a run (requirement R-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// Calls to providers.
    pub calls: u64,
    /// Waiting apart from the calls themselves.
    pub waiting: Duration,
}

/// The worst case of a run over candidates with so many profiles each. No answer of any provider makes it worse.
pub fn bound(policy: &RunPolicy, profiles: &[usize]) -> Bound {
    let in_place = u64::from(policy.retry_in_place.max);
    // A wait that a provider asks for, or the jitter; and one wait for other runs, of whichever kind is longer.
    let again = policy.retry_in_place.max_wait_ms.max(policy.retry_in_place.jitter_ms);
    let others = failover_types::millis(policy.cold_start.longest_wait()).max(policy.probe.wait_ms);
    let mut calls = 0_u64;
    let mut waiting = 0_u64;
    for profiles in profiles {
        let count = u64::try_from((*profiles).max(1)).unwrap_or(u64::MAX);
        let most = u64::from(policy.inner_bound(*profiles));
        calls = calls.saturating_add(count.saturating_add(in_place).min(most));
        let backoffs = u64::from(policy.overloaded_profile_rotations).min(count.saturating_sub(1));
        waiting = waiting
            .saturating_add(in_place.saturating_mul(again))
            .saturating_add(backoffs.saturating_mul(policy.overloaded_backoff_ms))
            .saturating_add(others);
    }
    // One repair of each kind.
    calls = calls.saturating_add(2);
    if let Some(most) = policy.max_attempts {
        calls = calls.min(u64::from(most));
    }
    if let Some(deadline) = policy.deadline_ms {
        waiting = waiting.min(deadline);
    }
    Bound { calls, waiting: Duration::from_millis(waiting) }
}

impl Plan {
    /// Which bound of the whole run is reached.
    pub(super) fn bound_reached(&self) -> Option<StopReason> {
        if self.deadline.is_some_and(|deadline| self.now >= deadline) {
            return Some(StopReason::Deadline);
        }
        self.spec.policy.max_attempts.filter(|most| self.attempts >= *most).map(|_| StopReason::Attempts)
    }

    /// What an attempt that begins now may take: its own limits, and its share of what is left (requirement R-16).
    pub(super) fn limits(&mut self) -> AttemptLimits {
        let left = if self.deadline.is_some() { self.candidates_left() } else { 1 };
        let limits = &self.spec.policy.limits;
        let own = limits
            .attempt_ms
            .map(|ms| End { at: self.now.after(Duration::from_millis(ms)), by_caller: false });
        let share = self.deadline.map(|deadline| {
            let left = u64::try_from(left).unwrap_or(u64::MAX).max(1);
            let share = deadline.as_millis().saturating_sub(self.now.as_millis()).div_ceil(left);
            End { at: self.now.after(Duration::from_millis(share)), by_caller: true }
        });
        let end = match (own, share) {
            (Some(own), Some(share)) => Some(if share.at < own.at { share } else { own }),
            (own, share) => own.or(share),
        };
        AttemptLimits {
            connect: limits.connect_ms.map(Duration::from_millis),
            first_byte: limits.first_byte_ms.map(Duration::from_millis),
            first_content: limits.first_content_ms.map(Duration::from_millis),
            whole: limits.whole_ms.map(Duration::from_millis),
            idle: limits.idle_ms.map(Duration::from_millis),
            end,
            deadline: self.deadline,
        }
    }

    /// The candidate at hand and those behind it that could still be tried.
    pub(super) fn candidates_left(&mut self) -> usize {
        let ahead = self
            .ahead
            .unwrap_or_else(|| (self.at + 1..self.walk.len()).filter(|at| self.may_be_tried(*at)).count());
        self.ahead = Some(ahead);
        ahead + 1
    }

    /// Whether the candidate at this place could be tried, as far as is known before it is looked at.
    fn may_be_tried(&self, at: usize) -> bool {
        self.walk.get(at).is_some_and(|candidate| {
            self.provider_out(candidate.model.provider()).is_none()
                && candidate.capabilities.unfit(&self.spec.needs).is_none()
        })
    }

    /// Makes the candidate at `index` the one at hand.
    pub(super) fn move_to(&mut self, index: usize) {
        self.ahead = match self.ahead {
            Some(ahead) if index == self.at => Some(ahead),
            // One step on: a long chain is not counted anew at every step.
            Some(ahead) if index == self.at + 1 => {
                Some(ahead.saturating_sub(usize::from(self.may_be_tried(index))))
            }
            Some(_) | None => None,
        };
        self.at = index;
    }

    /// The provider is out for the rest of the run.
    pub(super) fn take_out(&mut self, provider: ProviderId, reason: FailoverReason) {
        self.providers_out.push((provider, reason));
        self.ahead = None;
    }

    /// A wait of at most `wait`, if it ends before the deadline does.
    pub(super) fn fits(&self, wait: Duration) -> bool {
        self.deadline.is_none_or(|deadline| self.now.after(wait) < deadline)
    }

    /// A wait below `most` that differs from run to run and from attempt to attempt, and is the same for the same seed.
    pub(super) fn jitter(&self, most: u64) -> Duration {
        // SplitMix64: a good spread for consecutive inputs, in three lines.
        let mut z = self.spec.seed.wrapping_add(u64::from(self.attempts).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Duration::from_millis((z ^ (z >> 31)) % most.saturating_add(1))
    }
}

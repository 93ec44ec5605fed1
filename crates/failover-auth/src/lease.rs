//! Leases: one caller does it, the others wait or go elsewhere, and a dead holder's lease runs out.

use crate::usage::UsageStats;
use crate::{Availability, availability};
use failover_types::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Who may do something now. Stored as one record per thing, changed by compare-and-swap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Lease {
    /// Who holds it: unique per task and process. Empty when it was given back.
    pub holder: String,
    /// When it runs out.
    pub until: Timestamp,
    /// When it was last granted.
    pub granted_at: Timestamp,
}

/// Whether a caller may go ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "only a granted lease lets the caller go ahead, once it is stored"]
#[expect(clippy::exhaustive_enums, reason = "control flow: a lease is granted or not")]
pub enum LeaseClaim {
    /// Yes, once this record is stored over the one that was read.
    Granted(Lease),
    /// Not before then.
    Denied {
        /// When asking again makes sense.
        until: Timestamp,
    },
}

/// How long a lease lasts, and how often one is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseTerms {
    /// For how long. Holders that need longer claim it again.
    pub lasts: Duration,
    /// Least time between one grant and the next to somebody else.
    pub every: Duration,
}

impl LeaseTerms {
    /// Terms of a lease.
    pub fn new(lasts: Duration, every: Duration) -> Self {
        Self { lasts, every }
    }
}

impl Lease {
    /// Decides a claim on what is stored now. The holder itself may claim again to renew.
    ///
    /// A record from the future (the clock was set back since) counts only as far as a lease can last from now, so
    /// that a wrong clock locks nobody out.
    pub fn claim(current: Option<&Self>, holder: &str, terms: LeaseTerms, now: Timestamp) -> LeaseClaim {
        let granted = Self { holder: holder.to_owned(), until: now.after(terms.lasts), granted_at: now };
        let Some(current) = current.filter(|lease| lease.granted_at <= now) else {
            return LeaseClaim::Granted(granted);
        };
        let held = current.holder != holder && !current.holder.is_empty();
        let lease_end = if held { current.until.min(granted.until) } else { Timestamp::ZERO };
        let gap_end =
            if current.holder == holder { Timestamp::ZERO } else { current.granted_at.after(terms.every) };
        match lease_end.max(gap_end) {
            until if until > now => LeaseClaim::Denied { until },
            _ => LeaseClaim::Granted(granted),
        }
    }

    /// What to store when `holder` is done; `None` if it no longer holds the lease.
    #[must_use]
    pub fn release(&self, holder: &str) -> Option<Self> {
        (self.holder == holder).then(|| Self {
            holder: String::new(),
            until: Timestamp::ZERO,
            ..self.clone()
        })
    }

    /// Whether `holder` holds it at `now`.
    pub fn is_held_by(&self, holder: &str, now: Timestamp) -> bool {
        self.holder == holder && now < self.until
    }
}

/// When things that are out are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbePolicy {
    /// How long a prober may take before another may try. Default 60 s.
    pub lease: Duration,
    /// Least time between two probes of one provider by one agent. Default 30 s.
    pub throttle: Duration,
    /// How long before its end a window may be probed. Default 2 min.
    pub near_expiry: Duration,
    /// How often a long window is probed. Default 15 min.
    pub slow: Duration,
}

impl Default for ProbePolicy {
    fn default() -> Self {
        Self {
            lease: Duration::from_mins(1),
            throttle: Duration::from_secs(30),
            near_expiry: Duration::from_mins(2),
            slow: Duration::from_mins(15),
        }
    }
}

impl ProbePolicy {
    /// The terms of the lease on one (provider, profile, model).
    pub fn lease_terms(&self) -> LeaseTerms {
        LeaseTerms::new(self.lease, Duration::ZERO)
    }

    /// The terms of the throttle of one provider and agent.
    pub fn throttle_terms(&self) -> LeaseTerms {
        LeaseTerms::new(Duration::ZERO, self.throttle)
    }
}

/// Why something may be probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProbeKind {
    /// Its window has ended and nothing has answered since: one caller goes first.
    Recovery,
    /// Its window ends soon.
    NearExpiry,
    /// Its window is long and was not tried for a while.
    Slow,
}

/// Whether, and why, `stats` may be probed for `model`. `last` is the lease of the last probe, if there was one.
///
/// A pause is never probed.
pub fn probe_due(
    stats: &UsageStats,
    model: Option<&str>,
    last: Option<&Lease>,
    policy: &ProbePolicy,
    now: Timestamp,
) -> Option<ProbeKind> {
    let until = match availability(stats, model, now) {
        Availability::Paused => return None,
        Availability::Usable => return recovering(stats, model, now).then_some(ProbeKind::Recovery),
        Availability::Cooling { until, .. }
        | Availability::Blocked { until, .. }
        | Availability::Disabled { until, .. } => until,
    };
    if until.since(now) <= policy.near_expiry {
        return Some(ProbeKind::NearExpiry);
    }
    (now.since(tried(stats, model, last, now)) >= policy.slow).then_some(ProbeKind::Slow)
}

/// When `stats` may be probed for `model` next, at the soonest; `None` where there is nothing to probe, or a person
/// paused it. [`probe_due`] says yes from then on.
pub fn next_probe(
    stats: &UsageStats,
    model: Option<&str>,
    last: Option<&Lease>,
    policy: &ProbePolicy,
    now: Timestamp,
) -> Option<Timestamp> {
    let until = match availability(stats, model, now) {
        Availability::Paused => return None,
        Availability::Usable => return recovering(stats, model, now).then_some(now),
        Availability::Cooling { until, .. }
        | Availability::Blocked { until, .. }
        | Availability::Disabled { until, .. } => until,
    };
    let slow = tried(stats, model, last, now).after(policy.slow);
    Some(until.before(policy.near_expiry).min(slow).max(now))
}

/// When it was last looked at: by a probe, or by the failure that set its window. What is later than now was noted before
/// a clock was set back, and does not count.
fn tried(stats: &UsageStats, model: Option<&str>, last: Option<&Lease>, now: Timestamp) -> Timestamp {
    let set = stats.active(now).filter(|window| window.scope.covers(model)).map(|window| window.set_at);
    set.chain(last.map(|lease| lease.granted_at)).filter(|at| *at <= now).max().unwrap_or_default()
}

/// Whether a window for `model` has ended and nothing has answered since, which would have lifted it. While this holds, callers go one at a time,
/// by lease, so that a crowd does not knock the provider over again.
pub fn recovering(stats: &UsageStats, model: Option<&str>, now: Timestamp) -> bool {
    let ended = |until: Timestamp| until != Timestamp::ZERO && until <= now;
    stats.windows().iter().any(|window| ended(window.until) && window.scope.covers(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CooldownPolicy, Failure, Outcome, Success, next_usage};
    use failover_types::{FailoverReason, ModelRef};

    const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn at(seconds: u64) -> Timestamp {
        T0.after(Duration::from_secs(seconds))
    }

    fn terms() -> LeaseTerms {
        ProbePolicy::default().lease_terms()
    }

    fn granted(claim: LeaseClaim) -> Lease {
        match claim {
            LeaseClaim::Granted(lease) => lease,
            LeaseClaim::Denied { until } => panic!("denied until {until}"),
        }
    }

    // spec: A-26
    #[test]
    fn one_holder_at_a_time_and_a_dead_one_runs_out() {
        let lease = granted(Lease::claim(None, "p1", terms(), at(0)));
        assert_eq!(Lease::claim(Some(&lease), "p2", terms(), at(59)), LeaseClaim::Denied { until: at(60) });
        assert_eq!(granted(Lease::claim(Some(&lease), "p2", terms(), at(60))).holder, "p2");
        assert_eq!(granted(Lease::claim(Some(&lease), "p1", terms(), at(30))).until, at(90), "renewed");
    }

    // spec: A-26
    #[test]
    fn a_released_lease_is_free_at_once_and_only_its_holder_releases_it() {
        let lease = granted(Lease::claim(None, "p1", terms(), at(0)));
        assert_eq!(lease.release("p2"), None);
        let free = lease.release("p1").unwrap();
        assert!(!free.is_held_by("p1", at(1)));
        assert_eq!(granted(Lease::claim(Some(&free), "p2", terms(), at(1))).holder, "p2");
    }

    // spec: A-26
    #[test]
    fn a_clock_that_was_set_back_locks_nobody_out() {
        let lease = granted(Lease::claim(None, "p1", terms(), at(86_400)));
        assert_eq!(granted(Lease::claim(Some(&lease), "p2", terms(), at(0))).holder, "p2");
        let absurd = Lease { until: Timestamp::MAX, ..granted(Lease::claim(None, "p1", terms(), at(0))) };
        assert_eq!(Lease::claim(Some(&absurd), "p2", terms(), at(5)), LeaseClaim::Denied { until: at(65) });
    }

    // spec: R-6
    #[test]
    fn the_throttle_spaces_grants_out() {
        let throttle = ProbePolicy::default().throttle_terms();
        let first = granted(Lease::claim(None, "run1", throttle, at(0)));
        assert_eq!(
            Lease::claim(Some(&first), "run2", throttle, at(29)),
            LeaseClaim::Denied { until: at(30) }
        );
        assert_eq!(granted(Lease::claim(Some(&first), "run2", throttle, at(30))).holder, "run2");
    }

    // spec
    #[test]
    fn probes_come_near_the_end_slowly_in_between_and_once_after() {
        let policy = CooldownPolicy::default();
        let probes = ProbePolicy::default();
        let model: ModelRef = "a/m".parse().unwrap();
        let fail = |reason, s| Outcome::from(Failure::new(&model, reason, at(s)));
        let stats = next_usage(&UsageStats::default(), &fail(FailoverReason::Billing, 0), &policy, at(0));
        let due = |last: Option<&Lease>, s| probe_due(&stats, Some("m"), last, &probes, at(s));
        assert_eq!(due(None, 60), None);
        assert_eq!(due(None, 15 * 60), Some(ProbeKind::Slow));
        let last = granted(Lease::claim(None, "p", terms(), at(15 * 60)));
        assert_eq!(due(Some(&last), 29 * 60), None);
        assert_eq!(due(Some(&last), 30 * 60), Some(ProbeKind::Slow));
        assert_eq!(due(Some(&last), 5 * 3600 - 120), Some(ProbeKind::NearExpiry));
        assert_eq!(due(Some(&last), 5 * 3600), Some(ProbeKind::Recovery));
        let answered = Success::new(&model, at(5 * 3600)).into();
        let healthy = next_usage(&stats, &answered, &policy, at(5 * 3600 + 1));
        assert_eq!(probe_due(&healthy, Some("m"), None, &probes, at(5 * 3600 + 2)), None);
        let paused = crate::pause(&stats, crate::WindowScope::Profile, "ada", at(0)).unwrap();
        assert_eq!(probe_due(&paused, Some("m"), None, &probes, at(5 * 3600)), None);
    }

    // spec: A-23
    #[test]
    fn the_next_probe_is_when_one_is_due() {
        let model: ModelRef = "a/m".parse().unwrap();
        let policy = CooldownPolicy::default();
        let failure = Failure::new(&model, FailoverReason::Billing, at(0)).into();
        let stats = next_usage(&UsageStats::default(), &failure, &policy, at(0));
        let probes = ProbePolicy::default();
        for seconds in [0, 100, 899, 900, 5_000, 5 * 3_600 - 130, 5 * 3_600] {
            let next = next_probe(&stats, Some("m"), None, &probes, at(seconds)).unwrap();
            let due = |now| probe_due(&stats, Some("m"), None, &probes, now).is_some();
            assert!(due(next), "{seconds}");
            assert_eq!(next == at(seconds), due(at(seconds)), "{seconds}");
            assert!(next == at(seconds) || !due(next.before(Duration::from_millis(1))), "{seconds}");
        }
        assert_eq!(next_probe(&UsageStats::default(), None, None, &probes, at(0)), None);
    }

    // spec: A-23
    #[test]
    fn a_clock_that_was_set_back_puts_no_probe_off() {
        let model: ModelRef = "a/m".parse().unwrap();
        let probes = ProbePolicy::default();
        let failure = Failure::new(&model, FailoverReason::Billing, at(0)).into();
        let stats = next_usage(&UsageStats::default(), &failure, &CooldownPolicy::default(), at(0));
        let ahead = granted(Lease::claim(None, "p", terms(), at(7_200)));
        assert_eq!(next_probe(&stats, Some("m"), Some(&ahead), &probes, at(100)), Some(at(900)));
        assert_eq!(probe_due(&stats, Some("m"), Some(&ahead), &probes, at(900)), Some(ProbeKind::Slow));
        let tried = granted(Lease::claim(Some(&ahead), "q", terms(), at(900)));
        assert_eq!(
            next_probe(&stats, Some("m"), Some(&tried), &probes, at(901)),
            Some(at(1_800)),
            "and once"
        );
    }

    // spec: A-26
    #[test]
    fn another_models_window_does_not_make_a_profile_recover() {
        let model: ModelRef = "a/m".parse().unwrap();
        let failure = Failure::new(&model, FailoverReason::RateLimit, at(0)).into();
        let stats = next_usage(&UsageStats::default(), &failure, &CooldownPolicy::default(), at(0));
        assert!(recovering(&stats, Some("m"), at(31)));
        assert!(!recovering(&stats, Some("other"), at(31)));
        assert!(!recovering(&stats, Some("m"), at(29)), "the window still holds");
    }
}

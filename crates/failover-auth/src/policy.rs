//! How long: ladders, backoffs and caps, checked once.

use failover_types::ProviderId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// Nothing is blocked for longer than this, whoever says so.
pub(crate) const LONGEST: Duration = Duration::from_hours(31 * 24);
/// More rungs than anybody needs; keeps the policy small.
const MAX_RUNGS: usize = 32;

/// What can be configured. [`CooldownPolicy::new`] checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CooldownOptions {
    /// Waits after the first, second … consecutive error; the last one repeats. Default 30 s, 1 min, 5 min.
    pub ladder: Vec<Duration>,
    /// First wait after a billing failure; doubles. Default 5 h.
    pub billing: Duration,
    /// First wait after a billing failure at single providers.
    pub billing_by_provider: BTreeMap<ProviderId, Duration>,
    /// Longest wait after a billing failure. Default 24 h.
    pub billing_cap: Duration,
    /// First wait after a permanent auth failure; doubles. Default 10 min.
    pub permanent: Duration,
    /// Longest wait after a permanent auth failure. Default 60 min.
    pub permanent_cap: Duration,
    /// Counters start again when no failure happened and no window held for so long. Default 24 h.
    pub failure_window: Duration,
    /// Longest wait that a provider's hint can impose. Default 24 h.
    pub hint_cap: Duration,
    /// Longest wait that an exact reset time can impose. Default and most 31 days.
    pub reset_cap: Duration,
    /// Providers that balance over many upstreams themselves: never a profile-wide rate-limit window.
    /// Default `openrouter`.
    pub self_balancing: BTreeSet<ProviderId>,
}

impl Default for CooldownOptions {
    fn default() -> Self {
        Self {
            ladder: vec![30 * SECOND, MINUTE, 5 * MINUTE],
            billing: 5 * HOUR,
            billing_by_provider: BTreeMap::new(),
            billing_cap: DAY,
            permanent: 10 * MINUTE,
            permanent_cap: HOUR,
            failure_window: DAY,
            hint_cap: DAY,
            reset_cap: LONGEST,
            self_balancing: ProviderId::new("openrouter").into_iter().collect(),
        }
    }
}

impl CooldownOptions {
    /// The older, longer ladder: 1, 5, 25, 60 minutes.
    pub fn classic() -> Self {
        Self { ladder: vec![MINUTE, 5 * MINUTE, 25 * MINUTE, HOUR], ..Self::default() }
    }
}

/// What is wrong with the options, in the config's own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No rung at all.
    #[error("the cooldown ladder is empty; give at least one wait")]
    EmptyLadder,
    /// More rungs than are kept.
    #[error("the cooldown ladder has {found} steps; {MAX_RUNGS} are enough")]
    LongLadder {
        /// How many were given.
        found: usize,
    },
    /// A ladder that goes down again.
    #[error("step {step} of the cooldown ladder is shorter than the one before it")]
    FallingLadder {
        /// Which step, counted from one.
        step: usize,
    },
    /// A time of zero, or of more than 31 days.
    #[error("{what} must be longer than zero and at most 31 days")]
    Range {
        /// Which setting.
        what: String,
    },
    /// A first wait above its own cap.
    #[error("{what} starts above its cap; raise the cap or lower the first wait")]
    AboveCap {
        /// Which setting.
        what: String,
    },
}

/// Checked options. Clones are deep; share it behind an `Arc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CooldownPolicy(CooldownOptions);

impl CooldownPolicy {
    /// Checks options.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] names the first setting that cannot be meant.
    pub fn new(options: CooldownOptions) -> Result<Self, PolicyError> {
        let ladder = &options.ladder;
        if ladder.is_empty() {
            return Err(PolicyError::EmptyLadder);
        }
        if ladder.len() > MAX_RUNGS {
            return Err(PolicyError::LongLadder { found: ladder.len() });
        }
        if let Some(at) = ladder.iter().zip(ladder.iter().skip(1)).position(|(a, b)| b < a) {
            return Err(PolicyError::FallingLadder { step: at + 2 });
        }
        let ranges = ladder
            .iter()
            .map(|wait| ("a step of the cooldown ladder".to_owned(), *wait))
            .chain(
                [
                    ("the billing wait", options.billing),
                    ("the billing cap", options.billing_cap),
                    ("the permanent auth wait", options.permanent),
                    ("the permanent auth cap", options.permanent_cap),
                    ("the failure window", options.failure_window),
                    ("the cap of retry hints", options.hint_cap),
                    ("the cap of exact resets", options.reset_cap),
                ]
                .map(|(what, wait)| (what.to_owned(), wait)),
            )
            .chain(
                options
                    .billing_by_provider
                    .iter()
                    .map(|(id, wait)| (format!("the billing wait of {id}"), *wait)),
            );
        for (what, wait) in ranges {
            if wait.is_zero() || wait > LONGEST {
                return Err(PolicyError::Range { what });
            }
        }
        if options.billing > options.billing_cap {
            return Err(PolicyError::AboveCap { what: "the billing wait".to_owned() });
        }
        if options.permanent > options.permanent_cap {
            return Err(PolicyError::AboveCap { what: "the permanent auth wait".to_owned() });
        }
        if let Some((id, _)) =
            options.billing_by_provider.iter().find(|(_, wait)| **wait > options.billing_cap)
        {
            return Err(PolicyError::AboveCap { what: format!("the billing wait of {id}") });
        }
        Ok(Self(options))
    }

    /// The checked options.
    pub fn options(&self) -> &CooldownOptions {
        &self.0
    }

    /// The wait after the `errors`-th consecutive error, counted from one.
    pub fn rung(&self, errors: u32) -> Duration {
        let at = usize::try_from(errors.saturating_sub(1)).unwrap_or(usize::MAX);
        let ladder = &self.0.ladder;
        ladder.get(at).or(ladder.last()).copied().unwrap_or(SECOND)
    }

    /// The wait after the `failures`-th billing failure at `provider`, counted from one.
    pub fn billing_wait(&self, provider: &ProviderId, failures: u32) -> Duration {
        let first = self.0.billing_by_provider.get(provider).unwrap_or(&self.0.billing);
        doubling(*first, failures, self.0.billing_cap)
    }

    /// The wait after the `failures`-th permanent auth failure, counted from one.
    pub fn permanent_wait(&self, failures: u32) -> Duration {
        doubling(self.0.permanent, failures, self.0.permanent_cap)
    }

    /// Whether `provider` balances over many upstreams itself.
    pub fn is_self_balancing(&self, provider: &ProviderId) -> bool {
        self.0.self_balancing.contains(provider)
    }
}

fn doubling(first: Duration, failures: u32, cap: Duration) -> Duration {
    let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    first.checked_mul(factor).map_or(cap, |wait| wait.min(cap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: A-10
    #[test_case(CooldownOptions::default(), &[30, 60, 300, 300]; "default")]
    #[test_case(CooldownOptions::classic(), &[60, 300, 1500, 3600, 3600]; "classic")]
    fn ladder(options: CooldownOptions, expected: &[u64]) {
        let policy = CooldownPolicy::new(options).unwrap();
        for (errors, seconds) in (1..).zip(expected) {
            assert_eq!(policy.rung(errors), Duration::from_secs(*seconds), "error {errors}");
        }
        assert_eq!(policy.rung(u32::MAX).as_secs(), *expected.last().unwrap());
    }

    // spec: A-15
    #[test]
    fn disable_lanes_double_up_to_their_caps() {
        let mut options = CooldownOptions::default();
        let acme = ProviderId::new("acme").unwrap();
        options.billing_by_provider.insert(acme.clone(), HOUR);
        let policy = CooldownPolicy::new(options).unwrap();
        let other = ProviderId::new("other").unwrap();
        let billing = |id: &ProviderId| {
            (1..=6).map(|n| policy.billing_wait(id, n).as_secs() / 3600).collect::<Vec<_>>()
        };
        assert_eq!(billing(&other), [5, 10, 20, 24, 24, 24]);
        assert_eq!(billing(&acme), [1, 2, 4, 8, 16, 24]);
        let permanent: Vec<_> = (1..=5).map(|n| policy.permanent_wait(n).as_secs() / 60).collect();
        assert_eq!(permanent, [10, 20, 40, 60, 60]);
        assert_eq!(policy.billing_wait(&other, u32::MAX), DAY);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refuse = |change: fn(&mut CooldownOptions)| {
            let mut options = CooldownOptions::default();
            change(&mut options);
            CooldownPolicy::new(options).unwrap_err().to_string()
        };
        assert!(refuse(|o| o.ladder.clear()).contains("empty"));
        assert!(refuse(|o| o.ladder = vec![SECOND; 33]).contains("33 steps"));
        assert!(refuse(|o| o.ladder = vec![MINUTE, SECOND]).contains("step 2"));
        assert!(refuse(|o| o.ladder = vec![Duration::ZERO]).contains("ladder"));
        assert!(refuse(|o| o.hint_cap = 32 * DAY).contains("retry hints"));
        assert!(refuse(|o| o.billing = 25 * HOUR).contains("billing wait starts above"));
        assert!(refuse(|o| o.permanent = 2 * HOUR).contains("permanent"));
        let acme = |o: &mut CooldownOptions| {
            o.billing_by_provider.insert(ProviderId::new("acme").unwrap(), 2 * DAY);
        };
        assert!(refuse(acme).contains("billing wait of acme"));
    }
}

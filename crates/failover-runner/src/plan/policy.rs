//! Every number of the runner, with its default and its bounds.

use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// The runner's numbers as an operator writes them: every field optional, unknown ones refused.
///
/// Times are milliseconds. [`RunPolicy::new`] checks them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PolicyConfig {
    /// Other profiles tried after a rate limit (R-2): 1.
    pub rate_limited_profile_rotations: u32,
    /// Other profiles tried after an overload (R-2): 1.
    pub overloaded_profile_rotations: u32,
    /// Wait before such a rotation (R-2): 0.
    pub overloaded_backoff_ms: u64,
    /// Other profiles tried after a server error or a timeout (R-2): 1.
    pub transient_profile_rotations: u32,
    /// Retries of the same profile and model (R-15).
    pub retry_in_place: RetryInPlace,
    /// Bound on attempts per candidate (R-7).
    pub run_retries: RunRetries,
    /// Time for the whole run (R-8): none.
    pub deadline_ms: Option<u64>,
    /// Attempts in the whole run (R-8): unbounded but by R-7.
    pub max_attempts: Option<u32>,
    /// Limits of one attempt (R-16).
    pub limits: LimitsConfig,
    /// The longest wait asked for by a provider that is sat out (R-8): 60 s; 0 means no cap.
    pub max_provider_wait_ms: u64,
    /// Probes of profiles that are cooling (R-6, A-23).
    pub probe: ProbeConfig,
    /// Calls at a time to a credential of which nothing is known yet (R-14).
    pub cold_start: ColdStart,
    /// Whether the repair hook is asked after a format error (R-5): yes, where there is a hook.
    pub allow_format_retry: bool,
    /// How long a refused fallback is not tried again in a session (A-20): off; between 1 s and 10 min.
    pub skip_ttl_ms: Option<u64>,
    /// How long bookkeeping may hold up an attempt or an answer (A-25): 50.
    pub bookkeeping_ms: u64,
    /// Whether a fallback outlives its turn (S-12).
    pub persistence: Persistence,
}

/// Retries of the same profile and model, before rotation or fallback spends anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RetryInPlace {
    /// How many per candidate: 1; 0 turns them off.
    pub max: u32,
    /// The longest wait asked for by a provider that is worth staying for: 3,000.
    pub max_wait_ms: u64,
    /// Largest random wait before a retry at once: 250.
    pub jitter_ms: u64,
}

/// `min(max, max(min, base + profiles × per_profile))` attempts per candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunRetries {
    /// 24.
    pub base: u32,
    /// 8.
    pub per_profile: u32,
    /// 32.
    pub min: u32,
    /// 160.
    pub max: u32,
}

/// Limits of one attempt, by what they measure. All off unless set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// Until the connection stands.
    pub connect_ms: Option<u64>,
    /// Until the first byte of the response.
    pub first_byte_ms: Option<u64>,
    /// Until the first content.
    pub first_content_ms: Option<u64>,
    /// Until the end of an answer that comes whole: nothing of it is there before, neither byte nor content. Absent: the
    /// limits of the first byte and content.
    pub whole_ms: Option<u64>,
    /// Between two pieces of content; heartbeats do not count.
    pub idle_ms: Option<u64>,
    /// The whole attempt.
    pub attempt_ms: Option<u64>,
}

/// When a profile that is cooling may be probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ProbeConfig {
    /// How close to the end of its window: 120,000.
    pub margin_ms: u64,
    /// Least time between two probes of a provider: 30,000.
    pub throttle_ms: u64,
    /// Least time between two probes while the end is farther away than the margin (A-23): 900,000.
    pub slow_ms: u64,
    /// Probes per window, apart from the slow ones (R-14): 2, so that a window costs at most three calls.
    pub per_window: u32,
    /// How long a run with nothing else to try waits for somebody else's probe: 5,000.
    pub wait_ms: u64,
    /// How long a prober that says nothing keeps its lease (A-26): 60,000.
    pub lease_ms: u64,
}

/// How a credential that has not answered yet is approached by many runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ColdStart {
    /// Calls at a time until the first has ended: 2, which with one retry in place makes three; 0 turns it off.
    pub concurrent: u32,
    /// How long the others wait for that until more may go: 10,000; then they go in growing numbers, and at double that
    /// time all of them.
    pub wait_ms: u64,
    /// The same where the credential has answered within the last hour, and only the burst is new: 1,000.
    pub burst_wait_ms: u64,
}

impl ColdStart {
    /// How long nobody goes beyond those who may go at once.
    pub(crate) fn wait(&self, answered: bool) -> Duration {
        Duration::from_millis(if answered { self.burst_wait_ms } else { self.wait_ms })
    }

    /// When everybody has gone, whatever came of it.
    pub(super) fn longest_wait(&self) -> Duration {
        self.wait(true).max(self.wait(false)).saturating_mul(2)
    }
}

/// Whether a fallback outlives the turn that it served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum Persistence {
    /// The session stays on it until the origin is well again (S-7).
    #[default]
    Sticky,
    /// It serves this turn only; no selection field is written (S-12).
    TurnLocal,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            rate_limited_profile_rotations: 1,
            overloaded_profile_rotations: 1,
            overloaded_backoff_ms: 0,
            transient_profile_rotations: 1,
            retry_in_place: RetryInPlace::default(),
            run_retries: RunRetries::default(),
            deadline_ms: None,
            max_attempts: None,
            limits: LimitsConfig::default(),
            max_provider_wait_ms: 60_000,
            probe: ProbeConfig::default(),
            cold_start: ColdStart::default(),
            allow_format_retry: true,
            skip_ttl_ms: None,
            bookkeeping_ms: 50,
            persistence: Persistence::Sticky,
        }
    }
}

impl Default for RetryInPlace {
    fn default() -> Self {
        Self { max: 1, max_wait_ms: 3_000, jitter_ms: 250 }
    }
}

impl Default for RunRetries {
    fn default() -> Self {
        Self { base: 24, per_profile: 8, min: 32, max: 160 }
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            margin_ms: 120_000,
            throttle_ms: 30_000,
            slow_ms: 900_000,
            per_window: 2,
            wait_ms: 5_000,
            lease_ms: 60_000,
        }
    }
}

impl Default for ColdStart {
    fn default() -> Self {
        Self { concurrent: 2, wait_ms: 10_000, burst_wait_ms: 1_000 }
    }
}

/// Why the runner's numbers are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A number outside its bounds.
    #[error("{field} is {found}, and must be between {least} and {most}")]
    Range {
        /// The setting, as written in config.
        field: &'static str,
        /// What was found.
        found: u64,
        /// Least value.
        least: u64,
        /// Largest value.
        most: u64,
    },
    /// `runRetries.min` is above `runRetries.max`.
    #[error("runRetries.min is {min}, above runRetries.max, which is {max}")]
    MinAboveMax {
        /// `runRetries.min`.
        min: u32,
        /// `runRetries.max`.
        max: u32,
    },
}

/// The runner's numbers, checked. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPolicy(Arc<PolicyConfig>);

/// No setting is longer than a day: what is meant to be endless is left out instead.
const DAY_MS: u64 = 86_400_000;

impl RunPolicy {
    /// Checks `config`.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] names the setting that is out of its bounds.
    pub fn new(mut config: PolicyConfig) -> Result<Self, PolicyError> {
        let limits = config.limits;
        let bounds: [(&'static str, Option<u64>, u64, u64); 22] = [
            ("rateLimitedProfileRotations", Some(config.rate_limited_profile_rotations.into()), 0, 1_000),
            ("overloadedProfileRotations", Some(config.overloaded_profile_rotations.into()), 0, 1_000),
            ("overloadedBackoffMs", Some(config.overloaded_backoff_ms), 0, 60_000),
            ("transientProfileRotations", Some(config.transient_profile_rotations.into()), 0, 1_000),
            ("retryInPlace.max", Some(config.retry_in_place.max.into()), 0, 10),
            ("retryInPlace.maxWaitMs", Some(config.retry_in_place.max_wait_ms), 0, 60_000),
            ("retryInPlace.jitterMs", Some(config.retry_in_place.jitter_ms), 0, 10_000),
            ("runRetries.max", Some(config.run_retries.max.into()), 1, 10_000),
            ("deadlineMs", config.deadline_ms, 1, DAY_MS),
            ("maxAttempts", config.max_attempts.map(u64::from), 1, 10_000),
            ("limits.connectMs", limits.connect_ms, 1, DAY_MS),
            ("limits.firstByteMs", limits.first_byte_ms, 1, DAY_MS),
            ("limits.firstContentMs", limits.first_content_ms, 1, DAY_MS),
            ("limits.wholeMs", limits.whole_ms, 1, DAY_MS),
            ("limits.idleMs", limits.idle_ms, 1, DAY_MS),
            ("limits.attemptMs", limits.attempt_ms, 1, DAY_MS),
            ("maxProviderWaitMs", Some(config.max_provider_wait_ms), 0, DAY_MS),
            ("probe.throttleMs", Some(config.probe.throttle_ms), 1_000, DAY_MS),
            ("probe.leaseMs", Some(config.probe.lease_ms), 1_000, 3_600_000),
            ("coldStart.waitMs", Some(config.cold_start.wait_ms), 0, 60_000),
            ("coldStart.burstWaitMs", Some(config.cold_start.burst_wait_ms), 0, 60_000),
            ("bookkeepingMs", Some(config.bookkeeping_ms), 0, 10_000),
        ];
        for (field, found, least, most) in bounds {
            match found {
                Some(found) if !(least..=most).contains(&found) => {
                    return Err(PolicyError::Range { field, found, least, most });
                }
                Some(_) | None => {}
            }
        }
        let RunRetries { min, max, .. } = config.run_retries;
        if min > max {
            return Err(PolicyError::MinAboveMax { min, max });
        }
        config.skip_ttl_ms = config.skip_ttl_ms.map(|ttl| ttl.clamp(1_000, 600_000));
        Ok(Self(Arc::new(config)))
    }

    /// The same numbers with so much time for the whole run, a millisecond at least.
    #[must_use]
    pub fn with_deadline(&self, left: Duration) -> Self {
        let mut config = PolicyConfig::clone(self);
        config.deadline_ms = Some(failover_types::millis(left).max(1));
        Self(Arc::new(config))
    }

    /// How many attempts a candidate with so many profiles gets (R-7).
    pub fn inner_bound(&self, profiles: usize) -> u32 {
        let RunRetries { base, per_profile, min, max } = self.0.run_retries;
        let profiles = u32::try_from(profiles.max(1)).unwrap_or(u32::MAX);
        base.saturating_add(profiles.saturating_mul(per_profile)).max(min).min(max)
    }

    /// How long bookkeeping may hold up an attempt or an answer (A-25).
    pub fn bookkeeping(&self) -> Duration {
        Duration::from_millis(self.0.bookkeeping_ms)
    }

    /// Whether a wait that a provider asked for is short enough to be sat out in place (R-8, R-15).
    pub(super) fn worth_waiting(&self, wait: Duration) -> bool {
        let cap = self.0.max_provider_wait_ms;
        let short = |limit: u64| wait <= Duration::from_millis(limit);
        short(self.0.retry_in_place.max_wait_ms) && (cap == 0 || short(cap))
    }
}

impl Default for RunPolicy {
    fn default() -> Self {
        Self(Arc::new(PolicyConfig::default()))
    }
}

impl Deref for RunPolicy {
    type Target = PolicyConfig;

    fn deref(&self) -> &PolicyConfig {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: R-7
    #[test_case(0, 32; "no profile counts as one")]
    #[test_case(1, 32; "the least")]
    #[test_case(2, 40; "base and two profiles")]
    #[test_case(17, 160; "just the most")]
    #[test_case(1_000, 160; "never above the most")]
    fn attempts_per_candidate(profiles: usize, bound: u32) {
        assert_eq!(RunPolicy::default().inner_bound(profiles), bound);
    }

    #[test]
    fn the_defaults_pass_their_own_check() {
        assert_eq!(RunPolicy::new(PolicyConfig::default()), Ok(RunPolicy::default()));
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        let config = PolicyConfig { deadline_ms: Some(0), ..PolicyConfig::default() };
        let error = RunPolicy::new(config).unwrap_err();
        assert_eq!(error.to_string(), "deadlineMs is 0, and must be between 1 and 86400000");
        let config: PolicyConfig = serde_json::from_str(r#"{"runRetries":{"min":9,"max":8}}"#).unwrap();
        assert!(matches!(RunPolicy::new(config), Err(PolicyError::MinAboveMax { min: 9, max: 8 })));
        assert!(serde_json::from_str::<PolicyConfig>(r#"{"retries":1}"#).is_err());
    }

    // spec: A-20
    #[test_case(Some(1), Some(1_000))]
    #[test_case(Some(9_999_999), Some(600_000))]
    #[test_case(None, None)]
    fn the_skip_time_is_clamped(given: Option<u64>, clamped: Option<u64>) {
        let policy = RunPolicy::new(PolicyConfig { skip_ttl_ms: given, ..PolicyConfig::default() }).unwrap();
        assert_eq!(policy.skip_ttl_ms, clamped);
    }

    // spec: R-8, R-15
    #[test]
    fn a_long_wait_is_never_sat_out() {
        let mut config = PolicyConfig::default();
        assert!(RunPolicy::default().worth_waiting(Duration::from_secs(3)));
        assert!(!RunPolicy::default().worth_waiting(Duration::from_millis(3_001)));
        config.retry_in_place.max_wait_ms = 60_000;
        config.max_provider_wait_ms = 5_000;
        assert!(!RunPolicy::new(config.clone()).unwrap().worth_waiting(Duration::from_secs(6)));
        config.max_provider_wait_ms = 0;
        assert!(RunPolicy::new(config).unwrap().worth_waiting(Duration::from_secs(6)));
    }
}

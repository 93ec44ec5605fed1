//! Where the records of this crate stand in a store: one place, so that all who read and write them agree.

use crate::UsageStats;
use failover_store::{Key, KeyError};
use failover_types::{AgentId, ModelRef, ProfileId, ProviderId, Timestamp};
use std::time::Duration;

/// Idle health is forgotten after this: longer than the longest window, and than the memory of failures.
const KEPT: Duration = Duration::from_hours(40 * 24);

/// The usage record of a profile: `agent/<id>/usage/profile/<profile>`, holding [`UsageStats::encode`].
///
/// # Errors
///
/// [`KeyError`] where the whole is too long.
pub fn profile_usage_key(agent: &AgentId, profile: &ProfileId) -> Result<Key, KeyError> {
    Key::new(&["agent", agent.as_str(), "usage", "profile", profile.as_str()])
}

/// A provider's own usage record: `agent/<id>/usage/provider/<provider>`, holding [`UsageStats::encode`].
///
/// # Errors
///
/// [`KeyError`] where the whole is too long.
pub fn provider_usage_key(agent: &AgentId, provider: &ProviderId) -> Result<Key, KeyError> {
    Key::new(&["agent", agent.as_str(), "usage", "provider", provider.as_str()])
}

/// The probe lease of a profile and model: `agent/<id>/lease/<profile>/<model>`, holding the JSON of a
/// [`Lease`](crate::Lease).
///
/// # Errors
///
/// [`KeyError`] where the whole is too long.
pub fn probe_lease_key(agent: &AgentId, profile: &ProfileId, model: &ModelRef) -> Result<Key, KeyError> {
    Key::new(&["agent", agent.as_str(), "lease", profile.as_str(), model.model()])
}

impl UsageStats {
    /// When a store may forget the record, if nothing is written to it any more. Never while a pause holds: only a
    /// person lifts those.
    pub fn lapses_at(&self, now: Timestamp) -> Option<Timestamp> {
        let last = self.windows().iter().map(|window| window.until).fold(now, Timestamp::max);
        self.pauses().next().is_none().then(|| last.after(KEPT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CooldownPolicy, WindowScope, pause, with_reset};

    // spec: A-18
    #[test]
    fn keys_are_what_stores_already_hold() {
        let agent = AgentId::main();
        let profile = ProfileId::new("a:ada@example.com").unwrap();
        let usage = profile_usage_key(&agent, &profile).unwrap();
        assert_eq!(usage.as_str(), "agent/main/usage/profile/a:ada@example.com");
        let provider = provider_usage_key(&agent, &ProviderId::new("a").unwrap()).unwrap();
        assert_eq!(provider.as_str(), "agent/main/usage/provider/a");
        let lease = probe_lease_key(&agent, &profile, &"a/b/c".parse().unwrap()).unwrap();
        assert_eq!(lease.as_str(), "agent/main/lease/a:ada@example.com/b%2Fc");
    }

    // spec: A-23, K-5
    #[test]
    fn idle_health_lapses_after_its_windows_and_a_pause_never() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        assert_eq!(UsageStats::default().lapses_at(now), Some(now.after(KEPT)));
        let month = now.after(Duration::from_hours(30 * 24));
        let policy = CooldownPolicy::default();
        let blocked = with_reset(&UsageStats::default(), &WindowScope::Profile, month, "x", &policy, now);
        assert_eq!(blocked.lapses_at(now), Some(month.after(KEPT)));
        let paused = pause(&blocked, WindowScope::Model("m".into()), "ada", now).unwrap();
        assert_eq!(paused.lapses_at(now), None);
    }
}

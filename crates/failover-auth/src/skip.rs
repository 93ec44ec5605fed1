//! The skip cache: for a while, a session does not try again what refused its credential.

use failover_types::{FailoverReason, Lane, ModelRef, ProfileId, SessionId, Timestamp};
use std::collections::HashMap;
use std::time::Duration;

/// Entries kept; the one that ends first makes room.
const MAX_ENTRIES: usize = 4096;
/// Shortest and longest time that can be set.
const RANGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(10));

/// Candidates to skip, in memory only. Off unless it was given a time.
#[derive(Debug, Default)]
pub struct SkipCache {
    ttl: Option<Duration>,
    until: HashMap<(SessionId, ModelRef, ProfileId), Timestamp>,
}

impl SkipCache {
    /// A cache that is off.
    pub fn off() -> Self {
        Self::default()
    }

    /// A cache that skips for `ttl`, clamped to 1 s – 10 min; zero means off.
    pub fn new(ttl: Duration) -> Self {
        let ttl = (!ttl.is_zero()).then(|| ttl.clamp(RANGE.0, RANGE.1));
        Self { ttl, until: HashMap::new() }
    }

    /// A cache from the text of `FAILOVER_SKIP_TTL_MS`; what is no number means off.
    pub fn from_setting(milliseconds: Option<&str>) -> Self {
        let ms = milliseconds.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Self::new(Duration::from_millis(ms))
    }

    /// Remembers that a candidate refused its credential. Primaries and other reasons are not remembered.
    pub fn record(
        &mut self,
        session: &SessionId,
        model: &ModelRef,
        profile: &ProfileId,
        reason: FailoverReason,
        primary: bool,
        now: Timestamp,
    ) {
        let Some(ttl) = self.ttl else { return };
        if primary || !matches!(reason.lane(), Lane::Auth | Lane::AuthPermanent) {
            return;
        }
        if self.until.len() >= MAX_ENTRIES {
            self.until.retain(|_, until| *until > now);
        }
        if self.until.len() >= MAX_ENTRIES
            && let Some(first) =
                self.until.iter().min_by_key(|(_, until)| **until).map(|(key, _)| key.clone())
        {
            self.until.remove(&first);
        }
        self.until.insert((session.clone(), model.clone(), profile.clone()), now.after(ttl));
    }

    /// Whether to skip a candidate. A primary never is.
    pub fn skips(
        &self,
        session: &SessionId,
        model: &ModelRef,
        profile: &ProfileId,
        primary: bool,
        now: Timestamp,
    ) -> bool {
        if primary || self.until.is_empty() {
            return false;
        }
        let until = self.until.get(&(session.clone(), model.clone(), profile.clone()));
        // An end further off than the longest time was set before the clock went back.
        until.is_some_and(|until| now < *until && *until <= now.after(RANGE.1))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.until.clear();
    }

    /// Forgets a profile everywhere: its secret was replaced.
    pub fn forget(&mut self, profile: &ProfileId) {
        self.until.retain(|(_, _, skipped), _| skipped != profile);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn parts() -> (SessionId, ModelRef, ProfileId) {
        (SessionId::new("s").unwrap(), "a/m".parse().unwrap(), ProfileId::new("a:p").unwrap())
    }

    // spec: A-20
    #[test_case(None, None; "off by default")]
    #[test_case(Some("0"), None; "zero is off")]
    #[test_case(Some("soon"), None; "no number is off")]
    #[test_case(Some("1"), Some(1_000); "clamped up")]
    #[test_case(Some(" 60000 "), Some(60_000); "as given")]
    #[test_case(Some("99999999"), Some(600_000); "clamped down")]
    fn the_setting(text: Option<&str>, expected: Option<u64>) {
        let (session, model, profile) = parts();
        let now = Timestamp::from_millis(5);
        let mut cache = SkipCache::from_setting(text);
        cache.record(&session, &model, &profile, FailoverReason::Auth, false, now);
        let skips = |ms| cache.skips(&session, &model, &profile, false, now.after(Duration::from_millis(ms)));
        match expected {
            None => assert!(!skips(0)),
            Some(ms) => assert!(skips(ms - 1) && !skips(ms)),
        }
    }

    // spec: A-20
    #[test]
    fn primaries_and_other_reasons_are_never_skipped() {
        let (session, model, profile) = parts();
        let mut cache = SkipCache::new(Duration::from_secs(9));
        let now = Timestamp::ZERO;
        cache.record(&session, &model, &profile, FailoverReason::Billing, false, now);
        cache.record(&session, &model, &profile, FailoverReason::Auth, true, now);
        assert!(!cache.skips(&session, &model, &profile, false, now));
        cache.record(&session, &model, &profile, FailoverReason::AuthPermanent, false, now);
        assert!(cache.skips(&session, &model, &profile, false, now));
        assert!(!cache.skips(&session, &model, &profile, true, now), "it is this run's primary");
        let other = SessionId::new("t").unwrap();
        assert!(!cache.skips(&other, &model, &profile, false, now), "another session tries for itself");
        cache.forget(&profile);
        assert!(!cache.skips(&session, &model, &profile, false, now));
    }

    // spec: A-20
    #[test]
    fn it_is_bounded_and_the_oldest_makes_room() {
        let (_, model, profile) = parts();
        let mut cache = SkipCache::new(Duration::from_mins(10));
        let session = |n: usize| SessionId::new(format!("s{n}")).unwrap();
        for n in 0..MAX_ENTRIES + 10 {
            let now = Timestamp::from_millis(n as u64);
            cache.record(&session(n), &model, &profile, FailoverReason::Auth, false, now);
        }
        assert_eq!(cache.until.len(), MAX_ENTRIES);
        assert!(!cache.skips(&session(0), &model, &profile, false, Timestamp::ZERO));
        assert!(cache.skips(
            &session(MAX_ENTRIES + 9),
            &model,
            &profile,
            false,
            Timestamp::from_millis(9_000)
        ));
    }
}

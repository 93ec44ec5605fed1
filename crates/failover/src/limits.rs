//! Exact resets: after a rate limit on a subscription its provider is asked, behind the run, when the limit ends
//! (requirement A-13).

use failover_auth::{CooldownPolicy, UsageStats, WindowScope, merge, with_reset};
use failover_classify::{AsSignal, Classifier};
use failover_credentials::Profiles;
use failover_provider::{AttemptFailure, LimitProbe};
use failover_runner::FailureWatch;
use failover_runner::health::{Health, Subject};
use failover_types::{
    Clock, CredentialKind, FailoverReason, ModelRef, ProfileId, ProviderId, ResolvedCredential, Timestamp,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Least time between two questions about one profile: a limit that stands does not move by the second.
const EVERY: Duration = Duration::from_mins(1);
/// How long a provider may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Profiles remembered; the longest ago makes room.
const MOST: usize = 4_096;

/// Asks.
pub(crate) struct LimitWatch {
    probes: HashMap<ProviderId, Arc<dyn LimitProbe>>,
    classifier: Arc<Classifier>,
    asked: Mutex<HashMap<ProfileId, Timestamp>>,
    /// How many questions are under way.
    open: watch::Sender<usize>,
    notes: Arc<Notes>,
}

/// Where answers go.
struct Notes {
    health: Arc<Health>,
    profiles: Profiles,
    clock: Arc<dyn Clock>,
}

impl LimitWatch {
    pub(crate) fn new(
        probes: HashMap<ProviderId, Arc<dyn LimitProbe>>,
        classifier: Arc<Classifier>,
        health: Arc<Health>,
        profiles: Profiles,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (open, _) = watch::channel(0);
        let notes = Arc::new(Notes { health, profiles, clock });
        Self { probes, classifier, asked: Mutex::default(), open, notes }
    }

    /// Resolves when no question is under way; at the latest when the last one has run out of time.
    pub(crate) async fn settled(&self) {
        let mut open = self.open.subscribe();
        // The sender is ours, so that the channel cannot close.
        let _ = open.wait_for(|open| *open == 0).await;
    }

    /// Whether the profile is to be asked about now; then it counts as asked.
    fn due(&self, profile: &ProfileId, now: Timestamp) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |at: &Timestamp| *at <= now && now.since(*at) < EVERY;
        if asked.get(profile).is_some_and(recent) {
            return false;
        }
        if asked.len() >= MOST {
            asked.retain(|_, at| recent(at));
        }
        if asked.len() >= MOST
            && let Some(first) = asked.iter().min_by_key(|(_, at)| **at).map(|(profile, _)| profile.clone())
        {
            asked.remove(&first);
        }
        asked.insert(profile.clone(), now);
        true
    }
}

impl FailureWatch for LimitWatch {
    fn failed(&self, model: &ModelRef, credential: &ResolvedCredential, failure: &AttemptFailure) {
        let subscription = match credential.kind {
            CredentialKind::OAuth | CredentialKind::Token => true,
            CredentialKind::ApiKey => false,
        };
        let Some(probe) = self.probes.get(model.provider()).filter(|_| subscription) else { return };
        let reason = failure.with_signal(|signal| self.classifier.classify(signal).reason);
        if reason != FailoverReason::RateLimit || !self.due(&credential.profile, self.notes.clock.now()) {
            return;
        }
        self.open.send_modify(|open| *open += 1);
        let asking = Asking(self.open.clone());
        let (probe, notes, credential) = (Arc::clone(probe), Arc::clone(&self.notes), credential.clone());
        #[expect(clippy::disallowed_methods, reason = "the run must not wait for the answer")]
        tokio::spawn(async move {
            notes.ask(&*probe, &credential).await;
            drop(asking);
        });
    }
}

/// Counts itself out.
struct Asking(watch::Sender<usize>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

impl Notes {
    async fn ask(&self, probe: &dyn LimitProbe, credential: &ResolvedCredential) {
        let began = self.clock.now();
        let answer = tokio::select! {
            answer = probe.reset_time(credential, began) => answer,
            () = self.clock.sleep_until(began.after(PATIENCE)) => return,
        };
        let profile = &credential.profile;
        let reset = match answer {
            Ok(Some(reset)) => reset,
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%profile, %error, "when the limit ends is not known");
                return;
            }
        };
        let (now, subject) = (self.clock.now(), Subject::Profile(profile.clone()));
        let policy: &CooldownPolicy = self.health.policy();
        // The subscription as a whole, and at once for this process; then for the others.
        let blocked = |stats: &UsageStats| {
            with_reset(stats, &WindowScope::Profile, reset.at, &reset.source, policy, now)
        };
        let next = blocked(&self.health.usage(&subject));
        self.health.learn(&subject, &next, now);
        let stored = self.profiles.update_usage(profile, |stored| merge(stored, &next)).await;
        if let Err(error) = stored {
            tracing::warn!(%profile, %error, "an exact reset is known to this process only");
        }
    }
}

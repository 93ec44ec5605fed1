//! Carries out the steps of [`failover_auth::Refresh`]: one call to the provider for all who wait.

use crate::Profiles;
use crate::flight::{Flights, Landing};
use crate::profiles::pair;
use failover_auth::{
    HowFresh, LeaseClaim, LeaseTerms, Refresh, RefreshEnd, RefreshEvent, RefreshFailure, RefreshPolicy,
    RefreshStep,
};
use failover_provider::{AttemptFailure, RefreshError, TokenRefresher};
use failover_store::StoreError;
use failover_types::{Clock, FailoverReason, Lane, OAuth, ProfileId, ProviderId, Secret};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Says why a refresh failed: in practice, the classifier's verdict on it.
pub type Judge = Arc<dyn Fn(&RefreshError) -> FailoverReason + Send + Sync>;

/// First and longest pause between attempts to store a pair that could not be stored.
const STORE_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));

/// Why there is no usable access token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefreshFault {
    /// The provider does not accept the refresh token.
    #[error("the login of {profile} was refused{}", if *permanent { " for good; log in again" } else { "" })]
    Refused {
        /// Which profile.
        profile: ProfileId,
        /// Whether it will never be accepted again.
        permanent: bool,
        /// The provider's answer.
        answer: Option<AttemptFailure>,
    },
    /// The provider could not be reached, or another process took too long. The old token is kept.
    #[error("the login of {profile} could not be renewed now; it is kept, and renewed at the next try")]
    Unreachable {
        /// Which profile.
        profile: ProfileId,
        /// How the provider failed, if it was asked.
        answer: Option<AttemptFailure>,
    },
    /// There is no such login any more.
    #[error("there is no login {profile} any more")]
    Gone {
        /// Which profile.
        profile: ProfileId,
    },
    /// Nobody knows how to renew logins of this provider.
    #[error(
        "logins of {provider} cannot be renewed here, and the token of {profile} has run out; log in again"
    )]
    NoRefresher {
        /// Which profile.
        profile: ProfileId,
        /// Whose login it is.
        provider: ProviderId,
    },
    /// The store failed before anything was asked of the provider.
    #[error("the login of {profile} could not be read: {why}")]
    Store {
        /// Which profile.
        profile: ProfileId,
        /// What the store says.
        why: String,
    },
}

impl RefreshFault {
    /// What the fault means for the attempt that needed the token.
    pub fn reason(&self) -> FailoverReason {
        match self {
            Self::Refused { permanent: true, .. } => FailoverReason::AuthPermanent,
            Self::Refused { permanent: false, .. } | Self::Gone { .. } | Self::NoRefresher { .. } => {
                FailoverReason::Auth
            }
            Self::Unreachable { .. } | Self::Store { .. } => FailoverReason::Timeout,
        }
    }
}

type Answer = Result<OAuth, RefreshFault>;

/// Renews OAuth pairs. Clones share the work under way.
#[derive(Clone)]
pub struct Refresher(Arc<Inner>);

struct Inner {
    profiles: Profiles,
    providers: HashMap<ProviderId, Arc<dyn TokenRefresher>>,
    judge: Judge,
    policy: RefreshPolicy,
    clock: Arc<dyn Clock>,
    holder: String,
    flights: Flights<Answer>,
    /// Pairs that could not be stored yet, with the refresh token that they took the place of.
    unsaved: Mutex<HashMap<ProfileId, (Secret, OAuth)>>,
}

impl fmt::Debug for Refresher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refresher").field("profiles", &self.0.profiles).finish_non_exhaustive()
    }
}

impl Refresher {
    /// Renews the pairs in `profiles`.
    pub fn new(
        profiles: Profiles,
        providers: HashMap<ProviderId, Arc<dyn TokenRefresher>>,
        judge: Judge,
        policy: RefreshPolicy,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (flights, unsaved) = (Flights::default(), Mutex::default());
        Self(Arc::new(Inner {
            profiles,
            providers,
            judge,
            policy,
            clock,
            holder: holder(),
            flights,
            unsaved,
        }))
    }

    /// Whether a pair can be sent as it is.
    pub fn is_fresh(&self, pair: &OAuth, rejected: Option<&Secret>) -> bool {
        self.0.policy.is_fresh(pair, self.0.clock.now()) && rejected != Some(&pair.access)
    }

    /// A pair whose access token can be sent. `rejected` is an access token that a call was refused with before its
    /// time, and that is not to be given out again.
    ///
    /// # Errors
    ///
    /// [`RefreshFault`]; [`RefreshFault::reason`] says what it means for the attempt.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the work goes on in a task of its own, since a refresh token that was sent may be spent.
    pub async fn fresh(&self, profile: &ProfileId, rejected: Option<&Secret>) -> Answer {
        // Whoever joins work that began before the rejection was known may get the rejected token: ask once more.
        for _ in 0..2 {
            let answer = self.join(profile, rejected).await?;
            if rejected != Some(&answer.access) {
                return Ok(answer);
            }
        }
        Err(RefreshFault::Unreachable { profile: profile.clone(), answer: None })
    }

    async fn join(&self, profile: &ProfileId, rejected: Option<&Secret>) -> Answer {
        let (mut flight, landing) = self.0.flights.join(profile);
        if let Some(landing) = landing {
            let (inner, profile, rejected) = (Arc::clone(&self.0), profile.clone(), rejected.cloned());
            #[expect(
                clippy::disallowed_methods,
                reason = "a dropped caller must not lose a pair that was paid for"
            )]
            tokio::spawn(async move { inner.fly(&profile, rejected, landing).await });
        }
        let lost = || RefreshFault::Unreachable { profile: profile.clone(), answer: None };
        match flight.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone().unwrap_or_else(|| Err(lost())),
            Err(_) => Err(lost()),
        }
    }
}

impl Inner {
    async fn fly(&self, profile: &ProfileId, rejected: Option<Secret>, landing: Landing<Answer>) {
        let mut machine = Refresh::new(self.policy, self.clock.now()).rejecting(rejected);
        let (mut spent, mut refusal) = (None, None);
        let end = loop {
            let step = machine.step().clone();
            if let RefreshStep::Persist { old, .. } = &step {
                spent = Some(self.stored_form(profile, old).refresh);
            }
            if let RefreshStep::Done(end) = step {
                break Ok(end);
            }
            match self.carry_out(profile, &step, &mut refusal).await {
                Ok(event) => machine.handle(event, self.clock.now()),
                Err(fault) => break Err(fault),
            }
        };
        let unsaved = match (&end, spent) {
            (Ok(RefreshEnd::Use { pair, how: HowFresh::InMemory }), Some(spent)) => {
                Some((spent, pair.clone()))
            }
            _ => None,
        };
        if let Some(unsaved) = &unsaved {
            self.unsaved().insert(profile.clone(), unsaved.clone());
        } else if end.is_err() || machine.releases_lease() {
            // Given back before the result is told, so that nobody who got it finds the lease still held.
            let _ = self.profiles.release_refresh(profile, &self.holder, self.clock.now()).await;
        }
        landing.land(end.and_then(|end| answer(end, profile, refusal)));
        if let Some((spent, new)) = unsaved {
            self.store_at_last(profile, &spent, &new).await;
        }
    }

    async fn carry_out(
        &self,
        profile: &ProfileId,
        step: &RefreshStep,
        refusal: &mut Option<AttemptFailure>,
    ) -> Result<RefreshEvent, RefreshFault> {
        let failed = |e: StoreError| RefreshFault::Store { profile: profile.clone(), why: e.to_string() };
        match step {
            RefreshStep::Load => match self.profiles.credential(profile).await {
                Ok(stored) => {
                    let stored = stored.and_then(|stored| pair(stored.credential));
                    Ok(RefreshEvent::Loaded(self.newest(profile, stored)))
                }
                Err(e) => match self.unsaved().get(profile) {
                    Some((_, new)) => Ok(RefreshEvent::Loaded(Some(new.clone()))),
                    None => Err(failed(e)),
                },
            },
            RefreshStep::Claim => {
                let terms = LeaseTerms::new(self.policy.lease, Duration::ZERO);
                match self.profiles.claim_refresh(profile, &self.holder, terms, self.clock.now()).await {
                    Ok(LeaseClaim::Granted(_)) => Ok(RefreshEvent::Claimed),
                    Ok(LeaseClaim::Denied { until }) => Ok(RefreshEvent::Held { until }),
                    Err(e) => Err(failed(e)),
                }
            }
            RefreshStep::Wait { until } => {
                self.clock.sleep_until(*until).await;
                Ok(RefreshEvent::Waited)
            }
            RefreshStep::Call(old) => self.call(profile, old, refusal).await,
            RefreshStep::Persist { old, new } => {
                Ok(match self.profiles.replace_pair(profile, &self.stored_form(profile, old), new).await {
                    Ok(Some(stands)) if stands == *new => RefreshEvent::Stored,
                    Ok(Some(stands)) => RefreshEvent::Replaced(stands),
                    Ok(None) => RefreshEvent::Gone,
                    Err(_) => RefreshEvent::NotStored,
                })
            }
            RefreshStep::Done(_) => Ok(RefreshEvent::Waited),
        }
    }

    async fn call(
        &self,
        profile: &ProfileId,
        old: &OAuth,
        refusal: &mut Option<AttemptFailure>,
    ) -> Result<RefreshEvent, RefreshFault> {
        let provider = old.provider.clone();
        let Some(refresher) = self.providers.get(&provider) else {
            return Err(RefreshFault::NoRefresher { profile: profile.clone(), provider });
        };
        // Well within the lease: nobody else may spend the token while this call is under way.
        let now = self.clock.now();
        let deadline = now.after(self.policy.lease / 2);
        tokio::select! {
            biased;
            answer = refresher.refresh(old, now) => Ok(RefreshEvent::Answered(answer.map_err(|error| {
                *refusal = Some(error.failure().clone());
                let reason = (self.judge)(&error);
                match reason.lane() {
                    Lane::AuthPermanent => RefreshFailure::Refused { permanent: true },
                    Lane::Auth => RefreshFailure::Refused { permanent: false },
                    Lane::RateLimit
                    | Lane::Overloaded
                    | Lane::Transient
                    | Lane::Billing
                    | Lane::Model
                    | Lane::Opaque
                    | Lane::Session
                    | Lane::Request
                    | Lane::Raised => RefreshFailure::Transient,
                }
            }))),
            () = self.clock.sleep_until(deadline) => Ok(RefreshEvent::Answered(Err(RefreshFailure::Transient))),
        }
    }

    /// The pair in memory, if it took the place of what is stored.
    fn newest(&self, profile: &ProfileId, stored: Option<OAuth>) -> Option<OAuth> {
        let mut unsaved = self.unsaved();
        match (stored, unsaved.get(profile)) {
            (Some(stored), Some((spent, new))) if stored.refresh == *spent => Some(new.clone()),
            (stored, _) => {
                unsaved.remove(profile);
                stored
            }
        }
    }

    /// What stands in the store in the place of `old`: `old` itself, or what it took the place of in memory only.
    fn stored_form(&self, profile: &ProfileId, old: &OAuth) -> OAuth {
        let mut stored = old.clone();
        if let Some((spent, _)) = self.unsaved().get(profile).filter(|(_, pair)| pair.refresh == old.refresh)
        {
            stored.refresh = spent.clone();
        }
        stored
    }

    /// Goes on until the pair is durable or somebody stored another, and keeps the lease meanwhile, so that no other
    /// process spends the old refresh token again.
    async fn store_at_last(&self, profile: &ProfileId, spent: &Secret, new: &OAuth) {
        let mut old = new.clone();
        old.refresh = spent.clone();
        let mut pause = STORE_AGAIN.0;
        loop {
            self.clock.sleep_until(self.clock.now().after(pause)).await;
            pause = (pause * 2).min(STORE_AGAIN.1);
            // The pair may have been renewed again in memory by now; that work stores its own.
            if self.unsaved().get(profile).is_none_or(|(_, pair)| pair != new) {
                return;
            }
            if self.profiles.replace_pair(profile, &old, new).await.is_ok() {
                self.unsaved().remove(profile);
                let _ = self.profiles.release_refresh(profile, &self.holder, self.clock.now()).await;
                return;
            }
            let terms = LeaseTerms::new(self.policy.lease, Duration::ZERO);
            let _ = self.profiles.claim_refresh(profile, &self.holder, terms, self.clock.now()).await;
        }
    }

    fn unsaved(&self) -> MutexGuard<'_, HashMap<ProfileId, (Secret, OAuth)>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(end: RefreshEnd, profile: &ProfileId, answer: Option<AttemptFailure>) -> Answer {
    let profile = profile.clone();
    match end {
        RefreshEnd::Use { pair, .. } => Ok(pair),
        RefreshEnd::Refused { permanent } => Err(RefreshFault::Refused { profile, permanent, answer }),
        RefreshEnd::Unreachable => Err(RefreshFault::Unreachable { profile, answer }),
        RefreshEnd::Gone => Err(RefreshFault::Gone { profile }),
    }
}

/// A name that no other refresher has, in this process or another.
fn holder() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // The hasher's keys are random per process.
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{count}-{random:016x}", std::process::id())
}

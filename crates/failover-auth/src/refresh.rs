//! Refreshing an OAuth pair: who does it, what is adopted, what is judged. The driver only carries steps out.

use failover_types::{OAuth, Secret, Timestamp};
use std::time::Duration;

/// How a refresh is paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefreshPolicy {
    /// A token that runs out within this is renewed before use. Default 1 min.
    pub margin: Duration,
    /// How long the refresher may take before another process may try. Default 60 s.
    pub lease: Duration,
    /// How often those who wait for another process look at the store. Default 200 ms.
    pub poll: Duration,
    /// How long a caller waits in all. Default 90 s: longer than one lease, so that a dead refresher is survived.
    pub patience: Duration,
}

impl Default for RefreshPolicy {
    fn default() -> Self {
        Self {
            margin: Duration::from_mins(1),
            lease: Duration::from_mins(1),
            poll: Duration::from_millis(200),
            patience: Duration::from_secs(90),
        }
    }
}

impl RefreshPolicy {
    /// Whether the access token can be sent without a refresh first.
    pub fn is_fresh(&self, pair: &OAuth, now: Timestamp) -> bool {
        pair.expires > now.after(self.margin)
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a driver carries out every step")]
pub enum RefreshStep {
    /// Read the stored pair, then tell [`RefreshEvent::Loaded`].
    Load,
    /// Try to take the lease, then tell [`RefreshEvent::Claimed`] or [`RefreshEvent::Held`].
    Claim,
    /// Wait, then tell [`RefreshEvent::Waited`].
    Wait {
        /// Until when.
        until: Timestamp,
    },
    /// Ask the provider for a new pair, then tell [`RefreshEvent::Answered`].
    Call(OAuth),
    /// Store the new pair durably over the old one, then tell [`RefreshEvent::Stored`], [`RefreshEvent::Replaced`], [`RefreshEvent::Gone`] or
    /// [`RefreshEvent::NotStored`].
    Persist {
        /// The pair that was spent.
        old: OAuth,
        /// The pair that takes its place.
        new: OAuth,
    },
    /// It is over.
    Done(RefreshEnd),
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: the machine handles every event")]
pub enum RefreshEvent {
    /// The stored pair; `None` where the profile is gone or is no OAuth pair any more.
    Loaded(Option<OAuth>),
    /// The lease is ours.
    Claimed,
    /// Another process has it.
    Held {
        /// Until when at most.
        until: Timestamp,
    },
    /// The time has come.
    Waited,
    /// The provider's answer.
    Answered(Result<OAuth, RefreshFailure>),
    /// The new pair stands durably.
    Stored,
    /// Somebody stored another pair meanwhile: a person logged in again.
    Replaced(OAuth),
    /// The profile was taken out meanwhile.
    Gone,
    /// The store cannot write now.
    NotStored,
}

/// Why a provider gave no new pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: the machine handles each")]
pub enum RefreshFailure {
    /// The refresh token is not accepted: revoked (`invalid_grant`), spent before (`refresh_token_reused`), or the
    /// client is not allowed to.
    Refused {
        /// Whether the provider says that it will never be accepted again.
        permanent: bool,
    },
    /// The network, or the provider itself, failed.
    Transient,
}

/// How a refresh ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a driver handles each end")]
pub enum RefreshEnd {
    /// Send this access token.
    Use {
        /// The pair.
        pair: OAuth,
        /// Where it comes from.
        how: HowFresh,
    },
    /// The refresh token is not accepted, and nobody stored another. Auth, or permanent auth: a person must log in.
    Refused {
        /// Whether the provider says that it will never be accepted again.
        permanent: bool,
    },
    /// The provider could not be reached, or another process took too long, and the old token has run out. The old
    /// pair is kept. Transient.
    Unreachable,
    /// The profile is gone.
    Gone,
}

/// Where a usable pair comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a pair kept in memory needs the driver's care")]
pub enum HowFresh {
    /// It was fresh when it was read; or another process had refreshed it.
    Stored,
    /// This machine refreshed and stored it.
    Refreshed,
    /// It could not be renewed just now, but has not run out yet.
    Old,
    /// It was refreshed but could not be stored: keep the lease, serve it from memory, and go on storing.
    InMemory,
}

/// The machine. Call [`Refresh::step`], carry it out, tell [`Refresh::handle`] what came of it, until
/// [`RefreshStep::Done`]. An event that does not answer the step is ignored.
#[derive(Clone, Debug)]
pub struct Refresh {
    policy: RefreshPolicy,
    give_up_at: Timestamp,
    /// Whether we hold the lease.
    leased: bool,
    /// An access token that a call has been refused with: not to be used again, whatever its expiry says.
    rejected: Option<Secret>,
    /// The refresh token that the provider has refused, and whether for ever.
    refused: Option<(Secret, bool)>,
    /// The last pair that was read.
    pair: Option<OAuth>,
    calls: u8,
    step: RefreshStep,
}

/// Calls to the provider in one refresh: the pair that was read, and one that was stored meanwhile.
const MAX_CALLS: u8 = 2;

impl Refresh {
    /// A refresh that begins at `now`.
    pub fn new(policy: RefreshPolicy, now: Timestamp) -> Self {
        Self {
            policy,
            give_up_at: now.after(policy.patience),
            leased: false,
            rejected: None,
            refused: None,
            pair: None,
            calls: 0,
            step: RefreshStep::Load,
        }
    }

    /// Does not take `access` for fresh: a call was refused with it before its time.
    #[must_use]
    pub fn rejecting(mut self, access: Option<Secret>) -> Self {
        self.rejected = access;
        self
    }

    /// The step to carry out.
    pub fn step(&self) -> &RefreshStep {
        &self.step
    }

    /// Whether the lease is ours and should be given back, once done. It is kept while a pair could not be stored: no
    /// other process may spend the old refresh token again.
    pub fn releases_lease(&self) -> bool {
        let unsaved = matches!(self.step, RefreshStep::Done(RefreshEnd::Use { how: HowFresh::InMemory, .. }));
        self.leased && !unsaved
    }

    /// Takes what came of the step.
    pub fn handle(&mut self, event: RefreshEvent, now: Timestamp) {
        use RefreshEvent as Event;
        use RefreshStep as Step;
        let next = match (std::mem::replace(&mut self.step, Step::Load), event) {
            (Step::Load, Event::Loaded(pair)) => self.loaded(pair, now),
            (Step::Claim, Event::Claimed) => {
                // Another process may have finished between our read and our claim: read again, as the holder.
                self.leased = true;
                Step::Load
            }
            (Step::Claim, Event::Held { until }) => self.held(until, now),
            (Step::Wait { .. }, Event::Waited) => Step::Load,
            (Step::Call(old), Event::Answered(Ok(new))) => Step::Persist { new: inherit(new, &old), old },
            (Step::Call(old), Event::Answered(Err(failure))) => self.failed(old, failure, now),
            (Step::Persist { new, .. }, Event::Stored) => usable(new, HowFresh::Refreshed),
            (Step::Persist { new, .. }, Event::NotStored) => usable(new, HowFresh::InMemory),
            // Never write an older generation over a newer one; what a person stored is the truth.
            (Step::Persist { .. }, Event::Replaced(pair)) => self.loaded(Some(pair), now),
            (Step::Persist { .. }, Event::Gone) => Step::Done(RefreshEnd::Gone),
            (step, _) => step,
        };
        self.step = next;
    }

    fn loaded(&mut self, pair: Option<OAuth>, now: Timestamp) -> RefreshStep {
        let Some(pair) = pair else { return RefreshStep::Done(RefreshEnd::Gone) };
        self.pair = Some(pair.clone());
        let refused = self.refused.as_ref().filter(|(token, _)| *token == pair.refresh);
        match refused {
            _ if self.policy.is_fresh(&pair, now) && !self.is_rejected(&pair) => {
                usable(pair, HowFresh::Stored)
            }
            Some((_, permanent)) => RefreshStep::Done(RefreshEnd::Refused { permanent: *permanent }),
            None if !self.leased => RefreshStep::Claim,
            None if self.calls < MAX_CALLS => {
                self.calls += 1;
                RefreshStep::Call(pair)
            }
            None => RefreshStep::Done(RefreshEnd::Unreachable),
        }
    }

    fn held(&self, until: Timestamp, now: Timestamp) -> RefreshStep {
        match &self.pair {
            Some(pair) if self.still_works(pair, now) => usable(pair.clone(), HowFresh::Old),
            _ if now >= self.give_up_at => RefreshStep::Done(RefreshEnd::Unreachable),
            _ => RefreshStep::Wait { until: until.min(now.after(self.policy.poll)).min(self.give_up_at) },
        }
    }

    fn failed(&mut self, old: OAuth, failure: RefreshFailure, now: Timestamp) -> RefreshStep {
        match failure {
            // Read before judging: another program may share this login and have spent the token for a new pair.
            RefreshFailure::Refused { permanent } => {
                self.refused = Some((old.refresh, permanent));
                RefreshStep::Load
            }
            RefreshFailure::Transient if self.still_works(&old, now) => usable(old, HowFresh::Old),
            RefreshFailure::Transient => RefreshStep::Done(RefreshEnd::Unreachable),
        }
    }

    fn still_works(&self, pair: &OAuth, now: Timestamp) -> bool {
        pair.expires > now && !self.is_rejected(pair)
    }

    fn is_rejected(&self, pair: &OAuth) -> bool {
        self.rejected.as_ref() == Some(&pair.access)
    }
}

fn usable(pair: OAuth, how: HowFresh) -> RefreshStep {
    RefreshStep::Done(RefreshEnd::Use { pair, how })
}

/// Providers leave out what has not changed.
fn inherit(mut new: OAuth, old: &OAuth) -> OAuth {
    if new.refresh.expose().is_empty() {
        new.refresh = old.refresh.clone();
    }
    new.email = new.email.or_else(|| old.email.clone());
    new.project_id = new.project_id.or_else(|| old.project_id.clone());
    new.enterprise_url = new.enterprise_url.or_else(|| old.enterprise_url.clone());
    new
}

#[cfg(test)]
mod tests;

//! What a run is made from.

use super::policy::RunPolicy;
use failover_chain::{Capabilities, Chain, Needs};
use failover_types::{ModelRef, ProfileId, RunId, SessionId};
use std::sync::Arc;

/// One model of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// Which model.
    pub model: ModelRef,
    /// The credential that was named with it: this one and no other (requirement A-8).
    pub profile: Option<ProfileId>,
    /// What it can do, where known.
    pub capabilities: Capabilities,
}

impl Candidate {
    /// A candidate of which nothing is known.
    pub fn new(model: ModelRef) -> Self {
        Self { model, profile: None, capabilities: Capabilities::default() }
    }

    /// Adds what the model can do.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Names the credential: this one and no other.
    #[must_use]
    pub fn with_profile(mut self, profile: ProfileId) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Whether whoever tries this one has tried `other`.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.model == other.model && (self.profile.is_none() || self.profile == other.profile)
    }
}

impl From<&failover_chain::Candidate> for Candidate {
    fn from(candidate: &failover_chain::Candidate) -> Self {
        Self {
            model: candidate.model.clone(),
            profile: candidate.profile.clone(),
            capabilities: candidate.capabilities,
        }
    }
}

impl Candidate {
    /// The candidates of a resolved chain, in order.
    pub fn of_chain(chain: &Chain) -> Vec<Self> {
        chain.candidates().iter().map(Self::from).collect()
    }
}

/// What a run is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: closed on purpose")]
pub enum Purpose {
    /// A turn of a conversation.
    #[default]
    Turn,
    /// A side call: a title, a summary. Its failures never disable a profile (requirement A-16).
    Helper,
    /// A person asks whether a profile is well. An answer counts, a failure changes nothing (requirement A-16).
    Probe,
}

/// What a run is made from: the chain, the request's needs, and the rules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunSpec {
    /// This run; unique.
    pub run: RunId,
    /// The session that it belongs to, where there is one.
    pub session: Option<SessionId>,
    /// The same for every attempt (requirement R-18).
    pub idempotency_key: Arc<str>,
    /// The candidates; the first is the primary of this run.
    pub chain: Vec<Candidate>,
    /// Candidates for prompts that are too long (requirement H-10).
    pub on_context_overflow: Vec<Candidate>,
    /// Candidates for refused content (requirement H-10).
    pub on_content_refusal: Vec<Candidate>,
    /// What the request asks of a model.
    pub needs: Needs,
    /// Whether the request may be repeated though output was delivered (requirement R-9).
    pub replay_safe: bool,
    /// What the run is for.
    pub purpose: Purpose,
    /// Whether fallbacks are written into the session before they are tried (requirement S-2).
    pub claims: bool,
    /// The numbers.
    pub policy: RunPolicy,
    /// Seeds the jitter: two runs with the same seed wait alike.
    pub seed: u64,
}

impl RunSpec {
    /// The same run without its candidates: what a driver keeps beside the plan.
    #[cfg(feature = "driver")]
    pub(crate) fn without_candidates(&self) -> Self {
        Self {
            run: self.run.clone(),
            session: self.session.clone(),
            idempotency_key: Arc::clone(&self.idempotency_key),
            chain: Vec::new(),
            on_context_overflow: Vec::new(),
            on_content_refusal: Vec::new(),
            needs: self.needs,
            replay_safe: self.replay_safe,
            purpose: self.purpose,
            claims: self.claims,
            policy: self.policy.clone(),
            seed: self.seed,
        }
    }

    /// A run of `chain` without a session, by the default numbers. The run's id is the idempotency key.
    pub fn new(run: RunId, chain: Vec<Candidate>) -> Self {
        Self {
            idempotency_key: run.as_str().into(),
            run,
            session: None,
            chain,
            on_context_overflow: Vec::new(),
            on_content_refusal: Vec::new(),
            needs: Needs::default(),
            replay_safe: false,
            purpose: Purpose::Turn,
            claims: false,
            policy: RunPolicy::default(),
            seed: 0,
        }
    }

    /// Puts the run into a session. Fallbacks are written into it before they are tried.
    #[must_use]
    pub fn with_session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self.claims = true;
        self
    }

    /// Sets the numbers.
    #[must_use]
    pub fn with_policy(mut self, policy: RunPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Says what the request asks of a model.
    #[must_use]
    pub fn with_needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: &str) -> Self {
        self.idempotency_key = key.into();
        self
    }
}

/// Why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// There is nothing to try.
    #[error("the chain is empty; name at least one model")]
    EmptyChain,
}

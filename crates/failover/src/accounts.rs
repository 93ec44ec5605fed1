//! Credentials as an operator sees them: which there are, in which order, what keeps each away, and one try
//! (requirements ).

use crate::Engine;
use failover_auth::{
    Availability, Lease, LeftOutReason, OrderSource, Pause, ProbePolicy, UsageStats, Why, availability,
    next_probe, order,
};
use failover_provider::{AttemptFailure, ChatRequest, Reply};
use failover_runner::health::Subject;
use failover_runner::plan::{
    AttemptError, Candidate, PolicyConfig, Purpose, RunPolicy, RunSpec, Skip, Visit, What,
};
use failover_runner::{Answer, RunError};
use failover_types::{CredentialKind, ModelRef, ProfileId, ProviderId, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;

/// The most that a probe may take, in milliseconds.
const PROBE_MS: u64 = 60_000;
/// What a probe asks for: little, and enough for models that count their thoughts.
const PROBE_TOKENS: u64 = 16;

/// One credential, as it stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Account {
    /// The profile.
    pub profile: ProfileId,
    /// Whose models it is used for.
    pub provider: ProviderId,
    /// Which kind it is; `None` where an order names it and nothing is known under that name.
    pub kind: Option<CredentialKind>,
    /// Whether its secret is named by the config or the environment, and not kept in the agent's store.
    pub from_config: bool,
    /// Its place in its provider's order, from 1; `None` where it is left out.
    pub position: Option<usize>,
    /// Why it stands there.
    pub why: Option<Why>,
    /// Where the order comes from.
    pub source: OrderSource,
    /// Why it is left out.
    pub left_out: Option<LeftOutReason>,
    /// Whether it may be used now, for any model.
    pub availability: Availability,
    /// What is remembered: windows with reason, end and source, counters, pauses.
    pub usage: UsageStats,
    /// When it is tried again at the soonest, where it is out.
    pub next_probe: Option<Timestamp>,
    /// When its bearer part runs out, where it does.
    pub expires: Option<Timestamp>,
}

impl Account {
    /// The pause that keeps the whole profile away, if a person set one.
    pub fn pause(&self) -> Option<&Pause> {
        self.usage.paused(None)
    }
}

/// What a probe found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probed {
    /// Which profile was tried.
    pub profile: ProfileId,
    /// At which model.
    pub model: ModelRef,
    /// How it ended.
    pub end: ProbedEnd,
    /// Whether the profile may be used now.
    pub availability: Availability,
}

/// How a probe ended.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a probe is answered, fails, or is not made")]
pub enum ProbedEnd {
    /// It answered: what the answer disproves is lifted.
    Answered {
        /// After how long.
        took: Duration,
    },
    /// It failed, and nothing was held against the profile.
    Failed {
        /// Why.
        error: AttemptError,
        /// After how long.
        took: Duration,
    },
    /// It was not made.
    NotTried(Skip),
    /// It could not be made: a fault of the engine or of the call.
    Misuse(String),
}

impl Engine {
    /// Every credential of every provider that is known by config, environment, order or store, by provider and in the
    /// order in which they are tried; those that are left out come last.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn accounts(&self) -> Vec<Account> {
        self.refresh().await;
        self.runner().reread_health().await;
        let (roster, now) = (self.roster(), self.now());
        let health = self.runner().health();
        let mut providers: BTreeSet<ProviderId> =
            roster.profiles.iter().map(|profile| profile.provider.clone()).collect();
        providers.extend(roster.stored_order.keys().cloned());
        providers.extend(roster.config_order.keys().cloned());
        providers.extend(self.reader().providers());
        let mut accounts: Vec<Account> = Vec::new();
        for provider in providers {
            let whole = health.usage(&Subject::Provider(provider.clone()));
            let request = roster.request(&provider, now).provider_usage(Some(&whole));
            let order = order(&request);
            let listed: Vec<ProfileId> = order.slots.iter().map(|slot| slot.profile.clone()).collect();
            let left_out = order.left_out.iter().map(|out| out.profile.clone());
            let others = roster.profiles.of_provider(&provider).map(|profile| profile.id.clone());
            let mut seen = BTreeSet::new();
            for profile in listed.into_iter().chain(left_out).chain(others) {
                if !seen.insert(profile.clone()) {
                    continue;
                }
                let found = roster.profiles.get(&profile);
                let position = order.position(&profile);
                let left_out = request.why_left_out(&order, &profile);
                // Not a credential at all: the place where one would be, in an order that nobody wrote.
                if found.is_none() && !is_written(&roster, self, &provider, &profile) {
                    continue;
                }
                let usage = health.usage(&Subject::Profile(profile.clone()));
                let last = self.last_probe(&profile, &provider).await;
                let policy = ProbePolicy::default();
                accounts.push(Account {
                    kind: found.map(|found| found.kind),
                    expires: found.and_then(|found| found.expires),
                    from_config: self.keys().is_from_config(&profile),
                    position: position.map(|at| at + 1),
                    why: position.and_then(|at| order.slots.get(at)).map(|slot| slot.why),
                    source: order.source,
                    left_out,
                    availability: availability(&usage, None, now).and(availability(&whole, None, now)),
                    next_probe: next_probe(&usage, None, last.as_ref(), &policy, now),
                    provider: provider.clone(),
                    profile,
                    usage,
                });
            }
        }
        // A credential that serves two providers (requirement A-9) is shown once: where it is used first.
        let mut shown = BTreeSet::new();
        let mut used: Vec<bool> = accounts
            .iter()
            .map(|account| account.position.is_some() && shown.insert(account.profile.clone()))
            .collect();
        for (account, used) in accounts.iter().zip(&mut used) {
            *used = *used || (account.position.is_none() && shown.insert(account.profile.clone()));
        }
        let mut used = used.into_iter();
        accounts.retain(|_| used.next().unwrap_or_default());
        accounts
    }

    /// The last probe of a profile: at the first model that a turn would ask its provider for.
    async fn last_probe(&self, profile: &ProfileId, provider: &ProviderId) -> Option<Lease> {
        let model = self.model_of(provider)?;
        self.profiles().probe_lease(profile, &model).await.ok().flatten()
    }

    /// The first model of `provider` that the config names for turns.
    pub fn model_of(&self, provider: &ProviderId) -> Option<ModelRef> {
        let chain = self.chain_config();
        let settings = [&chain.defaults, &chain.agent];
        let written = settings.iter().flat_map(|it| it.primary.iter().chain(it.fallbacks.references()));
        written
            .filter_map(|reference| chain.read(reference).ok())
            .map(|selector| selector.model)
            .find(|model| model.provider() == provider)
    }

    /// Tries a profile once, with one real and small request, whatever keeps it away; where it is out, under the lease
    /// that probes of all processes share. An answer lifts what it disproves, a failure changes nothing. A pause stands.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the attempt is dropped and its connection closes.
    pub async fn probe(&self, profile: &ProfileId, model: &ModelRef) -> Probed {
        self.refresh().await;
        let end = self.try_once(profile, model).await;
        let usage = self.runner().health().usage(&Subject::Profile(profile.clone()));
        let availability = availability(&usage, Some(model.model()), self.now());
        Probed { profile: profile.clone(), model: model.clone(), end, availability }
    }

    async fn try_once(&self, profile: &ProfileId, model: &ModelRef) -> ProbedEnd {
        let spec = match self.probe_spec(profile, model) {
            Ok(spec) => spec,
            Err(error) => return ProbedEnd::Misuse(error),
        };
        let request = ChatRequest::prompt("Answer with the word OK.").with_max_tokens(PROBE_TOKENS);
        let ended: Result<Answer<Reply>, RunError<AttemptFailure>> =
            self.runner().start(spec).chat(self.adapters(), &request).await;
        let visit = |trail: &[Visit]| trail.last().map(|visit| visit.what.clone());
        let (visit, text) = match &ended {
            Ok(answer) => (visit(&answer.trail), String::new()),
            Err(error) => (visit(error.trail()), error.to_string()),
        };
        match visit {
            Some(What::Attempt(attempt)) => match attempt.error {
                None => ProbedEnd::Answered { took: attempt.took },
                Some(error) => ProbedEnd::Failed { error, took: attempt.took },
            },
            Some(What::Skip(skip)) => ProbedEnd::NotTried(skip),
            None => ProbedEnd::Misuse(text),
        }
    }

    fn probe_spec(&self, profile: &ProfileId, model: &ModelRef) -> Result<RunSpec, String> {
        let run = self.runner().next_run().map_err(|error| error.to_string())?;
        let mut numbers = PolicyConfig::clone(self.run_policy());
        numbers.retry_in_place.max = 0;
        numbers.max_attempts = Some(1);
        numbers.limits.attempt_ms = Some(numbers.limits.attempt_ms.unwrap_or(PROBE_MS).min(PROBE_MS));
        let policy = RunPolicy::new(numbers).map_err(|error| error.to_string())?;
        let mut candidate = Candidate::new(model.clone());
        candidate.profile = Some(profile.clone());
        let mut spec = RunSpec::new(run, vec![candidate]).with_policy(policy);
        spec.purpose = Purpose::Probe;
        Ok(spec)
    }
}

/// Whether a person wrote the profile into an order, or into the config's profiles.
fn is_written(
    roster: &failover_runner::health::Roster,
    engine: &Engine,
    provider: &ProviderId,
    profile: &ProfileId,
) -> bool {
    let stored = roster.stored_order.get(provider).is_some_and(|order| order.contains(profile));
    let configured = roster.configured.iter().any(|configured| configured.id == *profile);
    stored || configured || engine.reader().is_in_config_order(provider, profile)
}

//! A scripted world for plans in virtual time.

use failover_auth::{CooldownPolicy, Pin, Profile, ProfileSet, UsageStats, UserPinMode};
use failover_runner::health::{Health, Preference, Roster};
use failover_runner::plan::{
    AttemptEnd, AttemptStep, Candidate, Done, Failed, PolicyConfig, RepairKind, RunPolicy, RunSpec, What,
};
use failover_runner::simulate::{Answer, Engine, World};
use failover_types::{
    Credential, FailoverReason, ModelRef, ProfileId, ProviderId, RunId, Secret, SecretSource, Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

pub(crate) fn model(text: &str) -> ModelRef {
    text.parse().unwrap()
}

pub(crate) fn profile(text: &str) -> ProfileId {
    text.parse().unwrap()
}

pub(crate) fn spec(run: &str, chain: &[&str]) -> RunSpec {
    let chain = chain.iter().map(|text| Candidate::new(model(text))).collect();
    RunSpec::new(RunId::new(run).unwrap(), chain)
}

pub(crate) fn policy(change: impl FnOnce(&mut PolicyConfig)) -> RunPolicy {
    let mut config = PolicyConfig::default();
    config.retry_in_place.jitter_ms = 0;
    change(&mut config);
    RunPolicy::new(config).unwrap()
}

/// A view of profiles `provider:name`, API keys in the given order.
pub(crate) fn health(profiles: &[&str]) -> Arc<Health> {
    health_with(profiles, None)
}

pub(crate) fn health_with(profiles: &[&str], skip: Option<Duration>) -> Arc<Health> {
    let health = Health::new(CooldownPolicy::default(), skip);
    let mut roster = Roster::default();
    roster.profiles = profiles.iter().map(|id| api_key(id)).collect::<ProfileSet>();
    for id in profiles {
        let id = profile(id);
        let provider = ProviderId::new(id.provider()).unwrap();
        roster.config_order.entry(provider).or_default().push(id);
    }
    health.set_roster(roster);
    Arc::new(health)
}

fn api_key(id: &str) -> Profile {
    let id = profile(id);
    let provider = ProviderId::new(id.provider()).unwrap();
    let key = SecretSource::Literal(Secret::new("sk-test-000000".to_owned()));
    let credential = Credential::ApiKey { provider, key };
    Profile::new(id, &credential, UsageStats::default())
}

pub(crate) fn ok() -> Answer {
    Answer { after: Duration::from_millis(100), end: AttemptEnd::Answered }
}

pub(crate) fn failing(failed: Failed) -> Answer {
    Answer { after: Duration::from_millis(100), end: AttemptEnd::Failed(failed) }
}

pub(crate) fn fail(reason: FailoverReason) -> Answer {
    failing(Failed::new(reason))
}

pub(crate) fn hangs() -> Answer {
    Answer { after: Duration::from_hours(10), end: AttemptEnd::Answered }
}

/// A world whose providers are a closure.
pub(crate) struct Script<F> {
    pub(crate) answers: F,
    pub(crate) calls: Vec<(Timestamp, AttemptStep)>,
    pub(crate) preference: Preference,
    pub(crate) repairs: bool,
    pub(crate) repaired: Vec<RepairKind>,
}

impl<F: FnMut(&AttemptStep, Timestamp) -> Answer> World for Script<F> {
    fn answer(&mut self, step: &AttemptStep, now: Timestamp) -> Answer {
        self.calls.push((now, step.clone()));
        (self.answers)(step, now)
    }

    fn preference(&mut self, _run: &RunSpec, _model: &ModelRef) -> Preference {
        self.preference.clone()
    }

    fn repair(&mut self, kind: RepairKind) -> bool {
        self.repaired.push(kind);
        self.repairs
    }
}

impl<F> Script<F> {
    /// `model profile` of every call.
    pub(crate) fn called(&self) -> Vec<String> {
        self.calls.iter().map(|(_, step)| format!("{} {}", step.model, step.profile.name())).collect()
    }
}

pub(crate) fn engine<F: FnMut(&AttemptStep, Timestamp) -> Answer>(
    health: Arc<Health>,
    answers: F,
) -> Engine<Script<F>> {
    let script = Script {
        answers,
        calls: Vec::new(),
        preference: Preference::default(),
        repairs: false,
        repaired: Vec::new(),
    };
    Engine::new(script, health, T0)
}

pub(crate) fn pinned(id: &str, mode: UserPinMode) -> Preference {
    Preference::pinned(Pin::user(profile(id)), 0, mode)
}

/// Runs one plan to its end.
pub(crate) fn play<F: FnMut(&AttemptStep, Timestamp) -> Answer>(
    engine: &mut Engine<Script<F>>,
    spec: RunSpec,
) -> Done {
    let name = spec.run.to_string();
    engine.start(spec).unwrap();
    engine.run_until(Timestamp::MAX);
    engine.ended(&name).unwrap_or_else(|| panic!("the run ends:\n{}", engine.timeline())).clone()
}

pub(crate) fn attempts(done: &Done) -> usize {
    done.trail.iter().filter(|visit| matches!(visit.what, What::Attempt(_))).count()
}

/// `code` of every skip.
pub(crate) fn skips(done: &Done) -> Vec<String> {
    done.trail
        .iter()
        .filter_map(|visit| match &visit.what {
            What::Skip(skip) => Some(format!("{} {}", visit.model, skip.code())),
            What::Attempt(_) => None,
        })
        .collect()
}

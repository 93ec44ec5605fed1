//! Plays a scenario: the same plan, health and session rules as in earnest, in virtual time.

use super::scenario::{Happening, Scenario, ScenarioError, Script, ScriptRule, ScriptedFailure, ScriptedRun};
use super::{Answer, Engine, Timeline, World};
use crate::health::{Health, Preference, Roster, Subject};
use crate::plan::{
    AttemptEnd, AttemptStep, Candidate, ClaimAnswer, ClaimStep, Failed, PolicyConfig, RepairKind, RunPolicy,
    RunSpec, SettleStep,
};
use crate::session::{SessionRun, preference, select};
use failover_auth::{
    ClearScope, CooldownPolicy, Profile, ProfileSet, UsageStats, UserPinMode, WindowScope, clear, pause,
    resume,
};
use failover_chain::{ChainConfig, Fallbacks, Reference, Selection, resolve};
use failover_session::{
    ProbePolicy, ResetKind, SessionEntry, compaction, reset, select_user, status, take_notices,
};
use failover_types::{
    Credential, ModelRef, ProfileId, ProviderId, RunId, Secret, SecretSource, SessionId, Timestamp,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// The start of every scenario: a round number that no test confuses with the machine's clock.
const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// A provider that never answers.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

fn at(ms: u64) -> Timestamp {
    START.after(Duration::from_millis(ms))
}

struct Stage {
    script: Vec<ScriptRule>,
    used: Vec<u32>,
    sessions: BTreeMap<SessionId, SessionEntry>,
    runs: HashMap<RunId, SessionRun>,
    repairable: bool,
}

impl Stage {
    fn entry(&self, session: &SessionId) -> SessionEntry {
        self.sessions.get(session).cloned().unwrap_or_default()
    }

    fn write(&mut self, session: &SessionId, next: Option<SessionEntry>) -> bool {
        next.map(|next| self.sessions.insert(session.clone(), next)).is_some()
    }
}

impl World for Stage {
    fn answer(&mut self, step: &AttemptStep, now: Timestamp) -> Answer {
        let fits = |(index, rule): &(usize, &ScriptRule)| {
            rule.model.as_ref().is_none_or(|model| *model == step.model)
                && rule.profile.as_ref().is_none_or(|profile| *profile == step.profile)
                && at(rule.from_ms) <= now
                && rule.until_ms.is_none_or(|until| now < at(until))
                && rule.times.is_none_or(|times| self.used.get(*index).is_none_or(|used| *used < times))
        };
        let found = self.script.iter().enumerate().find(fits).map(|(index, rule)| (index, rule.clone()));
        let Some((index, rule)) = found else {
            return Answer { after: Duration::from_millis(100), end: AttemptEnd::Answered };
        };
        if let Some(used) = self.used.get_mut(index) {
            *used += 1;
        }
        let after = Duration::from_millis(rule.takes_ms);
        match rule.answer {
            Script::Ok => Answer { after, end: AttemptEnd::Answered },
            Script::Hang => Answer { after: FOR_EVER, end: AttemptEnd::Answered },
            Script::Fail(failure) => {
                let end = AttemptEnd::Failed(failed(&failure, now.after(after)));
                Answer { after, end }
            }
        }
    }

    fn preference(&mut self, run: &RunSpec, _model: &ModelRef) -> Preference {
        self.runs.get(&run.run).map(|run| run.preference().clone()).unwrap_or_default()
    }

    fn claim(&mut self, run: &RunSpec, step: &ClaimStep, now: Timestamp) -> ClaimAnswer {
        let Some((session, hold)) = run.session.as_ref().zip(self.runs.get_mut(&run.run)) else {
            return ClaimAnswer::TurnLocal;
        };
        let claim = hold.claiming(step, now);
        let next = SessionRun::claim(&self.entry(session), &claim);
        if !self.write(session, next) {
            return ClaimAnswer::TurnLocal;
        }
        if let Some(hold) = self.runs.get_mut(&run.run) {
            hold.claimed(claim, true);
        }
        ClaimAnswer::Held
    }

    fn release(&mut self, run: &RunSpec, _now: Timestamp) {
        let Some(hold) = self.runs.get_mut(&run.run) else { return };
        let claim = hold.standing();
        hold.released();
        if let Some((session, claim)) = run.session.as_ref().zip(claim) {
            let next = SessionRun::release(&self.entry(session), &claim);
            self.write(session, next);
        }
    }

    fn settle(&mut self, run: &RunSpec, step: &SettleStep, now: Timestamp) -> Vec<String> {
        let Some((session, hold)) = run.session.as_ref().zip(self.runs.get(&run.run)) else {
            return Vec::new();
        };
        let next = hold.settle(&self.entry(session), step, now);
        self.write(session, next);
        let taken = take_notices(&self.entry(session));
        let (next, notices) = taken.map_or((None, Vec::new()), |(next, notices)| (Some(next), notices));
        self.write(session, next);
        notices.iter().map(ToString::to_string).collect()
    }

    fn repair(&mut self, _kind: RepairKind) -> bool {
        self.repairable
    }
}

fn failed(failure: &ScriptedFailure, then: Timestamp) -> Failed {
    let mut failed = Failed::new(failure.reason);
    failed.scope = failure.scope.unwrap_or(failed.scope);
    failed.retry_at = failure.retry_after_ms.map(|ms| then.after(Duration::from_millis(ms)));
    if let Some(ms) = failure.resets_at_ms {
        failed.retry_at = Some(at(ms));
        failed.reset_source = Some("scenario".into());
    }
    failed.committed = failure.committed;
    failed
}

/// Plays a scenario to its end and gives the timeline.
///
/// # Errors
///
/// [`ScenarioError`] says what of the scenario cannot be played.
pub fn play(scenario: &Scenario) -> Result<Timeline, ScenarioError> {
    let config = scenario.policy.clone().unwrap_or_else(|| {
        let mut config = PolicyConfig::default();
        config.retry_in_place.jitter_ms = 0;
        config
    });
    let policy = RunPolicy::new(config)?;
    let [primary, fallbacks @ ..] = scenario.chain.as_slice() else { return Err(ScenarioError::NoChain) };
    let mut chain = ChainConfig::default();
    chain.defaults.primary = Some(Reference::new(primary.to_string()));
    chain.defaults.fallbacks = Fallbacks::list(fallbacks.iter().map(ToString::to_string));
    let configured = chain.selection();
    let configured =
        configured.map_err(|_| ScenarioError::Text { what: "model", text: primary.to_string() })?;
    let health = Health::new(CooldownPolicy::default(), policy.skip_ttl_ms.map(Duration::from_millis));
    health.set_roster(roster(&scenario.profiles)?);
    let stage = Stage {
        used: vec![0; scenario.script.len()],
        script: scenario.script.clone(),
        sessions: BTreeMap::new(),
        runs: HashMap::new(),
        repairable: false,
    };
    let engine = Engine::new(stage, Arc::new(health), START);
    let mut player = Player { engine, scenario, policy, chain, configured };
    let mut events = scenario.events.clone();
    events.sort_by_key(|event| event.at_ms);
    for event in &events {
        player.engine.run_until(at(event.at_ms));
        player.happen(&event.what)?;
    }
    player.engine.run_until(Timestamp::MAX);
    Ok(player.engine.timeline().clone())
}

struct Player<'s> {
    engine: Engine<Stage>,
    scenario: &'s Scenario,
    policy: RunPolicy,
    chain: ChainConfig,
    configured: Selection,
}

impl Player<'_> {
    fn happen(&mut self, what: &Happening) -> Result<(), ScenarioError> {
        let now = self.engine.now();
        match what {
            Happening::Run(run) => return self.run(run, now),
            Happening::Runs(count) => {
                for n in 1..=*count {
                    let run = ScriptedRun {
                        name: format!("{}-{n}", now.since(START).as_millis()),
                        session: None,
                        repairable: false,
                        replay_safe: false,
                    };
                    self.run(&run, now)?;
                }
            }
            Happening::Select(choice) => {
                let unread = || ScenarioError::Text { what: "model", text: choice.model.clone() };
                let selector = choice.selector().ok_or_else(unread)?;
                self.engine.note("user", format!("selects {selector} in {}", choice.session));
                let next = select_user(&self.engine.world.entry(&choice.session), &selector, now);
                self.engine.world.write(&choice.session, Some(next));
                self.engine.switch(&choice.session, &selector);
            }
            Happening::New(session) => self.reset(session, ResetKind::New),
            Happening::Reset(session) => self.reset(session, ResetKind::Reset),
            Happening::Compact(compacted) => {
                self.engine.note("host", format!("compacts {}", compacted.session));
                let next = compaction(&self.engine.world.entry(&compacted.session), compacted.count);
                self.engine.world.write(&compacted.session, next);
            }
            Happening::Kill(session) => {
                self.engine.note("host", format!("dies with the runs of {session}"));
                self.engine.drop_runs(session);
                for marker in self.engine.world.entry(session).claims() {
                    self.engine.world.runs.remove(&marker.run);
                }
            }
            Happening::Pause(profile) => {
                let change = |stats: &UsageStats| {
                    pause(stats, WindowScope::Profile, "user", now).unwrap_or_else(|_| stats.clone())
                };
                self.steer("pauses", profile, change, now);
            }
            Happening::Resume(profile) => {
                self.steer("resumes", profile, |stats| resume(stats, WindowScope::Profile, "user", now), now);
            }
            Happening::Clear(profile) => {
                self.steer("clears", profile, |stats| clear(stats, &ClearScope::All, now), now);
            }
            Happening::Status(session) => {
                let shown = status(&self.engine.world.entry(session), None, &ProbePolicy::default(), now);
                let on = shown.stored.model().map_or("the configured model".to_owned(), ToString::to_string);
                let open = if shown.unproven { ", unproven" } else { "" };
                self.engine.note("host", format!("{session} is on {on} ({}{open})", shown.source));
            }
        }
        Ok(())
    }

    fn reset(&mut self, session: &SessionId, kind: ResetKind) {
        self.engine.note("user", format!("resets {session}"));
        let next = reset(&self.engine.world.entry(session), kind);
        self.engine.world.write(session, Some(next));
    }

    fn steer(
        &mut self,
        verb: &str,
        profile: &ProfileId,
        change: impl Fn(&UsageStats) -> UsageStats,
        now: Timestamp,
    ) {
        self.engine.note("user", format!("{verb} {profile}"));
        let subject = Subject::Profile(profile.clone());
        let health = Arc::clone(self.engine.health());
        health.learn(&subject, &change(&health.usage(&subject)), now);
    }

    fn run(&mut self, run: &ScriptedRun, now: Timestamp) -> Result<(), ScenarioError> {
        let id = RunId::new(&run.name);
        let id = id.map_err(|_| ScenarioError::Text { what: "run name", text: run.name.clone() })?;
        if self.engine.knows(&run.name) {
            return Err(ScenarioError::Twice(run.name.clone()));
        }
        let mut selection = self.configured.clone();
        if let Some(session) = &run.session {
            let world = &mut self.engine.world;
            // Those that were not killed have renewed theirs meanwhile.
            let alive: Vec<_> = world.runs.values().filter_map(SessionRun::standing).collect();
            for claim in alive {
                let renewed = SessionRun::renew(&world.entry(session), &claim, now);
                world.write(session, renewed);
            }
            let recovered = SessionRun::recovered(&world.entry(session), now);
            world.write(session, recovered);
            let entry = world.entry(session);
            let health = Arc::clone(self.engine.health());
            let wants = preference(&entry, UserPinMode::Strict);
            let free_at = |model: &ModelRef| health.free_at(model, &wants, now);
            let configured = Some(&self.configured);
            let (selected, probe) = select(&entry, configured, free_at, &ProbePolicy::default(), now);
            selection = selected.unwrap_or(selection);
            self.engine.world.write(session, probe);
        }
        let chain = resolve(&selection, &self.chain, None);
        let mut spec = RunSpec::new(id.clone(), Candidate::of_chain(&chain)).with_policy(self.policy.clone());
        let of = |models: &[ModelRef]| models.iter().cloned().map(Candidate::new).collect();
        spec.on_context_overflow = of(&self.scenario.on_context_overflow);
        spec.on_content_refusal = of(&self.scenario.on_content_refusal);
        spec.replay_safe = run.replay_safe;
        if let Some(session) = &run.session {
            let hold = SessionRun::new(&self.engine.world.entry(session), id.clone(), UserPinMode::Strict);
            self.engine.world.runs.insert(id, hold.for_spec(&spec));
            spec = spec.with_session(session.clone());
        }
        self.engine.world.repairable = run.repairable;
        self.engine.start(spec).map_err(|_| ScenarioError::NoChain)
    }
}

fn roster(profiles: &[ProfileId]) -> Result<Roster, ScenarioError> {
    let mut roster = Roster::default();
    let mut set = ProfileSet::new();
    for id in profiles {
        let provider = ProviderId::new(id.provider());
        let provider = provider.map_err(|_| ScenarioError::Text { what: "profile", text: id.to_string() })?;
        let key = SecretSource::Literal(Secret::new("scenario".to_owned()));
        let credential = Credential::ApiKey { provider: provider.clone(), key };
        set.insert(Profile::new(id.clone(), &credential, UsageStats::default()));
        roster.config_order.entry(provider).or_default().push(id.clone());
    }
    roster.profiles = set;
    Ok(roster)
}

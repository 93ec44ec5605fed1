//! Runs plans in virtual time: nothing sleeps, and the same input gives the same timeline.

use super::timeline::{Entry, Timeline};
use crate::health::{Health, LeaseGuard, Preference};
use crate::plan::{
    AttemptEnd, AttemptStep, ClaimAnswer, ClaimStep, Done, Event, LeaseAnswer, LeaseStep, Plan, RepairKind,
    RunPolicy, RunSpec, SettleStep, SpecError, Step,
};
use failover_types::{ModelRef, ModelSelector, SessionId, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// What a simulated provider does with an attempt.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "scripts build it")]
pub struct Answer {
    /// How long it takes.
    pub after: Duration,
    /// How it ends.
    pub end: AttemptEnd,
}

/// Everything outside the runner, in a simulation.
pub trait World {
    /// What the provider does with the attempt.
    fn answer(&mut self, step: &AttemptStep, now: Timestamp) -> Answer;

    /// What the session wants.
    fn preference(&mut self, _run: &RunSpec, _model: &ModelRef) -> Preference {
        Preference::default()
    }

    /// Writes a fallback into the session.
    fn claim(&mut self, _run: &RunSpec, _step: &ClaimStep, _now: Timestamp) -> ClaimAnswer {
        ClaimAnswer::Held
    }

    /// Takes the last claim back.
    fn release(&mut self, _run: &RunSpec, _now: Timestamp) {}

    /// Tells the session who answered; gives the notices that the user sees.
    fn settle(&mut self, _run: &RunSpec, _step: &SettleStep, _now: Timestamp) -> Vec<String> {
        Vec::new()
    }

    /// Whether the request could be repaired.
    fn repair(&mut self, _kind: RepairKind) -> bool {
        false
    }
}

/// Plans that run side by side in virtual time, over one view of health.
pub struct Engine<W> {
    now: Timestamp,
    health: Arc<Health>,
    /// Everything outside.
    pub world: W,
    runs: Vec<Running>,
    timeline: Timeline,
}

struct Running {
    name: Arc<str>,
    spec: RunSpec,
    plan: Plan,
    state: State,
    lease: Option<LeaseGuard>,
}

enum State {
    Ready,
    Attempting { ends: Timestamp, end: AttemptEnd },
    Waiting { until: Timestamp, seen: Option<u64> },
    Done(Done),
}

/// A plan that asks for more steps than this has a fault, and is stopped.
const MOST_STEPS: usize = 1_000_000;

impl<W: World> Engine<W> {
    /// An engine that begins at `now`.
    pub fn new(world: W, health: Arc<Health>, now: Timestamp) -> Self {
        Self { now, health, world, runs: Vec::new(), timeline: Timeline::new(now) }
    }

    /// The virtual time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The view of health that the runs share.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// What happened so far.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Adds a line of the caller's own.
    pub fn note(&mut self, who: &str, what: impl Into<String>) {
        self.timeline.push(Entry { at: self.now, run: who.into(), what: what.into() });
    }

    /// Begins a run now.
    ///
    /// # Errors
    ///
    /// [`SpecError`] where there is nothing to try.
    pub fn start(&mut self, spec: RunSpec) -> Result<(), SpecError> {
        let plan = Plan::new(spec.clone(), self.now)?;
        let name: Arc<str> = spec.run.as_str().into();
        let chain: Vec<String> = spec.chain.iter().map(|candidate| candidate.model.to_string()).collect();
        self.note(&name, format!("starts: {}", chain.join(" > ")));
        self.runs.push(Running { name, spec, plan, state: State::Ready, lease: None });
        Ok(())
    }

    /// Runs until every run is over, or until `end`.
    pub fn run_until(&mut self, end: Timestamp) {
        for _ in 0..MOST_STEPS {
            if self.step_all() {
                continue;
            }
            let next = self.runs.iter().filter_map(Running::wakes_at).min();
            match next {
                Some(at) if at <= end => self.now = self.now.max(at),
                Some(_) | None => break,
            }
            self.fire();
        }
        if end != Timestamp::MAX {
            self.now = self.now.max(end);
        }
    }

    /// Whether a run of this name was started.
    pub fn knows(&self, run: &str) -> bool {
        self.runs.iter().any(|running| &*running.name == run)
    }

    /// How a run ended, once it has.
    pub fn ended(&self, run: &str) -> Option<&Done> {
        self.runs.iter().find(|running| &*running.name == run).and_then(|running| match &running.state {
            State::Done(done) => Some(done),
            State::Ready | State::Attempting { .. } | State::Waiting { .. } => None,
        })
    }

    /// How all runs ended, in the order in which they were started.
    pub fn endings(&self) -> impl Iterator<Item = &Done> {
        self.runs.iter().filter_map(|running| match &running.state {
            State::Done(done) => Some(done),
            State::Ready | State::Attempting { .. } | State::Waiting { .. } => None,
        })
    }

    /// The user switches a session's model now: the attempt that runs in it ends at once.
    pub fn switch(&mut self, session: &SessionId, to: &ModelSelector) {
        for running in &mut self.runs {
            if running.spec.session.as_ref() == Some(session)
                && let State::Attempting { ends, end } = &mut running.state
            {
                *ends = self.now;
                *end = AttemptEnd::SwitchTo { to: to.clone(), committed: false };
            }
        }
        self.fire();
    }

    /// The process dies now: every run of `session` is dropped where it stands.
    pub fn drop_runs(&mut self, session: &SessionId) {
        self.runs.retain(|running| {
            running.spec.session.as_ref() != Some(session) || matches!(running.state, State::Done(_))
        });
    }

    /// Takes every step that needs no time; `false` if there was none.
    fn step_all(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.runs.len() {
            let seen = self.health.generation();
            let Some(running) = self.runs.get_mut(index) else { continue };
            if let State::Waiting { seen: Some(before), .. } = running.state
                && before != seen
            {
                running.tell(self.now, Event::Woke);
            }
            if matches!(running.state, State::Ready) {
                moved = true;
                self.step(index);
            }
        }
        moved
    }

    /// Ends what has ended by now.
    fn fire(&mut self) {
        for running in &mut self.runs {
            match &running.state {
                State::Attempting { ends, end } if *ends <= self.now => {
                    let end = end.clone();
                    let by_itself = matches!(end, AttemptEnd::Answered | AttemptEnd::Failed(_));
                    if let Some(lease) = running.lease.as_mut().filter(|_| by_itself) {
                        lease.ended();
                    }
                    running.tell(self.now, Event::Ended(end));
                }
                State::Waiting { until, .. } if *until <= self.now => running.tell(self.now, Event::Woke),
                State::Ready | State::Attempting { .. } | State::Waiting { .. } | State::Done(_) => {}
            }
        }
    }

    /// Takes the steps of one run until it needs time.
    fn step(&mut self, index: usize) {
        let now = self.now;
        let Some(running) = self.runs.get_mut(index) else { return };
        for _ in 0..MOST_STEPS {
            let session = running.spec.session.clone();
            let step = running.plan.next_step();
            if let Some(what) = super::timeline::tell(&step, self.timeline.start) {
                self.timeline.push(Entry { at: now, run: Arc::clone(&running.name), what });
            }
            let event = match step {
                Step::Decision(_) => continue,
                Step::OrderProfiles(order) => {
                    running.lease = None;
                    let preference = self.world.preference(&running.spec, &order.model);
                    Event::Profiles(self.health.slots(&order, &preference, session.as_ref(), now))
                }
                Step::Lease(step) => Event::Leased(running.lease(&self.health, &step, now)),
                Step::Claim(step) => {
                    let answer = self.world.claim(&running.spec, &step, now);
                    let what = match answer {
                        ClaimAnswer::Held => format!("claims {} for the session", step.model),
                        ClaimAnswer::TurnLocal => {
                            format!("claims nothing: {} serves this turn only", step.model)
                        }
                    };
                    self.timeline.push(Entry { at: now, run: Arc::clone(&running.name), what });
                    Event::Claimed(answer)
                }
                Step::Attempt(step) => {
                    let Answer { after, end } = self.world.answer(&step, now);
                    let (mut ends, mut end) = (now.after(after), end);
                    if let Some(limit) = step.limits.end
                        && limit.at < ends
                    {
                        ends = limit.at;
                        end = AttemptEnd::TimedOut { committed: false };
                    }
                    running.state = State::Attempting { ends, end };
                    return;
                }
                Step::Record(step) => {
                    let answer = self.health.record(&step, session.as_ref(), now);
                    running.lease = None;
                    Event::Recorded(answer)
                }
                Step::Release => {
                    self.world.release(&running.spec, now);
                    Event::Released
                }
                Step::Repair(kind) => Event::Repaired(self.world.repair(kind)),
                Step::Settle(step) => {
                    for notice in self.world.settle(&running.spec, &step, now) {
                        let run = Arc::clone(&running.name);
                        self.timeline.push(Entry { at: now, run, what: format!("notice: {notice}") });
                    }
                    Event::Settled
                }
                Step::Wait(wait) => {
                    let seen = wait.wake_on_health.then(|| self.health.generation());
                    running.state = State::Waiting { until: wait.until, seen };
                    return;
                }
                Step::Done(done) => {
                    running.lease = None;
                    running.state = State::Done(done);
                    return;
                }
            };
            running.tell(now, event);
        }
    }
}

impl Running {
    fn wakes_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Attempting { ends, .. } => Some(*ends),
            State::Waiting { until, .. } => Some(*until),
            State::Ready | State::Done(_) => None,
        }
    }

    fn lease(&mut self, health: &Arc<Health>, step: &LeaseStep, now: Timestamp) -> LeaseAnswer {
        let policy: &RunPolicy = &self.spec.policy;
        let (answer, guard) = health.lease(step, policy, now);
        self.lease = guard;
        answer
    }

    /// The engine answers each step with its own event, so a misuse cannot come up; if it did, the run would stand
    /// still and show it.
    fn tell(&mut self, now: Timestamp, event: Event) {
        if self.plan.handle(now, event).is_ok() {
            self.state = State::Ready;
        }
    }
}

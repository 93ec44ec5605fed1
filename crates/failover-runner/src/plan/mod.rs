//! The runner's decisions, without I/O (requirement R-1).
//!
//! A [`Plan`] is a state machine: events go in, steps come out, and time is passed in. It reads no clock, no
//! environment and no store, so that the driver, `explain` and `simulate` can run the very same one.
//!
//! # Calling protocol
//!
//! 1. Make it: [`Plan::new`].
//! 2. Take a step: [`Plan::next_step`]. [`Step::Decision`] needs no answer: take the next one.
//! 3. Carry the step out and hand in the event that its documentation names: [`Plan::handle`]. Until then
//!    `next_step` gives the same step again.
//! 4. Repeat until [`Step::Done`].
//!
//! `now` may stand still or jump back: the plan keeps the largest time that it was told. An event that does not
//! answer the step at hand is a [`Misuse`] and changes nothing. A plan may be dropped at any point; what it has
//! claimed by then is for whoever carries out its steps to take back.
//!
//! # States
//!
//! ```text
//!            ┌──────────────── next candidate ◄───────────────────────────────┐
//!            ▼                                                                │
//!        ordering ◄─────────────── another profile ◄──────────────┐           │
//!         │   │ └─ nobody, or somebody else tries: waiting ─┐     │           │
//!  unproven   └─ usable                                     │     │           │
//!         ▼       │         ordering ◄──────────────────────┘     │           │
//!      leasing ───┤ (held: the next slot, or the next candidate)  │           │
//!                 ▼                                               │           │
//!              claiming (fallbacks of a session only)             │           │
//!                 ▼                                               │           │
//!            attempting ◄── waiting / repairing ◄──┐              │           │
//!             │       └─ failed ─► recording ──────┤ same again   │           │
//!             │                                    ├── releasing ─┴───────────┤
//!             │ answered                           └── releasing              │
//!             ▼                                            │ the walk ends    │
//!         recording ─► settling ─► done ◄── outlook ◄──────┘                  │
//!                                     (skipped candidates go straight there ──┘)
//! ```

mod budget;
mod choose;
mod decision;
mod fail;
mod finish;
mod policy;
mod spec;
mod step;
mod table;
mod trail;

pub use budget::{Bound, bound};
pub use decision::{Decision, DecisionKind, DecisionObserver, StepOutcome};
pub use failover_chain::{Capabilities, Needs, Unfit};
pub use policy::{
    ColdStart, LimitsConfig, Persistence, PolicyConfig, PolicyError, ProbeConfig, RetryInPlace, RunPolicy,
    RunRetries,
};
pub use spec::{Candidate, Purpose, RunSpec, SpecError};
pub use step::{
    AttemptEnd, AttemptKind, AttemptLimits, AttemptStep, ClaimAnswer, ClaimStep, Done, End, Ending, Event,
    Failed, LeaseAnswer, LeaseKind, LeaseStep, OrderProfiles, RecordAnswer, RecordStep, RepairKind,
    SettleStep, Slot, Slots, Standing, Step, StopReason, WaitStep,
};
pub use table::{Action, Blame, InPlace, Remedy, Rotate, Then, WhenOut, action, when_out};
pub use trail::{AttemptError, AttemptRecord, Skip, Visit, What};

use failover_types::{FailoverReason, ProfileId, ProviderId, Timestamp};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// An event that does not answer the step at hand: a fault of the driver, not of a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the plan waits for the answer to {asked}, and was told {told}; this is a bug in the driver")]
#[non_exhaustive]
pub struct Misuse {
    /// The step at hand.
    pub asked: &'static str,
    /// The event that came instead.
    pub told: &'static str,
}

/// The state machine of one run. See the [module](self) for the protocol.
#[derive(Clone, Debug)]
pub struct Plan {
    spec: RunSpec,
    now: Timestamp,
    deadline: Option<Timestamp>,
    /// The chain, and what a special chain put in its place.
    walk: Vec<Candidate>,
    at: usize,
    here: Here,
    state: State,
    decisions: VecDeque<Arc<Decision>>,
    attempts: u32,
    trail: Vec<Visit>,
    providers_out: Vec<(ProviderId, FailoverReason)>,
    probes_spent: Vec<ProviderId>,
    repaired_format: bool,
    repaired_session: bool,
    /// The special chain that is being walked, and those that were.
    special: Option<Remedy>,
    special_used: Vec<Remedy>,
    /// Why the run's primary did not answer, and why the last candidate did not.
    primary_reason: Option<FailoverReason>,
    last_reason: Option<FailoverReason>,
    /// A claim stands that has to be taken back if the attempt fails.
    claimed: bool,
    soonest: Option<Timestamp>,
    /// How many candidates behind the one at hand may still be tried, where somebody has counted.
    ahead: Option<usize>,
}

/// Chains up to this length are compared pair by pair, longer ones by their hashes.
const SHORT: usize = 16;

/// Keeps the first of each. The same model with another credential that is named is another candidate.
fn drop_repeated(walk: &mut Vec<Candidate>) {
    if walk.len() > SHORT {
        let mut seen = HashSet::with_capacity(walk.len());
        let mut is_fresh = |candidate: &Candidate| {
            let (model, profile) = (candidate.model.clone(), candidate.profile.clone());
            !seen.contains(&(model.clone(), None)) && seen.insert((model, profile))
        };
        walk.retain(&mut is_fresh);
        return;
    }
    let mut at = 1;
    while let Some((known, [candidate, ..])) = walk.split_at_checked(at) {
        if known.iter().any(|known| known.covers(candidate)) {
            walk.remove(at);
        } else {
            at += 1;
        }
    }
}

/// What is known of the candidate at hand.
#[derive(Clone, Debug, Default)]
struct Here {
    slots: Slots,
    tried: Vec<ProfileId>,
    /// Slots whose lease somebody else holds.
    held: Vec<Held>,
    attempts: u32,
    /// How often it was looked at, so that waiting is bounded even where time stands still.
    looks: u32,
    in_place: u32,
    rate_limited: u32,
    overloaded: u32,
    transient: u32,
    /// When waiting for other runs began.
    waiting_since: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct Held {
    profile: ProfileId,
    kind: LeaseKind,
    until: Timestamp,
}

/// A profile that is about to be tried.
#[derive(Clone, Debug)]
struct Chosen {
    profile: ProfileId,
    kind: AttemptKind,
    /// The probe of a provider that is out for a passing reason: there is one per run.
    transient_probe: bool,
}

/// Which step is at hand; each but `Done` waits for its event.
#[derive(Clone, Debug)]
enum State {
    Ordering,
    Leasing { chosen: Chosen, kind: LeaseKind, out: Option<(FailoverReason, Timestamp)> },
    Claiming { chosen: Chosen },
    Attempting { chosen: Chosen, step: AttemptStep },
    Recording { record: RecordStep, then: AfterRecord },
    Releasing { then: Next },
    Repairing { kind: RepairKind, chosen: Chosen },
    Waiting { wait: WaitStep, then: AfterWait },
    Settling(SettleStep),
    Outlook { index: usize, ending: Ending },
    Done(Done),
}

#[derive(Clone, Debug)]
enum AfterRecord {
    Settle(Chosen),
    Fail { chosen: Chosen, failed: Failed, action: Action },
}

#[derive(Clone, Debug)]
enum AfterWait {
    Order,
    Again(Chosen),
}

/// Where the walk goes once a claim is taken back.
#[derive(Clone, Debug)]
enum Next {
    /// Another profile of the same candidate, perhaps after a wait.
    Profile { after: Option<Timestamp> },
    /// The candidate at this place.
    Candidate(usize),
    /// Nowhere.
    End(Ending),
}

impl Plan {
    /// A plan for `spec`, beginning at `now`. A model that stands in the chain twice is tried once.
    ///
    /// # Errors
    ///
    /// [`SpecError`] where there is nothing to try.
    pub fn new(mut spec: RunSpec, now: Timestamp) -> Result<Self, SpecError> {
        let mut walk = std::mem::take(&mut spec.chain);
        drop_repeated(&mut walk);
        if walk.is_empty() {
            return Err(SpecError::EmptyChain);
        }
        let deadline = spec.policy.deadline_ms.map(|ms| now.after(std::time::Duration::from_millis(ms)));
        let mut plan = Self {
            spec,
            now,
            deadline,
            walk,
            at: 0,
            here: Here::default(),
            state: State::Ordering,
            decisions: VecDeque::new(),
            attempts: 0,
            trail: Vec::new(),
            providers_out: Vec::new(),
            probes_spent: Vec::new(),
            repaired_format: false,
            repaired_session: false,
            special: None,
            special_used: Vec::new(),
            primary_reason: None,
            last_reason: None,
            claimed: false,
            soonest: None,
            ahead: None,
        };
        plan.state = plan.enter(0);
        Ok(plan)
    }

    /// What to do next.
    pub fn next_step(&mut self) -> Step {
        if let Some(decision) = self.decisions.pop_front() {
            return Step::Decision(decision);
        }
        match &self.state {
            State::Ordering => Step::OrderProfiles(self.candidate().into()),
            State::Leasing { chosen, kind, .. } => Step::Lease(LeaseStep {
                profile: chosen.profile.clone(),
                model: self.candidate().model.clone(),
                kind: *kind,
            }),
            State::Claiming { chosen } => Step::Claim(ClaimStep {
                model: self.candidate().model.clone(),
                profile: chosen.profile.clone(),
                primary: self.primary().model.clone(),
                reason: self.primary_reason,
            }),
            State::Attempting { step, .. } => Step::Attempt(step.clone()),
            State::Recording { record, .. } => Step::Record(record.clone()),
            State::Releasing { .. } => Step::Release,
            State::Repairing { kind, .. } => Step::Repair(*kind),
            State::Waiting { wait, .. } => Step::Wait(*wait),
            State::Settling(settle) => Step::Settle(settle.clone()),
            State::Outlook { index, .. } => {
                Step::OrderProfiles(self.walk.get(*index).unwrap_or(self.candidate()).into())
            }
            State::Done(done) => Step::Done(done.clone()),
        }
    }

    /// Takes the answer to the step at hand.
    ///
    /// # Errors
    ///
    /// [`Misuse`] where the event does not answer it; nothing is changed then.
    pub fn handle(&mut self, now: Timestamp, event: Event) -> Result<(), Misuse> {
        if !self.awaits(&event) {
            return Err(Misuse { asked: self.asked(), told: event.name() });
        }
        self.now = self.now.max(now);
        // Put back at once: every arm below gives the next state.
        let state = std::mem::replace(&mut self.state, State::Ordering);
        self.state = match (state, event) {
            (State::Ordering, Event::Profiles(slots)) => self.ordered(slots),
            (State::Outlook { index, ending }, Event::Profiles(slots)) => {
                self.looked_out(index, ending, &slots)
            }
            (State::Leasing { chosen, out, kind }, Event::Leased(answer)) => {
                self.leased(chosen, kind, out, answer)
            }
            (State::Claiming { chosen }, Event::Claimed(answer)) => {
                self.claimed = answer == ClaimAnswer::Held;
                self.attempt(chosen)
            }
            (State::Attempting { chosen, step }, Event::Ended(end)) => self.ended(chosen, &step, end),
            (State::Recording { then, .. }, Event::Recorded(answer)) => match then {
                AfterRecord::Settle(chosen) => self.settle(chosen),
                AfterRecord::Fail { chosen, failed, action } => {
                    self.after_failure(chosen, &failed, action, answer)
                }
            },
            (State::Releasing { then }, Event::Released) => {
                self.claimed = false;
                self.go(then)
            }
            (State::Repairing { chosen, .. }, Event::Repaired(done)) => self.repaired(chosen, done),
            (State::Waiting { wait, then }, Event::Woke) => {
                if self.now < wait.until && !wait.wake_on_health {
                    State::Waiting { wait, then }
                } else {
                    match then {
                        AfterWait::Order => State::Ordering,
                        AfterWait::Again(chosen) => self.attempt(chosen),
                    }
                }
            }
            (State::Settling(_), Event::Settled) => self.done(Ending::Answered),
            // `awaits` has let nothing else through.
            (state, _) => state,
        };
        Ok(())
    }

    /// Whether `event` answers the step at hand. Both sides are closed: a new step does not compile without its event.
    fn awaits(&self, event: &Event) -> bool {
        match &self.state {
            State::Ordering | State::Outlook { .. } => matches!(event, Event::Profiles(_)),
            State::Leasing { .. } => matches!(event, Event::Leased(_)),
            State::Claiming { .. } => matches!(event, Event::Claimed(_)),
            State::Attempting { .. } => matches!(event, Event::Ended(_)),
            State::Recording { .. } => matches!(event, Event::Recorded(_)),
            State::Releasing { .. } => matches!(event, Event::Released),
            State::Repairing { .. } => matches!(event, Event::Repaired(_)),
            State::Waiting { .. } => matches!(event, Event::Woke),
            State::Settling(_) => matches!(event, Event::Settled),
            State::Done(_) => false,
        }
    }

    fn asked(&self) -> &'static str {
        match &self.state {
            State::Ordering | State::Outlook { .. } => "order_profiles",
            State::Leasing { .. } => "lease",
            State::Claiming { .. } => "claim",
            State::Attempting { .. } => "attempt",
            State::Recording { .. } => "record",
            State::Releasing { .. } => "release",
            State::Repairing { .. } => "repair",
            State::Waiting { .. } => "wait",
            State::Settling(_) => "settle",
            State::Done(_) => "done",
        }
    }

    /// The run's deadline, where it has one.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// How many attempts were made.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    fn primary(&self) -> &Candidate {
        self.walk.first().unwrap_or(self.candidate())
    }

    /// The candidate at hand. Once the walk is over this is the last one.
    fn candidate(&self) -> &Candidate {
        match self.walk.get(self.at).or(self.walk.last()) {
            Some(candidate) => candidate,
            // `new` refuses an empty chain, and nothing ever takes a candidate out.
            None => unreachable!("a walk has at least one candidate"),
        }
    }
}

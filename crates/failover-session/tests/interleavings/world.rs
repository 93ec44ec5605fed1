//! The world that both proofs attack: two runs, a person, a reset, a compaction and an unrelated writer share one
//! session. What must hold is written down here, apart from the code that makes it hold.

use crate::rules::Rules;
use failover_session::{
    Claim, NoticeKind, ResetKind, SessionEntry, StoredSelection, Ticket, compaction, is_owned, reset,
    select_default, select_user, take_notices, ticket,
};
use failover_types::{FailoverReason, ModelRef, ModelSelector, ProfileId, RunId, Timestamp};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000);

pub(crate) fn model(text: &str) -> ModelRef {
    text.parse().unwrap()
}

/// The configured primary; every override goes back to it.
pub(crate) fn primary() -> ModelRef {
    model("p/P")
}

/// The configured fallbacks.
fn fallbacks() -> [ModelRef; 2] {
    [model("b/B"), model("c/C")]
}

/// Changes the entry of the session: a read, a pure change, a won swap.
pub(crate) trait Stage {
    /// Applies `change` to what stands; a change that returns `None` writes nothing.
    fn update(&mut self, change: &mut (dyn FnMut(&SessionEntry) -> Option<SessionEntry> + Send));
    /// What stands.
    fn entry(&self) -> Arc<SessionEntry>;
}

/// What went wrong, by requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Broken {
    /// A field of the host changed.
    Unrelated,
    /// A person's choice is gone.
    Choice,
    /// A group is half one thing and half another.
    Torn,
    /// A notice too many or too few.
    Notice,
    /// Nobody is at work, and the session sits on an override that never answered.
    Unproven,
    /// Nobody is at work, and the session lost what it had before.
    Previous,
    /// A run wrote although somebody chose or reset since it began.
    Fence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// A run begins: recovers dead claims, takes its ticket, reads the selection.
    Begin(usize),
    /// It writes the override of its next candidate.
    Claim(usize),
    /// Its attempt fails; the override is rolled back.
    Fail(usize),
    /// Its attempt answers; the override is proven, or the origin is back.
    Succeed(usize),
    /// It takes the notices.
    Take(usize),
    /// Its process dies or its future is dropped.
    Die(usize),
    /// A person chooses a model that is in no chain.
    Choose,
    /// A person chooses the very model that runs fall back to.
    ChooseFallback,
    /// A person chooses with an old tool, which writes the selection fields and knows nothing else.
    ChooseOutside,
    /// A person goes back to what is configured.
    ChooseDefault,
    Reset,
    /// Somebody takes every run for dead, those that are only late among them.
    Expire,
    Compact,
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pc {
    Idle,
    /// About to write its claim.
    Claim,
    /// The attempt is under way.
    Attempt,
    /// It answered; its notices are to be taken.
    Take,
    Done,
    Dead,
}

#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) pc: Pc,
    pub(crate) ticket: Option<Ticket>,
    plan: Arc<[ModelRef]>,
    at: usize,
    /// The ghost epoch in which it began.
    epoch: u32,
    /// The entry before its last claim: broken rules need it.
    seen: Arc<SessionEntry>,
}

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) rules: Rules,
    pub(crate) runs: Vec<Run>,
    next_run: usize,
    pub(crate) budget: Budget,
    initial: Arc<SessionEntry>,
    chosen: Option<StoredSelection>,
    epoch: u32,
    compactions: u64,
    writes: u32,
    answered: BTreeSet<ModelRef>,
    primary_answered: bool,
    delivered: Vec<u64>,
}

/// How often each actor may still act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) runs: usize,
    pub(crate) choices: usize,
    /// How often a person may go back to the default.
    pub(crate) returns: usize,
    pub(crate) resets: usize,
    pub(crate) expiries: usize,
    pub(crate) compactions: usize,
    pub(crate) writes: usize,
}

fn chosen_in(entry: &SessionEntry) -> Option<StoredSelection> {
    Some(entry.selection()).filter(StoredSelection::is_a_choice)
}

impl World {
    pub(crate) fn new(rules: Rules, initial: &SessionEntry, budget: Budget) -> Self {
        let answered = match initial.selection() {
            StoredSelection::Auto { model, .. } => BTreeSet::from([model]),
            _ => BTreeSet::new(),
        };
        let mut world = Self {
            rules,
            runs: Vec::new(),
            next_run: 0,
            budget,
            initial: Arc::new(initial.clone()),
            chosen: chosen_in(initial),
            epoch: 0,
            compactions: 0,
            writes: 0,
            answered,
            primary_answered: false,
            delivered: Vec::new(),
        };
        world.runs = vec![world.fresh_run(), world.fresh_run()];
        world
    }

    fn fresh_run(&mut self) -> Run {
        self.next_run += 1;
        let id = RunId::new(format!("run-{}", self.next_run)).unwrap();
        let seen = Arc::default();
        Run { id, pc: Pc::Idle, ticket: None, plan: Arc::default(), at: 0, epoch: 0, seen }
    }

    /// Everything that tells two worlds apart, the entry and the rules aside.
    pub(crate) fn digest(&self, into: &mut impl Hasher) {
        for run in &self.runs {
            (run.pc, &run.ticket, &run.plan, run.at, run.epoch).hash(into);
            if self.rules.needs_seen {
                run.seen.to_json().hash(into);
            }
        }
        let Self {
            budget, chosen, epoch, compactions, writes, answered, primary_answered, delivered, ..
        } = self;
        (budget, chosen, epoch, compactions, writes, answered, primary_answered, delivered).hash(into);
    }

    pub(crate) fn enabled(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        // Runs that have not begun are alike: it is enough that the first of them begins.
        let first_idle = self.runs.iter().position(|run| run.pc == Pc::Idle);
        for (r, run) in self.runs.iter().enumerate() {
            match run.pc {
                Pc::Idle if self.budget.runs > 0 && first_idle == Some(r) => actions.push(Action::Begin(r)),
                Pc::Claim => actions.extend([Action::Claim(r), Action::Die(r)]),
                Pc::Attempt => actions.extend([Action::Fail(r), Action::Succeed(r), Action::Die(r)]),
                Pc::Take => actions.extend([Action::Take(r), Action::Die(r)]),
                Pc::Idle | Pc::Done | Pc::Dead => {}
            }
        }
        let Budget { choices, returns, resets, expiries, compactions, writes, .. } = self.budget;
        actions.extend([Action::ChooseDefault].into_iter().filter(|_| returns > 0 && self.chosen.is_some()));
        let choose = [Action::Choose, Action::ChooseFallback, Action::ChooseOutside];
        actions.extend(choose.into_iter().filter(|_| choices > 0));
        actions.extend([Action::Reset].into_iter().filter(|_| resets > 0));
        actions.extend([Action::Expire].into_iter().filter(|_| expiries > 0));
        actions.extend([Action::Compact].into_iter().filter(|_| compactions > 0));
        actions.extend([Action::Write].into_iter().filter(|_| writes > 0));
        actions
    }

    /// Nobody is at work.
    pub(crate) fn is_quiet(&self) -> bool {
        self.runs.iter().all(|run| matches!(run.pc, Pc::Idle | Pc::Done | Pc::Dead))
    }

    fn claim(&self, r: usize) -> Claim {
        let run = &self.runs[r];
        let model = run.plan[run.at].clone();
        let profile = ProfileId::new(format!("{}:1", model.provider())).unwrap();
        let lease = Duration::from_mins(1);
        let ticket = run.ticket.clone().unwrap();
        Claim::new(ticket, model, primary(), FailoverReason::Overloaded, NOW, lease)
            .with_profile(profile, self.compactions)
    }

    /// A later candidate than the first goes through a claim, unless it is the primary or the only one.
    fn advance(&mut self, r: usize, at: usize) {
        let run = &mut self.runs[r];
        run.at = at;
        run.pc = match run.plan.get(at) {
            None => Pc::Done,
            Some(model) if run.plan.len() == 1 || *model == primary() => Pc::Attempt,
            Some(_) => Pc::Claim,
        };
    }

    /// Takes one step and says what the step broke. What holds of states is [`World::judge`]'s.
    pub(crate) fn step(&mut self, action: Action, stage: &mut dyn Stage) -> BTreeSet<Broken> {
        let before = stage.entry();
        self.act(action, stage);
        self.judge_change(action, &before, &stage.entry())
    }

    fn act(&mut self, action: Action, stage: &mut dyn Stage) {
        let rules = self.rules;
        match action {
            Action::Begin(r) => {
                self.budget.runs -= 1;
                let dead: Vec<RunId> =
                    self.runs.iter().filter(|run| run.pc == Pc::Dead).map(|run| run.id.clone()).collect();
                stage.update(&mut |entry| (rules.recover)(entry, &dead));
                let entry = stage.entry();
                let epoch = self.epoch;
                let run = &mut self.runs[r];
                run.ticket = Some(ticket(&entry, run.id.clone()));
                run.epoch = epoch;
                run.plan = match entry.selection() {
                    StoredSelection::Nothing => [primary()].into_iter().chain(fallbacks()).collect(),
                    StoredSelection::Auto { model, .. } => {
                        let others = fallbacks().into_iter().filter(|other| *other != model);
                        [model.clone()].into_iter().chain(others).chain([primary()]).collect()
                    }
                    choice => choice.model().cloned().into_iter().collect(),
                };
                self.advance(r, 0);
            }
            Action::Claim(r) => {
                let claim = self.claim(r);
                self.runs[r].seen = stage.entry();
                stage.update(&mut |entry| (rules.apply)(entry, &claim));
                self.runs[r].pc = Pc::Attempt;
            }
            Action::Fail(r) => {
                let (claim, seen) = (self.claim(r), Arc::clone(&self.runs[r].seen));
                if claim.model != primary() && self.runs[r].plan.len() > 1 {
                    stage.update(&mut |entry| (rules.roll_back)(entry, &claim, &seen));
                }
                self.advance(r, self.runs[r].at + 1);
            }
            Action::Succeed(r) => {
                let claim = self.claim(r);
                if self.runs[r].plan.len() > 1 {
                    if claim.model == primary() {
                        stage.update(&mut |entry| (rules.settle_origin)(entry, &claim.ticket, &primary()));
                        self.primary_answered = true;
                    } else {
                        stage.update(&mut |entry| (rules.settle)(entry, &claim));
                        self.answered.insert(claim.model);
                    }
                }
                self.runs[r].pc = Pc::Take;
            }
            Action::Take(r) => {
                let mut taken = Vec::new();
                stage.update(&mut |entry| {
                    let (next, notices) = take_notices(entry)?;
                    taken = notices;
                    Some(next)
                });
                self.delivered.extend(taken.iter().map(|notice| notice.serial));
                self.runs[r].pc = Pc::Done;
            }
            Action::Die(r) => self.runs[r].pc = Pc::Dead,
            Action::Choose => self.choose(&model("u/U"), stage, false),
            Action::ChooseFallback => self.choose(&fallbacks()[0], stage, false),
            Action::ChooseOutside => self.choose(&model("o/O"), stage, true),
            Action::ChooseDefault => {
                self.budget.returns -= 1;
                stage.update(&mut |entry| Some(select_default(entry, &primary(), NOW)));
                self.chosen = None;
                self.new_epoch();
            }
            Action::Reset => {
                self.budget.resets -= 1;
                stage.update(&mut |entry| Some(reset(entry, ResetKind::Reset)));
                self.new_epoch();
            }
            Action::Expire => {
                self.budget.expiries -= 1;
                let all: Vec<RunId> = self.runs.iter().map(|run| run.id.clone()).collect();
                stage.update(&mut |entry| (rules.recover)(entry, &all));
            }
            Action::Compact => {
                self.budget.compactions -= 1;
                self.compactions += 1;
                let count = self.compactions;
                stage.update(&mut |entry| compaction(entry, count));
            }
            Action::Write => {
                self.budget.writes -= 1;
                self.writes += 1;
                let title = serde_json::value::RawValue::from_string(format!("{}.50", self.writes)).unwrap();
                stage.update(&mut |entry| entry.with_field("title", Some(title.clone())).ok());
            }
        }
    }

    fn new_epoch(&mut self) {
        self.epoch += 1;
        self.answered.clear();
    }

    fn choose(&mut self, wanted: &ModelRef, stage: &mut dyn Stage, outside: bool) {
        self.budget.choices -= 1;
        if outside {
            stage.update(&mut |entry| Some(crate::rules::chosen_by_an_old_tool(entry, wanted)));
        } else {
            let choice = ModelSelector::new(wanted.clone(), None);
            stage.update(&mut |entry| Some(select_user(entry, &choice, NOW)));
            self.new_epoch();
        }
        let model = wanted.clone();
        self.chosen =
            Some(if outside { StoredSelection::Legacy { model } } else { StoredSelection::User { model } });
    }

    /// What must hold at every moment.
    pub(crate) fn judge(&self, entry: &SessionEntry) -> BTreeSet<Broken> {
        let mut broken = BTreeSet::new();
        let mut check = |holds: bool, what: Broken| {
            if !holds {
                broken.insert(what);
            }
        };
        check(host_fields(entry) == self.host_fields(), Broken::Unrelated);
        check(self.chosen.as_ref().is_none_or(|choice| *choice == entry.selection()), Broken::Choice);
        check(is_whole(entry), Broken::Torn);
        let distinct: BTreeSet<&u64> = self.delivered.iter().collect();
        check(distinct.len() == self.delivered.len(), Broken::Notice);
        if self.is_quiet() {
            let dead: Vec<RunId> = self.runs.iter().map(|run| run.id.clone()).collect();
            let nobody_died = self.runs.iter().all(|run| run.pc != Pc::Dead);
            let rested = (self.rules.recover)(entry, &dead).unwrap_or_else(|| entry.clone());
            check(!nobody_died || rested == *entry, Broken::Unproven);
            check(rested.claims().is_empty(), Broken::Unproven);
            match rested.selection() {
                StoredSelection::Auto { model, .. } => {
                    check(self.answered.contains(&model), Broken::Unproven);
                }
                StoredSelection::Nothing => {
                    let had_nothing = self.initial.selection() == StoredSelection::Nothing;
                    check(had_nothing || self.epoch > 0 || self.primary_answered, Broken::Previous);
                    let untouched = self.epoch == 0 && self.compactions == 0 && self.answered.is_empty();
                    check(!untouched || rested.pin() == self.initial.pin(), Broken::Previous);
                }
                _ => check(self.chosen.is_some(), Broken::Choice),
            }
        }
        broken
    }

    /// What must hold of every step: notices exactly when the settled layer moves, and no late writes.
    fn judge_change(&self, action: Action, before: &SessionEntry, after: &SessionEntry) -> BTreeSet<Broken> {
        let mut broken = BTreeSet::new();
        let on = |entry: &SessionEntry| matches!(entry.settled_selection(), StoredSelection::Auto { .. });
        let new: Vec<bool> = after
            .notices()
            .iter()
            .filter(|notice| !before.notices().contains(notice))
            .map(|notice| matches!(notice.kind, NoticeKind::Fallback { .. }))
            .collect();
        let expected: &[bool] = match (on(before), on(after), action) {
            (false, true, _) => &[true],
            (true, false, Action::Succeed(_)) => &[false],
            _ => &[],
        };
        if new != expected {
            broken.insert(Broken::Notice);
        }
        if let Some(what) = self.moved_wrongly(action, before, after) {
            broken.insert(what);
        }
        let writer = match action {
            Action::Claim(r) | Action::Fail(r) | Action::Succeed(r) => &self.runs[r],
            _ => return broken,
        };
        let owned = |entry: &SessionEntry| (entry.selection(), entry.pin());
        if writer.epoch < self.epoch && owned(before) != owned(after) {
            broken.insert(Broken::Fence);
        }
        broken
    }

    /// What is settled moves by a success, a choice or a reset, and by nothing else.
    fn moved_wrongly(&self, action: Action, before: &SessionEntry, after: &SessionEntry) -> Option<Broken> {
        let (was, is) = (before.settled_selection(), after.settled_selection());
        let may_become = match action {
            Action::Succeed(r) => Some(match self.runs[r].plan[self.runs[r].at].clone() {
                model if model == primary() => StoredSelection::Nothing,
                model => StoredSelection::Auto { model, origin: Some(primary()) },
            }),
            Action::Choose | Action::ChooseFallback | Action::ChooseOutside => self.chosen.clone(),
            Action::Reset => Some(StoredSelection::Nothing),
            Action::ChooseDefault if is == StoredSelection::Nothing => return None,
            _ => None,
        };
        if was == is
            || (!was.is_a_choice() && may_become.as_ref() == Some(&is))
            || self.chosen.as_ref() == Some(&is)
        {
            return None;
        }
        Some(match is {
            StoredSelection::Auto { .. } => Broken::Unproven,
            _ if was.is_a_choice() => Broken::Choice,
            _ => Broken::Previous,
        })
    }

    fn host_fields(&self) -> Vec<(String, String)> {
        let mut fields = host_fields(&self.initial);
        if self.writes > 0 {
            let title = fields.iter_mut().find(|(name, _)| name == "title").unwrap();
            title.1 = format!("{}.50", self.writes);
        }
        fields
    }

    /// Everybody who is still at work dies.
    pub(crate) fn kill_all(&mut self) {
        for run in self.runs.iter_mut().filter(|run| !matches!(run.pc, Pc::Idle | Pc::Done)) {
            run.pc = Pc::Dead;
        }
    }

    /// For long walks: a run that ended is replaced by a fresh one, a dead one once its claim was recovered.
    pub(crate) fn replace_ended(&mut self, entry: &SessionEntry) {
        for r in 0..self.runs.len() {
            let Run { pc, id, .. } = &self.runs[r];
            let traceless = entry.claims().iter().all(|claim| claim.run != *id);
            if *pc == Pc::Done || (*pc == Pc::Dead && traceless) {
                self.runs[r] = self.fresh_run();
            }
        }
    }
}

/// Names and raw values of the host's own fields, in order. `bumps` belongs to the disturbed store.
fn host_fields(entry: &SessionEntry) -> Vec<(String, String)> {
    let names = entry.names().filter(|name| !is_owned(name) && *name != "bumps");
    names.map(|name| (name.to_owned(), entry.field(name).unwrap().get().to_owned())).collect()
}

/// Each group is entirely one thing, and the pin of an override belongs to its provider.
fn is_whole(entry: &SessionEntry) -> bool {
    let present = |names: &[&str]| names.iter().map(|name| entry.field(name).is_some()).collect::<Vec<_>>();
    let selected = present(&[
        "providerOverride",
        "modelOverride",
        "modelOverrideSource",
        "modelOverrideFallbackOriginProvider",
        "modelOverrideFallbackOriginModel",
    ]);
    let pin =
        present(&["authProfileOverride", "authProfileOverrideSource", "authProfileOverrideCompactionCount"]);
    let pin_is_whole = matches!(pin[..], [false, false, false] | [true, true, true]);
    pin_is_whole
        && match entry.selection() {
            StoredSelection::Nothing => selected == [false; 5],
            StoredSelection::Auto { model: to, origin } => {
                let pinned_elsewhere =
                    entry.pin().is_some_and(|pin| pin.profile.provider() != to.provider().as_str());
                selected == [true; 5]
                    && origin == Some(primary())
                    && fallbacks().contains(&to)
                    && !pinned_elsewhere
            }
            StoredSelection::User { model: to } => {
                selected == [true, true, true, false, false] && [model("u/U"), model("b/B")].contains(&to)
            }
            StoredSelection::Legacy { model: to } => {
                selected == [true, true, false, false, false] && [model("l/L"), model("o/O")].contains(&to)
            }
            StoredSelection::Unreadable { .. } => false,
        }
}

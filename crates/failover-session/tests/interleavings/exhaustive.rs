//! The exhaustive check: breadth first over every state that the actors can reach.

use crate::rules::Rules;
use crate::world::{Action, Broken, Budget, Stage, World};
use failover_session::SessionEntry;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use test_case::test_case;

/// The entry in memory: an update is one atomic step, as a won swap is.
struct Memory(Arc<SessionEntry>);

impl Stage for Memory {
    fn update(&mut self, change: &mut (dyn FnMut(&SessionEntry) -> Option<SessionEntry> + Send)) {
        if let Some(next) = change(&self.0) {
            self.0 = Arc::new(next);
        }
    }

    fn entry(&self) -> Arc<SessionEntry> {
        Arc::clone(&self.0)
    }
}

/// What a search found: how many states there are, and the shortest way to each kind of fault.
struct Findings {
    states: usize,
    faults: BTreeMap<Broken, Vec<Action>>,
}

/// Two runs, one choice, one reset, one write by somebody else; each run may die at any point.
const SMALL: Budget =
    Budget { runs: 2, choices: 1, returns: 0, resets: 1, expiries: 0, compactions: 0, writes: 1 };

/// Shares the ways back between states.
struct Step {
    action: Action,
    before: Option<usize>,
}

/// Visits every state, or stops at the first fault of the kind `wanted`.
fn search(rules: Rules, initial: &SessionEntry, budget: Budget, wanted: Option<Broken>) -> Findings {
    let mut steps: Vec<Step> = Vec::new();
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([(World::new(rules, initial, budget), Arc::new(initial.clone()), None)]);
    let mut faults = BTreeMap::new();
    while let Some((world, entry, before)) = queue.pop_front() {
        for action in world.enabled() {
            let (mut next, mut stage) = (world.clone(), Memory(Arc::clone(&entry)));
            let mut broken = next.step(action, &mut stage);
            let new = seen.insert(digest(&next, &stage.0.to_json()));
            if new {
                broken.append(&mut next.judge(&stage.0));
            }
            if new || !broken.is_empty() {
                steps.push(Step { action, before });
            }
            let here = steps.len().saturating_sub(1);
            for what in &broken {
                faults.entry(*what).or_insert_with(|| way(&steps, here));
            }
            if wanted.is_some_and(|wanted| broken.contains(&wanted)) {
                return Findings { states: seen.len(), faults };
            }
            // What follows a fault proves nothing.
            if new && broken.is_empty() {
                queue.push_back((next, stage.0, Some(here)));
            }
        }
    }
    Findings { states: seen.len(), faults }
}

/// 128 bits for a state: two million states share one with a probability below 10^-26.
fn digest(world: &World, entry: &str) -> (u64, u64) {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, entry).hash(&mut hasher);
        world.digest(&mut hasher);
        hasher.finish()
    };
    (half(1), half(2))
}

fn way(steps: &[Step], last: usize) -> Vec<Action> {
    let mut way = Vec::new();
    let mut at = Some(last);
    while let Some(step) = at.map(|at| &steps[at]) {
        way.push(step.action);
        at = step.before;
    }
    way.reverse();
    way
}

pub(crate) const FRESH: &str = r#"{"title":"x","authProfileOverride":"p:1","authProfileOverrideSource":"auto","authProfileOverrideCompactionCount":0,"n":1.50}"#;
pub(crate) const ON_FALLBACK: &str = r#"{"title":"x","providerOverride":"b","modelOverride":"B","modelOverrideSource":"auto","n":1.50,"modelOverrideFallbackOriginProvider":"p","modelOverrideFallbackOriginModel":"P"}"#;
pub(crate) const LEGACY: &str = r#"{"title":"x","providerOverride":"l","modelOverride":"L","n":1.50}"#;

/// A world in which leases run out early and the session is compacted.
const LATE: Budget =
    Budget { runs: 2, choices: 1, returns: 0, resets: 0, expiries: 1, compactions: 1, writes: 0 };

// spec: S-2, S-3, S-4, S-5, S-6, S-11
#[test_case(FRESH, SMALL, 50_000; "nothing selected")]
#[test_case(ON_FALLBACK, SMALL, 45_000; "on a fallback already")]
#[test_case(LEGACY, SMALL, 2_000; "on a choice without a source")]
#[test_case(FRESH, LATE, 5_000; "compacted, and taken for dead too early")]
#[test_case(ON_FALLBACK, LATE, 5_000; "the same on a fallback")]
fn nothing_breaks_in_any_interleaving(initial: &str, budget: Budget, at_least: usize) {
    let initial = SessionEntry::parse(initial.as_bytes()).unwrap();
    let found = search(Rules::real(), &initial, budget, None);
    assert!(found.faults.is_empty(), "{:#?}", found.faults);
    assert!(found.states >= at_least, "only {} states: the actors do not get far", found.states);
}

// spec: S-5
#[test_case(Rules::rollback_to_default(), ON_FALLBACK, Broken::Previous; "rollback to the default")]
#[test_case(Rules::rollback_without_comparing(), FRESH, Broken::Choice; "rollback without comparing: a choice is lost")]
#[test_case(Rules::rollback_to_a_failed_value(), FRESH, Broken::Unproven; "rollback to what another run failed on")]
#[test_case(Rules::rollback_of_half_a_group(), FRESH, Broken::Torn; "rollback of half a group")]
#[test_case(Rules::rollback_of_the_whole_entry(), FRESH, Broken::Unrelated; "rollback of the whole entry")]
#[test_case(Rules::claim_over_a_choice(), FRESH, Broken::Choice; "claim over a choice")]
#[test_case(Rules::claim_without_a_fence(), FRESH, Broken::Fence; "claim after a reset")]
#[test_case(Rules::every_success_is_announced(), FRESH, Broken::Notice; "announced twice")]
#[test_case(Rules::origin_clears_blindly(), FRESH, Broken::Choice; "cleared without comparing")]
#[test_case(Rules::no_recovery(), FRESH, Broken::Unproven; "dead runs left alone")]
fn a_broken_rule_is_found(rules: Rules, initial: &str, expected: Broken) {
    let initial = SessionEntry::parse(initial.as_bytes()).unwrap();
    let found = search(rules, &initial, SMALL, Some(expected));
    let way = found.faults.get(&expected);
    assert!(way.is_some(), "{expected:?} was not found in {} states: {:?}", found.states, found.faults);
}

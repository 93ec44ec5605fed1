//! What holds for every provider, however it behaves.

use crate::common::{T0, engine, failing, health, ok, policy, spec};
use failover_runner::plan::{AttemptEnd, Ending, Failed, RunSpec, What, bound};
use failover_runner::simulate::Answer;
use failover_types::{FailoverReason, Scope, Timestamp};
use proptest::prelude::*;
use std::time::Duration;

/// One answer of a provider, as far as the plan can tell answers apart.
#[derive(Clone, Debug)]
struct Word {
    reason: FailoverReason,
    scope: Scope,
    wait: Option<u64>,
    repeatable: bool,
    committed: bool,
    takes: u64,
}

fn word() -> impl Strategy<Value = Word> {
    (
        proptest::sample::select(FailoverReason::ALL),
        proptest::sample::select(vec![Scope::Request, Scope::Model, Scope::Credential, Scope::Provider]),
        proptest::option::of(0..5_000_u64),
        any::<bool>(),
        proptest::bool::weighted(0.1),
        prop_oneof![Just(0), 1..1_000_u64, 10_000..100_000_u64],
    )
        .prop_map(|(reason, scope, wait, repeatable, committed, takes)| Word {
            reason,
            scope,
            wait,
            repeatable,
            committed,
            takes,
        })
}

/// How a provider behaves: always alike, in turns, or at random; random alone would hardly ever insist.
fn script() -> impl Strategy<Value = Vec<Word>> {
    prop_oneof![
        word().prop_map(|word| vec![word]),
        (word(), word()).prop_map(|(a, b)| vec![a, b]),
        proptest::collection::vec(word(), 3..20),
    ]
}

fn answer(word: &Word, now: Timestamp) -> Answer {
    let after = Duration::from_millis(word.takes);
    let mut failed = Failed::new(word.reason);
    failed.scope = word.scope;
    failed.retry_at = word.wait.map(|wait| now.after(after).after(Duration::from_millis(wait)));
    failed.repeatable = word.repeatable;
    failed.committed = word.committed;
    Answer { after, end: AttemptEnd::Failed(failed) }
}

const CHAIN: [&str; 5] = ["a/m", "a/n", "b/m", "c/m", "b/n"];
const PROFILES: [&str; 6] = ["a:1", "a:2", "a:3", "b:1", "b:2", "c:1"];

fn profiles_of(model: &str) -> usize {
    PROFILES.iter().filter(|profile| profile.split(':').next() == model.split('/').next()).count()
}

fn check(
    script: &[Word],
    repairs: bool,
    deadline: Option<u64>,
    then_ok: Option<usize>,
) -> Result<(), TestCaseError> {
    let policy = policy(|p| {
        p.deadline_ms = deadline;
        p.retry_in_place.jitter_ms = 250;
        p.overloaded_backoff_ms = 100;
    });
    let mut calls = 0;
    let mut engine = engine(health(&PROFILES), |_, now| {
        calls += 1;
        if then_ok == Some(calls) { ok() } else { answer(&script[(calls - 1) % script.len()], now) }
    });
    engine.world.repairs = repairs;
    let spec: RunSpec = spec("run", &CHAIN).with_policy(policy.clone());
    engine.start(spec).unwrap();
    engine.run_until(Timestamp::MAX);

    // It terminates.
    let done = engine.ended("run");
    prop_assert!(done.is_some(), "the run ends:\n{}", engine.timeline());
    let done = done.unwrap();

    // Within the bound that `explain` prints.
    let worst = bound(&policy, &CHAIN.map(profiles_of));
    prop_assert!(engine.world.calls.len() as u64 <= worst.calls, "{} calls", engine.world.calls.len());
    let busy: Duration = done
        .trail
        .iter()
        .map(|visit| match &visit.what {
            What::Attempt(attempt) => attempt.took,
            What::Skip(_) => Duration::ZERO,
        })
        .sum();
    let waited = engine.now().since(T0).saturating_sub(busy);
    prop_assert!(waited <= worst.waiting, "waited {waited:?}");

    // Candidates are visited in order, each once: a prefix of the chain.
    let mut visited: Vec<usize> = done.trail.iter().map(|visit| visit.candidate).collect();
    prop_assert!(visited.is_sorted(), "{visited:?}");
    visited.dedup();
    prop_assert_eq!(&visited, &(0..visited.len()).collect::<Vec<_>>());
    for visit in &done.trail {
        prop_assert_eq!(visit.model.to_string(), CHAIN[visit.candidate]);
    }

    // Nothing is tried after something was delivered, after a success, or after a failure of the request itself.
    let last = engine.world.calls.len();
    for (index, (_, step)) in engine.world.calls.iter().enumerate() {
        let word = &script[index % script.len()];
        if index + 1 < last && then_ok != Some(index + 1) {
            let cut = step.limits.end.is_some_and(|end| {
                end.at < engine.world.calls[index].0.after(Duration::from_millis(word.takes))
            });
            prop_assert!(cut || !word.committed, "attempt {} was committed", index + 1);
        }
        prop_assert!(then_ok != Some(index + 1) || index + 1 == last || step.limits.end.is_some());
    }

    // Waiting and attempts together never exceed the deadline.
    if let Some(deadline) = deadline {
        prop_assert!(engine.now().since(T0) <= Duration::from_millis(deadline));
        for (at, step) in &engine.world.calls {
            let end = step.limits.end.unwrap();
            prop_assert!(*at < end.at && end.at <= T0.after(Duration::from_millis(deadline)));
        }
    }
    if then_ok.is_some_and(|at| at == last) && deadline.is_none() {
        prop_assert_eq!(&done.ending, &Ending::Answered);
    }
    Ok(())
}

proptest! {
    // A multiple, so that a longer run reaches it too.
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]

    // spec
    #[test]
    fn every_walk_ends_within_its_bounds(
        script in script(),
        repairs in any::<bool>(),
        deadline in proptest::option::of(1..60_000_u64),
        then_ok in proptest::option::of(1..12_usize),
    ) {
        check(&script, repairs, deadline, then_ok)?;
    }
}

/// Every stubborn provider and every pair that alternates, with and without repairs: all of them, not a sample.
// spec
#[test]
fn stubborn_and_alternating_providers_are_got_rid_of() {
    for a in FailoverReason::ALL {
        for b in FailoverReason::ALL {
            for repeatable in [false, true] {
                let word = |reason: FailoverReason| Word {
                    reason,
                    scope: reason.default_scope(),
                    wait: Some(10),
                    repeatable,
                    committed: false,
                    takes: 5,
                };
                check(&[word(*a), word(*b)], true, None, None).unwrap();
            }
        }
    }
}

/// Only the bound on attempts per candidate ends a run whose profiles and retries never run out.
// spec: R-7
#[test]
fn the_inner_bound_ends_what_nothing_else_ends() {
    let policy = policy(|p| {
        p.retry_in_place.max = 10;
        p.run_retries.max = 7;
        p.run_retries.min = 7;
    });
    let names: Vec<String> = (0..50).map(|n| format!("a:{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut engine = engine(health(&names), |_, _| failing(Failed::new(FailoverReason::Auth)));
    engine.start(spec("run", &["a/m"]).with_policy(policy)).unwrap();
    engine.run_until(Timestamp::MAX);
    assert_eq!(engine.world.calls.len(), 7);
}

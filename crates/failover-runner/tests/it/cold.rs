//! Many runs at once on a credential that nobody knows yet, and whose answers take their time; and a person's choice of
//! one that is out.

use crate::common::{T0, engine, fail, health, ok, pinned, play, policy};
use failover_auth::UserPinMode;
use failover_runner::plan::{Candidate, Ending, RunSpec};
use failover_runner::simulate::Answer;
use failover_types::{FailoverReason as R, RunId, Timestamp};
use std::time::Duration;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn spec(name: &str, models: &[&str]) -> RunSpec {
    let chain = models.iter().map(|text| Candidate::new(text.parse().unwrap())).collect();
    RunSpec::new(RunId::new(name).unwrap(), chain)
}

fn late(seconds: u64, answer: Answer) -> Answer {
    Answer { after: secs(seconds), ..answer }
}

// spec: R-14
#[test]
fn a_dead_credential_that_is_slow_to_say_so_is_called_at_most_three_times() {
    let mut engine = engine(health(&["a:1"]), |step, _| {
        if step.model.provider().as_str() == "a" { late(5, fail(R::Auth)) } else { ok() }
    });
    for n in 0..200 {
        engine.start(spec(&format!("r{n}"), &["a/m", "b/m"])).unwrap();
    }
    engine.run_until(T0.after(secs(29)));
    let calls = engine.world.called().iter().filter(|call| call.starts_with("a/")).count();
    assert!((1..=3).contains(&calls), "{calls} calls");
    assert_eq!(engine.endings().filter(|done| done.ending == Ending::Answered).count(), 200);
}

// spec: R-14
#[test]
fn a_slow_provider_that_is_well_lets_everybody_in_before_its_first_answer() {
    let mut engine = engine(health(&["a:1"]), |_, _| late(20, ok()));
    for n in 0..500 {
        engine.start(spec(&format!("r{n}"), &["a/m", "b/m"])).unwrap();
    }
    engine.run_until(Timestamp::MAX);
    let begun = |second| engine.world.calls.iter().filter(|(at, _)| *at <= T0.after(secs(second))).count();
    assert_eq!([begun(9), begun(10), begun(11), begun(14)], [2, 4, 8, 64], "more and more of them");
    assert_eq!(begun(18), 500);
    assert!(engine.world.called().iter().all(|call| call.starts_with("a/")));
}

// spec: R-14
#[test]
fn a_burst_on_a_slow_credential_that_answered_lately_waits_two_seconds_at_most() {
    let mut engine = engine(health(&["a:1"]), |_, now| if now == T0 { ok() } else { late(20, ok()) });
    play(&mut engine, spec("first", &["a/m"]));
    engine.run_until(T0.after(secs(60)));
    for n in 0..200 {
        engine.start(spec(&format!("r{n}"), &["a/m", "b/m"])).unwrap();
    }
    engine.run_until(Timestamp::MAX);
    let last = engine.world.calls.iter().map(|(at, _)| *at).max().unwrap();
    assert!(last <= T0.after(secs(62)), "{:?}", last.since(T0));
}

// spec
#[test]
fn a_run_with_a_deadline_keeps_time_for_its_own_call() {
    let mut engine = engine(health(&["a:1"]), |_, _| late(3, ok()));
    let policy = policy(|policy| {
        policy.deadline_ms = Some(8_000);
        policy.cold_start.wait_ms = 60_000;
    });
    engine.start(spec("slow", &["a/m"])).unwrap();
    for n in 0..20 {
        engine.start(spec(&format!("r{n}"), &["a/m"]).with_policy(policy.clone())).unwrap();
    }
    engine.run_until(Timestamp::MAX);
    assert_eq!(engine.endings().filter(|done| done.ending == Ending::Answered).count(), 21);
}

// spec
#[test]
fn a_persons_choice_that_is_out_is_tried_once_at_once_and_then_as_seldom_as_any_other() {
    let mut engine = engine(health(&["a:1", "a:2"]), |_, _| fail(R::Billing));
    engine.world.preference = pinned("a:1", UserPinMode::Strict);
    play(&mut engine, spec("opens", &["a/m", "b/m"]));
    engine.world.calls.clear();
    let mut at = Vec::new();
    for second in (1..3_600).step_by(10) {
        engine.run_until(T0.after(secs(second)));
        let before = engine.world.calls.len();
        play(&mut engine, spec(&format!("r{second}"), &["a/m"]));
        if engine.world.calls.len() > before {
            at.push(second);
        }
    }
    assert_eq!(at.first(), Some(&1), "the selection forces one");
    assert!(at.len() <= 6, "then every 15 min at most, and twice after 30 s: {at:?}");
}

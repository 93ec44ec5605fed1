//! Single behaviors of the plan, each on a virtual clock.

use crate::common::{
    T0, attempts, engine, fail, failing, hangs, health, health_with, model, ok, pinned, play, policy, skips,
    spec,
};
use failover_auth::UserPinMode;
use failover_runner::health::{Health, Roster};
use failover_runner::plan::{
    Candidate, Capabilities, DecisionKind, Ending, Event, Failed, Needs, Plan, Purpose, RepairKind, Step,
    StepOutcome, StopReason,
};
use failover_runner::simulate::Answer;
use failover_types::{FailoverReason as R, ModelSelector, ProfileId, Scope, SessionId, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use test_case::test_case;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// spec: R-1
#[test]
fn an_event_that_answers_nothing_changes_nothing() {
    let mut plan = Plan::new(spec("run", &["a/m"]), T0).unwrap();
    let step = plan.next_step();
    assert_eq!(plan.next_step(), step, "until it is answered a step stays");
    let misuse = plan.handle(T0, Event::Settled).unwrap_err();
    assert_eq!((misuse.asked, misuse.told), ("order_profiles", "settled"));
    assert_eq!(plan.next_step(), step);
}

// spec: R-1
#[test]
fn a_chain_without_candidates_is_refused() {
    assert!(Plan::new(spec("run", &[]), T0).is_err());
}

// spec
#[test]
fn the_seventeenth_answers_where_sixteen_fail() {
    let chain: Vec<String> = (0..17).map(|n| format!("p{n}/m")).collect();
    let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
    let reasons =
        [R::Auth, R::RateLimit, R::Overloaded, R::Timeout, R::Billing, R::ModelNotFound, R::Unclassified];
    let mut engine = engine(health(&[]), |step, _| {
        if step.candidate == 16 { ok() } else { fail(reasons[step.candidate % reasons.len()]) }
    });
    let done = play(&mut engine, spec("run", &chain).with_policy(policy(|p| p.retry_in_place.max = 0)));
    assert_eq!((done.ending, done.trail.len()), (Ending::Answered, 17));
}

// spec: R-5
#[test]
fn a_repaired_request_goes_to_the_same_candidate_once() {
    let mut engine = engine(health(&[]), |_, _| fail(R::Format));
    engine.world.repairs = true;
    let done = play(&mut engine, spec("run", &["a/m", "b/m"]));
    assert_eq!(engine.world.called(), ["a/m default", "a/m default"]);
    assert_eq!(engine.world.repaired, [RepairKind::Format]);
    assert_eq!(done.ending, Ending::Returned);
}

// spec: R-5
#[test]
fn without_leave_nothing_is_repaired() {
    let mut engine = engine(health(&[]), |_, _| fail(R::Format));
    engine.world.repairs = true;
    play(&mut engine, spec("run", &["a/m"]).with_policy(policy(|p| p.allow_format_retry = false)));
    assert!(engine.world.repaired.is_empty());
}

// spec: R-2
#[test_case(true, &["a/m default", "a/m default"], Ending::Answered; "repaired without the lost id")]
#[test_case(false, &["a/m default"], Ending::Returned; "not repaired")]
fn a_lost_session_is_repaired_or_returned(repairs: bool, called: &[&str], ending: Ending) {
    let mut first = true;
    let mut engine =
        engine(health(&[]), |_, _| if std::mem::take(&mut first) { fail(R::SessionExpired) } else { ok() });
    engine.world.repairs = repairs;
    let done = play(&mut engine, spec("run", &["a/m", "b/m"]));
    assert_eq!(
        (engine.world.called(), done.ending),
        (called.iter().map(ToString::to_string).collect(), ending)
    );
}

// spec: H-10
#[test]
fn an_overflow_goes_to_its_own_chain_and_only_an_overflow_does() {
    let with_chain = || {
        let mut spec = spec("run", &["a/m", "b/m"]);
        spec.on_context_overflow = vec![Candidate::new(model("a/m")), Candidate::new(model("big/m"))];
        spec
    };
    let mut overflow =
        engine(
            health(&[]),
            |step, _| {
                if step.model == model("big/m") { ok() } else { fail(R::ContextOverflow) }
            },
        );
    assert_eq!(play(&mut overflow, with_chain()).ending, Ending::Answered);
    assert_eq!(overflow.world.called(), ["a/m default", "big/m default"], "b/m is not asked, a/m not again");

    let mut refusal = engine(health(&[]), |_, _| fail(R::ContentRefusal));
    assert_eq!(play(&mut refusal, with_chain()).ending, Ending::Returned);
    assert_eq!(refusal.world.called(), ["a/m default"]);
}

// spec: H-10
#[test]
fn a_special_chain_that_fails_the_same_way_to_its_end_is_returned() {
    let mut spec = spec("run", &["a/m"]);
    spec.on_content_refusal = vec![Candidate::new(model("x/m")), Candidate::new(model("y/m"))];
    let mut engine = engine(health(&[]), |_, _| fail(R::ContentRefusal));
    let done = play(&mut engine, spec);
    assert_eq!((done.ending, done.trail.len()), (Ending::Returned, 3));
}

// spec: H-11
#[test]
fn an_unfit_candidate_is_never_asked() {
    let mut facts = Capabilities::default();
    facts.images = Some(false);
    facts.context_window = Some(10);
    let mut needs = Needs::default();
    needs.images = true;
    let mut spec = spec("run", &["b/m"]).with_needs(needs);
    spec.chain.insert(0, Candidate::new(model("a/m")).with_capabilities(facts));
    let mut engine = engine(health(&[]), |_, _| ok());
    let done = play(&mut engine, spec);
    assert_eq!(
        (skips(&done), engine.world.called()),
        (vec!["a/m modality".to_owned()], vec!["b/m default".to_owned()])
    );
}

// spec: A-8
#[test]
fn a_strict_pin_is_never_rotated() {
    let mut engine = engine(health(&["a:1", "a:2"]), |step, _| {
        if step.model.provider().as_str() == "a" { fail(R::Auth) } else { ok() }
    });
    engine.world.preference = pinned("a:2", UserPinMode::Strict);
    let done = play(&mut engine, spec("run", &["a/m", "b/m"]));
    assert_eq!(
        (done.ending, engine.world.called()),
        (Ending::Answered, vec!["a/m 2".into(), "b/m default".into()])
    );
}

// spec: A-8
#[test]
fn a_preferred_pin_comes_first_and_may_rotate() {
    let mut engine =
        engine(
            health(&["a:1", "a:2"]),
            |step, _| if step.profile.name() == "2" { fail(R::Auth) } else { ok() },
        );
    engine.world.preference = pinned("a:2", UserPinMode::Preferred);
    play(&mut engine, spec("run", &["a/m"]));
    assert_eq!(engine.world.called(), ["a/m 2", "a/m 1"]);
}

// spec: A-23
#[test]
fn a_pinned_profile_that_is_out_is_tried_once_all_the_same() {
    let health = health(&["a:1", "a:2"]);
    let mut engine =
        engine(
            health,
            |step, _| {
                if step.profile.name() == "1" && step.number == 1 { fail(R::Billing) } else { ok() }
            },
        );
    play(&mut engine, spec("first", &["a/m"]));
    engine.world.preference = pinned("a:1", UserPinMode::Strict);
    let mut again = spec("second", &["a/m"]);
    again.seed = 1;
    engine.world.calls.clear();
    engine.start(again).unwrap();
    engine.run_until(Timestamp::MAX);
    assert_eq!(engine.world.called(), ["a/m 1"]);
}

// spec: A-20
#[test]
fn a_refused_fallback_is_left_alone_for_a_while_and_a_primary_never_is() {
    let mut engine = engine(health_with(&[], Some(secs(60))), |step, _| {
        if step.model == model("c/m") { ok() } else { fail(R::Auth) }
    });
    let turn = |name: &str, session: &str| {
        let mut spec = spec(name, &["a/m", "b/m", "c/m"]);
        spec.session = Some(SessionId::new(session).unwrap());
        spec
    };
    play(&mut engine, turn("1", "s"));
    // The windows of 30 s are over, the skip of 60 s is not.
    engine.run_until(T0.after(secs(40)));
    let second = play(&mut engine, turn("2", "s"));
    assert_eq!(skips(&second), ["b/m skip_cache"]);
    engine.run_until(T0.after(secs(140)));
    let third = play(&mut engine, turn("3", "s"));
    assert_eq!(skips(&third), Vec::<String>::new());
}

// spec: R-9
#[test_case(false, Ending::Committed, 1)]
#[test_case(true, Ending::Answered, 2; "a replay-safe request")]
fn what_was_delivered_is_not_replayed(replay_safe: bool, ending: Ending, calls: usize) {
    let mut engine = engine(health(&[]), |step, _| {
        let mut failed = Failed::new(R::Timeout);
        failed.committed = true;
        if step.candidate == 0 { failing(failed) } else { ok() }
    });
    let mut spec = spec("run", &["a/m", "b/m"]);
    spec.replay_safe = replay_safe;
    let done = play(&mut engine, spec);
    assert_eq!((done.ending, engine.world.calls.len()), (ending, calls));
}

// spec: R-10
#[test]
fn one_attempt_alone_is_the_error_itself() {
    let mut engine = engine(health(&[]), |_, _| fail(R::Overloaded));
    let done = play(&mut engine, spec("run", &["a/m"]));
    assert_eq!(done.ending, Ending::Itself);
    assert!(done.soonest.is_some(), "and it still says when asking again makes sense");
}

// spec
#[test]
fn a_last_unrecognized_error_is_raised_as_itself() {
    let play_with = |last| {
        let mut engine =
            engine(health(&[]), |step, _| fail(if step.candidate == 1 { last } else { R::ModelNotFound }));
        play(&mut engine, spec("run", &["a/m", "b/m"]))
    };
    assert_eq!(play_with(R::Unclassified).ending, Ending::Itself);
    assert_eq!(play_with(R::EmptyResponse).ending, Ending::Exhausted);
}

// spec: R-10
#[test]
fn the_soonest_time_is_that_of_the_models_asked_for() {
    let mut first = true;
    let mut engine = engine(health(&["a:1", "b:1"]), |step, now| {
        let mut failed = Failed::new(R::RateLimit);
        failed.retry_at = Some(now.after(secs(if step.model.provider().as_str() == "a" { 120 } else { 90 })));
        if std::mem::take(&mut first) {
            // Another model of b: no concern of the run below.
            failed.retry_at = Some(now.after(secs(40)));
        }
        failing(failed)
    });
    play(&mut engine, spec("other", &["b/other"]));
    let done = play(&mut engine, spec("run", &["a/m"]));
    let soonest = done.soonest.unwrap();
    assert_eq!(soonest.since(T0), secs(120) + Duration::from_millis(100));
}

// spec: R-6
#[test_case(R::Auth, &["a/m cooldown", "a/n provider_out"]; "persistent auth skips the provider")]
#[test_case(R::AuthPermanent, &["a/m cooldown", "a/n provider_out"]; "for good")]
fn persistent_auth_skips_the_provider(reason: R, expected: &[&str]) {
    let mut engine =
        engine(
            health(&["a:1"]),
            |step, _| {
                if step.model.provider().as_str() == "a" { fail(reason) } else { ok() }
            },
        );
    play(&mut engine, spec("first", &["a/m", "b/m"]));
    engine.run_until(T0.after(secs(29)));
    let done = play(&mut engine, spec("second", &["a/m", "a/n", "b/m"]));
    assert_eq!(
        (skips(&done), done.ending),
        (expected.iter().map(ToString::to_string).collect(), Ending::Answered)
    );
}

// spec
#[test]
fn billing_skips_but_the_primary_is_probed_slowly() {
    let mut engine =
        engine(
            health(&["a:1"]),
            |step, _| {
                if step.model.provider().as_str() == "a" { fail(R::Billing) } else { ok() }
            },
        );
    play(&mut engine, spec("first", &["a/m", "b/m"]));
    let mut calls = Vec::new();
    for minute in 1..=60 {
        engine.run_until(T0.after(Duration::from_mins(minute)));
        engine.world.calls.clear();
        play(&mut engine, spec(&format!("r{minute}"), &["a/m", "a/n", "b/m"]));
        if engine.world.calls.len() > 1 {
            calls.push((minute, engine.world.called().join(", ")));
        }
    }
    let probe = |minute| (minute, "a/m 1, b/m default".to_owned());
    assert_eq!(calls, [probe(16), probe(31), probe(46)], "at most every 15 min, and never the sibling");
}

// spec: R-6
#[test]
fn the_primary_is_probed_near_the_end_of_its_window_under_the_throttle() {
    let mut engine = engine(health(&["a:1"]), |step, now| {
        let mut failed = Failed::new(R::RateLimit);
        if step.number == 1 && now == T0 {
            failed.retry_at = Some(now.after(secs(300)));
        }
        if step.model.provider().as_str() == "a" { failing(failed) } else { ok() }
    });
    play(&mut engine, spec("first", &["a/m", "b/m"]));
    let mut probed = Vec::new();
    for second in (10..300).step_by(10) {
        engine.run_until(T0.after(secs(second)));
        engine.world.calls.clear();
        play(&mut engine, spec(&format!("r{second}"), &["a/m", "b/m"]));
        if engine.world.calls.len() > 1 {
            probed.push(second);
        }
    }
    assert_eq!(probed, [180, 210], "within 2 min of the end, at least 30 s apart, twice per window");
}

// spec
#[test]
fn siblings_are_tried_once_per_run_while_the_reason_is_transient() {
    let mut engine =
        engine(
            health(&["a:1"]),
            |step, _| {
                if step.model.provider().as_str() == "a" { fail(R::Timeout) } else { ok() }
            },
        );
    let chain = ["a/m", "a/n", "a/o", "b/m"];
    let first = play(&mut engine, spec("first", &chain));
    assert_eq!(engine.world.called(), ["a/m 1", "a/n 1", "b/m default"], "the run that opened the window");
    assert_eq!(skips(&first), ["a/o probe_spent"]);

    engine.world.calls.clear();
    let other = play(&mut engine, spec("other", &chain));
    assert_eq!(engine.world.called(), ["b/m default"], "nobody else, before the throttle is over");
    assert_eq!(skips(&other), ["a/m cooldown", "a/n cooldown", "a/o cooldown"]);

    // The window is over: m is the one that tries, fails and opens the next window of 60 s.
    engine.run_until(T0.after(secs(31)));
    play(&mut engine, spec("second", &["a/m", "b/m"]));
    engine.run_until(T0.after(secs(65)));
    engine.world.calls.clear();
    let done = play(&mut engine, spec("third", &chain));
    assert_eq!(engine.world.called(), ["a/m 1", "b/m default"]);
    assert_eq!(skips(&done), ["a/n probe_spent", "a/o probe_spent"]);
}

// spec: R-6
#[test]
fn a_well_sibling_on_the_same_key_answers_for_a_crashing_model() {
    let mut engine =
        engine(
            health(&["a:1"]),
            |step, _| {
                if step.model == model("a/m") { fail(R::ServerError) } else { ok() }
            },
        );
    let done = play(&mut engine, spec("run", &["a/m", "a/n"]));
    assert_eq!(engine.world.called(), ["a/m 1", "a/m 1", "a/n 1"]);
    assert_eq!(done.ending, Ending::Answered);
}

// spec: A-23
#[test]
fn a_paused_profile_is_told_as_paused() {
    let health = health(&["a:1"]);
    let subject = failover_runner::health::Subject::Profile("a:1".parse().unwrap());
    let paused =
        failover_auth::pause(&<_>::default(), failover_auth::WindowScope::Profile, "user", T0).unwrap();
    health.learn(&subject, &paused, T0);
    let mut engine = engine(health, |_, _| ok());
    assert_eq!(skips(&play(&mut engine, spec("run", &["a/m", "b/m"]))), ["a/m paused"]);
}

// spec: R-6
#[test]
fn a_probe_that_says_nothing_about_the_limit_leaves_the_slot() {
    let mut engine = engine(health(&["a:1"]), |step, now| {
        let reason = match (step.model.to_string().as_str(), now == T0) {
            ("a/m", true) => R::Timeout,
            ("a/n", _) => R::ModelNotFound,
            _ => return ok(),
        };
        fail(reason)
    });
    play(&mut engine, spec("first", &["a/m", "b/m"]));
    engine.run_until(T0.after(secs(20)));
    let policy = policy(|p| p.probe.throttle_ms = 1_000);
    engine.world.calls.clear();
    let mut second = spec("second", &["c/m", "a/n", "a/o", "b/m"]).with_policy(policy);
    second.chain[0] = Candidate::new(model("a/x"));
    let mut unfit = Capabilities::default();
    unfit.tools = Some(false);
    second.chain[0].capabilities = unfit;
    second.needs.tools = true;
    let done = play(&mut engine, second);
    assert_eq!(engine.world.called(), ["a/n 1", "b/m default"], "{}", engine.timeline());
    assert_eq!(skips(&done), ["a/x tools", "a/o cooldown"], "not spent, but too early for the throttle");
}

// spec: R-8
#[test]
fn the_number_of_attempts_is_bounded_where_somebody_asks_for_it() {
    let mut engine = engine(health(&["a:1", "a:2", "a:3"]), |_, _| fail(R::Auth));
    let done = play(
        &mut engine,
        spec("run", &["a/m", "b/m", "c/m"]).with_policy(policy(|p| p.max_attempts = Some(2))),
    );
    assert_eq!((done.ending, engine.world.calls.len()), (Ending::Stopped(StopReason::Attempts), 2));
}

// spec: R-7
#[test]
fn a_candidate_is_left_when_its_bound_is_reached() {
    let names: Vec<String> = (0..40).map(|n| format!("a:{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let policy = policy(|p| {
        p.run_retries.max = 5;
        p.run_retries.min = 1;
    });
    let mut engine =
        engine(
            health(&names),
            |step, _| {
                if step.model.provider().as_str() == "a" { fail(R::Auth) } else { ok() }
            },
        );
    let done = play(&mut engine, spec("run", &["a/m", "b/m"]).with_policy(policy));
    assert_eq!((attempts(&done), done.ending), (6, Ending::Answered));
}

/// A run with a deadline of 25 s whose first provider hangs.
// spec
#[test]
fn the_deadline_leaves_time_for_the_fallback() {
    let mut engine =
        engine(health(&[]), |step, _| if step.model.provider().as_str() == "a" { hangs() } else { ok() });
    let done =
        play(&mut engine, spec("run", &["a/m", "b/m"]).with_policy(policy(|p| p.deadline_ms = Some(25_000))));
    assert_eq!(done.ending, Ending::Answered);
    let (at, _) = engine.world.calls[1];
    assert_eq!(at.since(T0), Duration::from_millis(12_500), "half of the time each");
    let a = engine.health().usage(&failover_runner::health::Subject::Profile("a:default".parse().unwrap()));
    assert!(a.windows().is_empty(), "the caller's own deadline is nobody's failure");
}

// spec: R-16
#[test]
fn when_the_deadline_stops_the_walk_it_says_who_was_not_tried() {
    let mut engine = engine(health(&[]), |_, _| Answer { after: secs(20), ..fail(R::Overloaded) });
    let policy = policy(|p| {
        p.deadline_ms = Some(25_000);
        p.limits.attempt_ms = Some(25_000);
    });
    let mut plan = Plan::new(spec("run", &["a/m", "b/m", "c/m"]).with_policy(policy), T0).unwrap();
    let mut now = T0;
    let stopped = loop {
        match plan.next_step() {
            Step::OrderProfiles(order) => {
                let slots = engine.health().slots(&order, &<_>::default(), None, now);
                plan.handle(now, Event::Profiles(slots)).unwrap();
            }
            Step::Lease(_) => {
                plan.handle(now, Event::Leased(failover_runner::plan::LeaseAnswer::Granted)).unwrap();
            }
            Step::Attempt(_) => {
                now = now.after(secs(30));
                let end = failover_runner::plan::AttemptEnd::Failed(Failed::new(R::ModelNotFound));
                plan.handle(now, Event::Ended(end)).unwrap();
            }
            Step::Decision(decision) => {
                if let DecisionKind::ChainStopped { reason, remaining } = &decision.kind {
                    break (*reason, remaining.clone());
                }
            }
            step => panic!("{step:?}"),
        }
    };
    assert_eq!(stopped, (StopReason::Deadline, vec![model("b/m"), model("c/m")]));
    engine.run_until(T0);
}

// spec
#[test]
fn an_attempts_own_limit_is_the_providers_failure() {
    let mut engine =
        engine(health(&[]), |step, _| if step.model.provider().as_str() == "a" { hangs() } else { ok() });
    let policy = policy(|p| p.limits.attempt_ms = Some(5_000));
    let done = play(&mut engine, spec("run", &["a/m", "b/m"]).with_policy(policy));
    assert_eq!(done.ending, Ending::Answered);
    assert_eq!(engine.world.called(), ["a/m default", "b/m default"], "silence is never retried in place");
    let a = engine.health().usage(&failover_runner::health::Subject::Profile("a:default".parse().unwrap()));
    assert_eq!(a.windows().len(), 1);
}

// spec: R-15
#[test_case(2_000, &["a/m default", "a/m default"], 2_200; "a short wait is sat out, though b is there")]
#[test_case(3_001, &["a/m default", "b/m default"], 200; "a long one is not")]
fn a_short_rate_limit_is_sat_out_in_place(wait: u64, called: &[&str], took: u128) {
    let mut first = true;
    let mut engine = engine(health(&[]), |_, now| {
        let mut failed = Failed::new(R::RateLimit);
        failed.retry_at = Some(now.after(Duration::from_millis(wait + 100)));
        if std::mem::take(&mut first) { failing(failed) } else { ok() }
    });
    play(&mut engine, spec("run", &["a/m", "b/m"]));
    assert_eq!(engine.world.called(), called);
    assert_eq!(engine.now().since(T0).as_millis(), took);
}

// spec: R-15
#[test]
fn another_profile_is_better_than_any_wait() {
    let mut engine = engine(health(&["a:1", "a:2"]), |step, now| {
        let mut failed = Failed::new(R::RateLimit);
        failed.retry_at = Some(now.after(secs(1)));
        if step.profile.name() == "1" { failing(failed) } else { ok() }
    });
    play(&mut engine, spec("run", &["a/m"]));
    assert_eq!(engine.world.called(), ["a/m 1", "a/m 2"]);
    assert_eq!(engine.now().since(T0).as_millis(), 200);
}

// spec: R-15
#[test_case(R::ServerError, true, 1, 2; "a crash is retried at once")]
#[test_case(R::Timeout, true, 1, 2; "a refused connection too")]
#[test_case(R::Timeout, false, 1, 1; "silence is not")]
#[test_case(R::ServerError, true, 0, 1; "turned off")]
#[test_case(R::ServerError, true, 3, 4; "as often as configured")]
#[test_case(R::Overloaded, true, 1, 1; "other lanes are not")]
fn a_harmless_failure_is_repeated_at_once(reason: R, repeatable: bool, max: u32, calls: usize) {
    let mut failed = Failed::new(reason);
    failed.repeatable = repeatable;
    let mut engine = engine(health(&["a:1"]), |step, _| {
        if step.model.provider().as_str() == "a" { failing(failed.clone()) } else { ok() }
    });
    play(&mut engine, spec("run", &["a/m", "b/m"]).with_policy(policy(|p| p.retry_in_place.max = max)));
    // Only the first failure changes the profile's health: later ones are known already.
    let calls = calls.min(2);
    assert_eq!(engine.world.called().iter().filter(|call| call.starts_with("a/")).count(), calls);
}

// spec: R-15
#[test]
fn jitter_stays_below_its_bound_and_differs_between_runs() {
    let mut waits = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut first = true;
        let mut engine =
            engine(health(&[]), |_, _| if std::mem::take(&mut first) { fail(R::ServerError) } else { ok() });
        let mut spec = spec("run", &["a/m"]);
        spec.seed = seed;
        play(&mut engine, spec);
        waits.insert(engine.now().since(T0).as_millis() - 200);
    }
    assert!(waits.iter().all(|wait| *wait <= 250) && waits.len() > 20, "{waits:?}");
}

// spec: R-18
#[test]
fn every_attempt_carries_the_same_key() {
    let mut engine = engine(health(&["a:1", "a:2"]), |_, _| fail(R::Auth));
    play(&mut engine, spec("run", &["a/m", "b/m"]).with_idempotency_key("key-1"));
    assert_eq!(engine.world.calls.len(), 3);
    assert!(engine.world.calls.iter().all(|(_, step)| &*step.idempotency_key == "key-1"));
}

// spec: S-10
#[test_case("c/m", &["a/m default", "c/m default"], Ending::Answered; "a later candidate is jumped to")]
#[test_case("a/m", &["a/m default", "b/m default"], Ending::Answered; "the current one is an ordinary failure")]
fn a_live_switch_inside_the_chain(to: &str, called: &[&str], ending: Ending) {
    let to: ModelSelector = to.parse().unwrap();
    let mut engine = engine(health(&[]), |step, _| {
        if step.number == 1 {
            let end = failover_runner::plan::AttemptEnd::SwitchTo { to: to.clone(), committed: false };
            Answer { after: secs(1), end }
        } else {
            ok()
        }
    });
    let done = play(&mut engine, spec("run", &["a/m", "b/m", "c/m"]));
    assert_eq!(
        (engine.world.called(), done.ending),
        (called.iter().map(ToString::to_string).collect(), ending)
    );
}

// spec: S-10
#[test]
fn a_live_switch_outside_the_chain_is_returned() {
    let to: ModelSelector = "z/m".parse().unwrap();
    let mut engine = engine(health(&[]), |_, _| Answer {
        after: secs(1),
        end: failover_runner::plan::AttemptEnd::SwitchTo { to: to.clone(), committed: false },
    });
    let done = play(&mut engine, spec("run", &["a/m", "b/m"]));
    assert_eq!((done.ending, engine.world.calls.len()), (Ending::SwitchTo(to.clone()), 1));
}

// spec: S-10, A-8
#[test_case("b/m@b:2", &["a/m 1", "b/m 2"], Ending::Answered; "a later candidate is asked with it")]
#[test_case("a/m@a:2", &["a/m 1"], Ending::SwitchTo("a/m@a:2".parse().unwrap()); "one of the model at hand is returned")]
fn a_live_switch_goes_to_the_credential_that_was_chosen(to: &str, called: &[&str], ending: Ending) {
    let to: ModelSelector = to.parse().unwrap();
    let mut engine = engine(health(&["a:1", "a:2", "b:1", "b:2"]), |step, _| {
        if step.number == 1 {
            let end = failover_runner::plan::AttemptEnd::SwitchTo { to: to.clone(), committed: false };
            Answer { after: secs(1), end }
        } else {
            ok()
        }
    });
    let done = play(&mut engine, spec("run", &["a/m", "b/m"]));
    assert_eq!(
        (engine.world.called(), done.ending),
        (called.iter().map(ToString::to_string).collect(), ending)
    );
}

// spec: H-2, A-8
#[test_case(3; "compared pair by pair")]
#[test_case(20; "compared by hashes")]
fn the_same_model_with_another_credential_is_another_candidate(more: usize) {
    let mut engine = engine(health(&["a:1", "a:2"]), |step, _| {
        if step.profile.as_str() == "a:2" { ok() } else { fail(R::ModelNotFound) }
    });
    let mut chosen = spec("run", &["a/m"]);
    let with = |name: &str| Candidate::new(model("a/m")).with_profile(name.parse().unwrap());
    chosen.chain = vec![with("a:1"), with("a:1"), with("a:2")];
    chosen.chain.extend((0..more).map(|nth| Candidate::new(model(&format!("z/{nth}")))));
    assert_eq!(play(&mut engine, chosen).ending, Ending::Answered);
    assert_eq!(engine.world.called(), ["a/m 1", "a/m 2"]);
}

// spec: A-16
#[test]
fn a_helpers_failure_disables_nobody() {
    let mut engine = engine(health(&["a:1"]), |_, _| fail(R::Billing));
    let mut helper = spec("helper", &["a/m"]);
    helper.purpose = Purpose::Helper;
    play(&mut engine, helper);
    assert!(usable(engine.health(), "a/m"));
}

fn usable(health: &Health, text: &str) -> bool {
    let slots =
        health.slots(&(&Candidate::new(model(text))).into(), &<_>::default(), None, T0.after(secs(1))).slots;
    slots.iter().any(|slot| !matches!(slot.standing, failover_runner::plan::Standing::Out { .. }))
}

// spec: R-11
#[test]
fn decisions_name_the_step_and_its_outcome() {
    let mut plan = Plan::new(spec("run", &["a/m", "b/m"]), T0).unwrap();
    let mut decisions = Vec::new();
    let health = health(&[]);
    loop {
        let event = match plan.next_step() {
            Step::Decision(decision) => {
                decisions.push(decision);
                continue;
            }
            Step::Done(_) => break,
            Step::OrderProfiles(order) => Event::Profiles(health.slots(&order, &<_>::default(), None, T0)),
            Step::Lease(_) => Event::Leased(failover_runner::plan::LeaseAnswer::Granted),
            Step::Attempt(step) => {
                let mut failed = Failed::new(R::ModelNotFound);
                failed.summary = "no such model".to_owned();
                failed.status = Some(404);
                Event::Ended(if step.candidate == 0 {
                    failover_runner::plan::AttemptEnd::Failed(failed)
                } else {
                    failover_runner::plan::AttemptEnd::Answered
                })
            }
            Step::Record(step) => Event::Recorded(health.record(&step, None, T0)),
            step => panic!("{step:?}"),
        };
        plan.handle(T0, event).unwrap();
    }
    let [failed, answered] = &decisions[..] else { panic!("{decisions:?}") };
    assert_eq!(failed.kind.name(), "candidate_failed");
    assert_eq!((failed.candidate.clone(), failed.next.clone()), (model("a/m"), Some(model("b/m"))));
    assert_eq!((failed.reason, failed.detail.as_deref()), (Some(R::ModelNotFound), Some("no such model")));
    assert_eq!((failed.status, failed.position, failed.total), (Some(404), 1, 2));
    assert_eq!(failed.outcome, Some(StepOutcome::NextFallback));
    assert_eq!((answered.kind.name(), answered.position), ("candidate_succeeded", 2));
    assert_eq!((answered.requested.clone(), answered.outcome), (model("a/m"), Some(StepOutcome::Succeeded)));
}

/// Many runs begin at once on a credential that nobody has used yet, and that is dead.
// spec: R-14
#[test_case(R::Auth; "refused")]
#[test_case(R::ServerError; "crashing, with a retry in place")]
fn many_runs_call_a_dead_credential_at_most_three_times(reason: R) {
    let mut engine =
        engine(
            health(&["a:1"]),
            |step, _| {
                if step.model.provider().as_str() == "a" { fail(reason) } else { ok() }
            },
        );
    for n in 0..200 {
        engine.start(spec(&format!("r{n}"), &["a/m", "b/m"])).unwrap();
    }
    engine.run_until(T0.after(secs(29)));
    let dead = |called: Vec<String>| called.iter().filter(|call| call.starts_with("a/")).count();
    let calls = dead(engine.world.called());
    assert!((1..=3).contains(&calls), "{calls} calls");
    assert_eq!(engine.endings().filter(|done| done.ending == Ending::Answered).count(), 200);

    // The window ends: one of many goes first, the others go elsewhere.
    engine.run_until(T0.after(secs(31)));
    engine.world.calls.clear();
    for n in 0..200 {
        engine.start(spec(&format!("s{n}"), &["a/m", "b/m"])).unwrap();
    }
    engine.run_until(Timestamp::MAX);
    assert_eq!(dead(engine.world.called()), 1);
    assert_eq!(engine.endings().filter(|done| done.ending == Ending::Answered).count(), 400);
}

/// Many runs begin at once on a credential that has just answered, again and again, and is dead now. Later bursts, in
/// that window and the next ones, are no better.
// spec: R-14
#[test_case(R::Auth; "refused")]
#[test_case(R::Timeout; "silent, with a sibling that may be tried")]
#[test_case(R::ServerError; "crashing, with a retry in place")]
fn a_burst_on_a_credential_that_was_good_a_moment_ago_costs_three_calls_a_window(reason: R) {
    let dead_from = T0.after(secs(10));
    let mut engine = engine(health(&["a:1"]), |step, now| {
        if step.model.provider().as_str() == "a" && now >= dead_from { fail(reason) } else { ok() }
    });
    let policy = policy(|p| p.retry_in_place.max_wait_ms = 0);
    let chain = ["a/m", "a/n", "b/m"];
    for n in 0..20 {
        play(&mut engine, spec(&format!("good{n}"), &chain));
    }
    assert!(engine.now() < dead_from);
    engine.world.calls.clear();
    for second in 0..300 {
        engine.run_until(dead_from.after(secs(second)));
        for n in 0..if second == 0 { 200 } else { 5 } {
            engine.start(spec(&format!("r{second}-{n}"), &chain).with_policy(policy.clone())).unwrap();
        }
    }
    engine.run_until(dead_from.after(secs(400)));
    let mut calls: Vec<u64> = engine
        .world
        .calls
        .iter()
        .filter(|(_, step)| step.model.provider().as_str() == "a")
        .map(|(at, _)| at.since(dead_from).as_secs())
        .collect();
    calls.sort_unstable();
    // The windows begin at 0, 30 and 90 s (30 s, 1 min, 5 min), a moment after the call that opens them.
    let per_window: Vec<usize> = [0..30, 30..91, 91..400]
        .into_iter()
        .map(|window| calls.iter().filter(|second| window.contains(*second)).count())
        .collect();
    assert!(per_window.iter().all(|count| (1..=3).contains(count)), "{per_window:?}: {calls:?}");
    assert_eq!(engine.endings().filter(|done| done.ending == Ending::Answered).count(), 20 + 200 + 299 * 5);
}

/// As much as was seen to work at a time may go at once, twice over; a burst above that waits for one answer.
// spec: R-14
#[test]
fn a_burst_on_a_credential_that_is_well_waits_for_one_answer_at_most() {
    let mut engine = engine(health(&["a:1"]), |_, _| ok());
    let mut burst = |name: &str, count: usize| {
        let began = engine.now();
        for n in 0..count {
            engine.start(spec(&format!("{name}{n}"), &["a/m", "b/m"])).unwrap();
        }
        engine.run_until(Timestamp::MAX);
        engine.now().since(began).as_millis()
    };
    assert_eq!(burst("first", 1), 100);
    assert_eq!(burst("second", 2), 100, "a few may always go");
    assert_eq!(burst("third", 100), 200, "the others begin when one has answered");
    assert_eq!(burst("fourth", 200), 100, "and from then on so many may go");
    assert!(engine.world.called().iter().all(|call| call.starts_with("a/")));
}

/// A credential that is taken, by a provider that does not have the model, is no stranger once the first call has ended:
/// nobody waits for it to answer.
// spec: R-14
#[test]
fn many_runs_wait_shortly_for_a_refusal_that_blames_nobody() {
    let mut engine = engine(health(&["a:1"]), |step, _| {
        if step.model.provider().as_str() == "a" { fail(R::ModelNotFound) } else { ok() }
    });
    for n in 0..200 {
        engine.start(spec(&format!("r{n}"), &["a/m", "b/m"])).unwrap();
    }
    engine.run_until(Timestamp::MAX);
    let refused = engine.world.called().iter().filter(|call| call.starts_with("a/")).count();
    assert_eq!(refused, 200, "nothing is remembered of it");
    assert_eq!(engine.now().since(T0).as_millis(), 400, "both models' first calls, and all the others'");
}

/// The same on a healthy credential: the wait for a first answer is short, and nobody goes elsewhere.
// spec: R-14
#[test]
fn many_runs_on_a_new_credential_wait_shortly_for_its_first_answer() {
    let mut engine = engine(health(&["a:1"]), |_, _| ok());
    for n in 0..200 {
        engine.start(spec(&format!("r{n}"), &["a/m", "b/m"])).unwrap();
    }
    engine.run_until(Timestamp::MAX);
    assert!(engine.world.called().iter().all(|call| call.starts_with("a/")));
    assert_eq!(engine.now().since(T0).as_millis(), 200, "all others begin when the first has answered");
}

// spec: A-26
#[test]
fn a_run_with_nothing_else_to_try_waits_for_the_one_that_tries() {
    let mut down = true;
    let mut engine =
        engine(health(&["a:1"]), |_, _| if std::mem::take(&mut down) { fail(R::Overloaded) } else { ok() });
    play(&mut engine, spec("first", &["a/m"]));
    engine.run_until(T0.after(secs(31)));
    engine.world.calls.clear();
    for n in 0..20 {
        engine.start(spec(&format!("r{n}"), &["a/m"])).unwrap();
    }
    engine.run_until(Timestamp::MAX);
    assert_eq!(engine.endings().filter(|done| done.ending == Ending::Answered).count(), 20);
    let (first, rest) = engine.world.calls.split_first().unwrap();
    assert!(rest.iter().all(|(at, _)| *at >= first.0.after(Duration::from_millis(100))), "one goes first");
}

// spec: R-2
#[test]
fn a_provider_without_credentials_is_skipped() {
    let health = health(&[]);
    let mut roster = Roster::default();
    let missing: ProfileId = "a:gone".parse().unwrap();
    roster.config_order.insert("a".parse().unwrap(), vec![missing]);
    health.set_roster(roster);
    let mut engine = engine(Arc::clone(&health), |_, _| ok());
    let done = play(&mut engine, spec("run", &["a/m", "b/m"]));
    assert_eq!(skips(&done), ["a/m no_profile"]);
}

// spec: R-6
#[test]
fn a_request_larger_than_the_limit_goes_on_to_the_next_model() {
    let mut failed = Failed::new(R::RateLimit);
    failed.scope = Scope::Request;
    let mut engine =
        engine(
            health(&["a:1", "a:2"]),
            |step, _| {
                if step.candidate == 0 { failing(failed.clone()) } else { ok() }
            },
        );
    play(&mut engine, spec("run", &["a/m", "b/m"]));
    assert_eq!(engine.world.called(), ["a/m 1", "b/m default"]);
}

//! The reducer as two tables that a reviewer can read, and single rules on top.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_auth::{
    AttemptTag, Availability, CooldownOptions, CooldownPolicy, Deadline, Failure, Outcome, Success,
    UsageStats, WindowScope, availability, clear, next_usage, pause, resume, secret_stored, with_reset,
};
use failover_auth::{ClearScope, WindowSource};
use failover_types::{FailoverReason, ModelRef, ProviderId, Scope, Timestamp};
use std::fmt::Write as _;
use std::time::Duration;

const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

fn at(seconds: u64) -> Timestamp {
    T0.after(Duration::from_secs(seconds))
}

fn model(name: &str) -> ModelRef {
    ModelRef::new(ProviderId::new("a").unwrap(), name).unwrap()
}

/// A failure of an attempt at model `name` that begins and fails at `seconds`.
fn failure(reason: FailoverReason, name: &str, seconds: u64) -> Failure {
    Failure::new(&model(name), reason, at(seconds))
}

fn fold(stats: &UsageStats, outcome: impl Into<Outcome>, seconds: u64) -> UsageStats {
    next_usage(stats, &outcome.into(), &CooldownPolicy::default(), at(seconds))
}

fn fresh(outcome: impl Into<Outcome>) -> UsageStats {
    fold(&UsageStats::default(), outcome, 0)
}

fn span(seconds: u64) -> String {
    match seconds {
        s if s > 0 && s % HOUR == 0 => format!("{}h", s / HOUR),
        s if s > 0 && s % MINUTE == 0 => format!("{}m", s / MINUTE),
        s => format!("{s}s"),
    }
}

/// The active windows at `seconds`: `profile rate_limit 30s`, joined by ` + `; `-` for none.
fn show(stats: &UsageStats, seconds: u64) -> String {
    let mut rows: Vec<_> = stats
        .active(at(seconds))
        .map(|window| {
            let scope = match &window.scope {
                WindowScope::Profile => "profile".to_owned(),
                WindowScope::Model(name) => name.to_string(),
            };
            (scope, window.reason, span(window.until.since(T0).as_secs()))
        })
        .collect();
    rows.sort();
    let rows: Vec<_> =
        rows.into_iter().map(|(scope, reason, until)| format!("{scope} {reason} {until}")).collect();
    if rows.is_empty() { "-".to_owned() } else { rows.join(" + ") }
}

/// Every reason: what a first failure opens, by what it blames and whether the model is known.
// spec, C-6b
#[test]
fn every_reason_in_every_scope() {
    let mut table = String::new();
    for reason in FailoverReason::ALL {
        write!(table, "{reason}").unwrap();
        for scope in [Scope::Request, Scope::Model, Scope::Credential, Scope::Provider] {
            for known in [true, false] {
                let base = failure(*reason, "m1", 0);
                let nameless = Failure::without_model(base.provider.clone(), *reason, at(0));
                let failed = if known { base } else { nameless }.scope(scope);
                write!(table, " | {}", show(&fresh(failed), 0).replace(&format!(" {reason}"), "")).unwrap();
            }
        }
        table.push('\n');
    }
    // Columns: request, model, credential, provider; each with the model known, then unknown.
    let expected = "\
rate_limit | - | - | m1 30s | profile 30s | profile 30s | profile 30s | profile 30s | profile 30s
overloaded | - | - | m1 30s | - | profile 30s | profile 30s | profile 30s | profile 30s
server_error | - | - | m1 30s | profile 30s | profile 30s | profile 30s | profile 30s | profile 30s
timeout | - | - | m1 30s | profile 30s | profile 30s | profile 30s | profile 30s | profile 30s
billing | - | - | m1 5h | profile 5h | profile 5h | profile 5h | profile 5h | profile 5h
auth | - | - | m1 30s | profile 30s | profile 30s | profile 30s | profile 30s | profile 30s
auth_permanent | - | - | m1 10m | profile 10m | profile 10m | profile 10m | profile 10m | profile 10m
model_not_found | - | - | - | - | - | - | - | -
format | - | - | - | - | - | - | - | -
context_overflow | - | - | - | - | - | - | - | -
content_refusal | - | - | - | - | - | - | - | -
session_expired | - | - | - | - | - | - | - | -
aborted | - | - | - | - | - | - | - | -
local_coordination | - | - | - | - | - | - | - | -
empty_response | - | - | - | - | - | - | - | -
no_error_details | - | - | - | - | - | - | - | -
unclassified | - | - | - | - | - | - | - | -
";
    assert_eq!(table, expected, "got:\n{table}");
}

/// Every standing window against every kind of event ten seconds later.
// spec
#[test]
fn every_event_on_every_standing_window() {
    use FailoverReason::{Auth, AuthPermanent, Billing, Overloaded, RateLimit, Timeout};
    let hint = |s| Some(Deadline::hint(at(s)));
    let starts: Vec<(&str, UsageStats)> = vec![
        ("nothing", UsageStats::default()),
        ("m1 limited", fresh(failure(RateLimit, "m1", 0))),
        ("m1 limited by hint", fresh(failure(RateLimit, "m1", 0).deadline(hint(HOUR)))),
        ("m1 overloaded", fresh(failure(Overloaded, "m1", 0))),
        ("timeout", fresh(failure(Timeout, "m1", 0))),
        ("blocked", fresh(failure(RateLimit, "m1", 0).deadline(Some(Deadline::exact(at(5 * HOUR), "wham"))))),
        ("billing", fresh(failure(Billing, "m1", 0))),
        ("gone", fresh(failure(AuthPermanent, "m1", 0))),
    ];
    // The first three began before the window was set, the rest after.
    let late = |reason, name| failure(reason, name, 0).scope(reason.default_scope());
    let events: Vec<(&str, Outcome)> = vec![
        ("m1 limited", late(RateLimit, "m1").into()),
        ("m1 limited, hint 2h", late(RateLimit, "m1").deadline(hint(2 * HOUR)).into()),
        ("m1 limited, fresher hint 20s", failure(RateLimit, "m1", 5).deadline(hint(20)).into()),
        ("m2 limited", failure(RateLimit, "m2", 5).into()),
        ("m2 limited, hint 2h", failure(RateLimit, "m2", 5).deadline(hint(2 * HOUR)).into()),
        (
            "reset in 2h",
            failure(RateLimit, "m2", 5).deadline(Some(Deadline::exact(at(2 * HOUR), "x"))).into(),
        ),
        ("m2 overloaded", failure(Overloaded, "m2", 5).into()),
        ("m1 timeout", failure(Timeout, "m1", 5).into()),
        ("m2 timeout", failure(Timeout, "m2", 5).into()),
        ("m1 auth", failure(Auth, "m1", 5).into()),
        ("m1 billing", failure(Billing, "m1", 5).into()),
        ("m1 gone", failure(AuthPermanent, "m1", 5).into()),
        ("m1 answers", Success::new(&model("m1"), at(5)).into()),
        ("m2 answers", Success::new(&model("m2"), at(5)).into()),
        ("old m1 answers", Success::new(&model("m1"), T0.before(Duration::from_secs(1))).into()),
    ];
    let mut table = String::new();
    for (name, start) in &starts {
        writeln!(table, "{name}: {}", show(start, 10)).unwrap();
        for (event, outcome) in &events {
            let next = fold(start, outcome.clone(), 10);
            let same = show(&next, 10) == show(start, 10);
            let after = if same { "=".to_owned() } else { show(&next, 10) };
            writeln!(table, "  {event}: {after}, errors {}", next.error_count()).unwrap();
        }
    }
    assert_eq!(table, include_str!("tables/standing.txt"), "got:\n{table}");
}

// spec
#[test]
fn fifty_failures_in_flight_are_one_step_and_the_next_window_takes_the_next_rung() {
    let mut stats = UsageStats::default();
    let mut now = 0;
    for (rung, wait) in [(1, 30), (2, 60), (3, 300), (4, 300)] {
        for n in 0..50 {
            stats = fold(&stats, failure(FailoverReason::Timeout, "m1", now), now + n % 20);
        }
        assert_eq!(show(&stats, now + 20), format!("profile timeout {}", span(now + wait)));
        assert_eq!(stats.error_count(), rung);
        now += wait;
    }
}

// spec
#[test]
fn a_failure_that_changes_nothing_gives_equal_statistics_back() {
    let stats = fresh(failure(FailoverReason::RateLimit, "m1", 0).deadline(Some(Deadline::hint(at(60)))));
    let mut writes = 0;
    for n in 0..10_000_u64 {
        // Within one second, each with the same `retry-after: 60` that it resolves itself.
        let now = T0.after(Duration::from_micros(n * 99));
        let hint = Deadline::hint(now.after(Duration::from_mins(1)));
        let failed = failure(FailoverReason::RateLimit, "m1", 0).deadline(Some(hint));
        writes += usize::from(next_usage(&stats, &failed.into(), &CooldownPolicy::default(), now) != stats);
    }
    assert_eq!(writes, 0);
}

// spec: A-12
#[test]
fn counters_start_again_after_a_quiet_day_a_success_or_a_clear() {
    let failed = |s| failure(FailoverReason::Timeout, "m1", s);
    let two = fold(&fresh(failed(0)), failed(40), 40);
    assert_eq!(two.error_count(), 2);
    // The second window ends at 100: the quiet time begins there.
    assert_eq!(fold(&two, failed(100 + DAY - 1), 100 + DAY - 1).error_count(), 3);
    let quiet = fold(&two, failed(100 + DAY), 100 + DAY);
    assert_eq!((quiet.error_count(), quiet.failure_counts().get(&FailoverReason::Timeout)), (1, Some(&1)));
    let success = fold(&two, Success::new(&model("m1"), at(50)), 55);
    assert_eq!(
        (success.error_count(), success.failure_counts().len(), show(&success, 55)),
        (0, 0, "-".into())
    );
    assert_eq!(success.last_used(), Some(at(55)));
    let cleared = clear(&two, &ClearScope::All, at(50));
    assert_eq!((cleared.error_count(), show(&cleared, 50)), (0, "-".into()));
}

// spec: A-13
#[test]
fn a_providers_wait_wins_when_it_is_longer_up_to_its_cap() {
    let limited = |until| show(&fresh(failure(FailoverReason::RateLimit, "m1", 0).deadline(Some(until))), 0);
    assert_eq!(limited(Deadline::hint(at(5))), "m1 rate_limit 30s");
    assert_eq!(limited(Deadline::hint(at(HOUR))), "m1 rate_limit 1h");
    assert_eq!(limited(Deadline::hint(at(90 * DAY))), "m1 rate_limit 24h");
    assert_eq!(limited(Deadline::hint(T0)), "m1 rate_limit 30s", "a wait that is over says nothing");
    assert_eq!(limited(Deadline::exact(at(6 * DAY), "wham")), "profile rate_limit 144h");
    assert_eq!(limited(Deadline::exact(at(90 * DAY), "wham")), "profile rate_limit 744h");
    assert_eq!(limited(Deadline::exact(at(7), "wham")), "profile rate_limit 7s", "exact is exact");
    let billing = failure(FailoverReason::Billing, "m1", 0).deadline(Some(Deadline::hint(at(7 * HOUR))));
    assert_eq!(show(&fresh(billing), 0), "profile billing 7h");
}

// spec
#[test]
fn a_longer_deadline_of_the_provider_lengthens_and_raises_the_epoch() {
    let limited =
        |until, s| failure(FailoverReason::RateLimit, "m1", s).deadline(Some(Deadline::hint(at(until))));
    let short = fresh(limited(1, 0));
    let long = fold(&short, limited(120, 0), 3);
    assert_eq!(show(&long, 3), "m1 rate_limit 2m");
    assert_eq!(long.error_count(), 1);
    let epoch = |stats: &UsageStats| stats.windows().first().unwrap().epoch;
    assert!(epoch(&long) > epoch(&short));
    // A fresher word may shorten, but not below the ladder; an older one may not.
    let late = fold(&long, limited(50, 2), 20);
    assert_eq!(late, long);
    let fresher = fold(&long, limited(50, 15), 20);
    assert_eq!(show(&fresher, 20), "m1 rate_limit 50s");
    assert_eq!(show(&fold(&long, limited(21, 15), 20), 20), "m1 rate_limit 50s", "20 s + the first rung");
}

// spec: A-14
#[test]
fn a_rate_limit_stays_with_its_model_until_a_second_one_is_limited() {
    let one = fresh(failure(FailoverReason::RateLimit, "m1", 0));
    assert!(availability(&one, Some("m2"), at(5)).is_usable());
    assert!(!availability(&one, Some("m1"), at(5)).is_usable());
    let two = fold(&one, failure(FailoverReason::RateLimit, "m2", 5), 5);
    assert_eq!(show(&two, 5), "m1 rate_limit 30s + profile rate_limit 30s");
    assert_eq!(two.error_count(), 1, "the same window, and no further rung");
    assert!(!availability(&two, Some("m3"), at(5)).is_usable());
    let nameless = Failure::without_model(ProviderId::new("a").unwrap(), FailoverReason::RateLimit, at(5));
    assert_eq!(show(&fold(&one, nameless, 5), 5), "m1 rate_limit 30s + profile rate_limit 30s");
}

// spec
#[test]
fn billing_doubles_from_five_hours_to_a_day_and_permanent_auth_to_an_hour() {
    let ends = |reason, spans: &[u64]| {
        let (mut stats, mut now) = (UsageStats::default(), 0);
        for wait in spans {
            stats = fold(&stats, failure(reason, "m1", now), now);
            assert_eq!(show(&stats, now), format!("profile {reason} {}", span(now + wait)));
            let Availability::Disabled { until, .. } = availability(&stats, Some("any"), at(now)) else {
                panic!("not disabled");
            };
            now += until.since(at(now)).as_secs();
        }
    };
    let days = [5 * HOUR, 10 * HOUR, 20 * HOUR, 24 * HOUR, 24 * HOUR, 24 * HOUR];
    ends(FailoverReason::Billing, &days);
    ends(FailoverReason::AuthPermanent, &[10 * MINUTE, 20 * MINUTE, 40 * MINUTE, 60 * MINUTE, 60 * MINUTE]);
    let mut options = CooldownOptions::default();
    options.billing_by_provider.insert(ProviderId::new("a").unwrap(), Duration::from_hours(1));
    let policy = CooldownPolicy::new(options).unwrap();
    let failed = failure(FailoverReason::Billing, "m1", 0).into();
    assert_eq!(show(&next_usage(&UsageStats::default(), &failed, &policy, at(0)), 0), "profile billing 1h");
}

// spec: A-16
#[test]
fn probes_helpers_and_the_callers_own_deadline_harm_nobody() {
    for reason in FailoverReason::ALL {
        let failed = || failure(*reason, "m1", 0).deadline(Some(Deadline::hint(at(HOUR))));
        assert_eq!(fresh(failed().tag(AttemptTag::Probe)), UsageStats::default());
        assert_eq!(fresh(failed().tag(AttemptTag::Helper)), UsageStats::default());
        assert_eq!(fresh(failed().by_caller(true)), UsageStats::default());
    }
}

// spec: A-17
#[test]
fn a_late_failure_that_began_before_a_newer_success_opens_nothing() {
    for reason in FailoverReason::ALL {
        let succeeded = fold(&UsageStats::default(), Success::new(&model("m1"), at(5)), 10);
        assert_eq!(fold(&succeeded, failure(*reason, "m1", 9), 20), succeeded, "{reason}");
        let next = fold(&succeeded, failure(*reason, "m1", 10), 20);
        assert_eq!(next == succeeded, fresh(failure(*reason, "m1", 0)) == UsageStats::default(), "{reason}");
    }
}

// spec: A-12
#[test]
fn a_long_wait_is_no_quiet_time() {
    use FailoverReason::{Overloaded, RateLimit};
    let blocked = |until| failure(RateLimit, "m1", 0).deadline(Some(until));
    for until in [Deadline::hint(at(DAY)), Deadline::exact(at(6 * DAY), "wham")] {
        let (stats, end) = (fresh(blocked(until.clone())), until.until.since(T0).as_secs());
        let again = |s| fold(&stats, failure(Overloaded, "m1", s), s).error_count();
        assert_eq!((again(end), again(end + DAY - 1), again(end + DAY)), (2, 2, 1));
    }
}

// spec: A-17
#[test]
fn a_success_by_a_clock_ahead_makes_no_failure_late() {
    let ahead = 4 * MINUTE;
    let answered = fold(&UsageStats::default(), Success::new(&model("m1"), at(ahead)), ahead);
    for now in [0, 1, ahead - 1] {
        let failed = fold(&answered, failure(FailoverReason::Timeout, "m1", now), now);
        assert_eq!(show(&failed, now), format!("profile timeout {}", span(now + 30)));
    }
    let late = failure(FailoverReason::Timeout, "m1", ahead - 1);
    assert_eq!(fold(&answered, late, ahead), answered, "our clock has reached it: the failure is late");
}

// spec: A-17
#[test]
fn a_success_disproves_only_what_was_set_before_it_began() {
    let limited = fresh(failure(FailoverReason::RateLimit, "m1", 0));
    let old = fold(&limited, Success::new(&model("m1"), T0.before(Duration::from_secs(1))), 5);
    assert_eq!((show(&old, 5), old.error_count()), ("m1 rate_limit 30s".into(), 1));
    let other = fold(&limited, Success::new(&model("m2"), at(1)), 5);
    assert_eq!(show(&other, 5), "m1 rate_limit 30s", "another model answered");
    let new = fold(&limited, Success::new(&model("m1"), at(0)), 5);
    assert_eq!(show(&new, 5), "-");
}

// spec: A-23
#[test]
fn a_new_secret_clears_auth_and_billing_and_nothing_else() {
    let mut stats = fresh(failure(FailoverReason::Overloaded, "m1", 0));
    stats = fold(&stats, failure(FailoverReason::Billing, "m2", 1), 1);
    stats = fold(&stats, failure(FailoverReason::AuthPermanent, "m2", 2), 2);
    let healed = secret_stored(&stats, at(5));
    assert_eq!(show(&healed, 5), "m1 overloaded 30s");
    assert_eq!(healed.failure_counts().keys().copied().collect::<Vec<_>>(), [FailoverReason::Overloaded]);
}

// spec: A-23
#[test]
fn a_pause_is_lifted_by_hand_only() {
    let stats = fresh(failure(FailoverReason::Timeout, "m1", 0));
    let paused = pause(&stats, WindowScope::Profile, "ada", at(1)).unwrap();
    let then = |stats: &UsageStats, name| availability(stats, Some(name), at(400 * DAY));
    let answered = fold(&clear(&paused, &ClearScope::All, at(2)), Success::new(&model("m1"), at(3)), 4);
    assert_eq!(then(&secret_stored(&answered, at(5)), "m1"), Availability::Paused);
    assert_eq!(then(&resume(&answered, WindowScope::Profile, "bob", at(6)), "m1"), Availability::Usable);
    let one = pause(&stats, WindowScope::Model("m1".into()), "ada", at(1)).unwrap();
    assert_eq!((then(&one, "m1"), then(&one, "m2")), (Availability::Paused, Availability::Usable));
    let mut full = UsageStats::default();
    for n in 0..32 {
        full = pause(&full, WindowScope::Model(format!("m{n}").into()), "ada", at(n)).unwrap();
    }
    assert!(pause(&full, WindowScope::Profile, "ada", at(99)).is_err());
    assert!(pause(&full, WindowScope::Model("m3".into()), "ada", at(99)).is_ok(), "paused already");
}

// spec: A-23
#[test]
fn clear_lifts_what_it_is_asked_to() {
    let mut stats = fresh(failure(FailoverReason::Overloaded, "m1", 0));
    stats = fold(&stats, failure(FailoverReason::Overloaded, "m2", 1), 1);
    let one = clear(&stats, &ClearScope::Model("m1".into()), at(5));
    assert_eq!((show(&one, 5), one.error_count()), ("m2 overloaded 61s".into(), 2));
    let both = clear(&one, &ClearScope::Model("m2".into()), at(5));
    assert_eq!((show(&both, 5), both.error_count()), ("-".into(), 0));
    let mixed = fold(&stats, failure(FailoverReason::Billing, "m3", 2), 2);
    let paid = clear(&mixed, &ClearScope::Reason(FailoverReason::Billing), at(5));
    assert_eq!(show(&paid, 5), "m1 overloaded 30s + m2 overloaded 61s");
}

// spec: A-24
#[test]
fn a_provider_that_balances_itself_never_cools_as_a_whole_for_a_rate_limit() {
    let openrouter = |name: &str| -> ModelRef { format!("openrouter/{name}").parse().unwrap() };
    let mut stats = UsageStats::default();
    for name in ["m1", "m2"] {
        for scope in [Scope::Model, Scope::Credential, Scope::Provider] {
            let failed = Failure::new(&openrouter(name), FailoverReason::RateLimit, at(0)).scope(scope);
            stats = fold(&stats, failed, 0);
        }
        let exact = Failure::new(&openrouter(name), FailoverReason::RateLimit, at(0))
            .deadline(Some(Deadline::exact(at(HOUR), "x")));
        stats = fold(&stats, exact, 0);
    }
    let nameless =
        Failure::without_model(openrouter("m").provider().clone(), FailoverReason::RateLimit, at(0));
    stats = fold(&stats, nameless, 0);
    assert!(availability(&stats, Some("m3"), at(1)).is_usable(), "{}", show(&stats, 1));
    assert!(!availability(&stats, Some("m2"), at(1)).is_usable());
    let billing = fold(&stats, Failure::new(&openrouter("m1"), FailoverReason::Billing, at(0)), 0);
    assert!(!availability(&billing, Some("m3"), at(1)).is_usable());
}

// spec: A-13
#[test]
fn an_exact_reset_that_was_asked_for_moves_the_block_both_ways() {
    let policy = CooldownPolicy::default();
    let set = |stats: &UsageStats, until, now| {
        with_reset(stats, &WindowScope::Profile, at(until), "probe", &policy, at(now))
    };
    let blocked = set(&UsageStats::default(), 5 * HOUR, 0);
    let Availability::Blocked { until, .. } = availability(&blocked, None, at(0)) else {
        panic!("not blocked")
    };
    assert_eq!(until, at(5 * HOUR));
    assert!(
        matches!(&blocked.windows().first().unwrap().source, WindowSource::Reset(name) if &**name == "probe")
    );
    assert_eq!(show(&set(&blocked, 2 * HOUR, 10), 10), "profile rate_limit 2h");
    assert_eq!(show(&set(&blocked, 0, 10), 10), "-");
    assert_eq!(set(&blocked, 5 * HOUR, 10), blocked);
}

// spec: A-11
#[test]
fn a_clock_that_was_wrong_blocks_nobody_for_long() {
    let year = 365 * DAY;
    let future = fold(&UsageStats::default(), Success::new(&model("m1"), at(year)), year);
    let future = fold(&future, failure(FailoverReason::Billing, "m1", year), year);
    assert!(availability(&future, Some("m1"), at(0)).is_usable(), "written by a clock a year ahead");
    let now = fold(&future, failure(FailoverReason::Timeout, "m1", 0), 0);
    assert_eq!(show(&now, 0), "profile timeout 1m", "failures count again");
    let answered = fold(&now, Success::new(&model("m1"), at(1)), 2);
    assert_eq!(
        (answered.last_used(), answered.error_count(), show(&answered, 2)),
        (Some(at(2)), 0, "-".into())
    );
}

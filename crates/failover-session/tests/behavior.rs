//! What a session does, requirement by requirement, with the race that each one guards against.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod common;

use common::{at, claim, entry, model, restarted, run};
use failover_session::{
    ProbePolicy, ResetKind, Rollback, SessionEntry, StoredSelection, acknowledge_switch, apply_fallback,
    clear_stale_origin, compaction, expired, next_probe, note_turn, pending_switch, pin_auto, recover, reset,
    roll_back, select_default, select_user, settle, settle_origin, start_probe, status, take_notices,
};
use failover_types::{FailoverReason, ProfileId};
use serde_json::value::RawValue;
use std::time::Duration;
use test_case::test_case;

const POLICY: fn() -> ProbePolicy = ProbePolicy::default;

fn auto(to: &str) -> StoredSelection {
    StoredSelection::Auto { model: model(to), origin: Some(model("a/m1")) }
}

fn user(to: &str) -> StoredSelection {
    StoredSelection::User { model: model(to) }
}

fn chosen(entry: &SessionEntry, text: &str) -> SessionEntry {
    select_user(entry, &text.parse().unwrap(), at(0))
}

/// A session that a run moved onto `b/m2` at `at(10)`.
fn on_fallback() -> SessionEntry {
    let fresh = SessionEntry::new();
    let claim = claim(&run(&fresh, "first"), "b/m2", at(10));
    settle(&apply_fallback(&fresh, &claim).unwrap(), &claim).unwrap()
}

fn texts(entry: &SessionEntry) -> Vec<String> {
    entry.notices().iter().map(ToString::to_string).collect()
}

const MOVED: &str = "↪️ Model Fallback: b/m2 (selected a/m1; overloaded)";
const CLEARED: &str = "↪️ Model Fallback cleared: a/m1 (was b/m2)";

// spec: S-2, S-4
#[test]
fn an_override_is_written_before_the_attempt_and_goes_without_a_trace() {
    let before = entry(
        r#"{"z":1.0,"authProfileOverride":"a:x","authProfileOverrideSource":"auto","authProfileOverrideCompactionCount":1,"y":[1e2]}"#,
    );
    let claim = claim(&run(&before, "r"), "b/m2", at(0));
    let during = apply_fallback(&before, &claim).unwrap();
    assert_eq!(during.selection(), auto("b/m2"));
    assert_eq!(during.pin().unwrap().profile.as_str(), "b:work");
    assert_eq!(during.settled_selection(), StoredSelection::Nothing);
    let Rollback::Restored(after) = roll_back(&during, &claim) else { panic!("nothing restored") };
    assert_eq!(after.to_json(), before.to_json(), "byte for byte, order included");
    assert_eq!(roll_back(&after, &claim), Rollback::Nothing, "twice is once");
}

// spec: S-4
#[test]
fn the_previous_value_comes_back_and_not_the_default() {
    let before = on_fallback();
    let claim = claim(&run(&before, "r"), "c/m3", at(20));
    let during = apply_fallback(&before, &claim).unwrap();
    assert_eq!(during.selection(), auto("c/m3"));
    let after = roll_back(&during, &claim).into_entry().unwrap();
    assert_eq!((after.selection(), after.pin().unwrap().profile.as_str()), (auto("b/m2"), "b:work"));
}

// spec: S-4, S-5
#[test]
fn two_runs_that_fail_one_after_the_other_leave_neither_override() {
    let fresh = SessionEntry::new();
    let first = claim(&run(&fresh, "one"), "b/m2", at(0));
    let second = claim(&run(&fresh, "two"), "c/m3", at(1));
    let both = apply_fallback(&apply_fallback(&fresh, &first).unwrap(), &second).unwrap();
    assert_eq!(both.selection(), auto("c/m3"));
    let Rollback::Kept(one_left) = roll_back(&both, &first) else { panic!("the newer claim stands") };
    assert_eq!(one_left.selection(), auto("c/m3"));
    // The second run saw b/m2 when it wrote, but b/m2 has failed since.
    let none = roll_back(&one_left, &second).into_entry().unwrap();
    assert_eq!(none, fresh);
}

// spec: S-4, S-5
#[test]
fn a_fallback_that_another_run_proved_meanwhile_stays() {
    let fresh = SessionEntry::new();
    let (one, two) = (claim(&run(&fresh, "one"), "b/m2", at(0)), claim(&run(&fresh, "two"), "b/m2", at(1)));
    let both = apply_fallback(&apply_fallback(&fresh, &one).unwrap(), &two).unwrap();
    let proven = settle(&both, &one).unwrap();
    let after = roll_back(&proven, &two).into_entry().unwrap();
    assert_eq!((after.selection(), after.claims()), (auto("b/m2"), &[][..]));
}

// spec: S-5
#[test]
fn an_older_claim_does_not_come_back_over_a_newer_success() {
    let fresh = SessionEntry::new();
    let (one, two) = (claim(&run(&fresh, "one"), "b/m2", at(0)), claim(&run(&fresh, "two"), "c/m3", at(1)));
    let both = apply_fallback(&apply_fallback(&fresh, &one).unwrap(), &two).unwrap();
    let proven = settle(&both, &two).unwrap();
    assert_eq!(proven.selection(), auto("c/m3"));
    assert_eq!(settle(&proven, &one), None, "its override had been overwritten before");
    assert_eq!(roll_back(&proven, &one), Rollback::Nothing);
}

// spec: S-3
#[test_case(r#"{"providerOverride":"u","modelOverride":"x","modelOverrideSource":"user"}"#; "a person's")]
#[test_case(r#"{"providerOverride":"u","modelOverride":"x"}"#; "without a source")]
#[test_case(r#"{"modelOverride":"u/x"}"#; "without a source and in one field")]
#[test_case(r#"{"providerOverride":"u","modelOverride":"x","modelOverrideSource":"something new"}"#; "of an unknown source")]
#[test_case(r#"{"providerOverride":"u"}"#; "half of one")]
#[test_case(r#"{"providerOverride":"u","modelOverride":7}"#; "unreadable")]
fn nothing_is_written_over_a_choice(json: &str) {
    let stands = entry(json);
    assert!(stands.selection().is_a_choice());
    assert_eq!(apply_fallback(&stands, &claim(&run(&stands, "r"), "b/m2", at(0))), None);
    assert_eq!(reset(&stands, ResetKind::Reset).selection(), stands.selection());
}

// spec: S-3
#[test]
fn a_persons_pin_is_not_written_over_and_survives_a_rollback() {
    let before = entry(r#"{"authProfileOverride":"a:mine","authProfileOverrideSource":"user"}"#);
    let ticket = run(&before, "r");
    let claim = claim(&ticket, "b/m2", at(0));
    let during = apply_fallback(&before, &claim).unwrap();
    assert_eq!(during.pin().unwrap().profile.as_str(), "a:mine");
    assert!(during.is_pinned_by_a_person());
    assert_eq!(roll_back(&during, &claim).into_entry().unwrap(), before);
    assert_eq!(pin_auto(&before, &ticket, &ProfileId::new("a:other").unwrap(), 0), None);
}

// spec: S-3, S-5
#[test]
fn a_run_that_began_before_a_reset_or_a_choice_writes_nothing_after_it() {
    let fresh = SessionEntry::new();
    let ticket = run(&fresh, "old");
    let late = claim(&ticket, "b/m2", at(5));
    let after_reset = reset(&fresh, ResetKind::Reset);
    let back_on_default = select_default(&chosen(&fresh, "u/x"), &model("a/m1"), at(4));
    for newer in [after_reset, back_on_default] {
        assert_eq!(apply_fallback(&newer, &late), None);
        assert_eq!(settle(&newer, &late), None);
        assert_eq!(roll_back(&newer, &late), Rollback::Nothing);
        assert_eq!(pin_auto(&newer, &ticket, &ProfileId::new("a:x").unwrap(), 0), None);
        assert_eq!(
            note_turn(&newer, &ticket, &model("a/m1"), &model("b/m2"), FailoverReason::Timeout, at(6)),
            None
        );
    }
}

// spec: S-4, S-5
#[test]
fn a_choice_of_the_very_same_model_is_not_mistaken_for_the_override() {
    let fresh = SessionEntry::new();
    let claim = claim(&run(&fresh, "r"), "b/m2", at(0));
    let during = apply_fallback(&fresh, &claim).unwrap();
    // Once by this crate, once by a tool that knows only the fields.
    let ours = chosen(&during, "b/m2");
    let theirs =
        during.to_json().replace(r#""modelOverrideSource":"auto""#, r#""modelOverrideSource":"user""#);
    for chosen in [ours, entry(&theirs)] {
        let after = roll_back(&chosen, &claim).into_entry().unwrap_or(chosen);
        assert_eq!(after.selection(), user("b/m2"));
        assert!(after.claims().is_empty());
    }
}

// spec: S-4
#[test]
fn a_pin_that_compaction_dropped_does_not_come_back() {
    let before = entry(
        r#"{"authProfileOverride":"a:x","authProfileOverrideSource":"auto","authProfileOverrideCompactionCount":1}"#,
    );
    let claim = claim(&run(&before, "r"), "b/m2", at(0));
    let during = apply_fallback(&before, &claim).unwrap();
    let compacted = compaction(&during, 3).unwrap();
    assert_eq!((compacted.selection(), compacted.pin()), (auto("b/m2"), None));
    let after = roll_back(&compacted, &claim).into_entry().unwrap();
    assert_eq!((after.selection(), after.pin()), (StoredSelection::Nothing, None));
    assert_eq!(compaction(&before, 1), None, "a pin of this count holds");
}

// spec: S-4
#[test]
fn the_groups_are_restored_each_on_its_own() {
    let fresh = SessionEntry::new();
    let claim = claim(&run(&fresh, "r"), "b/m2", at(0));
    let during = apply_fallback(&fresh, &claim).unwrap();
    // A tool that knows only the fields pins another profile: the pin is a person's now, the model is still the run's.
    let theirs = during.to_json().replace(
        r#""authProfileOverride":"b:work","authProfileOverrideSource":"auto""#,
        r#""authProfileOverride":"b:mine","authProfileOverrideSource":"user""#,
    );
    let after = roll_back(&entry(&theirs), &claim).into_entry().unwrap();
    assert_eq!(after.selection(), StoredSelection::Nothing);
    assert_eq!(after.pin().unwrap().profile.as_str(), "b:mine");
    let proven = settle(&entry(&theirs), &claim).unwrap();
    assert_eq!((proven.selection(), proven.pin().unwrap().profile.as_str()), (auto("b/m2"), "b:mine"));
    let back = settle_origin(&proven, &run(&proven, "p"), &model("a/m1")).unwrap();
    assert_eq!((back.selection(), back.is_pinned_by_a_person()), (StoredSelection::Nothing, true));
}

// spec: S-3
#[test_case(r#"{"authProfileOverride":"a:x","authProfileOverrideCompactionCount":3}"#, false; "with a count: rotation's")]
#[test_case(r#"{"authProfileOverride":"a:x"}"#, true; "without: a person's")]
#[test_case(r#"{"authProfileOverride":"a:x","authProfileOverrideSource":"new"}"#, true; "of an unknown source: a person's")]
#[test_case(r#"{"authProfileOverride":7}"#, true; "unreadable: a person's")]
fn an_old_pin_has_one_stated_meaning(json: &str, stands: bool) {
    let old = entry(json);
    let cleared = reset(&old, ResetKind::Reset);
    assert_eq!(cleared.field("authProfileOverride").is_some(), stands);
    let claimed = apply_fallback(&old, &claim(&run(&old, "r"), "b/m2", at(0))).unwrap();
    let kept = claimed.field("authProfileOverride").map(RawValue::get);
    assert_eq!(kept == old.field("authProfileOverride").map(RawValue::get), stands);
}

// spec: S-6
#[test]
fn the_claim_of_a_dead_run_is_rolled_back_when_its_lease_is_over() {
    let before = entry(r#"{"title":"t"}"#);
    let claim = claim(&run(&before, "crashed"), "b/m2", at(0));
    let crashed = restarted(&apply_fallback(&before, &claim).unwrap());
    assert_eq!(recover(&crashed, expired(at(599))), None, "it may still be at work");
    assert_eq!(recover(&crashed, expired(at(600))), Some(before.clone()));
    assert_eq!(recover(&crashed, |marker| marker.run.as_str() == "crashed"), Some(before.clone()));
    assert_eq!(recover(&before, |_| true), None);
    // The run was not dead, only late: its answer moves nothing any more.
    assert_eq!(settle(&before, &claim), None);
}

// spec: S-6
#[test]
fn recovery_leaves_the_living_and_the_newer_alone() {
    let fresh = SessionEntry::new();
    let (dead, alive) =
        (claim(&run(&fresh, "dead"), "b/m2", at(0)), claim(&run(&fresh, "alive"), "c/m3", at(100)));
    let both = apply_fallback(&apply_fallback(&fresh, &dead).unwrap(), &alive).unwrap();
    let recovered = recover(&both, expired(at(650))).unwrap();
    assert_eq!((recovered.selection(), recovered.claims().len()), (auto("c/m3"), 1));
    assert_eq!(roll_back(&recovered, &alive).into_entry().unwrap(), fresh);
    let choice = chosen(&both, "u/x");
    assert_eq!(recover(&choice, |_| true), None);
}

// spec: S-7
#[test]
fn the_origin_is_due_when_its_window_ends_at_the_latest_every_five_minutes() {
    let session = on_fallback();
    assert_eq!(next_probe(&session, None, &POLICY(), at(10)), Some(at(310)));
    assert_eq!(
        next_probe(&session, Some(at(70)), &POLICY(), at(10)),
        Some(at(70)),
        "its window ends earlier"
    );
    assert_eq!(
        next_probe(&session, Some(at(9_999)), &POLICY(), at(10)),
        Some(at(310)),
        "its window ends much later"
    );
    assert_eq!(next_probe(&session, Some(at(12)), &POLICY(), at(10)), Some(at(40)), "the throttle of 30 s");
    assert_eq!(
        next_probe(&session, Some(at(5)), &POLICY(), at(10)),
        Some(at(310)),
        "that window ended before the failure"
    );
    assert_eq!(
        next_probe(&SessionEntry::new(), Some(at(5)), &POLICY(), at(10)),
        None,
        "nothing to go back to"
    );
    assert_eq!(next_probe(&chosen(&session, "u/x"), None, &POLICY(), at(10)), None);
}

// spec: S-7
#[test]
fn what_became_of_the_origin_while_the_fallbacks_were_asked_is_news() {
    let fresh = SessionEntry::new();
    // The first fallback hung from 10 to 100, and the second took until 200.
    let claim = claim(&run(&fresh, "slow"), "b/m2", at(100)).with_left(at(10));
    let session = settle(&apply_fallback(&fresh, &claim).unwrap(), &claim).unwrap();
    assert_eq!(next_probe(&session, Some(at(41)), &POLICY(), at(10)), Some(at(41)));
    assert_eq!(next_probe(&session, None, &POLICY(), at(10)), Some(at(310)));
}

// spec: S-7
#[test]
fn one_run_probes_and_a_failing_origin_is_not_probed_every_turn() {
    let session = on_fallback();
    assert_eq!(start_probe(&session, None, &POLICY(), at(309)), None);
    let probing = restarted(&start_probe(&session, None, &POLICY(), at(310)).unwrap());
    assert_eq!(probing.selection(), auto("b/m2"), "others go on with the fallback");
    assert_eq!(start_probe(&probing, None, &POLICY(), at(311)), None, "a second run at the same time");
    assert_eq!(start_probe(&probing, None, &POLICY(), at(609)), None, "the next turns");
    assert_eq!(
        next_probe(&probing, Some(at(370)), &POLICY(), at(311)),
        Some(at(370)),
        "unless its window ends"
    );
    assert!(start_probe(&probing, None, &POLICY(), at(610)).is_some());
}

// spec: S-7
#[test]
fn a_clock_that_was_set_back_keeps_no_session_on_its_fallback() {
    let (day, policy) = (86_400, POLICY());
    let fresh = SessionEntry::new();
    let fell = claim(&run(&fresh, "ahead"), "b/m2", at(day));
    let fell = settle(&apply_fallback(&fresh, &fell).unwrap(), &fell).unwrap();
    let probed = start_probe(&fell, None, &policy, at(day + 400)).unwrap();
    for ahead in [fell, probed] {
        let back = start_probe(&ahead, None, &policy, at(100)).unwrap();
        assert_eq!(start_probe(&back, None, &policy, at(101)), None, "and then as ever");
        assert_eq!(start_probe(&back, None, &policy, at(399)), None);
        assert!(start_probe(&back, None, &policy, at(400)).is_some());
    }
    // Two runs at once, of which the loser of the write read its clock first: still one probe.
    let won = start_probe(&on_fallback(), None, &policy, at(311)).unwrap();
    assert_eq!(start_probe(&won, None, &policy, at(310)), None);
}

// spec: S-7
#[test]
fn a_session_from_an_older_version_is_due_at_once() {
    let old = entry(
        r#"{"providerOverride":"b","modelOverride":"m2","modelOverrideSource":"auto","modelOverrideFallbackOriginProvider":"a","modelOverrideFallbackOriginModel":"m1"}"#,
    );
    let ticket = run(&old, "r");
    let probing = start_probe(&old, None, &POLICY(), at(1)).unwrap();
    assert_eq!(start_probe(&probing, None, &POLICY(), at(2)), None);
    let back = settle_origin(&probing, &ticket, &model("a/m1")).unwrap();
    assert_eq!((back.selection(), texts(&back)), (StoredSelection::Nothing, vec![CLEARED.to_owned()]));
}

// spec: S-7, S-11
#[test]
fn an_answer_of_the_origin_clears_only_the_override_that_its_run_knew() {
    let fresh = SessionEntry::new();
    let early = run(&fresh, "early");
    let session = on_fallback();
    assert_eq!(
        settle_origin(&session, &early, &model("a/m1")),
        None,
        "asked before the fallback, answered after it"
    );
    let probe = run(&session, "probe");
    let back = settle_origin(&session, &probe, &model("a/m1")).unwrap();
    assert_eq!((back.selection(), back.pin()), (StoredSelection::Nothing, None));
    assert_eq!(settle_origin(&back, &probe, &model("a/m1")), None, "a second probe that succeeded as well");
    let again = claim(&run(&back, "again"), "b/m2", at(400));
    let fell_again = settle(&apply_fallback(&back, &again).unwrap(), &again).unwrap();
    assert_eq!(settle_origin(&fell_again, &probe, &model("a/m1")), None, "a late probe of the time before");
}

// spec: S-7, S-5
#[test]
fn another_runs_claim_survives_the_return_of_the_origin() {
    let session = on_fallback();
    let (probe, other) = (run(&session, "probe"), claim(&run(&session, "other"), "c/m3", at(20)));
    let claimed = apply_fallback(&session, &other).unwrap();
    let back = settle_origin(&claimed, &probe, &model("a/m1")).unwrap();
    assert_eq!((back.selection(), back.settled_selection()), (auto("c/m3"), StoredSelection::Nothing));
    assert_eq!(roll_back(&back, &other).into_entry().unwrap().selection(), StoredSelection::Nothing);
}

// spec: S-8
#[test]
fn a_reset_clears_what_the_system_wrote_and_keeps_what_a_person_chose() {
    for kind in [ResetKind::Reset, ResetKind::New] {
        let session = on_fallback();
        let claimed = apply_fallback(&session, &claim(&run(&session, "r"), "c/m3", at(20))).unwrap();
        let cleared = reset(&claimed, kind);
        assert_eq!((cleared.selection(), cleared.pin()), (StoredSelection::Nothing, None));
        assert!(cleared.claims().is_empty() && cleared.notices().is_empty());
        let old_choice = reset(&chosen(&session, "u/x"), kind);
        assert_eq!(
            status(&old_choice, None, &POLICY(), at(1_000)).pending_switch,
            None,
            "whoever begins anew begins with it"
        );
        assert_eq!(status(&cleared, None, &POLICY(), at(1_000)).answering, None);
    }
    let choice = chosen(&SessionEntry::new(), "u/x@u:mine");
    let kept = reset(&choice, ResetKind::Reset);
    assert_eq!((kept.selection(), kept.is_pinned_by_a_person()), (user("u/x"), true));
    let new = reset(&choice, ResetKind::New);
    assert_eq!((new.selection(), new.pin()), (user("u/x"), None), "a person's pin ends with the session");
}

// spec: S-8
#[test]
fn a_heartbeat_clears_an_override_whose_origin_is_not_the_default_any_more() {
    let session = on_fallback();
    assert_eq!(clear_stale_origin(&session, &model("a/m1")), None);
    let in_flight = claim(&run(&session, "in-flight"), "c/m3", at(20));
    let claimed = apply_fallback(&session, &in_flight).unwrap();
    let cleared = clear_stale_origin(&claimed, &model("n/new")).unwrap();
    assert_eq!((cleared.selection(), cleared.claims().len()), (StoredSelection::Nothing, 0));
    assert_eq!(settle(&cleared, &in_flight), None, "the run in flight does not bring it back");
    let choice = chosen(&session, "u/x");
    assert_eq!(clear_stale_origin(&choice, &model("n/new")), None);
}

// spec: S-9
#[test]
fn only_people_leave_a_pending_switch() {
    let fresh = SessionEntry::new();
    let ticket = run(&fresh, "r");
    let claim = claim(&ticket, "b/m2", at(0));
    let claimed = apply_fallback(&fresh, &claim).unwrap();
    let settled = settle(&claimed, &claim).unwrap();
    let probing = start_probe(&settled, None, &POLICY(), at(999)).unwrap();
    let systems = [
        recover(&claimed, |_| true).unwrap(),
        roll_back(&claimed, &claim).into_entry().unwrap(),
        settle_origin(&probing, &run(&settled, "p"), &model("a/m1")).unwrap(),
        clear_stale_origin(&settled, &model("n/new")).unwrap(),
        reset(&settled, ResetKind::Reset),
        compaction(&settled, 9).unwrap(),
    ];
    for system in systems.iter().chain([&claimed, &settled, &probing]) {
        assert_eq!(pending_switch(system, &ticket), None);
    }
    let choice = chosen(&settled, "c/m3@c:mine");
    let pending = pending_switch(&choice, &ticket).unwrap();
    assert_eq!(
        (pending.model.to_string(), pending.profile.as_ref().unwrap().as_str()),
        ("c/m3".to_owned(), "c:mine")
    );
    assert_eq!(
        pending_switch(&choice, &run(&choice, "later")),
        None,
        "a run that began with it has nothing to switch"
    );
    let default = select_default(&choice, &model("a/m1"), at(3));
    assert_eq!(pending_switch(&default, &ticket).unwrap().model, model("a/m1"));
    // Two choices in a row: following the first does not hide the second.
    assert_eq!(acknowledge_switch(&default, &ticket, &model("c/m3")), None);
    let done = acknowledge_switch(&default, &ticket, &model("a/m1")).unwrap();
    assert_eq!(pending_switch(&done, &ticket), None);
    // A run that began with it has followed it, whoever answered.
    let done = acknowledge_switch(&default, &run(&default, "later"), &model("b/m2")).unwrap();
    assert_eq!(status(&done, None, &POLICY(), at(1_000)).pending_switch, None);
    assert_eq!(acknowledge_switch(&done, &run(&done, "last"), &model("a/m1")), None);
}

// spec: S-9
#[test]
fn stale_runtime_fields_say_nothing() {
    let stale = entry(
        r#"{"modelProvider":"a","model":"m1","providerOverride":"b","modelOverride":"m2","modelOverrideSource":"user"}"#,
    );
    assert_eq!(stale.selection(), user("b/m2"));
    assert_eq!(entry(r#"{"modelProvider":"a","model":"m1"}"#).selection(), StoredSelection::Nothing);
}

// spec: S-11
#[test]
fn one_notice_each_way_and_none_in_between() {
    let moved = on_fallback();
    assert_eq!(texts(&moved), [MOVED]);
    let (told, taken) = take_notices(&moved).unwrap();
    assert_eq!(taken[0].to_string(), MOVED);
    assert_eq!(take_notices(&told), None, "whoever comes second has nothing to say");
    // From one fallback to another, and after a restart: silence.
    let further = claim(&run(&told, "further"), "c/m3", at(20));
    let further = settle(&apply_fallback(&told, &further).unwrap(), &further).unwrap();
    let further = restarted(&further);
    assert_eq!(take_notices(&further), None);
    let back = settle_origin(&further, &run(&further, "probe"), &model("a/m1")).unwrap();
    assert_eq!(texts(&restarted(&back)), ["↪️ Model Fallback cleared: a/m1 (was c/m3)"]);
}

// spec: S-11
#[test]
fn two_runs_that_prove_a_fallback_announce_it_once() {
    let fresh = SessionEntry::new();
    let (one, two) = (claim(&run(&fresh, "one"), "b/m2", at(0)), claim(&run(&fresh, "two"), "c/m3", at(1)));
    let both = apply_fallback(&apply_fallback(&fresh, &one).unwrap(), &two).unwrap();
    let proven = settle(&settle(&both, &one).unwrap(), &two).unwrap();
    assert_eq!(texts(&proven), [MOVED]);
}

// spec: S-11
#[test]
fn a_notice_waits_for_somebody_to_take_it() {
    let moved = restarted(&on_fallback());
    assert_eq!(texts(&moved), [MOVED], "the process died between the move and the reply");
    let back = settle_origin(&moved, &run(&moved, "probe"), &model("a/m1")).unwrap();
    assert_eq!(texts(&back), [MOVED, CLEARED]);
    assert!(chosen(&back, "u/x").notices().is_empty(), "a person who chose is not told old news");
}

// spec: S-11
#[test]
fn a_writer_that_knows_only_the_fields_ends_an_episode_too() {
    let moved = take_notices(&on_fallback()).unwrap().0;
    let book = moved.field("failover").unwrap().get();
    let theirs = entry(&format!(r#"{{"failover":{book},"providerOverride":"u","modelOverride":"x"}}"#));
    let shown = status(&theirs, None, &POLICY(), at(1_000));
    assert_eq!((shown.reason, shown.since, shown.answering), (None, None, None));
    let cleared = entry(&format!(r#"{{"failover":{book}}}"#));
    let claim = claim(&run(&cleared, "r"), "b/m2", at(20));
    let again = settle(&apply_fallback(&cleared, &claim).unwrap(), &claim).unwrap();
    assert_eq!(texts(&again), [MOVED], "a second move, a second notice");
}

// spec: S-12
#[test]
fn turn_local_writes_notices_and_no_selection() {
    let (a, b, reason) = (model("a/m1"), model("b/m2"), FailoverReason::Overloaded);
    let fresh = entry(r#"{"title":"t"}"#);
    let first = note_turn(&fresh, &run(&fresh, "1"), &a, &b, reason, at(1)).unwrap();
    assert_eq!((first.selection(), first.pin()), (StoredSelection::Nothing, None));
    assert_eq!(texts(&first), [MOVED]);
    let (told, _) = take_notices(&first).unwrap();
    let seen = run(&told, "2");
    assert_eq!(note_turn(&told, &seen, &a, &b, reason, at(2)), None, "still on it");
    assert_eq!(
        note_turn(&told, &run(&fresh, "0"), &a, &a, reason, at(2)),
        None,
        "a turn from before the fallback"
    );
    let back = note_turn(&restarted(&told), &seen, &a, &a, reason, at(3)).unwrap();
    assert_eq!(texts(&back), [CLEARED]);
    assert_eq!(note_turn(&back, &seen, &a, &a, reason, at(4)), None);
    let shown = status(&told, None, &POLICY(), at(1_000));
    assert_eq!((shown.selected, shown.answering, shown.next_probe), (Some(a), Some(b), None));
}

// spec: S-12, S-11
#[test]
fn what_another_policy_left_behind_goes_when_the_selected_model_answers() {
    let (a, b, reason) = (model("a/m1"), model("b/m2"), FailoverReason::Overloaded);
    // Sticky before, turn-local now.
    let told = take_notices(&on_fallback()).unwrap().0;
    assert_eq!(note_turn(&told, &run(&told, "1"), &a, &b, reason, at(20)), None);
    let back = note_turn(&told, &run(&told, "2"), &a, &a, reason, at(21)).unwrap();
    assert_eq!((back.selection(), texts(&back)), (StoredSelection::Nothing, vec![CLEARED.to_owned()]));
    // A sticky turn that could not write its claim.
    let fresh = SessionEntry::new();
    let noted = note_turn(&fresh, &run(&fresh, "1"), &a, &b, reason, at(1)).unwrap();
    let back = settle_origin(&noted, &run(&noted, "2"), &a).unwrap();
    assert_eq!(texts(&back), [MOVED, CLEARED]);
    assert_eq!(settle_origin(&back, &run(&back, "3"), &a), None);
    // A choice without the bookkeeping of this crate.
    let theirs = entry(r#"{"providerOverride":"u","modelOverride":"x"}"#);
    assert_eq!(note_turn(&theirs, &run(&theirs, "1"), &model("u/x"), &b, reason, at(1)), None);
}

// spec: S-13
#[test]
fn status_says_what_answers_and_why() {
    let session = on_fallback();
    let shown = status(&session, Some(at(100)), &POLICY(), at(1_000));
    assert_eq!((shown.selected, shown.answering), (Some(model("a/m1")), Some(model("b/m2"))));
    assert_eq!((shown.source, shown.origin), ("auto", Some(model("a/m1"))));
    assert_eq!((shown.reason, shown.since), (Some(FailoverReason::Overloaded), Some(at(10))));
    assert_eq!((shown.next_probe, shown.unproven), (Some(at(100)), false));
    assert_eq!(shown.pin.unwrap().profile.as_str(), "b:work");
    let further = apply_fallback(&session, &claim(&run(&session, "r"), "c/m3", at(20))).unwrap();
    let shown = status(&further, None, &POLICY(), at(1_000));
    assert_eq!((shown.answering, shown.unproven, shown.since), (Some(model("c/m3")), true, Some(at(20))));
    let choice = chosen(&session, "u/x@u:mine");
    let shown = status(&choice, None, &POLICY(), at(1_000));
    assert_eq!((shown.selected, shown.source, shown.answering), (Some(model("u/x")), "user", None));
    assert_eq!((shown.reason, shown.next_probe), (None, None));
    assert_eq!(shown.pending_switch.unwrap().model, model("u/x"));
    let nothing = status(&SessionEntry::new(), None, &POLICY(), at(1_000));
    assert_eq!((nothing.selected, nothing.source, nothing.answering), (None, "configured", None));
}

// spec: S-2
#[test]
fn an_attempt_that_changes_nothing_writes_nothing() {
    let session = on_fallback();
    let ticket = run(&session, "r");
    assert_eq!(apply_fallback(&session, &claim(&ticket, "b/m2", at(20))), None, "it is settled already");
    assert_eq!(apply_fallback(&session, &claim(&ticket, "a/m1", at(20))), None, "the origin is no fallback");
    let moving = apply_fallback(&session, &claim(&ticket, "c/m3", at(20))).unwrap();
    let back = apply_fallback(&moving, &claim(&ticket, "b/m2", at(21))).unwrap();
    assert_eq!((back.selection(), back.claims().len()), (auto("b/m2"), 0), "the run gave its other claim up");
}

// spec: S-5
#[test]
fn claims_are_bounded() {
    let mut session = SessionEntry::new();
    for n in 0..64 {
        session = apply_fallback(&session, &claim(&run(&session, &format!("r{n}")), "b/m2", at(n))).unwrap();
    }
    assert_eq!(apply_fallback(&session, &claim(&run(&session, "one-more"), "b/m2", at(99))), None);
    assert!(session.to_json().len() < 32 * 1024);
    let policy = POLICY();
    assert_eq!((policy.every, policy.throttle), (Duration::from_mins(5), Duration::from_secs(30)));
}

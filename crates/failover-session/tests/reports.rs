//! Failures that were reported of other software, each as a test.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod common;

use common::{at, claim, entry, model, restarted, run};
use failover_session::{
    ProbePolicy, SessionEntry, StoredSelection, apply_fallback, expired, note_turn, pending_switch, recover,
    roll_back, select_user, settle, settle_origin, start_probe, status, take_notices,
};
use failover_types::FailoverReason;
use serde_json::value::RawValue;

/// Somebody else counts in the entry.
fn bumped(entry: &SessionEntry, count: u32) -> SessionEntry {
    entry.with_field("count", Some(RawValue::from_string(count.to_string()).unwrap())).unwrap()
}

// spec: S-9, S-5
#[test]
fn a_reconciliation_never_throws_a_fallback_back() {
    // Report: the loop picks a fallback, the stored primary is seen, and every candidate is thrown back for ever.
    // Every subset of the moments at which an unrelated writer may come in between.
    for moments in 0_u32..1 << 5 {
        let mut session = entry(r#"{"model":"m1","modelProvider":"a"}"#);
        let ticket = run(&session, "r");
        let claim = claim(&ticket, "b/m2", at(0));
        for moment in 0..5 {
            if moments & (1 << moment) != 0 {
                session = bumped(&session, moment);
            }
            session = match moment {
                1 => apply_fallback(&session, &claim).unwrap(),
                2 => settle(&session, &claim).unwrap(),
                3 => take_notices(&session).unwrap().0,
                _ => session,
            };
            assert_eq!(pending_switch(&session, &ticket), None, "a change of the system is no switch");
            let expected = if moment == 0 { None } else { Some(model("b/m2")) };
            assert_eq!(session.selection().model(), expected.as_ref(), "it never returns to a");
        }
    }
}

// spec: S-7, S-11
#[test]
fn a_sticky_fallback_is_left_again() {
    // Report: a temporary fallback is stored as the session's model and stays for days, restarts included.
    let fresh = SessionEntry::new();
    let first = claim(&run(&fresh, "1"), "b/m2", at(0));
    let mut session = settle(&apply_fallback(&fresh, &first).unwrap(), &first).unwrap();
    let mut notices = Vec::new();
    let mut probes = Vec::new();
    for minute in 1..=20 {
        session = restarted(&session);
        let now = at(minute * 60);
        if let Some((next, taken)) = take_notices(&session) {
            session = next;
            notices.extend(taken.iter().map(ToString::to_string));
        }
        let ticket = run(&session, &format!("turn-{minute}"));
        if let Some(probing) = start_probe(&session, None, &ProbePolicy::default(), now) {
            probes.push(minute);
            // The primary is healthy again from the eleventh minute on.
            session =
                if minute > 10 { settle_origin(&probing, &ticket, &model("a/m1")).unwrap() } else { probing };
        }
    }
    assert_eq!(probes, [5, 10, 15], "every five minutes, and never again once it is back");
    assert_eq!(
        notices,
        ["↪️ Model Fallback: b/m2 (selected a/m1; overloaded)", "↪️ Model Fallback cleared: a/m1 (was b/m2)"]
    );
    assert_eq!(session.selection(), StoredSelection::Nothing);
}

// spec: S-12
#[test]
fn a_turn_local_fallback_serves_one_turn() {
    let (a, b) = (model("a/m1"), model("b/m2"));
    let fresh = SessionEntry::new();
    let served = note_turn(&fresh, &run(&fresh, "1"), &a, &b, FailoverReason::ServerError, at(0)).unwrap();
    let second = restarted(&served);
    assert_eq!(second.selection(), StoredSelection::Nothing, "the second turn starts at a");
    let back = note_turn(&second, &run(&second, "2"), &a, &a, FailoverReason::ServerError, at(1)).unwrap();
    assert_eq!(take_notices(&back).unwrap().1.len(), 2);
}

// spec: S-6, S-3
#[test]
fn an_abort_leaves_no_pin_and_an_old_record_is_a_persons() {
    // Report: restarts, drains and aborts leave an "auto" pin, or a reload makes an auto pin look like a person's.
    let before = entry(r#"{"title":"t"}"#);
    let claim = claim(&run(&before, "aborted"), "b/m2", at(0));
    let during = apply_fallback(&before, &claim).unwrap();
    assert_eq!(roll_back(&during, &claim).into_entry().unwrap(), before, "aborted by the user");
    let reloaded = restarted(&during);
    assert_eq!(reloaded.selection(), during.selection(), "origin and source are one record");
    assert!(!reloaded.selection().is_a_choice());
    assert_eq!(recover(&reloaded, expired(at(600))).unwrap(), before, "killed and restarted");

    let old = entry(r#"{"providerOverride":"u","modelOverride":"x"}"#);
    assert_eq!(apply_fallback(&old, &claim), None);
    let shown = status(&old, None, &ProbePolicy::default(), at(1_000));
    assert_eq!((shown.selected, shown.source), (Some(model("u/x")), "legacy (treated as user)"));
}

// spec: S-4, S-5
#[test]
fn a_stale_entry_never_overwrites_a_newer_choice() {
    // Report: the runner writes b, the person picks c, b fails, and the rollback brings the stale entry back.
    let before = entry(r#"{"title":"old","count":1}"#);
    let claim = claim(&run(&before, "r"), "b/m2", at(0));
    let claimed = apply_fallback(&before, &claim).unwrap();
    let chosen = select_user(&claimed, &"c/m3".parse().unwrap(), at(1));
    let meanwhile = bumped(&chosen, 7);
    let after = roll_back(&meanwhile, &claim).into_entry().unwrap_or(meanwhile);
    assert_eq!(after.selection(), StoredSelection::User { model: model("c/m3") });
    assert_eq!(after.field("count").unwrap().get(), "7");
    assert_eq!(after.field("title").unwrap().get(), "\"old\"");
}

// spec: S-2, S-4
#[test]
fn what_is_announced_is_what_is_sent() {
    // Report: the switch is announced, and the retry still sends the old model or the old credential.
    let fresh = entry(
        r#"{"authProfileOverride":"a:x","authProfileOverrideSource":"auto","authProfileOverrideCompactionCount":0}"#,
    );
    let claim = claim(&run(&fresh, "r"), "b/gpt-y", at(0));
    let during = apply_fallback(&fresh, &claim).unwrap();
    let told = settle(&during, &claim).unwrap();
    for seen in [&during, &told] {
        assert_eq!(seen.selection().model(), Some(&claim.model));
        assert_eq!(seen.pin().map(|pin| pin.profile), claim.profile);
    }
    assert_eq!(told.notices()[0].fallback, claim.model);
    assert_eq!(status(&told, None, &ProbePolicy::default(), at(1_000)).answering, Some(claim.model));
}

//! Fields of the host are none of this crate's business: order, spelling and bytes stay.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod common;

use common::{at, claim, entry, model, restarted, run};
use failover_session::{
    BOOK_FIELD, EntryError, ResetKind, SessionEntry, apply_fallback, compaction, is_owned, reset, roll_back,
    select_user, settle, settle_origin, start_probe, take_notices,
};
use proptest::prelude::*;
use serde_json::value::RawValue;

/// A JSON value as somebody may have spelled it.
fn spelled() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?",
        "\"([a-zé😀]|\\\\u00e9|\\\\\\\\|\\\\\"|\\\\n){0,8}\"",
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[ {}]", items.join(" ,"))),
            proptest::collection::vec(inner, 0..4).prop_map(|items| format!(
                "{{{}}}",
                items.iter().map(|it| format!("\"k\" : {it}")).collect::<Vec<_>>().join(",")
            )),
        ]
    })
}

/// Host fields in any order, with owned ones among them.
fn host_entry() -> impl Strategy<Value = String> {
    let field = ("[a-z]{1,6}", spelled()).prop_map(|(name, value)| format!("\"{name}\": {value}"));
    let pin = Just(r#""authProfileOverride": "a:x", "authProfileOverrideSource":"auto", "authProfileOverrideCompactionCount": 0"#.to_owned());
    (proptest::collection::vec(field, 0..8), proptest::option::of(pin), any::<prop::sample::Index>())
        .prop_map(|(mut fields, pin, at)| {
            if let Some(pin) = pin {
                fields.insert(at.index(fields.len() + 1), pin);
            }
            format!("{{ {} }}", fields.join(" , "))
        })
}

fn hosts(entry: &SessionEntry) -> Vec<(String, String)> {
    let fields = entry.names().filter(|name| !is_owned(name));
    fields.map(|name| (name.to_owned(), entry.field(name).unwrap().get().to_owned())).collect()
}

proptest! {
    // spec: S-1
    #[test]
    fn nothing_of_the_host_changes(json in host_entry()) {
        let before = entry(&json);
        for (name, raw) in hosts(&before) {
            prop_assert!(json.contains(&raw), "{} is not spelled as it was", name);
        }
        let ticket = run(&before, "r");
        let claim = claim(&ticket, "b/m2", at(0));
        let claimed = restarted(&apply_fallback(&before, &claim).unwrap());
        let settled = restarted(&settle(&claimed, &claim).unwrap());
        let probing = start_probe(&settled, None, &failover_session::ProbePolicy::default(), at(999)).unwrap();
        let back = settle_origin(&probing, &run(&probing, "p"), &model("a/m1")).unwrap();
        let chosen = select_user(&settled, &"u/x".parse().unwrap(), at(2));
        let mut all = vec![
            roll_back(&claimed, &claim).into_entry().unwrap(),
            take_notices(&back).unwrap().0,
            reset(&settled, ResetKind::New),
            chosen,
        ];
        all.extend(compaction(&settled, 7));
        for after in all.iter().chain([&claimed, &settled, &probing, &back]) {
            prop_assert_eq!(hosts(&restarted(after)), hosts(&before));
        }
    }

    // spec: S-1, S-4
    #[test]
    fn a_claim_that_is_rolled_back_leaves_no_byte(json in host_entry()) {
        let before = entry(&json);
        let claim = claim(&run(&before, "r"), "b/m2", at(0));
        let after = roll_back(&apply_fallback(&before, &claim).unwrap(), &claim).into_entry().unwrap();
        prop_assert_eq!(after.to_json(), before.to_json());
    }

    // spec: S-1
    #[test]
    fn reading_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64), json in spelled()) {
        let _ = SessionEntry::parse(&bytes);
        let _ = SessionEntry::parse(json.as_bytes());
        for name in ["providerOverride", "modelOverride", "modelOverrideSource", "authProfileOverride", "failover"] {
            let text = format!("{{\"modelOverride\":\"x/y\",\"{name}\":{json}}}");
            if let Ok(entry) = SessionEntry::parse(text.as_bytes()) {
                let claim = claim(&run(&entry, "r"), "b/m2", at(0));
                let claimed = apply_fallback(&entry, &claim);
                prop_assert!(claimed.is_none() || !entry.selection().is_a_choice());
            }
        }
    }
}

// spec: S-1
#[test]
fn repeated_and_escaped_names_are_kept() {
    let odd = entry(r#"{"a":1,"b":2,"a":1.0,"caf\u00e9":"\u00e9","n":12345678901234567890123,"z":-0.0e-7}"#);
    let json = r#"{"a":1,"b":2,"a":1.0,"café":"\u00e9","n":12345678901234567890123,"z":-0.0e-7}"#;
    assert_eq!(odd.to_json(), json);
    assert_eq!(odd.field("a").unwrap().get(), "1.0", "the last one counts");
    let chosen = select_user(&odd, &"u/x".parse().unwrap(), at(0));
    assert!(chosen.to_json().starts_with(json.trim_end_matches('}')));
}

// spec: S-1
#[test]
fn a_host_writes_its_own_fields_and_not_ours() {
    let raw = |json: &str| Some(RawValue::from_string(json.to_owned()).unwrap());
    let before = entry(r#"{"a":1,"b":2}"#);
    let after = before.with_field("a", raw("1.50")).unwrap().with_field("c", raw("[ ]")).unwrap();
    assert_eq!(after.to_json(), r#"{"a":1.50,"b":2,"c":[ ]}"#);
    assert_eq!(after.with_field("a", None).unwrap().to_json(), r#"{"b":2,"c":[ ]}"#);
    for ours in ["modelOverride", "authProfileOverride", BOOK_FIELD] {
        assert!(matches!(before.with_field(ours, raw("1")), Err(EntryError::Owned { .. })));
    }
}

// spec: K-4
#[test]
fn newer_damaged_and_oversized_entries_are_refused() {
    let parse = |json: &str| SessionEntry::parse(json.as_bytes());
    assert!(matches!(
        parse(r#"{"failover":{"v":2,"new":[]}}"#),
        Err(EntryError::Newer { found: 2, known: 1 })
    ));
    assert!(matches!(parse(r#"{"failover":{"v":1,"epoch":"x"}}"#), Err(EntryError::Damaged(_))));
    assert!(matches!(parse(r#"{"failover":{"v":1,"unknown":1}}"#), Err(EntryError::Damaged(_))));
    assert!(matches!(parse(r#"{"failover":7}"#), Err(EntryError::Damaged(_))));
    assert!(matches!(parse("[]"), Err(EntryError::Json(_))));
    assert!(matches!(parse(&"x".repeat(4 * 1024 * 1024 + 1)), Err(EntryError::TooLarge { .. })));
    assert!(parse(r#"{"failover":null}"#).is_ok(), "null is absent");
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let _ = parse(&deep);
}

// spec: K-4
#[test]
fn debug_shows_owned_fields_only() {
    let shown = format!("{:?}", entry(r#"{"title":"a private matter","modelOverride":"u/x"}"#));
    assert!(shown.contains("u/x") && !shown.contains("private"));
}

//! The rules under test, and broken ones that the checks must find.

use failover_session::{
    Claim, SessionEntry, Ticket, apply_fallback, is_owned, recover, roll_back, settle, settle_origin, ticket,
};
use failover_types::{ModelRef, RunId};
use serde_json::{Map, Value, json};

/// What runs do, as plain functions that can be exchanged one by one.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) apply: fn(&SessionEntry, &Claim) -> Option<SessionEntry>,
    /// The last argument is the entry before the claim.
    pub(crate) roll_back: fn(&SessionEntry, &Claim, &SessionEntry) -> Option<SessionEntry>,
    pub(crate) settle: fn(&SessionEntry, &Claim) -> Option<SessionEntry>,
    pub(crate) settle_origin: fn(&SessionEntry, &Ticket, &ModelRef) -> Option<SessionEntry>,
    pub(crate) recover: fn(&SessionEntry, &[RunId]) -> Option<SessionEntry>,
    /// Whether the rollback looks at the entry before the claim: it is part of the state then.
    pub(crate) needs_seen: bool,
}

impl Rules {
    /// The rules of the crate.
    pub(crate) const fn real() -> Self {
        Self {
            apply: apply_fallback,
            roll_back: |entry, claim, _| roll_back(entry, claim).into_entry(),
            settle,
            settle_origin,
            recover: |entry, dead| recover(entry, |marker| dead.contains(&marker.run)),
            needs_seen: false,
        }
    }

    /// A rollback clears the override, whatever stood there before.
    pub(crate) const fn rollback_to_default() -> Self {
        let mut rules = Self::real();
        rules.roll_back = |entry, claim, _| {
            let next = roll_back(entry, claim).into_entry()?;
            let changed = next.selection() != entry.selection();
            Some(if changed { edit(&next, remove_groups) } else { next })
        };
        rules
    }

    /// A rollback puts back what its run had seen, without looking at what stands now.
    pub(crate) const fn rollback_without_comparing() -> Self {
        let mut rules = Self::real();
        rules.roll_back = |entry, _, seen| Some(put_back(entry, seen));
        rules.needs_seen = true;
        rules
    }

    /// Each run compares and puts back the value it had seen itself, and knows nothing of other runs' claims.
    pub(crate) const fn rollback_to_a_failed_value() -> Self {
        let mut rules = Self::real();
        rules.roll_back = |entry, claim, seen| {
            let next = roll_back(entry, claim).into_entry()?;
            let was_mine = entry.selection() == apply_fallback(seen, claim)?.selection();
            Some(if was_mine { put_back(&next, seen) } else { next })
        };
        rules.needs_seen = true;
        rules
    }

    /// A rollback forgets that the provider belongs to the model.
    pub(crate) const fn rollback_of_half_a_group() -> Self {
        let mut rules = Self::real();
        rules.roll_back = |entry, claim, _| {
            let provider = field(entry, "providerOverride");
            let next = roll_back(entry, claim).into_entry()?;
            Some(edit(&next, |fields| {
                fields.insert("providerOverride".to_owned(), provider);
            }))
        };
        rules
    }

    /// A claim is written over whatever stands.
    pub(crate) const fn claim_over_a_choice() -> Self {
        let mut rules = Self::real();
        rules.apply = |entry, claim| {
            let cleared =
                if entry.selection().is_a_choice() { edit(entry, remove_groups) } else { entry.clone() };
            apply_fallback(&cleared, claim)
        };
        rules
    }

    /// A run takes a fresh ticket for each write.
    pub(crate) const fn claim_without_a_fence() -> Self {
        let mut rules = Self::real();
        rules.apply = |entry, claim| {
            let mut claim = claim.clone();
            claim.ticket = ticket(entry, claim.ticket.run.clone());
            apply_fallback(entry, &claim)
        };
        rules
    }

    /// Every success on a fallback is announced, though the session has been told of it already.
    pub(crate) const fn every_success_is_announced() -> Self {
        let mut rules = Self::real();
        rules.settle = |entry, claim| {
            let next = settle(entry, claim)?;
            let told = next.notices().len() > entry.notices().len();
            Some(if told { next } else { edit(&next, |fields| announce(fields, claim)) })
        };
        rules
    }

    /// The primary's answer clears whatever override stands, known to the run or not.
    pub(crate) const fn origin_clears_blindly() -> Self {
        let mut rules = Self::real();
        rules.settle_origin = |entry, old, answered| {
            let cleared = settle_origin(entry, &ticket(entry, old.run.clone()), answered);
            Some(edit(&cleared.unwrap_or_else(|| entry.clone()), remove_groups))
        };
        rules
    }

    /// Nobody looks after dead runs.
    pub(crate) const fn no_recovery() -> Self {
        let mut rules = Self::real();
        rules.recover = |_, _| None;
        rules
    }

    /// A rollback writes the whole entry that its run had seen.
    pub(crate) const fn rollback_of_the_whole_entry() -> Self {
        let mut rules = Self::real();
        rules.roll_back = |_, _, seen| Some(seen.clone());
        rules.needs_seen = true;
        rules
    }
}

fn fields_of(entry: &SessionEntry) -> Vec<(String, String)> {
    entry.names().map(|name| (name.to_owned(), entry.field(name).unwrap().get().to_owned())).collect()
}

fn field(entry: &SessionEntry, name: &str) -> Value {
    entry.field(name).map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
}

/// Edits owned fields behind the crate's back; fields of the host keep their bytes.
fn edit(entry: &SessionEntry, change: impl FnOnce(&mut Map<String, Value>)) -> SessionEntry {
    let mut owned: Map<String, Value> = entry
        .names()
        .filter(|name| is_owned(name))
        .map(|name| (name.to_owned(), field(entry, name)))
        .collect();
    change(&mut owned);
    owned.retain(|_, value| !value.is_null());
    let hosts = fields_of(entry).into_iter().filter(|(name, _)| !is_owned(name));
    let all = hosts.chain(owned.into_iter().map(|(name, value)| (name, value.to_string())));
    let text: Vec<String> = all.map(|(name, raw)| format!("{}:{raw}", json!(name))).collect();
    SessionEntry::parse(format!("{{{}}}", text.join(",")).as_bytes()).unwrap()
}

fn announce(fields: &mut Map<String, Value>, claim: &Claim) {
    let Some(Value::Object(book)) = fields.get_mut("failover") else { return };
    let serial = book.get("serial").and_then(Value::as_u64).unwrap_or(0) + 1;
    book.insert("serial".to_owned(), json!(serial));
    let kind = json!({"kind": "fallback", "reason": claim.reason});
    let notice = json!({"serial": serial, "primary": claim.origin, "fallback": claim.model, "kind": kind});
    let notices = book.entry("notices").or_insert_with(|| json!([]));
    notices.as_array_mut().unwrap().push(notice);
}

fn remove_groups(fields: &mut Map<String, Value>) {
    fields.retain(|name, _| name == "failover");
}

/// The groups of `seen` in the place of those of `entry`.
fn put_back(entry: &SessionEntry, seen: &SessionEntry) -> SessionEntry {
    edit(entry, |fields| {
        remove_groups(fields);
        for name in seen.names().filter(|name| is_owned(name) && *name != "failover") {
            fields.insert(name.to_owned(), field(seen, name));
        }
    })
}

/// What an older version writes for a person's choice: the model, no source, no bookkeeping.
pub(crate) fn chosen_by_an_old_tool(entry: &SessionEntry, model: &ModelRef) -> SessionEntry {
    edit(entry, |fields| {
        fields.retain(|name, _| !name.starts_with("modelOverride") && name != "providerOverride");
        fields.insert("providerOverride".to_owned(), json!(model.provider()));
        fields.insert("modelOverride".to_owned(), json!(model.model()));
    })
}

//! The flat form in which OpenClaw keeps usage: for import, export and display.

use crate::usage::{UsageStats, Window, WindowClass, WindowScope, WindowSource};
use failover_types::{FailoverReason, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Usage in flat fields. It holds one cooldown only: of several, the widest is shown, then the one that ends last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct FlatUsage {
    /// When it last answered.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub last_used: Option<Timestamp>,
    /// End of the cooldown.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub cooldown_until: Option<Timestamp>,
    /// Why it cools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_reason: Option<String>,
    /// The only model that cools, if it is not the whole profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_model: Option<String>,
    /// End of the disablement.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub disabled_until: Option<Timestamp>,
    /// Why it is disabled: `billing` or `auth_permanent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// The exact time until which it is blocked.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub blocked_until: Option<Timestamp>,
    /// Why it is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<String>,
    /// What told the reset time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_source: Option<String>,
    /// The only model that is blocked, if it is not the whole profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_model: Option<String>,
    /// Consecutive errors.
    pub error_count: u32,
    /// Failures by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_counts: BTreeMap<String, u32>,
    /// When it last failed.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub last_failure_at: Option<Timestamp>,
}

/// Times written by JavaScript may have a fraction or an exponent. What is no time is left out.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    let rounded = || number.as_f64().and_then(|float| format!("{float:.0}").parse::<u64>().ok());
    Ok(number.as_u64().or_else(rounded).map(Timestamp::from_millis))
}

/// Usage that was read from flat fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The usage.
    pub usage: UsageStats,
    /// Reasons that nothing here knows. Windows of such reasons came over as `unclassified`; their counts did not.
    pub unknown_reasons: Vec<String>,
}

impl FlatUsage {
    /// Reads the flat fields. Windows that ended before `now` are dropped.
    pub fn import(&self, now: Timestamp) -> Imported {
        let mut unknown_reasons = Vec::new();
        let mut usage = UsageStats {
            last_used: self.last_used,
            error_count: self.error_count,
            last_failure_at: self.last_failure_at,
            ..UsageStats::default()
        };
        for (text, count) in &self.failure_counts {
            match known(text) {
                Some(reason) => {
                    Arc::make_mut(&mut usage.failure_counts).insert(reason, *count);
                }
                None => unknown_reasons.push(text.clone()),
            }
        }
        let most_counted =
            usage.failure_counts.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| *reason);
        let scope = |model: &Option<String>| match model {
            Some(name) => WindowScope::Model(name.as_str().into()),
            None => WindowScope::Profile,
        };
        let reset = WindowSource::Reset(self.blocked_source.as_deref().unwrap_or("import").into());
        let rows = [
            (
                self.cooldown_until,
                &self.cooldown_reason,
                most_counted.filter(|reason| is_cooling(*reason)).unwrap_or(FailoverReason::Unclassified),
                scope(&self.cooldown_model),
                WindowSource::Import,
            ),
            (
                self.disabled_until,
                &self.disabled_reason,
                FailoverReason::Billing,
                WindowScope::Profile,
                WindowSource::Import,
            ),
            (
                self.blocked_until,
                &self.blocked_reason,
                FailoverReason::RateLimit,
                scope(&self.blocked_model),
                reset,
            ),
        ];
        for (until, text, default, scope, source) in rows {
            let Some(until) = until.filter(|until| *until > now) else { continue };
            let reason = match text.as_deref().map(|text| (text, known(text))) {
                Some((_, Some(reason))) => reason,
                Some((text, None)) => {
                    unknown_reasons.push(text.to_owned());
                    default
                }
                None => default,
            };
            let set_at = self.last_failure_at.unwrap_or(now).min(now);
            usage.windows.push(Window { scope, reason, until, source, epoch: 0, set_at });
        }
        unknown_reasons.sort_unstable();
        unknown_reasons.dedup();
        Imported { usage, unknown_reasons }
    }

    /// Shows usage in flat fields, as it stands at `now`.
    pub fn export(usage: &UsageStats, now: Timestamp) -> Self {
        let mut flat = Self {
            last_used: usage.last_used(),
            error_count: usage.error_count(),
            failure_counts: usage
                .failure_counts()
                .iter()
                .map(|(reason, n)| (reason.to_string(), *n))
                .collect(),
            last_failure_at: usage.last_failure_at(),
            ..Self::default()
        };
        let strongest = |wanted: fn(WindowClass) -> bool| {
            usage
                .active(now)
                .filter(|window| wanted(window.class()))
                .max_by_key(|window| (matches!(window.scope, WindowScope::Profile), window.until))
        };
        let model = |window: &Window| match &window.scope {
            WindowScope::Profile => None,
            WindowScope::Model(name) => Some(name.to_string()),
        };
        if let Some(window) = strongest(|class| class == WindowClass::Cooling) {
            flat.cooldown_until = Some(window.until);
            flat.cooldown_reason = Some(window.reason.to_string());
            flat.cooldown_model = model(window);
        }
        if let Some(window) =
            strongest(|class| matches!(class, WindowClass::Billing | WindowClass::AuthPermanent))
        {
            flat.disabled_until = Some(window.until);
            flat.disabled_reason = Some(window.reason.to_string());
        }
        if let Some(window) = strongest(|class| class == WindowClass::Blocked) {
            flat.blocked_until = Some(window.until);
            flat.blocked_reason = Some(window.reason.to_string());
            flat.blocked_model = model(window);
            flat.blocked_source = match &window.source {
                WindowSource::Reset(name) => Some(name.to_string()),
                WindowSource::Ladder | WindowSource::Hint | WindowSource::Import => None,
            };
        }
        flat
    }
}

fn known(text: &str) -> Option<FailoverReason> {
    match text {
        "unknown" => Some(FailoverReason::Unclassified),
        // What a block until a subscription's reset is called there.
        "subscription_limit" => Some(FailoverReason::RateLimit),
        text => text.parse().ok(),
    }
}

fn is_cooling(reason: FailoverReason) -> bool {
    crate::usage::class_of(reason, false) == WindowClass::Cooling
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn flat(json: &str) -> FlatUsage {
        serde_json::from_str(json).unwrap()
    }

    // spec: A-18, A-21
    #[test]
    fn flat_fields_survive_the_way_in_and_out() {
        let json = r#"{
            "lastUsed": 1699999990000, "errorCount": 3, "lastFailureAt": 1699999999000,
            "failureCounts": {"billing": 1, "rate_limit": 2},
            "cooldownUntil": 1700000060000, "cooldownReason": "rate_limit", "cooldownModel": "gpt-5",
            "disabledUntil": 1700018000000, "disabledReason": "billing",
            "blockedUntil": 1700100000000, "blockedReason": "rate_limit", "blockedSource": "wham"
        }"#;
        let original = flat(json);
        let imported = original.import(NOW);
        assert!(imported.unknown_reasons.is_empty());
        assert_eq!(FlatUsage::export(&imported.usage, NOW), original);
        let stored = UsageStats::decode(&imported.usage.encode()).unwrap();
        assert_eq!(stored, imported.usage);
    }

    // spec: A-21
    #[test]
    fn what_is_odd_is_reported_and_still_comes_over() {
        let imported = flat(
            r#"{"cooldownUntil": 1.70000006e12, "cooldownReason": "gremlins", "disabledUntil": 1700000000001.6,
                "failureCounts": {"unknown": 2, "gremlins": 1}, "somethingNew": true, "blockedUntil": -5}"#,
        )
        .import(NOW);
        assert_eq!(imported.unknown_reasons, ["gremlins"]);
        let windows: Vec<_> = imported
            .usage
            .windows()
            .iter()
            .map(|w| (w.reason, w.until.as_millis() - NOW.as_millis()))
            .collect();
        assert_eq!(windows, [(FailoverReason::Unclassified, 60_000), (FailoverReason::Billing, 2)]);
        assert_eq!(imported.usage.failure_counts().get(&FailoverReason::Unclassified), Some(&2));
    }

    #[test]
    fn ended_windows_stay_behind() {
        let imported =
            flat(r#"{"cooldownUntil": 1600000000000, "disabledUntil": 1700000000000}"#).import(NOW);
        assert!(imported.usage.windows().is_empty());
    }
}

//! Credentials: missing, expired, resting, paused, and references that lead nowhere.

use super::{Findings, named_providers};
use crate::exit::chain;
use crate::time;
use failover::Engine;
use failover::auth::{Availability, availability};
use failover::config::Loaded;
use failover::credentials::Secrets;
use failover::runner::SystemClock;
use failover::runner::health::Subject;
use failover::types::{Clock, Credential, ProfileId, SecretSource};
use std::sync::Arc;

const AREA: &str = "credentials";

/// Looks at every credential that the engine may use, and at what it had to leave out.
pub(super) async fn look(loaded: &Loaded, engine: &Engine, warnings: &[String], findings: &mut Findings) {
    for warning in warnings {
        // The engine's sentence says both: what is wrong, and after the colon what to do.
        let (what, mend) = warning
            .split_once(": set ")
            .map(|(what, mend)| (what, format!("set {mend}")))
            .or_else(|| warning.split_once("; add it ").map(|(what, mend)| (what, format!("add it {mend}"))))
            .map_or((warning.as_str(), None), |(what, mend)| (what, Some(mend)));
        let mend = mend.unwrap_or_else(|| "set it, or take the reference out of the config".to_owned());
        findings.warn(AREA, what, mend);
    }
    let secrets = Secrets::new(Arc::new(SystemClock::new()));
    let references = references(loaded);
    let by_provider = engine.profiles_by_provider();
    let mut profiles: Vec<&ProfileId> = by_provider.values().flatten().collect();
    profiles.sort();
    for profile in profiles {
        one(profile, &references, engine, &secrets, findings).await;
    }
    for provider in named_providers(loaded, engine) {
        let known = by_provider.get(&provider).is_some_and(|profiles| !profiles.is_empty());
        if !known && !warnings.iter().any(|warning| warning.contains(provider.as_str())) {
            let what = format!("{provider} has no credential, and its models cannot be tried");
            findings.problem(
                AREA,
                what,
                format!("store one with `failover auth add {provider}`, or name a variable in the config"),
            );
        }
    }
}

/// The references of the config, by profile.
fn references(loaded: &Loaded) -> Vec<(ProfileId, SecretSource)> {
    let config = &loaded.config;
    let listed = config.auth.profiles.iter();
    let mut all: Vec<(ProfileId, SecretSource)> = listed
        .filter_map(|(id, profile)| Some((id.clone(), profile.key.as_ref()?.source().clone())))
        .collect();
    for (provider, settings) in &config.models.providers {
        if let (Some(key), Ok(id)) = (&settings.api_key, ProfileId::for_account(provider, None)) {
            all.push((id, key.source().clone()));
        }
    }
    all
}

async fn one(
    profile: &ProfileId,
    references: &[(ProfileId, SecretSource)],
    engine: &Engine,
    secrets: &Secrets,
    findings: &mut Findings,
) {
    let now = SystemClock::new().now();
    let stored = engine.profiles().credential(profile).await;
    let mut source = references.iter().find(|(id, _)| id == profile).map(|(_, source)| source.clone());
    match stored {
        Ok(Some(stored)) => {
            let credential = stored.credential;
            if let Some(expires) = credential.expires().filter(|expires| *expires <= now) {
                let ago = time::duration(now.since(expires));
                match &credential {
                    Credential::OAuth(_) => {
                        findings.warn(
                            AREA,
                            format!("{profile}: its access token ran out {ago} ago"),
                            "it is renewed at its next use where its provider's adapter can; else sign in where it came from, and import it again",
                        );
                    }
                    Credential::ApiKey { .. } | Credential::Token { .. } | _ => findings.problem(
                        AREA,
                        format!("{profile}: its token ran out {ago} ago"),
                        format!("store a new one with `failover auth add {profile}`"),
                    ),
                }
            }
            if let Credential::ApiKey { key: kept, .. } | Credential::Token { token: kept, .. } = credential {
                source = Some(kept);
            }
        }
        Ok(None) => {}
        Err(error) => findings.problem(
            AREA,
            format!("{profile}: {}", chain(&error)),
            format!("store it again with `failover auth add {profile}`"),
        ),
    }
    // A key that is kept in the store itself leads nowhere else.
    if let Some(source) = source.filter(|source| !matches!(source, SecretSource::Literal(_)))
        && let Err(error) = secrets.read(&source).await
    {
        return findings.problem(
            AREA,
            format!("{profile}: {}", chain(&error)),
            "mend what it names; until then its turn fails and the next one is tried",
        );
    }
    let stats = engine.runner().health().usage(&Subject::Profile(profile.clone()));
    let resting = |word: &str, reason: &dyn std::fmt::Display, until| {
        format!("{profile} {word} ({reason}), usable again {}", time::until(until, now))
    };
    match availability(&stats, None, now) {
        Availability::Usable => findings.fine(AREA, format!("{profile} is usable")),
        Availability::Cooling { until, reason, .. } => {
            findings.warn(
                AREA,
                resting("is resting", &reason, until),
                "it comes back by itself; `failover auth clear` ends it now",
            );
        }
        Availability::Blocked { until, reason } => {
            findings.warn(AREA, resting("is blocked", &reason, until), "its usage window resets by itself");
        }
        Availability::Disabled { until, reason } => {
            let mend = "mend the account, or store a new key (`failover auth add`), which ends it";
            findings.problem(AREA, resting("is disabled", &reason, until), mend);
        }
        Availability::Paused => {
            findings.warn(
                AREA,
                format!("{profile} is paused by hand"),
                "`failover auth resume` lifts it; nothing else does",
            );
        }
    }
}

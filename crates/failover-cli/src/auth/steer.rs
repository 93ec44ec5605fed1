//! `failover auth remove|order|pin|clear|pause|resume`: what a person decides, written durably.

use super::{Cli, Target, failed};
use crate::exit::{Exit, Failure, chain};
use crate::home;
use failover::Setup;
use failover::auth::{ClearScope, TooManyPauses, UsageStats, WindowScope};
use failover::credentials::Profiles;
use failover::runner::SystemClock;
use failover::runner::health::Subject;
use failover::session::{SessionEntry, SessionKey, Sessions, pin_user};
use failover::store::StoreError;
use failover::types::{Clock, FailoverReason, ProfileId, ProviderId, SessionId};
use serde_json::json;
use std::io::Write;
use std::sync::Arc;

/// Takes a credential out.
pub(super) async fn remove(
    cli: &Cli,
    profile: &ProfileId,
    out: &mut (impl Write + Send),
) -> Result<Exit, Failure> {
    let removed = cli.profiles().await?.remove(profile, SystemClock::new().now()).await;
    if !removed.map_err(|error| failed(&error))? {
        let failure = Failure::new(Exit::Failed, format!("no credential is stored for {profile}"));
        return Err(failure.hint("`failover auth list` shows those that there are"));
    }
    cli.say(out, &json!({ "profile": profile, "removed": true }), &format!("{profile} is removed"))
}

/// Shows or sets an order.
pub(super) async fn order(
    cli: &Cli,
    provider: &ProviderId,
    wanted: &[ProfileId],
    clear: bool,
    out: &mut (impl Write + Send),
) -> Result<Exit, Failure> {
    let profiles = cli.profiles().await?;
    let changes = clear || !wanted.is_empty();
    if changes {
        let mut once: Vec<ProfileId> = Vec::new();
        for profile in wanted {
            if once.contains(profile) {
                return Err(Failure::new(Exit::Usage, format!("{profile} is named twice")));
            }
            if !serves(profile, provider) {
                let failure = Failure::new(Exit::Usage, format!("{profile} is no credential of {provider}"));
                return Err(failure.hint(format!("name profiles of {provider}: {provider}:name")));
            }
            once.push(profile.clone());
        }
        profiles.set_order(provider, wanted).await.map_err(|error| failed(&error))?;
        let (known, _) = profiles.load().await.map_err(|error| failed(&error))?;
        let config = cli.load()?.config;
        for profile in wanted.iter().filter(|id| known.get(id).is_none()) {
            if !config.auth.profiles.contains_key(profile) {
                super::warn(&format!("no credential is stored for {profile} yet; it is passed over"));
            }
        }
    }
    let stands = profiles.order(provider).await.map_err(|error| failed(&error))?;
    let names = || stands.iter().map(ProfileId::as_str).collect::<Vec<_>>().join(", ");
    let text = match (stands.is_empty(), changes) {
        (true, true) => format!("the stored order of {provider} is gone; the config's counts"),
        (true, false) => format!("no order is stored for {provider}; the config's counts"),
        (false, _) => format!("{provider}: {}", names()),
    };
    cli.say(out, &json!({ "provider": provider, "order": stands }), &text)
}

/// Whether a credential may serve the models of `provider` (requirement A-9).
fn serves(profile: &ProfileId, provider: &ProviderId) -> bool {
    profile.provider() == provider.as_str()
        || failover::auth::auth_aliases(provider).contains(&profile.provider())
}

/// Pins a session, or releases it.
pub(super) async fn pin(
    cli: &Cli,
    profile: Option<&ProfileId>,
    session: &SessionId,
    out: &mut (impl Write + Send),
) -> Result<Exit, Failure> {
    if let Some(profile) = profile {
        // A strict pin to nobody would leave the session without an answer.
        let Setup { engine, .. } = cli.engine().await?;
        engine.check_profile(profile).map_err(|unknown| crate::exit::unknown(&unknown))?;
    }
    // A faulty config keeps nobody from undoing.
    let config = cli.load().map(|loaded| loaded.config).unwrap_or_default();
    let idle = failover::sessions_idle(&config);
    let sessions =
        Sessions::new(home::must_open().await?).forgetting_idle(idle, Arc::new(SystemClock::new()));
    let key = SessionKey::new(cli.agent.clone(), session.clone());
    let change = |entry: &SessionEntry| Some(pin_user(entry, profile)).filter(|next| next != entry);
    let changed = sessions.update(&key, change).await;
    changed.map_err(|error| Failure::new(Exit::State, chain(&error)))?;
    let text = match profile {
        Some(profile) => {
            format!("{session} uses {profile} and no other of its provider, until a new session")
        }
        None => format!("{session} is pinned to nothing"),
    };
    cli.say(out, &json!({ "session": session.as_str(), "profile": profile }), &text)
}

/// Lifts windows.
pub(super) async fn clear(
    cli: &Cli,
    target: Option<&Target>,
    model: Option<&str>,
    reason: Option<FailoverReason>,
    out: &mut (impl Write + Send),
) -> Result<Exit, Failure> {
    let mut scope = reason.map_or(ClearScope::All, ClearScope::Reason);
    let now = SystemClock::new().now();
    let (profiles, targets) = if let Some(target) = target {
        if let WindowScope::Model(model) = scope_of(cli, target, model, true).await? {
            scope = ClearScope::Model(model);
        }
        (cli.profiles().await?, vec![target.clone()])
    } else {
        let Setup { engine, .. } = cli.engine().await?;
        if let Some(written) = model {
            // By whatever name: an alias, with its provider, or the provider's own.
            let read = engine.chain_config().aliases.read(written);
            let name = read.map_or_else(|_| written.to_owned(), |read| read.model.model().to_owned());
            scope = ClearScope::Model(name.as_str().into());
        }
        let all = engine.runner().health().subjects().into_iter().map(|subject| match subject {
            Subject::Profile(profile) => Target::Profile(profile),
            Subject::Provider(provider) => Target::Provider(provider),
        });
        (engine.profiles().clone(), all.collect())
    };
    let (mut lifted, mut left) = (Vec::new(), Vec::new());
    for target in &targets {
        let mut any = false;
        let change = |stats: &UsageStats| {
            let next = failover::auth::clear(stats, &scope, now);
            any = next != *stats;
            next
        };
        // One that cannot be read keeps no other from being cleared.
        if let Err(error) = steer(&profiles, target, change).await {
            left.push(failed(&error));
            continue;
        }
        if any {
            lifted.push(target.to_string());
        }
    }
    if let Some(target) = target.filter(|_| lifted.is_empty()) {
        known(cli, target).await?;
    }
    lifted.sort();
    let text = if lifted.is_empty() {
        "nothing was held against it".to_owned()
    } else {
        format!("lifted what was held against {}", lifted.join(", "))
    };
    let mut left = left.into_iter();
    let Some(first) = left.next() else { return cli.say(out, &json!({ "cleared": lifted }), &text) };
    if !lifted.is_empty() {
        cli.say(out, &json!({ "cleared": lifted }), &text)?;
    }
    for failure in left {
        super::warn(&failure.message);
    }
    Err(first)
}

/// Pauses or resumes.
pub(super) async fn pause(
    cli: &Cli,
    target: &Target,
    model: Option<&str>,
    on: bool,
    out: &mut (impl Write + Send),
) -> Result<Exit, Failure> {
    if on {
        known(cli, target).await?;
    }
    let scope = scope_of(cli, target, model, !on).await?;
    let (profiles, now, by) = (cli.profiles().await?, SystemClock::new().now(), home::user());
    let mut full: Option<TooManyPauses> = None;
    let mut ended = false;
    let change = |stats: &UsageStats| {
        if !on {
            ended = stats.pauses().any(|pause| pause.scope == scope);
            return failover::auth::resume(stats, scope.clone(), &by, now);
        }
        // Pausing twice is once: who paused it first, and when, stays.
        if stats.pauses().any(|pause| pause.scope == scope) {
            return stats.clone();
        }
        failover::auth::pause(stats, scope.clone(), &by, now).unwrap_or_else(|error| {
            full = Some(error);
            stats.clone()
        })
    };
    let stands = steer(&profiles, target, change).await.map_err(|error| failed(&error))?;
    if !on && !ended {
        known(cli, target).await?;
    }
    if let Some(full) = full {
        return Err(Failure::new(Exit::Failed, full.to_string()));
    }
    let what = match &scope {
        WindowScope::Profile => target.to_string(),
        WindowScope::Model(model) => format!("{model} at {target}"),
    };
    let pauses: Vec<_> = stands.pauses().collect();
    let shown = json!({ "target": target.to_string(), "paused": on, "pauses": pauses });
    let text = if on {
        format!("{what} is paused until it is resumed by hand")
    } else {
        format!("{what} is not paused")
    };
    cli.say(out, &shown, &text)
}

/// Refuses a target that nobody has ever heard of: what is kept under a slip of the pen does nothing.
async fn known(cli: &Cli, target: &Target) -> Result<(), Failure> {
    let Setup { engine, .. } = cli.engine().await?;
    engine.check_subject(&target.subject()).map_err(|unknown| crate::exit::unknown(&unknown))
}

/// What is paused, resumed or cleared of the target, in the words of the record. What stands there already may be ended
/// (`ends`) under whatever name it has.
async fn scope_of(
    cli: &Cli,
    target: &Target,
    model: Option<&str>,
    ends: bool,
) -> Result<WindowScope, Failure> {
    let Some(model) = model else { return Ok(WindowScope::Profile) };
    let Setup { engine, .. } = cli.engine().await?;
    engine.runner().reread_health().await;
    let meant = engine.scope_meant(&target.subject(), model, ends);
    meant.map_err(|unknown| crate::exit::unknown(&unknown))
}

/// Changes the record of a profile or of a provider as a whole, durably.
async fn steer<F>(profiles: &Profiles, target: &Target, change: F) -> Result<UsageStats, StoreError>
where
    F: FnMut(&UsageStats) -> UsageStats + Send,
{
    match target {
        Target::Profile(profile) => profiles.steer_usage(profile, change).await,
        Target::Provider(provider) => profiles.steer_provider_usage(provider, change).await,
    }
}

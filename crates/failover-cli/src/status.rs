//! `failover status` and `failover explain`: what is well now, and what a turn would try.

use crate::exit::{Exit, Failure, chain};
use crate::show::{BOLD, DIM};
use crate::{home, time};
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use failover::auth::{Availability, availability};
use failover::provider::ChatRequest;
use failover::runner::SystemClock;
use failover::runner::health::Subject;
use failover::types::{Clock, ModelSelector, ProfileId, ProviderId, SessionId, Timestamp};
use failover::{Engine, Setup, Turn};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Shows which credentials are well, which rest, and until when.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The config; without it, failover.json5 in the state directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One JSON object for machines.
    #[arg(long)]
    json: bool,
}

/// Shows the chain of a turn, and what would be tried now.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The config; without it, failover.json5 in the state directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The session that the turn would belong to.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// A model for the turn only.
    #[arg(long, value_name = "P/M[@PROFILE]")]
    model: Option<ModelSelector>,
    /// One JSON object for machines.
    #[arg(long)]
    json: bool,
}

async fn engine(config: Option<&std::path::Path>) -> Result<Engine, Failure> {
    let loaded = home::load_config(&home::config_path(config)?)?;
    let (store, warning) = home::open_or_memory().await;
    let Setup { engine, warnings, .. } =
        Engine::builder(loaded).store(store).build().await.map_err(|error| crate::run::failure(&error))?;
    for warning in warning.iter().chain(&warnings) {
        let _ = writeln!(anstream::stderr(), "warning: {warning}");
    }
    Ok(engine)
}

/// A window as a sentence, and as an object.
struct Standing {
    word: &'static str,
    reason: Option<String>,
    until: Option<Timestamp>,
    scope: Option<String>,
}

fn standing(engine: &Engine, profile: &ProfileId, model: Option<&str>, now: Timestamp) -> Standing {
    let stats = engine.runner().health().usage(&Subject::Profile(profile.clone()));
    let out = |word, reason: failover::types::FailoverReason, until| Standing {
        word,
        reason: Some(reason.to_string()),
        until: Some(until),
        scope: None,
    };
    let mut found = match availability(&stats, model, now) {
        Availability::Cooling { until, reason, .. } => out("resting", reason, until),
        Availability::Disabled { until, reason } => out("disabled", reason, until),
        Availability::Blocked { until, reason } => out("blocked", reason, until),
        Availability::Paused => Standing { word: "paused", reason: None, until: None, scope: None },
        Availability::Usable => Standing { word: "usable", reason: None, until: None, scope: None },
    };
    if found.word == "usable" && model.is_none() {
        // A window of one model leaves the profile usable, and is worth knowing.
        if let Some(window) = stats.windows().iter().find(|window| window.until > now) {
            found = out("usable", window.reason, window.until);
            found.scope = match &window.scope {
                failover::auth::WindowScope::Model(model) => Some(model.to_string()),
                failover::auth::WindowScope::Profile => None,
            };
        }
    }
    found
}

/// Runs `status`.
pub(crate) async fn run(args: &StatusArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let engine = engine(args.config.as_deref()).await?;
    let now = SystemClock::new().now();
    let mut rows: Vec<(&ProviderId, &ProfileId)> = engine
        .profiles_by_provider()
        .iter()
        .flat_map(|(provider, profiles)| profiles.iter().map(move |profile| (provider, profile)))
        .collect();
    rows.sort();
    if args.json {
        let list: Vec<Value> = rows
            .iter()
            .map(|(provider, profile)| {
                let standing = standing(&engine, profile, None, now);
                let stats = engine.runner().health().usage(&Subject::Profile((*profile).clone()));
                json!({
                    "provider": provider,
                    "profile": profile,
                    "state": standing.word,
                    "reason": standing.reason,
                    "until": standing.until,
                    "model": standing.scope,
                    "errors": stats.error_count(),
                    "lastUsed": stats.last_used(),
                })
            })
            .collect();
        serde_json::to_writer(&mut *out, &json!({ "now": now, "profiles": list }))?;
        writeln!(out)?;
        return Ok(Exit::Ok);
    }
    if rows.is_empty() {
        writeln!(
            out,
            "no credentials: set a provider's variable (OPENAI_API_KEY), or name one in the config"
        )?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(80);
    table.set_header(["profile", "state", "why", "until"]);
    for (_, profile) in rows {
        let standing = standing(&engine, profile, None, now);
        let reason = standing.reason.unwrap_or_default();
        let why = match standing.scope {
            Some(model) => format!("{reason} ({model} only)"),
            None => reason,
        };
        let until = standing.until.map(|at| time::until(at, now)).unwrap_or_default();
        table.add_row([profile.as_str(), standing.word, why.as_str(), until.as_str()]);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(Exit::Ok)
}

/// Runs `explain`.
pub(crate) async fn explain(args: &ExplainArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let engine = engine(args.config.as_deref()).await?;
    let now = SystemClock::new().now();
    let mut turn = Turn::new(ChatRequest::prompt(""));
    turn.session.clone_from(&args.session);
    turn.model.clone_from(&args.model);
    let chain = engine.preview(&turn).await.map_err(|error| Failure::new(Exit::Config, chain(&error)))?;
    let profiles =
        |provider: &ProviderId| engine.profiles_by_provider().get(provider).cloned().unwrap_or_default();
    if args.json {
        let candidates: Vec<Value> = chain
            .candidates()
            .iter()
            .map(|candidate| {
                let standings: Vec<Value> = profiles(candidate.model.provider())
                    .iter()
                    .map(|profile| {
                        let standing = standing(&engine, profile, Some(candidate.model.model()), now);
                        json!({ "profile": profile, "state": standing.word, "reason": standing.reason, "until": standing.until })
                    })
                    .collect();
                json!({
                    "model": candidate.model,
                    "rule": candidate.rule.number(),
                    "written": candidate.origin.as_ref().map(ToString::to_string),
                    "profiles": standings,
                })
            })
            .collect();
        let shown = json!({ "source": chain.selection().source().as_str(), "candidates": candidates });
        serde_json::to_writer(&mut *out, &shown)?;
        writeln!(out)?;
        return Ok(Exit::Ok);
    }
    writeln!(out, "The selection comes from: {}", chain.selection().source().as_str().replace('_', " "))?;
    for (at, candidate) in chain.candidates().iter().enumerate() {
        writeln!(out, "\n{}. {BOLD}{}{BOLD:#}", at + 1, candidate.model)?;
        writeln!(out, "   {DIM}{}, {}{DIM:#}", candidate.rule.number(), candidate.rule.text())?;
        if let Some(origin) = &candidate.origin {
            writeln!(out, "   {DIM}written at {origin}{DIM:#}")?;
        }
        let profiles = profiles(candidate.model.provider());
        if profiles.is_empty() {
            writeln!(out, "   would be skipped: there is no credential for {}", candidate.model.provider())?;
        }
        for profile in profiles {
            let standing = standing(&engine, &profile, Some(candidate.model.model()), now);
            let until = standing
                .until
                .map(|at| format!(", usable again {}", time::until(at, now)))
                .unwrap_or_default();
            let why = standing.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            writeln!(out, "   {profile}  {}{why}{until}", standing.word)?;
        }
    }
    for unresolved in chain.unresolved() {
        writeln!(out, "\nleft out: {unresolved}")?;
    }
    Ok(Exit::Ok)
}

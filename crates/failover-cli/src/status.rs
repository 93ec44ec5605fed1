//! `failover status`: what is well now.

use crate::exit::{Exit, Failure};
use crate::{home, time};
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use failover::auth::{Availability, availability};
use failover::runner::SystemClock;
use failover::runner::health::Subject;
use failover::types::{Clock, ProfileId, ProviderId, Timestamp};
use failover::{Engine, Setup};
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

/// The engine of a command that only reads.
pub(crate) async fn engine(config: Option<&std::path::Path>) -> Result<Engine, Failure> {
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

fn standing(engine: &Engine, profile: &ProfileId, now: Timestamp) -> Standing {
    let stats = engine.runner().health().usage(&Subject::Profile(profile.clone()));
    let out = |word, reason: failover::types::FailoverReason, until| Standing {
        word,
        reason: Some(reason.to_string()),
        until: Some(until),
        scope: None,
    };
    let mut found = match availability(&stats, None, now) {
        Availability::Cooling { until, reason, .. } => out("resting", reason, until),
        Availability::Disabled { until, reason } => out("disabled", reason, until),
        Availability::Blocked { until, reason } => out("blocked", reason, until),
        Availability::Paused => Standing { word: "paused", reason: None, until: None, scope: None },
        Availability::Usable => Standing { word: "usable", reason: None, until: None, scope: None },
    };
    if found.word == "usable" {
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
                let standing = standing(&engine, profile, now);
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
        let standing = standing(&engine, profile, now);
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

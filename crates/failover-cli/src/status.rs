//! `failover status`: what is well now.

use crate::exit::{Exit, Failure};
use crate::session::stands;
use crate::show::DIM;
use crate::{home, journal, time};
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use failover::auth::availability;
use failover::runner::SystemClock;
use failover::runner::health::Subject;
use failover::session::SessionStatus;
use failover::store::KeyValue;
use failover::types::{Clock, ProfileId, ProviderId, SessionId, Timestamp};
use failover::{Engine, Setup};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shows which credentials are well, which rest, and until when.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The config; without it, failover.json5 in the state directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One JSON object for machines; with --watch, one a line.
    #[arg(long)]
    json: bool,
    /// Stay and show it live, until Ctrl-C.
    #[arg(long)]
    watch: bool,
    /// Seconds between two looks of --watch.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
}

/// The engine of a command that only reads.
pub(crate) async fn engine(config: Option<&Path>) -> Result<Engine, Failure> {
    let (store, warning) = home::open_or_memory().await;
    let (engine, warnings) = engine_over(config, store).await?;
    warn(warning.iter().chain(&warnings));
    Ok(engine)
}

async fn engine_over(
    config: Option<&Path>,
    store: Arc<dyn KeyValue>,
) -> Result<(Engine, Vec<String>), Failure> {
    let loaded = home::load_config(&home::config_path(config)?)?;
    let Setup { engine, warnings, .. } =
        Engine::builder(loaded).store(store).build().await.map_err(|error| crate::run::failure(&error))?;
    Ok((engine, warnings))
}

fn warn<'a>(warnings: impl Iterator<Item = &'a String>) {
    for warning in warnings {
        let _ = writeln!(anstream::stderr(), "warning: {warning}");
    }
}

/// A window as a sentence, and as an object.
struct Standing {
    word: &'static str,
    reason: Option<String>,
    until: Option<Timestamp>,
    scope: Option<String>,
    errors: u32,
    last_used: Option<Timestamp>,
}

fn standing(engine: &Engine, profile: &ProfileId, now: Timestamp) -> Standing {
    let stats = engine.runner().health().usage(&Subject::Profile(profile.clone()));
    let available = availability(&stats, None, now);
    let mut found = Standing {
        word: available.code(),
        reason: available.reason().map(|reason| reason.to_string()),
        until: available.until(),
        scope: None,
        errors: stats.error_count(),
        last_used: stats.last_used(),
    };
    if available.is_usable() {
        // A window of one model leaves the profile usable, and is worth knowing.
        if let Some(window) = stats.windows().iter().find(|window| window.until > now) {
            found.reason = Some(window.reason.to_string());
            found.until = Some(window.until);
            found.scope = match &window.scope {
                failover::auth::WindowScope::Model(model) => Some(model.to_string()),
                failover::auth::WindowScope::Profile => None,
            };
        }
    }
    found
}

/// How many decisions are shown.
const DECISIONS: usize = 8;
/// How many sessions on a fallback are shown, and how many are looked through for them.
const SESSIONS: (usize, usize) = (10, 10_000);
/// How many sessions are read at a time.
const PAGE: usize = 256;

/// What a look found.
struct Look {
    now: Timestamp,
    profiles: Vec<(ProviderId, ProfileId, Standing)>,
    on_fallback: Vec<(SessionId, SessionStatus)>,
    decisions: Vec<Value>,
}

/// Looks at what the store says now.
async fn look(engine: &Engine) -> Result<Look, Failure> {
    let now = SystemClock::new().now();
    let mut profiles: Vec<(ProviderId, ProfileId, Standing)> = engine
        .profiles_by_provider()
        .iter()
        .flat_map(|(provider, profiles)| profiles.iter().map(move |profile| (provider, profile)))
        .map(|(provider, profile)| (provider.clone(), profile.clone(), standing(engine, profile, now)))
        .collect();
    profiles.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let decisions = home::directory().map(|dir| journal::last(&dir, DECISIONS)).unwrap_or_default();
    Ok(Look { now, profiles, on_fallback: on_fallback(engine, now).await?, decisions })
}

/// Sessions that another model answers than the one selected.
async fn on_fallback(engine: &Engine, now: Timestamp) -> Result<Vec<(SessionId, SessionStatus)>, Failure> {
    let failed =
        |error: failover::session::SessionsError| Failure::new(Exit::State, crate::exit::chain(&error));
    let (mut found, mut seen, mut after) = (Vec::new(), 0, None);
    while seen < SESSIONS.1 && found.len() < SESSIONS.0 {
        let page = engine.sessions().list(engine.agent(), after.as_ref(), PAGE).await.map_err(failed)?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        seen += page.len();
        for (id, entry) in page {
            let stands = stands(engine, &entry, now).await;
            found.extend(stands.answering.is_some().then_some((id, stands)));
        }
    }
    found.truncate(SESSIONS.0);
    Ok(found)
}

/// Runs `status`.
pub(crate) async fn run(args: &StatusArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let (store, warning) = home::open_or_memory().await;
    let (engine, warnings) = engine_over(args.config.as_deref(), Arc::clone(&store)).await?;
    warn(warning.iter().chain(&warnings));
    if !args.watch {
        show(&look(&engine).await?, args.json, out)?;
        return Ok(Exit::Ok);
    }
    let live = !args.json && std::io::stdout().is_terminal();
    let _screen = live.then(Screen::enter);
    loop {
        let mut page = Vec::new();
        // Another process may have changed everything, the config too.
        let (engine, _) = engine_over(args.config.as_deref(), Arc::clone(&store)).await?;
        show(&look(&engine).await?, args.json, &mut page)?;
        if live {
            // From the top, each line cleared behind its end, and what is left below.
            let text = String::from_utf8_lossy(&page).replace('\n', "\u{1b}[K\n");
            write!(
                out,
                "\u{1b}[H{text}\u{1b}[K\n{DIM}every {} s; Ctrl-C ends{DIM:#}\u{1b}[K\u{1b}[J",
                args.every
            )?;
        } else {
            out.write_all(&page)?;
        }
        out.flush()?;
        let next = SystemClock::new().now().after(std::time::Duration::from_secs(args.every));
        SystemClock::new().sleep_until(next).await;
    }
}

/// The terminal's other screen; left when dropped, so that what was there before comes back.
struct Screen;

impl Screen {
    fn enter() -> Self {
        let _ = write!(anstream::stdout(), "\u{1b}[?1049h\u{1b}[?25l\u{1b}[2J");
        Self
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = anstream::stdout();
        let _ = write!(out, "\u{1b}[?25h\u{1b}[?1049l").and_then(|()| out.flush());
    }
}

fn show(look: &Look, json: bool, out: &mut impl Write) -> Result<(), Failure> {
    if json {
        serde_json::to_writer(&mut *out, &as_json(look))?;
        writeln!(out)?;
        return Ok(());
    }
    if look.profiles.is_empty() {
        writeln!(
            out,
            "no credentials: set a provider's variable (OPENAI_API_KEY), or name one in the config"
        )?;
    } else {
        let mut table = table(["profile", "state", "why", "until"]);
        for (_, profile, standing) in &look.profiles {
            let reason = standing.reason.clone().unwrap_or_default();
            let why = match &standing.scope {
                Some(model) => format!("{reason} ({model} only)"),
                None => reason,
            };
            let until = standing.until.map(|at| time::until(at, look.now)).unwrap_or_default();
            table.add_row([profile.as_str(), standing.word, why.as_str(), until.as_str()]);
        }
        print(&table, out)?;
    }
    if !look.on_fallback.is_empty() {
        writeln!(out)?;
        let mut table = table(["session", "selected", "answering", "why", "next try"]);
        for (session, status) in &look.on_fallback {
            let name = |model: &Option<failover::types::ModelRef>| {
                model.as_ref().map_or_else(|| "configured".to_owned(), ToString::to_string)
            };
            table.add_row([
                session.to_string(),
                name(&status.selected),
                name(&status.answering),
                status.reason.map(|reason| reason.to_string()).unwrap_or_default(),
                status.next_probe.map(|at| time::until(at, look.now)).unwrap_or_default(),
            ]);
        }
        print(&table, out)?;
    }
    if !look.decisions.is_empty() {
        writeln!(out)?;
        let mut table = table(["when", "model", "decision", "why"]);
        for decision in &look.decisions {
            let text = |name: &str| decision[name].as_str().unwrap_or_default().replace('_', " ");
            let at = Timestamp::from_millis(decision["at"].as_u64().unwrap_or_default());
            let why = if decision["why"].is_string() { text("why") } else { text("reason") };
            let model = decision["candidateModel"].as_str().unwrap_or_default().to_owned();
            let ago = format!("{} ago", time::duration(look.now.since(at)));
            table.add_row([ago, model, text("decision").replace(" candidate", ""), why]);
        }
        print(&table, out)?;
    }
    Ok(())
}

fn table<const N: usize>(head: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(80);
    table.set_header(head);
    table
}

fn print(table: &Table, out: &mut impl Write) -> std::io::Result<()> {
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

fn as_json(look: &Look) -> Value {
    let profiles = look.profiles.iter().map(|(provider, profile, standing)| {
        json!({
            "provider": provider,
            "profile": profile,
            "state": standing.word,
            "reason": standing.reason,
            "until": standing.until,
            "model": standing.scope,
            "errors": standing.errors,
            "lastUsed": standing.last_used,
        })
    });
    let sessions = look.on_fallback.iter().map(|(session, status)| {
        json!({
            "session": session.as_str(),
            "selected": status.selected,
            "answering": status.answering,
            "reason": status.reason,
            "since": status.since,
            "nextProbe": status.next_probe,
        })
    });
    json!({
        "now": look.now,
        "profiles": profiles.collect::<Vec<_>>(),
        "sessions": sessions.collect::<Vec<_>>(),
        "decisions": look.decisions,
    })
}

//! `failover import`: takes over what another program left.

use crate::exit::{Exit, Failure, chain};
use crate::home;
use clap::{Args, Subcommand};
use failover::config::import::{self, Found, ImportError, Left};
use failover::runner::SystemClock;
use failover::store::{KeyValue, MemoryStore};
use failover::types::Clock;
use failover::{ImportReport, Taken, import_openclaw};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Takes over credentials, health and config of another program.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Subcommand, Debug)]
enum ImportCommand {
    /// From OpenClaw: auth-profiles.json, auth-state.json, auth.json, oauth.json, openclaw.json.
    #[command(
        after_help = "Its files are read and never changed. Secrets go to the agents' stores, never into a config.
What stands here already is not written over, so a second run changes nothing.

Examples:
  failover import openclaw --dry-run
  failover import openclaw ~/.openclaw
  failover import openclaw --json | jq '.left'"
    )]
    Openclaw {
        /// Its state directory; without it, `OPENCLAW_STATE_DIR` or `~/.openclaw`.
        path: Option<PathBuf>,
        /// Say what would come over, and write nothing.
        #[arg(long)]
        dry_run: bool,
        /// One JSON object for machines.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub(crate) async fn run(args: &ImportArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let ImportCommand::Openclaw { path, dry_run, json } = &args.command;
    let root = path.clone().map_or_else(home::openclaw, Ok)?;
    let found = import::openclaw(&root).map_err(|error| {
        let nothing = matches!(error, ImportError::Nothing { .. });
        Failure::new(if nothing { Exit::Failed } else { Exit::Usage }, chain(&error))
    })?;
    let state = home::directory()?;
    // A dry run leaves no trace, not even an empty store.
    let store: Arc<dyn KeyValue> = if *dry_run && !state.join("state").exists() {
        Arc::new(MemoryStore::new(Arc::new(SystemClock::new())))
    } else {
        home::must_open().await?
    };
    let report = import_openclaw(&store, &found, *dry_run, SystemClock::new().now()).await;
    let report = report.map_err(|error| Failure::new(Exit::State, chain(&error)))?;
    let config = settle_config(&found, &state, *dry_run)?;
    if *json {
        serde_json::to_writer(&mut *out, &object(&found, &report, &config, *dry_run))?;
        writeln!(out)?;
    } else {
        write_text(out, &report, &config, *dry_run)?;
    }
    Ok(Exit::Ok)
}

/// What became of the config.
enum Config {
    /// There is none to take over.
    None,
    /// It was written there, or would be.
    Written(PathBuf),
    /// It stands there already.
    Same(PathBuf),
    /// Another one is in force: it was written beside it.
    Beside { file: PathBuf, written: bool },
}

fn settle_config(found: &Found, state: &Path, dry_run: bool) -> Result<Config, Failure> {
    let Some(config) = &found.config else { return Ok(Config::None) };
    let text = format!("{}\n", serde_json::to_string_pretty(config)?);
    let file = state.join("failover.json5");
    if !file.exists() {
        write(&file, &text, dry_run)?;
        return Ok(Config::Written(file));
    }
    if says(&file, config) {
        return Ok(Config::Same(file));
    }
    let file = state.join("failover.openclaw.json5");
    let written = !says(&file, config);
    if written {
        write(&file, &text, dry_run)?;
    }
    Ok(Config::Beside { file, written })
}

/// Whether the file holds just this config.
fn says(file: &Path, config: &Value) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let found = failover::config::Document::parse("failover.json5", &text);
    found.is_ok_and(|found| found.root() == config)
}

/// Writes a file whole or not at all.
fn write(file: &Path, text: &str, dry_run: bool) -> Result<(), Failure> {
    if dry_run {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        Failure::new(Exit::State, format!("cannot write {}: {error}", file.display()))
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    draft.write_all(text.as_bytes()).map_err(failed)?;
    draft.as_file().sync_all().map_err(failed)?;
    draft.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

fn place(left: &Left) -> String {
    let file = left.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match (file.is_empty(), left.what.is_empty()) {
        (false, false) => format!("{file}: {}", left.what),
        (false, true) => file,
        (true, _) => left.what.clone(),
    }
}

fn write_text(
    out: &mut dyn Write,
    report: &ImportReport,
    config: &Config,
    dry_run: bool,
) -> Result<(), Failure> {
    let would = if dry_run { "would come" } else { "came" };
    let line = |taken: &Taken| format!("  {} (agent {})", taken.what, taken.agent);
    writeln!(out, "{} {would} over{}", report.taken.len(), if report.taken.is_empty() { "" } else { ":" })?;
    for taken in &report.taken {
        writeln!(out, "{}", line(taken))?;
    }
    match config {
        Config::None => {}
        Config::Written(file) => {
            let done = if dry_run { "would be written" } else { "is written" };
            writeln!(out, "the config {done} to {}", file.display())?;
        }
        Config::Same(file) => writeln!(out, "the config stands in {} already", file.display())?,
        Config::Beside { file, written } => {
            let done = match (written, dry_run) {
                (true, true) => "would be written",
                (true, false) => "is written",
                (false, _) => "stands already",
            };
            writeln!(out, "another config is in force; OpenClaw's {done} in {}", file.display())?;
        }
    }
    if !report.same.is_empty() {
        writeln!(out, "{} stood here already", report.same.len())?;
    }
    if !report.left.is_empty() {
        writeln!(out, "{} did not come over:", report.left.len())?;
        for left in &report.left {
            writeln!(out, "  {}: {}", place(left), left.why)?;
        }
    }
    if dry_run {
        writeln!(out, "nothing was written; run it again without --dry-run")?;
    }
    Ok(())
}

fn object(found: &Found, report: &ImportReport, config: &Config, dry_run: bool) -> Value {
    let list = |taken: &[Taken]| -> Vec<Value> {
        taken.iter().map(|taken| json!({ "agent": taken.agent, "what": taken.what.to_string() })).collect()
    };
    let (state, file) = match config {
        Config::None => ("none", None),
        Config::Written(file) => ("written", Some(file)),
        Config::Same(file) => ("same", Some(file)),
        Config::Beside { file, written: true } => ("written_beside", Some(file)),
        Config::Beside { file, written: false } => ("same_beside", Some(file)),
    };
    json!({
        "dryRun": dry_run,
        "files": found.files,
        "taken": list(&report.taken),
        "same": list(&report.same),
        "left": report.left.iter().map(|left| json!({
            "file": left.file, "what": left.what, "why": left.why,
        })).collect::<Vec<_>>(),
        "config": { "state": state, "file": file },
    })
}

//! `failover simulate`: plays a scenario through the runner's own plan, in virtual time.

mod bundled;
mod locate;

use crate::exit::{Exit, Failure};
use crate::show::{BAD, BOLD, DIM, GOOD, NEXT};
use anstyle::Style;
use bundled::BUNDLED;
use clap::Args;
use failover::runner::simulate::{Scenario, Timeline, play};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Largest scenario file, in bytes: a hundred times the largest of ours.
const MOST_BYTES: u64 = 1024 * 1024;

/// Plays a scenario in virtual time, and prints what happens.
#[derive(Args, Debug)]
#[command(after_help = "Nothing is called, nothing is written, and nothing waits: providers answer as the
scenario says, and the same scenario always gives the same timeline. What decides
is what decides in earnest.

A scenario is a JSON file: the chain, the credentials, what providers answer and
when, and what people do meanwhile. `failover simulate --show first-answers`
prints one to begin with.

Examples:
  failover simulate --list
  failover simulate rotation-auth
  failover simulate --show rotation-auth > mine.json
  failover simulate mine.json
  failover simulate mine.json --json | jq -r '.timeline[].what'")]
pub(crate) struct SimulateArgs {
    /// The scenario: a file, `-` for standard input, or the name of one that ships.
    #[arg(value_name = "FILE", required_unless_present = "list")]
    file: Option<PathBuf>,
    /// List the scenarios that ship, with what each shows.
    #[arg(long, conflicts_with_all = ["file", "show"])]
    list: bool,
    /// Print the scenario instead of playing it.
    #[arg(long)]
    show: bool,
    /// One JSON object for machines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let Some(file) = args.file.as_deref().filter(|_| !args.list) else {
        return list(args.json, out);
    };
    let (name, text) = read(file)?;
    let scenario: Scenario =
        serde_json::from_str(&text).map_err(|error| locate::syntax(&name, &text, &error))?;
    if args.show {
        out.write_all(text.trim_end().as_bytes())?;
        writeln!(out)?;
        return Ok(Exit::Ok);
    }
    let timeline = play(&scenario).map_err(|error| locate::meaning(&name, &text, &error))?;
    if args.json {
        serde_json::to_writer(&mut *out, &as_json(&scenario, &timeline))?;
        writeln!(out)?;
    } else {
        as_text(&scenario, &timeline, out)?;
    }
    Ok(Exit::Ok)
}

/// The scenario's text, and what to call it. A file goes before a scenario that ships.
fn read(file: &Path) -> Result<(String, String), Failure> {
    let name = file.display().to_string();
    if name == "-" {
        let bytes = crate::input::stdin()?;
        return Ok(("standard input".to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    let error = match std::fs::metadata(file) {
        Ok(found) if found.len() > MOST_BYTES => {
            let what = format!("{name} has {} bytes, and a scenario has at most {MOST_BYTES}", found.len());
            return Err(Failure::new(Exit::Failed, what));
        }
        Ok(_) => match std::fs::read_to_string(file) {
            Ok(text) => return Ok((name, text)),
            Err(error) => error,
        },
        Err(error) => error,
    };
    let stem = name.strip_suffix(".json").unwrap_or(&name);
    if let Some((_, text)) = BUNDLED.iter().find(|(known, _)| *known == stem) {
        return Ok((stem.to_owned(), (*text).to_owned()));
    }
    Err(Failure::new(Exit::Failed, format!("cannot read {name}: {error}"))
        .hint("name a file, or a scenario that ships; `failover simulate --list` shows those"))
}

fn about(text: &str) -> Option<Scenario> {
    serde_json::from_str(text).ok()
}

fn list(machines: bool, out: &mut dyn Write) -> Result<Exit, Failure> {
    let shipped = BUNDLED.iter().filter_map(|(name, text)| Some((name, about(text)?)));
    if machines {
        let list: Vec<Value> = shipped
            .map(|(name, scenario)| json!({ "name": name, "about": scenario.about, "spec": scenario.spec }))
            .collect();
        serde_json::to_writer(&mut *out, &json!({ "scenarios": list }))?;
        writeln!(out)?;
        return Ok(Exit::Ok);
    }
    for (name, scenario) in shipped {
        writeln!(out, "{BOLD}{name}{BOLD:#}  {DIM}{}{DIM:#}", scenario.spec.join(", "))?;
        writeln!(out, "  {}", scenario.about)?;
    }
    Ok(Exit::Ok)
}

fn as_json(scenario: &Scenario, timeline: &Timeline) -> Value {
    let lines = timeline.entries.iter().map(|entry| {
        json!({
            "atMs": failover::types::millis(entry.at.since(timeline.start)),
            "who": &*entry.run,
            "what": entry.what,
        })
    });
    json!({
        "about": scenario.about,
        "spec": scenario.spec,
        "timeline": lines.collect::<Vec<_>>(),
    })
}

/// How a line of the timeline reads, by what it begins or ends with.
fn style(what: &str) -> Style {
    let says = |part: &str| what.contains(part);
    match () {
        () if says(" answers") || says("done: answered") => GOOD,
        () if says(" fails ") || what.starts_with("done: ") => BAD,
        () if says(" is skipped")
            || says("notice: ")
            || says(" is tried again")
            || says("another profile") =>
        {
            NEXT
        }
        () if what.starts_with("waits ") || what.starts_with("asks ") => DIM,
        () => Style::new(),
    }
}

fn as_text(scenario: &Scenario, timeline: &Timeline, out: &mut dyn Write) -> Result<(), Failure> {
    if !scenario.about.is_empty() {
        writeln!(out, "{}\n", scenario.about)?;
    }
    let width = timeline.entries.iter().map(|entry| entry.run.len()).max().unwrap_or(0);
    for entry in &timeline.entries {
        let ms = entry.at.since(timeline.start).as_millis();
        let (style, at) = (style(&entry.what), format!("{}.{:03}", ms / 1000, ms % 1000));
        writeln!(out, "{DIM}{at:>10}{DIM:#}  {:width$}  {style}{}{style:#}", entry.run, entry.what)?;
    }
    Ok(())
}

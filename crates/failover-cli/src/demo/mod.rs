//! `failover demo`: real requests through real faults, on this machine only.

mod clock;
mod scenes;
mod stage;

use crate::exit::{Exit, Failure};
use crate::show::{BAD, BOLD, DIM, GOOD};
use clap::Args;
use scenes::SCENES;
use stage::{Report, Stage};
use std::io::Write;

/// Watch it work: real requests, real faults, on this machine only. No keys needed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  failover demo
  failover demo --scene rate-limit
  failover demo --json | jq .served")]
pub(crate) struct DemoArgs {
    /// Only this scene; `--list` names them.
    #[arg(long, value_name = "NAME")]
    scene: Option<String>,
    /// Name the scenes.
    #[arg(long)]
    list: bool,
    /// One JSON object a scene, for machines.
    #[arg(long)]
    json: bool,
}

/// Plays the scenes.
pub(crate) async fn run(args: &DemoArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    if args.list {
        for scene in SCENES {
            writeln!(out, "{:12} {}", scene.name, scene.title)?;
        }
        return Ok(Exit::Ok);
    }
    let chosen: Vec<_> =
        SCENES.iter().filter(|scene| args.scene.as_ref().is_none_or(|name| name == scene.name)).collect();
    if chosen.is_empty() {
        let name = args.scene.as_deref().unwrap_or_default();
        return Err(Failure::new(Exit::Usage, format!("no scene is called {name:?}"))
            .hint("`failover demo --list` names them"));
    }
    if !args.json {
        writeln!(out, "{BOLD}failover{BOLD:#} keeps an LLM application answering when keys, models and")?;
        writeln!(out, "providers fail. Here it asks three made-up providers on this machine, over real")?;
        writeln!(out, "HTTP, and they misbehave to a script. The chain is openai/gpt-5, then")?;
        writeln!(out, "groq/llama, then mistral/large.")?;
    }
    let total = chosen.len();
    let mut wrong = 0;
    for (at, scene) in chosen.into_iter().enumerate() {
        if !args.json {
            writeln!(out, "\n{BOLD}{}/{total}  {}{BOLD:#}", at + 1, scene.title)?;
            writeln!(out, "{DIM}{}{DIM:#}", scene.story)?;
            out.flush()?;
        }
        let stage = Stage::set(scene, args.json).await?;
        let report = stage.play().await?;
        wrong += usize::from(!report.as_told);
        if args.json {
            serde_json::to_writer(&mut *out, &report.json)?;
            writeln!(out)?;
        } else {
            close(&report, out)?;
        }
        out.flush()?;
    }
    if !args.json {
        let s = if total == 1 { "" } else { "s" };
        let (color, mark) =
            if wrong == 0 { (GOOD, "all went as told") } else { (BAD, "not all went as told") };
        writeln!(
            out,
            "\n{color}{total} scene{s}, {mark}{color:#}. Next: `failover run --help`, or the README."
        )?;
    }
    Ok(if wrong == 0 { Exit::Ok } else { Exit::Failed })
}

/// The outcome of a scene.
fn close(report: &Report, out: &mut impl Write) -> Result<(), Failure> {
    for line in &report.lines {
        writeln!(out, "  {GOOD}={GOOD:#}      {line}")?;
    }
    if !report.as_told {
        writeln!(out, "  {BAD}This is not what the scene tells; it is a bug.{BAD:#}")?;
    }
    Ok(())
}

//! `failover doctor`: what is wrong with config, store, credentials and providers, and how to mend it.

mod config;
mod credentials;
mod providers;
mod store;

use crate::exit::{Exit, Failure};
use crate::home;
use crate::show::{BAD, BOLD, DIM, GOOD, NEXT};
use anstyle::Style;
use clap::Args;
use failover::config::Loaded;
use failover::{Engine, Setup};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Says what is wrong with config, store, credentials and providers, and how to mend it.
#[derive(Args, Debug)]
#[command(
    after_help = "Providers are asked for nothing but their address: no key is sent and no model called.

`--fix` repairs the state directory: rights that are too wide, damaged files. It
says what it will do, asks, and deletes nothing.

Ends with 1 where a problem is left; warnings alone end with 0.

Examples:
  failover doctor
  failover doctor --fix
  failover doctor --offline --json | jq '.findings[] | select(.severity == \"problem\")'"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct DoctorArgs {
    /// The config; without it, failover.json5 in the state directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Repair what can be repaired, after saying what, and after a yes.
    #[arg(long)]
    fix: bool,
    /// Do not ask before repairing.
    #[arg(long, short, requires = "fix")]
    yes: bool,
    /// Do not contact the providers.
    #[arg(long)]
    offline: bool,
    /// One JSON object for machines.
    #[arg(long)]
    json: bool,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Fine,
    Warning,
    Problem,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Fine => GOOD,
            Self::Warning => NEXT,
            Self::Problem => BAD,
        }
    }
}

/// Something that `--fix` can do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Repair {
    /// Take a file's or a directory's rights away from everybody but its owner.
    Narrow { path: PathBuf, mode: u32 },
    /// Set damaged files aside, and make a store of what can be read in them.
    Salvage { dir: PathBuf },
}

impl Repair {
    fn what(&self) -> String {
        match self {
            Self::Narrow { path, mode } => format!("set the rights of {} to {mode:03o}", path.display()),
            Self::Salvage { dir } => format!(
                "set the damaged files in {} aside, and make a store of every record that can be read in them",
                dir.display()
            ),
        }
    }
}

/// One thing that was looked at.
#[derive(Debug)]
struct Finding {
    area: &'static str,
    severity: Severity,
    what: String,
    /// How to mend it.
    mend: Option<String>,
    repair: Option<Repair>,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, area: &'static str, severity: Severity, what: impl Into<String>, mend: Option<String>) {
        self.0.push(Finding { area, severity, what: what.into(), mend, repair: None });
    }

    fn fine(&mut self, area: &'static str, what: impl Into<String>) {
        self.add(area, Severity::Fine, what, None);
    }

    fn warn(&mut self, area: &'static str, what: impl Into<String>, mend: impl Into<String>) {
        self.add(area, Severity::Warning, what, Some(mend.into()));
    }

    fn problem(&mut self, area: &'static str, what: impl Into<String>, mend: impl Into<String>) {
        self.add(area, Severity::Problem, what, Some(mend.into()));
    }

    /// A problem that `--fix` mends.
    fn repairable(&mut self, area: &'static str, what: impl Into<String>, repair: Repair) {
        let mend = Some(format!("`failover doctor --fix` will {}", repair.what()));
        self.0.push(Finding {
            area,
            severity: Severity::Problem,
            what: what.into(),
            mend,
            repair: Some(repair),
        });
    }

    fn repairs(&self) -> Vec<Repair> {
        let mut repairs: Vec<Repair> = self.0.iter().filter_map(|finding| finding.repair.clone()).collect();
        repairs.sort();
        repairs.dedup();
        repairs
    }

    fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Runs the command.
pub(crate) async fn run(args: &DoctorArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let mut findings = examine(args).await;
    let mut done = Vec::new();
    let repairs = findings.repairs();
    if args.fix && !repairs.is_empty() && agreed(args, &repairs)? {
        for repair in &repairs {
            done.push(match store::repair(repair) {
                Ok(what) => (Severity::Fine, what),
                Err(error) => (Severity::Problem, format!("could not {}: {error}", repair.what())),
            });
        }
        findings = examine(args).await;
    }
    if args.json {
        serde_json::to_writer(&mut *out, &as_json(&findings, &done))?;
        writeln!(out)?;
    } else {
        as_text(&findings, &done, args.fix, out)?;
    }
    Ok(if findings.count(Severity::Problem) > 0 { Exit::Failed } else { Exit::Ok })
}

/// Looks at everything, in the order in which one thing needs the other.
async fn examine(args: &DoctorArgs) -> Findings {
    let mut findings = Findings::default();
    let loaded = config::look(args.config.as_deref(), &mut findings);
    let store = store::look(&mut findings).await;
    let Some(loaded) = loaded else { return findings };
    let mut builder = Engine::builder(loaded.clone());
    if let Some(store) = &store {
        builder = builder.store(Arc::clone(store));
    }
    match builder.build().await {
        Ok(Setup { engine, warnings, .. }) => {
            credentials::look(&loaded, &engine, &warnings, &mut findings).await;
            if !args.offline {
                providers::look(&loaded, &engine, &mut findings).await;
            }
        }
        Err(error) => findings.problem("config", crate::exit::chain(&error), "mend what it names"),
    }
    findings
}

/// Says what will be done, and asks.
fn agreed(args: &DoctorArgs, repairs: &[Repair]) -> Result<bool, Failure> {
    let mut err = anstream::stderr();
    let _ = writeln!(err, "{BOLD}This will be done:{BOLD:#}");
    for repair in repairs {
        let _ = writeln!(err, "  {}", repair.what());
    }
    if args.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, "nobody can be asked whether to repair: this is no terminal")
            .hint("say `failover doctor --fix --yes`"));
    }
    let _ = write!(err, "Go ahead? [y/N] ");
    let _ = err.flush();
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn as_json(findings: &Findings, done: &[(Severity, String)]) -> Value {
    let list = findings.0.iter().map(|finding| {
        json!({
            "area": finding.area,
            "severity": finding.severity.word(),
            "what": finding.what,
            "mend": finding.mend,
            "fixable": finding.repair.is_some(),
        })
    });
    let done = done.iter().map(|(severity, what)| json!({ "ok": *severity == Severity::Fine, "what": what }));
    json!({
        "ok": findings.count(Severity::Problem) == 0,
        "problems": findings.count(Severity::Problem),
        "warnings": findings.count(Severity::Warning),
        "findings": list.collect::<Vec<_>>(),
        "repairs": done.collect::<Vec<_>>(),
    })
}

fn as_text(
    findings: &Findings,
    done: &[(Severity, String)],
    fixing: bool,
    out: &mut (impl Write + Send),
) -> Result<(), Failure> {
    for (severity, what) in done {
        let style = severity.style();
        writeln!(
            out,
            "{style}{}{style:#} {what}",
            if *severity == Severity::Fine { "done" } else { "failed" }
        )?;
    }
    let mut area = "";
    for finding in &findings.0 {
        if finding.area != area {
            area = finding.area;
            writeln!(out, "{BOLD}{area}{BOLD:#}")?;
        }
        let (style, word) = (finding.severity.style(), finding.severity.word());
        let what = finding.what.replace('\n', "\n           ");
        writeln!(out, "  {style}{word:7}{style:#}  {what}")?;
        if let Some(mend) = &finding.mend {
            writeln!(out, "           {DIM}{}{DIM:#}", mend.replace('\n', "\n           "))?;
        }
    }
    let (problems, warnings) = (findings.count(Severity::Problem), findings.count(Severity::Warning));
    let s = |count: usize| if count == 1 { "" } else { "s" };
    if problems + warnings == 0 {
        writeln!(out, "\nNothing is wrong.")?;
    } else {
        writeln!(out, "\n{problems} problem{}, {warnings} warning{}.", s(problems), s(warnings))?;
    }
    if !fixing && !findings.repairs().is_empty() {
        writeln!(out, "`failover doctor --fix` repairs {} of them.", findings.repairs().len())?;
    }
    Ok(())
}

/// What the parts of `doctor` share.
fn loaded_path(named: Option<&std::path::Path>) -> Result<PathBuf, Failure> {
    home::config_path(named)
}

/// Providers that a model of the config names, or that have settings.
fn named_providers(loaded: &Loaded, engine: &Engine) -> Vec<failover::types::ProviderId> {
    let chain = engine.chain_config();
    let settings = [&chain.defaults, &chain.agent, &chain.image];
    let written = settings.iter().flat_map(|it| it.primary.iter().chain(it.fallbacks.references()));
    let rescues = chain.on_context_overflow.references().iter().chain(chain.on_content_refusal.references());
    let models = written.chain(rescues).filter_map(|reference| chain.read(reference).ok());
    let mut ids: Vec<_> = models.map(|selector| selector.model.provider().clone()).collect();
    ids.extend(loaded.config.models.providers.keys().cloned());
    ids.sort();
    ids.dedup();
    ids
}

//! The command `failover`.

mod auth;
mod classify;
mod config;
mod demo;
mod doctor;
mod exit;
mod explain;
mod home;
mod import;
mod input;
mod journal;
mod log;
mod reference;
mod run;
mod serve;
mod session;
mod show;
mod simulate;
mod status;
mod time;

use clap::{CommandFactory, Parser, Subcommand};
use exit::{Exit, Failure};
use std::io::Write;
use std::process::ExitCode;

/// Keeps an LLM application answering when credentials, models and providers fail.
#[derive(Parser, Debug)]
#[command(name = "failover", version, after_help = exit::help(), max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Watch it work: real requests, real faults, on this machine only. No keys needed.
    Demo(demo::DemoArgs),
    /// Answer a prompt with the configured models, whoever of them can.
    Run(run::RunArgs),
    /// Serve the configured models over HTTP, to any OpenAI or Anthropic client.
    Serve(serve::ServeArgs),
    /// Say why a call failed.
    Classify(classify::ClassifyArgs),
    /// Show which models and credentials are well, which rest, and until when.
    Status(status::StatusArgs),
    /// Show the chain of a turn, and what would be tried now.
    Explain(explain::ExplainArgs),
    /// Play a scenario in virtual time, and print what happens.
    Simulate(simulate::SimulateArgs),
    /// Say what is wrong with config, store, credentials and providers, and repair it.
    Doctor(doctor::DoctorArgs),
    /// Show or change which model a session uses.
    Session(session::SessionArgs),
    /// Keep credentials: list, add, remove, order, pin, clear, pause, resume, probe.
    Auth(auth::AuthArgs),
    /// Take over what another program left: credentials, health, config.
    Import(import::ImportArgs),
    /// Check the config, show it, or print its schema.
    Config(config::ConfigArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual.
    Man(reference::ManArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Clap tells help and version from mistakes; a reader that went away is no mistake.
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            if wants_json() {
                report(&usage(&error));
            } else {
                let _ = error.print();
            }
            return ExitCode::from(Exit::Usage.code());
        }
    };
    let mut out = anstream::stdout();
    let ended = dispatch(cli.command, &mut out).and_then(|exit| Ok(out.flush().map(|()| exit)?));
    ExitCode::from(match ended {
        Ok(exit) => exit.code(),
        Err(failure) => {
            report(&failure);
            failure.exit.code()
        }
    })
}

/// Whether the command line asks for JSON, right or wrong as it may be.
fn wants_json() -> bool {
    std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

/// A command line that is not understood: its first paragraph says why, the others what to write.
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let (why, rest) = text.split_once("\n\n").unwrap_or((text.as_str(), ""));
    let failure = Failure::new(Exit::Usage, why.trim_start_matches("error: ").trim());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let hints: Vec<String> = rest.split("\n\n").map(words).filter(|hint| !hint.is_empty()).collect();
    if hints.is_empty() { failure } else { failure.hint(hints.join("; ")) }
}

/// One clear message, and what to do; an object on one line for those who asked for `--json`.
fn report(failure: &Failure) {
    if failure.message.is_empty() {
        return;
    }
    let mut err = anstream::stderr();
    if wants_json() {
        let error = anstream::adapter::strip_str(&failure.message).to_string();
        let told = serde_json::json!({ "error": error, "hint": failure.hint, "exit": failure.exit.code() });
        let _ = writeln!(err, "{told}");
        return;
    }
    let bad = show::BAD;
    let _ = if failure.message.starts_with("error") || failure.message.contains('\u{1b}') {
        writeln!(err, "{}", failure.message)
    } else {
        writeln!(err, "{bad}error{bad:#}: {}", failure.message)
    };
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "{0}help{0:#}: {hint}", show::NEXT);
    }
}

fn dispatch(command: Command, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    match command {
        Command::Classify(args) => classify::run(&args, out),
        Command::Serve(args) => serve::run(&args, out),
        Command::Config(args) => config::run(&args, out),
        Command::Simulate(args) => simulate::run(&args, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "failover", &mut script);
            out.write_all(&script)?;
            Ok(Exit::Ok)
        }
        Command::Man(args) => reference::man(&args, Cli::command(), out),
        Command::Demo(args) => block_on(demo::run(&args, out)),
        Command::Run(args) => {
            let begun = std::sync::OnceLock::new();
            block_on_then(run::run(&args, out, &begun), run::tidy(&begun))
        }
        Command::Status(args) => block_on(status::run(&args, out)),
        Command::Explain(args) => block_on(explain::run(&args, out)),
        Command::Doctor(args) => block_on(doctor::run(&args, out)),
        Command::Import(args) => block_on(import::run(&args, out)),
        Command::Auth(args) => block_on(auth::run(&args, out)),
        Command::Session(args) => block_on(session::run(&args, out)),
    }
}

/// Runs a command that waits for things; Ctrl-C drops it, and with it its connections.
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    block_on_then(command, async {})
}

/// The longest that tidying up may keep an interrupted command.
const TIDYING: std::time::Duration = std::time::Duration::from_secs(1);

/// As [`block_on`]; an interrupted command is tidied up after.
fn block_on_then(
    command: impl Future<Output = Result<Exit, Failure>>,
    tidy: impl Future<Output = ()>,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Busy, format!("cannot start: {error}")))?;
    let ended = runtime.block_on(async {
        let ended = tokio::select! {
            // First, so that the signal is followed before the command does anything that must be tidied up.
            biased;
            Ok(()) = tokio::signal::ctrl_c() => None,
            ended = command => Some(ended),
        };
        if let Some(ended) = ended {
            return ended;
        }
        let _ = tokio::time::timeout(TIDYING, tidy).await;
        Err(Failure::new(Exit::Interrupted, "interrupted"))
    });
    // A command substitution or a disk that hangs must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    ended
}

//! `failover run`: one prompt, whoever of the chain answers it.

use crate::exit::{Exit, Failure};
use crate::journal::Journal;
use crate::show::{Form, NEXT, Show};
use crate::{home, time};
use clap::Args;
use failover::provider::{AttemptFailure, ChatRequest, Reply, ReplyEvent, Usage};
use failover::runner::plan::{Visit, What};
use failover::runner::{Answer, RunError, SystemClock};
use failover::types::{AgentId, Clock, SessionId};
use failover::{Engine, EngineError, Setup, Turn};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Answers a prompt with the configured models, whoever of them can.
#[derive(Args, Debug)]
#[command(after_help = "The answer goes to standard output, decisions to standard error.

Examples:
  failover run \"why is the sky blue?\"
  failover run --session work --model openai/gpt-5@openai:second \"go on\"
  failover run --json \"hello\" | jq .answer")]
pub(crate) struct RunArgs {
    /// The prompt; `-` reads standard input.
    prompt: String,
    /// The config; without it, failover.json5 in the state directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The session: a fallback stays with it until the first choice is well again.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// A model for this call only, strictly: provider/model, or provider/model@provider:profile, or an alias.
    #[arg(long, value_name = "P/M[@PROFILE]")]
    model: Option<String>,
    /// One JSON object for machines, when all is done.
    #[arg(long)]
    json: bool,
    /// Say nothing of decisions.
    #[arg(long, short)]
    quiet: bool,
}

/// What an interrupted run leaves to be done: its session goes back to where it was (requirement S-6).
pub(crate) async fn tidy(begun: &OnceLock<Engine>) {
    if let Some(engine) = begun.get() {
        engine.settled().await;
        engine.flush().await;
    }
}

/// Runs the command; `begun` is told its engine.
pub(crate) async fn run(
    args: &RunArgs,
    out: &mut (impl Write + Send),
    begun: &OnceLock<Engine>,
) -> Result<Exit, Failure> {
    let loaded = home::load_config(&home::config_path(args.config.as_deref())?)?;
    let prompt = match args.prompt.as_str() {
        "-" => String::from_utf8_lossy(&crate::input::stdin()?).into_owned(),
        prompt => prompt.to_owned(),
    };
    if prompt.trim().is_empty() {
        let failure = Failure::new(Exit::Usage, "the prompt is empty");
        return Err(failure.hint("write what to ask; `-` reads it from standard input"));
    }
    let model = match &args.model {
        Some(written) => {
            let chain = failover::chain_config(&loaded, &AgentId::main());
            let chain = chain.map_err(|error| Failure::new(Exit::Config, crate::exit::chain(&error)))?;
            Some(crate::exit::model(&chain, written)?)
        }
        None => None,
    };
    let (store, warning) = home::open_or_memory().await;
    let form = if args.json || args.quiet { Form::Kept } else { Form::Lines };
    let show = Arc::new(Show::new(form, anstream::stderr()));
    let observer = Arc::new(Journal::new(&home::directory()?, Some(Arc::clone(&show) as _)));
    let mut builder = Engine::builder(loaded).store(store).observer(observer);
    if let Some(asked) = &model {
        builder = builder.provider(asked.model.provider().clone());
    }
    let built = builder.build().await;
    let Setup { engine, warnings, .. } = built.map_err(|error| failure(&error))?;
    for warning in warning.iter().chain(&warnings) {
        let _ = writeln!(anstream::stderr(), "{NEXT}warning{NEXT:#}: {warning}");
    }
    let mut turn = Turn::new(ChatRequest::prompt(prompt).with_stream(true));
    turn.session.clone_from(&args.session);
    turn.model = model;
    let _ = begun.set(engine.clone());
    let ended = answer(&engine, &turn, args.json, out).await;
    engine.flush().await;
    let decisions = show.take();
    match ended {
        Ok(result) => {
            if args.json {
                serde_json::to_writer(&mut *out, &result.json(&decisions))?;
                writeln!(out)?;
            } else {
                for notice in &result.notices {
                    let _ = writeln!(anstream::stderr(), "{notice}");
                }
            }
            match result.cut {
                None => Ok(Exit::Ok),
                Some(cut) => Err(Failure::new(Exit::Failed, format!("the answer is incomplete: {cut}"))),
            }
        }
        Err(error) => {
            if args.json {
                serde_json::to_writer(&mut *out, &error_json(&error, &decisions))?;
                writeln!(out)?;
            }
            let failure = run_failure(&error);
            Err(if args.json { Failure::shown(failure.exit) } else { failure })
        }
    }
}

/// A config that is valid and cannot be put to work.
pub(crate) fn failure(error: &EngineError) -> Failure {
    Failure::new(Exit::Config, crate::exit::chain(error))
}

/// What a turn gave.
struct Outcome {
    answer: String,
    model: String,
    profile: String,
    requested: Option<String>,
    usage: Option<Usage>,
    notices: Vec<String>,
    trail: Vec<Visit>,
    /// Why the answer is cut, where it is.
    cut: Option<String>,
}

impl Outcome {
    fn json(&self, decisions: &[Value]) -> Value {
        json!({
            "ok": self.cut.is_none(),
            "answer": self.answer,
            "model": self.model,
            "profile": self.profile,
            "requested": self.requested,
            "usage": self.usage.map(|usage| json!({ "input": usage.input, "output": usage.output })),
            "notices": self.notices,
            "incomplete": self.cut,
            "attempts": self.trail.iter().map(visit_json).collect::<Vec<_>>(),
            "decisions": decisions,
        })
    }
}

/// Answers the turn; the text is streamed to `out` unless it is kept for one JSON object.
async fn answer(
    engine: &Engine,
    turn: &Turn,
    kept: bool,
    out: &mut (impl Write + Send),
) -> Result<Outcome, RunError<AttemptFailure>> {
    let requested = engine.preview(turn).await.ok();
    let requested = requested.and_then(|chain| Some(chain.candidates().first()?.model.to_string()));
    let Answer { value, model, profile, trail, notices, .. } = engine.chat(turn).await?;
    let mut outcome = Outcome {
        answer: String::new(),
        model: model.to_string(),
        profile: profile.to_string(),
        requested,
        usage: None,
        notices: notices.iter().map(ToString::to_string).collect(),
        trail,
        cut: None,
    };
    let mut write = |text: &str, outcome: &mut Outcome| {
        outcome.answer.push_str(text);
        if !kept {
            // The answer is kept too; a reader that went away is noticed when the command ends.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    };
    match value {
        Reply::Complete(reply) => {
            outcome.usage = reply.usage;
            write(&reply.text(), &mut outcome);
        }
        Reply::Stream(mut stream) => {
            while let Some(event) = stream.next().await {
                match event {
                    Ok(ReplyEvent::Text(text)) => write(&text, &mut outcome),
                    Ok(ReplyEvent::Usage(usage)) => outcome.usage = Some(usage),
                    Ok(_) => {}
                    Err(failure) => {
                        outcome.cut = Some(failure.to_string());
                        break;
                    }
                }
            }
        }
    }
    write("\n", &mut outcome);
    outcome.answer.truncate(outcome.answer.len().saturating_sub(1));
    Ok(outcome)
}

/// One thing that the walk did, for machines.
pub(crate) fn visit_json(visit: &Visit) -> Value {
    match &visit.what {
        What::Skip(skip) => json!({
            "model": visit.model,
            "skipped": skip.code(),
            "reason": skip.reason(),
        }),
        What::Attempt(attempt) => json!({
            "model": visit.model,
            "profile": attempt.profile,
            "ok": attempt.error.is_none(),
            "reason": attempt.error.as_ref().map(|error| error.reason),
            "status": attempt.error.as_ref().and_then(|error| error.status),
            "code": attempt.error.as_ref().and_then(|error| error.code.clone()),
            "rule": attempt.error.as_ref().and_then(|error| error.rule.clone()),
            "summary": attempt.error.as_ref().map(|error| error.summary.clone()),
            "tookMs": failover::types::millis(attempt.took),
        }),
    }
}

fn error_json(error: &RunError<AttemptFailure>, decisions: &[Value]) -> Value {
    json!({
        "ok": false,
        "error": error.to_string(),
        "retryAt": error.soonest(),
        "attempts": error.trail().iter().map(visit_json).collect::<Vec<_>>(),
        "decisions": decisions,
    })
}

/// The summary: what was tried, and when trying again makes sense.
pub(crate) fn run_failure(error: &RunError<AttemptFailure>) -> Failure {
    let exit = if matches!(error, RunError::Exhausted(_) | RunError::Stopped { .. }) {
        Exit::Exhausted
    } else if matches!(error, RunError::Misuse(_)) {
        Exit::Config
    } else {
        Exit::Failed
    };
    // The summary names every attempt; a line each reads better.
    let text = error.to_string().replace("; ", "\n  ");
    let failure = Failure::new(exit, text);
    match error.soonest() {
        Some(at) => {
            let now = SystemClock::new().now();
            failure.hint(format!("usable again {} ({})", time::until(at, now), time::date(at)))
        }
        None => failure,
    }
}

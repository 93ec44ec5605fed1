//! `failover session`: show, select, reset.

use crate::exit::{Exit, Failure, chain};
use crate::{home, time};
use clap::{Args, Subcommand};
use failover::runner::SystemClock;
use failover::session::{
    ProbePolicy, ResetKind, SessionEntry, SessionKey, Sessions, reset, select_user, status,
};
use failover::types::{AgentId, Clock, ModelSelector, SessionId};
use serde_json::json;
use std::io::Write;

/// Shows or changes which model a session uses.
#[derive(Args, Debug)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Subcommand, Debug)]
enum SessionCommand {
    /// Which model is selected, by whom, and which one answers.
    Show {
        /// The session.
        session: SessionId,
        /// One JSON object for machines.
        #[arg(long)]
        json: bool,
    },
    /// Choose a model for the session. It stays until the session is reset, whatever fails.
    Select {
        /// The session.
        session: SessionId,
        /// provider/model, or provider/model@provider:profile.
        model: ModelSelector,
        /// One JSON object for machines: how the session stands then.
        #[arg(long)]
        json: bool,
    },
    /// Clear what the system chose: fallbacks and automatic pins. A choice of yours stays.
    Reset {
        /// The session.
        session: SessionId,
        /// As for a new conversation: a pinned profile of yours is released too.
        #[arg(long)]
        new: bool,
        /// One JSON object for machines: how the session stands then.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub(crate) async fn run(args: &SessionArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let sessions = Sessions::new(home::must_open().await?);
    let key = |session: &SessionId| SessionKey::new(AgentId::main(), session.clone());
    let failed = |error: failover::session::SessionsError| Failure::new(Exit::State, chain(&error));
    let now = SystemClock::new().now();
    match &args.command {
        SessionCommand::Show { session, json } => {
            let entry = sessions.get(&key(session)).await.map_err(failed)?.unwrap_or_default();
            if *json {
                return show_json(session, &entry, out);
            }
            let status = status(&entry, None, &ProbePolicy::default());
            let selected = status
                .selected
                .as_ref()
                .map_or_else(|| "the configured model".to_owned(), ToString::to_string);
            writeln!(out, "selected   {selected} ({})", status.source)?;
            if let Some(answering) = &status.answering {
                let reason = status.reason.map(|reason| format!(", {reason}")).unwrap_or_default();
                let since = status.since.map(|at| format!(" since {}", time::date(at))).unwrap_or_default();
                writeln!(out, "answering  {answering}{since}{reason}")?;
            }
            if let Some(at) = status.next_probe {
                writeln!(out, "next try   of the selected model {}", time::until(at, now))?;
            }
            if let Some(pin) = &status.pin {
                writeln!(out, "profile    {}", pin.profile)?;
            }
        }
        SessionCommand::Select { session, model, json } => {
            let change = |entry: &SessionEntry| Some(select_user(entry, model, now));
            let (entry, _) = sessions.update(&key(session), change).await.map_err(failed)?;
            if *json {
                return show_json(session, &entry, out);
            }
            writeln!(out, "{session} uses {model} until it is reset")?;
        }
        SessionCommand::Reset { session, new, json } => {
            let kind = if *new { ResetKind::New } else { ResetKind::Reset };
            let change = |entry: &SessionEntry| Some(reset(entry, kind));
            let (entry, _) = sessions.update(&key(session), change).await.map_err(failed)?;
            if *json {
                return show_json(session, &entry, out);
            }
            writeln!(out, "what the system chose for {session} is cleared")?;
        }
    }
    Ok(Exit::Ok)
}

fn show_json(session: &SessionId, entry: &SessionEntry, out: &mut impl Write) -> Result<Exit, Failure> {
    let status = status(entry, None, &ProbePolicy::default());
    let shown = json!({
        "session": session.as_str(),
        "selected": status.selected,
        "source": status.source,
        "answering": status.answering,
        "reason": status.reason,
        "since": status.since,
        "origin": status.origin,
        "nextProbe": status.next_probe,
        "unproven": status.unproven,
        "profile": status.pin.as_ref().map(|pin| pin.profile.as_str().to_owned()),
    });
    serde_json::to_writer(&mut *out, &shown)?;
    writeln!(out)?;
    Ok(Exit::Ok)
}

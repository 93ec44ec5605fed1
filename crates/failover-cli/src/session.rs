//! `failover session`: show, select, reset.

use crate::exit::{Exit, Failure, chain};
use crate::{home, time};
use clap::{Args, Subcommand};
use failover::runner::SystemClock;
use failover::session::{
    PinOwner, ProbePolicy, ResetKind, SessionEntry, SessionKey, SessionStatus, reset, select_user, status,
};
use failover::types::{Clock, SessionId, Timestamp};
use failover::{Engine, Setup};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Shows or changes which model a session uses.
#[derive(Args, Debug)]
pub(crate) struct SessionArgs {
    /// The config; without it, failover.json5 in the state directory, if there is one.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
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
    /// Choose a model for the session. It stays until `reset --new`, whatever fails.
    Select {
        /// The session.
        session: SessionId,
        /// provider/model, or provider/model@provider:profile, or an alias.
        model: String,
        /// One JSON object for machines: how the session stands then.
        #[arg(long)]
        json: bool,
    },
    /// Clear what the system chose: fallbacks and automatic pins. A choice of yours stays.
    Reset {
        /// The session.
        session: SessionId,
        /// As for a new conversation: a model or a profile that you chose goes, too.
        #[arg(long)]
        new: bool,
        /// One JSON object for machines: how the session stands then.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub(crate) async fn run(args: &SessionArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let engine = engine(args).await?;
    let key = |session: &SessionId| SessionKey::new(engine.agent().clone(), session.clone());
    let failed = |error: failover::session::SessionsError| Failure::new(Exit::State, chain(&error));
    let now = SystemClock::new().now();
    let sessions = engine.sessions();
    let (session, entry, json, said) = match &args.command {
        SessionCommand::Show { session, json } => {
            let entry = sessions.get(&key(session)).await.map_err(failed)?.unwrap_or_default();
            (session, entry, *json, None)
        }
        SessionCommand::Select { session, model, json } => {
            let choice = crate::exit::model(engine.chain_config(), model)?;
            engine.check_selection(&choice).map_err(|unknown| crate::exit::unknown(&unknown))?;
            let change = |entry: &SessionEntry| Some(select_user(entry, &choice, now));
            let (entry, _) = sessions.update(&key(session), change).await.map_err(failed)?;
            (
                session,
                entry,
                *json,
                Some(format!("{session} uses {choice} until `failover session reset {session} --new`")),
            )
        }
        SessionCommand::Reset { session, new, json } => {
            let kind = if *new { ResetKind::All } else { ResetKind::Reset };
            let change = |entry: &SessionEntry| Some(reset(entry, kind));
            let (entry, _) = sessions.update(&key(session), change).await.map_err(failed)?;
            let what = match (new, entry.selection().is_a_choice() || entry.is_pinned_by_a_person()) {
                (true, _) => format!("what was chosen for {session} is cleared, by whomever"),
                (false, true) => {
                    format!(
                        "what the system chose for {session} is cleared; what you chose stays, --new clears it, too"
                    )
                }
                (false, false) => format!("what the system chose for {session} is cleared"),
            };
            (session, entry, *json, Some(what))
        }
    };
    if let Some(said) = said.filter(|_| !json) {
        writeln!(out, "{said}")?;
        return Ok(Exit::Ok);
    }
    let stands = stands(&engine, &entry, now).await;
    if json { show_json(session, &stands, out) } else { show(&stands, now, out) }
}

/// An engine over the store, which must be there: it knows the config's names, and the windows of what sessions left. Only
/// who chooses needs the names: a faulty config keeps nobody from looking, and from undoing.
async fn engine(args: &SessionArgs) -> Result<Engine, Failure> {
    let loaded = match (home::load_config_if_any(args.config.as_deref()), &args.command) {
        (Err(_), SessionCommand::Show { .. } | SessionCommand::Reset { .. }) => home::empty_config()?,
        (loaded, _) => loaded?,
    };
    let builder = Engine::builder(loaded).store(home::must_open().await?);
    let Setup { engine, .. } = builder.build().await.map_err(|error| crate::run::failure(&error))?;
    Ok(engine)
}

/// How the session stands; its origin is due when the origin's own window ends.
pub(crate) async fn stands(engine: &Engine, entry: &SessionEntry, now: Timestamp) -> SessionStatus {
    let policy = ProbePolicy::default();
    let stands = status(entry, None, &policy, now);
    let Some(origin) = &stands.origin else { return stands };
    engine.runner().look_at(origin, now).await;
    status(entry, engine.origin_free_at(entry, origin, now), &policy, now)
}

fn show(status: &SessionStatus, now: Timestamp, out: &mut impl Write) -> Result<Exit, Failure> {
    let selected =
        status.selected.as_ref().map_or_else(|| "the configured model".to_owned(), ToString::to_string);
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
        let by = match pin.owner {
            PinOwner::User => "pinned by a person",
            PinOwner::Auto => "pinned automatically",
        };
        writeln!(out, "profile    {} ({by})", pin.profile)?;
    }
    Ok(Exit::Ok)
}

fn show_json(session: &SessionId, status: &SessionStatus, out: &mut impl Write) -> Result<Exit, Failure> {
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
        "profileSource": status.pin.as_ref().map(|pin| pin.owner.as_str()),
    });
    serde_json::to_writer(&mut *out, &shown)?;
    writeln!(out)?;
    Ok(Exit::Ok)
}

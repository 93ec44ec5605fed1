//! `failover explain`: the chain of a turn, and what the runner's own plan would do with it now.

use crate::exit::{Exit, Failure, chain};
use crate::show::{BAD, BOLD, DIM, GOOD, NEXT};
use crate::{status, time};
use anstyle::Style;
use clap::Args;
use failover::chain::{Candidate, Origin};
use failover::provider::{ChatRequest, Image, ImageSource, Part};
use failover::runner::plan::{Slot, Standing};
use failover::runner::{Explained, Fate};
use failover::types::{SessionId, Timestamp};
use failover::{Turn, TurnExplanation};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Shows the chain of a turn, and what would be tried now.
#[derive(Args, Debug)]
#[command(after_help = "Nothing is called and nothing is written.

Examples:
  failover explain
  failover explain --session work --json | jq .candidates[0].fate")]
pub(crate) struct ExplainArgs {
    /// The config; without it, failover.json5 in the state directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The session that the turn would belong to.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// A model for the turn only: provider/model, or provider/model@provider:profile, or an alias.
    #[arg(long, value_name = "P/M[@PROFILE]")]
    model: Option<String>,
    /// The turn has an image: the image model counts, where one is configured.
    #[arg(long)]
    image: bool,
    /// One JSON object for machines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(args: &ExplainArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let engine = status::engine(args.config.as_deref()).await?;
    let mut turn = Turn::new(ChatRequest::prompt(""));
    turn.session.clone_from(&args.session);
    let written = args.model.as_deref();
    turn.model = written.map(|written| crate::exit::model(engine.chain_config(), written)).transpose()?;
    if let Some(message) = turn.request.messages.first_mut().filter(|_| args.image) {
        // Nobody is asked, so any will do.
        message.parts.push(Part::Image(Image::new(ImageSource::Url(String::new()))));
    }
    let explained = engine.explain(&turn).await;
    let explained = explained.map_err(|error| Failure::new(Exit::Config, chain(&error)))?;
    // The setting that applies belongs to the config; a strict turn does not meet it.
    let dropped = engine.chain_config().dropped_chain().map(|dropped| {
        let primary =
            dropped.primary.origin.as_ref().map(|origin| format!(" at {origin}")).unwrap_or_default();
        format!("the plain model string{primary} drops the defaults' fallbacks ({})", dropped.dropped.len())
    });
    if args.json {
        serde_json::to_writer(&mut *out, &as_json(&explained, dropped.as_deref()))?;
        writeln!(out)?;
    } else {
        as_text(&explained, dropped.as_deref(), out)?;
    }
    Ok(Exit::Ok)
}

/// What the chain says of a candidate, and what the plan does: the two lists are in step.
fn candidates(explained: &TurnExplanation) -> impl Iterator<Item = (&Candidate, &Explained)> {
    explained.chain.candidates().iter().zip(&explained.plan.candidates)
}

fn written(origin: Option<&Origin>) -> Value {
    origin.map_or(
        Value::Null,
        |origin| json!({ "file": origin.file, "line": origin.line, "path": origin.path }),
    )
}

fn as_json(explained: &TurnExplanation, dropped: Option<&str>) -> Value {
    let TurnExplanation { chain, plan, .. } = explained;
    let setting = chain.policy().setting();
    let listed: Vec<Value> = candidates(explained)
        .map(|(candidate, plan)| {
            json!({
                "model": candidate.model,
                "rule": candidate.rule.number(),
                "ruleText": candidate.rule.text(),
                "written": written(candidate.origin.as_ref()),
                "fate": fate_json(&plan.fate),
                "profiles": plan.profiles.iter().map(slot_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    let unresolved = chain.unresolved().iter().map(|left_out| {
        json!({
            "reference": left_out.reference.text,
            "written": written(left_out.reference.origin.as_ref()),
            "why": left_out.why.to_string(),
        })
    });
    json!({
        "now": plan.now,
        "source": chain.selection().source().as_str(),
        "selected": chain.selection().model(),
        "fallbacks": {
            "policy": chain.policy().as_str(),
            "form": setting.map(|(kind, _)| kind.as_str()),
            "written": written(setting.and_then(|(_, origin)| origin)),
            "text": chain.policy().to_string(),
            "warning": dropped,
        },
        "candidates": listed,
        "unresolved": unresolved.collect::<Vec<_>>(),
        "worstCase": {
            "calls": plan.worst.calls,
            "waitingMs": failover::types::millis(plan.worst.waiting),
        },
    })
}

fn fate_json(fate: &Fate) -> Value {
    match fate {
        Fate::Tried { profile, probe } => json!({ "state": "tried", "profile": profile, "probe": probe }),
        Fate::Skipped(skip) => json!({
            "state": "skipped",
            "why": skip.code(),
            "reason": skip.reason(),
            "text": skip.to_string(),
        }),
        Fate::NotReached => json!({ "state": "not_reached" }),
    }
}

fn slot_json(slot: &Slot) -> Value {
    let (state, reason, until) = match slot.standing {
        Standing::Ready => ("ready", None, None),
        Standing::Cold => ("unproven", None, None),
        Standing::Recovering { reason } => ("recovering", Some(reason), None),
        Standing::Out { reason, until } => ("out", Some(reason), Some(until)),
        Standing::Paused => ("paused", None, None),
    };
    json!({
        "profile": slot.profile,
        "state": state,
        "reason": reason,
        "until": until,
        "refusedThisSession": slot.skipped,
    })
}

fn as_text(
    explained: &TurnExplanation,
    dropped: Option<&str>,
    out: &mut (impl Write + Send),
) -> Result<(), Failure> {
    let TurnExplanation { chain, plan, .. } = explained;
    let selection = chain.selection();
    let source = selection.source().as_str().replace('_', " ");
    writeln!(out, "{} is selected ({source}); {}", selection.model(), chain.policy())?;
    if let Some(dropped) = dropped {
        writeln!(out, "{NEXT}warning{NEXT:#}: {dropped}")?;
    }
    for (at, (candidate, plan_of)) in candidates(explained).enumerate() {
        let (style, text) = fate_text(&plan_of.fate);
        writeln!(out, "\n{}. {BOLD}{}{BOLD:#}  {style}{text}{style:#}", at + 1, candidate.model)?;
        let place = candidate.origin.as_ref().map(|origin| format!(", {origin}")).unwrap_or_default();
        writeln!(out, "   {DIM}{}: {}{place}{DIM:#}", candidate.rule.number(), candidate.rule.text())?;
        for slot in &plan_of.profiles {
            writeln!(out, "   {}  {}", slot.profile, slot_text(slot, plan.now))?;
        }
    }
    for unresolved in chain.unresolved() {
        writeln!(out, "\n{NEXT}left out{NEXT:#}: {unresolved}")?;
    }
    let (calls, waiting) = (plan.worst.calls, time::duration(plan.worst.waiting));
    writeln!(out, "\nAt most {calls} calls, and {waiting} of waiting besides them, whatever fails.")?;
    Ok(())
}

fn fate_text(fate: &Fate) -> (Style, String) {
    match fate {
        Fate::Tried { profile, probe: false } => (GOOD, format!("would be tried with {profile}")),
        Fate::Tried { profile, probe: true } => (NEXT, format!("would be tried, as a probe, with {profile}")),
        Fate::Skipped(skip) => (BAD, format!("would be skipped: {skip}")),
        Fate::NotReached => (DIM, "would not be reached".to_owned()),
    }
}

fn slot_text(slot: &Slot, now: Timestamp) -> String {
    let standing = match slot.standing {
        Standing::Ready => "ready".to_owned(),
        Standing::Cold => "ready, not used yet".to_owned(),
        Standing::Recovering { reason } => format!("its window ({reason}) has ended; one run tries it first"),
        Standing::Out { reason, until } => {
            format!("out ({reason}), usable again {}", time::until(until, now))
        }
        Standing::Paused => "paused".to_owned(),
    };
    if slot.skipped { format!("{standing}; it refused this session not long ago") } else { standing }
}

//! `failover auth list` and `probe`.

use super::{Cli, warn};
use crate::exit::{Exit, Failure};
use crate::time;
use comfy_table::{ContentArrangement, Table, presets};
use failover::auth::{Window, WindowScope, WindowSource};
use failover::runner::SystemClock;
use failover::types::{Clock, CredentialKind, ProfileId, Timestamp};
use failover::{Account, Probed, ProbedEnd, Setup};
use serde_json::{Value, json};
use std::io::Write;

/// Shows every credential.
pub(super) async fn list(cli: &Cli, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let Setup { engine, warnings, .. } = cli.engine().await?;
    let accounts = engine.accounts().await;
    let now = SystemClock::new().now();
    if cli.json {
        let profiles: Vec<Value> = accounts.iter().map(|account| object(account, now)).collect();
        let shown = json!({ "now": now, "agent": cli.agent, "profiles": profiles, "warnings": warnings });
        serde_json::to_writer(&mut *out, &shown)?;
        writeln!(out)?;
        return Ok(Exit::Ok);
    }
    for warning in &warnings {
        warn(warning);
    }
    if accounts.is_empty() {
        writeln!(out, "no credentials: `failover auth add PROVIDER` stores one")?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
    table.set_header(["profile", "type", "order", "state", "reason", "until", "next probe", "last use"]);
    for account in &accounts {
        let row = row(account, now);
        table.add_row(row);
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(Exit::Ok)
}

fn kind(account: &Account) -> &'static str {
    account.kind.map_or("", CredentialKind::as_str)
}

/// `usable`, the state of the whole profile, or why it is not used at all.
fn state(account: &Account) -> &'static str {
    account.left_out.map_or_else(|| account.availability.code(), |_| "left_out")
}

fn row(account: &Account, now: Timestamp) -> [String; 8] {
    let place = match (account.position, account.why) {
        (Some(position), Some(why)) => format!("{position} ({})", why.code().replace('_', " ")),
        _ => "-".to_owned(),
    };
    let partly: Vec<&Window> = account.usage.active(now).filter(|window| is_of_a_model(window)).collect();
    let (reason, until) = if let Some(left_out) = account.left_out {
        let by = account.pause().map(|pause| format!(" by {}", pause.by)).unwrap_or_default();
        (format!("{left_out}{by}"), None)
    } else if let Some(reason) = account.availability.reason() {
        (reason.to_string(), account.availability.until())
    } else if let Some(first) = partly.first() {
        // A window of one model leaves the profile usable, and is worth knowing.
        let models: Vec<String> = partly.iter().filter_map(|window| model(window)).collect();
        (format!("{} ({} only)", first.reason, models.join(", ")), Some(first.until))
    } else {
        let models: Vec<String> = account.usage.pauses().filter_map(|pause| scope(&pause.scope)).collect();
        let paused = (!models.is_empty()).then(|| format!("paused ({} only)", models.join(", ")));
        (paused.unwrap_or_default(), None)
    };
    let ago = |at: Timestamp| format!("{} ago", time::duration(now.since(at)));
    [
        account.profile.to_string(),
        kind(account).to_owned(),
        place,
        state(account).replace('_', " "),
        reason,
        until.map(|at| time::until(at, now)).unwrap_or_default(),
        account.next_probe.map(|at| time::until(at, now)).unwrap_or_default(),
        account.usage.last_used().map_or_else(|| "never".to_owned(), ago),
    ]
}

fn is_of_a_model(window: &Window) -> bool {
    model(window).is_some()
}

fn model(window: &Window) -> Option<String> {
    scope(&window.scope)
}

fn scope(scope: &WindowScope) -> Option<String> {
    match scope {
        WindowScope::Profile => None,
        WindowScope::Model(name) => Some(name.to_string()),
    }
}

fn source(source: &WindowSource) -> String {
    match source {
        WindowSource::Ladder => "ladder".to_owned(),
        WindowSource::Hint => "hint".to_owned(),
        WindowSource::Import => "import".to_owned(),
        WindowSource::Reset(name) => format!("reset: {name}"),
        _ => "other".to_owned(),
    }
}

fn object(account: &Account, now: Timestamp) -> Value {
    let windows = account.usage.active(now).map(|window| {
        json!({
            "model": model(window),
            "reason": window.reason,
            "until": window.until,
            "source": source(&window.source),
            "since": window.set_at,
        })
    });
    let pauses = account
        .usage
        .pauses()
        .map(|pause| json!({ "model": scope(&pause.scope), "by": pause.by, "at": pause.at }));
    json!({
        "profile": account.profile,
        "provider": account.provider,
        "type": account.kind.map(CredentialKind::as_str),
        "secretFrom": if account.from_config { "config" } else { "store" },
        "position": account.position,
        "why": account.why.map(failover::auth::Why::code),
        "orderFrom": account.source.code(),
        "state": state(account),
        "leftOut": account.left_out.map(failover::auth::LeftOutReason::code),
        "reason": account.availability.reason(),
        "until": account.availability.until(),
        "nextProbe": account.next_probe,
        "lastUsed": account.usage.last_used(),
        "lastFailure": account.usage.last_failure_at(),
        "errors": account.usage.error_count(),
        "expires": account.expires,
        "windows": windows.collect::<Vec<_>>(),
        "pauses": pauses.collect::<Vec<_>>(),
    })
}

/// Tries a credential once.
pub(super) async fn probe(
    cli: &Cli,
    profile: &ProfileId,
    model: Option<&str>,
    out: &mut (impl Write + Send),
) -> Result<Exit, Failure> {
    let Setup { engine, .. } = cli.engine().await?;
    let provider = profile.provider_id();
    let meant = model.map(|written| engine.model_meant(&provider, written)).transpose();
    let meant = meant.map_err(|unknown| crate::exit::unknown(&unknown))?;
    let Some(model) = meant.or_else(|| engine.model_of(&provider)) else {
        let failure = Failure::new(Exit::Usage, format!("the config names no model of {provider}"));
        return Err(failure.hint("name one: --model provider/model"));
    };
    let Probed { end, availability, .. } = engine.probe(profile, &model).await;
    engine.flush().await;
    let now = SystemClock::new().now();
    let (result, text, exit) = match &end {
        ProbedEnd::Answered { took } => {
            ("answered", format!("{profile} answered at {model} after {}", time::duration(*took)), Exit::Ok)
        }
        ProbedEnd::Failed { error, took } => {
            let status = error.status.map(|status| format!(" ({status})")).unwrap_or_default();
            let after = time::duration(*took);
            let text = format!("{profile} failed at {model}: {}{status} after {after}", error.reason);
            ("failed", text, Exit::Failed)
        }
        ProbedEnd::NotTried(skip) => {
            ("not_tried", format!("{profile} was not tried at {model}: {skip}"), Exit::Exhausted)
        }
        ProbedEnd::Misuse(text) => ("not_tried", text.clone(), Exit::Config),
    };
    let error = match &end {
        ProbedEnd::Failed { error, .. } => Some(error),
        ProbedEnd::Answered { .. } | ProbedEnd::NotTried(_) | ProbedEnd::Misuse(_) => None,
    };
    let took = match &end {
        ProbedEnd::Answered { took } | ProbedEnd::Failed { took, .. } => Some(failover::types::millis(*took)),
        ProbedEnd::NotTried(_) | ProbedEnd::Misuse(_) => None,
    };
    let skipped = match &end {
        ProbedEnd::NotTried(skip) => Some(skip.code()),
        ProbedEnd::Answered { .. } | ProbedEnd::Failed { .. } | ProbedEnd::Misuse(_) => None,
    };
    let shown = json!({
        "profile": profile,
        "model": model,
        "result": result,
        "tookMs": took,
        "reason": error.map(|error| error.reason),
        "status": error.and_then(|error| error.status),
        "summary": error.map(|error| &error.summary),
        "skipped": skipped,
        "state": availability.code(),
        "until": availability.until(),
    });
    let detail = error.filter(|error| !error.summary.is_empty());
    let detail = detail.map(|error| format!("\n  {}", crate::show::cut(&error.summary, 76)));
    let until = availability.until().map(|at| format!("\n  it is out until {}", time::date(at)));
    let until = until.filter(|_| availability.until().is_some_and(|at| at > now));
    let text = format!("{text}{}{}", detail.unwrap_or_default(), until.unwrap_or_default());
    if exit == Exit::Ok || cli.json {
        cli.say(out, &shown, &text)?;
        return if exit == Exit::Ok { Ok(exit) } else { Err(Failure::shown(exit)) };
    }
    Err(Failure::new(exit, text))
}

//! What the command reads and writes besides its arguments, as one table each, and the manual pages.

use crate::exit::{CODES, Exit, Failure};
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Environment variables: name, and what it does.
pub(crate) const ENVIRONMENT: &[(&str, &str)] = &[
    ("FAILOVER_HOME", "the state directory; `~/.failover` without it"),
    (
        "FAILOVER_LOG",
        "what `failover serve` logs (`info`): a level, or one per target, such as `warn,failover_gateway=debug`",
    ),
    (
        "FAILOVER_SKIP_TTL_MS",
        "how long a refused fallback credential is left out of a session, in milliseconds, where the config does not say",
    ),
    ("FAILOVER_STORE_KEY", "the key that seals secrets in a store shared by machines"),
    (
        "FAILOVER_STORE_URL",
        "the store shared by machines: `redis://…`; without it, the one in the state directory",
    ),
    ("OPENCLAW_FALLBACK_SKIP_TTL_MS", "read where `FAILOVER_SKIP_TTL_MS` is not set"),
    ("OPENCLAW_STATE_DIR", "where `failover import openclaw` looks; `~/.openclaw` without it"),
    ("NO_COLOR", "set to anything: no colours, as in pipes"),
];

/// Files and directories: path, and what it is.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("$FAILOVER_HOME/failover.json5", "the config, where `--config` names no other"),
    (
        "$FAILOVER_HOME/state/",
        "the store: sessions, health, leases, secrets; readable by its owner only (0700), one process owns it",
    ),
    (
        "$FAILOVER_HOME/state/admin-token",
        "the admin token of every `failover serve` on this directory, where the config lists none; readable by its owner only (0600)",
    ),
    (
        "$FAILOVER_HOME/decisions.jsonl",
        "the last decisions of `run` and `serve`, a line of JSON each, for `failover status`; set aside as `decisions.1.jsonl` at 1 MiB",
    ),
];

/// Prints the manual.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  failover man | man -l -\n  failover man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write a page per command into this directory, instead of printing the main one.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs `man`.
pub(crate) fn man(args: &ManArgs, command: Command, out: &mut dyn Write) -> Result<Exit, Failure> {
    // Names of subcommands, and `help`, are filled in here.
    let mut command = command;
    command.build();
    match &args.dir {
        None => page(&command, out)?,
        Some(dir) => {
            let written = std::fs::create_dir_all(dir).and_then(|()| pages(&command, dir));
            let count = written.map_err(|error| {
                Failure::new(Exit::Failed, format!("cannot write into {}: {error}", dir.display()))
            })?;
            writeln!(out, "{count} pages in {}", dir.display())?;
        }
    }
    Ok(Exit::Ok)
}

/// A page for `command` and each command under it.
fn pages(command: &Command, dir: &Path) -> std::io::Result<usize> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut file = std::fs::File::create(dir.join(format!("{name}.1")))?;
    page(command, &mut file)?;
    let mut count = 1;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        count += pages(inner, dir)?;
    }
    Ok(count)
}

fn page(command: &Command, out: &mut dyn Write) -> std::io::Result<()> {
    let main = !command.get_display_name().unwrap_or_default().contains('-');
    // Its exit codes stand in a section of their own.
    let shown = if main { command.clone().after_help("") } else { command.clone() };
    Man::new(shown).render(&mut *out)?;
    if !main {
        return Ok(());
    }
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (_, code, meaning) in CODES {
        roff.control("TP", ["5"]);
        roff.text([bold(code.to_string())]);
        roff.text([roman(*meaning)]);
    }
    for (title, rows) in [("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)] {
        roff.control("SH", [title]);
        for (name, what) in rows {
            roff.control("TP", []);
            roff.text([bold(*name)]);
            roff.text([roman(what.replace('`', ""))]);
        }
    }
    roff.to_writer(out)
}

#[cfg(test)]
mod tests;

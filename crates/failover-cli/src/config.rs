//! `failover config`: check, show, schema.

use crate::exit::{Exit, Failure};
use crate::home;
use clap::{Args, Subcommand};
use failover::config::{Diagnostic, LoadError};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Checks the config, shows it, or prints its schema.
#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand, Debug)]
enum ConfigCommand {
    /// Say what is wrong with the config, every fault with its line.
    Check {
        #[command(flatten)]
        file: ConfigFile,
        /// One JSON object for machines: `ok`, and every fault with its place.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema, for editors.
    Schema,
    /// Show the config as it is in force. It holds references to keys, never keys.
    Show {
        #[command(flatten)]
        file: ConfigFile,
        /// With every default filled in that the config leaves open.
        #[arg(long)]
        effective: bool,
        /// On one line, for machines.
        #[arg(long)]
        json: bool,
    },
}

/// The config, named as one likes: by itself, or as in every other command.
#[derive(Args, Debug)]
struct ConfigFile {
    /// The config; without it, failover.json5 in the state directory.
    file: Option<PathBuf>,
    /// The same, as other commands take it.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    fn path(&self) -> Result<PathBuf, Failure> {
        home::config_path(self.file.as_deref().or(self.config.as_deref()))
    }
}

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    match &args.command {
        ConfigCommand::Check { file, json } => {
            let path = file.path()?;
            if *json {
                return check_json(&path, out);
            }
            let loaded = home::load_config(&path)?;
            failover::check(&loaded).map_err(|faults| home::faulty(&faults))?;
            writeln!(out, "{} is valid", path.display())?;
        }
        ConfigCommand::Schema => {
            serde_json::to_writer_pretty(&mut *out, failover::config::json_schema())?;
            writeln!(out)?;
        }
        ConfigCommand::Show { file, effective, json } => {
            let loaded = home::load_config(&file.path()?)?;
            let mut shown = loaded.effective();
            if *effective {
                let bad =
                    |error: failover::SettingsError| Failure::new(Exit::Config, crate::exit::chain(&error));
                let policy = failover::run_policy(&loaded.config).map_err(bad)?;
                if let Some(map) = shown.as_object_mut() {
                    map.insert("runner".to_owned(), serde_json::to_value(&*policy)?);
                }
            }
            if *json {
                serde_json::to_writer(&mut *out, &shown)?;
            } else {
                serde_json::to_writer_pretty(&mut *out, &shown)?;
            }
            writeln!(out)?;
        }
    }
    Ok(Exit::Ok)
}

fn check_json(path: &Path, out: &mut dyn Write) -> Result<Exit, Failure> {
    let file = path.display().to_string();
    let faults: Vec<Value> = match failover::config::load(path) {
        Ok(loaded) => {
            let found = failover::check(&loaded).err();
            found.iter().flat_map(|found| &found.faults).map(fault_json).collect()
        }
        Err(LoadError::Invalid(found)) => found.faults.iter().map(fault_json).collect(),
        Err(error) => {
            let hint = home::unread(&error);
            vec![json!({ "file": file, "message": crate::exit::chain(&error), "hint": hint })]
        }
    };
    let ok = faults.is_empty();
    serde_json::to_writer(&mut *out, &json!({ "ok": ok, "file": file, "faults": faults }))?;
    writeln!(out)?;
    Ok(if ok { Exit::Ok } else { Exit::Config })
}

fn fault_json(fault: &Diagnostic) -> Value {
    json!({
        "file": fault.file,
        "line": fault.line,
        "column": fault.column,
        "path": fault.path,
        "message": fault.message,
        "hint": fault.hint,
    })
}

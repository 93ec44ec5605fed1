//! `failover config`: check, show, schema.

use crate::exit::{Exit, Failure};
use crate::home;
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::PathBuf;

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
        /// The config; without it, failover.json5 in the state directory.
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema, for editors.
    Schema,
    /// Show the config as it is in force. It holds references to keys, never keys.
    Show {
        /// The config; without it, failover.json5 in the state directory.
        file: Option<PathBuf>,
        /// With every default filled in that the config leaves open.
        #[arg(long)]
        effective: bool,
    },
}

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    match &args.command {
        ConfigCommand::Check { file } => {
            let path = home::config_path(file.as_deref())?;
            let loaded = home::load_config(&path)?;
            let bad = |error: failover::SettingsError| Failure::new(Exit::Config, crate::exit::chain(&error));
            failover::run_policy(&loaded.config).map_err(bad)?;
            failover::cooldown_policy(&loaded.config).map_err(bad)?;
            failover::classifier(&loaded).map_err(bad)?;
            writeln!(out, "{} is valid", path.display())?;
        }
        ConfigCommand::Schema => {
            serde_json::to_writer_pretty(&mut *out, failover::config::json_schema())?;
            writeln!(out)?;
        }
        ConfigCommand::Show { file, effective } => {
            let loaded = home::load_config(&home::config_path(file.as_deref())?)?;
            let mut shown = loaded.effective();
            if *effective {
                let bad =
                    |error: failover::SettingsError| Failure::new(Exit::Config, crate::exit::chain(&error));
                let policy = failover::run_policy(&loaded.config).map_err(bad)?;
                if let Some(map) = shown.as_object_mut() {
                    map.insert("runner".to_owned(), serde_json::to_value(&*policy)?);
                }
            }
            serde_json::to_writer_pretty(&mut *out, &shown)?;
            writeln!(out)?;
        }
    }
    Ok(Exit::Ok)
}

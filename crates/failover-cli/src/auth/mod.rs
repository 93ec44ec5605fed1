//! `failover auth`: credentials, the order in which they are tried, and what keeps them away.

mod add;
mod list;
mod steer;

use crate::exit::{Exit, Failure, chain};
use crate::home;
use clap::{Args, Subcommand};
use failover::config::Loaded;
use failover::credentials::Profiles;
use failover::runner::health::Subject;
use failover::store::StoreError;
use failover::types::{AgentId, FailoverReason, ProfileId, ProviderId, SessionId};
use failover::{Engine, Setup};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

/// Keeps credentials, and steers which of them are used.
#[derive(Args, Debug)]
#[command(after_help = "Changes reach running processes that share the state directory within a second.

Examples:
  failover auth add openai                      (asks for the key, without showing it)
  failover auth add openai:work --env OPENAI_WORK_KEY
  failover auth list
  failover auth order openai openai:work openai:default
  failover auth pause openai:work")]
pub(crate) struct AuthArgs {
    /// The agent whose credentials these are.
    #[arg(long, global = true, value_name = "ID", default_value = "main")]
    agent: AgentId,
    /// The config; without it, failover.json5 in the state directory, if there is one.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One JSON object for machines.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Subcommand, Debug)]
enum AuthCommand {
    /// Show every credential: its place in the order and why, its state and why, until when.
    #[command(
        after_help = "Examples:\n  failover auth list\n  failover auth list --json | jq '.profiles[] | select(.state != \"usable\")'"
    )]
    List,
    /// Store a credential, or a reference to one. The secret is asked for, or read from standard input.
    Add(add::AddArgs),
    /// Take a credential out of the store, and forget what was held against it.
    #[command(after_help = "Examples:\n  failover auth remove openai:work")]
    Remove {
        /// The profile: provider:name.
        profile: ProfileId,
    },
    /// Show or set the order in which a provider's credentials are tried. It goes before the config's.
    #[command(
        after_help = "Examples:\n  failover auth order openai\n  failover auth order openai openai:work openai:default\n  failover auth order openai --clear"
    )]
    Order {
        /// The provider.
        provider: ProviderId,
        /// The profiles, first to last; those that are not named are not used. Without any, the order is shown.
        #[arg(conflicts_with = "clear")]
        profiles: Vec<ProfileId>,
        /// Take the stored order away: the config's counts again.
        #[arg(long)]
        clear: bool,
    },
    /// Pin a session to a credential, or release it. The session's model stays as it is.
    #[command(
        after_help = "Examples:\n  failover auth pin openai:work --session s1\n  failover auth pin --release --session s1"
    )]
    Pin {
        /// The profile: this one and no other, until a new session begins.
        #[arg(required_unless_present = "release", conflicts_with = "release")]
        profile: Option<ProfileId>,
        /// The session.
        #[arg(long, value_name = "ID")]
        session: SessionId,
        /// Take a person's pin away.
        #[arg(long)]
        release: bool,
    },
    /// Lift what keeps a credential away: cooldowns, blocks and disablements. A pause stays.
    #[command(
        after_help = "Examples:\n  failover auth clear openai:work\n  failover auth clear openai:work --reason billing\n  failover auth clear --all"
    )]
    Clear {
        /// A profile (provider:name), or a provider as a whole.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        target: Option<Target>,
        /// Of one model only: provider/model, or the provider's own name for one of the config.
        #[arg(long)]
        model: Option<String>,
        /// Of one reason only: `rate_limit`, `billing`, `auth` …
        #[arg(long, conflicts_with = "model")]
        reason: Option<FailoverReason>,
        /// Of every profile and provider.
        #[arg(long)]
        all: bool,
    },
    /// Keep requests away from a profile, a provider or a model, until it is resumed by hand.
    #[command(
        after_help = "Examples:\n  failover auth pause openai:work\n  failover auth pause openai:work --model gpt-5\n  failover auth pause openai"
    )]
    Pause {
        /// A profile (provider:name), or a provider as a whole.
        target: Target,
        /// One model only: provider/model, or the provider's own name for one of the config.
        #[arg(long)]
        model: Option<String>,
    },
    /// End a pause.
    #[command(after_help = "Examples:\n  failover auth resume openai:work")]
    Resume {
        /// A profile (provider:name), or a provider as a whole.
        target: Target,
        /// One model only: provider/model, or the provider's own name for one of the config.
        #[arg(long)]
        model: Option<String>,
    },
    /// Try a credential now, with one real and small request, whatever keeps it away.
    #[command(
        after_help = "An answer lifts what it disproves; a failure changes nothing.\n\nExamples:\n  failover auth probe openai:work\n  failover auth probe openai:work --model openai/gpt-5"
    )]
    Probe {
        /// The profile: provider:name.
        profile: ProfileId,
        /// The model to ask: provider/model, or the provider's own name for one of the config. Without it, the first of the
        /// provider that the config names.
        #[arg(long)]
        model: Option<String>,
    },
}

/// What is paused, resumed or cleared.
#[derive(Clone, Debug)]
enum Target {
    Profile(ProfileId),
    Provider(ProviderId),
}

impl FromStr for Target {
    type Err = failover::types::IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(':') { text.parse().map(Self::Profile) } else { text.parse().map(Self::Provider) }
    }
}

impl Target {
    fn subject(&self) -> Subject {
        match self {
            Self::Profile(profile) => Subject::Profile(profile.clone()),
            Self::Provider(provider) => Subject::Provider(provider.clone()),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Profile(profile) => write!(f, "{profile}"),
            Self::Provider(provider) => write!(f, "{provider} as a whole"),
        }
    }
}

/// Runs the command.
pub(crate) async fn run(args: &AuthArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let cli = Cli { agent: args.agent.clone(), config: args.config.clone(), json: args.json };
    match &args.command {
        AuthCommand::List => list::list(&cli, out).await,
        AuthCommand::Probe { profile, model } => list::probe(&cli, profile, model.as_deref(), out).await,
        AuthCommand::Add(add) => add::add(&cli, add, out).await,
        AuthCommand::Remove { profile } => steer::remove(&cli, profile, out).await,
        AuthCommand::Order { provider, profiles, clear } => {
            steer::order(&cli, provider, profiles, *clear, out).await
        }
        AuthCommand::Pin { profile, session, .. } => steer::pin(&cli, profile.as_ref(), session, out).await,
        AuthCommand::Clear { target, model, reason, .. } => {
            steer::clear(&cli, target.as_ref(), model.as_deref(), *reason, out).await
        }
        AuthCommand::Pause { target, model } => steer::pause(&cli, target, model.as_deref(), true, out).await,
        AuthCommand::Resume { target, model } => {
            steer::pause(&cli, target, model.as_deref(), false, out).await
        }
    }
}

/// What all of the commands have in common.
struct Cli {
    agent: AgentId,
    config: Option<PathBuf>,
    json: bool,
}

impl Cli {
    /// The config; an empty one where none was named and there is none.
    fn load(&self) -> Result<Loaded, Failure> {
        home::load_config_if_any(self.config.as_deref())
    }

    /// The agent's tables in a store that must be there.
    async fn profiles(&self) -> Result<Profiles, Failure> {
        Ok(Profiles::new(home::must_open().await?, self.agent.clone()))
    }

    /// An engine over a store that must be there, and what was left out of it.
    async fn engine(&self) -> Result<Setup, Failure> {
        let loaded = self.load()?;
        let store = home::must_open().await?;
        let builder = Engine::builder(loaded).store(store).agent(self.agent.clone());
        builder.build().await.map_err(|error| crate::run::failure(&error))
    }

    /// One object for machines, or a sentence for people.
    fn say(&self, out: &mut dyn Write, json: &Value, text: &str) -> Result<Exit, Failure> {
        if self.json {
            serde_json::to_writer(&mut *out, json)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{text}")?;
        }
        Ok(Exit::Ok)
    }
}

/// The state directory, or the process that owns it, failed.
fn failed(error: &StoreError) -> Failure {
    Failure::new(Exit::State, chain(error))
}

fn warn(text: &str) {
    let next = crate::show::NEXT;
    // A reader that went away must not stop the command.
    let _ = writeln!(anstream::stderr(), "{next}warning{next:#}: {text}");
}

//! `failover auth add`.

use super::{Cli, failed, warn};
use crate::exit::{Exit, Failure, chain};
use crate::input;
use clap::{Args, ValueEnum};
use failover::credentials::{Secrets, SourceError};
use failover::runner::SystemClock;
use failover::types::{
    Clock, Credential, IdError, ProfileId, ProviderId, Secret, SecretError, SecretSource, Timestamp,
};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Stores a credential, or a reference to one.
#[derive(Args, Debug)]
#[command(
    after_help = "The key itself is never an argument: others can read those. It is asked for without being
shown, or read from standard input.

Examples:
  failover auth add openai
  pass show openai | failover auth add openai:work
  failover auth add openai:work --env OPENAI_WORK_KEY
  failover auth add acme:team --command 'op read op://team/acme/key'"
)]
pub(super) struct AddArgs {
    /// The profile (provider:name), or a provider for its default one.
    profile: String,
    /// What the secret is.
    #[arg(long = "type", value_enum, default_value_t = Kind::ApiKey)]
    kind: Kind,
    /// The account, which names the profile where only a provider was given.
    #[arg(long)]
    email: Option<String>,
    /// Store the name of a variable that is read at each use, and no secret.
    #[arg(long, value_name = "NAME", group = "reference")]
    env: Option<String>,
    /// Store the path of a file that is read at each use, and no secret. Only its owner may read it.
    #[arg(long, value_name = "PATH", group = "reference")]
    file: Option<PathBuf>,
    /// Store a command whose output is read at each use, and no secret. No shell is involved.
    #[arg(long, value_name = "COMMAND", group = "reference")]
    command: Option<String>,
    /// When a token runs out: 2026-12-31T00:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires: Option<Timestamp>,
}

/// What a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// An API key.
    ApiKey,
    /// A bearer token that is never refreshed.
    Token,
}

fn time(text: &str) -> Result<Timestamp, String> {
    let at: jiff::Timestamp = text.parse().map_err(|_| "write it as 2026-12-31T00:00:00Z".to_owned())?;
    u64::try_from(at.as_millisecond()).map(Timestamp::from_millis).map_err(|_| "it is long past".to_owned())
}

/// The profile that is meant.
fn profile(args: &AddArgs) -> Result<ProfileId, IdError> {
    if args.profile.contains(':') {
        return args.profile.parse();
    }
    ProfileId::for_account(&args.profile.parse::<ProviderId>()?, args.email.as_deref())
}

/// Runs `add`.
pub(super) async fn add(cli: &Cli, args: &AddArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    let usage = |text: String| Failure::new(Exit::Usage, text);
    let id = profile(args).map_err(|error| usage(error.to_string()))?;
    if args.expires.is_some() && args.kind == Kind::ApiKey {
        return Err(usage("an API key has no end; use --type token with --expires".to_owned()));
    }
    let loaded = cli.load()?;
    let named = loaded.config.auth.profiles.get(&id).is_some_and(|profile| profile.key.is_some())
        || (id.name() == "default"
            && loaded.config.models.providers.get(&id.provider_id()).is_some_and(|p| p.api_key.is_some()));
    if named {
        let text = format!("the config says where the secret of {id} is, and that counts");
        return Err(usage(text).hint("remove it there, or choose another name"));
    }
    let source = source(args, &id).await?;
    let provider = id.provider_id();
    let credential = match args.kind {
        Kind::ApiKey => Credential::ApiKey { provider, key: source },
        Kind::Token => Credential::Token { provider, token: source, expires: args.expires },
    };
    let profiles = cli.profiles().await?;
    let replaced = profiles.credential(&id).await.map_err(|error| failed(&error))?.is_some();
    profiles.put(&id, &credential, SystemClock::new().now()).await.map_err(|error| failed(&error))?;
    let listed = loaded.config.auth.order.get(&id.provider_id());
    if listed.is_some_and(|order| !order.contains(&id)) {
        warn(&format!("auth.order.{} does not list {id}: it is not used until it does", id.provider()));
    }
    let done = if replaced { "replaced" } else { "stored" };
    let shown = json!({ "profile": id, "type": credential.kind().as_str(), "replaced": replaced });
    cli.say(out, &shown, &format!("{id} is {done}"))
}

/// Whether shells can have a variable of this name: a letter or an underscore, then those and digits.
fn is_variable(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(letter) && name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
}

/// The secret, or where it is found.
async fn source(args: &AddArgs, id: &ProfileId) -> Result<SecretSource, Failure> {
    let reference = match (&args.env, &args.file, &args.command) {
        (Some(name), ..) if is_variable(name) => SecretSource::Env(name.clone()),
        // It may be the key itself, so it is not shown.
        (Some(_), ..) => {
            let hint = "give the name of the variable that holds the key, not the key";
            return Err(Failure::new(Exit::Usage, "what --env gives is no name of a variable").hint(hint));
        }
        (_, Some(path), _) => {
            let path = std::path::absolute(path)
                .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", path.display())))?;
            SecretSource::File(path)
        }
        (.., Some(command)) => {
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            if words.is_empty() {
                return Err(Failure::new(Exit::Usage, "the command is empty; name a program"));
            }
            SecretSource::Command(words)
        }
        (None, None, None) => return literal(id).map(SecretSource::Literal),
    };
    match Secrets::new(Arc::new(SystemClock::new())).read(&reference).await {
        Ok(_) => {}
        // What is read there is no key, here or anywhere.
        Err(
            error @ (SourceError::Unfit { .. } | SourceError::Exposed { .. } | SourceError::NotAFile { .. }),
        ) => {
            return Err(Failure::new(Exit::Failed, chain(&error)));
        }
        Err(error) => warn(&format!("{}; stored all the same, since it is read at each use", chain(&error))),
    }
    Ok(reference)
}

/// The secret itself: asked for where a person sits there, else from standard input.
fn literal(id: &ProfileId) -> Result<Secret, Failure> {
    let text = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(format!("Key of {id} (not shown): "))
            .map_err(|error| Failure::new(Exit::Usage, format!("cannot ask for the key: {error}")))?
    } else {
        String::from_utf8(input::stdin()?).map_err(|_| refused(&SecretError::NotAscii { at: 0 }))?
    };
    Secret::parse(&text).map_err(|error| refused(&error))
}

fn refused(error: &SecretError) -> Failure {
    Failure::new(Exit::Failed, format!("{error}; nothing was stored"))
}

//! `failover serve`: the gateway, with its signals and its log.

use crate::exit::{Exit, Failure, chain};
use crate::home;
use crate::journal::Journal;
use crate::log::{self, LogForm};
use clap::Args;
use failover::config::Loaded;
use failover::runner::SystemClock;
use failover::store::{KeyValue, MemoryStore};
use failover::types::{Clock, Secret};
use failover_gateway::{Drained, Gateway, Made, NewToken, serve};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// File in the state directory with the admin token of the processes that run on it.
const ADMIN_TOKEN: &str = "admin-token";

/// Serves an OpenAI- and Anthropic-shaped API in front of the configured models.
#[derive(Args, Debug)]
#[command(after_help = "Point a client's base URL at it: http://127.0.0.1:8787/v1 for OpenAI's,
http://127.0.0.1:8787 for Anthropic's. The model is a route of the config
(`default` is the chain of agents.defaults.model) or provider/model.

SIGHUP reads the config again, SIGTERM and Ctrl-C let streams end first.")]
pub(crate) struct ServeArgs {
    /// The config; without it, failover.json5 in the state directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address and port, in place of the config's.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// How the log is written (json, unless standard error is a terminal).
    #[arg(long, value_name = "FORM")]
    log: Option<LogForm>,
    /// Keep nothing on disk.
    #[arg(long)]
    memory: bool,
    /// Do not follow changes of the config file.
    #[arg(long)]
    no_watch: bool,
    /// Make a token for a caller of this name, print it with its entry for the config, and end.
    #[arg(long, value_name = "NAME")]
    new_token: Option<String>,
}

/// Runs the command, on a runtime of its own: signals mean something else here than in other commands.
pub(crate) fn run(args: &ServeArgs, out: &mut (impl Write + Send)) -> Result<Exit, Failure> {
    if let Some(name) = &args.new_token {
        return new_token(name, out);
    }
    // On a single core there is nobody to share work with.
    let alone = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
    let mut runtime = if alone {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Busy, format!("cannot start: {error}")))?;
    let ended = runtime.block_on(served(args));
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    ended
}

fn new_token(name: &str, out: &mut impl Write) -> Result<Exit, Failure> {
    let made = NewToken::make().map_err(|error| Failure::new(Exit::Busy, error.to_string()))?;
    writeln!(out, "{}", made.token.expose())?;
    let name = serde_json::to_string(name)?;
    let _ = writeln!(
        anstream::stderr(),
        "It is shown this once. In the config, under gateway.tokens or gateway.admin.tokens:\n  {{ name: {name}, sha256: \"{}\" }},",
        made.sha256
    );
    Ok(Exit::Ok)
}

/// Takes as many open files as the process may have. A stream needs two, and the soft limit, which is 1,024 on most
/// systems, is meant for programs that call `select`.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => {}
        Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
    }
}

/// Where to listen, and that nobody does it unguarded.
fn address(args: &ServeArgs, loaded: &Loaded) -> Result<SocketAddr, Failure> {
    let gateway = &loaded.config.gateway;
    let address = args.listen.or(gateway.address()).unwrap_or(failover::config::DEFAULT_LISTEN);
    if !address.ip().is_loopback() && gateway.tokens.is_empty() {
        let text = format!("{address} can be reached from other machines, and nobody needs a token");
        let hint = "list a caller in `gateway.tokens`; `failover serve --new-token NAME` makes one";
        return Err(Failure::new(Exit::Config, text).hint(hint));
    }
    Ok(address)
}

async fn served(args: &ServeArgs) -> Result<Exit, Failure> {
    let config = home::config_path(args.config.as_deref())?;
    let loaded = home::load_config(&config)?;
    let address = address(args, &loaded)?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let hint = "is it running already? `--listen` names another port";
        Failure::new(Exit::Busy, format!("cannot listen on {address}: {error}")).hint(hint)
    })?;
    let address = listener.local_addr().unwrap_or(address);
    let terminal = std::io::stderr().is_terminal();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let form = args.log.unwrap_or(if terminal { LogForm::Text } else { LogForm::Json });
    let thin = log::start(form, Arc::clone(&clock));
    raise_open_files();

    let (store, owns): (Arc<dyn KeyValue>, bool) = if args.memory {
        (Arc::new(MemoryStore::new(clock)), true)
    } else {
        let (store, owns, told) = home::for_serving().await?;
        for warning in told {
            tracing::warn!("{warning}");
        }
        (store, owns)
    };
    let mut builder = Gateway::builder(loaded.clone()).config_file(&config).store(store).owns_store(owns);
    if !args.memory {
        builder = builder.observer(Arc::new(Journal::new(&home::directory()?, None)));
    }
    let mut admin = None;
    if loaded.config.gateway.admin.tokens.is_empty() {
        let token = match (!args.memory).then(kept_admin_token) {
            None => new_admin_token()?,
            Some(Ok(token)) => token,
            Some(Err(failure)) => {
                tracing::warn!("{}; the admin token is a new one, for this time only", failure.message);
                new_admin_token()?
            }
        };
        builder = builder.admin_token("admin", token.expose());
        admin = Some(token);
    }
    let Made { gateway, warnings, .. } =
        builder.build().await.map_err(|error| Failure::new(Exit::Config, chain(&error)))?;
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(%address, config = %config.display(), "serving");
    if terminal {
        // The token goes to a terminal only: logs are kept, and read by others.
        let hash = admin.as_ref().map(|token| format!("#{}", token.expose())).unwrap_or_default();
        let _ = writeln!(
            anstream::stderr(),
            "failover serves on http://{address}/v1\nstatus page: http://{address}/status{hash}"
        );
    }
    let drained = tokio::select! {
        drained = Box::pin(until_told(listener, gateway, args.no_watch)) => drained?,
        () = thin.tell() => Drained::default(),
    };
    if drained.cut > 0 {
        tracing::warn!(cut = drained.cut, "streams were cut: they did not end in time");
    }
    Ok(Exit::Ok)
}

/// Serves and follows the config until a signal ends it.
async fn until_told(listener: TcpListener, gateway: Gateway, no_watch: bool) -> Result<Drained, Failure> {
    let on = |kind: SignalKind| {
        signal(kind).map_err(|error| Failure::new(Exit::Busy, format!("cannot follow signals: {error}")))
    };
    let (mut terminate, mut interrupt, mut hang_up) =
        (on(SignalKind::terminate())?, on(SignalKind::interrupt())?, on(SignalKind::hangup())?);
    let mut again = (on(SignalKind::terminate())?, on(SignalKind::interrupt())?);
    let follower = gateway.clone();
    let follow = async move {
        let reload = async {
            while hang_up.recv().await.is_some() {
                follower.reload_and_tell("SIGHUP").await;
            }
        };
        if no_watch {
            reload.await;
        } else {
            tokio::join!(reload, follower.watch());
        }
        std::future::pending::<()>().await;
    };
    let stop = async {
        let name = first(&mut terminate, &mut interrupt).await;
        tracing::info!(signal = name, "stopping; streams may end first");
    };
    let insisted = async {
        let (terminate, interrupt) = (&mut again.0, &mut again.1);
        first(terminate, interrupt).await;
        first(terminate, interrupt).await;
    };
    tokio::select! {
        drained = serve(listener, gateway, stop) => Ok(drained),
        () = follow => Ok(Drained::default()),
        () = insisted => Err(Failure::new(Exit::Interrupted, "interrupted")),
    }
}

async fn first(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

fn new_admin_token() -> Result<Secret, Failure> {
    let made = NewToken::make().map_err(|error| Failure::new(Exit::Busy, error.to_string()))?;
    Ok(made.token)
}

/// The admin token of the state directory, where only its owner reads it, so that scripts on this machine can. Whichever
/// process comes first makes it, and all of them take it: another one may be serving with it.
fn kept_admin_token() -> Result<Secret, Failure> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let dir = home::directory()?.join("state");
    let path = dir.join(ADMIN_TOKEN);
    let wrong = |error: std::io::Error, path: &Path| {
        Failure::new(Exit::State, format!("cannot write {}: {error}", path.display()))
    };
    // With a shared store nothing else makes the directory.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.map_err(|error| wrong(error, &dir))?;
    if let Some(token) = read_admin_token(&path) {
        return Ok(token);
    }
    let token = new_admin_token()?;
    let draft = dir.join(format!("{ADMIN_TOKEN}.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&draft).map_err(|error| wrong(error, &draft))?;
    writeln!(file, "{}", token.expose()).map_err(|error| wrong(error, &draft))?;
    // A link is made whole or not at all, and never in the place of one that is there.
    let linked = std::fs::hard_link(&draft, &path);
    if linked.is_err()
        && let Some(first) = read_admin_token(&path)
    {
        let _ = std::fs::remove_file(&draft);
        return Ok(first);
    }
    let kept = if linked.is_ok() { std::fs::remove_file(&draft) } else { std::fs::rename(&draft, &path) };
    kept.map_err(|error| wrong(error, &path))?;
    Ok(token)
}

/// The token that lies there, unless others than its owner may have read it.
fn read_admin_token(path: &Path) -> Option<Secret> {
    use std::os::unix::fs::PermissionsExt;
    let rights = std::fs::metadata(path).ok()?.permissions().mode();
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    let whole = text.strip_prefix("fo-").is_some_and(|digits| digits.len() >= 64);
    (matches!(rights & 0o777, 0o600 | 0o400) && whole).then(|| Secret::new(text))
}

//! The state directory, the config file, and the store in the one that the other names.

use crate::exit::{Exit, Failure, chain};
use failover::config::{Diagnostics, LoadError, Loaded};
use failover::runner::SystemClock;
use failover::store::{KeyValue, MemoryStore, StoreError};
use failover::store_sled::SharedStore;
use failover::types::Clock;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the variable that moves the state directory.
pub(crate) const HOME: &str = "FAILOVER_HOME";

/// A variable that names a place: of any bytes that a file's name may have.
fn place(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// `FAILOVER_HOME`, or `.failover` in the user's home.
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    if let Some(home) = place(HOME) {
        return Ok(home);
    }
    match place("HOME") {
        Some(home) => Ok(home.join(".failover")),
        None => Err(Failure::new(Exit::State, "there is no home directory").hint(format!("set {HOME}"))),
    }
}

/// Who sits at the keyboard, for records of who decided.
pub(crate) fn user() -> String {
    variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "somebody".to_owned())
}

/// The state directory of OpenClaw: `OPENCLAW_STATE_DIR`, or `.openclaw` in the user's home.
pub(crate) fn openclaw() -> Result<PathBuf, Failure> {
    match (place("OPENCLAW_STATE_DIR"), place("HOME")) {
        (Some(state), _) => Ok(state),
        (None, Some(home)) => Ok(home.join(".openclaw")),
        (None, None) => {
            Err(Failure::new(Exit::Usage, "there is no home directory")
                .hint("name OpenClaw's state directory"))
        }
    }
}

/// Where the config is, where none is named: `failover.json5` in the state directory.
pub(crate) fn config_path(named: Option<&Path>) -> Result<PathBuf, Failure> {
    match named {
        Some(path) => Ok(path.to_owned()),
        None => Ok(directory()?.join("failover.json5")),
    }
}

/// Reads the config; its faults are shown with the lines they stand in.
pub(crate) fn load_config(path: &Path) -> Result<Loaded, Failure> {
    let error = match failover::config::load(path) {
        Ok(loaded) => return Ok(loaded),
        Err(error) => error,
    };
    let LoadError::Invalid(faults) = error else {
        return Err(Failure::new(Exit::Config, chain(&error)).hint(unread(&error)));
    };
    Err(faulty(&faults))
}

/// Faults of a config, with the lines that they stand in.
pub(crate) fn faulty(faults: &Diagnostics) -> Failure {
    let color = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let count = faults.faults.len();
    let s = if count == 1 { "" } else { "s" };
    Failure::new(Exit::Config, format!("{}{count} fault{s} in the config", faults.render(color)))
}

/// The config; an empty one where none was named and there is none.
pub(crate) fn load_config_if_any(named: Option<&Path>) -> Result<Loaded, Failure> {
    let path = config_path(named)?;
    if named.is_none() && !path.exists() { empty_config() } else { load_config(&path) }
}

/// A config in which nothing is written.
pub(crate) fn empty_config() -> Result<Loaded, Failure> {
    let empty = failover::config::load_text("failover.json5", "{}");
    empty.map_err(|faults| Failure::new(Exit::Config, faults.to_string()))
}

/// What to do about a config that cannot be read.
pub(crate) fn unread(error: &LoadError) -> &'static str {
    if let LoadError::Read { source, .. } = error
        && source.kind() == std::io::ErrorKind::PermissionDenied
    {
        return "run the command as the user whom the file belongs to, or let this one read it and reach its directory";
    }
    "name another one with --config, or write one; `failover config schema` tells what may stand in it"
}

/// The store of the state directory.
async fn open_store() -> Result<SharedStore, StoreError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let dir = directory()
        .map_err(|failure| StoreError::Unavailable { place: HOME.to_owned(), why: failure.message })?;
    // A directory of its own: the user made the one around it to put a config there, with whatever rights.
    SharedStore::open(dir.join("state"), clock).await
}

/// A store that must be written to: there is no way around it.
pub(crate) async fn must_open() -> Result<Arc<dyn KeyValue>, Failure> {
    if let Some(shared) = shared().await {
        let shared = shared?;
        return match shared.state {
            Ok(_) => Ok(shared.store),
            Err(why) => Err(Failure::new(Exit::State, why)),
        };
    }
    match open_store().await {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(Failure::new(Exit::State, chain(&error))),
    }
}

/// Name of the variable that puts a store shared by machines in the place of the state directory's.
const STORE_URL: &str = "FAILOVER_STORE_URL";

/// The store that machines share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn KeyValue>,
    /// What an operator should know of its settings; or why it does not answer.
    pub(crate) state: Result<Vec<String>, String>,
}

/// The store that machines share, where one is named; its secrets are sealed with `FAILOVER_STORE_KEY`.
#[cfg(feature = "store-redis")]
pub(crate) async fn shared() -> Option<Result<Shared, Failure>> {
    let url = variable(STORE_URL)?;
    let key = variable(failover::credentials::STORE_KEY);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    Some(match failover::shared_store(&url, "failover", key.as_deref(), clock).await {
        Ok(shared) => Ok(Shared { store: shared.store, state: shared.state.map_err(|error| chain(&error)) }),
        Err(error) => Err(Failure::new(Exit::State, format!("{STORE_URL}: {}", chain(&error)))),
    })
}

/// The store that machines share: this build knows none, and says so rather than use another one.
#[cfg(not(feature = "store-redis"))]
#[expect(clippy::unused_async, reason = "with the feature it waits for the server")]
pub(crate) async fn shared() -> Option<Result<Shared, Failure>> {
    variable(STORE_URL)?;
    let why = format!("{STORE_URL} is set, and this build knows no shared store");
    Some(Err(Failure::new(Exit::State, why).hint("build it with the feature store-redis, or unset it")))
}

/// A store for an answer: one in memory and a warning, where the chosen one cannot be used.
pub(crate) async fn open_or_memory() -> (Arc<dyn KeyValue>, Option<String>) {
    let memory = |why: &str| -> (Arc<dyn KeyValue>, Option<String>) {
        let store = MemoryStore::new(Arc::new(SystemClock::new()));
        (
            Arc::new(store),
            Some(format!(
                "{why}; nothing is remembered this time, and what was paused or chosen for a session is not known"
            )),
        )
    };
    match shared().await {
        None => {}
        Some(Ok(Shared { store, state: Ok(_) })) => return (store, None),
        Some(Ok(Shared { state: Err(why), .. })) => return memory(&why),
        Some(Err(failure)) => return memory(&failure.message),
    }
    match open_store().await {
        Ok(store) => (Arc::new(store), None),
        Err(error) => memory(&chain(&error)),
    }
}

/// A store for a server: what to tell of it, and whether nobody else runs sessions on it. One that is away or broken is no
/// reason not to serve (requirement A-25): what is learnt is written when a shared one is back. Only one that is not safe
/// to open is refused.
pub(crate) async fn for_serving() -> Result<(Arc<dyn KeyValue>, bool, Vec<String>), Failure> {
    if let Some(shared) = shared().await {
        let Shared { store, state } = shared?;
        let told = state.unwrap_or_else(|why| vec![format!("{why}; answers go on without it")]);
        return Ok((store, false, told));
    }
    let store = match open_store().await {
        Ok(store) => store,
        Err(error @ StoreError::Refused { .. }) => return Err(Failure::new(Exit::State, chain(&error))),
        Err(error) => {
            let why = "it serves without: stored credentials, pauses and what was chosen for sessions are not known, and \
                       nothing is remembered. `failover doctor` says what to do, then start it again";
            let told = vec![format!("{}; {why}", chain(&error))];
            return Ok((Arc::new(MemoryStore::new(Arc::new(SystemClock::new()))), true, told));
        }
    };
    let owns = store.owned().is_some();
    let held = "another process has the state directory open; this one works through it";
    let told = if owns { Vec::new() } else { vec![held.to_owned()] };
    Ok((Arc::new(store), owns, told))
}

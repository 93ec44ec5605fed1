//! The gateway: an engine and its routes behind a handle that survives reloads.

use crate::board::Board;
use crate::metrics::Metrics;
use crate::routes::{RouteError, Routes};
use crate::settings::{Caller, Settings, with_default_limits};
use crate::telemetry::Telemetry;
use failover::config::{GatewayTelemetry, Loaded};
use failover::credentials::Environment;
use failover::provider::ProviderAdapter;
use failover::runner::SystemClock;
use failover::runner::plan::DecisionObserver;
use failover::store::{KeyValue, MemoryStore};
use failover::types::{AgentId, Clock, Timestamp};
use failover::{Engine, EngineError, Setup};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Semaphore;

/// What the bodies of all requests together may take: a gigabyte, thirty-two of the longest ones.
const BODIES_KIB: usize = 1024 * 1024;

/// Why a gateway cannot be made from a config. The operator's to mend; after a reload the old one goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A route.
    #[error(transparent)]
    Route(#[from] RouteError),
}

/// Makes a [`Gateway`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct GatewayBuilder {
    loaded: Loaded,
    recipe: Recipe,
    store: Option<Arc<dyn KeyValue>>,
    observer: Option<Arc<dyn DecisionObserver>>,
    recover: bool,
}

/// What a reload needs again.
struct Recipe {
    agent: AgentId,
    clock: Arc<dyn Clock>,
    environment: Option<Environment>,
    adapters: Vec<Arc<dyn ProviderAdapter>>,
    admins: Vec<Caller>,
    file: Option<PathBuf>,
}

/// A gateway, and what its operator should know of how it was made.
#[derive(Debug)]
#[non_exhaustive]
pub struct Made {
    /// The gateway.
    pub gateway: Gateway,
    /// What was left out, a line each: variables that are not set, records that cannot be read.
    pub warnings: Vec<String>,
}

/// What requests are answered with. A reload puts another one in its place; streams keep the one they began with.
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) settings: Settings,
    pub(crate) routes: Routes,
}

/// What a server is started with and keeps until its end, as the config has it.
#[derive(PartialEq, Eq)]
struct Fixed {
    listen: Option<String>,
    telemetry: GatewayTelemetry,
}

impl Fixed {
    fn of(loaded: &Loaded) -> Self {
        let gateway = &loaded.config.gateway;
        Self { listen: gateway.listen.clone(), telemetry: gateway.telemetry.clone() }
    }

    /// What a new config has otherwise, and the process does not take over.
    fn left_behind(&self, other: &Self) -> Vec<String> {
        let kept =
            [("listen", self.listen != other.listen), ("telemetry", self.telemetry != other.telemetry)];
        let kept = kept.into_iter().filter(|(_, differs)| *differs);
        kept.map(|(key, _)| format!("gateway.{key} has changed, which counts from the next start on"))
            .collect()
    }
}

struct Inner {
    recipe: Recipe,
    fixed: Fixed,
    store: Arc<dyn KeyValue>,
    state: RwLock<Arc<State>>,
    board: Arc<Board>,
    telemetry: Telemetry,
    draining: AtomicBool,
    begun: Timestamp,
    /// What the ids of its answers begin with.
    answers: String,
    last_answer: AtomicU64,
    body_room: Arc<Semaphore>,
}

/// The server's handle: cheap to clone, and the same for every connection.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gateway")
    }
}

impl GatewayBuilder {
    /// Keeps state in `store`; without one, in memory.
    pub fn store(mut self, store: Arc<dyn KeyValue>) -> Self {
        self.store = Some(store);
        self
    }

    /// Says that no other process runs sessions on the store: what dead runs left unproven is taken back at the start.
    pub fn owns_store(mut self, owns: bool) -> Self {
        self.recover = owns;
        self
    }

    /// Hears every decision besides those that are as everybody expects, while a run is under way: it must be quick.
    pub fn observer(mut self, observer: Arc<dyn DecisionObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The agent whose models and credentials count.
    pub fn agent(mut self, agent: AgentId) -> Self {
        self.recipe.agent = agent;
        self
    }

    /// Sets the clock. Connections measure with tokio's timers besides.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.recipe.clock = clock;
        self
    }

    /// Where variables are looked up; the process's environment unless this is called.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.recipe.environment = Some(environment);
        self
    }

    /// Adds an adapter; it takes the place of a built-in one with the same id.
    pub fn adapter(mut self, adapter: Arc<dyn ProviderAdapter>) -> Self {
        self.recipe.adapters.push(adapter);
        self
    }

    /// Lets the holder of this token use the admin API, besides those whom the config lists.
    pub fn admin_token(mut self, name: &str, token: &str) -> Self {
        self.recipe.admins.push(Caller::of(name, token));
        self
    }

    /// Where the config came from, so that it can be read again.
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.recipe.file = Some(path.into());
        self
    }

    /// The gateway. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`GatewayError`] where the config cannot be put to work.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what sessions were rolled back stay so.
    pub async fn build(self) -> Result<Made, GatewayError> {
        let Self { loaded, recipe, store, observer, recover } = self;
        let clock = Arc::clone(&recipe.clock);
        let store = store.unwrap_or_else(|| Arc::new(MemoryStore::new(Arc::clone(&clock))));
        let board = Arc::new(Board::new(Arc::clone(&clock), observer));
        let telemetry = Telemetry::new(
            &loaded.config.gateway.telemetry,
            Arc::clone(&clock),
            board.metrics().dropped_spans(),
        );
        let fixed = Fixed::of(&loaded);
        let (state, mut warnings) = recipe.state(loaded, &store, &board).await?;
        if recover && let Err(error) = state.engine.recover_sessions().await {
            warnings.push(format!("sessions of an earlier process cannot be looked at: {error}"));
        }
        let inner = Inner {
            answers: format!("fo{:x}{:x}", clock.now().as_millis(), std::process::id()),
            begun: clock.now(),
            recipe,
            fixed,
            store,
            state: RwLock::new(Arc::new(state)),
            board,
            telemetry,
            draining: AtomicBool::new(false),
            last_answer: AtomicU64::new(0),
            body_room: Arc::new(Semaphore::new(BODIES_KIB)),
        };
        Ok(Made { gateway: Gateway(Arc::new(inner)), warnings })
    }
}

impl Recipe {
    async fn state(
        &self,
        mut loaded: Loaded,
        store: &Arc<dyn KeyValue>,
        board: &Arc<Board>,
    ) -> Result<(State, Vec<String>), GatewayError> {
        with_default_limits(&mut loaded.config);
        let mut settings = Settings::new(&loaded.config);
        settings.admins.extend(self.admins.iter().cloned());
        let mut builder = Engine::builder(loaded.clone())
            .agent(self.agent.clone())
            .clock(Arc::clone(&self.clock))
            .store(Arc::clone(store))
            .observer(Arc::clone(board) as _);
        if let Some(environment) = &self.environment {
            builder = builder.environment(Arc::clone(environment));
        }
        for adapter in &self.adapters {
            builder = builder.adapter(Arc::clone(adapter));
        }
        let Setup { engine, mut warnings, .. } = builder.build().await?;
        let (routes, more) = Routes::new(&loaded, &engine)?;
        warnings.extend(more);
        board.set_known(routes.models());
        Ok((State { engine, settings, routes }, warnings))
    }
}

impl Gateway {
    /// A gateway to be furnished, on the process's environment and clock.
    pub fn builder(loaded: Loaded) -> GatewayBuilder {
        let recipe = Recipe {
            agent: AgentId::main(),
            clock: Arc::new(SystemClock::new()),
            environment: None,
            adapters: Vec::new(),
            admins: Vec::new(),
            file: None,
        };
        GatewayBuilder { loaded, recipe, store: None, observer: None, recover: false }
    }

    /// Puts another config to work. Requests that come from now on follow it; what is under way keeps what it began
    /// with. The address, the store and the telemetry are those of the start. Gives the warnings.
    ///
    /// # Errors
    ///
    /// [`GatewayError`]; the old config stays.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it is done or not.
    pub async fn reload(&self, loaded: Loaded) -> Result<Vec<String>, GatewayError> {
        // What only this process knows of its credentials, the next engine reads from the store.
        self.state().engine.flush().await;
        let wanted = Fixed::of(&loaded);
        let made = self.0.recipe.state(loaded, &self.0.store, &self.0.board).await;
        self.metrics().reloaded(made.is_ok());
        let (state, mut warnings) = made?;
        warnings.extend(self.0.fixed.left_behind(&wanted));
        *self.0.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
        Ok(warnings)
    }

    /// The engine that answers now.
    pub fn engine(&self) -> Engine {
        self.state().engine.clone()
    }

    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.0.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.recipe.clock
    }

    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.0.recipe.file.as_deref()
    }

    pub(crate) fn store(&self) -> &Arc<dyn KeyValue> {
        &self.0.store
    }

    pub(crate) fn board(&self) -> &Board {
        &self.0.board
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        self.0.board.metrics()
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.0.telemetry
    }

    /// When the process began to serve.
    pub(crate) fn begun(&self) -> Timestamp {
        self.0.begun
    }

    /// An id that no other answer of this server has.
    pub(crate) fn answer_id(&self) -> String {
        let count = self.0.last_answer.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(self.0.answers.len() + 16);
        id.push_str(&self.0.answers);
        // A text takes everything.
        let _ = write!(id, "{count:06x}");
        id
    }

    /// Room for the bodies of requests, a permit a kilobyte.
    pub(crate) fn body_room(&self) -> &Arc<Semaphore> {
        &self.0.body_room
    }

    pub(crate) fn begin_drain(&self) {
        self.0.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Acquire)
    }

    /// Writes what is left to write.
    pub(crate) async fn finish(&self) {
        self.state().engine.flush().await;
        self.0.telemetry.flush().await;
    }
}

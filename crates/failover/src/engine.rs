//! A runner with everything that a config names: chain, policies, credentials, adapters, sessions.

use crate::follow::Follow;
use crate::keys::Keys;
use crate::known_sessions::KnownSessions;
use crate::limits::LimitWatch;
use crate::needs::{has_images, needs};
use crate::opening::{Opened, stale};
use crate::providers::Providers;
use crate::roster::{Read, Reader};
use crate::settings::{self, SettingsError};
use crate::turn::{Start, Turn};
use failover_auth::{RefreshPolicy, UserPinMode};
use failover_chain::{Chain, ChainConfig, ChainError};
use failover_classify::AsSignal;
use failover_config::Loaded;
use failover_credentials::{Credentials, Environment, Judge, Profiles, Refresher, Secrets};
use failover_provider::{AttemptFailure, LimitProbe, ProviderAdapter, Reply, TokenRefresher};
use failover_runner::health::Roster;
use failover_runner::plan::{DecisionObserver, RunPolicy, RunSpec, Visit};
use failover_runner::session::{SessionRun, preference, select};
use failover_runner::{Adapters, Answer, Attempt, Explanation, RunError, Runner, SystemClock, Watcher};
use failover_session::{ProbePolicy, SessionEntry, SessionKey, Sessions, SessionsError, clear_stale_origin};
use failover_store::{KeyValue, MemoryStore};
use failover_types::{AgentId, Clock, ModelRef, ProfileId, ProviderId, RunId, Timestamp};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Makes an [`Engine`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct EngineBuilder {
    loaded: Loaded,
    agent: AgentId,
    clock: Arc<dyn Clock>,
    store: Option<Arc<dyn KeyValue>>,
    environment: Environment,
    observer: Option<Arc<dyn DecisionObserver>>,
    adapters: Vec<Arc<dyn ProviderAdapter>>,
    sessions_idle: Option<Duration>,
    providers: Vec<ProviderId>,
    refreshers: HashMap<ProviderId, Arc<dyn TokenRefresher>>,
    limit_probes: HashMap<ProviderId, Arc<dyn LimitProbe>>,
}

/// Why an engine cannot be made, or a turn cannot be started. The operator's or the caller's to mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The config's settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The config's chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A provider's settings.
    #[error("the provider {provider} cannot be used: {why}")]
    Provider {
        /// Which provider.
        provider: ProviderId,
        /// What is wrong and what to do.
        why: String,
    },
    /// A fault of the engine itself.
    #[error("{0}; this is a bug in the engine")]
    Misuse(String),
}

/// What a turn would do now, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnExplanation {
    /// The candidates, what put each there, and what was left out.
    pub chain: Chain,
    /// What the plan would do with them, one entry per candidate of the chain and in the same order.
    pub plan: Explanation,
}

/// An engine, and what its operator should know of how it was made.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The engine.
    pub engine: Engine,
    /// What was left out, a line each: variables that are not set, records that cannot be read.
    pub warnings: Vec<String>,
}

/// A runner with everything that a config names. Cheap to clone; clones share health.
#[derive(Clone)]
pub struct Engine {
    pub(crate) runner: Runner,
    adapters: Adapters,
    pub(crate) chain: Arc<ChainConfig>,
    policy: RunPolicy,
    pub(crate) sessions: Sessions,
    profiles: Profiles,
    pub(crate) user_pin: UserPinMode,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) agent: AgentId,
    reader: Arc<Reader>,
    keys: Arc<Keys>,
    limits: Arc<LimitWatch>,
    pub(crate) known: Arc<KnownSessions>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine of {}", self.agent)
    }
}

impl EngineBuilder {
    /// Keeps state in `store`; without one, in memory.
    pub fn store(mut self, store: Arc<dyn KeyValue>) -> Self {
        self.store = Some(store);
        self
    }

    /// The agent whose models and credentials count.
    pub fn agent(mut self, agent: AgentId) -> Self {
        self.agent = agent;
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where variables are looked up; the process's environment unless this is called.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Watches every decision.
    pub fn observer(mut self, observer: Arc<dyn DecisionObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Forgets sessions that nobody used for so long; without it, as long as the config says
    /// (`gateway.sessionIdleHours`, 30 days).
    pub fn sessions_idle(mut self, after: Duration) -> Self {
        self.sessions_idle = Some(after);
        self
    }

    /// Adds an adapter; it takes the place of a built-in one with the same id.
    pub fn adapter(mut self, adapter: Arc<dyn ProviderAdapter>) -> Self {
        self.adapters.push(adapter);
        self
    }

    /// Furnishes a provider that the config does not name: its built-in adapter, and the key in its variable.
    pub fn provider(mut self, id: ProviderId) -> Self {
        self.providers.push(id);
        self
    }

    /// Renews the logins of `provider` with this; it takes the place of the adapter's own.
    pub fn token_refresher(mut self, provider: ProviderId, refresher: Arc<dyn TokenRefresher>) -> Self {
        self.refreshers.insert(provider, refresher);
        self
    }

    /// Asks this when a subscription's limit at `provider` ends; it takes the place of the adapter's own.
    pub fn limit_probe(mut self, provider: ProviderId, probe: Arc<dyn LimitProbe>) -> Self {
        self.limit_probes.insert(provider, probe);
        self
    }

    /// The engine.
    ///
    /// # Errors
    ///
    /// [`EngineError`] where the config cannot be put to work.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is written.
    pub async fn build(self) -> Result<Setup, EngineError> {
        let Self {
            loaded,
            agent,
            clock,
            store,
            environment,
            observer,
            adapters: own,
            sessions_idle,
            providers: also,
            mut refreshers,
            mut limit_probes,
        } = self;
        let chain = settings::chain_config(&loaded, &agent)?;
        let policy = settings::run_policy_in(&loaded.config, &environment)?;
        let cooldowns = settings::cooldown_policy(&loaded.config)?;
        let idle = sessions_idle.unwrap_or_else(|| settings::sessions_idle(&loaded.config));
        let mut named = settings::providers(&loaded, &chain);
        named.extend(also);
        named.sort();
        named.dedup();
        let (made, mut unused) = adapters(&loaded, &chain, &environment, own, &named)?;
        let classifier = settings::classifier_with(&loaded, &made)?;
        let store = store.unwrap_or_else(|| Arc::new(MemoryStore::new(Arc::clone(&clock))));
        let profiles = Profiles::new(Arc::clone(&store), agent.clone());
        let chain = Arc::new(chain);
        for adapter in &made {
            let id = || adapter.id().clone();
            if let Some(refresher) = adapter.token_refresher() {
                refreshers.entry(id()).or_insert(refresher);
            }
            if let Some(probe) = adapter.limit_probe() {
                limit_probes.entry(id()).or_insert(probe);
            }
        }

        let user_pin = settings::user_pin(&loaded.config);
        let reader =
            Reader::new(loaded, named, Arc::clone(&environment), profiles.clone(), Arc::clone(&clock));
        let Read { roster, origins, mut warnings } = reader.first().await;
        warnings.append(&mut unused);
        let secrets = Secrets::new(Arc::clone(&clock)).environment(environment);
        let classifier = Arc::new(classifier);
        let judge: Judge = {
            let classifier = Arc::clone(&classifier);
            Arc::new(move |error| error.with_signal(|signal| classifier.classify(signal).reason))
        };
        let refresher =
            Refresher::new(profiles.clone(), refreshers, judge, RefreshPolicy::default(), Arc::clone(&clock));
        let stored = Credentials::new(profiles.clone(), secrets.clone(), refresher, Arc::clone(&clock));
        let keys = Arc::new(Keys::new(origins, secrets, stored));
        let mut runner = Runner::builder(Arc::clone(&classifier))
            .clock(Arc::clone(&clock))
            .cooldowns(cooldowns)
            .policy(policy.clone())
            .roster(roster)
            .store(Arc::clone(&store), agent.clone());
        if let Some(observer) = observer {
            runner = runner.observer(observer);
        }
        let runner = runner.build();
        let limits = Arc::new(LimitWatch::new(
            limit_probes,
            classifier,
            Arc::clone(runner.health()),
            profiles.clone(),
            Arc::clone(&clock),
        ));
        let mut all = Adapters::new(Arc::clone(&keys) as _, Arc::clone(&clock));
        for adapter in made {
            all = all.with(adapter);
        }
        let engine = Engine {
            runner,
            adapters: all.watched_by(Arc::clone(&limits) as _),
            chain,
            policy,
            sessions: Sessions::new(store).forgetting_idle(idle, Arc::clone(&clock)),
            profiles,
            user_pin,
            clock,
            agent,
            reader: Arc::new(reader),
            keys,
            limits,
            known: Arc::default(),
        };
        Ok(Setup { engine, warnings })
    }
}

/// Adapters, and why others cannot be used.
type Made = (Vec<Arc<dyn ProviderAdapter>>, Vec<String>);

/// The adapters of the providers named: the host's own, else the built-in ones; and why some cannot be used.
fn adapters(
    loaded: &Loaded,
    chain: &ChainConfig,
    environment: &Environment,
    mut made: Vec<Arc<dyn ProviderAdapter>>,
    named: &[ProviderId],
) -> Result<Made, EngineError> {
    let mut built_in = Providers::new(&loaded.config, environment);
    let mut unused = Vec::new();
    for provider in named {
        if made.iter().any(|adapter| adapter.id() == provider) {
            continue;
        }
        match built_in.adapter(provider) {
            Ok(adapter) => made.extend(adapter),
            // Nobody asks it: a credential that is kept for later stops no turn.
            Err(error) if !settings::is_asked(&loaded.config, chain, provider) => {
                unused.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok((made, unused))
}

/// How often a turn begins anew because a person chose a model meanwhile that its chain does not have.
const RESTARTS: usize = 8;

impl Engine {
    /// An engine on the process's environment and clock, without a store yet.
    pub fn builder(loaded: Loaded) -> EngineBuilder {
        EngineBuilder {
            loaded,
            agent: AgentId::main(),
            clock: Arc::new(SystemClock::new()),
            store: None,
            environment: process_environment(),
            observer: None,
            adapters: Vec::new(),
            sessions_idle: None,
            providers: Vec::new(),
            refreshers: HashMap::new(),
            limit_probes: HashMap::new(),
        }
    }

    /// The runner: its health and its numbers.
    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    /// The models that a turn may use.
    pub fn chain_config(&self) -> &ChainConfig {
        &self.chain
    }

    /// The session table.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The agent's credentials and their usage, as stored.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// Every profile that the engine may use, by provider, in no particular order.
    pub fn profiles_by_provider(&self) -> HashMap<ProviderId, Vec<ProfileId>> {
        let mut by_provider: HashMap<ProviderId, Vec<ProfileId>> = HashMap::new();
        for profile in self.roster().profiles.iter() {
            by_provider.entry(profile.provider.clone()).or_default().push(profile.id.clone());
        }
        by_provider
    }

    /// The profiles of config, environment and store in one, with their orders and what is known of them.
    pub fn roster(&self) -> Roster {
        self.runner.health().roster()
    }

    pub(crate) fn adapters(&self) -> &Adapters {
        &self.adapters
    }

    pub(crate) fn run_policy(&self) -> &RunPolicy {
        &self.policy
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes over what somebody changed in the store: credentials, orders. Every turn does it, at most twice a second.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a look that has begun goes on.
    pub async fn refresh(&self) {
        self.refresh_since(self.clock.now()).await;
    }

    /// As [`Engine::refresh`], for a turn that the store has held up since `since`.
    async fn refresh_since(&self, since: Timestamp) {
        let until = since.after(self.policy.bookkeeping());
        self.reader.refresh(self.runner.health(), &self.keys, until).await;
    }

    /// Whose engine it is.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Answers a turn, whoever of the chain does it. A stream is handed over once its first content is there.
    ///
    /// # Errors
    ///
    /// [`RunError`] with everything that was tried; [`RunError::Misuse`] where no model is configured.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the attempt at hand is dropped and its connection closes; a claim that stands is rolled back behind
    /// it ([`Engine::settled`]), at the latest by the session's next run a minute later.
    pub async fn chat(&self, turn: &Turn) -> Result<Answer<Reply>, RunError<AttemptFailure>> {
        let begun = self.clock.now();
        let answer = self.chat_with(turn, |reply| std::future::ready(Ok(reply))).await?;
        Ok(self.runner.watch(answer, self.deadline(begun)))
    }

    /// Who holds an answer of [`Engine::chat_with`] against its giver, should what is left of it break off while it is
    /// read; `begun` is when the turn began.
    pub fn watcher<T>(&self, answer: &Answer<T>, begun: Timestamp) -> Watcher {
        self.runner.watcher(answer, self.deadline(begun))
    }

    fn deadline(&self, begun: Timestamp) -> Option<Timestamp> {
        self.policy.deadline_ms.map(|ms| begun.after(Duration::from_millis(ms)))
    }

    /// As [`Engine::chat`]; each attempt's answer goes through `take` before it counts as one. What `take` makes an error
    /// of is a failure of the attempt, and somebody else may answer: for who must have the whole answer first.
    ///
    /// # Errors
    ///
    /// As [`Engine::chat`].
    ///
    /// # Cancel safety
    ///
    /// As [`Engine::chat`].
    pub async fn chat_with<T, F, Fut>(
        &self,
        turn: &Turn,
        take: F,
    ) -> Result<Answer<T>, RunError<AttemptFailure>>
    where
        T: Send,
        F: Fn(Reply) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, AttemptFailure>> + Send,
    {
        let begun = self.clock.now();
        self.refresh_since(begun).await;
        let mut ended = self.run(turn, &take, begun, None).await;
        let mut before: Vec<Visit> = Vec::new();
        for _ in 0..RESTARTS {
            // The session says so by now: the turn begins anew with what the person chose (requirement S-10).
            let Err(RunError::SwitchTo { trail, .. }) = &mut ended else { break };
            before.append(trail);
            ended = Box::pin(self.run(turn, &take, self.clock.now(), Some(begun))).await;
        }
        if let Ok(answer) = &mut ended {
            before.append(&mut answer.trail);
            answer.trail = before;
        }
        ended
    }

    /// One run of a turn, of one that `began` earlier with the time that is left for it. The store has held it up since
    /// `since`.
    async fn run<T, F, Fut>(
        &self,
        turn: &Turn,
        take: &F,
        since: Timestamp,
        began: Option<Timestamp>,
    ) -> Result<Answer<T>, RunError<AttemptFailure>>
    where
        T: Send,
        F: Fn(Reply) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, AttemptFailure>> + Send,
    {
        let run = self.runner.next_run().map_err(|error| RunError::Misuse(error.to_string()))?;
        let opened =
            self.open(turn, &run, since).await.map_err(|error| RunError::Misuse(error.to_string()))?;
        let Opened { start, session } = opened;
        let mut spec = self.spec(run, &start, turn);
        if let Some(deadline) = began.and_then(|began| self.deadline(began)) {
            spec.policy = spec.policy.with_deadline(deadline.since(self.clock.now()));
        }
        // Once somebody refused it, the run goes on without what may be somebody else's (requirement R-5).
        let (refused, forgotten) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let session = session.map(|session| Arc::new(session.for_spec(&spec)));
        let follow =
            session.as_ref().map(|session| Follow::new(Arc::clone(session), Arc::clone(&self.clock)));
        let mut running = self.runner.start(spec).held_up_since(since);
        if let Some(session) = session {
            running = running.session(session);
        }
        if let Some(follow) = &follow {
            running = running.live_switch(follow.switches());
        }
        let (adapters, asked, following) = (&self.adapters, start.asked(turn), follow.as_ref());
        let can_forget = turn.request.bound.is_none() && turn.request.has_history();
        if can_forget {
            let refused = || refused.load(Ordering::Relaxed);
            running = running.repair(move |_| refused() && !forgotten.swap(true, Ordering::Relaxed));
        }
        let open = |attempt: Attempt| async move {
            if let Some(follow) = following {
                follow.asks(&attempt);
            }
            let asked = attempt.model.provider() == asked && !forgotten.load(Ordering::Relaxed);
            let opened = adapters.open(&turn.request, &attempt, asked).await;
            if let (Err(failure), true) = (&opened, can_forget) {
                // What is wrong in it otherwise is wrong without them, too.
                let judged = self.runner.judge(&attempt.model, failure).refuses_a_proof();
                refused.store(judged, Ordering::Relaxed);
            }
            take(opened?).await
        };
        let Some(follow) = &follow else { return running.run(open).await };
        tokio::select! {
            biased;
            ended = running.run(open) => ended,
            // In a box: turns without a session need no room for it.
            never = Box::pin(follow.look()) => match never {},
        }
    }

    /// Which model a turn would begin with, by whose choice, and what may follow. Reads, and writes nothing.
    ///
    /// # Errors
    ///
    /// [`ChainError`] where no model is configured.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn preview(&self, turn: &Turn) -> Result<Chain, ChainError> {
        let (start, _) = self.foresee(turn).await?;
        Ok(start.chain(turn, &self.chain))
    }

    /// What a turn would do now and why: its chain, and what the runner's own plan makes of it. Calls no provider and
    /// writes nothing.
    ///
    /// # Errors
    ///
    /// [`EngineError`] where no model is configured.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn explain(&self, turn: &Turn) -> Result<TurnExplanation, EngineError> {
        self.refresh().await;
        let (start, entry) = self.foresee(turn).await?;
        let run = self.runner.next_run().map_err(|error| EngineError::Misuse(error.to_string()))?;
        let preference =
            entry.map(|entry| SessionRun::new(&entry, run.clone(), self.user_pin).preference().clone());
        let spec = self.spec(run, &start, turn);
        let plan = self.runner.explain(&spec, &preference.unwrap_or_default()).await;
        let plan = plan.map_err(|error| EngineError::Misuse(error.to_string()))?;
        Ok(TurnExplanation { chain: start.chain(turn, &self.chain), plan })
    }

    /// What opening the turn's session would come to, read only: the selection, and the entry that the run would hold.
    pub(crate) async fn foresee(&self, turn: &Turn) -> Result<(Start, Option<SessionEntry>), ChainError> {
        let start = |selected| Start::new(selected, has_images(&turn.request), turn.chain(&self.chain));
        if let Some(given) = turn.given(&self.chain)? {
            return Ok((start(given)?, None));
        }
        let configured = turn.configured(&self.chain);
        let Some(session) = &turn.session else { return Ok((start(configured?)?, None)) };
        let key = SessionKey::new(self.agent.clone(), session.clone());
        let known = |_| self.known.get(session);
        let entry = self.sessions.get(&key).await.unwrap_or_else(known).unwrap_or_default();
        let now = self.clock.now();
        let entry = SessionRun::recovered(&entry, now).unwrap_or(entry);
        let entry =
            stale(turn, &configured).and_then(|default| clear_stale_origin(&entry, default)).unwrap_or(entry);
        self.look_at_origin(&entry, now).await;
        let free_at = |model: &ModelRef| self.origin_free_at(&entry, model, now);
        let policy = ProbePolicy::default();
        let (selection, probe) = select(&entry, configured.as_ref().ok(), free_at, &policy, now);
        let start = start(selection.map_or(configured, Ok)?)?;
        // Another model is asked, and the session stays as it is.
        let entry = start.image.is_none().then(|| probe.unwrap_or(entry));
        Ok((start, entry))
    }

    /// Takes back what runs of a dead process left unproven in the agent's sessions (requirement S-6); gives how many
    /// entries were changed. For the start of a process that has the store to itself: every claim counts as a dead
    /// run's. Where others may run, nobody need call it: a session's next run does it once a claim's lease is over.
    ///
    /// # Errors
    ///
    /// [`SessionsError`] where the store fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was rolled back stays so, and the rest can be done again.
    pub async fn recover_sessions(&self) -> Result<usize, SessionsError> {
        self.sessions.recover(&self.agent, |_| true).await
    }

    /// Writes what the store has not seen yet. Hosts call it now and then, and when they stop.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was not written stays.
    pub async fn flush(&self) {
        self.limits.settled().await;
        self.runner.flush().await;
    }

    /// Resolves once what turns left to be done behind them is done: for a host that stops. A store that hangs holds it up,
    /// so it waits for no longer than it likes.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the work goes on.
    pub async fn settled(&self) {
        self.runner.settled().await;
    }

    fn spec(&self, run: RunId, start: &Start, turn: &Turn) -> RunSpec {
        let [chain, on_context_overflow, on_content_refusal] = start.walk(turn, &self.chain);
        let mut spec = RunSpec::new(run, chain)
            .with_policy(self.policy.clone())
            .with_needs(needs(&turn.request, turn.chain(&self.chain)));
        spec.on_context_overflow = on_context_overflow;
        spec.on_content_refusal = on_content_refusal;
        let asked = start.asked(turn);
        let bound = turn.request.bound.as_ref();
        let holds = bound.map(|bound| self.adapters.dialect(asked) == Some(bound.dialect));
        let chains = [&mut spec.chain, &mut spec.on_context_overflow, &mut spec.on_content_refusal];
        for candidate in chains.into_iter().flatten().filter(|_| holds.is_some() || spec.needs.media) {
            let provider = candidate.model.provider();
            candidate.capabilities.state = holds.map(|holds| holds && provider == asked);
            // Who is asked in its own words says itself what it has no place for.
            let spoken = turn.request.native.as_ref().map(|native| native.dialect);
            let own = provider == asked && spoken.is_some() && self.adapters.dialect(asked) == spoken;
            let takes = || own || self.adapters.takes(provider, &turn.request);
            candidate.capabilities.media = spec.needs.media.then(takes);
        }
        if let Some(session) = &turn.session {
            spec = spec.with_session(session.clone());
        }
        spec
    }

    /// When `origin`, to which this session goes back, is worth another look, with the profiles that the session wants
    /// ([`Health::free_at`](failover_runner::health::Health::free_at)).
    pub fn origin_free_at(
        &self,
        entry: &SessionEntry,
        origin: &ModelRef,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.runner.health().free_at(origin, &preference(entry, self.user_pin), now)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where an engine meets the process's environment"
)]
fn process_environment() -> Environment {
    Arc::new(|name| std::env::var(name).ok())
}

//! The runner, and how it is made.

use super::books::Books;
use super::patience::Patience;
use super::{Answer, Attempt, Run, RunError, SystemClock};
use crate::explain::{Explanation, explain};
use crate::health::{Health, Preference, Roster};
use crate::plan::{Candidate, DecisionObserver, RunPolicy, RunSpec, SpecError};
use failover_auth::CooldownPolicy;
use failover_classify::{AsSignal, Classifier, Signal, Verdict};
use failover_store::KeyValue;
use failover_types::{AgentId, BoxFuture, Clock, IdError, ModelRef, RunId, Timestamp};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How many runners the process has made.
static RUNNERS: AtomicU64 = AtomicU64::new(0);

/// Says why a call failed. [`Classifier`] does; for a function of one's own there is [`ClassifyWith`].
pub trait Classify: Send + Sync {
    /// The verdict.
    fn classify(&self, signal: &Signal<'_>) -> Verdict;
}

impl Classify for Classifier {
    fn classify(&self, signal: &Signal<'_>) -> Verdict {
        Self::classify(self, signal)
    }
}

impl<C: Classify + ?Sized> Classify for Arc<C> {
    fn classify(&self, signal: &Signal<'_>) -> Verdict {
        (**self).classify(signal)
    }
}

/// A function that says why a call failed.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "it is the function and nothing else")]
pub struct ClassifyWith<F>(pub F);

impl<F: Fn(&Signal<'_>) -> Verdict + Send + Sync> Classify for ClassifyWith<F> {
    fn classify(&self, signal: &Signal<'_>) -> Verdict {
        self.0(signal)
    }
}

/// Walks chains. Cheap to clone; clones share health, so make one per agent and keep it.
#[derive(Clone)]
pub struct Runner(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) classifier: Arc<dyn Classify>,
    pub(super) health: Arc<Health>,
    pub(super) policy: RunPolicy,
    pub(super) observer: Option<Arc<dyn DecisionObserver>>,
    pub(super) books: Option<Arc<Books>>,
    pub(super) late: Arc<Semaphore>,
    /// What the ids of its runs begin with.
    ids: String,
    runs: AtomicU64,
}

impl Inner {
    /// How long bookkeeping may hold up what began at `since`.
    pub(super) fn patience(&self, since: Timestamp, policy: &RunPolicy) -> Patience {
        Patience::since(since, Arc::clone(&self.clock), Arc::clone(&self.late), policy.bookkeeping())
    }
}

/// Makes a [`Runner`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct RunnerBuilder {
    clock: Arc<dyn Clock>,
    classifier: Arc<dyn Classify>,
    cooldowns: CooldownPolicy,
    policy: RunPolicy,
    roster: Roster,
    agent: AgentId,
    observer: Option<Arc<dyn DecisionObserver>>,
    store: Option<Arc<dyn KeyValue>>,
}

impl Runner {
    /// A runner that keeps everything in memory, on the machine's clock.
    pub fn new(classifier: impl Classify + 'static) -> Self {
        Self::builder(classifier).build()
    }

    /// A runner to be furnished.
    pub fn builder(classifier: impl Classify + 'static) -> RunnerBuilder {
        RunnerBuilder {
            clock: Arc::new(SystemClock::new()),
            classifier: Arc::new(classifier),
            cooldowns: CooldownPolicy::default(),
            policy: RunPolicy::default(),
            roster: Roster::default(),
            agent: AgentId::main(),
            observer: None,
            store: None,
        }
    }

    /// What this process knows of profiles.
    pub fn health(&self) -> &Arc<Health> {
        &self.0.health
    }

    /// The numbers of runs that do not bring their own.
    pub fn policy(&self) -> &RunPolicy {
        &self.0.policy
    }

    /// A run of `spec`, to be furnished and started. The spec's own numbers count.
    pub fn start<T: Send>(&self, spec: RunSpec) -> Run<'_, T> {
        Run::new(self, spec)
    }

    /// Tries the candidates in order until one answers.
    ///
    /// # Errors
    ///
    /// [`RunError`] with everything that was tried.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the attempt at hand is dropped, no lock is held, and nothing recorded is lost.
    pub async fn run<T, E, F, Fut>(&self, chain: Vec<Candidate>, attempt: F) -> Result<Answer<T>, RunError<E>>
    where
        F: Fn(Attempt) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: AsSignal + Send,
    {
        let run = self.next_run().map_err(|error| RunError::Misuse(error.to_string()))?;
        let mut spec = RunSpec::new(run, chain).with_policy(self.0.policy.clone());
        spec.seed = self.0.runs.load(Ordering::Relaxed);
        self.start(spec).run(attempt).await
    }

    /// An id that no other run of this machine has.
    ///
    /// # Errors
    ///
    /// None in practice: the id is made of digits.
    pub fn next_run(&self) -> Result<RunId, IdError> {
        let count = self.0.runs.fetch_add(1, Ordering::Relaxed);
        RunId::new([self.0.ids.as_str(), &count.to_string()].concat())
    }

    /// What a run of `spec` would do now, by what this process and the store know. Calls nobody and writes nothing.
    ///
    /// # Errors
    ///
    /// [`SpecError`] where there is nothing to try.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn explain(&self, spec: &RunSpec, preference: &Preference) -> Result<Explanation, SpecError> {
        let inner = &*self.0;
        if let Some(books) = &inner.books {
            let all = [&spec.chain, &spec.on_context_overflow, &spec.on_content_refusal];
            for candidate in all.into_iter().flatten() {
                Arc::clone(books).read(books.stale(&candidate.model)).await;
            }
        }
        explain(spec, &inner.health, preference, inner.clock.now())
    }

    /// Reads what the store knows of every profile and provider, for lists.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn reread_health(&self) {
        if let Some(books) = &self.0.books {
            Arc::clone(books).read(self.0.health.subjects()).await;
        }
    }

    /// Reads what the store knows of those who serve `model`, where that was long ago: another process may know better. Holds
    /// nobody up for longer than other bookkeeping may that began at `since` ([`Runner::bookkeep`]).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn look_at(&self, model: &ModelRef, since: Timestamp) {
        let Some(books) = &self.0.books else { return };
        let stale = books.stale(model);
        if !stale.is_empty() {
            self.bookkeep(since, Box::pin(Arc::clone(books).read(stale))).await;
        }
    }

    /// The result of work with the store, if it comes while bookkeeping that began at `since` may hold a turn up; late work
    /// goes on behind, as far as there is room (requirement A-25). For what a host reads before a run: with the same
    /// `since` given to [`Run::held_up_since`], all of it together costs the first attempt no more than that.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: work that was dropped in time may or may not have been done.
    pub async fn bookkeep<R: Send + 'static>(
        &self,
        since: Timestamp,
        work: BoxFuture<'static, R>,
    ) -> Option<R> {
        self.0.patience(since, &self.0.policy).within(work, |_| None).await
    }

    /// Writes what the store has not seen yet. Hosts call it now and then, and when they stop.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was not written stays.
    pub async fn flush(&self) {
        if let Some(books) = &self.0.books {
            Arc::clone(books).flush().await;
        }
    }

    /// Resolves once what runs left to be done behind them is done: late writes, and the claims of runs that were dropped.
    /// For a host that stops; a store that hangs holds it up, so it waits for no longer than it likes.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the work goes on.
    pub async fn settled(&self) {
        Patience::nothing_late(&self.0.late).await;
    }
}

impl Runner {
    /// As [`Runner::flush`], from where nothing can be waited for. What is not written stays for the next run.
    ///
    /// A stream fails inside a poll, so the write is a task of its own; the room for late work bounds them.
    pub(super) fn flush_behind(&self) {
        let Some(books) = self.0.books.as_ref().map(Arc::clone) else { return };
        let runtime = tokio::runtime::Handle::try_current();
        let (Ok(runtime), Ok(permit)) = (runtime, Arc::clone(&self.0.late).try_acquire_owned()) else {
            return;
        };
        runtime.spawn(async move {
            books.flush().await;
            drop(permit);
        });
    }
}

impl RunnerBuilder {
    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the cooldown rules.
    pub fn cooldowns(mut self, cooldowns: CooldownPolicy) -> Self {
        self.cooldowns = cooldowns;
        self
    }

    /// Sets the numbers of runs that do not bring their own.
    pub fn policy(mut self, policy: RunPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the profiles and their order.
    pub fn roster(mut self, roster: Roster) -> Self {
        self.roster = roster;
        self
    }

    /// Keeps health in `store` too, under `agent`.
    pub fn store(mut self, store: Arc<dyn KeyValue>, agent: AgentId) -> Self {
        self.store = Some(store);
        self.agent = agent;
        self
    }

    /// Sets the observer of decisions.
    pub fn observer(mut self, observer: Arc<dyn DecisionObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The runner.
    pub fn build(self) -> Runner {
        let skip = self.policy.skip_ttl_ms.map(Duration::from_millis);
        let health = Arc::new(Health::new(self.cooldowns, skip));
        health.set_roster(self.roster);
        let books = self.store.map(|store| {
            Arc::new(Books::new(store, self.agent, Arc::clone(&health), Arc::clone(&self.clock)))
        });
        let made = RUNNERS.fetch_add(1, Ordering::Relaxed);
        Runner(Arc::new(Inner {
            ids: format!("{}-{}-{made}-", self.clock.now(), std::process::id()),
            clock: self.clock,
            classifier: self.classifier,
            health,
            policy: self.policy,
            observer: self.observer,
            books,
            late: Patience::room(),
            runs: AtomicU64::new(0),
        }))
    }
}

/// Tries the candidates in order until one answers: for one call, by a runner that is thrown away afterwards.
///
/// # Errors
///
/// [`RunError`] with everything that was tried.
///
/// # Cancel safety
///
/// Cancel safe: the attempt at hand is dropped.
pub async fn run<T, E, F, Fut>(
    classifier: impl Classify + 'static,
    chain: Vec<Candidate>,
    attempt: F,
) -> Result<Answer<T>, RunError<E>>
where
    F: Fn(Attempt) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Send,
    E: AsSignal + Send,
{
    Runner::new(classifier).run(chain, attempt).await
}

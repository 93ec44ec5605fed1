//! One run: the plan's steps, carried out one by one. No branch here looks at a reason.

use super::attempt::{Outcome, carry_out};
use super::builder::Inner;
use super::claimed::Claimed;
use super::observe::observe;
use super::patience::Patience;
use super::{Answer, Attempt, Cause, FallbackSummaryError, RunError, RunFailure, RunSession, Runner};
use crate::health::{LeaseGuard, Preference};
use crate::plan::{
    AttemptEnd, AttemptStep, ClaimAnswer, ClaimStep, Done, Ending, Event, Failed, LeaseAnswer, LeaseKind,
    LeaseStep, OrderProfiles, Plan, RepairKind, RunSpec, SettleStep, Slots, SpecError, Step, WaitStep,
};
use failover_auth::LeaseTerms;
use failover_classify::{AsSignal, Signal, Surface, Verdict};
use failover_session::Notice;
use failover_types::{ModelRef, ModelSelector, ProfileId, Timestamp};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A hook that judges a result: `Some` makes it a failure (requirement R-13).
type Judge<'a, T> = Box<dyn Fn(&T) -> Option<Verdict> + Send + Sync + 'a>;
/// A hook that repairs the caller's request: `true` if it changed anything (requirement R-5).
type Repair<'a> = Box<dyn Fn(RepairKind) -> bool + Send + Sync + 'a>;

/// A run to be furnished and started.
#[must_use = "a run does nothing until `run` is called"]
pub struct Run<'a, T> {
    pub(super) runner: &'a Runner,
    pub(super) spec: RunSpec,
    session: Option<Arc<dyn RunSession>>,
    begun: Timestamp,
    judge: Option<Judge<'a, T>>,
    repair: Option<Repair<'a>>,
    switches: Option<watch::Receiver<Option<ModelSelector>>>,
}

/// What a run holds while it lasts.
struct Driver<'a, T, E> {
    inner: &'a Inner,
    spec: RunSpec,
    /// How many the chain has.
    candidates: usize,
    session: Option<Arc<dyn RunSession>>,
    preference: Preference,
    patience: Patience,
    lease: Option<Held>,
    claimed: Option<Claimed>,
    /// The state of health that the profiles at hand were ordered by.
    seen: u64,
    judge: Option<Judge<'a, T>>,
    repair: Option<Repair<'a>>,
    switches: Option<watch::Receiver<Option<ModelSelector>>>,
    value: Option<(T, ModelRef, ProfileId)>,
    cause: Option<Cause<E>>,
    verdict: Option<Box<Verdict>>,
    notices: Vec<Notice>,
}

struct Held {
    guard: LeaseGuard,
    profile: ProfileId,
    model: ModelRef,
    shared: bool,
}

impl<'a, T: Send> Run<'a, T> {
    pub(super) fn new(runner: &'a Runner, spec: RunSpec) -> Self {
        let begun = runner.0.clock.now();
        Self { runner, spec, session: None, begun, judge: None, repair: None, switches: None }
    }

    /// Says since when the store has held the turn up: it may do so for no longer in all (requirement A-25). Without it,
    /// since the run was made.
    pub fn held_up_since(mut self, begun: Timestamp) -> Self {
        self.begun = begun;
        self
    }

    /// Puts the run into a session: fallbacks are written into it before they are tried.
    pub fn session(mut self, session: Arc<dyn RunSession>) -> Self {
        self.session = Some(session);
        self
    }

    /// Judges results: `Some` makes an empty or error-shaped success a failure (requirement R-13).
    pub fn classify_result(mut self, judge: impl Fn(&T) -> Option<Verdict> + Send + Sync + 'a) -> Self {
        self.judge = Some(Box::new(judge));
        self
    }

    /// Repairs the request once per kind; the hook says whether it changed anything (requirement R-5).
    pub fn repair(mut self, repair: impl Fn(RepairKind) -> bool + Send + Sync + 'a) -> Self {
        self.repair = Some(Box::new(repair));
        self
    }

    /// Follows the user: a model sent here while an attempt runs ends that attempt (requirement S-10).
    pub fn live_switch(mut self, switches: watch::Receiver<Option<ModelSelector>>) -> Self {
        self.switches = Some(switches);
        self
    }

    /// Tries the candidates in order until one answers.
    ///
    /// # Errors
    ///
    /// [`RunError`] with everything that was tried.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the attempt at hand is dropped and with it its connection; no lock is held; what was recorded
    /// stays; a claim that stands is rolled back behind it ([`Runner::settled`]), at the latest by the session's next
    /// run a minute later (requirements R-12, S-6).
    pub fn run<E, F, Fut>(
        self,
        attempt: F,
    ) -> impl Future<Output = Result<Answer<T>, RunError<E>>> + Send + use<'a, T, E, F, Fut>
    where
        T: 'a,
        F: Fn(Attempt) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, E>> + Send,
        E: AsSignal + Send,
    {
        // Made ready here, and in boxes: a future keeps what it is given twice, as it was given and as it is used.
        let ready = self.ready();
        async move {
            let (driver, plan) = ready.map_err(|error| RunError::Misuse(error.to_string()))?;
            driver.drive(plan, attempt).await
        }
    }

    fn ready<E>(self) -> Result<Ready<'a, T, E>, SpecError> {
        let Self { runner, mut spec, session, begun, judge, repair, switches } = self;
        spec.claims = session.is_some();
        let candidates = spec.chain.len();
        let inner = &*runner.0;
        let own = spec.without_candidates();
        let plan = Box::new(Plan::new(spec, inner.clock.now())?);
        let patience = inner.patience(begun, &own.policy);
        let driver = Box::new(Driver {
            inner,
            spec: own,
            candidates,
            preference: session.as_ref().map(|session| session.preference()).unwrap_or_default(),
            session,
            patience,
            lease: None,
            claimed: None,
            seen: 0,
            judge,
            repair,
            switches,
            value: None,
            cause: None,
            verdict: None,
            notices: Vec::new(),
        });
        Ok((driver, plan))
    }
}

/// What carries a run out, and the plan that it follows.
type Ready<'a, T, E> = (Box<Driver<'a, T, E>>, Box<Plan>);

impl<T: Send, E: AsSignal + Send> Driver<'_, T, E> {
    async fn drive<F, Fut>(
        mut self: Box<Self>,
        mut plan: Box<Plan>,
        attempt: F,
    ) -> Result<Answer<T>, RunError<E>>
    where
        F: Fn(Attempt) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, E>> + Send,
    {
        loop {
            let event = match plan.next_step() {
                Step::Decision(decision) => {
                    observe(&decision, self.inner.observer.as_deref());
                    continue;
                }
                Step::OrderProfiles(order) => Event::Profiles(self.order(&order).await),
                Step::Lease(step) => Event::Leased(self.ask(&step).await),
                Step::Claim(step) => Event::Claimed(self.claim(step).await),
                Step::Attempt(step) => {
                    let end = self.attempt(&step, &attempt).await;
                    self.patience.renew();
                    Event::Ended(end)
                }
                Step::Record(step) => {
                    let session = self.spec.session.as_ref();
                    let answer = self.inner.health.record(&step, session, self.inner.clock.now());
                    self.tell_the_store().await;
                    Event::Recorded(answer)
                }
                Step::Release => {
                    self.release().await;
                    Event::Released
                }
                Step::Repair(kind) => {
                    Event::Repaired(self.repair.as_ref().is_some_and(|repair| repair(kind)))
                }
                Step::Settle(step) => {
                    self.settle(step).await;
                    Event::Settled
                }
                Step::Wait(wait) => {
                    self.wait(wait).await;
                    self.patience.renew();
                    Event::Woke
                }
                Step::Done(done) => {
                    self.let_go().await;
                    return self.finish(done);
                }
            };
            let told = plan.handle(self.inner.clock.now(), event);
            told.map_err(|misuse| RunError::Misuse(misuse.to_string()))?;
        }
    }

    async fn order(&mut self, order: &OrderProfiles) -> Slots {
        self.let_go().await;
        if let Some(books) = &self.inner.books {
            let stale = books.stale(&order.model);
            if !stale.is_empty() {
                self.patience.within(Box::pin(Arc::clone(books).read(stale)), |()| None).await;
            }
        }
        // Taken before the look, so that a change right after it is not missed by a wait.
        self.seen = self.inner.health.generation();
        let session = self.spec.session.as_ref();
        self.inner.health.slots(order, &self.preference, session, self.inner.clock.now())
    }

    async fn ask(&mut self, step: &LeaseStep) -> LeaseAnswer {
        let now = self.inner.clock.now();
        let (answer, guard) = self.inner.health.lease(step, &self.spec.policy, now);
        let Some(guard) = guard else { return answer };
        let (profile, model) = (step.profile.clone(), step.model.clone());
        // Among processes only what is known to be out is guarded; strangers are met one process at a time.
        let every = match step.kind {
            LeaseKind::Plain { .. } => None,
            LeaseKind::Recovering => Some(Duration::ZERO),
            // What one process grants a person once, several do not grant on top of each other.
            LeaseKind::Probe { interval, forced: true, .. } => {
                Some(interval.min(Duration::from_millis(self.spec.policy.probe.throttle_ms)))
            }
            LeaseKind::Probe { interval, .. } => Some(interval),
        };
        let mut shared = false;
        if let (Some(books), Some(every)) = (&self.inner.books, every) {
            let terms = LeaseTerms::new(Duration::from_millis(self.spec.policy.probe.lease_ms), every);
            let holder = self.spec.run.to_string();
            let work = Arc::clone(books).lease(profile.clone(), model.clone(), holder, terms);
            if let Some(Some(until)) = self.patience.within(Box::pin(work), |_| None).await {
                return LeaseAnswer::Held { until };
            }
            shared = true;
            // Another process may have had the lease a moment ago, and found out: then nobody need ask again.
            let all = self.inner.health.stale(&model, Timestamp::MAX);
            self.patience.within(Box::pin(Arc::clone(books).read(all)), |()| None).await;
        }
        self.lease = Some(Held { guard, profile, model, shared });
        if step.kind == LeaseKind::Recovering
            && shared
            && let Some(until) = self.inner.health.out_until(step, self.inner.clock.now())
        {
            self.let_go().await;
            return LeaseAnswer::Held { until };
        }
        answer
    }

    /// Gives the lease back, here and among processes.
    async fn let_go(&mut self) {
        let Some(Held { profile, model, shared, .. }) = self.lease.take() else { return };
        if let Some(books) = self.inner.books.as_ref().filter(|_| shared) {
            let work = Arc::clone(books).give_back(profile, model, self.spec.run.to_string());
            self.patience.within(Box::pin(work), |()| None).await;
        }
    }

    async fn claim(&mut self, step: ClaimStep) -> ClaimAnswer {
        let Some(session) = self.session.as_ref().map(Arc::clone) else { return ClaimAnswer::TurnLocal };
        let claimed = Claimed::new(&session, &self.inner.late);
        let work = Arc::clone(&session).claim(step, self.inner.clock.now());
        // A claim that comes through too late is taken back: its attempt was turn-local (requirement A-25).
        let too_late = move |answer| match answer {
            ClaimAnswer::Held => Some(session.release()),
            ClaimAnswer::TurnLocal => None,
        };
        let answer = self.patience.within(work, too_late).await.unwrap_or(ClaimAnswer::TurnLocal);
        match answer {
            ClaimAnswer::Held => self.claimed = Some(claimed),
            ClaimAnswer::TurnLocal => claimed.over(),
        }
        answer
    }

    async fn release(&mut self) {
        if let Some(session) = &self.session {
            self.patience.within(Arc::clone(session).release(), |()| None).await;
        }
        self.claim_is_over();
    }

    async fn settle(&mut self, step: SettleStep) {
        if let Some(session) = &self.session {
            let work = Arc::clone(session).settle(step, self.inner.clock.now());
            self.notices = self.patience.within(work, |_| None).await.unwrap_or_default();
        }
        self.claim_is_over();
    }

    /// Done with, or done behind the run: only now, so that a run dropped meanwhile takes its claim back.
    fn claim_is_over(&mut self) {
        if let Some(claimed) = self.claimed.take() {
            claimed.over();
        }
    }

    /// Writes what was recorded, and gives the lease back only then: whoever has it next must know (requirement A-26).
    async fn tell_the_store(&mut self) {
        let held = self.lease.take();
        let Some(books) = self.inner.books.as_ref().map(Arc::clone) else { return };
        let held = held.filter(|held| held.shared);
        let held = held.map(|held| (held.profile, held.model, self.spec.run.to_string()));
        if held.is_none() && books.due().is_empty() {
            return;
        }
        let work = async move {
            if let Some((profile, model, holder)) = held {
                Arc::clone(&books).write_of(&profile, &model).await;
                Arc::clone(&books).give_back(profile, model, holder).await;
            }
            // Asked only now: what went with the lease is written already.
            let due = books.due();
            books.tell(due).await;
        };
        self.patience.within(Box::pin(work), |()| None).await;
    }

    async fn wait(&mut self, wait: WaitStep) {
        let sleep = self.inner.clock.sleep_until(wait.until);
        if !wait.wake_on_health {
            return sleep.await;
        }
        tokio::select! {
            () = sleep => {}
            () = self.inner.health.changed(self.seen) => {}
        }
    }

    async fn attempt<F, Fut>(&mut self, step: &AttemptStep, make: &F) -> AttemptEnd
    where
        F: Fn(Attempt) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, E>> + Send,
    {
        if let Some(observer) = &self.inner.observer {
            observer.on_attempt(step);
        }
        if let Some(switches) = &mut self.switches {
            // Chosen before the attempt began, and asked now: it has been followed.
            let follows = |to: &ModelSelector| {
                to.model == step.model && to.profile.as_ref().is_none_or(|profile| *profile == step.profile)
            };
            let followed =
                switches.has_changed().unwrap_or(false) && switches.borrow().as_ref().is_some_and(follows);
            if followed {
                switches.mark_unchanged();
            }
        }
        let attempt = Attempt::new(step);
        let signals = attempt.signals();
        let future = pin!(make(attempt));
        let clock = &*self.inner.clock;
        let outcome = tokio::select! {
            biased;
            outcome = carry_out(step.limits, &signals, future, clock, self.switches.as_mut()) => outcome,
            never = Claimed::renew(self.claimed.as_ref(), clock) => match never {},
        };
        self.inner.health.met(&step.profile);
        let committed = signals.is_committed();
        self.verdict = None;
        if let (Outcome::Ready(_), Some(held)) = (&outcome, &mut self.lease) {
            held.guard.ended();
        }
        match outcome {
            Outcome::Switched(to) => AttemptEnd::SwitchTo { to, committed },
            Outcome::TimedOut => {
                self.cause = Some(Cause::TimedOut);
                AttemptEnd::TimedOut { committed }
            }
            Outcome::Ready(Ok(value)) => match self.judge.as_ref().and_then(|judge| judge(&value)) {
                None => {
                    self.value = Some((value, step.model.clone(), step.profile.clone()));
                    AttemptEnd::Answered
                }
                Some(verdict) => {
                    let failed = self.failed(&Signal::new(Surface::Http), &verdict, committed);
                    self.cause = Some(Cause::Judged(Box::new(verdict.clone())));
                    self.verdict = Some(Box::new(verdict));
                    AttemptEnd::Failed(failed)
                }
            },
            Outcome::Ready(Err(error)) => {
                let over = step.limits.deadline.is_some_and(|deadline| clock.now() >= deadline);
                let (failed, verdict, cut_off) = error.with_signal(|signal| {
                    let mut signal = *signal;
                    signal.provider = signal.provider.or(Some(step.model.provider().as_str()));
                    let verdict = self.inner.classifier.classify(&signal);
                    let cut_off = over && signal.surface == Surface::Transport;
                    (self.failed(&signal, &verdict, committed), verdict, cut_off)
                });
                self.cause = Some(Cause::Error(error));
                self.verdict = Some(Box::new(verdict));
                match signals.switched() {
                    Some(to) => AttemptEnd::SwitchTo { to, committed },
                    // Clients keep the run's deadline, too, and one of them may be there first.
                    None if cut_off => AttemptEnd::TimedOut { committed },
                    None => AttemptEnd::Failed(failed),
                }
            }
        }
    }

    fn failed(&self, signal: &Signal<'_>, verdict: &Verdict, committed: bool) -> Failed {
        let mut failed = Failed::from_verdict(signal, verdict, self.inner.clock.now());
        failed.committed = committed;
        failed
    }

    fn finish(self, done: Done) -> Result<Answer<T>, RunError<E>> {
        let Self { value, cause, verdict, notices, candidates, spec, .. } = self;
        let Done { ending, trail, soonest } = done;
        let failure = |cause: Option<Cause<E>>, trail| {
            let cause = cause.unwrap_or(Cause::TimedOut);
            RunFailure { cause, verdict, trail, soonest }
        };
        Err(match ending {
            Ending::Answered => {
                return match value {
                    Some((value, model, profile)) => {
                        let RunSpec { run, session, .. } = spec;
                        Ok(Answer { value, model, profile, trail, notices, run, session, candidates })
                    }
                    None => Err(RunError::Misuse("an attempt answered without a value".to_owned())),
                };
            }
            Ending::Itself => RunError::Failed(failure(cause, trail)),
            Ending::Returned => RunError::Returned(failure(cause, trail)),
            Ending::Raised => RunError::Raised(failure(cause, trail)),
            Ending::Committed => RunError::Committed(failure(cause, trail)),
            Ending::Exhausted => RunError::Exhausted(FallbackSummaryError { trail, soonest, last: cause }),
            Ending::Stopped(reason) => {
                RunError::Stopped { reason, summary: FallbackSummaryError { trail, soonest, last: cause } }
            }
            Ending::SwitchTo(to) => RunError::SwitchTo { to, trail },
        })
    }
}

//! What every provider adapter must do, tried over real sockets against the scripted upstream.
//!
//! One macro call runs it all, from any crate:
//!
//! ```ignore
//! failover_testkit::provider_conformance!(failover_testkit::provider::Subject::new(|base| {
//!     std::sync::Arc::new(MyAdapter::at(&format!("{base}/v1")))
//! }));
//! ```

mod cases;
mod golden;
mod mapping;

pub use golden::{golden_requests, in_scope};
pub use mapping::{Heard, Said};

use crate::ManualClock;
use crate::upstream::{Attempt, ChatCompletions, Dialect, Step, Upstream};
use failover_provider::{
    AttemptFailure, AttemptLimits, AttemptScope, ChatReply, ChatRequest, ProviderAdapter, Reply, ReplyStream,
};
use failover_types::{Clock, CredentialKind, ModelRef, ProfileId, ResolvedCredential, Secret, Timestamp};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The key that every attempt carries; it must come back nowhere.
const KEY: &str = "sk-conformance-0123456789";
/// The model that every attempt asks for.
const MODEL: &str = "scripted-1";
const START: Timestamp = Timestamp::from_millis(1_000_000);
/// An attempt that hangs fails its test after so long.
const STUCK: Duration = Duration::from_secs(20);

/// What is on its way over loopback has arrived after so many turns of the runtime.
const QUIET_TURNS: usize = 200;

type MakeAdapter = dyn Fn(&str) -> Arc<dyn ProviderAdapter> + Send + Sync;
type MakeDialect = dyn Fn() -> Box<dyn Dialect> + Send + Sync;

/// The adapter under test.
pub struct Subject {
    adapter: Box<MakeAdapter>,
    dialect: Box<MakeDialect>,
    idempotent: bool,
}

impl Subject {
    /// An adapter of the chat completions dialect. The closure gets the upstream's address as `http://host:port`.
    pub fn new(adapter: impl Fn(&str) -> Arc<dyn ProviderAdapter> + Send + Sync + 'static) -> Self {
        Self { adapter: Box::new(adapter), dialect: Box::new(|| Box::new(ChatCompletions)), idempotent: true }
    }

    /// Lets the upstream speak another dialect.
    #[must_use]
    pub fn with_dialect(mut self, dialect: impl Fn() -> Box<dyn Dialect> + Send + Sync + 'static) -> Self {
        self.dialect = Box::new(dialect);
        self
    }

    /// Says that the provider has no idempotency keys: then none may be sent.
    #[must_use]
    pub fn without_idempotency_key(mut self) -> Self {
        self.idempotent = false;
        self
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subject")
    }
}

/// What went wrong, as the suite reports it.
pub type Report = Result<(), String>;

type CaseFuture<'a> = Pin<Box<dyn Future<Output = Report> + 'a>>;

/// One requirement.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    run: for<'a> fn(&'a Subject) -> CaseFuture<'a>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// All requirements.
pub fn cases() -> &'static [Case] {
    cases::CASES
}

/// Runs one requirement, by name, on a runtime of its own.
///
/// # Errors
///
/// Says what the adapter did wrong.
pub fn run(subject: &Subject, name: &str) -> Report {
    let case = cases().iter().find(|case| case.name == name).ok_or_else(|| format!("no case {name}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        tokio::time::timeout(STUCK, (case.run)(subject))
            .await
            .unwrap_or_else(|_| Err(format!("still not over after {STUCK:?}")))
    })
}

/// Runs every requirement.
///
/// # Errors
///
/// Every failure, one a line.
pub fn suite(subject: &Subject) -> Report {
    let faults: Vec<String> = cases()
        .iter()
        .filter_map(|case| run(subject, case.name).err().map(|fault| format!("{}: {fault}", case.name)))
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Tests an adapter: one `#[test]` that runs the whole suite and names every requirement that fails.
#[macro_export]
macro_rules! provider_conformance {
    ($subject:expr) => {
        #[test]
        fn provider_conformance() {
            assert_eq!($crate::provider::suite(&$subject), Ok(()));
        }
    };
}

/// An upstream, a clock, the adapter, and a credential.
struct World {
    clock: Arc<ManualClock>,
    upstream: Upstream,
    adapter: Arc<dyn ProviderAdapter>,
    model: ModelRef,
    credential: ResolvedCredential,
}

impl World {
    async fn new(subject: &Subject, step: impl Into<Step>) -> Result<Self, String> {
        let clock = Arc::new(ManualClock::new(START));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let upstream = Upstream::start_with(shared, vec![(subject.dialect)()])
            .await
            .map_err(|error| format!("no upstream: {error}"))?;
        upstream.script(MODEL, [step.into()]);
        let adapter = (subject.adapter)(&format!("http://{}", upstream.address()));
        let model = ModelRef::new(adapter.id().clone(), MODEL).map_err(|error| error.to_string())?;
        let profile = ProfileId::for_account(adapter.id(), None).map_err(|error| error.to_string())?;
        let credential = ResolvedCredential::new(profile, CredentialKind::ApiKey, Secret::new(KEY));
        Ok(Self { clock, upstream, adapter, model, credential })
    }

    async fn open_with(&self, request: &ChatRequest, limits: AttemptLimits) -> Result<Reply, AttemptFailure> {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        let scope = AttemptScope::new(&self.model, clock)
            .with_credential(&self.credential)
            .with_limits(limits)
            .with_idempotency_key("run-1");
        self.adapter.open(request, scope).await
    }

    async fn open(&self, stream: bool) -> Result<Reply, AttemptFailure> {
        let request = ChatRequest::prompt("say something").with_stream(stream);
        self.open_with(&request, AttemptLimits::none()).await
    }

    async fn stream(&self) -> Result<ReplyStream, String> {
        match self.open(true).await {
            Ok(Reply::Stream(stream)) => Ok(stream),
            other => Err(format!("expected a stream, got {other:?}")),
        }
    }

    async fn whole(&self) -> Result<ChatReply, String> {
        match self.open(false).await {
            Ok(Reply::Complete(reply)) => Ok(reply),
            other => Err(format!("expected a complete answer, got {other:?}")),
        }
    }

    /// Runs `future`, jumping the clock to whatever is waited for next once so many are waiting and the sockets are
    /// quiet.
    async fn hurry<F: Future + Send>(&self, sleepers: usize, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        loop {
            let quiet = async {
                self.clock.until_waiting(sleepers).await;
                // Each turn lets the runtime look at its sockets once.
                for _ in 0..QUIET_TURNS {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                output = &mut future => return output,
                () = quiet => {
                    self.clock.advance_to_next();
                }
            }
        }
    }

    fn only_attempt(&self) -> Result<Attempt, String> {
        let mut log = self.upstream.log();
        match (log.pop(), log.len()) {
            (Some(attempt), 0) => Ok(attempt),
            (_, others) => Err(format!("expected one request, the upstream saw {}", others + 1)),
        }
    }
}

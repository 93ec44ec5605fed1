//! Answers that stream: what becomes of a failure after the first content.

use crate::common::{T0, model, profile};
use crate::driver::{classifier, run_spec, with_clock};
use async_trait::async_trait;
use failover_classify::{ProviderRules, RuleTable, Surface, standard_tables};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FinishReason, ProviderAdapter, Reply, ReplyEvent, ReplyStream,
};
use failover_runner::health::Subject;
use failover_runner::plan::{PolicyConfig, Purpose, RunPolicy};
use failover_runner::{Adapters, Answer, CredentialSource, Runner, usage_key};
use failover_store::{KeyValue, MemoryStore};
use failover_testkit::ManualClock;
use failover_types::{AgentId, BoxFuture, Clock, ProfileId, ProviderId, ResolvedCredential, Timestamp};
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Streams a word, and then this.
struct Streaming {
    id: ProviderId,
    rules: RuleTable,
    calls: AtomicUsize,
    end: fn(&ProviderId) -> Option<Result<ReplyEvent, AttemptFailure>>,
}

#[async_trait]
impl ProviderAdapter for Streaming {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn rules(&self) -> &dyn ProviderRules {
        &self.rules
    }

    async fn open(&self, _: &ChatRequest, _: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let events = std::iter::once(Ok(ReplyEvent::Text("half ".to_owned()))).chain((self.end)(&self.id));
        let events: Vec<_> = events.collect();
        Ok(Reply::Stream(ReplyStream::new(self.id.clone(), stream::iter(events))))
    }
}

struct NoKeys;

impl CredentialSource for NoKeys {
    fn resolve<'a>(
        &'a self,
        _: &'a ProfileId,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<ResolvedCredential>, AttemptFailure>> {
        Box::pin(async { Ok(None) })
    }
}

struct World {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    runner: Runner,
    adapters: Adapters,
    adapter: Arc<Streaming>,
}

fn world(end: fn(&ProviderId) -> Option<Result<ReplyEvent, AttemptFailure>>) -> World {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let runner = Runner::builder(classifier())
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .store(Arc::clone(&store) as Arc<dyn KeyValue>, AgentId::main())
        .build();
    let rules = standard_tables().into_iter().next().unwrap();
    let id = ProviderId::new("a").unwrap();
    let adapter = Arc::new(Streaming { id, rules, calls: AtomicUsize::new(0), end });
    let adapters = Adapters::new(Arc::new(NoKeys), Arc::clone(&clock) as Arc<dyn Clock>);
    let adapters = adapters.with(Arc::clone(&adapter) as Arc<dyn ProviderAdapter>);
    World { clock, store, runner, adapters, adapter }
}

impl World {
    async fn begin(&self, change: impl FnOnce(&mut PolicyConfig), purpose: Purpose) -> Answer<Reply> {
        let mut config = PolicyConfig::default();
        change(&mut config);
        let mut spec = run_spec("run", &["a/m", "b/m"], &RunPolicy::new(config).unwrap());
        spec.purpose = purpose;
        let request = ChatRequest::prompt("hello");
        with_clock(&self.clock, self.runner.start(spec).chat(&self.adapters, &request)).await.unwrap()
    }

    fn windows(&self) -> Vec<String> {
        let stats = self.runner.health().usage(&Subject::Profile(profile("a:default")));
        stats.active(self.clock.now()).map(|window| window.reason.to_string()).collect()
    }
}

async fn read(answer: Answer<Reply>) -> (String, Option<AttemptFailure>) {
    assert_eq!(answer.model, model("a/m"));
    let Reply::Stream(mut events) = answer.value else { panic!("a stream was promised") };
    let mut text = String::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(ReplyEvent::Text(more)) => text.push_str(&more),
            Ok(_) => {}
            Err(failure) => return (text, Some(failure)),
        }
    }
    (text, None)
}

#[expect(clippy::unnecessary_wraps, reason = "the other ending of a stream is none")]
fn crash(id: &ProviderId) -> Option<Result<ReplyEvent, AttemptFailure>> {
    let failure = AttemptFailure::new(id.clone(), Surface::StreamEvent);
    Some(Err(failure.with_body(br#"{"error":{"type":"server_error","message":"internal error"}}"#)))
}

// spec: R-9, A-16, A-25
#[tokio::test]
async fn a_stream_that_breaks_off_counts_against_its_profile_and_is_not_replayed() {
    for (end, reason) in [
        (crash as fn(&ProviderId) -> _, "server_error"),
        // The source just ends: a cut.
        (|_| None, "timeout"),
    ] {
        let world = world(end);
        let answer = world.begin(|_| {}, Purpose::Turn).await;
        assert!(world.windows().is_empty(), "so far it is a success");
        let (text, failure) = read(answer).await;
        assert_eq!(text, "half ");
        assert!(failure.is_some());
        assert_eq!(world.adapter.calls.load(Ordering::Relaxed), 1, "nothing is replayed");
        assert_eq!(world.windows(), [reason]);
        // The others learn it too, without another run.
        let key = usage_key(&AgentId::main(), &Subject::Profile(profile("a:default"))).unwrap();
        let written = async || {
            let found = world.store.get(&key).await.unwrap();
            found.is_some_and(|found| String::from_utf8_lossy(found.value.as_bytes()).contains(reason))
        };
        while !written().await {
            tokio::task::yield_now().await;
        }
    }
}

// spec: R-9, A-17
#[tokio::test]
async fn a_whole_stream_and_one_that_its_reader_leaves_count_against_nobody() {
    let world = world(|_| Some(Ok(ReplyEvent::Finish(FinishReason::Stop))));
    let (_, failure) = read(world.begin(|_| {}, Purpose::Turn).await).await;
    assert_eq!((failure.is_none(), world.windows()), (true, vec![]));

    let world = self::world(crash);
    drop(world.begin(|_| {}, Purpose::Turn).await);
    assert!(world.windows().is_empty());

    // A success that is newer than the broken answer disproves it.
    let old = world.begin(|_| {}, Purpose::Turn).await;
    world.clock.advance(Duration::from_secs(1));
    drop(world.begin(|_| {}, Purpose::Turn).await);
    assert!(read(old).await.1.is_some());
    assert!(world.windows().is_empty());
}

// spec: A-16
#[tokio::test]
async fn a_side_call_and_the_callers_own_deadline_count_against_nobody() {
    let world = world(crash);
    assert!(read(world.begin(|_| {}, Purpose::Helper).await).await.1.is_some());
    assert!(world.windows().is_empty());

    let answer = world.begin(|config| config.deadline_ms = Some(5_000), Purpose::Turn).await;
    world.clock.advance(Duration::from_secs(5));
    assert!(read(answer).await.1.is_some());
    assert!(world.windows().is_empty());
}

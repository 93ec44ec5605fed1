//! An engine over adapters without a network.

use async_trait::async_trait;
use failover::classify::{ProviderRules, RuleTable, Surface, standard_tables};
use failover::config::load_text;
use failover::provider::{
    AttemptFailure, AttemptScope, ChatReply, ChatRequest, FinishReason, Part, ProviderAdapter, Reply,
};
use failover::store::KeyValue;
use failover::types::{Clock, ProviderId, SessionId, Timestamp};
use failover::{Engine, Setup, Turn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

pub(crate) const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// The primary on line 2, two fallbacks on lines 3 and 4.
pub(crate) const CONFIG: &str = r#"{ agents: { defaults: { model: {
  primary: "anthropic/a", fallbacks: [
    "openai/b",
    "groq/c",
] } } } }"#;

/// Fails or greets.
pub(crate) struct Scripted {
    id: ProviderId,
    rules: RuleTable,
    pub(crate) down: AtomicBool,
    /// It has no place for anything but texts.
    deaf: bool,
    /// It does not answer while this is set.
    pub(crate) silent: AtomicBool,
    pub(crate) calls: AtomicU32,
}

impl Scripted {
    pub(crate) fn new(id: &str, down: bool) -> Arc<Self> {
        Self::made(id, down, false)
    }

    pub(crate) fn deaf(id: &str) -> Arc<Self> {
        Self::made(id, false, true)
    }

    fn made(id: &str, down: bool, deaf: bool) -> Arc<Self> {
        let rules = standard_tables().into_iter().next().unwrap();
        let id = ProviderId::new(id).unwrap();
        Arc::new(Self {
            id,
            rules,
            down: AtomicBool::new(down),
            deaf,
            silent: AtomicBool::new(false),
            calls: AtomicU32::new(0),
        })
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl ProviderAdapter for Scripted {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn rules(&self) -> &dyn ProviderRules {
        &self.rules
    }

    fn takes(&self, _: &Part) -> bool {
        !self.deaf
    }

    async fn open(&self, _: &ChatRequest, _: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        while self.silent.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
        if self.down.load(Ordering::Relaxed) {
            let failure = AttemptFailure::new(self.id.clone(), Surface::Http).with_status(529);
            return Err(failure.with_body(br#"{"type":"error","error":{"type":"overloaded_error"}}"#));
        }
        Ok(Reply::Complete(ChatReply::new(vec![Part::Text("hello".to_owned())], FinishReason::Stop)))
    }
}

/// An engine of `config`; every variable is set.
pub(crate) async fn engine(
    config: &str,
    store: Arc<dyn KeyValue>,
    clock: Arc<dyn Clock>,
    adapters: &[Arc<Scripted>],
) -> Engine {
    let mut builder = Engine::builder(load_text("failover.json5", config).unwrap())
        .clock(clock)
        .store(store)
        .environment(Arc::new(|_| Some("sk-test".to_owned())));
    for adapter in adapters {
        builder = builder.adapter(Arc::clone(adapter) as _);
    }
    let Setup { engine, .. } = builder.build().await.unwrap();
    engine
}

pub(crate) fn turn(session: &str) -> Turn {
    Turn::new(ChatRequest::prompt("hello")).in_session(SessionId::new(session).unwrap())
}

//! A store that stops answering, below an engine that runs.
#![expect(clippy::disallowed_methods, reason = "the store takes its time by a paused runtime")]

use crate::common::{CONFIG, Scripted, T0, turn};
use async_trait::async_trait;
use failover::config::load_text;
use failover::credentials::Profiles;
use failover::session::{SessionKey, select_user};
use failover::store::{
    ChangeStream, Expect, Key, KeyValue, MemoryStore, Prefix, StoreError, Swap, Value, Versioned,
    WriteOptions,
};
use failover::types::{
    AgentId, BoxFuture, Clock, Credential, ModelSelector, ProfileId, Secret, SecretSource, SessionId,
    Timestamp,
};
use failover::{Engine, Setup};
use failover_testkit::ManualClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Answers until it is told to fail, and takes its time where it is told to.
struct Breaking {
    store: MemoryStore,
    broken: AtomicBool,
    takes_ms: AtomicU64,
}

impl Breaking {
    fn new(clock: &Arc<ManualClock>) -> Arc<Self> {
        let store = MemoryStore::new(Arc::clone(clock) as Arc<dyn Clock>);
        Arc::new(Self { store, broken: AtomicBool::new(false), takes_ms: AtomicU64::new(0) })
    }

    async fn store(&self) -> Result<&MemoryStore, StoreError> {
        tokio::time::sleep(Duration::from_millis(self.takes_ms.load(Ordering::Relaxed))).await;
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable { place: "here".into(), why: "its owner hangs".into() });
        }
        Ok(&self.store)
    }
}

#[async_trait]
impl KeyValue for Breaking {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.store().await?.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        self.store().await?.swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.store().await?.scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.store().await?.changes(prefix).await
    }
}

/// The primary's key lies in the store, the fallback's in a variable.
// spec: A-25
#[tokio::test]
async fn a_key_that_cannot_be_read_is_no_reason_to_give_up() {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Breaking::new(&clock);
    let profile: ProfileId = "anthropic:default".parse().unwrap();
    let key = SecretSource::Literal(Secret::new("sk-test"));
    let credential = Credential::ApiKey { provider: profile.provider_id(), key };
    let profiles = Profiles::new(Arc::clone(&store) as Arc<dyn KeyValue>, AgentId::main());
    profiles.put(&profile, &credential, T0).await.unwrap();
    let adapters = [Scripted::new("anthropic", false), Scripted::new("openai", false)];
    let mut builder = Engine::builder(load_text("failover.json5", CONFIG).unwrap())
        .clock(Arc::clone(&clock) as _)
        .store(Arc::clone(&store) as _)
        .environment(Arc::new(|name| (name == "OPENAI_API_KEY").then(|| "sk-test".to_owned())));
    for adapter in &adapters {
        builder = builder.adapter(Arc::clone(adapter) as _);
    }
    let Setup { engine, .. } = builder.build().await.unwrap();
    store.broken.store(true, Ordering::Relaxed);
    let answer = engine.chat(&turn("s")).await.unwrap();
    assert_eq!(answer.profile.provider(), "openai");
    assert_eq!((adapters[0].calls(), adapters[1].calls()), (0, 1));
}

// spec
#[tokio::test]
async fn what_a_person_chose_for_a_session_holds_while_the_store_is_away() {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Breaking::new(&clock);
    let adapters = [Scripted::new("anthropic", false), Scripted::new("openai", false)];
    let mut builder = Engine::builder(load_text("failover.json5", CONFIG).unwrap())
        .clock(Arc::clone(&clock) as _)
        .store(Arc::clone(&store) as _)
        .environment(Arc::new(|name| name.ends_with("_API_KEY").then(|| "sk-test".to_owned())));
    for adapter in &adapters {
        builder = builder.adapter(Arc::clone(adapter) as _);
    }
    let Setup { engine, .. } = builder.build().await.unwrap();
    let configured = engine.chat(&turn("s")).await.unwrap().model;
    let choice: ModelSelector = "openai/gpt-of-their-own".parse().unwrap();
    let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
    engine.sessions().update(&key, |entry| Some(select_user(entry, &choice, T0))).await.unwrap();
    assert_eq!(engine.chat(&turn("s")).await.unwrap().model, choice.model);
    store.broken.store(true, Ordering::Relaxed);
    assert_eq!(engine.chat(&turn("s")).await.unwrap().model, choice.model);
    assert_eq!(engine.chat(&turn("other")).await.unwrap().model, configured);
}

/// The time of a paused runtime.
struct Paused(tokio::time::Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        T0.after(self.0.elapsed())
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

/// What is late for one turn serves the next one: a person's choice holds, however slow the store is.
// spec: A-25, S-5
#[tokio::test(start_paused = true)]
async fn a_slow_store_delays_the_first_attempt_by_no_more_than_its_patience() {
    let clock = Arc::new(Paused(tokio::time::Instant::now()));
    let store = Breaking::new(&Arc::new(ManualClock::new(T0)));
    let adapters = [Scripted::new("anthropic", false), Scripted::new("openai", false)];
    let mut builder = Engine::builder(load_text("failover.json5", CONFIG).unwrap())
        .clock(Arc::clone(&clock) as _)
        .store(Arc::clone(&store) as _)
        .environment(Arc::new(|name| name.ends_with("_API_KEY").then(|| "sk-test".to_owned())));
    for adapter in &adapters {
        builder = builder.adapter(Arc::clone(adapter) as _);
    }
    let Setup { engine, .. } = builder.build().await.unwrap();
    let choice: ModelSelector = "openai/gpt-of-their-own".parse().unwrap();
    let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
    engine.sessions().update(&key, |entry| Some(select_user(entry, &choice, T0))).await.unwrap();
    for takes in [60, 300, 800, 3_600_000] {
        store.takes_ms.store(takes, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let begun = clock.now();
        let answer = engine.chat(&turn("s")).await.unwrap();
        // Once before the attempt, and once after it.
        let took = clock.now().since(begun);
        assert!(took <= Duration::from_millis(101), "{takes} ms an answer: {took:?}");
        assert!(takes == 60 || answer.model == choice.model, "{takes} ms an answer: {}", answer.model);
    }
}

/// Nobody has to ask for it: whoever writes a session, it ends with the config's time.
// spec: K-5
#[tokio::test]
async fn sessions_that_nobody_uses_are_forgotten_by_every_engine() {
    for (config, days) in
        [(CONFIG.to_owned(), 30), (CONFIG.replacen('{', "{ gateway: { sessionIdleHours: 48 },", 1), 2)]
    {
        let clock = Arc::new(ManualClock::new(T0));
        let store = Breaking::new(&clock);
        let builder = Engine::builder(load_text("failover.json5", &config).unwrap())
            .clock(Arc::clone(&clock) as _)
            .store(Arc::clone(&store) as _);
        let sessions = builder.build().await.unwrap().engine.sessions().clone();
        let choice: ModelSelector = "openai/gpt-of-their-own".parse().unwrap();
        let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
        sessions.update(&key, |entry| Some(select_user(entry, &choice, T0))).await.unwrap();
        clock.advance(Duration::from_hours(days * 24 - 1));
        assert!(sessions.get(&key).await.unwrap().is_some());
        clock.advance(Duration::from_hours(1));
        assert!(sessions.get(&key).await.unwrap().is_none(), "{days}");
    }
}

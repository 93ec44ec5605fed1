//! A store that stops answering, below an engine that runs.

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
    AgentId, Clock, Credential, ModelSelector, ProfileId, Secret, SecretSource, SessionId,
};
use failover::{Engine, Setup};
use failover_testkit::ManualClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Answers until it is told to fail.
struct Breaking {
    store: MemoryStore,
    broken: AtomicBool,
}

impl Breaking {
    fn store(&self) -> Result<&MemoryStore, StoreError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable { place: "here".into(), why: "its owner hangs".into() });
        }
        Ok(&self.store)
    }
}

#[async_trait]
impl KeyValue for Breaking {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.store()?.get(key).await
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        self.store()?.swap(key, expect, next, write).await
    }

    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        self.store()?.scan(prefix, after, limit).await
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.store()?.changes(prefix).await
    }
}

/// The primary's key lies in the store, the fallback's in a variable.
// spec: A-25
#[tokio::test]
async fn a_key_that_cannot_be_read_is_no_reason_to_give_up() {
    let clock = Arc::new(ManualClock::new(T0));
    let memory = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let store = Arc::new(Breaking { store: memory, broken: AtomicBool::new(false) });
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
    let memory = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let store = Arc::new(Breaking { store: memory, broken: AtomicBool::new(false) });
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

//! Whose choice counts: a person's in the middle of a turn, the image model, and what a host brings along.

use crate::common::{CONFIG, Scripted, T0, engine, turn};
use failover::chain::{FallbacksOverride, Reference, Selection, SelectionSource};
use failover::provider::{Image, ImageSource, Part, Reply};
use failover::runner::Answer;
use failover::session::{
    SessionEntry, SessionKey, StoredSelection, pending_switch, select_user, status, ticket,
};
use failover::store::{KeyValue, MemoryStore};
use failover::types::{AgentId, Clock, RunId, SessionId};
use failover::{Engine, Turn};
use failover_testkit::ManualClock;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

struct World {
    clock: Arc<ManualClock>,
    store: Arc<dyn KeyValue>,
    adapters: Vec<Arc<Scripted>>,
}

impl World {
    /// Everybody is well.
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(T0));
        let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
        let adapters = ["anthropic", "openai", "groq"].map(|id| Scripted::new(id, false)).to_vec();
        Self { clock, store, adapters }
    }

    async fn engine(&self, config: &str) -> Engine {
        engine(config, Arc::clone(&self.store), Arc::clone(&self.clock) as _, &self.adapters).await
    }
}

fn key() -> SessionKey {
    SessionKey::new(AgentId::main(), SessionId::new("s").unwrap())
}

async fn entry(engine: &Engine) -> SessionEntry {
    engine.sessions().get(&key()).await.unwrap().unwrap_or_default()
}

async fn served(engine: &Engine, turn: &Turn) -> String {
    engine.chat(turn).await.unwrap().model.to_string()
}

/// The first model of the chain is silent; somebody chooses `wanted`, and time goes on.
async fn switched(world: &World, engine: &Engine, wanted: &str) -> Answer<Reply> {
    let silent = world.adapters.first().unwrap();
    silent.silent.store(true, Ordering::Relaxed);
    let person = async {
        while silent.calls() == 0 {
            tokio::task::yield_now().await;
        }
        let choice = wanted.parse().unwrap();
        let now = world.clock.now();
        engine.sessions().update(&key(), |entry| Some(select_user(entry, &choice, now))).await.unwrap();
        for _ in 0..20 {
            world.clock.advance(Duration::from_millis(100));
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        silent.silent.store(false, Ordering::Relaxed);
        std::future::pending::<()>().await;
    };
    let turn = turn("s");
    tokio::select! {
        answer = engine.chat(&turn) => answer.unwrap(),
        () = person => unreachable!(),
    }
}

// spec: S-9, S-10
#[tokio::test]
async fn a_person_who_chooses_in_the_middle_of_a_turn_is_followed() {
    let cases = [
        ("groq/c", "groq/c", "a later candidate is jumped to"),
        ("openai/b@openai:default", "openai/b", "with a credential of its own"),
        ("openai/other", "openai/other", "one outside of the chain is asked anew"),
        ("anthropic/other", "anthropic/other", "so is another model of the same provider"),
    ];
    for (wanted, expected, why) in cases {
        let world = World::new();
        let engine = world.engine(CONFIG).await;
        let answer = switched(&world, &engine, wanted).await;
        assert_eq!(answer.model.to_string(), expected, "{why}");
        assert!(
            answer.trail[0].to_string().contains(&format!("switched to {wanted}")),
            "{}",
            answer.trail[0]
        );
        assert!(answer.notices.is_empty(), "a choice is no fallback: {:?}", answer.notices);
        let again = u32::from(wanted.starts_with("anthropic"));
        assert_eq!(world.adapters[0].calls(), 1 + again, "{why}");
        let entry = entry(&engine).await;
        assert!(matches!(entry.selection(), StoredSelection::User { .. }), "{:?}", entry.selection());
        assert_eq!(status(&entry, None, &<_>::default(), T0).pending_switch, None, "it was followed");
        assert_eq!(served(&engine, &turn("s")).await, expected, "and stays");
    }
}

// spec: S-10
#[tokio::test]
async fn who_chooses_what_is_asked_already_changes_nothing() {
    let world = World::new();
    let engine = world.engine(CONFIG).await;
    let answer = switched(&world, &engine, "anthropic/a").await;
    assert_eq!((answer.model.to_string().as_str(), answer.trail.len()), ("anthropic/a", 1));
    assert_eq!(world.adapters[0].calls(), 1);
    let entry = entry(&engine).await;
    assert_eq!(pending_switch(&entry, &ticket(&entry, RunId::new("later").unwrap())), None);
    assert_eq!(status(&entry, None, &<_>::default(), T0).pending_switch, None);
}

const IMAGES: &str = "{ agents: { defaults: {
    model: { primary: 'anthropic/a', fallbacks: ['groq/c'] },
    imageModel: { primary: 'openai/eye', fallbacks: ['groq/eye'] },
} } }";

fn with_image(session: &str) -> Turn {
    let mut turn = turn(session);
    let image = Image::new(ImageSource::Url("https://example.com/a.png".to_owned()));
    turn.request.messages.first_mut().unwrap().parts.push(Part::Image(image));
    turn
}

// spec: H-8
#[tokio::test]
async fn a_turn_with_an_image_goes_to_the_image_model_and_leaves_the_session_alone() {
    let world = World::new();
    let engine = world.engine(IMAGES).await;
    assert_eq!(served(&engine, &with_image("s")).await, "openai/eye");
    world.adapters[1].down.store(true, Ordering::Relaxed);
    let answer = engine.chat(&with_image("s")).await.unwrap();
    assert_eq!((answer.model.to_string().as_str(), answer.notices.len()), ("groq/eye", 0));
    assert_eq!(entry(&engine).await.selection(), StoredSelection::Nothing);
    assert_eq!(served(&engine, &turn("s")).await, "anthropic/a");
    // On a fallback the session still has its image model, and its override.
    world.adapters[0].down.store(true, Ordering::Relaxed);
    assert_eq!(served(&engine, &turn("s")).await, "groq/c");
    let before = entry(&engine).await;
    let explained = engine.explain(&with_image("s")).await.unwrap();
    assert_eq!(explained.chain.policy().as_str(), "image");
    assert_eq!(explained.plan.candidates.len(), explained.chain.candidates().len());
    assert_eq!(served(&engine, &with_image("s")).await, "groq/eye");
    assert_eq!(entry(&engine).await, before);
    // A person's choice stands.
    let choice = "groq/c".parse().unwrap();
    let now = world.clock.now();
    engine.sessions().update(&key(), |entry| Some(select_user(entry, &choice, now))).await.unwrap();
    assert_eq!(served(&engine, &with_image("s")).await, "groq/c");
}

// spec: H-5
#[tokio::test]
async fn fallbacks_of_a_turn_are_exactly_those() {
    let world = World::new();
    let engine = world.engine(CONFIG).await;
    world.adapters[0].down.store(true, Ordering::Relaxed);
    let with = |list: &[&str]| {
        let list = list.iter().map(|text| Reference::new(*text)).collect();
        turn("s").with_fallbacks(FallbacksOverride::new(list))
    };
    assert!(engine.chat(&with(&[])).await.is_err());
    assert_eq!(world.adapters[1].calls(), 0, "an empty list is no fallback at all");
    assert_eq!(served(&engine, &with(&["groq/mine"])).await, "groq/mine");
    let explained = engine.explain(&with(&["groq/mine"])).await.unwrap();
    assert_eq!(explained.chain.policy().as_str(), "override");
}

// spec: H-7, S-3
#[tokio::test]
async fn a_scheduled_job_brings_its_selection_and_writes_nothing() {
    let world = World::new();
    let engine = world.engine(CONFIG).await;
    world.adapters[2].down.store(true, Ordering::Relaxed);
    let job = |fallbacks| {
        let model = "groq/job".parse().unwrap();
        turn("s").with_selection(Selection::new(model, None, SelectionSource::Cron { fallbacks }))
    };
    assert!(engine.chat(&job(Some(Vec::new()))).await.is_err(), "its payload says that nobody follows");
    assert_eq!(served(&engine, &job(None)).await, "openai/b", "the configured fallbacks");
    assert_eq!(entry(&engine).await.selection(), StoredSelection::Nothing);
}

// spec: S-8, H-7
#[tokio::test]
async fn a_heartbeat_clears_an_override_whose_origin_is_configured_no_more() {
    let world = World::new();
    let before = world.engine(CONFIG).await;
    world.adapters[0].down.store(true, Ordering::Relaxed);
    assert_eq!(served(&before, &turn("s")).await, "openai/b");
    assert_eq!(
        served(&before, &turn("s").as_heartbeat()).await,
        "openai/b",
        "its origin is configured still"
    );
    let after = world.engine(&CONFIG.replace("anthropic/a", "groq/new")).await;
    assert_eq!(served(&after, &turn("s")).await, "openai/b", "a turn leaves it");
    let foreseen = after.preview(&turn("s").as_heartbeat()).await.unwrap();
    assert_eq!(foreseen.selection().model().to_string(), "groq/new");
    assert_eq!(served(&after, &turn("s").as_heartbeat()).await, "groq/new");
    assert_eq!(entry(&after).await.selection(), StoredSelection::Nothing);
    assert_eq!(served(&after, &turn("s")).await, "groq/new");
}

// spec: H-7, S-8
#[tokio::test]
async fn a_heartbeat_with_a_model_of_its_own_asks_it_alone_and_writes_nothing() {
    let world = World::new();
    let config = CONFIG.replace("defaults: {", "defaults: { heartbeat: { model: 'groq/beat' }, ");
    let engine = world.engine(&config).await;
    assert_eq!(served(&engine, &turn("s").as_heartbeat()).await, "groq/beat");
    assert_eq!(served(&engine, &turn("s")).await, "anthropic/a");
    world.adapters[2].down.store(true, Ordering::Relaxed);
    assert!(engine.chat(&turn("s").as_heartbeat()).await.is_err());
    assert_eq!(entry(&engine).await.selection(), StoredSelection::Nothing);
}

//! Which model a turn begins with, and what `explain` says of it.

use crate::common::{CONFIG, Scripted, T0, engine, turn};
use failover::Turn;
use failover::chain::{FallbacksKind, SelectionSource};
use failover::provider::{
    ChatRequest, File, FileSource, Image, ImageSource, Json, Part, ResponseFormat, Tool,
};
use failover::runner::Fate;
use failover::runner::plan::Skip;
use failover::session::{SessionKey, select_user};
use failover::store::MemoryStore;
use failover::types::{AgentId, Clock, SessionId};
use failover_testkit::ManualClock;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One engine with a primary that is down and two fallbacks that answer.
struct World {
    clock: Arc<ManualClock>,
    engine: failover::Engine,
    primary: Arc<Scripted>,
    fallback: Arc<Scripted>,
}

async fn world() -> World {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let (primary, fallback) = (Scripted::new("anthropic", true), Scripted::new("openai", false));
    let adapters = [Arc::clone(&primary), Arc::clone(&fallback), Scripted::new("groq", false)];
    let engine = engine(CONFIG, store, Arc::clone(&clock) as _, &adapters).await;
    World { clock, engine, primary, fallback }
}

// spec: S-7
#[tokio::test]
async fn an_override_stays_until_its_origin_is_due_and_goes_when_it_answers() {
    let World { clock, engine, primary, fallback } = world().await;
    let ask = async || engine.chat(&turn("s")).await.unwrap().model.to_string();
    assert_eq!(ask().await, "openai/b");
    let tried = primary.calls();
    assert_eq!(ask().await, "openai/b");
    assert_eq!(primary.calls(), tried, "the origin is not due yet");

    clock.advance(Duration::from_mins(6));
    assert_eq!(ask().await, "openai/b");
    let probed = primary.calls();
    assert!(probed > tried, "the origin is due, and still down");
    assert_eq!(ask().await, "openai/b");
    assert_eq!(primary.calls(), probed, "one probe, not one a turn");

    clock.advance(Duration::from_mins(6));
    primary.down.store(false, Ordering::Relaxed);
    let served = fallback.calls();
    assert_eq!(ask().await, "anthropic/a");
    assert_eq!(ask().await, "anthropic/a");
    assert_eq!(fallback.calls(), served);
}

// spec: S-7
#[tokio::test]
async fn a_session_returns_once_anybody_has_found_its_origin_well() {
    let World { clock, engine, primary, .. } = world().await;
    let ask = async || engine.chat(&turn("s")).await.unwrap().model.to_string();
    let ask_alone =
        async || engine.chat(&Turn::new(ChatRequest::prompt("hi"))).await.unwrap().model.to_string();
    assert_eq!(ask().await, "openai/b");
    clock.advance(Duration::from_secs(31));
    assert_eq!(ask_alone().await, "openai/b", "the window is a minute now");
    assert_eq!(ask().await, "openai/b");
    primary.down.store(false, Ordering::Relaxed);
    clock.advance(Duration::from_secs(31));
    assert_eq!(ask_alone().await, "anthropic/a", "one that may look before the window ends");
    assert_eq!(ask().await, "anthropic/a");
}

// spec: S-2, H-7
#[tokio::test]
async fn a_choice_of_a_person_is_asked_alone() {
    let World { clock, engine, primary, .. } = world().await;
    let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
    let choice = "anthropic/a".parse().unwrap();
    let chosen = engine.sessions().update(&key, |entry| Some(select_user(entry, &choice, clock.now()))).await;
    assert!(chosen.unwrap().1);
    assert!(engine.chat(&turn("s")).await.is_err());
    assert!(primary.calls() > 0);
    let explained = engine.explain(&turn("s")).await.unwrap();
    assert_eq!(*explained.chain.selection().source(), SelectionSource::UserOverride);
    assert_eq!(explained.plan.candidates.len(), 1);
}

// spec: H-7, S-3
#[tokio::test]
async fn a_choice_of_a_person_needs_no_configured_model() {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let config = "{ models: { providers: { openai: { apiKey: '${OPENAI_API_KEY}' } } } }";
    let engine = engine(config, store, Arc::clone(&clock) as _, &[Scripted::new("openai", false)]).await;
    let error = engine.chat(&turn("s")).await.unwrap_err();
    assert!(error.to_string().contains("no model is configured"), "{error}");
    let key = SessionKey::new(AgentId::main(), SessionId::new("s").unwrap());
    let choice = "openai/b".parse().unwrap();
    let chosen = engine.sessions().update(&key, |entry| Some(select_user(entry, &choice, clock.now()))).await;
    assert!(chosen.unwrap().1);
    assert_eq!(engine.chat(&turn("s")).await.unwrap().model.to_string(), "openai/b");
    let explained = engine.explain(&turn("s")).await.unwrap();
    assert_eq!(*explained.chain.selection().source(), SelectionSource::UserOverride);
}

// spec: H-11
#[tokio::test]
async fn a_prompt_that_cannot_fit_is_not_sent_to_a_small_window() {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let config = "{ agents: { defaults: { model: { primary: 'anthropic/a', fallbacks: ['openai/b'] } } },
        models: { providers: { anthropic: { models: [{ id: 'a', contextWindow: 1000 }] } } } }";
    let (small, large) = (Scripted::new("anthropic", false), Scripted::new("openai", false));
    let adapters = [Arc::clone(&small), Arc::clone(&large)];
    let engine = engine(config, store, Arc::clone(&clock) as _, &adapters).await;
    let mut turn = turn("s");
    turn.request = ChatRequest::prompt("word ".repeat(2_000));
    let answer = engine.chat(&turn).await.unwrap();
    assert_eq!((answer.model.to_string().as_str(), small.calls()), ("openai/b", 0));
    assert!(answer.trail[0].to_string().contains("context_window"), "{}", answer.trail[0]);
}

// spec: H-11
#[tokio::test]
async fn a_model_that_is_known_to_lack_what_the_request_needs_is_passed_over() {
    type Ask = fn(&mut ChatRequest);
    let cases: [(&str, &str, Ask); 3] = [
        ("json: false", "json", |request| request.response_format = Some(ResponseFormat::JsonObject)),
        ("input: ['text']", "modality", |request| {
            let image = Image::new(ImageSource::Url("https://example.com/a.png".to_owned()));
            request.messages[0].parts.push(Part::Image(image));
        }),
        ("tools: false", "tools", |request| request.tools.push(Tool::new("f", Json::parse("{}").unwrap()))),
    ];
    for (facts, lacking, ask) in cases {
        let clock = Arc::new(ManualClock::new(T0));
        let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
        let config = format!(
            "{{ agents: {{ defaults: {{ model: {{ primary: 'anthropic/a', fallbacks: ['openai/b'] }} }} }},
            models: {{ providers: {{ anthropic: {{ models: [{{ id: 'a', {facts} }}] }} }} }} }}"
        );
        let (lacks, has) = (Scripted::new("anthropic", false), Scripted::new("openai", false));
        let adapters = [Arc::clone(&lacks), has];
        let engine = engine(&config, store, Arc::clone(&clock) as _, &adapters).await;
        let mut turn = turn("s");
        ask(&mut turn.request);
        let answer = engine.chat(&turn).await.unwrap();
        assert_eq!((answer.model.to_string().as_str(), lacks.calls()), ("openai/b", 0), "{facts}");
        assert!(answer.trail[0].to_string().contains(lacking), "{}", answer.trail[0]);
        assert_eq!(engine.chat(&crate::common::turn("t")).await.unwrap().model.to_string(), "anthropic/a");
    }
}

// spec: H-11
#[tokio::test]
async fn who_has_no_place_for_a_file_is_passed_over() {
    let clock = Arc::new(ManualClock::new(T0));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let config = "{ agents: { defaults: { model: { primary: 'anthropic/a', fallbacks: ['openai/b'] } } } }";
    let (deaf, hears) = (Scripted::deaf("anthropic"), Scripted::new("openai", false));
    let engine = engine(config, store, Arc::clone(&clock) as _, &[Arc::clone(&deaf), hears]).await;
    let mut turn = turn("s");
    let said = FileSource::Base64 { media_type: "audio/wav".into(), data: "eA==".into() };
    turn.request.messages[0].parts.push(Part::File(File::new(said)));
    let answer = engine.chat(&turn).await.unwrap();
    assert_eq!((answer.model.to_string().as_str(), deaf.calls()), ("openai/b", 0));
    assert!(answer.trail[0].to_string().contains("modality"), "{}", answer.trail[0]);
}

// spec: H-12, R-1, R-18
#[tokio::test]
async fn explain_says_what_the_next_turn_does_and_changes_nothing() {
    let World { clock, engine, primary, .. } = world().await;
    let well = engine.explain(&turn("s")).await.unwrap();
    assert!(matches!(&well.plan.candidates[0].fate, Fate::Tried { probe: false, .. }));
    let (kind, origin) = well.chain.policy().setting().unwrap();
    assert_eq!((kind, origin.unwrap().line), (FallbacksKind::List, 3));
    assert_eq!(
        well.chain.policy().to_string(),
        format!("the defaults' fallbacks apply: a list, {}", origin.unwrap())
    );
    assert!(well.plan.worst.calls >= 3);
    assert_eq!(primary.calls(), 0);

    assert_eq!(engine.chat(&turn("s")).await.unwrap().model.to_string(), "openai/b");
    let calls = primary.calls();
    let resting = engine.explain(&turn("t")).await.unwrap();
    assert!(
        matches!(
            &resting.plan.candidates[0].fate,
            Fate::Skipped(Skip::Cooling { .. }) | Fate::Tried { probe: true, .. }
        ),
        "{:?}",
        resting.plan
    );
    let on_override = engine.explain(&turn("s")).await.unwrap();
    assert_eq!(on_override.chain.candidates()[0].model.to_string(), "openai/b");
    assert!(matches!(on_override.chain.selection().source(), SelectionSource::AutoOverride { .. }));

    clock.advance(Duration::from_mins(6));
    for _ in 0..2 {
        let due = engine.explain(&turn("s")).await.unwrap();
        assert_eq!(due.chain.candidates()[0].model.to_string(), "anthropic/a", "explaining is not probing");
    }
    assert_eq!(primary.calls(), calls);
}

//! Credentials of a running engine: steered from elsewhere, probed, pinned, blocked by an exact reset.

use crate::common::{CONFIG, Scripted, T0, engine, turn};
use failover::auth::{
    Availability, CooldownPolicy, Failure, LeftOutReason, Why, WindowScope, next_usage, pause,
};
use failover::config::load_text;
use failover::credentials::Profiles;
use failover::provider::{AttemptFailure, LimitProbe, ProbeError, Reset};
use failover::session::{ResetKind, SessionEntry, SessionKey, pin_user, reset};
use failover::store::{KeyValue, MemoryStore};
use failover::types::{
    AgentId, Clock, Credential, FailoverReason, ModelRef, ProfileId, ProviderId, ResolvedCredential, Secret,
    SecretSource, SessionId, Timestamp,
};
use failover::{Engine, ProbedEnd, Setup};
use failover_provider_anthropic::Anthropic;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, Asked, Dialect, Frame, Messages, On, Request, Step, Upstream};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn id(name: &str) -> ProfileId {
    ProfileId::new(name).unwrap()
}

fn key_of(name: &str) -> Credential {
    let key = SecretSource::Literal(Secret::new("sk-test"));
    Credential::ApiKey { provider: id(name).provider_id(), key }
}

struct World {
    clock: Arc<ManualClock>,
    store: Arc<dyn KeyValue>,
    /// What another process would hold.
    elsewhere: Profiles,
}

fn world() -> World {
    let clock = Arc::new(ManualClock::new(T0));
    let store: Arc<dyn KeyValue> = Arc::new(MemoryStore::new(Arc::clone(&clock) as _));
    let elsewhere = Profiles::new(Arc::clone(&store), AgentId::main());
    World { clock, store, elsewhere }
}

/// An engine without any variable.
async fn bare(world: &World, config: &str, adapters: &[Arc<Scripted>]) -> Engine {
    let mut builder = Engine::builder(load_text("failover.json5", config).unwrap())
        .clock(Arc::clone(&world.clock) as _)
        .store(Arc::clone(&world.store))
        .environment(Arc::new(|_| None));
    for adapter in adapters {
        builder = builder.adapter(Arc::clone(adapter) as _);
    }
    let Setup { engine, .. } = builder.build().await.unwrap();
    engine
}

async fn profile_that_answers(engine: &Engine, session: &str) -> String {
    engine.chat(&turn(session)).await.unwrap().profile.to_string()
}

// spec: A-23, K-3
#[tokio::test]
async fn what_is_changed_elsewhere_counts_here_within_a_second() {
    let world = world();
    let adapters = [Scripted::new("anthropic", false), Scripted::new("openai", false)];
    let engine = bare(&world, CONFIG, &adapters).await;
    assert!(engine.chat(&turn("s")).await.is_err(), "there is no key at all");
    let second = || world.clock.advance(Duration::from_secs(1));

    world.elsewhere.put(&id("anthropic:one"), &key_of("anthropic:one"), T0).await.unwrap();
    second();
    assert_eq!(profile_that_answers(&engine, "a").await, "anthropic:one");
    world.elsewhere.put(&id("anthropic:two"), &key_of("anthropic:two"), T0).await.unwrap();
    let anthropic = ProviderId::new("anthropic").unwrap();
    world.elsewhere.set_order(&anthropic, &[id("anthropic:two"), id("anthropic:one")]).await.unwrap();
    second();
    assert_eq!(profile_that_answers(&engine, "b").await, "anthropic:two");

    let paused = |stats: &_| pause(stats, WindowScope::Profile, "ada", world.clock.now()).unwrap();
    world.elsewhere.steer_usage(&id("anthropic:two"), paused).await.unwrap();
    second();
    assert_eq!(profile_that_answers(&engine, "c").await, "anthropic:one");
    world.elsewhere.remove(&id("anthropic:one"), world.clock.now()).await.unwrap();
    second();
    let refused = engine.chat(&turn("d")).await.unwrap_err();
    assert!(refused.to_string().contains("paused"), "{refused}");
}

// spec: A-23, A-17
#[tokio::test]
async fn what_was_held_against_a_removed_credential_does_not_come_back_with_its_name() {
    let world = world();
    let down = Scripted::new("anthropic", true);
    let one = id("anthropic:one");
    world.elsewhere.put(&one, &key_of("anthropic:one"), T0).await.unwrap();
    let engine = bare(&world, CONFIG, &[Arc::clone(&down)]).await;
    assert!(engine.chat(&turn("s")).await.is_err());
    engine.flush().await;
    assert!(world.elsewhere.usage(&one).await.unwrap().error_count() > 0);
    world.elsewhere.remove(&one, world.clock.now()).await.unwrap();
    world.elsewhere.put(&one, &key_of("anthropic:one"), T0).await.unwrap();
    down.down.store(false, Ordering::Relaxed);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(profile_that_answers(&engine, "s").await, "anthropic:one");
}

// spec: A-4, A-8, A-23
#[tokio::test]
async fn the_list_says_where_each_stands_and_why_the_others_do_not() {
    let world = world();
    for name in ["anthropic:a", "anthropic:b", "anthropic:c"] {
        world.elsewhere.put(&id(name), &key_of(name), T0).await.unwrap();
    }
    let config = CONFIG.replacen(
        '{',
        "{ auth: { order: { anthropic: ['anthropic:b', 'anthropic:a', 'anthropic:x'] } },",
        1,
    );
    let model: ModelRef = "anthropic/a".parse().unwrap();
    let billing = Failure::new(&model, FailoverReason::Billing, T0).into();
    let failed = |stats: &_| next_usage(stats, &billing, &CooldownPolicy::default(), T0);
    world.elsewhere.update_usage(&id("anthropic:b"), failed).await.unwrap();
    let adapter = Scripted::new("anthropic", false);
    let engine = bare(&world, &config, &[Arc::clone(&adapter)]).await;
    let accounts = engine.accounts().await;
    let shown: Vec<_> = accounts
        .iter()
        .map(|it| (it.profile.as_str(), it.position, it.why.map(Why::code), it.left_out))
        .collect();
    assert_eq!(
        shown,
        [
            ("anthropic:a", Some(1), Some("listed"), None),
            ("anthropic:b", Some(2), Some("waiting"), None),
            ("anthropic:x", None, None, Some(LeftOutReason::Unknown)),
            ("anthropic:c", None, None, Some(LeftOutReason::NotListed)),
        ]
    );
    let waiting = accounts.get(1).unwrap();
    assert!(matches!(waiting.availability, Availability::Disabled { .. }));
    assert_eq!(waiting.next_probe, Some(T0.after(Duration::from_mins(15))));

    // Named all the same: it is said what is true.
    let mut turn = turn("s");
    turn.model = Some("anthropic/a@anthropic:c".parse().unwrap());
    let refused = engine.chat(&turn).await.unwrap_err().to_string();
    assert!(refused.contains("anthropic:c") && refused.contains("does not list it"), "{refused}");
    turn.model = Some("anthropic/a@anthropic:x".parse().unwrap());
    let refused = engine.chat(&turn).await.unwrap_err().to_string();
    assert!(refused.contains("no credential is stored"), "{refused}");
    assert_eq!(adapter.calls(), 0);
}

// spec: A-16, A-23, A-26
#[tokio::test]
async fn a_probe_lifts_what_it_disproves_and_harms_nobody() {
    let world = world();
    let one = id("anthropic:one");
    world.elsewhere.put(&one, &key_of("anthropic:one"), T0).await.unwrap();
    let adapter = Scripted::new("anthropic", true);
    let engine = bare(&world, CONFIG, &[Arc::clone(&adapter)]).await;
    let model: ModelRef = "anthropic/a".parse().unwrap();
    assert_eq!(engine.model_of(&one.provider_id()), Some(model.clone()));

    let probed = engine.probe(&one, &model).await;
    assert!(
        matches!(&probed.end, ProbedEnd::Failed { error, .. } if error.reason == FailoverReason::Overloaded)
    );
    assert_eq!((adapter.calls(), &probed.availability), (1, &Availability::Usable), "one attempt, no blame");

    let billing = Failure::new(&model, FailoverReason::Billing, world.clock.now()).into();
    let failed = |stats: &_| next_usage(stats, &billing, &CooldownPolicy::default(), T0);
    world.elsewhere.update_usage(&one, failed).await.unwrap();
    world.clock.advance(Duration::from_secs(2));
    let probed = engine.probe(&one, &model).await;
    assert!(matches!(probed.end, ProbedEnd::Failed { .. }));
    assert!(matches!(probed.availability, Availability::Disabled { .. }), "{probed:?}");
    assert_eq!(adapter.calls(), 2);

    adapter.down.store(false, Ordering::Relaxed);
    let probed = engine.probe(&one, &model).await;
    assert!(matches!(probed.end, ProbedEnd::Answered { .. }), "{probed:?}");
    assert!(probed.availability.is_usable());
    engine.flush().await;
    let stored = world.elsewhere.usage(&one).await.unwrap();
    assert!(failover::auth::availability(&stored, None, world.clock.now()).is_usable());

    let paused = |stats: &_| pause(stats, WindowScope::Profile, "ada", world.clock.now()).unwrap();
    world.elsewhere.steer_usage(&one, paused).await.unwrap();
    world.clock.advance(Duration::from_secs(2));
    let probed = engine.probe(&one, &model).await;
    assert!(matches!(probed.end, ProbedEnd::NotTried(_)), "{probed:?}");
    assert_eq!(adapter.calls(), 3);
}

// spec: A-26
#[tokio::test]
async fn of_two_processes_only_one_probes_at_a_time() {
    let world = world();
    let one = id("anthropic:one");
    world.elsewhere.put(&one, &key_of("anthropic:one"), T0).await.unwrap();
    let model: ModelRef = "anthropic/a".parse().unwrap();
    let billing = Failure::new(&model, FailoverReason::Billing, T0).into();
    let failed = |stats: &_| next_usage(stats, &billing, &CooldownPolicy::default(), T0);
    world.elsewhere.update_usage(&one, failed).await.unwrap();
    // Somebody else holds the lease.
    let held =
        serde_json::json!({ "holder": "other", "until": T0.after(Duration::from_mins(1)), "grantedAt": T0 });
    let key = failover::auth::probe_lease_key(&AgentId::main(), &one, &model).unwrap();
    let value = failover::store::Value::new(serde_json::to_vec(&held).unwrap());
    let options = failover::store::WriteOptions::soft();
    drop(world.store.swap(&key, failover::store::Expect::Absent, Some(value), options).await.unwrap());
    let adapter = Scripted::new("anthropic", false);
    let engine = bare(&world, CONFIG, &[Arc::clone(&adapter)]).await;
    let probed = engine.probe(&one, &model).await;
    assert!(matches!(probed.end, ProbedEnd::NotTried(_)), "{probed:?}");
    assert_eq!(adapter.calls(), 0);
    // A dead prober's lease runs out.
    world.clock.advance(Duration::from_mins(2));
    let probed = engine.probe(&one, &model).await;
    assert!(matches!(probed.end, ProbedEnd::Answered { .. }), "{probed:?}");
}

async fn change(
    engine: &Engine,
    session: &str,
    change: impl Fn(&SessionEntry) -> SessionEntry + Send + Sync,
) {
    let key = SessionKey::new(AgentId::main(), SessionId::new(session).unwrap());
    engine.sessions().update(&key, |entry| Some(change(entry))).await.unwrap();
}

fn compacted(entry: &SessionEntry, count: u64) -> SessionEntry {
    let count = RawValue::from_string(count.to_string()).unwrap();
    entry.with_field("compactionCount", Some(count)).unwrap()
}

// spec: A-7
#[tokio::test]
async fn a_session_keeps_its_credential_until_it_is_compacted_or_reset() {
    let world = world();
    for name in ["anthropic:a", "anthropic:b"] {
        world.elsewhere.put(&id(name), &key_of(name), T0).await.unwrap();
    }
    let engine = bare(&world, CONFIG, &[Scripted::new("anthropic", false)]).await;
    let ask = async |session: &str| {
        world.clock.advance(Duration::from_secs(1));
        profile_that_answers(&engine, session).await
    };
    let first = ask("s").await;
    let other = ask("t").await;
    assert_ne!(first, other, "the least recently used goes first");
    for _ in 0..3 {
        assert_eq!(ask("s").await, first);
        assert_eq!(ask("t").await, other);
    }
    // The host counts a compaction: the pin lapses, and the least recently used is pinned instead.
    change(&engine, "t", |entry| compacted(entry, 1)).await;
    assert_eq!(ask("t").await, first);
    for _ in 0..2 {
        assert_eq!(ask("t").await, first, "pinned at the new count");
    }
    // A reset ends it as well.
    change(&engine, "s", |entry| reset(entry, ResetKind::Reset)).await;
    assert_eq!(ask("s").await, other);
    assert_eq!(ask("s").await, other);
}

// spec: A-8
#[tokio::test]
async fn a_persons_pin_outlasts_compaction_and_reset_and_ends_with_a_new_session() {
    let world = world();
    for name in ["anthropic:a", "anthropic:b"] {
        world.elsewhere.put(&id(name), &key_of(name), T0).await.unwrap();
    }
    let fallback = Scripted::new("openai", false);
    world.elsewhere.put(&id("openai:x"), &key_of("openai:x"), T0).await.unwrap();
    let primary = Scripted::new("anthropic", false);
    let engine = bare(&world, CONFIG, &[Arc::clone(&primary), fallback]).await;
    let ask = async || {
        world.clock.advance(Duration::from_secs(1));
        profile_that_answers(&engine, "s").await
    };
    change(&engine, "s", |entry| pin_user(entry, Some(&id("anthropic:b")))).await;
    for _ in 0..3 {
        assert_eq!(ask().await, "anthropic:b");
    }
    change(&engine, "s", |entry| compacted(entry, 4)).await;
    change(&engine, "s", |entry| reset(entry, ResetKind::Reset)).await;
    assert_eq!(ask().await, "anthropic:b");
    // It fails: never another profile of its provider, but the next model.
    primary.down.store(true, Ordering::Relaxed);
    let calls = primary.calls();
    assert_eq!(ask().await, "openai:x");
    assert_eq!(primary.calls(), calls + 1);
    primary.down.store(false, Ordering::Relaxed);
    change(&engine, "s", |entry| reset(entry, ResetKind::New)).await;
    world.clock.advance(Duration::from_hours(1));
    let after: Vec<String> = vec![ask().await, ask().await];
    assert!(after.iter().all(|profile| profile == "anthropic:a"), "{after:?}");
    change(&engine, "s", |entry| pin_user(entry, Some(&id("anthropic:b")))).await;
    change(&engine, "s", |entry| pin_user(entry, None)).await;
    assert_ne!(ask().await, "openai:x");
}

// spec: A-20
#[tokio::test]
async fn the_skip_time_comes_from_the_environment_where_the_config_says_nothing() {
    const ONE: &str = "{ agents: { defaults: { model: 'openai/b' } } }";
    for (name, text, expected) in [
        ("FAILOVER_SKIP_TTL_MS", "30000", Some(30_000)),
        ("OPENCLAW_FALLBACK_SKIP_TTL_MS", " 5 ", Some(1_000)),
        ("FAILOVER_SKIP_TTL_MS", "soon", None),
        ("FAILOVER_SKIP_TTL_MS", "0", None),
        ("SOMETHING_ELSE", "30000", None),
    ] {
        let loaded = load_text("failover.json5", ONE).unwrap();
        let environment = Arc::new(move |asked: &str| (asked == name).then(|| text.to_owned()));
        let Setup { engine, .. } = Engine::builder(loaded).environment(environment).build().await.unwrap();
        assert_eq!(engine.runner().policy().skip_ttl_ms, expected, "{name}={text}");
    }
    let config = ONE.replacen("defaults: {", "defaults: { skipTtlMs: 9000,", 1);
    let engine = engine(&config, world().store, Arc::new(ManualClock::new(T0)), &[]).await;
    assert_eq!(engine.runner().policy().skip_ttl_ms, Some(9_000), "the config goes first");
}

/// The usage endpoint: asked for as if it were a model.
struct UsageEndpoint;

impl Dialect for UsageEndpoint {
    fn read(&self, request: &Request) -> Option<Asked> {
        let asked = request.method == "GET" && request.path() == "/api/oauth/usage";
        let bearer = request.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
        asked.then(|| Asked::new("usage", false, bearer.map(str::to_owned)))
    }

    fn complete(&self, _: &Asked, _: &Answer) -> Vec<u8> {
        Vec::new()
    }

    fn frames(&self, _: &Asked, _: &Answer) -> Vec<Frame> {
        Vec::new()
    }
}

// spec: A-13
#[tokio::test]
async fn a_limited_subscription_is_blocked_until_the_reset_that_its_provider_tells() {
    let world = world();
    let upstream = Upstream::start_with(
        Arc::clone(&world.clock) as _,
        vec![Box::<Messages>::default(), Box::new(UsageEndpoint)],
    );
    let upstream = upstream.await.unwrap();
    let limited = r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit."}}"#;
    upstream.script("a", [Step::json(429, limited)]);
    let until = T0.after(Duration::from_hours(5 * 24));
    let at = jiff::Timestamp::from_millisecond(i64::try_from(until.as_millis()).unwrap()).unwrap();
    let body = format!(
        r#"{{"five_hour":{{"utilization":100,"resets_at":"{at}"}},"seven_day":{{"utilization":12}}}}"#
    );
    upstream.script(On::model("usage").with_key("sk-sub"), [Step::json(200, &body)]);

    let provider = ProviderId::new("anthropic").unwrap();
    let token = SecretSource::Literal(Secret::new("sk-sub"));
    let subscription = Credential::Token { provider: provider.clone(), token, expires: None };
    world.elsewhere.put(&id("anthropic:sub"), &subscription, T0).await.unwrap();
    let config = failover_http::TargetConfig::new().base_url(upstream.base_url());
    let adapter = Anthropic::new(provider, config).unwrap();
    let built = Engine::builder(load_text("failover.json5", CONFIG).unwrap())
        .clock(Arc::clone(&world.clock) as _)
        .store(Arc::clone(&world.store))
        .environment(Arc::new(|_| None))
        .adapter(Arc::new(adapter));
    let Setup { engine, .. } = built.build().await.unwrap();
    assert!(engine.chat(&turn("s")).await.is_err());
    // Behind the run.
    engine.flush().await;
    assert_eq!(upstream.count("usage"), 1);
    let stored = world.elsewhere.usage(&id("anthropic:sub")).await.unwrap();
    let blocked = failover::auth::availability(&stored, None, T0);
    assert!(matches!(blocked, Availability::Blocked { until: end, .. } if end == until), "{blocked:?}");
    assert_eq!(
        failover::auth::FlatUsage::export(&stored, T0).blocked_source.as_deref(),
        Some("claude_usage")
    );
    // A key is no subscription: nobody asks about it.
    let calls = upstream.count("a");
    world.elsewhere.put(&id("anthropic:key"), &key_of("anthropic:key"), T0).await.unwrap();
    world.clock.advance(Duration::from_secs(1));
    assert!(engine.chat(&turn("s")).await.is_err());
    engine.flush().await;
    assert_eq!((upstream.count("usage"), upstream.count("a")), (1, calls + 1));
}

/// Never answers.
struct Silent;

#[async_trait::async_trait]
impl LimitProbe for Silent {
    async fn reset_time(&self, _: &ResolvedCredential, _: Timestamp) -> Result<Option<Reset>, ProbeError> {
        std::future::pending::<()>().await;
        Err(AttemptFailure::new(ProviderId::new("a").unwrap(), failover::classify::Surface::Local).into())
    }
}

// spec: A-13, A-25
#[tokio::test]
async fn a_provider_that_does_not_tell_holds_nobody_up() {
    let world = world();
    let provider = ProviderId::new("anthropic").unwrap();
    let upstream = Upstream::start_with(Arc::clone(&world.clock) as _, vec![Box::<Messages>::default()]);
    let upstream = upstream.await.unwrap();
    upstream.script(
        "a",
        [Step::json(429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#)],
    );
    let token = SecretSource::Literal(Secret::new("sk-sub"));
    let subscription = Credential::Token { provider: provider.clone(), token, expires: None };
    world.elsewhere.put(&id("anthropic:sub"), &subscription, T0).await.unwrap();
    let config = failover_http::TargetConfig::new().base_url(upstream.base_url());
    let built = Engine::builder(load_text("failover.json5", CONFIG).unwrap())
        .clock(Arc::clone(&world.clock) as _)
        .store(Arc::clone(&world.store))
        .environment(Arc::new(|_| None))
        .limit_probe(provider.clone(), Arc::new(Silent))
        .adapter(Arc::new(Anthropic::new(provider, config).unwrap()));
    let Setup { engine, .. } = built.build().await.unwrap();
    assert!(engine.chat(&turn("s")).await.is_err(), "the run has ended, and nobody has answered yet");
    let waiting = async { engine.flush().await };
    let passing = async {
        // The question ends by the clock.
        world.clock.until_waiting_for(T0.after(Duration::from_secs(10))).await;
        world.clock.advance(Duration::from_secs(11));
    };
    tokio::join!(waiting, passing);
    assert!(matches!(
        failover::auth::availability(
            &world.elsewhere.usage(&id("anthropic:sub")).await.unwrap(),
            Some("a"),
            T0
        ),
        Availability::Cooling { .. }
    ));
}

// spec: A-24
#[test]
fn which_providers_balance_themselves_comes_from_the_config() {
    let config =
        "{ models: { providers: { acme: { selfBalancing: true }, openrouter: { selfBalancing: false } } } }";
    let policy =
        |text| failover::cooldown_policy(&load_text("failover.json5", text).unwrap().config).unwrap();
    let balances = |text, name| policy(text).is_self_balancing(&ProviderId::new(name).unwrap());
    assert!(balances("{}", "openrouter") && !balances("{}", "acme"));
    assert!(!balances(config, "openrouter") && balances(config, "acme"));
}

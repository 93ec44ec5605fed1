//! The tables of an agent.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_auth::{
    Availability, CooldownPolicy, Failure, LeaseClaim, LeaseTerms, UsageStats, WindowScope, availability,
    next_usage, pause,
};
use failover_credentials::Profiles;
use failover_store::{Expect, Key, KeyValue, MemoryStore, StoreError, Value, WriteOptions};
use failover_testkit::ManualClock;
use failover_types::{
    AgentId, Clock, Credential, FailoverReason, ModelRef, ProfileId, ProviderId, Secret, SecretSource,
    Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn store() -> Arc<dyn KeyValue> {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(T0));
    Arc::new(MemoryStore::new(clock))
}

fn key(text: &str) -> Credential {
    Credential::ApiKey {
        provider: ProviderId::new("a").unwrap(),
        key: SecretSource::Literal(Secret::new(text)),
    }
}

fn id(name: &str) -> ProfileId {
    ProfileId::new(name).unwrap()
}

fn failed(reason: FailoverReason, model: &str) -> impl Fn(&UsageStats) -> UsageStats + use<> {
    let model: ModelRef = model.parse().unwrap();
    let outcome = Failure::new(&model, reason, T0).into();
    move |stats| next_usage(stats, &outcome, &CooldownPolicy::default(), T0)
}

// spec: A-3, A-18
#[tokio::test]
async fn agents_do_not_see_each_other_and_all_profiles_are_listed() {
    let store = store();
    let main = Profiles::new(Arc::clone(&store), AgentId::main());
    let other = Profiles::new(store, AgentId::new("x").unwrap());
    for n in 0..600 {
        main.put(&id(&format!("a:p{n}")), &key("sk-1"), T0).await.unwrap();
    }
    other.put(&id("a:p1"), &key("sk-2"), T0).await.unwrap();
    main.update_usage(&id("a:p7"), failed(FailoverReason::Timeout, "a/m")).await.unwrap();
    let (set, unreadable) = main.load().await.unwrap();
    assert_eq!((set.len(), unreadable.len()), (600, 0));
    assert_eq!(set.get(&id("a:p7")).unwrap().usage.error_count(), 1);
    assert_eq!(other.load().await.unwrap().0.len(), 1);
    assert!(main.remove(&id("a:p7"), T0).await.unwrap());
    assert_eq!(main.credential(&id("a:p7")).await.unwrap(), None);
    let usage = main.usage(&id("a:p7")).await.unwrap();
    assert_eq!((availability(&usage, Some("m"), T0), usage.error_count()), (Availability::Usable, 0));
}

// spec: A-23
#[tokio::test]
async fn a_new_secret_clears_what_was_held_against_the_old_one() {
    let profiles = Profiles::new(store(), AgentId::main());
    profiles.put(&id("a:p"), &key("sk-1"), T0).await.unwrap();
    let stats = profiles.update_usage(&id("a:p"), failed(FailoverReason::Billing, "a/m")).await.unwrap();
    assert!(matches!(availability(&stats, None, T0), Availability::Disabled { .. }));
    profiles.put(&id("a:p"), &key("sk-2"), T0).await.unwrap();
    assert!(availability(&profiles.usage(&id("a:p")).await.unwrap(), None, T0).is_usable());
}

// spec: A-18
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_updates_lose_nothing() {
    let profiles = Profiles::new(store(), AgentId::main());
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let profiles = profiles.clone();
        tasks.spawn(async move {
            let one = failed(FailoverReason::Overloaded, &format!("a/m{n}"));
            profiles.update_usage(&id("a:p"), one).await.unwrap();
        });
    }
    tasks.join_all().await;
    let stats = profiles.usage(&id("a:p")).await.unwrap();
    assert_eq!((stats.active(T0).count(), stats.error_count()), (20, 20));
}

// spec: A-18, A-25
#[tokio::test]
async fn failures_inside_a_window_write_nothing() {
    let store = store();
    let profiles = Profiles::new(Arc::clone(&store), AgentId::main());
    let record = Key::new(&["agent", "main", "usage", "profile", "a:p"]).unwrap();
    let fail = failed(FailoverReason::Timeout, "a/m");
    profiles.update_usage(&id("a:p"), &fail).await.unwrap();
    let first = store.get(&record).await.unwrap().unwrap().version;
    for _ in 0..1_000 {
        profiles.update_usage(&id("a:p"), &fail).await.unwrap();
    }
    assert_eq!(store.get(&record).await.unwrap().unwrap().version, first);
}

// spec: A-23
#[tokio::test]
async fn a_pause_and_a_provider_record_stand_in_the_store() {
    let store = store();
    let profiles = Profiles::new(Arc::clone(&store), AgentId::main());
    let paused = |stats: &UsageStats| pause(stats, WindowScope::Profile, "ada", T0).unwrap();
    profiles.steer_usage(&id("a:p"), paused).await.unwrap();
    let provider = ProviderId::new("a").unwrap();
    profiles.update_provider_usage(&provider, failed(FailoverReason::Timeout, "a/m")).await.unwrap();
    let elsewhere = Profiles::new(store, AgentId::main());
    assert_eq!(availability(&elsewhere.usage(&id("a:p")).await.unwrap(), None, T0), Availability::Paused);
    assert_eq!(elsewhere.provider_usage(&provider).await.unwrap().error_count(), 1);
}

// spec: A-4
#[tokio::test]
async fn an_order_is_stored_and_taken_away() {
    let profiles = Profiles::new(store(), AgentId::main());
    let provider = ProviderId::new("a").unwrap();
    profiles.set_order(&provider, &[id("a:p2"), id("a:p1")]).await.unwrap();
    assert_eq!(profiles.order(&provider).await.unwrap(), [id("a:p2"), id("a:p1")]);
    profiles.set_order(&provider, &[]).await.unwrap();
    assert!(profiles.order(&provider).await.unwrap().is_empty());
}

// spec: A-26
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_callers_get_one_lease() {
    let profiles = Profiles::new(store(), AgentId::main());
    let terms = LeaseTerms::new(Duration::from_mins(1), Duration::ZERO);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200 {
        let profiles = profiles.clone();
        tasks.spawn(async move {
            let claim = profiles.claim_refresh(&id("a:p"), &n.to_string(), terms, T0).await.unwrap();
            matches!(claim, LeaseClaim::Granted(_)).then_some(n)
        });
    }
    let winners: Vec<u32> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    let holder = winners.first().unwrap().to_string();
    profiles.release_refresh(&id("a:p"), &holder, T0).await.unwrap();
    let next = profiles.claim_refresh(&id("a:p"), "next", terms, T0).await.unwrap();
    assert!(matches!(next, LeaseClaim::Granted(_)));
}

// spec: K-2, K-4
#[tokio::test]
async fn a_record_that_cannot_be_read_hides_no_other_and_is_not_written_over() {
    let store = store();
    let profiles = Profiles::new(Arc::clone(&store), AgentId::main());
    profiles.put(&id("a:good"), &key("sk-1"), T0).await.unwrap();
    let newer = Key::new(&["agent", "main", "credential", "a:newer"]).unwrap();
    let value = Value::new(br#"{"schema":99,"row":"sk-hidden"}"#.to_vec());
    let _ = store.swap(&newer, Expect::Absent, Some(value.clone()), WriteOptions::durable()).await.unwrap();
    let (set, unreadable) = profiles.load().await.unwrap();
    assert_eq!(set.len(), 1);
    assert!(matches!(&unreadable.first().unwrap().error, StoreError::Newer { found: 99, .. }));
    assert!(!format!("{unreadable:?}").contains("hidden"));
    assert!(profiles.put(&id("a:newer"), &key("sk-1"), T0).await.is_err());
    assert_eq!(store.get(&newer).await.unwrap().unwrap().value, value);
}

//! A store that machines share.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_credentials::{Profiles, SealedStore, StoreKey};
use failover_store::{Expect, Key, KeyValue, MemoryStore, Prefix, StoreError, WriteOptions};
use failover_testkit::ManualClock;
use failover_types::{
    AgentId, Clock, Credential, OAuth, ProfileId, ProviderId, Secret, SecretSource, Timestamp,
};
use std::sync::Arc;

const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const SECRET: &str = "sk-fixture-0123456789abcdefghijklmn";

fn plain() -> Arc<dyn KeyValue> {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(T0));
    Arc::new(MemoryStore::new(clock))
}

fn key(digit: &str) -> StoreKey {
    StoreKey::parse(&digit.repeat(64)).unwrap()
}

fn profiles(store: &Arc<dyn KeyValue>, key: Option<StoreKey>) -> Profiles {
    Profiles::new(Arc::new(SealedStore::new(Arc::clone(store), key)), AgentId::main())
}

fn id(name: &str) -> ProfileId {
    ProfileId::new(name).unwrap()
}

fn api_key(source: SecretSource) -> Credential {
    Credential::ApiKey { provider: ProviderId::new("a").unwrap(), key: source }
}

fn secret() -> Credential {
    api_key(SecretSource::Literal(Secret::new(SECRET)))
}

async fn everything(store: &Arc<dyn KeyValue>) -> String {
    let rows = store.scan(&Prefix::new(&["agent"]).unwrap(), None, 1_000).await.unwrap();
    rows.iter().map(|(_, found)| String::from_utf8_lossy(found.value.as_bytes()).into_owned()).collect()
}

// spec: A-3
#[tokio::test]
async fn secrets_are_sealed_and_every_machine_with_the_key_reads_them() {
    let store = plain();
    let here = profiles(&store, Some(key("a")));
    let provider = ProviderId::new("a").unwrap();
    let pair = OAuth::new(provider, Secret::new(SECRET), Secret::new("sk-fixture-refresh"), T0);
    here.put(&id("a:key"), &secret(), T0).await.unwrap();
    here.put(&id("a:pair"), &Credential::OAuth(pair.clone()), T0).await.unwrap();
    let mut renewed = pair.clone();
    renewed.access = Secret::new("sk-fixture-new");
    let stands = here.replace_pair(&id("a:pair"), &pair, &renewed).await.unwrap();
    assert_eq!(stands.as_ref(), Some(&renewed));
    assert!(!everything(&store).await.contains("sk-fixture"));

    let there = profiles(&store, Some(key("a")));
    assert_eq!(there.credential(&id("a:key")).await.unwrap().unwrap().credential, secret());
    let (set, unreadable) = there.load().await.unwrap();
    assert_eq!((set.len(), unreadable.len()), (2, 0));
}

// spec: A-3
#[tokio::test]
async fn without_a_key_secrets_are_refused_and_references_are_not() {
    let store = plain();
    let here = profiles(&store, None);
    let error = here.put(&id("a:key"), &secret(), T0).await.unwrap_err();
    assert!(matches!(error, StoreError::Sealed { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("FAILOVER_STORE_KEY") && !text.contains("sk-fixture"), "{text}");
    assert!(everything(&store).await.is_empty());
    here.put(&id("a:env"), &api_key(SecretSource::Env("A_KEY".into())), T0).await.unwrap();
    assert!(profiles(&store, Some(key("a"))).credential(&id("a:env")).await.unwrap().is_some());
}

// spec: A-3, K-4
#[tokio::test]
async fn a_wrong_key_is_told_by_name_hides_nothing_and_overwrites_nothing() {
    let store = plain();
    profiles(&store, Some(key("a"))).put(&id("a:key"), &secret(), T0).await.unwrap();
    let before = everything(&store).await;
    for wrong in [Some(key("b")), None] {
        let other = profiles(&store, wrong.clone());
        let text = other.credential(&id("a:key")).await.unwrap_err().to_string();
        assert!(text.contains("FAILOVER_STORE_KEY") && text.contains(key("a").id()), "{text}");
        assert!(wrong.is_none_or(|wrong| text.contains(wrong.id())), "{text}");
        assert!(other.put(&id("a:key"), &secret(), T0).await.is_err());
        other.put(&id("a:env"), &api_key(SecretSource::Env("A_KEY".into())), T0).await.unwrap();
        let (set, unreadable) = other.load().await.unwrap();
        assert_eq!((set.len(), unreadable.len()), (1, 1));
        let text = unreadable.first().unwrap().error.to_string();
        assert!(text.contains("FAILOVER_STORE_KEY"), "{text}");
        other.remove(&id("a:env"), T0).await.unwrap();
    }
    assert!(everything(&store).await.contains(&before[..before.find("roster").unwrap_or(40)]));
}

// spec: A-3
#[tokio::test]
async fn a_value_that_was_changed_or_moved_is_not_opened() {
    let store = plain();
    let here = profiles(&store, Some(key("a")));
    here.put(&id("a:key"), &secret(), T0).await.unwrap();
    let at = |name: &str| Key::new(&["agent", "main", "credential", name]).unwrap();
    let found = store.get(&at("a:key")).await.unwrap().unwrap();
    let other = at("a:other");
    let value = Some(found.value.clone());
    drop(store.swap(&other, Expect::Absent, value, WriteOptions::durable()).await.unwrap());
    assert!(here.credential(&id("a:other")).await.is_err());

    let mut bytes = found.value.as_bytes().to_vec();
    let end = bytes.len() - 4;
    bytes[end] = if bytes[end] == b'0' { b'1' } else { b'0' };
    let changed = failover_store::Value::new(bytes);
    drop(
        store
            .swap(&at("a:key"), Expect::Version(found.version), Some(changed), WriteOptions::durable())
            .await,
    );
    assert!(matches!(here.credential(&id("a:key")).await, Err(StoreError::Sealed { .. })));
}

#[test]
fn a_key_is_64_hexadecimal_digits_and_shows_its_id_only() {
    for bad in ["", "a", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66), "päss"] {
        assert!(StoreKey::parse(bad).is_err(), "{bad}");
    }
    let text = format!("{:?}", key("a"));
    assert!(!text.contains("aaaa"), "{text}");
}

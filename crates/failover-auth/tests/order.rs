//! Whom to try, in which order, and who is left out: as tables.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_auth::{
    Availability, Choice, ConfiguredProfile, CooldownPolicy, Deadline, Failure, Order, OrderRequest,
    OrderSource, Pin, Profile, ProfileSet, Success, UsageStats, UserPinMode, WindowScope, choose,
    infer_reason, next_usage, order, pause, soonest_expiry,
};
use failover_types::{
    Credential, CredentialKind, FailoverReason, ModelRef, OAuth, ProfileId, ProviderId, Secret, SecretSource,
    Timestamp,
};
use proptest::prelude::*;
use std::time::Duration;
use test_case::test_case;

const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn at(seconds: u64) -> Timestamp {
    T0.after(Duration::from_secs(seconds))
}

fn provider(name: &str) -> ProviderId {
    ProviderId::new(name).unwrap()
}

fn ids(names: &[&str]) -> Vec<ProfileId> {
    names.iter().map(|name| ProfileId::new(name).unwrap()).collect()
}

fn failed(stats: &UsageStats, reason: FailoverReason, model: &str, seconds: u64) -> UsageStats {
    let model: ModelRef = model.parse().unwrap();
    next_usage(
        stats,
        &Failure::new(&model, reason, at(seconds)).into(),
        &CooldownPolicy::default(),
        at(seconds),
    )
}

/// A profile from a word for its state, and when it was last used (0: never).
fn profile(id: &str, kind: CredentialKind, state: &str, used: u64) -> Profile {
    let id = ProfileId::new(id).unwrap();
    let owner = provider(id.provider());
    let secret = || SecretSource::Literal(Secret::new("s"));
    let expires = if state == "expired" { at(50) } else { at(9_999_999) };
    let credential = match kind {
        ApiKey => Credential::ApiKey { provider: owner, key: secret() },
        Token => Credential::Token { provider: owner, token: secret(), expires: Some(expires) },
        Login => {
            let refresh = if state == "spent" { "" } else { "r" };
            let expires = if state == "spent" { at(50) } else { expires };
            Credential::OAuth(OAuth::new(owner, Secret::new("a"), Secret::new(refresh), expires))
        }
    };
    let model = format!("{}/m1", id.provider());
    let mut usage = UsageStats::default();
    if used > 0 {
        let success = Success::new(&model.parse().unwrap(), at(used)).into();
        usage = next_usage(&usage, &success, &CooldownPolicy::default(), at(used));
    }
    usage = match state {
        "cooling" => failed(&usage, FailoverReason::Timeout, &model, 95),
        "cooling sooner" => failed(&usage, FailoverReason::Timeout, &model, 90),
        "m1 limited" => failed(&usage, FailoverReason::RateLimit, &model, 95),
        "disabled" => failed(&usage, FailoverReason::Billing, &model, 95),
        "blocked" => {
            let failure = Failure::new(&model.parse().unwrap(), FailoverReason::RateLimit, at(95));
            let failure = failure.deadline(Some(Deadline::exact(at(7_200), "wham")));
            next_usage(&usage, &failure.into(), &CooldownPolicy::default(), at(95))
        }
        "paused" => pause(&usage, WindowScope::Profile, "ada", at(95)).unwrap(),
        _ => usage,
    };
    Profile::new(id, &credential, usage)
}

/// `usable` and friends behind each name, then those left out.
fn show(order: &Order) -> String {
    let slots = order.slots.iter().map(|slot| match slot.availability.code() {
        "usable" => slot.profile.to_string(),
        code => format!("{} ({code})", slot.profile),
    });
    let left_out = order.left_out.iter().map(|out| format!("- {}: {}", out.profile, out.reason.code()));
    slots.chain(left_out).collect::<Vec<_>>().join(", ")
}

use CredentialKind::{ApiKey, OAuth as Login, Token};

/// One profile of every state.
fn everybody() -> ProfileSet {
    [
        profile("a:key", ApiKey, "", 0),
        profile("a:key-used", ApiKey, "", 20),
        profile("a:token", Token, "", 30),
        profile("a:token-expired", Token, "expired", 0),
        profile("a:login", Login, "", 40),
        profile("a:login-expired", Login, "expired", 0),
        profile("a:login-spent", Login, "spent", 0),
        profile("a:cooling", Login, "cooling", 0),
        profile("a:cooling-sooner", ApiKey, "cooling sooner", 0),
        profile("a:disabled", ApiKey, "disabled", 0),
        profile("a:blocked", Login, "blocked", 0),
        profile("a:limited", ApiKey, "m1 limited", 0),
        profile("a:paused", ApiKey, "paused", 0),
        profile("b:other", ApiKey, "", 0),
    ]
    .into_iter()
    .collect()
}

// spec: A-4, A-6
#[test]
fn without_an_order_it_is_kind_then_least_recently_used_then_those_that_wait() {
    let (set, a) = (everybody(), provider("a"));
    let found = order(&OrderRequest::new(&a, &set, at(100)).model(Some("m1")));
    assert_eq!(found.source, OrderSource::StoredProfiles);
    assert_eq!(
        show(&found),
        "a:login, a:login-expired, a:token, a:key, a:key-used, \
         a:cooling-sooner (cooling), a:cooling (cooling), a:limited (cooling), a:blocked (blocked), \
         a:disabled (disabled), \
         - a:login-spent: expired, - a:paused: paused, - a:token-expired: expired"
    );
    let other = order(&OrderRequest::new(&a, &set, at(100)).model(Some("m2")));
    assert!(show(&other).contains("a:limited,"), "another model's window does not count: {}", show(&other));
}

// spec: A-4, A-5
#[test]
fn an_explicit_order_stands_but_those_that_are_out_come_last() {
    let (set, a) = (everybody(), provider("a"));
    let wanted = ids(&[
        "a:disabled",
        "a:key",
        "a:cooling",
        "b:other",
        "a:login",
        "a:nobody",
        "a:key",
        "a:cooling-sooner",
    ]);
    let found = order(&OrderRequest::new(&a, &set, at(100)).config(&wanted, &[]));
    assert_eq!(found.source, OrderSource::ConfigOrder);
    assert_eq!(
        show(&found),
        "a:key, a:login, a:cooling-sooner (cooling), a:cooling (cooling), a:disabled (disabled), \
         - b:other: wrong_provider, - a:nobody: unknown"
    );
    let codes: Vec<_> = found.slots.iter().map(|slot| slot.why.code()).collect();
    assert_eq!(codes, ["listed", "listed", "waiting", "waiting", "waiting"]);
}

// spec: A-4
#[test]
fn the_first_source_that_names_anybody_decides() {
    let (set, a) = (everybody(), provider("a"));
    let (stored, config) = (ids(&["a:key"]), ids(&["a:token"]));
    let configured =
        |name: &str, kind| ConfiguredProfile::new(ProfileId::new(name).unwrap(), a.clone(), kind);
    let profiles = [configured("a:key-used", None), configured("a:login", Some(Login))];
    let request = OrderRequest::new(&a, &set, at(100));
    let sources = [
        (request.stored_order(&stored).config(&config, &profiles), "a:key"),
        (request.config(&config, &profiles), "a:token"),
        (request.config(&[], &profiles), "a:login, a:key-used"),
    ];
    for (request, expected) in sources {
        assert_eq!(show(&order(&request)), expected);
    }
}

// spec: A-4
#[test_case(None, ApiKey, true; "no kind in config")]
#[test_case(Some(ApiKey), ApiKey, true; "the same kind")]
#[test_case(Some(ApiKey), Login, false; "a login where a key was meant")]
#[test_case(Some(Login), Token, true; "a token may stand in for a login")]
#[test_case(Some(Token), Login, false; "a login may not stand in for a token")]
fn a_credential_of_another_kind_than_config_says_is_left_out(
    wanted: Option<CredentialKind>,
    stored: CredentialKind,
    taken: bool,
) {
    let a = provider("a");
    let set: ProfileSet = [profile("a:p", stored, "", 0)].into_iter().collect();
    let configured = [ConfiguredProfile::new(ProfileId::new("a:p").unwrap(), a.clone(), wanted)];
    let found = order(&OrderRequest::new(&a, &set, at(100)).config(&[], &configured));
    assert_eq!(show(&found), if taken { "a:p" } else { "- a:p: wrong_kind" });
}

// spec: A-9
#[test]
fn a_subscription_and_a_key_of_openai_rotate_in_one_order() {
    let set: ProfileSet = [
        profile("openai:key", ApiKey, "", 0),
        profile("openai-codex:ada@example.com", Login, "", 0),
        profile("openai-codex:bob@example.com", Login, "cooling", 0),
    ]
    .into_iter()
    .collect();
    let openai = provider("openai");
    let request = OrderRequest::new(&openai, &set, at(100)).model(Some("gpt-5"));
    let robin = "openai-codex:ada@example.com, openai:key, openai-codex:bob@example.com (cooling)";
    assert_eq!(show(&order(&request)), robin);
    let wanted = ids(&["openai:key", "openai-codex:bob@example.com", "openai-codex:ada@example.com"]);
    let listed = order(&request.config(&wanted, &[]));
    assert_eq!(
        show(&listed),
        "openai:key, openai-codex:ada@example.com, openai-codex:bob@example.com (cooling)"
    );
    let codex = provider("openai-codex");
    assert!(!show(&order(&OrderRequest::new(&codex, &set, at(100)))).contains("openai:key"));
}

// spec: A-5, A-18
#[test]
fn a_providers_own_window_holds_for_all_its_profiles() {
    let set: ProfileSet =
        [profile("a:p1", ApiKey, "", 0), profile("a:p2", ApiKey, "disabled", 0)].into_iter().collect();
    let a = provider("a");
    let down = failed(&UsageStats::default(), FailoverReason::ServerError, "a/m1", 95);
    let found = order(&OrderRequest::new(&a, &set, at(100)).provider_usage(Some(&down)));
    assert_eq!(show(&found), "a:p1 (cooling), a:p2 (disabled)");
    let paused = pause(&down, WindowScope::Model("m1".into()), "ada", at(95)).unwrap();
    let found = order(&OrderRequest::new(&a, &set, at(100)).model(Some("m1")).provider_usage(Some(&paused)));
    assert_eq!(show(&found), "- a:p1: paused, - a:p2: paused");
}

fn chosen(choice: &Choice) -> Vec<&str> {
    choice.slots.iter().map(|slot| slot.profile.as_str()).collect()
}

fn three(second: &str) -> Order {
    let set: ProfileSet = [
        profile("a:p1", ApiKey, "", 10),
        profile("a:p2", ApiKey, second, 20),
        profile("a:p3", ApiKey, "", 30),
    ]
    .into_iter()
    .collect();
    order(&OrderRequest::new(&provider("a"), &set, at(100)))
}

// spec: A-7
#[test]
fn an_automatic_pin_is_a_preference_that_ends_with_compaction_or_cooling() {
    let pin = Pin::auto(ProfileId::new("a:p2").unwrap(), 3);
    let choice = choose(&three(""), Some(&pin), 3, UserPinMode::Strict);
    assert_eq!((chosen(&choice), choice.repin, choice.strict), (vec!["a:p2", "a:p1", "a:p3"], false, false));
    assert_eq!(choice.slots.first().unwrap().why.code(), "pinned");
    let compacted = choose(&three(""), Some(&pin), 4, UserPinMode::Strict);
    assert_eq!((chosen(&compacted), compacted.repin), (vec!["a:p1", "a:p2", "a:p3"], true));
    for state in ["cooling", "disabled", "blocked", "paused"] {
        let out = choose(&three(state), Some(&pin), 3, UserPinMode::Strict);
        assert_eq!(
            (chosen(&out).first(), out.repin, out.force_probe),
            (Some(&"a:p1"), true, false),
            "{state}"
        );
    }
    let none = choose(&three(""), None, 0, UserPinMode::Strict);
    assert_eq!((chosen(&none), none.repin), (vec!["a:p1", "a:p2", "a:p3"], true));
}

// spec: A-8, A-23
#[test]
fn a_persons_pin_is_strict_and_forces_one_probe() {
    let pin = Pin::user(ProfileId::new("a:p2").unwrap());
    let choice = choose(&three(""), Some(&pin), 99, UserPinMode::Strict);
    assert_eq!(
        (chosen(&choice), choice.strict, choice.repin, choice.force_probe),
        (vec!["a:p2"], true, false, false)
    );
    let out = choose(&three("disabled"), Some(&pin), 0, UserPinMode::Strict);
    assert_eq!((chosen(&out), out.force_probe, out.unusable_pin), (vec!["a:p2"], true, None));
    let paused = choose(&three("paused"), Some(&pin), 0, UserPinMode::Strict);
    assert_eq!((chosen(&paused).len(), paused.unusable_pin.unwrap().code()), (0, "paused"));
    let gone =
        choose(&three(""), Some(&Pin::user(ProfileId::new("a:gone").unwrap())), 0, UserPinMode::Strict);
    assert_eq!((gone.slots.len(), gone.strict, gone.unusable_pin.unwrap().code()), (0, true, "unknown"));
}

// spec: A-8
#[test]
fn a_persons_pin_may_be_a_lasting_preference_instead() {
    let pin = Pin::user(ProfileId::new("a:p2").unwrap());
    let choice = choose(&three(""), Some(&pin), 99, UserPinMode::Preferred);
    assert_eq!((chosen(&choice), choice.strict, choice.repin), (vec!["a:p2", "a:p1", "a:p3"], false, false));
    let out = choose(&three("cooling"), Some(&pin), 99, UserPinMode::Preferred);
    assert_eq!((chosen(&out), out.repin), (vec!["a:p1", "a:p3", "a:p2"], false));
}

// spec: R-10
#[test]
fn the_soonest_expiry_knows_the_model() {
    let limited = failed(&UsageStats::default(), FailoverReason::RateLimit, "a/m1", 0);
    let timeout = failed(&UsageStats::default(), FailoverReason::Timeout, "a/m1", 10);
    let both = failed(&limited, FailoverReason::Billing, "a/m2", 0);
    let soonest =
        |list: &[&UsageStats], model| soonest_expiry(list.iter().copied(), None, Some(model), at(20));
    assert_eq!(soonest(&[&limited, &timeout], "m1"), Some(at(30)));
    assert_eq!(soonest(&[&limited, &timeout], "m2"), Some(at(20)), "usable now");
    assert_eq!(soonest(&[&both, &timeout], "m1"), Some(at(40)), "the last of a profile's own windows counts");
    let paused = pause(&limited, WindowScope::Profile, "ada", at(0)).unwrap();
    assert_eq!(soonest(&[&paused], "m1"), None);
    assert_eq!(soonest(&[], "m1"), None);
    let down = failed(&UsageStats::default(), FailoverReason::ServerError, "a/m1", 15);
    assert_eq!(soonest_expiry([&limited], Some(&down), Some("m1"), at(20)), Some(at(45)));
}

// spec: A-22
#[test]
fn one_reason_stands_for_all_profiles_that_are_out() {
    use FailoverReason::{Auth, AuthPermanent, Billing, Overloaded, RateLimit, Timeout};
    let stats = |reasons: &[FailoverReason]| {
        let fold = |stats: UsageStats, (n, reason): (u64, &FailoverReason)| {
            // Each in a window of its own: the one before has ended.
            failed(&stats, *reason, "a/m1", n * 400)
        };
        (0..).zip(reasons).fold(UsageStats::default(), fold)
    };
    let inferred = |list: &[UsageStats], seconds| infer_reason(list, Some("m1"), at(seconds));
    assert_eq!(
        inferred(&[stats(&[Timeout, Billing]), stats(&[Timeout, AuthPermanent])], 401),
        Some(AuthPermanent)
    );
    let blocked = profile("a:p", ApiKey, "blocked", 0).usage;
    assert_eq!(inferred(&[blocked, stats(&[Auth])], 96), Some(RateLimit));
    assert_eq!(
        inferred(&[stats(&[Timeout, RateLimit, RateLimit])], 801),
        Some(RateLimit),
        "the most counted"
    );
    assert_eq!(inferred(&[stats(&[RateLimit, Timeout])], 401), Some(Timeout), "a tie: the graver");
    assert_eq!(inferred(&[stats(&[Timeout, Overloaded])], 401), Some(Overloaded));
    assert_eq!(inferred(&[stats(&[Timeout])], 31), None, "nobody is out");
}

#[derive(Clone, Debug)]
struct Any(Vec<(u8, u8, u64)>);

fn any_profiles() -> impl Strategy<Value = Any> {
    prop::collection::vec((0_u8..3, 0_u8..8, 0_u64..90), 0..12).prop_map(Any)
}

const STATES: [&str; 8] = ["", "", "expired", "spent", "cooling", "disabled", "blocked", "paused"];

proptest! {
    // spec: A-4, A-5, A-6
    #[test]
    fn an_order_is_deterministic_complete_and_sorted(Any(seeds) in any_profiles(), backwards in any::<bool>()) {
        let profiles: Vec<_> = (0..)
            .zip(&seeds)
            .map(|(n, (kind, state, used))| {
                let kind = [ApiKey, Token, Login][usize::from(*kind)];
                profile(&format!("a:p{n:02}"), kind, STATES[usize::from(*state)], *used)
            })
            .collect();
        let a = provider("a");
        let forward: ProfileSet = profiles.iter().cloned().collect();
        let set: ProfileSet =
            if backwards { profiles.iter().rev().cloned().collect() } else { profiles.iter().cloned().collect() };
        let found = order(&OrderRequest::new(&a, &set, at(100)));
        prop_assert_eq!(&found, &order(&OrderRequest::new(&a, &forward, at(100))));
        prop_assert_eq!(found.slots.len() + found.left_out.len(), profiles.len());
        let key = |slot: &failover_auth::Slot| (!slot.availability.is_usable(), slot.availability.until());
        prop_assert!(found.slots.is_sorted_by_key(key));
        for slot in &found.slots {
            prop_assert_ne!(&slot.availability, &Availability::Paused);
            let profile = set.get(&slot.profile).unwrap();
            prop_assert!(!profile.is_expired(at(100)) || profile.refreshable);
        }
    }
}

//! One row per selection source and rule. The config is `p/P` with the fallbacks `a/A`, `b/B`, `c/C` unless a row says
//! otherwise; chains are written with the number of the rule that put each entry there.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_chain::{
    Capabilities, Chain, ChainConfig, ChainError, Fallbacks, FallbacksKind, FallbacksOverride,
    ModelChainConfig, Needs, Origin, Policy, Reference, Rescue, Selection, SelectionSource, Unfit, resolve,
    resolve_image, resolve_rescue,
};
use failover_types::{FailoverReason, ModelRef, ModelSelector, ProfileId, ProviderId};
use std::collections::BTreeSet;
use test_case::test_case;

fn model(text: &str) -> ModelRef {
    text.parse().unwrap()
}

fn setting(primary: &str, fallbacks: Fallbacks) -> ModelChainConfig {
    ModelChainConfig::new(Some(Reference::new(primary)), fallbacks)
}

fn config() -> ChainConfig {
    let mut config = ChainConfig::default();
    config.defaults = setting("p/P", Fallbacks::list(["a/A", "b/B", "c/C"]));
    config
}

fn with_agent(primary: Option<&str>, fallbacks: Fallbacks) -> ChainConfig {
    let mut config = config();
    config.agent = ModelChainConfig::new(primary.map(Reference::new), fallbacks);
    config
}

fn references(texts: &[&str]) -> Vec<Reference> {
    texts.iter().copied().map(Reference::new).collect()
}

fn auto(origin: &str) -> SelectionSource {
    SelectionSource::AutoOverride { origin: model(origin) }
}

fn cron(fallbacks: Option<&[&str]>) -> SelectionSource {
    SelectionSource::Cron { fallbacks: fallbacks.map(references) }
}

fn chain(requested: &str, source: SelectionSource, config: &ChainConfig, given: Option<&[&str]>) -> String {
    let selection = Selection::new(model(requested), None, source);
    let given = given.map(|texts| FallbacksOverride::new(references(texts)));
    let chain = resolve(&selection, config, given.as_ref());
    chain.candidates().iter().map(|it| format!("{}:{}", it.model, it.rule)).collect::<Vec<_>>().join(" ")
}

// spec: H-1, H-2, H-3, H-4, H-4b, H-5
#[test_case("p/P", auto("p/P"), None, "p/P:H-1 a/A:H-2 b/B:H-2 c/C:H-2"; "the primary")]
#[test_case("a/A", auto("p/P"), None, "a/A:H-1 b/B:H-2 c/C:H-2 p/P:H-3"; "the first fallback")]
#[test_case("b/B", auto("p/P"), None, "b/B:H-1 a/A:H-2 c/C:H-2 p/P:H-3"; "a middle fallback")]
#[test_case("x/X", cron(None), None, "x/X:H-1 a/A:H-2 b/B:H-2 c/C:H-2 p/P:H-3"; "elsewhere")]
#[test_case("p/X", cron(None), None, "p/X:H-1 a/A:H-2 b/B:H-2 c/C:H-2 p/P:H-3"; "elsewhere at the provider of the primary")]
#[test_case("x/X", cron(None), Some(&["d/D"]), "x/X:H-1 d/D:H-5"; "an override")]
#[test_case("x/X", cron(None), Some(&[]), "x/X:H-1"; "an empty override")]
#[test_case("p/P", SelectionSource::ConfiguredDefault, Some(&["d/D", "p/P", "d/D"]), "p/P:H-1 d/D:H-5"; "an override with repetitions")]
#[test_case("x/X", SelectionSource::UserOverride, Some(&["d/D"]), "x/X:H-1 d/D:H-5"; "an override counts for a strict source too")]
fn orders(requested: &str, source: SelectionSource, given: Option<&[&str]>, expected: &str) {
    assert_eq!(chain(requested, source, &config(), given), expected);
}

// spec: H-7
#[test_case("p/P", SelectionSource::ConfiguredDefault, "p/P:H-1 a/A:H-2 b/B:H-2 c/C:H-2"; "the configured default has its chain")]
#[test_case("a/A", auto("p/P"), "a/A:H-1 b/B:H-2 c/C:H-2 p/P:H-3"; "an auto override has the chain of its origin")]
#[test_case("x/X", SelectionSource::UserOverride, "x/X:H-1"; "a user override is strict")]
#[test_case("x/X", SelectionSource::LegacyOverride, "x/X:H-1"; "a legacy override is treated as a user's")]
#[test_case("x/X", cron(None), "x/X:H-1 a/A:H-2 b/B:H-2 c/C:H-2 p/P:H-3"; "a cron job has the configured fallbacks")]
#[test_case("x/X", cron(Some(&["d/D"])), "x/X:H-1 d/D:H-7"; "a cron job with fallbacks of its own")]
#[test_case("x/X", cron(Some(&[])), "x/X:H-1"; "a cron job with an empty list is strict")]
#[test_case("x/X", SelectionSource::Heartbeat, "x/X:H-1"; "a heartbeat model is strict")]
#[test_case("x/X", SelectionSource::OneOff, "x/X:H-1"; "a one-off override is strict")]
fn sources(requested: &str, source: SelectionSource, expected: &str) {
    assert_eq!(chain(requested, source, &config(), None), expected);
}

// spec: H-7, H-12
#[test_case(Some("g/G"), Fallbacks::Absent, "g/G", "g/G:H-1", (FallbacksKind::Absent, true); "absent: strict")]
#[test_case(Some("g/G"), Fallbacks::Empty(None), "g/G", "g/G:H-1", (FallbacksKind::Empty, true); "empty: explicitly strict")]
#[test_case(Some("g/G"), Fallbacks::Null(None), "g/G", "g/G:H-1 a/A:H-2 b/B:H-2 c/C:H-2", (FallbacksKind::List, false); "null: those of the defaults")]
#[test_case(Some("g/G"), Fallbacks::list(["h/H"]), "g/G", "g/G:H-1 h/H:H-2", (FallbacksKind::List, true); "a list: its own")]
#[test_case(None, Fallbacks::list(["h/H"]), "p/P", "p/P:H-1 h/H:H-2", (FallbacksKind::List, true); "a list without a primary: own fallbacks for the default")]
#[test_case(None, Fallbacks::Empty(None), "p/P", "p/P:H-1", (FallbacksKind::Empty, true); "empty without a primary: the default, strict")]
#[test_case(None, Fallbacks::Absent, "p/P", "p/P:H-1 a/A:H-2 b/B:H-2 c/C:H-2", (FallbacksKind::List, false); "nothing of its own")]
fn agents(
    primary: Option<&str>,
    fallbacks: Fallbacks,
    requested: &str,
    expected: &str,
    (kind, agent): (FallbacksKind, bool),
) {
    let config = with_agent(primary, fallbacks);
    let selection = config.selection().unwrap();
    assert_eq!(selection.model(), &model(requested));
    let source = if primary.is_some() { "agent_primary" } else { "configured_default" };
    assert_eq!(selection.source().as_str(), source);
    assert_eq!(chain(requested, selection.source().clone(), &config, None), expected);
    let resolved = resolve(&selection, &config, None);
    assert_eq!(*resolved.policy(), Policy::Configured { kind, agent, origin: None });
}

// spec: H-7
#[test_case("g/G", "h/H:H-1 g/G:H-3"; "the strict agent's primary: back to it and nowhere else")]
#[test_case("p/P", "h/H:H-1 a/A:H-2 b/B:H-2 c/C:H-2 p/P:H-3"; "the defaults' primary, from before the agent had its own")]
#[test_case("z/Z", "h/H:H-1 g/G:H-3"; "what is configured nowhere now: the agent's")]
fn an_auto_override_of_an_agent(origin: &str, expected: &str) {
    assert_eq!(chain("h/H", auto(origin), &with_agent(Some("g/G"), Fallbacks::Absent), None), expected);
}

// spec: H-2
#[test]
fn the_allowlist_limits_people_and_not_fallbacks() {
    let mut config = config();
    config.allowed = Some(BTreeSet::from([model("p/P")]));
    assert!(config.may_select(&model("p/P")) && !config.may_select(&model("a/A")));
    let expected = "p/P:H-1 a/A:H-2 b/B:H-2 c/C:H-2";
    assert_eq!(chain("p/P", SelectionSource::ConfiguredDefault, &config, None), expected);
    assert!(ChainConfig::default().may_select(&model("a/A")), "no list allows everything");
}

// spec: H-6
#[test]
fn references_normalize_and_unreadable_ones_are_reported() {
    let mut config = config();
    let place = Origin::new("failover.json5", 7, "agents.defaults.model.fallbacks[1]");
    config.defaults.fallbacks = Fallbacks::from_list(
        vec![
            Reference::new("Fast"),
            Reference::new("no-such-alias").at(place.clone()),
            Reference::new("OpenRouter/meta/llama-3/free"),
            Reference::new("z.ai/glm@zai:work"),
            Reference::new("P/P"),
            Reference::new("groq/quick"),
        ],
        None,
    );
    config.aliases.model("fast", ModelSelector::new(model("groq/quick"), None));
    config.aliases.provider("Z.AI", ProviderId::new("zai").unwrap());
    let chain = resolve(&config.selection().unwrap(), &config, None);
    let models: Vec<String> = chain.candidates().iter().map(|it| it.model.to_string()).collect();
    assert_eq!(models, ["p/P", "groq/quick", "openrouter/meta/llama-3/free", "zai/glm"]);
    assert_eq!(chain.candidates()[3].profile, Some(ProfileId::new("zai:work").unwrap()));
    let [unresolved] = chain.unresolved() else { panic!("{:?}", chain.unresolved()) };
    assert_eq!(unresolved.reference.origin.as_ref(), Some(&place));
    assert_eq!(
        unresolved.to_string(),
        "failover.json5:7 (agents.defaults.model.fallbacks[1]): \"no-such-alias\" is not of the form \
         provider/model, and no alias has that name"
    );
    let requested = Selection::new(model("z.ai/glm"), None, SelectionSource::UserOverride);
    assert_eq!(resolve(&requested, &config, None).candidates()[0].model, model("zai/glm"));
}

// spec: H-6
#[test]
fn an_unreadable_primary_is_an_error_to_start_with_and_a_report_behind_a_fallback() {
    let mut config = config();
    config.defaults.primary = Some(Reference::new("typo"));
    assert!(matches!(config.selection(), Err(ChainError::Unresolved(_))));
    let selection = Selection::new(model("a/A"), None, auto("p/P"));
    let chain = resolve(&selection, &config, None);
    assert_eq!((chain.candidates().len(), chain.unresolved().len()), (3, 1));
    config.defaults.primary = None;
    assert_eq!(config.selection().unwrap_err(), ChainError::NoModel);
}

// spec: H-8
#[test]
fn images_have_a_chain_of_their_own() {
    let mut config = config();
    let text_only = config.selection().unwrap();
    assert_eq!(config.image_selection().unwrap_err(), ChainError::NoImageModel);
    assert_eq!(resolve_image(&text_only, &config, None).unwrap_err(), ChainError::NoImageModel);

    config.image = setting("i/I", Fallbacks::list(["j/J", "k/K"]));
    config.allowed = Some(BTreeSet::from([model("p/P")]));
    let show = |selection: &Selection, given: Option<&FallbacksOverride>| {
        let chain = resolve_image(selection, &config, given).unwrap();
        let text =
            chain.candidates().iter().map(|it| format!("{}:{}", it.model, it.rule)).collect::<Vec<_>>();
        text.join(" ")
    };
    let requested = config.image_selection().unwrap();
    assert_eq!(show(&requested, None), "i/I:H-1 j/J:H-8 k/K:H-8");
    let later = Selection::new(model("k/K"), None, auto("i/I"));
    assert_eq!(show(&later, None), "k/K:H-1 j/J:H-8 i/I:H-3");
    let chosen = Selection::new(model("x/X"), None, SelectionSource::UserOverride);
    assert_eq!(show(&chosen, None), "x/X:H-1");
    assert_eq!(show(&requested, Some(&FallbacksOverride::default())), "i/I:H-1");

    config.image = ModelChainConfig::new(None, Fallbacks::list(["j/J", "k/K"]));
    assert_eq!(
        config.image_selection().unwrap().model(),
        &model("j/J"),
        "the first fallback where no primary is set"
    );
}

// spec: H-10
#[test]
fn rescue_chains_are_off_by_default_and_for_their_reason_only() {
    let mut config = config();
    let selection = config.selection().unwrap();
    assert_eq!(resolve_rescue(Rescue::ContextOverflow, &selection, &config), None);
    config.on_context_overflow = Fallbacks::list(["p/P", "big/B"]);
    let chain = resolve_rescue(Rescue::ContextOverflow, &selection, &config).unwrap();
    let shown: Vec<_> =
        chain.candidates().iter().map(|it| (it.model.to_string(), it.rule.number())).collect();
    assert_eq!(shown, [("big/B".to_owned(), "H-10")], "what was requested has failed already");
    assert_eq!(resolve_rescue(Rescue::ContentRefusal, &selection, &config), None);
    let chosen = Selection::new(model("p/P"), None, SelectionSource::UserOverride);
    assert_eq!(
        resolve_rescue(Rescue::ContextOverflow, &chosen, &config),
        None,
        "a strict choice stays strict"
    );
    let rescued: Vec<_> = FailoverReason::ALL.iter().filter_map(|reason| Rescue::of(*reason)).collect();
    assert_eq!(rescued, [Rescue::ContextOverflow, Rescue::ContentRefusal]);
}

// spec: H-11
#[test]
fn a_candidate_carries_what_it_can_do() {
    let mut config = config();
    let mut blind = Capabilities::default();
    blind.images = Some(false);
    config.capabilities.insert(model("a/A"), blind);
    let mut needs = Needs::default();
    needs.images = true;
    let chain = resolve(&config.selection().unwrap(), &config, None);
    let unfit: Vec<Option<Unfit>> =
        chain.candidates().iter().map(|it| it.capabilities.unfit(&needs)).collect();
    assert_eq!(unfit, [None, Some(Unfit::Modality), None, None]);
}

// spec: H-12
#[test]
fn the_setting_that_applies_is_named_with_its_line() {
    let line = |line| Origin::new("failover.json5", line, "agents.list[0].model.fallbacks");
    let policy = |config: &ChainConfig| resolve(&config.selection().unwrap(), config, None).policy().clone();
    let empty = with_agent(Some("g/G"), Fallbacks::Empty(Some(line(4))));
    assert_eq!(
        policy(&empty),
        Policy::Configured { kind: FallbacksKind::Empty, agent: true, origin: Some(line(4)) }
    );
    let list = with_agent(Some("g/G"), Fallbacks::List(vec![Reference::new("h/H").at(line(9))]));
    assert_eq!(
        policy(&list),
        Policy::Configured { kind: FallbacksKind::List, agent: true, origin: Some(line(9)) }
    );
    let chain = resolve(&list.selection().unwrap(), &list, None);
    assert_eq!(chain.candidates()[1].origin, Some(line(9)));
}

// spec: H-1, H-12
#[test]
fn the_requested_model_says_where_it_is_written() {
    let line = |line| Origin::new("failover.json5", line, "agents.defaults.model");
    let mut config = config();
    config.defaults.primary = Some(Reference::new("p/P").at(line(3)));
    config.defaults.fallbacks = Fallbacks::List(vec![Reference::new("a/A").at(line(4))]);
    let origin = |requested: &str| {
        let selection = Selection::new(model(requested), None, cron(None));
        resolve(&selection, &config, None).candidates()[0].origin.clone()
    };
    assert_eq!((origin("p/P"), origin("a/A"), origin("x/X")), (Some(line(3)), Some(line(4)), None));
}

// spec: H-12
#[test]
fn a_plain_model_string_that_drops_a_chain_is_told() {
    let dropped = with_agent(Some("g/G"), Fallbacks::Absent).dropped_chain().unwrap();
    assert_eq!(dropped.primary.text, "g/G");
    assert_eq!(dropped.dropped, references(&["a/A", "b/B", "c/C"]));
    for meant in [Fallbacks::Empty(None), Fallbacks::Null(None), Fallbacks::list(["h/H"])] {
        assert_eq!(with_agent(Some("g/G"), meant).dropped_chain(), None);
    }
    assert_eq!(config().dropped_chain(), None, "an agent without a model of its own drops nothing");
}

// spec: H-9, H-7
#[test]
fn a_heartbeat_model_is_a_selection_of_its_own() {
    let mut config = config();
    assert_eq!(config.heartbeat_selection().unwrap(), None);
    config.heartbeat = Some(Reference::new("cheap/M"));
    let selection = config.heartbeat_selection().unwrap().unwrap();
    assert_eq!((selection.model(), selection.source()), (&model("cheap/M"), &SelectionSource::Heartbeat));
}

// spec: H-2, A-8
#[test_case("x/y@x:a", &["x/y@x:b", "x/y@x:a", "z/w"], "x/y@x:a x/y@x:b z/w"; "another credential is another candidate")]
#[test_case("x/y", &["x/y@x:b", "z/w"], "x/y z/w"; "all of them are one")]
#[test_case("x/y@x:a", &["x/y", "x/y@x:b"], "x/y@x:a x/y"; "all of them behind one")]
fn no_usable_credential_is_dropped(primary: &str, fallbacks: &[&str], expected: &str) {
    let mut config = ChainConfig::default();
    config.defaults = setting(primary, Fallbacks::list(fallbacks.iter().copied()));
    let chain = resolve(&config.selection().unwrap(), &config, None);
    assert_eq!(with_profiles(&chain), expected);
}

fn with_profiles(chain: &Chain) -> String {
    let named = chain.candidates().iter();
    named
        .map(|it| ModelSelector::new(it.model.clone(), it.profile.clone()).to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

// spec: A-8, S-7
#[test]
fn a_session_on_a_fallback_keeps_to_its_credential() {
    let mut config = ChainConfig::default();
    config.defaults = setting("p/P", Fallbacks::list(["x/y@x:a", "x/y@x:b"]));
    let selection = Selection::new(model("x/y"), None, auto("p/P"));
    assert_eq!(with_profiles(&resolve(&selection, &config, None)), "x/y@x:a x/y@x:b p/P");
    let chosen = Selection::new(model("x/y"), None, SelectionSource::UserOverride);
    assert_eq!(
        with_profiles(&resolve(&chosen, &config, None)),
        "x/y",
        "a person's choice names no credential"
    );
}

// spec: H-6
#[test_case("fast@b:work", Some("b/n@b:work"); "an alias with a profile")]
#[test_case(" FAST ", Some("b/n"); "case and space")]
#[test_case("fast@work", None; "no profile behind it")]
#[test_case("vertex/x@001", Some("vertex/x@001"); "an at of the model's own")]
fn references_are_read(text: &str, expected: Option<&str>) {
    let mut config = ChainConfig::default();
    config.aliases.model("fast", "b/n".parse().unwrap());
    let read = config.aliases.read(text).ok().map(|read| read.to_string());
    assert_eq!(read.as_deref(), expected);
}

// spec: H-8
#[test]
fn a_turn_with_images_goes_to_the_image_model_unless_somebody_chose() {
    let mut config = config();
    config.image = setting("i/I", Fallbacks::list(["j/J"]));
    let asked = |config: &ChainConfig, requested: &str, source| {
        let selected = Selection::new(model(requested), None, source);
        config.image_selection_for(&selected).unwrap().map(|selection| selection.model().to_string())
    };
    let image = Some("i/I".to_owned());
    assert_eq!(asked(&config, "p/P", SelectionSource::ConfiguredDefault), image);
    assert_eq!(asked(&config, "p/P", SelectionSource::AgentPrimary), image);
    assert_eq!(asked(&config, "a/A", auto("p/P")), image);
    for chosen in
        [SelectionSource::UserOverride, SelectionSource::OneOff, SelectionSource::Heartbeat, cron(None)]
    {
        assert_eq!(asked(&config, "p/P", chosen), None);
    }
    let mut known = Capabilities::default();
    known.images = Some(true);
    config.capabilities.insert(model("p/P"), known);
    assert_eq!(asked(&config, "p/P", SelectionSource::ConfiguredDefault), None, "it reads images itself");
    config.image = ModelChainConfig::default();
    assert_eq!(asked(&config, "a/A", auto("p/P")), None, "there is no other");
}

//! What holds for every chain, whatever was configured and requested.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_chain::{
    Chain, ChainConfig, Fallbacks, FallbacksOverride, ModelChainConfig, Reference, Rescue, Selection,
    SelectionSource, resolve, resolve_image, resolve_rescue,
};
use failover_types::{ModelRef, ModelSelector};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Few names, so that repetitions are common; some are aliases, some cannot be read.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[A-Ca-c]/[m-o]",
        1 => "[a-c]/m@[a-c]:work",
        1 => Just("Fast".to_owned()),
        1 => Just("unknown".to_owned()),
    ]
}

fn reference() -> impl Strategy<Value = Reference> {
    text().prop_map(Reference::new)
}

fn fallbacks() -> impl Strategy<Value = Fallbacks> {
    prop_oneof![
        Just(Fallbacks::Absent),
        Just(Fallbacks::Null(None)),
        proptest::collection::vec(reference(), 0..5).prop_map(|list| Fallbacks::from_list(list, None)),
    ]
}

fn setting() -> impl Strategy<Value = ModelChainConfig> {
    (proptest::option::of(reference()), fallbacks())
        .prop_map(|(primary, fallbacks)| ModelChainConfig::new(primary, fallbacks))
}

fn config() -> impl Strategy<Value = ChainConfig> {
    (setting(), setting(), setting(), fallbacks()).prop_map(|(defaults, agent, image, overflow)| {
        let mut config = ChainConfig::default();
        (config.defaults, config.agent, config.image) = (defaults, agent, image);
        config.on_context_overflow = overflow;
        config.aliases.model("fast", "b/n".parse::<ModelSelector>().unwrap());
        config
    })
}

fn model() -> impl Strategy<Value = ModelRef> {
    "[a-c]/[m-o]".prop_map(|text| text.parse().unwrap())
}

fn source() -> impl Strategy<Value = SelectionSource> {
    let list = proptest::collection::vec(reference(), 0..4);
    prop_oneof![
        Just(SelectionSource::ConfiguredDefault),
        Just(SelectionSource::AgentPrimary),
        model().prop_map(|origin| SelectionSource::AutoOverride { origin }),
        Just(SelectionSource::UserOverride),
        Just(SelectionSource::LegacyOverride),
        proptest::option::of(list).prop_map(|fallbacks| SelectionSource::Cron { fallbacks }),
        Just(SelectionSource::Heartbeat),
        Just(SelectionSource::OneOff),
    ]
}

fn selection() -> impl Strategy<Value = Selection> {
    (model(), source()).prop_map(|(model, source)| Selection::new(model, None, source))
}

fn models(chain: &Chain) -> Vec<ModelRef> {
    chain.candidates().iter().map(|candidate| candidate.model.clone()).collect()
}

fn readable<'a>(
    config: &ChainConfig,
    references: impl IntoIterator<Item = &'a Reference>,
) -> BTreeSet<ModelRef> {
    let read = references.into_iter().filter_map(|reference| config.read(reference).ok());
    read.map(|selector| selector.model).collect()
}

/// Everything that somebody wrote anywhere for this run.
fn written(
    config: &ChainConfig,
    selection: &Selection,
    given: Option<&FallbacksOverride>,
) -> BTreeSet<ModelRef> {
    let settings = [&config.defaults, &config.agent, &config.image];
    let mut references: Vec<&Reference> = settings.iter().flat_map(|of| of.primary.iter()).collect();
    references.extend(settings.iter().flat_map(|of| of.fallbacks.references()));
    references.extend(config.on_context_overflow.references());
    references.extend(given.into_iter().flat_map(|given| &given.list));
    if let SelectionSource::Cron { fallbacks: Some(list) } = selection.source() {
        references.extend(list);
    }
    readable(config, references)
}

proptest! {
    // spec: H-1, H-2, H-7
    #[test]
    fn the_requested_model_is_first_nothing_comes_twice_and_nothing_was_invented(
        config in config(),
        selection in selection(),
        given in proptest::option::of(proptest::collection::vec(reference(), 0..4)),
    ) {
        let given = given.map(FallbacksOverride::new);
        let written = written(&config, &selection, given.as_ref());
        let mut chains = vec![resolve(&selection, &config, given.as_ref())];
        chains.extend(resolve_image(&selection, &config, given.as_ref()).ok());
        for chain in &chains {
            let models = models(chain);
            prop_assert_eq!(models.first(), Some(selection.model()));
            for (at, later) in chain.candidates().iter().enumerate() {
                let covered = chain.candidates().iter().take(at).any(|known| {
                    known.model == later.model && (known.profile.is_none() || known.profile == later.profile)
                });
                prop_assert!(!covered, "{:?} stands in the chain twice", later);
            }
            for model in models.get(1..).unwrap_or_default() {
                prop_assert!(written.contains(model), "{} was written by nobody", model);
            }
        }
        if let Some(rescue) = resolve_rescue(Rescue::ContextOverflow, &selection, &config) {
            prop_assert!(!models(&rescue).contains(selection.model()));
            prop_assert!(models(&rescue).iter().all(|model| written.contains(model)));
        }
    }

    // spec: H-5
    #[test]
    fn an_override_is_exact_and_an_empty_one_is_strict(
        config in config(),
        selection in selection(),
        list in proptest::collection::vec(reference(), 0..5),
    ) {
        let strict = resolve(&selection, &config, Some(&FallbacksOverride::default()));
        prop_assert_eq!(models(&strict), vec![selection.model().clone()]);
        let chain = resolve(&selection, &config, Some(&FallbacksOverride::new(list.clone())));
        let mut expected = readable(&config, &list);
        expected.insert(selection.model().clone());
        prop_assert_eq!(models(&chain).into_iter().collect::<BTreeSet<_>>(), expected);
    }

    // spec: H-3, H-4
    #[test]
    fn a_run_on_a_fallback_can_settle_back_on_the_default(
        primary in model(),
        list in proptest::collection::vec(model(), 0..5),
        requested in model(),
    ) {
        let mut config = ChainConfig::default();
        let fallbacks = Fallbacks::list(list.iter().map(ModelRef::to_string));
        config.defaults = ModelChainConfig::new(Some(Reference::new(primary.to_string())), fallbacks);
        let source = SelectionSource::AutoOverride { origin: primary.clone() };
        let chain = models(&resolve(&Selection::new(requested.clone(), None, source), &config, None));
        let mut expected = vec![requested];
        for model in list.iter().chain([&primary]) {
            if !expected.contains(model) {
                expected.push(model.clone());
            }
        }
        prop_assert_eq!(chain, expected);
    }

    // spec: H-6
    #[test]
    fn every_reference_is_in_the_chain_or_reported(list in proptest::collection::vec(reference(), 0..6)) {
        let mut config = ChainConfig::default();
        config.defaults = ModelChainConfig::new(Some(Reference::new("a/m")), Fallbacks::from_list(list.clone(), None));
        let chain = resolve(&config.selection().unwrap(), &config, None);
        for reference in &list {
            let there = config.read(reference).is_ok_and(|read| chain.position(&read.model).is_some());
            let reported = chain.unresolved().iter().any(|it| it.reference == *reference);
            prop_assert!(there != reported);
        }
    }
}

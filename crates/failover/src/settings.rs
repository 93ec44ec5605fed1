//! From config keys to what the crates take. Every number that config leaves out keeps the crate's own default.

use crate::providers::Providers;
use failover_auth::{ConfiguredProfile, CooldownOptions, CooldownPolicy, UserPinMode};
use failover_chain::{Aliases, Capabilities, ChainConfig, Fallbacks, ModelChainConfig, Origin, Reference};
use failover_classify::{Classifier, OperatorRule, ProviderRules, standard_tables};
use failover_config::{
    Agent, AuthMode, Config, Diagnostic, Diagnostics, Document, Heartbeat, Loaded, ModelChoice, Overrides,
    UserPin,
};
use failover_provider::ProviderAdapter;
use failover_runner::plan::{Persistence, PolicyConfig, RunPolicy};
use failover_types::{AgentId, CredentialKind, ModelRef, ModelSelector, ProfileId, ProviderId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Why a valid config file cannot be put to work. The operator's to mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No agent of that name.
    #[error("the config has no agent {agent:?}; its agents are: {known}")]
    NoAgent {
        /// Who was asked for.
        agent: String,
        /// Who there is.
        known: String,
    },
    /// A number of the runner is out of its bounds.
    #[error("the config's limits cannot be used")]
    Run(#[from] failover_runner::plan::PolicyError),
    /// A cooldown is out of its bounds.
    #[error("the config's auth.cooldowns cannot be used")]
    Cooldowns(#[from] failover_auth::PolicyError),
    /// The rules that ship contradict themselves: a fault of this software.
    #[error("the built-in classifier rules are at fault; this is a bug")]
    RuleSet(#[from] failover_classify::RuleSetError),
    /// A rule of the operator.
    #[error(transparent)]
    Rule(Diagnostics),
}

fn origin(document: &Document, path: &str) -> Option<Origin> {
    let line = u32::try_from(document.position(path)?.line).unwrap_or(u32::MAX);
    Some(Origin::new(document.file(), line, path))
}

fn reference(document: &Document, path: &str, text: &str) -> Reference {
    let reference = Reference::new(text);
    match origin(document, path) {
        Some(origin) => reference.at(origin),
        None => reference,
    }
}

fn fallbacks(document: &Document, path: &str, list: &failover_config::Fallbacks) -> Fallbacks {
    use failover_config::Fallbacks as Written;
    match list {
        Written::Absent => Fallbacks::Absent,
        Written::Null => Fallbacks::Null(origin(document, path)),
        Written::List(names) => {
            let entries = names.iter().enumerate();
            let list =
                entries.map(|(at, name)| reference(document, &format!("{path}[{at}]"), name)).collect();
            Fallbacks::from_list(list, origin(document, path))
        }
    }
}

fn choice(document: &Document, path: &str, choice: Option<&ModelChoice>) -> ModelChainConfig {
    let Some(choice) = choice else { return ModelChainConfig::default() };
    let place = if choice.plain { path.to_owned() } else { format!("{path}.primary") };
    let primary = choice.primary.as_deref().map(|text| reference(document, &place, text));
    ModelChainConfig::new(primary, fallbacks(document, &format!("{path}.fallbacks"), &choice.fallbacks))
}

/// The agent's own settings and their path; `None` where the config lists no agent of that name and none is needed.
fn agent<'a>(config: &'a Config, id: &AgentId) -> Result<Option<(String, &'a Agent)>, SettingsError> {
    let list = &config.agents.list;
    let found = list.iter().position(|agent| agent.id == id.as_str());
    match found.and_then(|at| Some((format!("agents.list[{at}]"), list.get(at)?))) {
        Some(found) => Ok(Some(found)),
        None if *id == AgentId::main() => Ok(None),
        None => {
            let known: Vec<&str> = list.iter().map(|agent| agent.id.as_str()).collect();
            Err(SettingsError::NoAgent { agent: id.to_string(), known: known.join(", ") })
        }
    }
}

/// Everything about models that decides a chain, for one agent.
///
/// # Errors
///
/// [`SettingsError::NoAgent`] where the config lists agents and none has that name.
pub fn chain_config(loaded: &Loaded, id: &AgentId) -> Result<ChainConfig, SettingsError> {
    let (config, document) = (&loaded.config, &loaded.document);
    let defaults = &config.agents.defaults;
    let mut chain = ChainConfig::default();
    chain.aliases = aliases(config);
    chain.capabilities = capabilities(config);
    chain.defaults = choice(document, "agents.defaults.model", defaults.model.as_ref());
    chain.image = choice(document, "agents.defaults.imageModel", defaults.image_model.as_ref());
    let beat = |path: &str, heartbeat: Option<&Heartbeat>| {
        let model = heartbeat?.model.as_deref()?;
        Some(reference(document, &format!("{path}.heartbeat.model"), model))
    };
    chain.heartbeat = beat("agents.defaults", defaults.heartbeat.as_ref());
    let own = |path: &str, list: &failover_config::Fallbacks| fallbacks(document, path, list);
    chain.on_context_overflow = own("agents.defaults.onContextOverflow", &defaults.on_context_overflow);
    chain.on_content_refusal = own("agents.defaults.onContentRefusal", &defaults.on_content_refusal);
    if let Some((path, agent)) = agent(config, id)? {
        chain.heartbeat = beat(&path, agent.heartbeat.as_ref()).or(chain.heartbeat);
        chain.agent = choice(document, &format!("{path}.model"), agent.model.as_ref());
        if agent.image_model.is_some() {
            chain.image = choice(document, &format!("{path}.imageModel"), agent.image_model.as_ref());
        }
        if !agent.on_context_overflow.is_absent() {
            chain.on_context_overflow = own(&format!("{path}.onContextOverflow"), &agent.on_context_overflow);
        }
        if !agent.on_content_refusal.is_absent() {
            chain.on_content_refusal = own(&format!("{path}.onContentRefusal"), &agent.on_content_refusal);
        }
    }
    let listed = defaults.models.keys().filter_map(|model| model.parse::<ModelRef>().ok());
    let listed: BTreeSet<ModelRef> = listed.map(|model| chain.aliases.normalize(&model)).collect();
    if !listed.is_empty() {
        chain.allowed = Some(written(config, &chain).chain(listed).collect());
    }
    Ok(chain)
}

fn aliases(config: &Config) -> Aliases {
    let mut aliases = Aliases::default();
    for (model, entry) in &config.agents.defaults.models {
        if let (Some(alias), Ok(model)) = (&entry.alias, model.parse::<ModelRef>()) {
            aliases.model(alias, ModelSelector::new(model, None));
        }
    }
    aliases
}

fn capabilities(config: &Config) -> BTreeMap<ModelRef, Capabilities> {
    let models = config.models.providers.iter().flat_map(|(id, provider)| {
        provider.models.iter().filter_map(move |facts| {
            let mut known = Capabilities::default();
            known.context_window = facts.context_window;
            known.tools = facts.tools;
            known.json = facts.json;
            known.images = facts.input.as_ref().map(|kinds| kinds.iter().any(|kind| kind == "image"));
            Some((ModelRef::new(id.clone(), &facts.id).ok()?, known))
        })
    });
    models.collect()
}

/// Where the skip time is looked up where the config says nothing, in this order (requirement A-20).
const SKIP_TTL: [&str; 2] = ["FAILOVER_SKIP_TTL_MS", "OPENCLAW_FALLBACK_SKIP_TTL_MS"];

/// [`run_policy`], with what the environment adds where the config says nothing.
pub(crate) fn run_policy_in(
    config: &Config,
    environment: &failover_credentials::Environment,
) -> Result<RunPolicy, SettingsError> {
    let policy = run_policy(config)?;
    let set = SKIP_TTL.iter().find_map(|name| environment(name));
    // What is no number means off, as zero does; the runner clamps the rest.
    let ttl = set.and_then(|text| text.trim().parse::<u64>().ok()).filter(|ttl| *ttl > 0);
    match ttl {
        Some(ttl) if policy.skip_ttl_ms.is_none() => {
            let mut numbers = PolicyConfig::clone(&policy);
            numbers.skip_ttl_ms = Some(ttl.clamp(1_000, 600_000));
            Ok(RunPolicy::new(numbers)?)
        }
        _ => Ok(policy),
    }
}

/// The numbers of the runner.
///
/// # Errors
///
/// [`SettingsError::Run`] names the number that is out of its bounds.
pub fn run_policy(config: &Config) -> Result<RunPolicy, SettingsError> {
    let (defaults, cooldowns) = (&config.agents.defaults, &config.auth.cooldowns);
    let mut policy = PolicyConfig::default();
    put(&mut policy.rate_limited_profile_rotations, cooldowns.rate_limited_profile_rotations);
    put(&mut policy.overloaded_profile_rotations, cooldowns.overloaded_profile_rotations);
    put(&mut policy.transient_profile_rotations, cooldowns.transient_profile_rotations);
    put(&mut policy.overloaded_backoff_ms, cooldowns.overloaded_backoff_ms);
    put(&mut policy.retry_in_place.max, defaults.retry_in_place.max);
    put(&mut policy.retry_in_place.max_wait_ms, defaults.retry_in_place.max_wait_ms);
    put(&mut policy.run_retries.base, defaults.run_retries.base);
    put(&mut policy.run_retries.per_profile, defaults.run_retries.per_profile);
    put(&mut policy.run_retries.min, defaults.run_retries.min);
    put(&mut policy.run_retries.max, defaults.run_retries.max);
    policy.deadline_ms = defaults.limits.run_ms;
    policy.max_attempts = defaults.limits.max_attempts;
    policy.limits.connect_ms = defaults.limits.connect_ms;
    policy.limits.first_byte_ms = defaults.limits.first_byte_ms;
    policy.limits.first_content_ms = defaults.limits.first_content_ms;
    policy.limits.whole_ms = defaults.limits.whole_ms;
    policy.limits.idle_ms = defaults.limits.idle_ms;
    policy.skip_ttl_ms = defaults.skip_ttl_ms;
    policy.persistence = match defaults.fallback_overrides {
        Some(Overrides::TurnLocal) => Persistence::TurnLocal,
        _ => Persistence::Sticky,
    };
    Ok(RunPolicy::new(policy)?)
}

fn put<T>(target: &mut T, written: Option<T>) {
    if let Some(written) = written {
        *target = written;
    }
}

/// How long failing profiles rest.
///
/// # Errors
///
/// [`SettingsError::Cooldowns`] names the number that is out of its bounds.
pub fn cooldown_policy(config: &Config) -> Result<CooldownPolicy, SettingsError> {
    let written = &config.auth.cooldowns;
    let mut options = match written.preset.as_deref() {
        Some("classic") => CooldownOptions::classic(),
        _ => CooldownOptions::default(),
    };
    let hours = |hours: u32| Duration::from_secs(u64::from(hours) * 3_600);
    let minutes = |minutes: u32| Duration::from_secs(u64::from(minutes) * 60);
    let ladder = |steps: &Vec<u64>| steps.iter().copied().map(Duration::from_millis).collect();
    put(&mut options.ladder, written.ladder_ms.as_ref().map(ladder));
    put(&mut options.billing, written.billing_backoff_hours.map(hours));
    put(&mut options.billing_cap, written.billing_max_hours.map(hours));
    put(&mut options.permanent, written.auth_permanent_backoff_minutes.map(minutes));
    put(&mut options.permanent_cap, written.auth_permanent_max_minutes.map(minutes));
    put(&mut options.failure_window, written.failure_window_hours.map(hours));
    let by_provider = written.billing_backoff_hours_by_provider.iter();
    options.billing_by_provider = by_provider.map(|(id, wait)| (id.clone(), hours(*wait))).collect();
    for (id, provider) in &config.models.providers {
        match provider.self_balancing {
            Some(true) => drop(options.self_balancing.insert(id.clone())),
            Some(false) => drop(options.self_balancing.remove(id)),
            None => {}
        }
    }
    Ok(CooldownPolicy::new(options)?)
}

/// What a person's `…@profile` means.
pub(crate) fn user_pin(config: &Config) -> UserPinMode {
    match config.agents.defaults.user_pin {
        Some(UserPin::Preferred) => UserPinMode::Preferred,
        _ => UserPinMode::Strict,
    }
}

/// `gateway.sessionIdleHours`: after how long a session is forgotten that nobody uses, whoever writes it (requirement
/// K-5).
pub fn sessions_idle(config: &Config) -> Duration {
    Duration::from_hours(u64::from(config.gateway.session_idle_hours.unwrap_or(720)))
}

/// `auth.profiles`, as rotation reads them.
pub fn configured_profiles(config: &Config) -> Vec<ConfiguredProfile> {
    let listed = config.auth.profiles.iter();
    listed
        .map(|(id, profile)| {
            let kind = match profile.mode {
                AuthMode::OAuth => CredentialKind::OAuth,
                AuthMode::Token => CredentialKind::Token,
                AuthMode::ApiKey => CredentialKind::ApiKey,
            };
            ConfiguredProfile::new(id.clone(), profile.provider.clone(), Some(kind))
        })
        .collect()
}

/// The operator's own classifier rules, as written; [`Classifier::with_operator_rules`] checks them.
///
/// [`Classifier::with_operator_rules`]: failover_classify::Classifier::with_operator_rules
fn operator_rules(config: &Config) -> Vec<OperatorRule> {
    let rules = config.classifier.rules.iter();
    rules
        .map(|written| {
            let mut rule = OperatorRule::new(&written.id, written.reason);
            rule.contains.clone_from(&written.contains);
            rule.regex.clone_from(&written.regex);
            rule.status = written.status;
            rule.code.clone_from(&written.code);
            rule.provider = written.provider.as_ref().map(ToString::to_string);
            rule.scope = written.scope;
            rule
        })
        .collect()
}

/// The classifier with every table that ships and the operator's own rules.
///
/// # Errors
///
/// [`SettingsError::Rule`] says where the faulty rule stands and what is wrong with it.
pub fn classifier(loaded: &Loaded) -> Result<Classifier, SettingsError> {
    classifier_with(loaded, &[])
}

/// The same, and the rules that adapters bring.
pub(crate) fn classifier_with(
    loaded: &Loaded,
    adapters: &[Arc<dyn ProviderAdapter>],
) -> Result<Classifier, SettingsError> {
    let standard = standard_tables();
    let mut tables: Vec<&dyn ProviderRules> = standard.iter().map(|table| table as _).collect();
    for rules in adapters.iter().map(|adapter| adapter.rules()) {
        // Adapters of one crate bring the same table, and may hand on a standard one.
        let same = |known: &&dyn ProviderRules| {
            known.namespace() == rules.namespace() && known.rows() == rules.rows()
        };
        if !tables.iter().any(same) {
            tables.push(rules);
        }
    }
    let rules = operator_rules(&loaded.config);
    Classifier::new(&tables)?.with_operator_rules(&rules).map_err(|error| {
        let path = format!("classifier.rules[{}].{}", error.index, error.field);
        let fault = loaded.fault(&path, error.what, "mend the rule, or take it out");
        SettingsError::Rule(loaded.diagnostics(vec![fault]))
    })
}

/// Every fault of a config that shows only when it is put to work with what is built in: numbers out of their bounds,
/// rules that cannot be used, providers that nobody can reach. What the environment holds plays no part.
///
/// # Errors
///
/// The faults, each with its line and what to do.
pub fn check(loaded: &Loaded) -> Result<(), Diagnostics> {
    let mut faults = Vec::new();
    if let Err(SettingsError::Run(error)) = run_policy(&loaded.config) {
        faults.push(loaded.fault(&place_of_run(&error), error.to_string(), "write a number that it takes"));
    }
    if let Err(SettingsError::Cooldowns(error)) = cooldown_policy(&loaded.config) {
        let hint = "write a number that it takes, or leave the key out";
        faults.push(loaded.fault("auth.cooldowns", error.to_string(), hint));
    }
    match classifier(loaded) {
        Err(SettingsError::Rule(found)) => faults.extend(found.faults),
        Err(error) => faults.push(loaded.fault("classifier", error.to_string(), "report it")),
        Ok(_) => {}
    }
    providers_known(loaded, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(loaded.diagnostics(faults)) }
}

/// Where a number of the runner stands in the config.
fn place_of_run(error: &failover_runner::plan::PolicyError) -> String {
    use failover_runner::plan::PolicyError;
    match error {
        PolicyError::Range { field: "deadlineMs", .. } => "agents.defaults.limits.runMs".to_owned(),
        PolicyError::Range { field: "maxAttempts", .. } => "agents.defaults.limits.maxAttempts".to_owned(),
        PolicyError::Range { field, .. }
            if field.contains("rofileRotations") || *field == "overloadedBackoffMs" =>
        {
            format!("auth.cooldowns.{field}")
        }
        PolicyError::Range { field, .. } => format!("agents.defaults.{field}"),
        PolicyError::MinAboveMax { .. } | _ => "agents.defaults.runRetries".to_owned(),
    }
}

/// Providers with settings that cannot be used, and models of providers that are neither built in nor described.
fn providers_known(loaded: &Loaded, faults: &mut Vec<Diagnostic>) {
    let config = &loaded.config;
    let nothing: failover_credentials::Environment = Arc::new(|_| None);
    let mut built_in = Providers::new(config, &nothing);
    for provider in config.models.providers.keys() {
        if let Err(error) = built_in.adapter(provider) {
            let hint = "mend its settings";
            faults.push(loaded.fault(&format!("models.providers.{provider}"), error.to_string(), hint));
        }
    }
    let aliases = aliases(config);
    for (path, text) in loaded.model_references() {
        let Ok(read) = aliases.read(text) else { continue };
        let provider = read.model.provider();
        if !config.models.providers.contains_key(provider) && built_in.adapter(provider).is_err() {
            let message = format!("there is no provider {provider} here");
            let hint =
                format!("correct its name, or say how it is reached: models.providers.{provider}.baseUrl");
            faults.push(loaded.fault(&path, message, hint));
        }
    }
}

/// Credentials that the config names with a model or in an order, and where. A line each for those that `is_there` does
/// not know.
pub(crate) fn ghosts(loaded: &Loaded, is_there: impl Fn(&ProfileId) -> bool) -> Vec<String> {
    let config = &loaded.config;
    let aliases = aliases(config);
    let orders = config.auth.order.iter().flat_map(|(provider, order)| {
        let places = order.iter().enumerate();
        places.map(move |(at, profile)| (format!("auth.order.{provider}[{at}]"), profile.clone()))
    });
    let models = loaded.model_references().into_iter();
    let models = models.filter_map(|(path, text)| Some((path, aliases.read(text).ok()?.profile?)));
    // One that the config describes has a warning of its own where its secret cannot be read.
    let unknown = |profile: &ProfileId| !is_there(profile) && !config.auth.profiles.contains_key(profile);
    let ghosts = orders.chain(models).filter(|(_, profile)| unknown(profile));
    ghosts
        .map(|(path, profile)| {
            let line = loaded.document.position(&path).map(|place| format!(":{}", place.line));
            let place = format!("{}{} ({path})", loaded.document.file(), line.unwrap_or_default());
            format!("{place} names {profile}, and there is no such credential; add it with `failover auth add {profile}`")
        })
        .collect()
}

/// Providers that the config names: with settings of their own, or by a model or a profile.
pub(crate) fn providers(loaded: &Loaded, chain: &ChainConfig) -> Vec<ProviderId> {
    let config = &loaded.config;
    let mut ids: Vec<ProviderId> = config.models.providers.keys().cloned().collect();
    ids.extend(config.auth.profiles.values().map(|profile| profile.provider.clone()));
    ids.extend(asked(config, chain));
    ids.sort();
    ids.dedup();
    ids
}

/// Whether the config says how a provider is reached, or a turn may ask it.
pub(crate) fn is_asked(config: &Config, chain: &ChainConfig, provider: &ProviderId) -> bool {
    config.models.providers.contains_key(provider) || asked(config, chain).contains(provider)
}

/// Providers that a turn may ask: those of the chain's models, and of the gateway's routes.
pub(crate) fn asked(config: &Config, chain: &ChainConfig) -> Vec<ProviderId> {
    written(config, chain).map(|model| model.provider().clone()).collect()
}

/// The models that the config speaks of: in chains, in routes, and as facts of a provider.
pub(crate) fn models(config: &Config, chain: &ChainConfig) -> BTreeSet<ModelRef> {
    let facts = config.models.providers.iter().flat_map(|(provider, settings)| {
        let listed = settings.models.iter();
        listed.filter_map(|facts| ModelRef::new(provider.clone(), &facts.id).ok())
    });
    written(config, chain).chain(facts).collect()
}

/// The models of every chain that is written anywhere.
fn written<'a>(config: &'a Config, chain: &'a ChainConfig) -> impl Iterator<Item = ModelRef> + 'a {
    let settings = [&chain.defaults, &chain.agent, &chain.image];
    let chains = settings.into_iter().flat_map(|it| it.primary.iter().chain(it.fallbacks.references()));
    let rescues = chain.on_context_overflow.references().iter().chain(chain.on_content_refusal.references());
    let routes = config.gateway.routes.values().flat_map(|route| &route.chain).map(Reference::new);
    let all = chains.chain(rescues).chain(&chain.heartbeat).cloned().chain(routes);
    all.filter_map(|reference| chain.read(&reference).ok()).map(|selector| selector.model)
}

/// Whether the config says that a provider's calls need a key: it names one, in either place.
pub(crate) fn names_key(config: &Config, provider: &ProviderId) -> bool {
    let settings = config.models.providers.get(provider);
    settings.is_some_and(|settings| settings.api_key.is_some())
        || config.auth.profiles.values().any(|profile| profile.provider == *provider)
}

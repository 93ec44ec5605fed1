//! Names that clients use as models, and what stands behind them.

use failover::chain::{ChainConfig, ChainError, Fallbacks, Origin, Reference};
use failover::config::{Config, Fallbacks as Written, GatewayRoute, Loaded, SessionsFrom, StreamRescue};
use failover::provider::RECEIVED_CAP_BYTES;
use failover::types::{ModelRef, ModelSelector};
use failover::{Engine, Route};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// The route behind `agents.defaults.model`, where the config has none of this name.
pub(crate) const DEFAULT: &str = "default";
/// The route that answers to every name that is no other's.
const ANY: &str = "*";

/// A route that cannot be used. The operator's to mend.
#[derive(Debug, thiserror::Error)]
#[error("the route {name:?} cannot be used")]
#[non_exhaustive]
pub struct RouteError {
    /// Its name.
    pub name: String,
    /// What is wrong with its chain.
    #[source]
    pub source: ChainError,
}

/// A name with a chain behind it, and how its answers are handled.
#[derive(Debug)]
pub(crate) struct Named {
    /// The name, for logs and metrics.
    pub(crate) name: Arc<str>,
    pub(crate) route: Arc<Route>,
    pub(crate) rescue: StreamRescue,
    pub(crate) buffer_bytes: usize,
    pub(crate) sessions: SessionsFrom,
    /// Those of its models that go on with an answer that another one began.
    pub(crate) continuer: Option<Arc<Route>>,
}

/// What a client's model name leads to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A chain.
    Route(Arc<Named>),
    /// One model, strictly.
    Model(ModelSelector),
}

/// Every name.
#[derive(Debug)]
pub(crate) struct Routes {
    named: BTreeMap<String, Arc<Named>>,
    any: Option<Arc<Named>>,
    chain: ChainConfig,
    /// Models that the config speaks of, in order of name.
    models: BTreeSet<ModelRef>,
}

fn references(loaded: &Loaded, path: &str, names: &[String]) -> Vec<Reference> {
    let place = |(at, name): (usize, &String)| {
        let path = format!("{path}[{at}]");
        let reference = Reference::new(name);
        match loaded.document.position(&path) {
            Some(position) => {
                let line = u32::try_from(position.line).unwrap_or(u32::MAX);
                reference.at(Origin::new(loaded.document.file(), line, path))
            }
            None => reference,
        }
    };
    names.iter().enumerate().map(place).collect()
}

fn fallbacks(loaded: &Loaded, path: &str, written: &Written, inherited: &Fallbacks) -> Fallbacks {
    match written {
        Written::Absent | Written::Null => inherited.clone(),
        Written::List(names) => Fallbacks::from_list(references(loaded, path, names), None),
    }
}

impl Routes {
    /// The routes of a config, and what its operator should know of them.
    pub(crate) fn new(loaded: &Loaded, engine: &Engine) -> Result<(Self, Vec<String>), RouteError> {
        let config = &loaded.config;
        let chain = engine.chain_config().clone();
        let mut warnings = Vec::new();
        let prefill = prefill(config);
        let mut written: BTreeMap<&str, &GatewayRoute> =
            config.gateway.routes.iter().map(|(name, route)| (name.as_str(), route)).collect();
        let plain = GatewayRoute::default();
        if engine.chain_config().selection().is_ok() {
            written.entry(DEFAULT).or_insert(&plain);
        }
        let mut named = BTreeMap::new();
        for (name, written) in written {
            let path = format!("gateway.routes.{name}");
            let mut own = chain.clone();
            own.on_context_overflow = fallbacks(
                loaded,
                &format!("{path}.onContextOverflow"),
                &written.on_context_overflow,
                &chain.on_context_overflow,
            );
            own.on_content_refusal = fallbacks(
                loaded,
                &format!("{path}.onContentRefusal"),
                &written.on_content_refusal,
                &chain.on_content_refusal,
            );
            let route = if written.chain.is_empty() {
                Route::new(own)
            } else {
                Route::of_models(&own, references(loaded, &format!("{path}.chain"), &written.chain))
            };
            let route = route.map_err(|source| RouteError { name: name.to_owned(), source })?;
            let rescue = written.stream_rescue.unwrap_or_default();
            let continuer = continuer(&route, &prefill);
            if rescue == StreamRescue::Continue && continuer.is_none() {
                warnings.push(format!(
                    "route {name}: streamRescue is \"continue\", and none of its models has `prefill: true` in models.providers"
                ));
            }
            let buffer_bytes = written.buffer_bytes.and_then(|bytes| usize::try_from(bytes).ok());
            let made = Named {
                name: name.into(),
                route: Arc::new(route),
                rescue,
                buffer_bytes: buffer_bytes.unwrap_or(RECEIVED_CAP_BYTES),
                sessions: written.sessions.unwrap_or_default(),
                continuer,
            };
            named.insert(name.to_owned(), Arc::new(made));
        }
        if named.is_empty() {
            warnings.push(
                "there is no route: set agents.defaults.model or gateway.routes; only `provider/model` is answered"
                    .to_owned(),
            );
        }
        let any = named.remove(ANY);
        let mut models: BTreeSet<ModelRef> = named
            .values()
            .chain(&any)
            .flat_map(|named| named.route.candidates().iter().map(|candidate| candidate.model.clone()))
            .collect();
        for (provider, settings) in &config.models.providers {
            models.extend(
                settings.models.iter().filter_map(|facts| ModelRef::new(provider.clone(), &facts.id).ok()),
            );
        }
        Ok((Self { named, any, chain, models }, warnings))
    }

    /// What a client's model name leads to. `Err` says what there is instead.
    pub(crate) fn find(&self, name: &str) -> Result<Target, String> {
        if let Some(named) = self.named.get(name) {
            return Ok(Target::Route(Arc::clone(named)));
        }
        if let Ok(model) = self.chain.aliases.read(name) {
            return Ok(Target::Model(model));
        }
        if let Some(any) = &self.any {
            return Ok(Target::Route(Arc::clone(any)));
        }
        let mut known: Vec<&str> = self.named.keys().map(String::as_str).collect();
        known.sort_unstable();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let name: String = name.chars().take(80).collect();
        Err(format!("there is no model {name:?} here; write provider/model, or a route: {known}"))
    }

    /// A chain that a trusted caller gives for one request.
    pub(crate) fn of_request(&self, models: &str) -> Result<Target, String> {
        let models = models.split(',').map(str::trim).filter(|name| !name.is_empty()).take(32);
        let models = models.map(Reference::new).collect();
        let route = Route::of_models(&self.chain, models).map_err(|error| error.to_string())?;
        Ok(Target::Route(Arc::new(Named {
            name: "request".into(),
            continuer: None,
            route: Arc::new(route),
            rescue: StreamRescue::Off,
            buffer_bytes: RECEIVED_CAP_BYTES,
            sessions: SessionsFrom::Off,
        })))
    }

    /// The names of routes, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.named.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The models that the config speaks of.
    pub(crate) fn models(&self) -> &BTreeSet<ModelRef> {
        &self.models
    }

    /// The routes themselves, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Named>> {
        self.named.values().chain(&self.any)
    }
}

/// Models that the operator says take a begun answer.
fn prefill(config: &Config) -> HashSet<ModelRef> {
    let facts = config.models.providers.iter().flat_map(|(provider, settings)| {
        let known = settings.models.iter().filter(|facts| facts.prefill == Some(true));
        known.filter_map(|facts| ModelRef::new(provider.clone(), &facts.id).ok())
    });
    facts.collect()
}

/// The part of a route's chain that takes a begun answer. Nothing rescues it in turn.
fn continuer(route: &Route, prefill: &HashSet<ModelRef>) -> Option<Arc<Route>> {
    let able = route.candidates().iter().filter(|candidate| prefill.contains(&candidate.model));
    let able = able.map(|candidate| ModelSelector::new(candidate.model.clone(), candidate.profile.clone()));
    let references: Vec<Reference> = able.map(|selector| Reference::new(selector.to_string())).collect();
    let mut config = route.config().clone();
    config.on_context_overflow = Fallbacks::Absent;
    config.on_content_refusal = Fallbacks::Absent;
    Route::of_models(&config, references).ok().map(Arc::new)
}

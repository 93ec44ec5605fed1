//! What a config says, beyond its types: every fault of meaning, not only the first.

use crate::value::{Fallbacks, LITERAL_KEY, ModelChoice};
use crate::{Config, Diagnostic, Document, Heartbeat, gateway};
use failover_auth::auth_aliases;
use failover_types::{ModelRef, ModelSelector, ProfileId, ProviderId};
use std::collections::BTreeMap;

/// Collects faults: path, what is wrong, what to do.
pub(crate) struct Faults<'a> {
    document: &'a Document,
    found: Vec<Diagnostic>,
}

impl<'a> Faults<'a> {
    pub(crate) fn new(document: &'a Document) -> Self {
        Self { document, found: Vec::new() }
    }

    /// A fault at the value of `path`.
    pub(crate) fn at(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.found.push(self.document.fault(path, false, message, hint));
    }

    /// A fault at the key of `path`.
    fn at_key(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.found.push(self.document.fault(path, true, message, hint));
    }

    pub(crate) fn into_found(self) -> Vec<Diagnostic> {
        self.found
    }
}

/// Every fault of meaning. Where values had to be taken out (`whole` is false), what refers to others is not looked at: it
/// may lead to one of those.
pub(crate) fn faults(config: &Config, document: &Document, whole: bool) -> Vec<Diagnostic> {
    let mut faults = Faults::new(document);
    profiles(config, &mut faults);
    providers(config, &mut faults);
    cooldowns(config, &mut faults);
    agents(config, &mut faults);
    gateway::meaning(config, whole, &mut faults);
    names(config, &mut faults);
    if whole {
        models(config, &mut faults);
    }
    faults.into_found()
}

/// Whether a credential of `owner` serves the models of `provider` (requirement A-9).
fn serves(owner: &str, provider: &ProviderId) -> bool {
    owner == provider.as_str() || auth_aliases(provider).contains(&owner)
}

fn foreign(profile: &ProfileId, provider: &ProviderId) -> Option<(String, String)> {
    (!serves(profile.provider(), provider)).then(|| {
        let message = format!("profile {profile} does not belong to provider {provider}");
        (message, format!("name a profile of {provider}: {provider}:name"))
    })
}

fn profiles(config: &Config, faults: &mut Faults<'_>) {
    for (id, profile) in &config.auth.profiles {
        if !serves(id.provider(), &profile.provider) {
            let message = format!("profile {id} says provider {}, and its id another one", profile.provider);
            faults.at(&format!("auth.profiles.{id}"), message, "a profile id is `provider:name`");
        }
    }
    for (provider, order) in &config.auth.order {
        for (at, profile) in order.iter().enumerate() {
            let path = format!("auth.order.{provider}[{at}]");
            if let Some((message, hint)) = foreign(profile, provider) {
                faults.at(&path, message, hint);
            } else if order.iter().take(at).any(|other| other == profile) {
                faults.at(&path, format!("{profile} stands here a second time"), "keep one of the two");
            }
        }
    }
}

fn providers(config: &Config, faults: &mut Faults<'_>) {
    for (id, provider) in &config.models.providers {
        let path = format!("models.providers.{id}");
        if let Some(url) = &provider.base_url {
            let place = format!("{path}.baseUrl");
            if !(url.starts_with("http://") || url.starts_with("https://")) {
                faults.at(&place, "not an http or https address", "write it with its scheme: https://…");
            } else if url.split('/').nth(2).is_some_and(|host| host.contains('@')) {
                faults.at(&place, LITERAL_KEY, "remove it from the address and use `apiKey`");
            }
        }
        for name in provider.headers.keys() {
            let secret = ["authorization", "x-api-key", "api-key", "cookie", "x-goog-api-key"];
            if secret.contains(&name.to_ascii_lowercase().as_str()) {
                let hint = "use `apiKey: \"${NAME}\"`; the adapter sends it in the right header";
                faults.at(&format!("{path}.headers.{name}"), LITERAL_KEY, hint);
            }
        }
        for (at, model) in provider.models.iter().enumerate() {
            if model.id.is_empty() {
                let hint = "add `id`, the provider's own name for the model";
                faults.at(&format!("{path}.models[{at}]"), "a model without `id`", hint);
            }
        }
    }
}

fn cooldowns(config: &Config, faults: &mut Faults<'_>) {
    let cooldowns = &config.auth.cooldowns;
    if let Some(preset) = cooldowns.preset.as_deref().filter(|p| !["default", "classic"].contains(p)) {
        let message = format!("no cooldown preset is called {preset:?}");
        faults.at("auth.cooldowns.preset", message, "`default` or `classic`");
    }
    if cooldowns.ladder_ms.as_ref().is_some_and(Vec::is_empty) {
        let hint = "write the waits in milliseconds, or leave the key out";
        faults.at("auth.cooldowns.ladderMs", "a ladder needs at least one step", hint);
    }
}

fn agents(config: &Config, faults: &mut Faults<'_>) {
    let list = &config.agents.list;
    for (at, agent) in list.iter().enumerate() {
        let path = format!("agents.list[{at}]");
        if agent.id.is_empty() {
            faults.at(&path, "an agent without `id`", "add `id`, its name");
        } else if list.iter().take(at).any(|other| other.id == agent.id) {
            faults.at(
                &format!("{path}.id"),
                format!("a second agent {:?}", agent.id),
                "give it another name",
            );
        }
        image(&format!("{path}.imageModel"), agent.image_model.as_ref(), faults);
    }
    image("agents.defaults.imageModel", config.agents.defaults.image_model.as_ref(), faults);
}

/// An image model that names none is a clear error (requirement H-8).
fn image(path: &str, choice: Option<&ModelChoice>, faults: &mut Faults<'_>) {
    let Some(choice) = choice else { return };
    let listed = matches!(&choice.fallbacks, Fallbacks::List(list) if !list.is_empty());
    if choice.primary.is_none() && !listed {
        let hint = "write `primary: \"provider/model\"`, or leave the key out";
        faults.at(path, "the image model names no model", hint);
    }
}

/// The keys and the aliases of `agents.defaults.models` (requirement H-6).
fn names(config: &Config, faults: &mut Faults<'_>) {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for (model, entry) in &config.agents.defaults.models {
        let path = format!("agents.defaults.models.{model}");
        if let Err(error) = model.parse::<ModelRef>() {
            faults.at_key(&path, error.to_string(), "the key is the model: `provider/model`");
        }
        let Some(alias) = &entry.alias else { continue };
        let path = format!("{path}.alias");
        if alias.trim().is_empty() {
            faults.at(&path, "an alias without a name", "write a short name, or leave the key out");
        } else if alias.contains('/') {
            let hint = "choose a name without a slash";
            faults.at(&path, format!("the alias {alias:?} reads like provider/model"), hint);
        } else if alias.contains('@') {
            let hint = "choose a name without `@`: what follows it is a profile";
            faults.at(&path, format!("the alias {alias:?} reads like a name with a profile"), hint);
        } else if let Some(other) = taken.insert(fold(alias), model) {
            let hint = "give each model a name of its own; case does not count";
            faults.at(&path, format!("the alias {alias:?} stands for {other} already"), hint);
        }
    }
}

/// As chains compare aliases.
fn fold(alias: &str) -> String {
    alias.trim().to_lowercase()
}

/// Every model that is named somewhere: it can be read, and the profile with it is one of its provider.
fn models(config: &Config, faults: &mut Faults<'_>) {
    for (path, text) in references(config) {
        match read(config, text) {
            Err(message) => {
                let hint = "write `provider/model`, or an alias from agents.defaults.models";
                faults.at(&path, message, hint);
            }
            Ok(ModelSelector { model, profile: Some(profile), .. }) => {
                if let Some((message, hint)) = foreign(&profile, model.provider()) {
                    faults.at(&path, message, hint);
                }
            }
            Ok(_) => {}
        }
    }
}

/// The model that `text` names, by an alias or itself, as chains read it.
fn read(config: &Config, text: &str) -> Result<ModelSelector, String> {
    let named = |name: &str| {
        let mut models = config.agents.defaults.models.iter();
        let is = |alias: &str| fold(alias) == fold(name);
        models.find(|(_, entry)| entry.alias.as_deref().is_some_and(is)).map(|(model, _)| model.as_str())
    };
    let behind = || {
        let (name, profile) = text.split_once('@')?;
        let read: ModelSelector = format!("{}@{profile}", named(name)?).parse().ok()?;
        read.profile.is_some().then_some(read)
    };
    if let Some(read) = behind() {
        return Ok(read);
    }
    let written = named(text).unwrap_or(text);
    written.parse().map_err(|error: failover_types::ModelRefError| error.to_string())
}

/// Every place where a model is named.
pub(crate) fn references(config: &Config) -> Vec<(String, &str)> {
    fn fallbacks<'a>(path: &str, list: &'a Fallbacks, out: &mut Vec<(String, &'a str)>) {
        if let Fallbacks::List(names) = list {
            out.extend(names.iter().enumerate().map(|(at, name)| (format!("{path}[{at}]"), name.as_str())));
        }
    }
    fn choice<'a>(path: &str, choice: Option<&'a ModelChoice>, out: &mut Vec<(String, &'a str)>) {
        let Some(choice) = choice else { return };
        if let Some(primary) = &choice.primary {
            let place = if choice.plain { path.to_owned() } else { format!("{path}.primary") };
            out.push((place, primary));
        }
        fallbacks(&format!("{path}.fallbacks"), &choice.fallbacks, out);
    }
    fn heartbeat<'a>(path: &str, heartbeat: Option<&'a Heartbeat>, out: &mut Vec<(String, &'a str)>) {
        if let Some(model) = heartbeat.and_then(|heartbeat| heartbeat.model.as_deref()) {
            out.push((format!("{path}.heartbeat.model"), model));
        }
    }
    let mut out = Vec::new();
    let defaults = &config.agents.defaults;
    heartbeat("agents.defaults", defaults.heartbeat.as_ref(), &mut out);
    choice("agents.defaults.model", defaults.model.as_ref(), &mut out);
    choice("agents.defaults.imageModel", defaults.image_model.as_ref(), &mut out);
    fallbacks("agents.defaults.onContextOverflow", &defaults.on_context_overflow, &mut out);
    fallbacks("agents.defaults.onContentRefusal", &defaults.on_content_refusal, &mut out);
    for (at, agent) in config.agents.list.iter().enumerate() {
        let path = format!("agents.list[{at}]");
        heartbeat(&path, agent.heartbeat.as_ref(), &mut out);
        choice(&format!("{path}.model"), agent.model.as_ref(), &mut out);
        choice(&format!("{path}.imageModel"), agent.image_model.as_ref(), &mut out);
        fallbacks(&format!("{path}.onContextOverflow"), &agent.on_context_overflow, &mut out);
        fallbacks(&format!("{path}.onContentRefusal"), &agent.on_content_refusal, &mut out);
    }
    out.extend(gateway::references(&config.gateway));
    out
}

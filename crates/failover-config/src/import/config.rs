//! `openclaw.json`: the sections that the two share, brought into our form.

use super::Found;
use super::credentials::{source, variable};
use crate::{Document, load_text};
use failover_types::{AgentId, Credential, ProfileId, ProviderId, SecretSource};
use serde_json::{Map, Value, json};
use std::collections::btree_map::Entry;
use std::path::Path;

/// Faults that are mended before a section is given up as a whole.
const MOST_FAULTS: usize = 2_000;
/// What is taken over, section by section.
const SHARED: &[(&str, &[&str])] = &[
    ("auth", &["profiles", "order", "cooldowns"]),
    ("agents", &["defaults", "list"]),
    ("models", &["providers"]),
];

impl Found {
    /// Reads the config, if it is there.
    pub(super) fn read_config(&mut self, path: &Path) {
        let Some(text) = self.text(path) else { return };
        let root = match Document::parse("openclaw.json", &text) {
            Ok(document) => document.root().clone(),
            Err(faults) => {
                let line = faults.faults.first().map_or(1, |fault| fault.line);
                return self.leave(path, "", format!("it is no JSON5 (line {line})"));
            }
        };
        let Some(root) = root.as_object() else { return self.leave(path, "", "it is no object") };
        let mut taken = Map::new();
        for (section, keys) in SHARED {
            let Some(Value::Object(found)) = root.get(*section) else { continue };
            let mut kept = Map::new();
            for (key, value) in found {
                if keys.contains(&key.as_str()) {
                    kept.insert(key.clone(), value.clone());
                } else {
                    self.leave(path, format!("{section}.{key}"), "failover has no such key");
                }
            }
            taken.insert((*section).to_owned(), Value::Object(kept));
        }
        for key in root.keys().filter(|key| !SHARED.iter().any(|(section, _)| section == key)) {
            let why = match key.as_str() {
                "$include" => "files that are included are not read; their content is not taken over",
                "env" => "variables are not set here: set them where failover runs",
                _ => "it is no part of failover",
            };
            self.leave(path, key, why);
        }
        self.keys(path, &mut taken);
        let config = self.mend(path, Value::Object(taken));
        self.config = config.filter(|config| config.as_object().is_some_and(|map| !map.is_empty()));
    }

    /// Keys of providers: references stay in the config, secrets go to the agents' stores.
    fn keys(&mut self, path: &Path, taken: &mut Map<String, Value>) {
        let agents = agents(taken);
        let providers = taken.get_mut("models").and_then(|models| models.get_mut("providers"));
        let Some(providers) = providers.and_then(Value::as_object_mut) else { return };
        for (name, settings) in providers {
            let Some(settings) = settings.as_object_mut() else { continue };
            let Some(key) = settings.remove("apiKey") else { continue };
            let place = format!("models.providers.{name}.apiKey");
            // A bare name in capitals is a variable, too.
            let bare = key.as_str().map(|text| format!("${text}"));
            let bare = bare.as_deref().and_then(variable).map(|name| SecretSource::Env(name.to_owned()));
            match bare.map_or_else(|| source(&key), Ok) {
                Ok(SecretSource::Env(variable)) => {
                    settings.insert("apiKey".to_owned(), json!(format!("${{{variable}}}")));
                }
                Ok(secret) => self.keep(path, &place, name, &secret, &agents),
                Err(why) => self.leave(path, place, why),
            }
        }
    }

    /// A key that stood in the config goes to the store of every agent, as its provider's default profile.
    fn keep(&mut self, path: &Path, place: &str, name: &str, secret: &SecretSource, agents: &[AgentId]) {
        let provider = ProviderId::new(name);
        let named = provider.and_then(|provider| Ok((ProfileId::for_account(&provider, None)?, provider)));
        let Ok((profile, provider)) = named else {
            return self.leave(path, place, "its provider is no provider id");
        };
        let credential = Credential::ApiKey { provider, key: secret.clone() };
        for agent in agents {
            match self.agent(agent).credentials.entry(profile.clone()) {
                Entry::Vacant(free) => drop(free.insert((credential.clone(), path.to_owned()))),
                Entry::Occupied(taken) if taken.get().0 != credential => {
                    let why =
                        format!("the agent {agent} has another credential under {profile}, which counts");
                    self.leave(path, place, why);
                }
                Entry::Occupied(_) => {}
            }
        }
    }

    /// Takes out what our own loader refuses, one fault after the other, until the rest is valid.
    fn mend(&mut self, path: &Path, mut config: Value) -> Option<Value> {
        for _ in 0..MOST_FAULTS {
            let text = serde_json::to_string_pretty(&config).ok()?;
            let faults = match load_text("openclaw.json", &text) {
                Ok(_) => return Some(prune(config)),
                Err(faults) => faults.faults,
            };
            let mut mended = false;
            for fault in faults {
                // Its message may quote a value.
                let why = if fault.message.starts_with("unknown key") {
                    "failover has no such key"
                } else {
                    "failover reads this in another form"
                };
                // A profile of an unknown kind is not one of the usual kind.
                let place = match fault.path.strip_suffix(".mode") {
                    Some(profile) if profile.starts_with("auth.profiles.") => profile.to_owned(),
                    _ => fault.path,
                };
                if take_out(&mut config, &place) {
                    mended = true;
                    self.leave(path, place, why);
                    // Places behind this one in a list have moved.
                    break;
                }
            }
            if !mended {
                break;
            }
        }
        self.leave(path, "", "its settings cannot be brought into a valid form");
        None
    }
}

/// The agents that the config lists, and the main one.
fn agents(taken: &Map<String, Value>) -> Vec<AgentId> {
    let list = taken.get("agents").and_then(|agents| agents.get("list")).and_then(Value::as_array);
    let ids = list.into_iter().flatten().filter_map(|agent| agent.get("id")?.as_str());
    let mut agents: Vec<AgentId> = ids.filter_map(|id| AgentId::new(id).ok()).collect();
    agents.push(AgentId::main());
    agents.sort();
    agents.dedup();
    agents
}

/// Removes the value at a path such as `agents.list[0].model`. A key may hold dots itself: the longest that fits counts.
fn take_out(value: &mut Value, path: &str) -> bool {
    match value {
        Value::Object(map) => {
            let Some((key, rest)) = map
                .keys()
                .filter_map(|key| Some((key.clone(), path.strip_prefix(key.as_str())?)))
                .filter(|(_, rest)| rest.is_empty() || rest.starts_with(['.', '[']))
                .max_by_key(|(key, _)| key.len())
            else {
                return false;
            };
            let rest = rest.strip_prefix('.').unwrap_or(rest);
            if rest.is_empty() {
                return map.remove(&key).is_some();
            }
            map.get_mut(&key).is_some_and(|inner| take_out(inner, rest)) || map.remove(&key).is_some()
        }
        Value::Array(list) => {
            let Some((index, rest)) = path.strip_prefix('[').and_then(|path| path.split_once(']')) else {
                return false;
            };
            let Some(at) = index.parse::<usize>().ok().filter(|at| *at < list.len()) else { return false };
            let rest = rest.strip_prefix('.').unwrap_or(rest);
            if rest.is_empty() || !list.get_mut(at).is_some_and(|inner| take_out(inner, rest)) {
                list.remove(at);
            }
            true
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Leaves out sections that hold nothing.
fn prune(config: Value) -> Value {
    let Value::Object(map) = config else { return config };
    let full = |value: &Value| !value.as_object().is_some_and(|map| map.values().all(is_empty));
    Value::Object(map.into_iter().filter(|(_, value)| full(value)).collect())
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

//! `auth-profiles.json`, `auth-state.json`, `auth.json`, `oauth.json`.

use super::{Form, Found};
use failover_auth::FlatUsage;
use failover_types::{AgentId, Credential, OAuth, ProfileId, ProviderId, Secret, SecretSource, Timestamp};
use serde_json::{Map, Value};
use std::collections::btree_map::Entry;
use std::path::Path;

/// Newest version of those files whose form is known.
const KNOWN_VERSION: u64 = 1;

impl Found {
    /// Reads a file of credentials or of health, if it is there.
    pub(super) fn read(&mut self, agent: &AgentId, path: &Path, form: Form) {
        let Some(text) = self.text(path) else { return };
        // The parser's message may quote a value: only the place is told.
        let root: Map<String, Value> = match serde_json::from_str(&text) {
            Ok(root) => root,
            Err(error) => {
                let why = format!("it is no JSON object (line {}, column {})", error.line(), error.column());
                return self.leave(path, "", why);
            }
        };
        if root.get("version").and_then(Value::as_u64).is_some_and(|version| version > KNOWN_VERSION) {
            return self.leave(path, "version", "it was written by a newer version of OpenClaw");
        }
        let keyed = root.get("profiles").and_then(Value::as_object);
        match (form, keyed) {
            (Form::Profiles, Some(profiles)) => {
                for (id, raw) in profiles {
                    self.credential(
                        agent,
                        path,
                        &format!("profiles.{id}"),
                        ProfileId::new(id).ok(),
                        raw,
                        form,
                    );
                }
                self.state(agent, path, &root);
            }
            (Form::State, _) => self.state(agent, path, &root),
            (Form::Flat | Form::OAuth | Form::Profiles, _) => {
                for (name, raw) in root.iter().filter(|(name, _)| *name != "version") {
                    // Very old files are keyed by profile, old ones by provider.
                    let default = || ProfileId::for_account(&ProviderId::new(name).ok()?, None).ok();
                    let id = if name.contains(':') { ProfileId::new(name).ok() } else { default() };
                    self.credential(agent, path, name, id, raw, form);
                }
            }
        }
    }

    fn credential(
        &mut self,
        agent: &AgentId,
        path: &Path,
        place: &str,
        id: Option<ProfileId>,
        raw: &Value,
        form: Form,
    ) {
        let Some(id) = id else { return self.leave(path, place, "its name is no profile id") };
        let Some(fields) = raw.as_object() else { return self.leave(path, place, "it is no object") };
        match credential(&id, fields, form) {
            Ok((credential, dropped)) => {
                for (name, why) in dropped {
                    self.leave(path, format!("{place}.{name}"), why);
                }
                match self.agent(agent).credentials.entry(id) {
                    Entry::Vacant(place) => {
                        place.insert((credential, path.to_owned()));
                    }
                    Entry::Occupied(taken) if taken.get().0 != credential => {
                        let from = taken.get().1.display().to_string();
                        self.leave(
                            path,
                            place,
                            format!("{from} has another one under this name, which counts"),
                        );
                    }
                    Entry::Occupied(_) => {}
                }
            }
            Err(why) => self.leave(path, place, why),
        }
    }

    /// Orders and health. What was read before counts.
    fn state(&mut self, agent: &AgentId, path: &Path, root: &Map<String, Value>) {
        for (provider, raw) in object(root, "order") {
            let names = raw.as_array().into_iter().flatten().filter_map(Value::as_str);
            let ids: Vec<ProfileId> = names.filter_map(|name| ProfileId::new(name).ok()).collect();
            match ProviderId::new(provider) {
                Ok(id) if !ids.is_empty() => drop(self.agent(agent).orders.entry(id).or_insert(ids)),
                _ => self.leave(path, format!("order.{provider}"), "it names no profiles"),
            }
        }
        for (name, raw) in object(root, "usageStats") {
            let usage = serde_json::from_value::<FlatUsage>(raw.clone());
            match (ProfileId::new(name), usage) {
                (Ok(id), Ok(usage)) => drop(self.agent(agent).usage.entry(id).or_insert(usage)),
                _ => self.leave(path, format!("usageStats.{name}"), "its numbers cannot be read"),
            }
        }
        if root.get("lastGood").and_then(Value::as_object).is_some_and(|last| !last.is_empty()) {
            self.leave(path, "lastGood", "there is no such thing here: the least recently used goes first");
        }
    }
}

fn object<'a>(root: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    root.get(name).and_then(Value::as_object).into_iter().flatten()
}

type Dropped = Vec<(String, &'static str)>;

/// Reads one credential; the second part is what of it has no place here.
fn credential(
    id: &ProfileId,
    fields: &Map<String, Value>,
    form: Form,
) -> Result<(Credential, Dropped), &'static str> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let provider = match text("provider") {
        Some(provider) => ProviderId::new(provider).map_err(|_| "its provider is no provider id")?,
        None => id.provider_id(),
    };
    let kind = text("type").or_else(|| text("mode"));
    let kind = kind.or((form == Form::OAuth).then_some("oauth"));
    let (credential, known): (Credential, &[&str]) = match kind {
        Some("api_key" | "apiKey" | "api-key") => {
            let key = secret(fields, &["key", "apiKey"], "keyRef")?;
            (Credential::ApiKey { provider, key }, &["key", "apiKey", "keyRef"])
        }
        Some("token") => {
            let token = secret(fields, &["token"], "tokenRef")?;
            (Credential::Token { provider, token, expires: time(fields) }, &["token", "tokenRef", "expires"])
        }
        Some("oauth") => {
            let pair = oauth(provider, fields)?;
            (Credential::OAuth(pair), &["access", "refresh", "expires", "projectId", "enterpriseUrl"])
        }
        Some(_) => return Err("its type is not known here"),
        None => return Err("it has no type"),
    };
    let always = ["type", "mode", "provider", "email", "displayName", "copyToAgents"];
    let unknown = fields.keys().filter(|name| !known.contains(&name.as_str()));
    let dropped = unknown.filter(|name| !always.contains(&name.as_str()));
    Ok((credential, dropped.map(|name| (name.clone(), "it is not kept here")).collect()))
}

fn time(fields: &Map<String, Value>) -> Option<Timestamp> {
    let number = fields.get("expires")?.as_f64().filter(|number| *number > 0.0)?;
    format!("{number:.0}").parse().ok().map(Timestamp::from_millis)
}

fn oauth(provider: ProviderId, fields: &Map<String, Value>) -> Result<OAuth, &'static str> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty());
    let token = |name| match text(name) {
        Some(text) => Secret::parse(text).map_err(|_| "its tokens could never be sent"),
        None => Ok(Secret::new("")),
    };
    let (access, refresh) = (token("access")?, token("refresh")?);
    if access.expose().is_empty() && refresh.expose().is_empty() {
        return Err("it has no token");
    }
    let mut pair = OAuth::new(provider, access, refresh, time(fields).unwrap_or_default());
    pair.email = text("email").map(str::to_owned);
    pair.project_id = text("projectId").map(str::to_owned);
    pair.enterprise_url = text("enterpriseUrl").map(str::to_owned);
    Ok(pair)
}

/// A value, or a reference to one, under either of its names.
fn secret(
    fields: &Map<String, Value>,
    names: &[&str],
    reference: &str,
) -> Result<SecretSource, &'static str> {
    let written = fields.get(reference).filter(|value| value.is_object());
    let value = written.or_else(|| names.iter().find_map(|name| fields.get(*name)));
    match value {
        Some(value) => source(value),
        None => Err("it has no secret"),
    }
}

/// A secret as OpenClaw writes one: the value, `"${NAME}"`, `"$NAME"`, or `{ source, provider, id }`.
pub(super) fn source(value: &Value) -> Result<SecretSource, &'static str> {
    if let Some(text) = value.as_str().map(str::trim) {
        return match variable(text) {
            Some(name) => Ok(SecretSource::Env(name.to_owned())),
            None => Secret::parse(text).map(SecretSource::Literal).map_err(|_| {
                "its secret could never be sent: empty, a placeholder, or with characters that no key has"
            }),
        };
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    match (text("source"), text("id")) {
        (Some("env"), Some(id)) => Ok(SecretSource::Env(id.to_owned())),
        (Some("file" | "exec" | "store"), _) => {
            Err("its secret comes from a secret provider; store it with `failover auth add`")
        }
        _ => Err("its secret is in a form that is not known here"),
    }
}

/// The variable that `"${NAME}"` or `"$NAME"` names.
pub(super) fn variable(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('$')?;
    let name = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest);
    let valid = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    (!name.is_empty() && name.bytes().all(valid)).then_some(name)
}

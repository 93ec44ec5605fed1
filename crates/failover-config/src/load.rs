//! From a file to a valid [`Config`].

use crate::schema::unknown_keys;
use crate::value::{Fallbacks, LITERAL_KEY, ModelChoice};
use crate::{Config, Diagnostic, Diagnostics, Document, gateway};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A valid config and the document it came from, which knows where each key stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The typed keys.
    pub config: Config,
    /// Where they stand.
    pub document: Document,
}

/// Why a config could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the config {path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The file is read and wrong.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}

/// Reads and checks a config file.
///
/// # Errors
///
/// [`LoadError::Read`] where the file cannot be read, [`LoadError::Invalid`] with every fault in it.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    Ok(load_text(&path.display().to_string(), &text)?)
}

/// Checks a config text; `file` is what diagnostics call it.
///
/// # Errors
///
/// Every fault: syntax, repeated and unknown keys, types, secrets, references to what does not exist.
pub fn load_text(file: &str, text: &str) -> Result<Loaded, Diagnostics> {
    let document = Document::parse(file, text)?;
    if !document.root().is_object() {
        let hint = Some("write { before it and } behind it".to_owned());
        let fault = document.fault("", false, "a config is an object".to_owned(), hint);
        return Err(document.diagnostics(vec![fault]));
    }
    let mut faults = unknown_keys(&document);
    match serde_path_to_error::deserialize::<_, Config>(document.root()) {
        Ok(config) => {
            faults.extend(meaning(&config, &document));
            if faults.is_empty() {
                Ok(Loaded { config, document })
            } else {
                Err(document.diagnostics(faults))
            }
        }
        Err(error) => {
            let path = error.path().to_string();
            let message = error.into_inner().to_string();
            let (message, hint) = explain(&path, message, &document);
            faults.push(document.fault(&path, false, message, hint));
            Err(document.diagnostics(faults))
        }
    }
}

/// Adds what to do to errors of types that have a common cause.
fn explain(path: &str, message: String, document: &Document) -> (String, Option<String>) {
    if message == LITERAL_KEY {
        let provider = path.split('.').rev().nth(1).unwrap_or("provider");
        let name = provider.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let hint = format!(
            "put it into the environment and write \"${{{name}_API_KEY}}\", or store it with `failover auth add`"
        );
        return (message, Some(hint));
    }
    let message = in_words_of_json(message);
    let is_id_map = path.starts_with("auth.") || path.starts_with("models.providers");
    let hint =
        (is_id_map && document.position(path).is_none()).then(|| "check the ids in this section".to_owned());
    (message, hint)
}

/// Says what was expected as the config's author writes it, not as this program calls it.
fn in_words_of_json(message: String) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message };
    let wanted = match expected {
        "a map" => "an object",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i64" | "i32" => "a whole number",
        "f64" => "a number",
        kind if kind.starts_with("struct ") => "an object",
        _ => return message,
    };
    format!("{found}, expected {wanted}")
}

/// Faults of meaning: every one of them, not only the first.
fn meaning(config: &Config, document: &Document) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    let mut fault = |path: &str, message: String, hint: Option<&str>| {
        faults.push(document.fault(path, false, message, hint.map(str::to_owned)));
    };
    for (id, profile) in &config.auth.profiles {
        let aliased = profile.provider.as_str() == "openai" && id.provider() == "openai-codex";
        if id.provider() != profile.provider.as_str() && !aliased {
            let message = format!("profile {id} says provider {}, and its id another one", profile.provider);
            fault(&format!("auth.profiles.{id}"), message, Some("a profile id is `provider:name`"));
        }
    }
    for (id, provider) in &config.models.providers {
        let path = format!("models.providers.{id}");
        if let Some(url) = &provider.base_url {
            if !(url.starts_with("http://") || url.starts_with("https://")) {
                let hint = Some("write it with its scheme: https://…");
                fault(&format!("{path}.baseUrl"), "not an http or https address".to_owned(), hint);
            } else if url.split('/').nth(2).is_some_and(|host| host.contains('@')) {
                let hint = Some("remove it from the address and use `apiKey`");
                fault(&format!("{path}.baseUrl"), LITERAL_KEY.to_owned(), hint);
            }
        }
        for name in provider.headers.keys() {
            let secret = ["authorization", "x-api-key", "api-key", "cookie", "x-goog-api-key"];
            if secret.contains(&name.to_ascii_lowercase().as_str()) {
                let hint = Some("use `apiKey: \"${NAME}\"`; the adapter sends it in the right header");
                fault(&format!("{path}.headers.{name}"), LITERAL_KEY.to_owned(), hint);
            }
        }
        for (at, model) in provider.models.iter().enumerate() {
            if model.id.is_empty() {
                fault(&format!("{path}.models[{at}]"), "a model without `id`".to_owned(), None);
            }
        }
    }
    if let Some(preset) =
        config.auth.cooldowns.preset.as_deref().filter(|p| !["default", "classic"].contains(p))
    {
        let message = format!("no cooldown preset is called {preset:?}");
        fault("auth.cooldowns.preset", message, Some("`default` or `classic`"));
    }
    if config.auth.cooldowns.ladder_ms.as_ref().is_some_and(Vec::is_empty) {
        fault("auth.cooldowns.ladderMs", "a ladder needs at least one step".to_owned(), None);
    }
    for (at, agent) in config.agents.list.iter().enumerate() {
        if agent.id.is_empty() {
            fault(&format!("agents.list[{at}]"), "an agent without `id`".to_owned(), None);
        } else if config.agents.list.iter().take(at).any(|other| other.id == agent.id) {
            fault(&format!("agents.list[{at}].id"), format!("a second agent {:?}", agent.id), None);
        }
    }
    faults.extend(gateway::meaning(config, document));
    let mut fault = |path: &str, message: String, hint: Option<&str>| {
        faults.push(document.fault(path, false, message, hint.map(str::to_owned)));
    };
    for (path, text) in references(config) {
        if let Some(message) = unresolvable(config, text) {
            fault(&path, message, Some("write `provider/model`, or an alias from agents.defaults.models"));
        }
    }
    faults
}

/// Every place where a model is named.
fn references(config: &Config) -> Vec<(String, &str)> {
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
    let mut out = Vec::new();
    let defaults = &config.agents.defaults;
    choice("agents.defaults.model", defaults.model.as_ref(), &mut out);
    choice("agents.defaults.imageModel", defaults.image_model.as_ref(), &mut out);
    fallbacks("agents.defaults.onContextOverflow", &defaults.on_context_overflow, &mut out);
    fallbacks("agents.defaults.onContentRefusal", &defaults.on_content_refusal, &mut out);
    for (at, agent) in config.agents.list.iter().enumerate() {
        let path = format!("agents.list[{at}]");
        choice(&format!("{path}.model"), agent.model.as_ref(), &mut out);
        choice(&format!("{path}.imageModel"), agent.image_model.as_ref(), &mut out);
        fallbacks(&format!("{path}.onContextOverflow"), &agent.on_context_overflow, &mut out);
        fallbacks(&format!("{path}.onContentRefusal"), &agent.on_content_refusal, &mut out);
    }
    out.extend(gateway::references(&config.gateway));
    out
}

/// Why `text` names no model, if it names none.
fn unresolvable(config: &Config, text: &str) -> Option<String> {
    let aliased = config
        .agents
        .defaults
        .models
        .values()
        .any(|entry| entry.alias.as_deref().is_some_and(|alias| alias.eq_ignore_ascii_case(text.trim())));
    if aliased {
        return None;
    }
    text.parse::<failover_types::ModelRef>().err().map(|error| error.to_string())
}

impl Loaded {
    /// The config as it is in force, as JSON. It holds references to keys, never keys.
    pub fn effective(&self) -> Value {
        serde_json::to_value(&self.config).unwrap_or(Value::Null)
    }

    /// A fault that shows only when the config is put to work, at the value of `path`.
    pub fn fault(&self, path: &str, message: impl Into<String>) -> Diagnostics {
        self.document.diagnostics(vec![self.document.fault(path, false, message.into(), None)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    const GOOD: &str = r"{
        auth: {
            profiles: { 'openai:work': { provider: 'openai', key: '${OPENAI_WORK}' } },
            order: { openai: ['openai:work', 'openai:default'] },
            cooldowns: { billingBackoffHours: 5 },
        },
        agents: {
            defaults: {
                model: { primary: 'fast', fallbacks: ['openrouter/meta/llama-3'] },
                models: { 'openai/gpt-5-mini': { alias: 'fast' } },
                limits: { firstByteMs: 8000 },
            },
            list: [{ id: 'main', model: 'openai/gpt-5' }],
        },
        models: { providers: { openai: { apiKey: { source: 'env', id: 'OPENAI_API_KEY' } } } },
    }";

    // spec: U-3
    #[test]
    fn a_config_with_shared_names_loads() {
        let loaded = load_text("x.json5", GOOD).unwrap();
        let choice = loaded.config.agents.defaults.model.unwrap();
        assert_eq!(choice.fallbacks, Fallbacks::List(vec!["openrouter/meta/llama-3".to_owned()]));
        assert!(loaded.config.agents.list[0].model.as_ref().unwrap().plain);
    }

    // spec: H-12
    #[test_case("{ primary: 'a/m' }", &Fallbacks::Absent)]
    #[test_case("{ primary: 'a/m', fallbacks: null }", &Fallbacks::Null)]
    #[test_case("{ primary: 'a/m', fallbacks: [] }", &Fallbacks::List(vec![]))]
    fn absent_null_and_empty_fallbacks_differ(model: &str, expected: &Fallbacks) {
        let text = format!("{{agents: {{defaults: {{model: {model}}}}}}}");
        let config = load_text("x", &text).unwrap().config;
        assert_eq!(&config.agents.defaults.model.unwrap().fallbacks, expected);
    }

    // spec: U-3, A-3
    #[test_case("{\n  agnets: {},\n}", 2, 3, "unknown key `agnets`", "`agents`")]
    #[test_case(
        "{agents: {defaults: {model: {fallback: []}}}}",
        1,
        30,
        "unknown key `fallback`",
        "`fallbacks`"
    )]
    #[test_case(
        "{models: {providers: {openai: {apiKey: 'sk-very-secret'}}}}",
        1,
        40,
        "secret",
        "${OPENAI_API_KEY}"
    )]
    #[test_case(
        "{models: {providers: {a: {headers: {Authorization: 'Bearer x'}}}}}",
        1,
        52,
        "secret",
        "apiKey"
    )]
    #[test_case("{models: {providers: {a: {baseUrl: 'localhost:1'}}}}", 1, 36, "http", "https://")]
    #[test_case("{agents: {defaults: {model: 'gpt-5'}}}", 1, 29, "provider/model", "alias")]
    #[test_case("{auth: {profiles: {'a:x': {provider: 'b'}}}}", 1, 27, "another one", "provider:name")]
    #[test_case("{agents: {defaults: {limits: {runMs: 'soon'}}}}", 1, 38, "expected a whole number", "")]
    #[test_case("{agents: 'x'}", 1, 10, "expected an object", "")]
    #[test_case("{models: {providers: 3}}", 1, 22, "expected an object", "")]
    fn faults_have_place_and_hint(text: &str, line: usize, column: usize, message: &str, hint: &str) {
        let faults = load_text("x.json5", text).unwrap_err().faults;
        let fault = &faults[0];
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(fault.message.contains(message), "{fault:?}");
        assert!(fault.hint.clone().unwrap_or_default().contains(hint), "{fault:?}");
        assert_eq!((fault.line, fault.column), (line, column), "{fault:?}");
    }

    // spec: A-3
    #[test_case("{models: {providers: {a: {apiKey: 'hunter2'}}}}", "hunter2"; "a literal key")]
    #[test_case("{models: {providers: {a: {headers: {'X-Api-Key': 'hunter2'}}}}}", "hunter2"; "a key in a header")]
    #[test_case("{agnets: 1, models: {providers: {a: {apiKey: 'hunter2', api: 7}}}}", "hunter2"; "beside another fault")]
    #[test_case("{models: {providers: {a: {apiKey: 'sk-abcdefgh0123456789xyz' 1}}}}", "abcdefgh0123456789"; "in broken syntax")]
    fn no_secret_is_shown_again(text: &str, secret: &str) {
        let faults = load_text("x.json5", text).unwrap_err();
        for shown in [faults.render(false), faults.render(true), faults.to_string(), format!("{faults:?}")] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    // spec: U-3
    #[test_case("[]", 1)]
    #[test_case("\n['a']", 2)]
    #[test_case("7", 1)]
    fn a_config_that_is_no_object_is_refused(text: &str, line: usize) {
        let faults = load_text("x.json5", text).unwrap_err().faults;
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(fault.line == line && fault.message.contains("object") && fault.hint.is_some(), "{fault:?}");
    }

    #[test]
    fn all_faults_come_at_once_with_their_lines() {
        let text = "{\n  agnets: {},\n  auth: { cooldowns: { preset: 'zen' } },\n}";
        let faults = load_text("my.json5", text).unwrap_err();
        assert_eq!(faults.faults.len(), 2);
        let shown = faults.render(false);
        assert!(shown.contains("my.json5:2:3") && shown.contains("my.json5:3:32"), "{shown}");
        assert!(shown.contains("agnets: {}"), "{shown}");
    }
}

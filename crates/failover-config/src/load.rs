//! From a file to a valid [`Config`].

use crate::schema::unknown_keys;
use crate::value::LITERAL_KEY;
use crate::{Config, Diagnostic, Diagnostics, Document, meaning};
use serde_json::Value;
use serde_path_to_error::Segment;
use std::collections::BTreeMap;
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
        let hint = "write { before it and } behind it";
        let fault = document.fault("", false, "a config is an object", hint);
        return Err(document.diagnostics(vec![fault]));
    }
    let mut faults = unknown_keys(&document);
    let (config, wrong) = typed(&document);
    let whole = wrong.is_empty();
    faults.extend(wrong);
    if let Some(config) = config {
        faults.extend(meaning::faults(&config, &document, whole));
        if faults.is_empty() {
            return Ok(Loaded { config, document });
        }
    }
    Err(document.diagnostics(faults))
}

/// Most faults of type that are told at once.
const MOST_WRONG: usize = 100;

/// The typed config, and every fault of type: where one is found, the value is taken out, and what is left is read again.
fn typed(document: &Document) -> (Option<Config>, Vec<Diagnostic>) {
    let mut left = Left { root: document.root().clone(), lists: BTreeMap::new() };
    let mut faults: Vec<Diagnostic> = Vec::new();
    while faults.len() < MOST_WRONG {
        let error = match serde_path_to_error::deserialize::<_, Config>(&left.root) {
            Ok(config) => return (Some(config), faults),
            Err(error) => error,
        };
        let steps: Vec<Segment> = error.path().iter().cloned().collect();
        let path = left.path(&steps);
        let (message, hint) = explain(&path, error.into_inner().to_string(), document);
        faults.push(document.fault(&path, false, message, hint));
        if !left.take_out(&steps) {
            break;
        }
    }
    (None, faults)
}

/// What is left of a document whose faulty values are taken out.
struct Left {
    root: Value,
    /// Of lists that have lost elements: where those that are left stood, by the list's path.
    lists: BTreeMap<String, Vec<usize>>,
}

impl Left {
    /// Where what the steps lead to stands in the document.
    fn path(&self, steps: &[Segment]) -> String {
        let mut path = String::new();
        for step in steps {
            match step {
                Segment::Map { key } if path.is_empty() => path.push_str(key),
                Segment::Map { key } => path = format!("{path}.{key}"),
                Segment::Seq { index } => {
                    let stood = self.lists.get(&path).and_then(|stood| stood.get(*index)).unwrap_or(index);
                    path = format!("{path}[{stood}]");
                }
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        path
    }

    /// Takes out what the steps lead to, or the nearest that stands around it; `false` where that is everything.
    fn take_out(&mut self, steps: &[Segment]) -> bool {
        let Some((last, before)) = steps.split_last() else { return false };
        let around = before.iter().try_fold(&mut self.root, |at, step| match step {
            Segment::Map { key } => at.get_mut(key.as_str()),
            Segment::Seq { index } => at.get_mut(*index),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        let taken = match (last, around) {
            (Segment::Map { key }, Some(Value::Object(map))) => map.remove(key).is_some(),
            (Segment::Seq { index }, Some(Value::Array(elements))) if *index < elements.len() => {
                let all = 0..elements.len();
                elements.remove(*index);
                self.lists.entry(self.path(before)).or_insert_with(|| all.collect()).remove(*index);
                true
            }
            _ => false,
        };
        taken || self.take_out(before)
    }
}

/// Words an error of type for the config's author, and says what to do.
fn explain(path: &str, message: String, document: &Document) -> (String, String) {
    if message == LITERAL_KEY {
        let provider = path.split('.').rev().nth(1).unwrap_or("provider");
        let name = provider.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let hint = format!(
            "put it into the environment and write \"${{{name}_API_KEY}}\", or store it with `failover auth add`"
        );
        return (message, hint);
    }
    let message = in_words_of_json(message);
    let is_id_map = path.starts_with("auth.") || path.starts_with("models.providers");
    if is_id_map && document.position(path).is_none() {
        return (message, "check the ids in this section".to_owned());
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        let hint = format!("add {field}");
        return (message, hint);
    }
    let hint = match message.rsplit_once("expected ") {
        Some((_, wanted)) => format!("write {wanted} here, or leave the key out"),
        None => format!("mend it, or leave it out; docs/config.md says what `{}` takes", schema_path(path)),
    };
    (message, hint)
}

/// The path as the documents write it: without the places in lists.
fn schema_path(path: &str) -> String {
    path.split('[')
        .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
        .collect::<Vec<_>>()
        .join("[]")
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

impl Loaded {
    /// The config as it is in force, as JSON. It holds references to keys, never keys.
    pub fn effective(&self) -> Value {
        serde_json::to_value(&self.config).unwrap_or(Value::Null)
    }

    /// A fault that shows only when the config is put to work, at the value of `path`, and what to do about it.
    pub fn fault(&self, path: &str, message: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
        self.document.fault(path, false, message, hint)
    }

    /// Faults with the lines that they stand in.
    pub fn diagnostics(&self, faults: Vec<Diagnostic>) -> Diagnostics {
        self.document.diagnostics(faults)
    }

    /// Every place where the config names a model, and what is written there.
    pub fn model_references(&self) -> Vec<(String, &str)> {
        meaning::references(&self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fallbacks;
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
    #[test_case(
        "{agents: {defaults: {limits: {runMs: 'soon'}}}}",
        1,
        38,
        "expected a whole number",
        "write a whole number"
    )]
    #[test_case("{agents: 'x'}", 1, 10, "expected an object", "write an object")]
    #[test_case("{models: {providers: 3}}", 1, 22, "expected an object", "write an object")]
    fn faults_have_place_and_hint(text: &str, line: usize, column: usize, message: &str, hint: &str) {
        let faults = load_text("x.json5", text).unwrap_err().faults;
        let fault = &faults[0];
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(fault.message.contains(message), "{fault:?}");
        assert!(fault.hint.contains(hint) && !fault.hint.is_empty(), "{fault:?}");
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
        assert!(
            fault.line == line && fault.message.contains("object") && !fault.hint.is_empty(),
            "{fault:?}"
        );
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
    // spec: U-3
    #[test]
    fn faults_of_type_come_all_at_once_and_do_not_hide_others() {
        let text = "{
  auth: {
    profiles: { 'a:x': {}, 'b:y': { provider: 'b', mode: 'tokn' } },
    order: { a: ['nonsense', 'a:x',
      'more'] },
    cooldowns: { billingMaxHours: 'one', preset: 'zen' },
  },
  agents: { defaults: { limits: { runMs: -1 }, model: { fallbacks: ['a/m', 7] } }, list: 'x' },
  models: { providers: { a: { selfBalancing: 'no', baseUrl: 'x' } } },
  gateway: { listen: 8787 },
}";
        let faults = load_text("x.json5", text).unwrap_err().faults;
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [3, 3, 4, 5, 6, 6, 8, 8, 8, 9, 9, 10], "{faults:#?}");
        assert!(faults.iter().all(|fault| !fault.hint.is_empty()), "{faults:#?}");
    }

    // spec: H-6
    #[test_case("{'a/m': {alias: 'fast'}, 'b/n': {alias: ' FAST'}}", "stands for a/m already"; "twice")]
    #[test_case("{'a/m': {alias: 'b/n'}}", "reads like provider/model"; "a slash")]
    #[test_case("{'a/m': {alias: 'fast@a:x'}}", "with a profile"; "an at")]
    #[test_case("{'a/m': {alias: ' '}}", "without a name"; "blank")]
    #[test_case("{'gpt-5': {alias: 'fast'}}", "provider/model"; "of no model")]
    fn an_alias_means_one_thing(models: &str, message: &str) {
        let text = format!("{{agents: {{defaults: {{\nmodels: {models}}}}}}}");
        let faults = load_text("x.json5", &text).unwrap_err().faults;
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(fault.message.contains(message) && fault.line == 2 && !fault.hint.is_empty(), "{fault:?}");
    }

    // spec: H-6, A-4
    #[test_case("agents: {defaults: {\nmodel: {primary: 'x/y', fallbacks: ['x/y@other:p']}}}"; "in a fallback")]
    #[test_case("agents: {defaults: {model: 'x/y', \nmodels: {'x/y': {alias: 'f'}}, imageModel: 'f@other:p'}}"; "behind an alias")]
    #[test_case("gateway: {routes: {\nr: {chain: ['x/y@other:p']}}}"; "in a route")]
    #[test_case("auth: {\norder: {x: ['x:a', 'other:p']}}"; "in an order")]
    fn a_profile_of_another_provider_is_refused(text: &str) {
        let faults = load_text("x.json5", &format!("{{{text}}}")).unwrap_err().faults;
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(fault.message.contains("other:p does not belong to provider x"), "{fault:?}");
        assert_eq!(fault.line, 2, "{fault:?}");
    }

    // spec: A-9
    #[test]
    fn a_subscription_serves_the_models_of_its_vendor() {
        let text = "{auth: {profiles: {'openai-codex:me': {provider: 'openai', mode: 'oauth'}}, order: {openai: ['openai-codex:me']}},
            agents: {defaults: {model: 'openai/gpt-5@openai-codex:me'}}}";
        load_text("x", text).unwrap();
    }

    // spec: H-8
    #[test_case("agents: {defaults: {\nimageModel: {}}}"; "of the defaults")]
    #[test_case("agents: {list: [{id: 'a',\nimageModel: {fallbacks: []}}]}"; "of an agent")]
    fn an_image_model_that_names_none_is_refused(text: &str) {
        let faults = load_text("x.json5", &format!("{{{text}}}")).unwrap_err().faults;
        let [fault] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(fault.message.contains("names no model") && fault.hint.contains("primary"), "{fault:?}");
        assert_eq!(fault.line, 2);
    }
}

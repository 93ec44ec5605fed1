//! Values that may be written in more than one way.

use failover_types::SecretSource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// A list of fallbacks, where *absent*, `null` and empty are three different things (`docs/spec.md`, H-12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: each form has a meaning of its own")]
pub enum Fallbacks {
    /// Nothing was written: the defaults apply.
    #[default]
    Absent,
    /// `null` was written: the defaults apply, on purpose.
    Null,
    /// A list was written; an empty one means that there is no fallback at all.
    List(Vec<String>),
}

impl Fallbacks {
    /// Whether nothing was written.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<'de> Deserialize<'de> for Fallbacks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<Vec<String>>::deserialize(deserializer)?.map_or(Self::Null, Self::List))
    }
}

impl Serialize for Fallbacks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent | Self::Null => serializer.serialize_none(),
            Self::List(list) => list.serialize(serializer),
        }
    }
}

impl JsonSchema for Fallbacks {
    fn schema_name() -> Cow<'static, str> {
        "Fallbacks".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Models to try next, `provider/model` or an alias. Absent or null: the defaults apply. Empty: no fallback at all.",
            "type": ["array", "null"],
            "items": { "type": "string" }
        })
    }
}

/// A model with its fallbacks, or a plain model name: `"openai/gpt-5"` or `{ primary, fallbacks }`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelChoice {
    /// `provider/model`, or an alias.
    pub primary: Option<String>,
    /// What to try next.
    pub fallbacks: Fallbacks,
    /// It was written as a plain string: such a choice has no chain of its own.
    pub plain: bool,
}

impl<'de> Deserialize<'de> for ModelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Full {
            primary: Option<String>,
            #[serde(default)]
            fallbacks: Fallbacks,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ModelChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"provider/model\" or { primary, fallbacks }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ModelChoice, E> {
                Ok(ModelChoice { primary: Some(text.to_owned()), fallbacks: Fallbacks::Absent, plain: true })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelChoice, A::Error> {
                let full = Full::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ModelChoice { primary: full.primary, fallbacks: full.fallbacks, plain: false })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Serialize for ModelChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let (true, Some(primary)) = (self.plain, &self.primary) {
            return serializer.serialize_str(primary);
        }
        let mut map = serializer.serialize_map(None)?;
        if let Some(primary) = &self.primary {
            map.serialize_entry("primary", primary)?;
        }
        if !self.fallbacks.is_absent() {
            map.serialize_entry("fallbacks", &self.fallbacks)?;
        }
        map.end()
    }
}

impl JsonSchema for ModelChoice {
    fn schema_name() -> Cow<'static, str> {
        "ModelChoice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fallbacks = generator.subschema_for::<Fallbacks>();
        json_schema!({
            "description": "A model name, or a model with its fallbacks.",
            "anyOf": [
                { "type": "string", "description": "`provider/model`, or an alias. A plain name has no chain of its own." },
                {
                    "type": "object",
                    "properties": {
                        "primary": { "type": "string", "description": "`provider/model`, or an alias." },
                        "fallbacks": fallbacks
                    },
                    "additionalProperties": false
                }
            ]
        })
    }
}

/// Where a key is read from. Config holds references only; a literal key in it is an error.
///
/// Written `"${NAME}"`, or `{ source: "env", id: "NAME" }`, `{ source: "file", path: "…" }`,
/// `{ source: "command", argv: ["…"] }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySource(SecretSource);

impl KeySource {
    /// The reference; never [`SecretSource::Literal`].
    pub fn source(&self) -> &SecretSource {
        &self.0
    }
}

/// What a literal key in config is told.
pub(crate) const LITERAL_KEY: &str = "a secret does not belong in the config file";

impl<'de> Deserialize<'de> for KeySource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Reference {
            source: String,
            id: Option<String>,
            path: Option<PathBuf>,
            argv: Option<Vec<String>>,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = KeySource;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"${NAME}\" or { source, … }")
            }

            /// The text itself never enters the error: it may be a key.
            fn visit_str<E: Error>(self, text: &str) -> Result<KeySource, E> {
                let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                let valid = |name: &&str| {
                    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                };
                match name.filter(valid) {
                    Some(name) => Ok(KeySource(SecretSource::Env(name.to_owned()))),
                    None => Err(E::custom(LITERAL_KEY)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<KeySource, A::Error> {
                Err(A::Error::custom(
                    "expected one key reference, not a list; several keys are several entries of auth.profiles",
                ))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<KeySource, A::Error> {
                let reference = Reference::deserialize(MapAccessDeserializer::new(map))?;
                let source = match (reference.source.as_str(), reference.id, reference.path, reference.argv) {
                    ("env", Some(id), None, None) => SecretSource::Env(id),
                    ("file", None, Some(path), None) => SecretSource::File(path),
                    ("command", None, None, Some(argv)) if !argv.is_empty() => SecretSource::Command(argv),
                    ("env", ..) => {
                        return Err(A::Error::custom(
                            "source \"env\" takes `id`, the variable's name, and nothing else",
                        ));
                    }
                    ("file", ..) => {
                        return Err(A::Error::custom("source \"file\" takes `path` and nothing else"));
                    }
                    ("command", ..) => {
                        return Err(A::Error::custom(
                            "source \"command\" takes `argv`, program and arguments, and nothing else",
                        ));
                    }
                    _ => return Err(A::Error::custom("source is one of env, file, command")),
                };
                Ok(KeySource(source))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Serialize for KeySource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            SecretSource::Env(name) => serializer.serialize_str(&format!("${{{name}}}")),
            SecretSource::File(path) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("source", "file")?;
                map.serialize_entry("path", path)?;
                map.end()
            }
            SecretSource::Command(argv) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("source", "command")?;
                map.serialize_entry("argv", argv)?;
                map.end()
            }
            SecretSource::Literal(_) | _ => Err(serde::ser::Error::custom(LITERAL_KEY)),
        }
    }
}

impl JsonSchema for KeySource {
    fn schema_name() -> Cow<'static, str> {
        "KeySource".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Where the key is read from at each use. A literal key is refused: config is not a secret store.",
            "anyOf": [
                { "type": "string", "pattern": "^\\$\\{[A-Za-z0-9_]+\\}$" },
                {
                    "type": "object",
                    "properties": {
                        "source": { "enum": ["env", "file", "command"] },
                        "id": { "type": "string", "description": "The variable's name." },
                        "path": { "type": "string", "description": "A file readable by its owner only." },
                        "argv": { "type": "array", "items": { "type": "string" }, "description": "Program and arguments; no shell." }
                    },
                    "required": ["source"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

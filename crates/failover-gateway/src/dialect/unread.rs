//! What a client says in places that the neutral request has no words for: fields of messages, of their parts, of tools.
//! Fields of the top level are kept as parameters, and told by who leaves them out; these are looked for only where a
//! request was written anew, and told by their paths.

use super::ClientDialect;
use Shape::{Any, Kinds, List, Object, Open};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// As many paths are told.
const MOST: usize = 32;

/// Fields by name.
type Fields = &'static [(&'static str, Shape)];

/// What is read at a place.
enum Shape {
    /// Whatever is there: it is read or kept whole.
    Any,
    /// Such values.
    List(&'static Self),
    /// These fields.
    Object(Fields),
    /// These fields; others are kept.
    Open(Fields),
    /// These fields, where a field (`type`) says one of some kinds, or nothing. Other kinds are kept whole.
    Kinds(&'static str, &'static [&'static str], Fields),
}

impl Shape {
    fn fields(&self) -> Fields {
        match self {
            Any | List(_) => &[],
            Object(fields) | Open(fields) | Kinds(_, _, fields) => fields,
        }
    }
}

const AUDIO: Shape = Object(&[("data", Any), ("format", Any)]);

static CHAT: Shape = Open(&[
    (
        "messages",
        List(&Kinds(
            "role",
            &["tool", "function"],
            &[
                ("role", Any),
                ("tool_call_id", Any),
                ("name", Any),
                ("content", List(&CHAT_PART)),
                ("function_call", Object(&[("name", Any), ("arguments", Any)])),
                (
                    "tool_calls",
                    List(&Kinds(
                        "type",
                        &["function"],
                        &[
                            ("type", Any),
                            ("id", Any),
                            ("index", Any),
                            ("function", Object(&[("name", Any), ("arguments", Any)])),
                        ],
                    )),
                ),
            ],
        )),
    ),
    (
        "tools",
        List(&Kinds(
            "type",
            &["function"],
            &[
                ("type", Any),
                (
                    "function",
                    Object(&[("name", Any), ("description", Any), ("parameters", Any), ("strict", Any)]),
                ),
            ],
        )),
    ),
    (
        "response_format",
        Kinds(
            "type",
            &["text", "json_object", "json_schema"],
            &[("type", Any), ("json_schema", Object(&[("name", Any), ("schema", Any), ("strict", Any)]))],
        ),
    ),
]);

static CHAT_PART: Shape = Kinds(
    "type",
    &["text", "refusal", "image_url", "file", "input_audio", "thinking"],
    &[
        ("type", Any),
        ("text", Any),
        ("refusal", Any),
        ("image_url", Object(&[("url", Any), ("detail", Any)])),
        ("file", Object(&[("filename", Any), ("file_data", Any), ("file_id", Any)])),
        ("input_audio", AUDIO),
        ("thinking", Any),
    ],
);

static MESSAGES: Shape = Open(&[
    ("system", List(&BLOCK)),
    ("messages", List(&Object(&[("role", Any), ("content", List(&BLOCK))]))),
    (
        "tools",
        List(&Kinds(
            "type",
            &["custom"],
            &[("type", Any), ("name", Any), ("description", Any), ("input_schema", Any), ("strict", Any)],
        )),
    ),
    ("tool_choice", Object(&[("type", Any), ("name", Any)])),
]);

const BLOCKS: &[&str] = &["text", "image", "document", "tool_use", "tool_result", "thinking"];

static BLOCK: Shape = Kinds(
    "type",
    BLOCKS,
    &[
        ("type", Any),
        ("text", Any),
        ("source", SOURCE),
        ("title", Any),
        ("id", Any),
        ("name", Any),
        ("input", Any),
        ("tool_use_id", Any),
        ("content", List(&INNER)),
        ("is_error", Any),
        ("thinking", Any),
        ("signature", Any),
    ],
);

/// A block in the result of a tool.
static INNER: Shape =
    Kinds("type", BLOCKS, &[("type", Any), ("text", Any), ("source", SOURCE), ("title", Any)]);

const SOURCE: Shape = Object(&[
    ("type", Any),
    ("media_type", Any),
    ("data", Any),
    ("url", Any),
    ("file_id", Any),
    ("content", Any),
]);

static RESPONSES: Shape = Open(&[
    (
        "input",
        List(&Kinds(
            "type",
            &["message", "function_call", "function_call_output"],
            &[
                ("type", Any),
                ("role", Any),
                ("content", List(&RESPONSES_PART)),
                // What a provider calls an item, and that it is complete, says nothing to another one.
                ("id", Any),
                ("status", Any),
                ("call_id", Any),
                ("name", Any),
                ("arguments", Any),
                ("output", List(&RESPONSES_PART)),
            ],
        )),
    ),
    (
        "tools",
        List(&Kinds(
            "type",
            &["function"],
            &[("type", Any), ("name", Any), ("description", Any), ("parameters", Any), ("strict", Any)],
        )),
    ),
]);

static RESPONSES_PART: Shape = Kinds(
    "type",
    &["input_text", "output_text", "text", "refusal", "input_image", "input_file", "input_audio"],
    &[
        ("type", Any),
        ("text", Any),
        ("refusal", Any),
        ("image_url", Any),
        ("detail", Any),
        ("file_id", Any),
        ("filename", Any),
        ("file_data", Any),
        ("file_url", Any),
        ("input_audio", AUDIO),
    ],
);

/// The paths of what a body says and nobody reads: `messages[].content[].cache_control`. A body that cannot be read says
/// nothing.
pub fn unread(dialect: ClientDialect, body: &[u8]) -> Vec<String> {
    let shape = match dialect {
        ClientDialect::Chat => &CHAT,
        ClientDialect::Messages => &MESSAGES,
        ClientDialect::Responses => &RESPONSES,
    };
    let mut found = Vec::new();
    if let Ok(text) = std::str::from_utf8(body) {
        let walk = Walk { shape, path: &mut String::new(), found: &mut found };
        // What was found before a fault is right all the same.
        let _ = walk.deserialize(&mut serde_json::Deserializer::from_str(text));
    }
    found
}

/// Walks along a shape.
struct Walk<'a> {
    shape: &'static Shape,
    path: &'a mut String,
    found: &'a mut Vec<String>,
}

impl Walk<'_> {
    /// Goes one step on, and comes back.
    fn at<T>(&mut self, step: &str, shape: &'static Shape, then: impl FnOnce(Walk<'_>) -> T) -> T {
        let before = self.path.len();
        if before > 0 && step != "[]" {
            self.path.push('.');
        }
        self.path.push_str(step);
        let done = then(Walk { shape, path: self.path, found: self.found });
        self.path.truncate(before);
        done
    }

    fn tell(&mut self, field: &str) {
        let path = format!("{}.{field}", self.path);
        if self.found.len() < MOST && !self.found.contains(&path) {
            self.found.push(path);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if matches!(self.shape, Any) {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let inner = if let List(inner) = self.shape { inner } else { &Any };
        while self.at("[]", inner, |walk| items.next_element_seed(walk))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let known = self.shape.fields();
        let mut told = !matches!(self.shape, Any | List(_) | Open(_));
        let mut unknown = Vec::new();
        while let Some(Name(name)) = fields.next_key()? {
            match (self.shape, known.iter().find(|(known, _)| *known == name)) {
                (Kinds(key, kinds, _), Some(_)) if *key == name => {
                    let kind = fields.next_value::<&RawValue>()?.get().trim_matches('"');
                    told = kinds.contains(&kind);
                }
                (_, Some((_, shape))) => self.at(&name, shape, |walk| fields.next_value_seed(walk))?,
                (_, None) => {
                    let value = fields.next_value::<&RawValue>()?.get();
                    if !matches!(value, "null" | "[]" | "{}" | "\"\"") {
                        unknown.push(name);
                    }
                }
            }
        }
        for field in unknown.iter().filter(|_| told) {
            self.tell(field);
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

/// A field's name, borrowed where it can be.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: P-5
    #[test_case(ClientDialect::Messages, r#"{"x":1,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}],"messages":[
        {"role":"user","content":[{"type":"text","text":"a","citations":null},{"cache_control":{},"type":"image","source":{"type":"url","url":"u"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]},
        {"role":"assistant","content":[{"type":"server_tool_use","caller":{"type":"direct"}}],"name":"x"}],
        "tools":[{"name":"a","input_schema":{"x":1},"cache_control":{"type":"ephemeral"}},{"type":"web_search","max_uses":1}],
        "tool_choice":{"type":"auto","disable_parallel_tool_use":true}}"#,
        &["system[].cache_control", "messages[].content[].content[].cache_control", "messages[].name",
          "tools[].cache_control", "tool_choice.disable_parallel_tool_use"]; "messages")]
    #[test_case(ClientDialect::Chat, r#"{"seed":1,"messages":[{"role":"user","content":"a","name":"ada"},
        {"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"u","detail":"low","max":1}}]},
        {"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{}}}]},
        {"role":"tool","tool_call_id":"1","content":"x","cache_control":{"type":"ephemeral"}}],
        "tools":[{"type":"function","function":{"name":"f","strict":true,"examples":[1]}}],
        "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{},"description":"d"}}}"#,
        &["messages[].content[].cache_control", "messages[].content[].image_url.max",
          "messages[].tool_calls[].extra_content", "messages[].cache_control", "tools[].function.examples",
          "response_format.json_schema.description"]; "chat")]
    #[test_case(ClientDialect::Responses, r#"{"store":true,"input":[{"role":"user","content":[{"type":"input_text","text":"a","cache":1}]},
        {"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[1]}]},
        {"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}],"tools":[{"type":"function","name":"f","parameters":{},"defer":true}]}"#,
        &["input[].content[].cache", "input[].content[].logprobs", "tools[].defer"]; "responses")]
    #[test_case(ClientDialect::Chat, r#"{"messages":"hi","tools":{"a":1}}"#, &[]; "other forms")]
    #[test_case(ClientDialect::Chat, r#"{"messages":[{"#, &[]; "cut")]
    fn what_nobody_reads_is_told_by_its_path(dialect: ClientDialect, body: &str, expected: &[&str]) {
        assert_eq!(unread(dialect, body.as_bytes()), expected);
    }
}

//! The JSON Schema of the config, generated from the types, and what it says about unknown keys.

use crate::document::Document;
use crate::{Config, Diagnostic};
use serde_json::Value;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schemars::schema_for!(Config).to_value();
    close(&mut schema);
    schema
});

/// The schema of the config file, for editors.
pub fn json_schema() -> &'static Value {
    &SCHEMA
}

/// Objects with named keys have no others: editors then mark a misspelled one.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(close);
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every key of the document that the schema does not know, with the nearest one that it does.
pub(crate) fn unknown_keys(document: &Document) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    walk(document, document.root(), &SCHEMA, "", &mut faults);
    faults
}

fn resolve(schema: &Value) -> &Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#'));
    target.and_then(|pointer| SCHEMA.pointer(pointer)).unwrap_or(schema)
}

/// The form among the alternatives of `schema`, nested ones too, that has the keyword `wanted`.
fn form_with<'a>(schema: &'a Value, wanted: &str) -> Option<&'a Value> {
    let forms = schema.get("anyOf").and_then(Value::as_array)?;
    forms
        .iter()
        .map(resolve)
        .find_map(|form| form.get(wanted).map_or_else(|| form_with(form, wanted), |_| Some(form)))
}

fn walk(document: &Document, value: &Value, schema: &Value, path: &str, faults: &mut Vec<Diagnostic>) {
    let schema = resolve(schema);
    if schema.get("anyOf").is_some() {
        let wanted = if value.is_object() { "properties" } else { "items" };
        if let Some(form) = form_with(schema, wanted) {
            walk(document, value, form, path, faults);
        }
        return;
    }
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let others = schema.get("additionalProperties").filter(|others| others.is_object());
            for (key, value) in map {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match (properties.and_then(|known| known.get(key)), others, properties) {
                    (Some(known), ..) | (None, Some(known), _) => {
                        walk(document, value, known, &inner, faults);
                    }
                    (None, None, Some(known)) => {
                        let nearest = nearest(key, known.keys().map(String::as_str));
                        let all = || known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                        let hint = nearest.map_or_else(
                            || format!("known here are: {}", all()),
                            |name| format!("did you mean `{name}`?"),
                        );
                        faults.push(document.fault(&inner, true, format!("unknown key `{key}`"), hint));
                    }
                    (None, None, None) => {}
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = schema.get("items") else { return };
            for (at, value) in list.iter().enumerate() {
                walk(document, value, items, &format!("{path}[{at}]"), faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The known name that is fewest edits away, if that is near enough to be meant.
fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (distance(&wrong.to_ascii_lowercase(), &name.to_ascii_lowercase()), name))
        .filter(|(edits, name)| *edits <= 2.max(name.len() / 3))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = *cell;
            left = replaced.min(left + 1).min(diagonal + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("fallback", ["primary", "fallbacks"].into_iter()), Some("fallbacks"));
        assert_eq!(nearest("zzz", ["primary", "fallbacks"].into_iter()), None);
    }

    // spec: U-3
    #[test]
    fn the_schema_names_every_key_with_a_description() {
        let schema = json_schema();
        assert_eq!(schema["properties"]["auth"]["$ref"], "#/$defs/Auth");
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            for (key, property) in definition["properties"].as_object().into_iter().flatten() {
                assert!(
                    property["description"].is_string() || property.get("$ref").is_some(),
                    "{name}.{key}"
                );
            }
        }
    }
}

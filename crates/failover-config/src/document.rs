//! Syntax and positions: a config text as a tree that knows where everything stands.

use crate::{Diagnostic, Diagnostics};
use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;

/// Largest config text read, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Deepest nesting read. The deepest key that means anything is at 8.
const MAX_DEPTH: usize = 64;

/// Where a key stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The bytes of the value.
    pub value: Range<usize>,
    /// The bytes of the key; the value's own for array elements and the root.
    pub key: Range<usize>,
}

/// A parsed config text: its values, and where each of them stands.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    text: String,
    root: Value,
    positions: BTreeMap<String, Position>,
}

impl Document {
    /// Parses JSON5.
    ///
    /// # Errors
    ///
    /// Every fault of syntax and every repeated key, with its position.
    pub fn parse(file: &str, text: &str) -> Result<Self, Diagnostics> {
        let mut reader = Reader { file, text, positions: BTreeMap::new(), faults: Vec::new() };
        let root = reader.read();
        let Reader { positions, faults, .. } = reader;
        match root {
            Some(root) if faults.is_empty() => {
                Ok(Self { file: file.to_owned(), text: text.to_owned(), root, positions })
            }
            _ => Err(Diagnostics::new(faults, text)),
        }
    }

    /// The values.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// The file's name, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where the value at `path` stands; paths look like `agents.list[0].model`.
    pub fn position(&self, path: &str) -> Option<&Position> {
        self.positions.get(path)
    }

    pub(crate) fn diagnostics(&self, faults: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics::new(faults, &self.text)
    }

    /// A fault at the value of `path`, or at the nearest parent that stands in the text.
    pub(crate) fn fault(
        &self,
        path: &str,
        at_key: bool,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Diagnostic {
        let mut place = path;
        let position = loop {
            match (self.positions.get(place), place.rfind(['.', '['])) {
                (Some(position), _) => break Some(position),
                (None, Some(cut)) => place = place.get(..cut).unwrap_or_default(),
                (None, None) if place.is_empty() => break None,
                (None, None) => place = "",
            }
        };
        let span = position.map_or(0..0, |p| if at_key { p.key.clone() } else { p.value.clone() });
        let (line, column) = line_and_column(&self.text, span.start);
        Diagnostic {
            file: self.file.clone(),
            line,
            column,
            path: path.to_owned(),
            message: message.into(),
            hint: hint.into(),
            span,
        }
    }
}

/// Line and column, both from 1, of a byte position.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    (line, before.get(line_start..).map_or(1, |head| head.chars().count() + 1))
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    positions: BTreeMap<String, Position>,
    faults: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn fault(&mut self, path: &str, span: Range<usize>, message: impl Into<String>, hint: &str) {
        let (line, column) = line_and_column(self.text, span.start);
        self.faults.push(Diagnostic {
            file: self.file.to_owned(),
            line,
            column,
            path: path.to_owned(),
            message: message.into(),
            hint: hint.to_owned(),
            span,
        });
    }

    fn read(&mut self) -> Option<Value> {
        if self.text.len() > MAX_BYTES {
            self.fault(
                "",
                0..0,
                format!("the config is larger than {MAX_BYTES} bytes"),
                "leave out what it does not need",
            );
            return None;
        }
        if let Some(at) = too_deep(self.text) {
            self.fault(
                "",
                at..at + 1,
                format!("nested deeper than {MAX_DEPTH} levels"),
                "no key stands so deep; look for a bracket that is not closed",
            );
            return None;
        }
        let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
        let parsed = match parse_to_ast(self.text, &CollectOptions::default(), &options) {
            Ok(parsed) => parsed.value,
            Err(error) => {
                let range = error.range();
                self.fault(
                    "",
                    range.start..range.end,
                    format!("not JSON5: {}", error.kind()),
                    "look here, and at the line before, for a missing or a spare comma, quote or bracket",
                );
                return None;
            }
        };
        let Some(root) = parsed else {
            self.fault("", 0..0, "the config is empty", "an empty object is written {}");
            return None;
        };
        let range = root.range();
        Some(self.value("", &root, range.start..range.end))
    }

    fn value(&mut self, path: &str, value: &ast::Value<'_>, key: Range<usize>) -> Value {
        let range = value.range();
        let (line, column) = line_and_column(self.text, key.start);
        let position = Position { line, column, value: range.start..range.end, key };
        self.positions.insert(path.to_owned(), position);
        match value {
            ast::Value::StringLit(text) => Value::String(text.value.to_string()),
            ast::Value::NumberLit(number) => self.number(path, number),
            ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::Array(array) => {
                let elements = array.elements.iter().enumerate().map(|(at, element)| {
                    let range = element.range();
                    self.value(&format!("{path}[{at}]"), element, range.start..range.end)
                });
                Value::Array(elements.collect())
            }
            ast::Value::Object(object) => {
                let mut map = Map::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    let inner = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                    let key = property.name.range();
                    if map.contains_key(name) {
                        let message = format!("the key `{name}` stands here a second time");
                        self.fault(&inner, key.start..key.end, message, "keep one of the two");
                        continue;
                    }
                    let value = self.value(&inner, &property.value, key.start..key.end);
                    map.insert(name.to_owned(), value);
                }
                Value::Object(map)
            }
        }
    }

    fn number(&mut self, path: &str, number: &ast::NumberLit<'_>) -> Value {
        let text = number.value.trim_start_matches('+');
        let hex = |digits: &str| u64::from_str_radix(digits, 16).ok().map(Value::from);
        let read = match text.get(..2) {
            Some("0x" | "0X") => text.get(2..).and_then(hex),
            _ => text.parse::<u64>().ok().map(Value::from).or_else(|| {
                let float = text.parse::<f64>().ok()?;
                serde_json::Number::from_f64(float).map(Value::Number)
            }),
        };
        read.unwrap_or_else(|| {
            let range = number.range();
            self.fault(
                path,
                range.start..range.end,
                format!("{text} is not a finite number"),
                "write a number in digits",
            );
            Value::Null
        })
    }
}

/// Where nesting first exceeds the limit. Brackets in strings and comments are counted too: they may only
/// make the answer too strict for texts that no person writes.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_case::test_case;

    // spec: U-3
    #[test]
    fn json5_is_read_with_positions() {
        let text = "// comment\n{\n  auth: {\n    order: { 'openai': ['a:b', \"c:d\",], },\n  },\n  n: [+1, .5, 0x1F],\n}";
        let document = Document::parse("x.json5", text).unwrap();
        assert_eq!(document.root()["auth"]["order"]["openai"][1], "c:d");
        assert_eq!(document.root()["n"], serde_json::json!([1, 0.5, 31]));
        let position = document.position("auth.order.openai[1]").unwrap();
        assert_eq!((position.line, position.column), (4, 32));
    }

    #[test_case("", 1, 1, "empty")]
    #[test_case("{a: 1 b: 2}", 1, 6, "not JSON5")]
    #[test_case("{\n  a: 1,\n  a: 2\n}", 3, 3, "second time")]
    #[test_case("{a: Infinity}", 1, 5, "finite")]
    #[test_case("{\n a: [1,\n", 2, 5, "not JSON5")]
    fn faults_have_places(text: &str, line: usize, column: usize, message: &str) {
        let faults = Document::parse("x.json5", text).unwrap_err().faults;
        assert!(faults[0].message.contains(message), "{faults:?}");
        assert_eq!((faults[0].line, faults[0].column), (line, column), "{faults:?}");
    }

    #[test]
    fn absurd_nesting_and_size_are_refused() {
        assert!(Document::parse("x", &"[".repeat(100_000)).is_err());
        assert!(Document::parse("x", &" ".repeat(MAX_BYTES + 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_gives_a_document_or_faults(text in "[{}\\[\\]:,'\"a-z0-9\\\\/*\n .+xX-]{0,60}") {
            match Document::parse("x", &text) {
                Ok(_) => {}
                Err(faults) => prop_assert!(!faults.faults.is_empty()),
            }
        }
    }
}

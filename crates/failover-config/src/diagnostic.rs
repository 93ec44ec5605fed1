//! What is wrong with a config file, where, and what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// One fault of a config file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The file, as the caller named it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The key's path, `auth.order.openai`; empty for faults of syntax.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// The bytes at fault.
    pub span: Range<usize>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, hint, .. } = self;
        write!(f, "{file}:{line}:{column}: {message} ({hint})")
    }
}

/// Every fault of a config file, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// The faults; never empty.
    pub faults: Vec<Diagnostic>,
    source: String,
}

impl Diagnostics {
    pub(crate) fn new(mut faults: Vec<Diagnostic>, source: &str) -> Self {
        faults.sort_by_key(|fault| (fault.span.start, fault.span.end));
        Self { faults, source: mask(source) }
    }

    /// The faults with the lines they stand in, for people. Colors only if asked for.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for fault in &self.faults {
            let snippet = Snippet::source(self.source.as_str())
                .path(fault.file.as_str())
                .annotation(AnnotationKind::Primary.span(fault.span.clone()));
            let group: Group<'_> = Level::ERROR
                .primary_title(fault.message.as_str())
                .element(snippet)
                .element(Level::HELP.message(fault.hint.as_str()));
            text.push_str(&renderer.render(&[group]));
            text.push('\n');
        }
        text
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            fmt::Display::fmt(fault, f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Names of keys whose values are hidden when their line is shown.
const SENSITIVE: &[&str] = &[
    "key",
    "token",
    "secret",
    "password",
    "access",
    "refresh",
    "authorization",
    "cookie",
    "credential",
    "sha256",
];

/// The source with everything that may be a secret overwritten, byte for byte, so that positions stay true.
///
/// It works on the bare text: a file whose syntax is broken must not show its keys either. Hidden are strings
/// behind a key with a sensitive name, and every long word that mixes letters and digits.
fn mask(source: &str) -> String {
    let mut shown = String::with_capacity(source.len());
    let mut name = String::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let word_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if matches!(first, '"' | '\'') {
            let inner = rest.get(1..).unwrap_or_default();
            let end = inner.find([first, '\n']).unwrap_or(inner.len());
            let (text, after) = inner.split_at(end);
            let is_value = shown.trim_end().ends_with([':', '[', ','])
                && !after.trim_start_matches(first).trim_start().starts_with(':');
            let reference = text.starts_with("${") && text.ends_with('}');
            let sensitive = is_value && !reference && SENSITIVE.iter().any(|word| name.contains(word));
            shown.push(first);
            shown.push_str(&if sensitive || long_word(text) {
                "*".repeat(text.len())
            } else {
                text.to_owned()
            });
            if !is_value {
                name = text.to_ascii_lowercase();
            }
            rest = after;
            if let Some(closed) = rest.strip_prefix(first) {
                shown.push(first);
                rest = closed;
            }
        } else if word_char(first) {
            let end = rest.find(|c: char| !word_char(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            shown.push_str(&if long_word(word) { "*".repeat(word.len()) } else { word.to_owned() });
            name = word.to_ascii_lowercase();
            rest = after;
        } else {
            shown.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    shown
}

/// Keys are long, and mix letters with digits; model names and paths are shorter or have slashes.
fn long_word(text: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).any(|word| {
        word.len() >= 20
            && word.bytes().any(|b| b.is_ascii_digit())
            && word.bytes().any(|b| b.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_and_secrets_go() {
        let shown = mask("{apiKey: 'abc', model: 'openai/gpt-5', key: \"${NAME}\", token: ['x y']}");
        assert_eq!(shown, "{apiKey: '***', model: 'openai/gpt-5', key: \"${NAME}\", token: ['***']}");
    }

    proptest! {
        #[test]
        fn positions_stay_true(text in "[a-zé'\":{}\\n 0-9]{0,80}") {
            prop_assert_eq!(mask(&text).len(), text.len());
        }
    }
}

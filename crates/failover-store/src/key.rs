//! Store keys: `agent/<id>/…`, segments joined by slashes.

use std::fmt;
use std::sync::Arc;

/// Longest key accepted, in bytes.
const MAX_KEY_BYTES: usize = 1024;

/// A key. Segments are escaped, so that no id can reach into another's subtree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// All keys below a point of the tree.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Prefix(Arc<str>);

/// Why segments do not make a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No segment, or an empty one.
    #[error("a store key has an empty segment")]
    Empty,
    /// Longer than 1024 bytes.
    #[error("a store key is longer than {MAX_KEY_BYTES} bytes")]
    TooLong,
}

fn join(segments: &[&str]) -> Result<String, KeyError> {
    if segments.is_empty() || segments.iter().any(|segment| segment.is_empty()) {
        return Err(KeyError::Empty);
    }
    let mut text = String::new();
    for segment in segments {
        if !text.is_empty() {
            text.push('/');
        }
        for c in segment.chars() {
            match c {
                '/' => text.push_str("%2F"),
                '%' => text.push_str("%25"),
                c if c.is_control() => text.push('\u{fffd}'),
                c => text.push(c),
            }
        }
    }
    if text.len() > MAX_KEY_BYTES { Err(KeyError::TooLong) } else { Ok(text) }
}

impl Key {
    /// A key from its segments; slashes inside a segment are escaped.
    ///
    /// # Errors
    ///
    /// [`KeyError`] where a segment is empty or the whole is too long.
    pub fn new(segments: &[&str]) -> Result<Self, KeyError> {
        join(segments).map(|text| Self(text.into()))
    }

    /// A key as a store returned it, escaped already.
    ///
    /// # Errors
    ///
    /// [`KeyError`] where the text could not have come from [`Key::new`].
    pub fn from_stored(text: &str) -> Result<Self, KeyError> {
        if text.len() > MAX_KEY_BYTES {
            return Err(KeyError::TooLong);
        }
        if text.split('/').any(str::is_empty) {
            return Err(KeyError::Empty);
        }
        Ok(Self(text.into()))
    }

    /// The stored form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments, unescaped.
    pub fn segments(&self) -> impl Iterator<Item = String> + '_ {
        self.0.split('/').map(|segment| segment.replace("%2F", "/").replace("%25", "%"))
    }
}

impl Prefix {
    /// All keys whose first segments are these.
    ///
    /// # Errors
    ///
    /// [`KeyError`] where a segment is empty or the whole is too long.
    pub fn new(segments: &[&str]) -> Result<Self, KeyError> {
        join(segments).map(|text| Self(format!("{text}/").into()))
    }

    /// Every key.
    pub fn everything() -> Self {
        Self("".into())
    }

    /// The stored form, with its closing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `key` lies below.
    pub fn covers(&self, key: &Key) -> bool {
        key.as_str().starts_with(&*self.0)
    }
}

impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_reach_into_anothers_subtree() {
        let mine = Prefix::new(&["agent", "a"]).unwrap();
        assert!(!mine.covers(&Key::new(&["agent", "ab", "x"]).unwrap()));
        assert!(!mine.covers(&Key::new(&["agent", "a/../b", "x"]).unwrap()));
        let odd = Key::new(&["session", "50%/2F"]).unwrap();
        assert_eq!(odd.segments().collect::<Vec<_>>(), ["session", "50%/2F"]);
    }

    #[test]
    fn bad_keys_are_refused() {
        assert_eq!(Key::new(&[]).unwrap_err(), KeyError::Empty);
        assert_eq!(Key::new(&["a", ""]).unwrap_err(), KeyError::Empty);
        assert_eq!(Key::new(&[&"x".repeat(1025)]).unwrap_err(), KeyError::TooLong);
    }
}

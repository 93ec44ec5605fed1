//! Store keys: `agent/<id>/…`, segments joined by slashes.

use std::fmt::{self, Write};
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
    /// Not in the form that [`Key::new`] gives.
    #[error("a store key is not escaped as it should be")]
    Unescaped,
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
            if c == '/' || c == '%' || c.is_control() {
                // Two ids never share a key: whatever is escaped keeps its number.
                let mut utf8 = [0; 4];
                for byte in c.encode_utf8(&mut utf8).bytes() {
                    let _ = write!(text, "%{byte:02X}");
                }
            } else {
                text.push(c);
            }
        }
    }
    if text.len() > MAX_KEY_BYTES { Err(KeyError::TooLong) } else { Ok(text) }
}

/// `None` where a percent sign begins no escape, or the bytes are no text.
fn unescape(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte == b'%' {
            let (digits, tail) = rest.split_first_chunk::<2>()?;
            rest = tail;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        } else {
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).ok()
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
        if text.contains(char::is_control) || text.split('/').any(|segment| unescape(segment).is_none()) {
            return Err(KeyError::Unescaped);
        }
        Ok(Self(text.into()))
    }

    /// The stored form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments, unescaped.
    pub fn segments(&self) -> impl Iterator<Item = String> + '_ {
        self.0.split('/').map(|segment| unescape(segment).unwrap_or_else(|| segment.to_owned()))
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

    /// A prefix in its stored form, as [`Prefix::as_str`] gives it.
    ///
    /// # Errors
    ///
    /// [`KeyError`] where the text could not have come from [`Prefix::new`] or [`Prefix::everything`].
    pub fn from_stored(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Ok(Self::everything());
        }
        let stem = text.strip_suffix('/').ok_or(KeyError::Empty)?;
        Key::from_stored(stem).map(|_| Self(text.into()))
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
    fn ids_that_differ_by_a_control_character_have_keys_of_their_own() {
        let (one, other) = (Key::new(&["a\u{1}"]).unwrap(), Key::new(&["a\u{2}"]).unwrap());
        assert_ne!(one, other);
        assert_eq!(one.as_str(), "a%01");
        assert_eq!(other.segments().collect::<Vec<_>>(), ["a\u{2}"]);
        assert_eq!(Key::from_stored(one.as_str()), Ok(one));
    }

    #[test]
    fn stored_forms_are_read_back_and_others_refused() {
        assert_eq!(Key::from_stored("a/50%25"), Key::new(&["a", "50%"]));
        assert_eq!(Key::from_stored("a/50%"), Err(KeyError::Unescaped));
        assert_eq!(Key::from_stored("a\u{1}"), Err(KeyError::Unescaped));
        assert_eq!(Prefix::from_stored("a/b/"), Prefix::new(&["a", "b"]));
        assert_eq!(Prefix::from_stored(""), Ok(Prefix::everything()));
        assert_eq!(Prefix::from_stored("a"), Err(KeyError::Empty));
    }

    #[test]
    fn bad_keys_are_refused() {
        assert_eq!(Key::new(&[]).unwrap_err(), KeyError::Empty);
        assert_eq!(Key::new(&["a", ""]).unwrap_err(), KeyError::Empty);
        assert_eq!(Key::new(&[&"x".repeat(1025)]).unwrap_err(), KeyError::TooLong);
    }
}

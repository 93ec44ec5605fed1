//! A secret can be used, but not printed.

use secrecy::{ExposeSecret, SecretString};
use std::fmt;

/// A key or token. It is wiped when dropped, and it has no `Display`, no `Serialize` and a blank `Debug`.
///
/// HTTP clients and TLS buffers keep copies of what they send; this type cannot reach those.
#[derive(Clone)]
pub struct Secret(SecretString);

/// Why a text cannot be a key or token. The text itself is never part of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Nothing but white space.
    #[error("the secret is empty")]
    Empty,
    /// It would break out of an HTTP header.
    #[error(
        "the secret has a line break or another control character at position {at}; was it pasted with its surroundings?"
    )]
    Control {
        /// Byte position of the first one.
        at: usize,
    },
    /// Smart quotes, no-break spaces and the like: traces of a word processor or a chat.
    #[error(
        "the secret has a character outside ASCII at position {at}; copy it again from the provider's page"
    )]
    NotAscii {
        /// Byte position of the first one.
        at: usize,
    },
    /// White space or quotes inside: more than the key was pasted.
    #[error("the secret has white space or quotes at position {at}; paste the key alone")]
    Quoted {
        /// Byte position of the first one.
        at: usize,
    },
    /// What a log or a dump shows in the place of a secret.
    #[error("this is a placeholder for a redacted secret, not the secret itself")]
    Placeholder,
}

/// What tools print instead of a secret, in lower case.
const PLACEHOLDERS: &[&str] = &[
    "[redacted]",
    "<redacted>",
    "redacted",
    "********",
    "your_api_key",
    "your-api-key",
    "sk-...",
    "undefined",
    "null",
];

impl Secret {
    /// Takes a text as it is: for values that were checked when they were stored.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// Reads a key or token from outside, and refuses what could never be one.
    ///
    /// # Errors
    ///
    /// [`SecretError`] says what is wrong, without quoting the text.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SecretError::Empty);
        }
        let folded = text.to_ascii_lowercase();
        if PLACEHOLDERS.contains(&folded.as_str())
            || folded.contains("[redacted")
            || text.chars().all(|c| matches!(c, '*' | '•' | '…' | '.'))
        {
            return Err(SecretError::Placeholder);
        }
        for (at, c) in text.char_indices() {
            match c {
                _ if c.is_control() => return Err(SecretError::Control { at }),
                _ if !c.is_ascii() => return Err(SecretError::NotAscii { at }),
                ' ' | '"' | '\'' | '`' => return Err(SecretError::Quoted { at }),
                _ => {}
            }
        }
        Ok(Self::new(text))
    }

    /// The secret itself, for the one place that sends or stores it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl PartialEq for Secret {
    /// Takes the same time wherever two secrets of one length differ.
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.expose().as_bytes(), other.expose().as_bytes());
        a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (x, y)| differs | (x ^ y)) == 0
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("", &SecretError::Empty)]
    #[test_case(" \n ", &SecretError::Empty)]
    #[test_case("sk-a\nb", &SecretError::Control { at: 4 })]
    #[test_case("\u{201c}sk-a\u{201d}", &SecretError::NotAscii { at: 0 })]
    #[test_case("\"sk-a\"", &SecretError::Quoted { at: 0 })]
    #[test_case("Bearer sk-a", &SecretError::Quoted { at: 6 })]
    #[test_case("[REDACTED]", &SecretError::Placeholder)]
    #[test_case("sk-[REDACTED_KEY]", &SecretError::Placeholder)]
    #[test_case("••••••", &SecretError::Placeholder)]
    fn refuses(text: &str, expected: &SecretError) {
        assert_eq!(Secret::parse(text).unwrap_err(), *expected);
    }

    #[test]
    fn a_pasted_key_loses_its_outer_white_space_only() {
        assert_eq!(Secret::parse(" sk-a_b-c.d \n").unwrap().expose(), "sk-a_b-c.d");
    }

    // spec: A-3
    #[test]
    fn debug_tells_nothing() {
        let secret = Secret::new("sk-hidden-0123456789");
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert!(!format!("{:?}", Secret::parse("sk-hidden\n0123")).contains("hidden"));
    }
}

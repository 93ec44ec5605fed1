//! Ids are validated once, when they are made, and cheap to clone afterwards.

use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest id accepted, in bytes. Ids become store keys, header values and log fields, so they are bounded.
const MAX_ID_BYTES: usize = 256;

/// Why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Nothing but white space.
    #[error("{what} is empty")]
    Empty {
        /// Which kind of id was being read.
        what: &'static str,
    },
    /// Longer than 256 bytes.
    #[error("{what} is longer than {MAX_ID_BYTES} bytes")]
    TooLong {
        /// Which kind of id was being read.
        what: &'static str,
    },
    /// A character that the kind of id does not allow.
    #[error("{what} has a character that is not allowed: {found:?}")]
    Character {
        /// Which kind of id was being read.
        what: &'static str,
        /// The offending character.
        found: char,
    },
    /// A profile id without its `provider:` part.
    #[error("profile id {text:?} is not of the form provider:name")]
    NoProvider {
        /// The text as given.
        text: String,
    },
}

fn check(what: &'static str, text: &str, allowed: impl Fn(char) -> bool) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    if text.len() > MAX_ID_BYTES {
        return Err(IdError::TooLong { what });
    }
    match text.chars().find(|c| !allowed(*c)) {
        Some(found) => Err(IdError::Character { what, found }),
        None => Ok(()),
    }
}

fn provider_char(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.')
}

fn visible(c: char) -> bool {
    c.is_ascii_graphic() || !c.is_control() && !c.is_whitespace()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $normalize:expr, $validate:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Reads and normalizes an id.
            ///
            /// # Errors
            ///
            /// [`IdError`] says which rule the text breaks.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                let text: Cow<'_, str> = $normalize(text.as_ref().trim());
                let validate: fn(&str) -> Result<(), IdError> = $validate;
                validate(&text)?;
                Ok(Self((&*text).into()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// A provider, in lower case: `openai`, `amazon-bedrock`.
    ProviderId, "provider id", |text: &str| text.to_ascii_lowercase().into(), |text| check("provider id", text, provider_char)
);
id!(
    /// A credential of a provider: `openai:default`, or `openai:ada@example.com` where the account is known.
    ProfileId, "profile id", normalize_profile, check_profile
);
id!(
    /// A conversation, named by the caller.
    SessionId, "session id", Cow::Borrowed, |text| check("session id", text, visible)
);
id!(
    /// One run of one request through the chain; unique per run.
    RunId, "run id", Cow::Borrowed, |text| check("run id", text, visible)
);
id!(
    /// An agent: the owner of a credential store and of sessions.
    AgentId, "agent id", Cow::Borrowed, |text| check("agent id", text, |c| visible(c) && c != '/')
);

fn normalize_profile(text: &str) -> Cow<'_, str> {
    match text.split_once(':') {
        Some((provider, name)) => format!("{}:{name}", provider.to_ascii_lowercase()).into(),
        None => text.into(),
    }
}

fn check_profile(text: &str) -> Result<(), IdError> {
    check("profile id", text, visible)?;
    match text.split_once(':') {
        Some((provider, name)) if !name.is_empty() => check("profile id", provider, provider_char),
        _ => Err(IdError::NoProvider { text: text.to_owned() }),
    }
}

impl ProfileId {
    /// The id of an account: `provider:<email>`, or `provider:default` where no e-mail is known.
    ///
    /// # Errors
    ///
    /// [`IdError`] if the e-mail has characters that an id must not have.
    pub fn for_account(provider: &ProviderId, email: Option<&str>) -> Result<Self, IdError> {
        Self::new(format!("{provider}:{}", email.unwrap_or("default")))
    }

    /// The part before the colon.
    pub fn provider(&self) -> &str {
        self.0.split_once(':').map_or(&*self.0, |(provider, _)| provider)
    }

    /// The provider that the id names.
    pub fn provider_id(&self) -> ProviderId {
        // Checked when the profile id was made.
        ProviderId(self.provider().into())
    }

    /// The part after the colon: an account name, or `default`.
    pub fn name(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, name)| name)
    }
}

impl AgentId {
    /// The agent that is meant where none is named.
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl Default for AgentId {
    fn default() -> Self {
        Self::main()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: A-2
    #[test]
    fn a_profile_is_named_after_its_account() {
        let openai = ProviderId::new("OpenAI").unwrap();
        assert_eq!(ProfileId::for_account(&openai, None).unwrap().as_str(), "openai:default");
        let ada = ProfileId::for_account(&openai, Some("ada@example.com")).unwrap();
        let bob = ProfileId::for_account(&openai, Some("bob@example.com")).unwrap();
        assert_eq!((ada.provider(), ada.name()), ("openai", "ada@example.com"));
        assert_ne!(ada, bob);
    }

    #[test]
    fn bad_ids_say_what_is_wrong() {
        assert!(matches!(ProviderId::new("  "), Err(IdError::Empty { .. })));
        assert!(matches!(ProviderId::new("a/b"), Err(IdError::Character { found: '/', .. })));
        assert!(matches!(ProfileId::new("ada"), Err(IdError::NoProvider { .. })));
        assert!(matches!(ProfileId::new("openai:"), Err(IdError::NoProvider { .. })));
        assert!(matches!(SessionId::new("a\nb"), Err(IdError::Character { .. })));
        assert!(matches!(SessionId::new("x".repeat(257)), Err(IdError::TooLong { .. })));
        assert!(AgentId::new("a/b").is_err(), "an agent id is a path segment of a store key");
    }

    #[test]
    fn ids_are_read_through_the_same_checks() {
        assert!(serde_json::from_str::<ProfileId>("\"nope\"").is_err());
        let id: ProfileId = serde_json::from_str("\"OpenAI:Work\"").unwrap();
        assert_eq!(id.as_str(), "openai:Work");
    }
}

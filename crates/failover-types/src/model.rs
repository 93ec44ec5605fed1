//! A model is always a pair: the same model name at two providers is two models.

use crate::{IdError, ProfileId, ProviderId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest model name accepted, in bytes: Bedrock's inference profile ARNs stay below 300.
const MAX_MODEL_BYTES: usize = 512;

/// `provider/model`. The text splits at the *first* slash, so `openrouter/meta/llama` is model `meta/llama`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelRef(Arc<Parts>);

/// Behind one pointer: a reference is handed on far more often than it is made.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parts {
    provider: ProviderId,
    model: Box<str>,
}

/// Why a text is not a model reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelRefError {
    /// No slash, or nothing on one side of it.
    #[error("{text:?} is not of the form provider/model")]
    Shape {
        /// The text as given.
        text: String,
    },
    /// The part before the slash is no provider id.
    #[error("{text:?}: the provider part is no provider id")]
    Provider {
        /// The text as given.
        text: String,
        /// Which rule it breaks.
        #[source]
        source: IdError,
    },
    /// The model part is too long, or has white space or control characters.
    #[error(
        "{text:?}: the model part has white space or control characters, or is longer than {MAX_MODEL_BYTES} bytes"
    )]
    Model {
        /// The text as given, cut.
        text: String,
    },
    /// A pinned profile belongs to another provider.
    #[error("profile {profile} does not belong to provider {provider}")]
    ForeignProfile {
        /// The profile that was pinned.
        profile: ProfileId,
        /// The provider of the model.
        provider: ProviderId,
    },
}

impl ModelRef {
    /// A reference from its two parts.
    ///
    /// # Errors
    ///
    /// [`ModelRefError::Model`] where the model name is empty, too long, or has white space.
    pub fn new(provider: ProviderId, model: &str) -> Result<Self, ModelRefError> {
        let bad = |c: char| c.is_control() || c.is_whitespace();
        if model.is_empty() || model.len() > MAX_MODEL_BYTES || model.contains(bad) {
            return Err(ModelRefError::Model { text: model.chars().take(80).collect() });
        }
        Ok(Self(Arc::new(Parts { provider, model: model.into() })))
    }

    /// Who serves the model.
    pub fn provider(&self) -> &ProviderId {
        &self.0.provider
    }

    /// The provider's own name for the model.
    pub fn model(&self) -> &str {
        &self.0.model
    }
}

impl FromStr for ModelRef {
    type Err = ModelRefError;

    fn from_str(text: &str) -> Result<Self, ModelRefError> {
        let text = text.trim();
        let shape = || ModelRefError::Shape { text: text.chars().take(80).collect() };
        let (provider, model) = text.split_once('/').ok_or_else(shape)?;
        if provider.is_empty() || model.is_empty() {
            return Err(shape());
        }
        let provider = ProviderId::new(provider)
            .map_err(|source| ModelRefError::Provider { text: text.chars().take(80).collect(), source })?;
        Self::new(provider, model)
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_some() {
            return f.pad(&format!("{}/{}", self.provider(), self.model()));
        }
        // Piece by piece: it is written for every answer, and a format string costs three times as much.
        f.write_str(self.provider().as_str())?;
        f.write_str("/")?;
        f.write_str(self.model())
    }
}

impl fmt::Debug for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for ModelRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a person writes to choose a model: `provider/model`, or `provider/model@provider:profile`.
///
/// Model names may contain `@`, dates and e-mail-like parts themselves, so only a part after an `@` that has
/// the form of a profile id (`provider:name`) is read as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ModelSelector {
    /// The chosen model.
    pub model: ModelRef,
    /// The chosen credential, where one was named.
    pub profile: Option<ProfileId>,
}

impl ModelSelector {
    /// A selector from its parts.
    pub fn new(model: ModelRef, profile: Option<ProfileId>) -> Self {
        Self { model, profile }
    }
}

impl FromStr for ModelSelector {
    type Err = ModelRefError;

    fn from_str(text: &str) -> Result<Self, ModelRefError> {
        let text = text.trim();
        for (at, _) in text.match_indices('@') {
            let Some((head, tail)) = text.split_at_checked(at) else { continue };
            let Some(rest) = tail.strip_prefix('@') else { continue };
            // `ProfileId` itself would fold and trim: what follows must be one as it stands.
            let is_profile = rest
                .split_once(':')
                .is_some_and(|(provider, name)| !name.is_empty() && ProviderId::new(provider).is_ok());
            if let (true, Ok(model), Ok(profile)) = (is_profile, head.parse(), ProfileId::new(rest)) {
                return Ok(Self { model, profile: Some(profile) });
            }
        }
        Ok(Self { model: text.parse()?, profile: None })
    }
}

impl fmt::Display for ModelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.profile {
            Some(profile) => write!(f, "{}@{profile}", self.model),
            None => write!(f, "{}", self.model),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_case::test_case;

    // spec: H-6
    #[test_case("OpenAI/gpt-5", "openai", "gpt-5"; "the provider's case is folded")]
    #[test_case("openrouter/meta/llama-3/free", "openrouter", "meta/llama-3/free"; "splits at the first slash")]
    #[test_case(" a/m ", "a", "m"; "outer white space is trimmed")]
    fn reads(text: &str, provider: &str, model: &str) {
        let parsed: ModelRef = text.parse().unwrap();
        assert_eq!((parsed.provider().as_str(), parsed.model()), (provider, model));
    }

    #[test_case(""; "empty")]
    #[test_case("gpt-5"; "no provider")]
    #[test_case("/gpt-5"; "empty provider")]
    #[test_case("openai/"; "empty model")]
    #[test_case("open ai/gpt"; "space in provider")]
    #[test_case("openai/gpt 5"; "space in model")]
    fn refuses(text: &str) {
        assert!(text.parse::<ModelRef>().is_err());
    }

    #[test_case("openrouter/@preset/x", "openrouter/@preset/x", None)]
    #[test_case("a/m@20251001", "a/m@20251001", None)]
    #[test_case("a/m@a:user@example.com", "a/m", Some("a:user@example.com"))]
    #[test_case("vertex/x@001", "vertex/x@001", None)]
    #[test_case("vertex/x@001@vertex:work", "vertex/x@001", Some("vertex:work"))]
    #[test_case("ollama/qwen3:8b", "ollama/qwen3:8b", None)]
    #[test_case("a//@a:a", "a//", Some("a:a"))]
    fn selector(text: &str, model: &str, profile: Option<&str>) {
        let parsed: ModelSelector = text.parse().unwrap();
        assert_eq!(parsed.model.to_string(), model);
        assert_eq!(parsed.profile.as_ref().map(ProfileId::as_str), profile);
        assert_eq!(parsed.to_string(), text, "printing is the inverse of reading");
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(provider in "[a-z][a-z0-9-]{0,8}", model in "[a-zA-Z0-9@/._-]{1,20}", name in proptest::option::of("[a-z0-9@.]{1,12}")) {
            let profile = name.map(|name| ProfileId::new(format!("{provider}:{name}")).unwrap());
            let model = ModelRef::new(ProviderId::new(&provider).unwrap(), &model).unwrap();
            let selector = ModelSelector::new(model, profile);
            prop_assert_eq!(selector.to_string().parse::<ModelSelector>().unwrap(), selector);
        }
    }
}

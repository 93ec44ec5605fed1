//! What the neutral form has no words for, and to whom it may be given.
//!
//! Such values are of two kinds. A *parameter* belongs to a dialect: whoever speaks the dialect is given it, whatever the
//! provider is called. A *proof* (a signature, encrypted reasoning, an item of an answer) belongs to who made it.

use crate::{AttemptScope, Dialect, Json};
use failover_types::{ProfileId, ProviderId};
use serde::{Deserialize, Serialize};

/// Whose answer something is from. Only what is named must match.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// The provider.
    pub provider: ProviderId,
    /// The model, where the field is bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The credential, where the field is bound to an account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileId>,
}

impl Origin {
    /// Bound to a provider only.
    pub fn new(provider: ProviderId) -> Self {
        Self { provider, model: None, profile: None }
    }

    /// Also bound to a model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Also bound to a credential.
    #[must_use]
    pub fn with_profile(mut self, profile: ProfileId) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Whether this attempt goes back to where the field came from.
    pub fn is_target_of(&self, scope: &AttemptScope<'_>) -> bool {
        let profile = scope.credential.map(|credential| &credential.profile);
        self.provider == *scope.model.provider()
            && self.model.as_deref().is_none_or(|model| model == scope.model.model())
            && self.profile.as_ref().is_none_or(|bound| profile == Some(bound))
    }
}

/// To whom something opaque may be given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "where a field may go must be decided for every kind of it")]
pub enum Home {
    /// To where it came from.
    Origin(Origin),
    /// To whom the caller asked ([`AttemptScope::asked`]), where that one speaks this dialect: a proof in the caller's own
    /// history. Whose it is stands nowhere; it came from there, or the caller would have got it with its origin.
    History(Dialect),
    /// To whoever speaks this dialect: a parameter of it.
    Dialect(Dialect),
}

impl From<Origin> for Home {
    fn from(origin: Origin) -> Self {
        Self::Origin(origin)
    }
}

/// Something that the neutral form has no words for. It goes where it belongs unchanged, and nowhere else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Opaque {
    /// To whom it may be given.
    pub home: Home,
    /// The field's name there.
    pub name: String,
    /// Its value.
    pub value: Json,
    /// The neutral fields say the same: who is not given it lacks nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub translated: bool,
}

impl Opaque {
    /// An opaque field from its parts.
    pub fn new(home: impl Into<Home>, name: impl Into<String>, value: Json) -> Self {
        Self { home: home.into(), name: name.into(), value, translated: false }
    }

    /// Says whether the neutral fields say the same.
    #[must_use]
    pub fn translated(mut self, yes: bool) -> Self {
        self.translated = yes;
        self
    }

    /// Whose answer it is from, where that is known.
    pub fn origin(&self) -> Option<&Origin> {
        match &self.home {
            Home::Origin(origin) => Some(origin),
            Home::History(_) | Home::Dialect(_) => None,
        }
    }

    /// Whether this attempt, of an adapter that speaks `dialect`, may be given it.
    pub fn may_go(&self, dialect: Option<Dialect>, scope: &AttemptScope<'_>) -> bool {
        match &self.home {
            Home::Origin(origin) => origin.is_target_of(scope),
            Home::History(own) => scope.asked && dialect == Some(*own),
            Home::Dialect(own) => dialect.is_some_and(|dialect| dialect.has(&self.name, *own)),
        }
    }
}

/// What a request takes from the store of whom its caller asked: an answer, a conversation, a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Bound {
    /// The dialect in which it refers to that.
    pub dialect: Dialect,
    /// The field that refers to it: `previous_response_id`.
    pub by: String,
}

impl Bound {
    /// Bound by a field of a dialect.
    pub fn new(dialect: Dialect, by: impl Into<String>) -> Self {
        Self { dialect, by: by.into() }
    }
}

/// A header that says how the fields of a dialect are to be read. It goes to who speaks the dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DialectHeader {
    /// The dialect.
    pub dialect: Dialect,
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl DialectHeader {
    /// A header from its parts.
    pub fn new(dialect: Dialect, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { dialect, name: name.into(), value: value.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover_types::{BoxFuture, Clock, ModelRef, Timestamp};
    use std::sync::Arc;
    use test_case::test_case;

    struct Never;

    impl Clock for Never {
        fn now(&self) -> Timestamp {
            Timestamp::default()
        }

        fn sleep_until(&self, _: Timestamp) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }
    }

    const CHAT: Dialect = Dialect::OpenAiChat;
    const RESPONSES: Dialect = Dialect::OpenAiResponses;

    // spec: P-5
    #[test_case(Home::Dialect(CHAT), "seed", Some(CHAT), false, true; "a parameter, whoever is asked")]
    #[test_case(Home::Dialect(CHAT), "seed", Some(RESPONSES), true, false; "a parameter of another dialect")]
    #[test_case(Home::Dialect(CHAT), "parallel_tool_calls", Some(RESPONSES), true, true; "a parameter that both have")]
    #[test_case(Home::Dialect(CHAT), "seed", None, true, false; "a parameter where no dialect is spoken")]
    #[test_case(Home::History(CHAT), "proof", Some(CHAT), true, true; "a proof, to whom the caller asked")]
    #[test_case(Home::History(CHAT), "proof", Some(CHAT), false, false; "a proof, to somebody else")]
    #[test_case(Home::History(CHAT), "proof", Some(RESPONSES), true, false; "a proof of another dialect")]
    fn parameters_go_by_dialect_and_proofs_by_origin(
        home: Home,
        name: &str,
        dialect: Option<Dialect>,
        asked: bool,
        expected: bool,
    ) {
        let model: ModelRef = "anybody/m".parse().unwrap();
        let scope = AttemptScope::new(&model, Arc::new(Never)).with_asked(asked);
        let opaque = Opaque::new(home, name, Json::parse("1").unwrap());
        assert_eq!(opaque.may_go(dialect, &scope), expected);
    }
}

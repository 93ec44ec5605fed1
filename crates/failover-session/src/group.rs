//! The two ownership groups: the model selection and the auth pin. Each is read and written as a whole.

use failover_types::{ModelRef, ProfileId, ProviderId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The fields of the model selection.
pub(crate) const MODEL_FIELDS: [&str; 5] = [
    "providerOverride",
    "modelOverride",
    "modelOverrideSource",
    "modelOverrideFallbackOriginProvider",
    "modelOverrideFallbackOriginModel",
];

/// The fields of the auth pin.
pub(crate) const PIN_FIELDS: [&str; 3] =
    ["authProfileOverride", "authProfileOverrideSource", "authProfileOverrideCompactionCount"];

const AUTO: &str = "auto";
const USER: &str = "user";

/// What the model fields of an entry say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: whoever reads a selection handles every kind")]
pub enum StoredSelection {
    /// Nothing is stored: the configured model.
    Nothing,
    /// The system wrote it: a fallback.
    Auto {
        /// The fallback.
        model: ModelRef,
        /// What had been selected before; unknown in records of older versions.
        origin: Option<ModelRef>,
    },
    /// A person chose it.
    User {
        /// The choice.
        model: ModelRef,
    },
    /// Stored without a source, by an older version. Treated as a person's choice.
    Legacy {
        /// The choice.
        model: ModelRef,
    },
    /// There is something, and it names no model. Somebody's choice all the same: it stands until it is reset.
    Unreadable {
        /// What is stored, as JSON.
        text: String,
    },
}

impl StoredSelection {
    /// The stored model, where there is a readable one.
    pub fn model(&self) -> Option<&ModelRef> {
        match self {
            Self::Auto { model, .. } | Self::User { model } | Self::Legacy { model } => Some(model),
            Self::Nothing | Self::Unreadable { .. } => None,
        }
    }

    /// Whether somebody other than the system put it there: nothing may be written over it.
    pub fn is_a_choice(&self) -> bool {
        match self {
            Self::User { .. } | Self::Legacy { .. } | Self::Unreadable { .. } => true,
            Self::Nothing | Self::Auto { .. } => false,
        }
    }

    /// The name that status and logs use.
    pub const fn source(&self) -> &'static str {
        match self {
            Self::Nothing => "configured",
            Self::Auto { .. } => AUTO,
            Self::User { .. } => USER,
            Self::Legacy { .. } => "legacy (treated as user)",
            Self::Unreadable { .. } => "unreadable (treated as user)",
        }
    }
}

/// Who pinned the profile of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a pin is the system's or a person's")]
pub enum PinOwner {
    /// Rotation did.
    Auto,
    /// A person did.
    User,
}

impl PinOwner {
    /// The word for it: `auto` or `user`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => AUTO,
            Self::User => USER,
        }
    }
}

/// The pinned profile of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredPin {
    /// Which profile.
    pub profile: ProfileId,
    /// Who pinned it. An older record without a source counts as the system's only if it has a compaction count.
    pub owner: PinOwner,
    /// The session's compaction count at that time.
    pub compaction_count: Option<u64>,
}

/// The values of one group, in the order of its field names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group<const N: usize>(Arc<[Option<Value>; N]>);

pub(crate) type ModelGroup = Group<5>;
pub(crate) type PinGroup = Group<3>;

impl<const N: usize> Default for Group<N> {
    fn default() -> Self {
        Self::new([const { None }; N])
    }
}

impl<const N: usize> Group<N> {
    pub(crate) fn new(values: [Option<Value>; N]) -> Self {
        Self(Arc::new(values))
    }

    pub(crate) fn values(&self) -> &[Option<Value>; N] {
        &self.0
    }

    fn write<S: Serializer>(&self, names: [&str; N], serializer: S) -> Result<S::Ok, S::Error> {
        let pairs =
            names.into_iter().zip(self.values()).filter_map(|(name, value)| Some((name, value.as_ref()?)));
        serializer.collect_map(pairs)
    }

    fn read<'de, D: Deserializer<'de>>(names: [&str; N], deserializer: D) -> Result<Self, D::Error> {
        let mut map = Map::deserialize(deserializer)?;
        let values = names.map(|name| map.remove(name));
        match map.keys().next() {
            None => Ok(Self::new(values)),
            Some(name) => Err(D::Error::custom(format!("{name:?} is no field of this group"))),
        }
    }
}

fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

fn model_ref(provider: Option<&Value>, model: Option<&Value>) -> Option<ModelRef> {
    let model = model?.as_str()?;
    match provider {
        Some(provider) => ModelRef::new(ProviderId::new(provider.as_str()?).ok()?, model).ok(),
        None => model.parse().ok(),
    }
}

impl ModelGroup {
    pub(crate) fn auto(model: &ModelRef, origin: &ModelRef) -> Self {
        let words =
            [model.provider().as_str(), model.model(), AUTO, origin.provider().as_str(), origin.model()];
        Self::new(words.map(|word| Some(text(word))))
    }

    pub(crate) fn user(model: &ModelRef) -> Self {
        let [provider, name, source] =
            [model.provider().as_str(), model.model(), USER].map(|word| Some(text(word)));
        Self::new([provider, name, source, None, None])
    }

    pub(crate) fn selection(&self) -> StoredSelection {
        let [provider, model, source, origin_provider, origin_model] = self.values();
        if provider.is_none() && model.is_none() {
            return StoredSelection::Nothing;
        }
        let Some(read) = model_ref(provider.as_ref(), model.as_ref()) else {
            let text = Value::Array(vec![provider.clone().into(), model.clone().into()]).to_string();
            return StoredSelection::Unreadable { text };
        };
        match source.as_ref().map(Value::as_str) {
            None => StoredSelection::Legacy { model: read },
            Some(Some(AUTO)) => {
                let origin = model_ref(origin_provider.as_ref(), origin_model.as_ref());
                StoredSelection::Auto { model: read, origin: origin.filter(|_| origin_provider.is_some()) }
            }
            Some(_) => StoredSelection::User { model: read },
        }
    }
}

impl PinGroup {
    pub(crate) fn auto(profile: &ProfileId, compaction_count: u64) -> Self {
        Self::new([Some(text(profile.as_str())), Some(text(AUTO)), Some(compaction_count.into())])
    }

    pub(crate) fn user(profile: &ProfileId) -> Self {
        Self::new([Some(text(profile.as_str())), Some(text(USER)), None])
    }

    pub(crate) fn pin(&self) -> Option<StoredPin> {
        let [profile, source, count] = self.values();
        let profile = ProfileId::new(profile.as_ref()?.as_str()?).ok()?;
        let owner = match (source.as_ref().map(Value::as_str), count) {
            (Some(Some(AUTO)), _) | (None, Some(_)) => PinOwner::Auto,
            _ => PinOwner::User,
        };
        Some(StoredPin { profile, owner, compaction_count: count.as_ref().and_then(Value::as_u64) })
    }

    /// Whether the system may write over it: there is nothing, or its own pin.
    pub(crate) fn is_ours(&self) -> bool {
        match self.pin() {
            Some(pin) => pin.owner == PinOwner::Auto,
            None => self.0.first().is_some_and(Option::is_none),
        }
    }
}

macro_rules! as_object {
    ($group:ident, $names:ident) => {
        impl Serialize for $group {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.write($names, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $group {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::read($names, deserializer)
            }
        }
    };
}

as_object!(ModelGroup, MODEL_FIELDS);
as_object!(PinGroup, PIN_FIELDS);

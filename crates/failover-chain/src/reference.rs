//! Model references as somebody wrote them, and where.

use failover_types::{ModelRef, ModelRefError, ModelSelector, ProviderId};
use std::collections::BTreeMap;
use std::fmt;

/// Where in the config something was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Origin {
    /// The file, as the operator named it.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Path of the value: `agents.defaults.model.fallbacks[1]`.
    pub path: String,
}

impl Origin {
    /// A place in the config.
    pub fn new(file: impl Into<String>, line: u32, path: impl Into<String>) -> Self {
        Self { file: file.into(), line, path: path.into() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({})", self.file, self.line, self.path)
    }
}

/// A model as it was written: an alias, `provider/model`, or `provider/model@provider:profile`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The text.
    pub text: String,
    /// Where it stands, where known.
    pub origin: Option<Origin>,
}

impl Reference {
    /// A reference from nowhere in particular.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), origin: None }
    }

    /// The same reference, with the place where it stands.
    #[must_use]
    pub fn at(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }
}

/// The `fallbacks` of a model setting. The four forms mean four things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: the four forms that config can have")]
pub enum Fallbacks {
    /// Not written, also for a plain model string. An agent with a primary of its own is then strict.
    #[default]
    Absent,
    /// `null`: whatever the defaults say. In the defaults themselves it is the same as absent.
    Null(Option<Origin>),
    /// `[]`: explicitly none.
    Empty(Option<Origin>),
    /// A list, never empty.
    List(Vec<Reference>),
}

/// Which of the four forms a setting has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the four forms that config can have")]
pub enum FallbacksKind {
    /// Not written.
    Absent,
    /// `null`.
    Null,
    /// `[]`.
    Empty,
    /// A list with something in it.
    List,
}

impl FallbacksKind {
    /// A word for explanations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Null => "null",
            Self::Empty => "empty",
            Self::List => "list",
        }
    }
}

impl Fallbacks {
    /// A list from texts, or the explicit empty one.
    pub fn list<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::from_list(texts.into_iter().map(Reference::new).collect(), None)
    }

    /// A list from references; an empty one is the explicit empty list, written at `origin`.
    pub fn from_list(list: Vec<Reference>, origin: Option<Origin>) -> Self {
        if list.is_empty() { Self::Empty(origin) } else { Self::List(list) }
    }

    /// Which form it is.
    pub fn kind(&self) -> FallbacksKind {
        match self {
            Self::Absent => FallbacksKind::Absent,
            Self::Null(_) => FallbacksKind::Null,
            Self::Empty(_) => FallbacksKind::Empty,
            Self::List(_) => FallbacksKind::List,
        }
    }

    /// What was listed.
    pub fn references(&self) -> &[Reference] {
        match self {
            Self::List(list) => list,
            Self::Absent | Self::Null(_) | Self::Empty(_) => &[],
        }
    }

    /// Where the setting stands; a list's place is that of its first entry.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Absent => None,
            Self::Null(origin) | Self::Empty(origin) => origin.as_ref(),
            Self::List(list) => list.first().and_then(|first| first.origin.as_ref()),
        }
    }
}

/// A reference that names no model. It is reported, never silently dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unresolved {
    /// What was written, and where.
    pub reference: Reference,
    /// Why it names no model.
    pub why: ModelRefError,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.reference.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "{}, and no alias has that name", self.why)
    }
}

/// Short names for models and for providers. Case does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    models: BTreeMap<String, ModelSelector>,
    providers: BTreeMap<String, ProviderId>,
}

fn fold(name: &str) -> String {
    name.trim().to_lowercase()
}

impl Aliases {
    /// Lets `name` stand for a model, with or without a profile. A later alias of the same name replaces it.
    pub fn model(&mut self, name: &str, target: ModelSelector) {
        self.models.insert(fold(name), target);
    }

    /// Lets `name` stand for a provider in front of a slash.
    pub fn provider(&mut self, name: &str, target: ProviderId) {
        self.providers.insert(fold(name), target);
    }

    /// Reads a reference: an alias first, with or without a profile behind an `@`, then `provider/model` split at the
    /// first slash.
    ///
    /// # Errors
    ///
    /// [`ModelRefError`] where the text is neither.
    pub fn read(&self, text: &str) -> Result<ModelSelector, ModelRefError> {
        if let Some(target) = self.models.get(&fold(text)) {
            return Ok(target.clone());
        }
        if let Some((name, profile)) = text.trim().split_once('@')
            && let Some(target) = self.models.get(&fold(name))
            && let Ok(read @ ModelSelector { profile: Some(_), .. }) =
                format!("{}@{profile}", target.model).parse::<ModelSelector>()
        {
            return Ok(read);
        }
        let Some((provider, model)) = text.trim().split_once('/') else { return text.parse() };
        match self.providers.get(&fold(provider)) {
            Some(provider) => format!("{provider}/{model}").parse(),
            None => text.parse(),
        }
    }

    /// Folds provider aliases in a reference that has been read already.
    #[must_use]
    pub fn normalize(&self, model: &ModelRef) -> ModelRef {
        match self.providers.get(model.provider().as_str()) {
            Some(provider) => {
                ModelRef::new(provider.clone(), model.model()).unwrap_or_else(|_| model.clone())
            }
            None => model.clone(),
        }
    }
}

//! Cases as files.

use failover_classify::{AsSignal, Signal, Surface, Verdict};
use failover_types::{FailoverReason, Scope, Timestamp, millis};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How a payload came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// Seen on the wire or in somebody's log.
    Recorded,
    /// Put together from a provider's documentation.
    Documented,
    /// Made up, to pin a border.
    Synthetic,
}

impl Origin {
    /// The serialized name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Documented => "documented",
            Self::Synthetic => "synthetic",
        }
    }
}

/// One provider error, and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Case {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub id: String,
    /// How the payload came to be known.
    pub source: Origin,
    /// Where it was seen.
    pub seen: String,
    /// The provider's id; also the name of the directory.
    pub provider: String,
    /// Where the error came from.
    pub surface: Surface,
    /// HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// An error code that the client had apart from the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The body or message, byte by byte.
    pub body: String,
    /// Why the expectation is what it is.
    pub why: String,
    /// Headers that matter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What classification should say.
    pub expect: Expect,
}

/// What classification should say of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Expect {
    /// The reason.
    pub reason: FailoverReason,
    /// Reasons that are right too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<FailoverReason>,
    /// The provider's wait, in milliseconds. Absent: it named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The absolute time that the provider named, in milliseconds of the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<u64>,
    /// The clock text that the provider named, where it lacks a date or a zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_text: Option<String>,
    /// What is blamed; absent: not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

impl Expect {
    /// Expects a reason and no hint.
    pub const fn new(reason: FailoverReason) -> Self {
        Self {
            reason,
            accept: Vec::new(),
            retry_after_ms: None,
            reset_at: None,
            reset_text: None,
            scope: None,
        }
    }
}

impl Case {
    /// A recorded HTTP error of which nothing is known yet but its body.
    pub fn new(
        id: impl Into<String>,
        provider: impl Into<String>,
        body: impl Into<String>,
        expect: Expect,
    ) -> Self {
        Self {
            id: id.into(),
            source: Origin::Recorded,
            seen: String::new(),
            provider: provider.into(),
            surface: Surface::Http,
            status: None,
            code: None,
            body: body.into(),
            why: String::new(),
            headers: BTreeMap::new(),
            expect,
        }
    }

    /// `provider/case`: how lists name a case.
    pub fn path(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// Reads a case from the text of its file.
    ///
    /// # Errors
    /// If the text is no TOML, a field is missing, or a field is unknown.
    pub fn from_toml(id: &str, text: &str) -> Result<Self, toml::de::Error> {
        let case: Self = toml::from_str(text)?;
        Ok(Self { id: id.to_owned(), ..case })
    }

    /// The text of the case's file. Bodies of several lines stand as they are.
    ///
    /// # Errors
    /// Never for a case that was read or built by [`Case::new`].
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }

    /// Whether the reason is the expected one, or one that is right too.
    pub fn accepts(&self, reason: FailoverReason) -> bool {
        self.expect.reason == reason || self.expect.accept.contains(&reason)
    }

    /// Where a verdict is not what the case expects, a sentence each.
    pub fn faults(&self, verdict: &Verdict) -> Vec<String> {
        let expect = &self.expect;
        let mut faults = Vec::new();
        if !self.accepts(verdict.reason) {
            faults.push(format!("reason is {}, expected {}", verdict.reason, expect.reason));
        }
        if let Some(scope) = expect.scope.filter(|scope| *scope != verdict.scope) {
            faults.push(format!("blames {}, expected {scope}", verdict.scope));
        }
        let hint = verdict.hint.as_ref();
        let wait = hint.and_then(failover_classify::RetryHint::after).map(millis);
        if wait != expect.retry_after_ms {
            faults.push(format!("wait is {}, expected {}", shown(wait), shown(expect.retry_after_ms)));
        }
        let at = hint.and_then(failover_classify::RetryHint::at).map(Timestamp::as_millis);
        if at != expect.reset_at {
            faults.push(format!("reset is {}, expected {}", shown(at), shown(expect.reset_at)));
        }
        let text = hint.and_then(super::wall_text);
        let stated = expect.retry_after_ms.is_some() || expect.reset_at.is_some();
        let same = match (&text, &expect.reset_text) {
            (Some((text, _)), Some(wanted)) => {
                wanted.contains(text.as_str()) || text.contains(wanted.as_str())
            }
            (None, Some(_)) | (Some(_), None) => stated,
            (None, None) => true,
        };
        if !same {
            let text =
                text.map(|(text, zone)| zone.map_or_else(|| text.clone(), |zone| format!("{text} {zone}")));
            faults.push(format!("clock text is {text:?}, expected {:?}", expect.reset_text));
        }
        faults
    }
}

fn shown(number: Option<u64>) -> String {
    number.map_or_else(|| "none".to_owned(), |number| format!("{number} ms"))
}

impl AsSignal for Case {
    fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut signal = Signal::new(self.surface)
            .with_provider(&self.provider)
            .with_headers(&headers)
            .with_body(self.body.as_bytes());
        if let Some(status) = self.status {
            signal = signal.with_status(status);
        }
        if let Some(code) = &self.code {
            signal = signal.with_code(code);
        }
        with(&signal)
    }
}

/// Why a corpus cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// A file or directory cannot be read.
    #[error("{path}: cannot be read")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A case is malformed.
    #[error("{path}: {what}")]
    Case {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        what: String,
    },
}

/// All cases below a directory, ordered by provider and id.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Corpus {
    /// The directory.
    pub root: PathBuf,
    /// The cases.
    pub cases: Vec<Case>,
}

impl Corpus {
    /// Reads every `<provider>/<case>.toml` below a directory.
    ///
    /// # Errors
    /// If a file cannot be read, is malformed, has unknown fields, or stands in another provider's directory; if two
    /// cases have one id; if there is no case at all.
    pub fn load(root: impl Into<PathBuf>) -> Result<Self, CorpusError> {
        let root = root.into();
        let mut cases: Vec<Case> = Vec::new();
        let mut ids = BTreeSet::new();
        for directory in entries(&root)?.into_iter().filter(|path| path.is_dir()) {
            for path in entries(&directory)?.into_iter().filter(|path| has_extension(path, "toml")) {
                let case = read(&path)?;
                if directory.file_name().is_none_or(|name| *name != *case.provider) {
                    let what = format!("a case of {} does not belong in this directory", case.provider);
                    return Err(CorpusError::Case { path, what });
                }
                if !ids.insert(case.id.clone()) {
                    return Err(CorpusError::Case { path, what: "another case has this id".to_owned() });
                }
                cases.push(case);
            }
        }
        if cases.is_empty() {
            return Err(CorpusError::Case { path: root, what: "holds no case".to_owned() });
        }
        Ok(Self { root, cases })
    }

    /// Where a case's snapshot stands.
    pub fn snapshot_path(&self, case: &Case) -> PathBuf {
        self.root.join(&case.provider).join(format!("{}.snap", case.id))
    }
}

fn read(path: &Path) -> Result<Case, CorpusError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| CorpusError::Io { path: path.into(), source })?;
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    Case::from_toml(&id, &text)
        .map_err(|error| CorpusError::Case { path: path.into(), what: error.to_string() })
}

pub(super) fn entries(directory: &Path) -> Result<Vec<PathBuf>, CorpusError> {
    let fail = |source| CorpusError::Io { path: directory.into(), source };
    let mut found = std::fs::read_dir(directory)
        .and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()
        })
        .map_err(fail)?;
    found.sort();
    Ok(found)
}

pub(super) fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "source = \"recorded\"\nseen = \"https://example.com\"\nprovider = \"acme\"\nsurface = \"http\"\n\
        status = 429\nbody = '''\n{\"a\": \"it's\"}\n'''\nwhy = \"w\"\n\n[headers]\nretry-after = \"5\"\n\n\
        [expect]\nreason = \"rate_limit\"\nretry_after_ms = 5000\n";

    // spec: C-24
    #[test]
    fn cases_survive_writing_and_reading() {
        let case = Case::from_toml("a", TEXT).unwrap();
        assert_eq!(case.body, "{\"a\": \"it's\"}\n");
        let again = Case::from_toml("a", &case.to_toml().unwrap()).unwrap();
        assert_eq!(case, again);
    }

    // spec: C-24
    #[test]
    fn unknown_fields_are_refused() {
        for wrong in [TEXT.replace("why", "wyh"), format!("{TEXT}hint = 1\n")] {
            assert!(Case::from_toml("a", &wrong).is_err());
        }
    }

    // spec: C-24
    #[test]
    fn a_verdict_is_held_against_reason_wait_and_scope() {
        let classifier = failover_classify::Classifier::standard().unwrap();
        let case = Case::from_toml("a", TEXT).unwrap();
        let verdict = case.with_signal(|signal| classifier.classify(signal));
        assert_eq!(case.faults(&verdict), Vec::<String>::new());
        let mut other = case;
        other.expect.reason = FailoverReason::Auth;
        other.expect.scope = Some(Scope::Provider);
        other.expect.retry_after_ms = None;
        assert_eq!(other.faults(&verdict).len(), 3);
        other.expect.accept = vec![FailoverReason::RateLimit];
        assert_eq!(other.faults(&verdict).len(), 2);
    }
}

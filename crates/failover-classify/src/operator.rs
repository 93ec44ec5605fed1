//! Rules that an operator writes in config. They come right after the local tier.

use failover_types::{FailoverReason, Scope};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// A rule from config. Everything given must hold; at least one condition must be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct OperatorRule {
    /// Kebab-case name; evidence shows it as `operator/<id>`.
    pub id: String,
    /// A part of the text, without regard to case, white space and quoting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A regular expression, without regard to case. It is tried on the body as it came, then on each string of JSON in
    /// it as that reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// An HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// A code in a code position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// A provider's id, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What it means: the name of a reason.
    pub reason: String,
    /// What is to blame, where it is not the reason's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

impl OperatorRule {
    /// A rule without conditions yet.
    pub fn new(id: impl Into<String>, reason: FailoverReason) -> Self {
        Self { id: id.into(), reason: reason.as_str().to_owned(), ..Self::default() }
    }

    /// Asks for a part of the text.
    #[must_use]
    pub fn with_contains(mut self, contains: impl Into<String>) -> Self {
        self.contains = Some(contains.into());
        self
    }

    /// Asks for a regular expression.
    #[must_use]
    pub fn with_regex(mut self, regex: impl Into<String>) -> Self {
        self.regex = Some(regex.into());
        self
    }

    /// Asks for a status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Asks for a code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Asks for a provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// Blames something else than the reason's default.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
        self
    }
}

/// What is wrong with an operator's rule. `index` is its place in the list, from 0: whoever read the file knows
/// the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operator rule {id:?} (number {}): {what}", index + 1)]
#[non_exhaustive]
pub struct OperatorRuleError {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its id.
    pub id: String,
    /// The field that is wrong.
    pub field: &'static str,
    /// What is wrong and what to do.
    pub what: String,
}

/// An operator's rule, checked.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) id: String,
    pub(crate) contains: Option<String>,
    pub(crate) regex: Option<Regex>,
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) reason: FailoverReason,
    pub(crate) scope: Option<Scope>,
}

/// A compiled expression may take this many bytes.
const REGEX_LIMIT: usize = 256 * 1024;

pub(crate) fn check(rules: &[OperatorRule]) -> Result<Vec<Checked>, OperatorRuleError> {
    let mut checked: Vec<Checked> = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let fault = |field, what| OperatorRuleError { index, id: rule.id.clone(), field, what };
        let kebab = !rule.id.is_empty()
            && rule.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !kebab {
            return Err(fault("id", "the id must be lower-case letters, digits and hyphens".to_owned()));
        }
        let id = format!("operator/{}", rule.id);
        if checked.iter().any(|other| other.id == id) {
            return Err(fault("id", "the id is used twice; give each rule its own".to_owned()));
        }
        let reason = rule.reason.parse::<FailoverReason>().map_err(|error| {
            let names: Vec<_> = FailoverReason::ALL.iter().map(|reason| reason.as_str()).collect();
            fault("reason", format!("{error}; use one of {}", names.join(", ")))
        })?;
        if let Some(status) = rule.status
            && !(100..600).contains(&status)
        {
            return Err(fault("status", format!("{status} is not an http status")));
        }
        let contains = rule.contains.as_deref().map(crate::view::View::normal);
        if contains.as_deref() == Some("") {
            return Err(fault("contains", "the text is empty; it would match everything".to_owned()));
        }
        let regex = rule
            .regex
            .as_deref()
            .map(|pattern| {
                RegexBuilder::new(pattern).case_insensitive(true).size_limit(REGEX_LIMIT).build().map_err(
                    |error| {
                        let line =
                            error.to_string().lines().last().unwrap_or("not a regular expression").to_owned();
                        fault("regex", line)
                    },
                )
            })
            .transpose()?;
        if regex.as_ref().is_some_and(|regex| regex.is_match("")) {
            return Err(fault("regex", "it matches the empty text; it would match everything".to_owned()));
        }
        if contains.is_none()
            && regex.is_none()
            && rule.status.is_none()
            && rule.code.is_none()
            && rule.provider.is_none()
        {
            let what = "there is no condition; give contains, regex, status, code or provider".to_owned();
            return Err(fault("id", what));
        }
        checked.push(Checked {
            id,
            contains,
            regex,
            status: rule.status,
            code: rule.code.as_deref().map(str::to_ascii_lowercase),
            provider: rule.provider.as_deref().map(str::to_ascii_lowercase),
            reason,
            scope: rule.scope,
        });
    }
    Ok(checked)
}

//! Rules as data: what a row may ask for, and the table of precedence.

use crate::{Surface, Tier};
use failover_types::{FailoverReason, Scope};
use std::fmt;

/// A family of wordings. The order of the variants **is** the precedence inside a tier: where two families match
/// the same text, the earlier one wins. Two rows of one family that disagree on a case are a mistake of the table.
///
/// Why this order: first texts that are no failure of a call at all; then wordings that can only mean one thing
/// (a stated window, a balance); then wordings that others quote or wrap (a connection error wraps a
/// quota error, never the other way round); bare transport and server texts last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the order of families is the order of precedence, and it is closed"
)]
pub enum Family {
    /// Prose, tool output, a client's own fallback text: not a failure of a model call.
    NotAFailure,
    /// A condition of this machine.
    Machine,
    /// Words that weigh so much that they stand before a known wording of something else.
    Outweighs,
    /// A refused prompt or answer.
    Refusal,
    /// A rate text that names its window, its limit or the time of its reset.
    RateWindow,
    /// Balance, credit, plan, payment.
    Billing,
    /// The account or the key is gone.
    AccountGone,
    /// Too much output was asked for; the prompt would fit.
    OutputLimit,
    /// The prompt does not fit.
    Overflow,
    /// Something remembered at the provider is gone.
    Session,
    /// Saturated for everybody.
    Overloaded,
    /// This model or endpoint cannot serve this here.
    Model,
    /// The credential was refused.
    Auth,
    /// Too many requests, without more.
    Rate,
    /// Nothing usable came.
    Empty,
    /// The request is wrong.
    Format,
    /// Time or transport.
    Transport,
    /// The provider broke.
    Server,
    /// A cancel that wraps nothing better.
    Abort,
    /// Type words that say no more than a status does, but say it better than the status.
    TypeWord,
    /// What the words weigh together, where nothing above knew the text.
    Weight,
    /// The status itself.
    HttpStatus,
    /// Type words that say less than a status does.
    GenericType,
    /// Nothing better was known.
    Last,
}

impl Family {
    /// Whether words that are weighed decide, and not a wording that is known.
    pub(crate) const fn is_weighed(self) -> bool {
        matches!(self, Self::Outweighs | Self::Weight)
    }
}

/// A set of HTTP statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a closed language: tables and reports print every form")]
pub enum StatusSet {
    /// One of these.
    OneOf(&'static [u16]),
    /// `lowest..=highest`.
    Range(u16, u16),
    /// No status, or one below 400.
    NoError,
}

impl StatusSet {
    pub(crate) fn holds(self, status: Option<u16>) -> bool {
        match self {
            Self::OneOf(list) => status.is_some_and(|status| list.contains(&status)),
            Self::Range(low, high) => status.is_some_and(|status| (low..=high).contains(&status)),
            Self::NoError => status.is_none_or(|status| status < 400),
        }
    }
}

/// A property of the signal as a whole that rows may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a closed language: tables and reports print every form")]
pub enum Fact {
    /// The body is empty or white space.
    EmptyBody,
    /// The text says nothing beyond its status (`400 Bad Request`, `status code (no body)`).
    Bare,
    /// The text says something beyond its status.
    Worded,
    /// The body is, or holds, an HTML page.
    Html,
    /// The body states when to come back.
    HasHint,
    /// The body does not state when to come back.
    NoHint,
    /// The request alone is larger than the limit that it names.
    AloneTooLarge,
    /// A complete answer without any content.
    EmptyAnswer,
    /// The text is short: at most 400 bytes.
    Short,
    /// The text is tiny: at most 32 bytes.
    Tiny,
    /// A list in Markdown without anything structured in it: an explanation, not an error.
    Prose,
    /// There is no status at all, neither beside the text nor in it.
    NoStatus,
    /// The text stands for itself (no status, no code beside it) and is a record of a tool: a commit, a test's line, code, a
    /// table, a transcript.
    Record,
    /// The text stands for itself, reports nothing, and is somebody's words: a question, a note, an answer.
    Speech,
    /// The text stands for itself and does not have the shape of an error.
    Plain,
    /// The words of the text weigh towards this reason by far enough, more so where no status says that the call failed.
    Weighs(FailoverReason),
    /// The words weigh so much towards this reason that a known wording of something else is by the way.
    Outweighs(FailoverReason),
}

/// What a row asks for. Everything given must hold; an empty matcher holds always.
///
/// Phrases are matched without regard to case, white space, line breaks, `_`, `-`, back quotes, the kind of
/// quotation marks and the level of JSON escapes. `{a|b}` are alternatives, ` .. ` is a gap of at most 80 bytes,
/// `*` at an end lets a word go on. Words match whole words only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Matcher {
    /// At least one of these phrases.
    pub any: &'static [&'static str],
    /// All of these phrases.
    pub all: &'static [&'static str],
    /// None of these phrases.
    pub none: &'static [&'static str],
    /// One of these codes stands in a code position. A `*` at the end stands for any end.
    pub codes: &'static [&'static str],
    /// None of these codes stands in a code position.
    pub no_codes: &'static [&'static str],
    /// The status.
    pub status: Option<StatusSet>,
    /// The provider's id, or one that begins with it and `-`.
    pub providers: &'static [&'static str],
    /// Where the error came from.
    pub surfaces: &'static [Surface],
    /// A header and a part of its value (empty: any value).
    pub header: Option<(&'static str, &'static str)>,
    /// Properties of the signal.
    pub facts: &'static [Fact],
}

/// One row: a matcher, what it means, and where that is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// `namespace/kebab-name`; never used twice.
    pub id: &'static str,
    /// How much the row is believed.
    pub tier: Tier,
    /// Its place inside the tier.
    pub family: Family,
    /// What it asks for.
    pub matcher: Matcher,
    /// What it means.
    pub reason: FailoverReason,
    /// What is to blame, where it is not the reason's default.
    pub scope: Option<Scope>,
    /// Where that is known from: an address, or `corpus:<id or provider>`.
    pub evidence: &'static str,
}

const NOTHING: Matcher = Matcher {
    any: &[],
    all: &[],
    none: &[],
    codes: &[],
    no_codes: &[],
    status: None,
    providers: &[],
    surfaces: &[],
    header: None,
    facts: &[],
};

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)+) => {
        $($(#[$doc])*
        #[must_use]
        pub const fn $name(mut self, $name: $type) -> Self {
            self.matcher.$name = $name;
            self
        })+
    };
}

impl Rule {
    /// A row that asks for nothing yet.
    pub const fn new(id: &'static str, tier: Tier, family: Family, reason: FailoverReason) -> Self {
        Self { id, tier, family, matcher: NOTHING, reason, scope: None, evidence: "corpus" }
    }

    setters! {
        /// At least one of these phrases.
        any: &'static [&'static str];
        /// All of these phrases.
        all: &'static [&'static str];
        /// None of these phrases.
        none: &'static [&'static str];
        /// One of these codes.
        codes: &'static [&'static str];
        /// None of these codes.
        no_codes: &'static [&'static str];
        /// One of these providers.
        providers: &'static [&'static str];
        /// One of these surfaces.
        surfaces: &'static [Surface];
        /// All of these facts.
        facts: &'static [Fact];
    }

    /// One of these statuses.
    #[must_use]
    pub const fn status(mut self, status: StatusSet) -> Self {
        self.matcher.status = Some(status);
        self
    }

    /// A header and a part of its value.
    #[must_use]
    pub const fn header(mut self, name: &'static str, part: &'static str) -> Self {
        self.matcher.header = Some((name, part));
        self
    }

    /// Blames something else than the reason's default.
    #[must_use]
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Where the row is known from.
    #[must_use]
    pub const fn evidence(mut self, evidence: &'static str) -> Self {
        self.evidence = evidence;
        self
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("any", self.any),
            ("all", self.all),
            ("none", self.none),
            ("code", self.codes),
            ("not code", self.no_codes),
            ("provider", self.providers),
        ];
        let mut first = true;
        let mut part = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let comma = if first { "" } else { "; " };
            first = false;
            write!(f, "{comma}{text}")
        };
        for (name, list) in lists {
            if !list.is_empty() {
                part(f, format_args!("{name} {list:?}"))?;
            }
        }
        if let Some(status) = self.status {
            part(f, format_args!("status {status:?}"))?;
        }
        if !self.surfaces.is_empty() {
            part(f, format_args!("surface {:?}", self.surfaces))?;
        }
        if let Some((name, value)) = self.header {
            part(f, format_args!("header {name} ~ {value:?}"))?;
        }
        if !self.facts.is_empty() {
            part(f, format_args!("fact {:?}", self.facts))?;
        }
        Ok(())
    }
}

/// Rules that belong to one provider or adapter.
pub trait ProviderRules: Send + Sync {
    /// The part of the ids before the slash.
    fn namespace(&self) -> &str;
    /// The rows. They fire for the providers that their matchers name; rows outside of `core` must name one.
    fn rows(&self) -> &[Rule];
}

/// A table of rows under one namespace: the plainest [`ProviderRules`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RuleTable {
    namespace: &'static str,
    rows: &'static [Rule],
}

impl RuleTable {
    /// Names a table.
    pub const fn new(namespace: &'static str, rows: &'static [Rule]) -> Self {
        Self { namespace, rows }
    }
}

impl ProviderRules for RuleTable {
    fn namespace(&self) -> &str {
        self.namespace
    }

    fn rows(&self) -> &[Rule] {
        self.rows
    }
}

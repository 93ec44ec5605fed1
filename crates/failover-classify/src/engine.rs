//! One pass over the text, then rows in the order of precedence: the first that holds decides.

use crate::compile::{Compiled, RuleSetError};
use crate::hints;
use crate::operator::{self, Checked, OperatorRule, OperatorRuleError};
use crate::reading::{self, Present, Reading, Scratch};
use crate::rule::{Family, ProviderRules};
use crate::{Cause, Evidence, Preview, Signal, Tier, Verdict, redact, redact::whole_words, strings};
use failover_types::{FailoverReason, Lane};
use memchr::memmem;
use std::borrow::Cow;

/// A chain of causes is followed this far.
const DEEPEST: usize = 25;

/// All rules, ready to be asked. Building one takes tens of milliseconds; asking it takes microseconds.
#[derive(Debug)]
pub struct Classifier {
    pub(crate) compiled: Compiled,
    pub(crate) operators: Vec<Checked>,
}

/// Which row decides a level.
#[derive(Clone, Copy)]
pub(crate) enum Winner {
    Operator(usize),
    /// The row, and what of it stands in the text (in bytes of the view).
    Row(usize, Option<(usize, usize)>),
    Nothing,
}

impl Classifier {
    /// From tables of rows.
    ///
    /// # Errors
    /// If an id is malformed or used twice, a row outside of `core` names no provider, or a phrase cannot be read.
    pub fn new(rules: &[&dyn ProviderRules]) -> Result<Self, RuleSetError> {
        Ok(Self { compiled: Compiled::new(rules)?, operators: Vec::new() })
    }

    /// All built-in tables: the generic rows and those of every known provider.
    ///
    /// # Errors
    /// Never with the tables of this crate; a test proves it.
    pub fn standard() -> Result<Self, RuleSetError> {
        let tables = crate::standard_tables();
        let tables: Vec<&dyn ProviderRules> =
            tables.iter().map(|table| table as &dyn ProviderRules).collect();
        Self::new(&tables)
    }

    /// Adds the rules of an operator. They replace those that were added before.
    ///
    /// # Errors
    /// If a rule has a malformed or repeated id, no condition, an unknown reason, an impossible status or a bad
    /// regular expression.
    pub fn with_operator_rules(mut self, rules: &[OperatorRule]) -> Result<Self, OperatorRuleError> {
        self.operators = operator::check(rules)?;
        Ok(self)
    }

    /// Says why a call failed.
    pub fn classify(&self, signal: &Signal<'_>) -> Verdict {
        reading::with_scratch(|scratch| {
            let level = self.level(signal, scratch);
            let reading = self.read(signal, level, scratch);
            self.verdict(&reading, signal, self.winner(&reading), level)
        })
    }

    /// Reads one level of a signal: itself, or a cause.
    pub(crate) fn read<'a>(
        &'a self,
        signal: &Signal<'a>,
        level: usize,
        scratch: &'a mut Scratch,
    ) -> Reading<'a> {
        let own = Signal { causes: &[], ..*signal };
        self.compiled.read(levels(signal).nth(level).unwrap_or(own), scratch)
    }

    /// The rows of this classifier, in the order of precedence.
    pub fn rows(&self) -> impl Iterator<Item = &crate::Rule> {
        self.compiled.rows.iter().map(|row| &row.rule)
    }

    /// How many literals a bare scan of the automaton finds in a text: what a benchmark compares with.
    #[doc(hidden)]
    pub fn bare_scan(&self, text: &[u8]) -> usize {
        let mut count = 0;
        self.compiled.automaton.scan(text, |_, _, _| count += 1);
        count
    }

    /// The literals of the automaton, for a benchmark that builds another one of them.
    #[doc(hidden)]
    pub fn literals(&self) -> Vec<Vec<u8>> {
        self.compiled.automaton.literals()
    }

    /// The terms of a signal that have weights: what the table of weights is learned from.
    #[doc(hidden)]
    pub fn terms(&self, signal: &Signal<'_>) -> Vec<String> {
        reading::with_scratch(|scratch| self.read(signal, 0, scratch).spelled_terms())
    }

    /// Bytes, matches and steps that reading the signal itself takes: what a test of bounds compares.
    #[doc(hidden)]
    pub fn steps(&self, signal: &Signal<'_>) -> u64 {
        reading::with_scratch(|scratch| self.read(signal, 0, scratch).steps())
    }

    /// Whether an operator's rule holds, and what of it stands in the body (its bytes).
    pub(crate) fn operator_holds(&self, reading: &Reading<'_>, index: usize) -> Option<Present> {
        let rule = self.operators.get(index)?;
        let signal = &reading.signal;
        if rule.provider.as_deref().is_some_and(|name| signal.provider != Some(name))
            || rule.status.is_some_and(|status| reading.status != Some(status))
        {
            return None;
        }
        let mut span = None;
        if let Some(code) = &rule.code {
            let own = signal.code.is_some_and(|own| own.eq_ignore_ascii_case(code));
            let field = reading.fields().codes().find(|(value, _)| value == code);
            if !own && field.is_none() {
                return None;
            }
            span = field.map(|(_, span)| reading.view().origins(span));
        }
        if let Some(text) = &rule.contains {
            let at = memmem::find(reading.view().bytes(), text.as_bytes())?;
            span = Some(reading.view().origins((at, at + text.len())));
        }
        if let Some(regex) = &rule.regex {
            let head = &reading.source.head;
            let found = regex.find(head).map(|found| found.range());
            let found = found.or_else(|| strings::find(head, &|read| regex.is_match(read)))?;
            span = Some((found.start, found.end));
        }
        Some(Present { span })
    }

    fn winner(&self, reading: &Reading<'_>) -> Winner {
        let mut held = reading
            .candidates()
            .filter_map(|index| self.row(reading, index).map(|(row, span)| (row, Winner::Row(index, span))));
        let first = match held.next() {
            None => Winner::Nothing,
            Some((row, weighed)) if row.rule.family.is_weighed() => {
                held.find(|(next, _)| yields(&row.rule, &next.rule)).map_or(weighed, |(_, next)| next)
            }
            Some((_, first)) => first,
        };
        let local = self
            .decided(first)
            .is_some_and(|row| row.rule.tier == Tier::Local && row.rule.family != Family::NotAFailure);
        if !local
            && let Some(index) =
                (0..self.operators.len()).find(|index| self.operator_holds(reading, *index).is_some())
        {
            return Winner::Operator(index);
        }
        first
    }

    /// The row that decides a level, if a row does.
    fn decided(&self, winner: Winner) -> Option<&crate::compile::Row> {
        match winner {
            Winner::Row(index, _) => self.compiled.rows.get(index),
            Winner::Operator(_) | Winner::Nothing => None,
        }
    }

    /// Whether a row holds, and what of it stands in the text.
    pub(crate) fn row(
        &self,
        reading: &Reading<'_>,
        index: usize,
    ) -> Option<(&crate::compile::Row, Option<(usize, usize)>)> {
        reading.row(self.compiled.rows.get(index)?)
    }

    /// The level that decides, 0 for the signal itself. The outermost level that carries evidence does (C-19): a row
    /// of the message tier or better, else any row that knows a reason. An abort or a local lock yields to evidence
    /// of the provider further in.
    pub(crate) fn level(&self, signal: &Signal<'_>, scratch: &mut Scratch) -> usize {
        if signal.causes.is_empty() {
            return 0;
        }
        let mut known = [const { None }; DEEPEST + 1];
        for (index, (place, own)) in known.iter_mut().zip(levels(signal)).enumerate() {
            let winner = self.winner(&self.read(signal, index, scratch));
            *place = Some((winner, own.status.is_some() || own.code.is_some()));
        }
        let known = || known.iter().flatten();
        let level = (1..=3)
            .rev()
            .find_map(|wanted| known().position(|(winner, _)| self.strength(*winner) >= wanted))
            .unwrap_or(0);
        let rule = |winner: &Winner| self.decided(*winner).map(|row| &row.rule);
        let local = known()
            .nth(level)
            .and_then(|(winner, _)| rule(winner))
            .is_some_and(|rule| rule.reason == FailoverReason::LocalCoordination);
        let by_provider = |(winner, told): &(Winner, bool)| {
            *told
                && rule(winner).is_some_and(|rule| !matches!(rule.reason.lane(), Lane::Raised | Lane::Opaque))
        };
        if local { known().position(by_provider).unwrap_or(level) } else { level }
    }

    /// How much the winner of a level is worth beside those of others.
    fn strength(&self, winner: Winner) -> u8 {
        match winner {
            Winner::Operator(_) => 3,
            Winner::Nothing => 0,
            Winner::Row(..) => self.decided(winner).map_or(0, |row| match row.rule.tier {
                _ if row.rule.reason == FailoverReason::Unclassified => 0,
                _ if matches!(row.rule.family, Family::Abort)
                    || row.rule.reason == FailoverReason::EmptyResponse =>
                {
                    1
                }
                Tier::Local | Tier::Operator | Tier::Code | Tier::Provider | Tier::Message => 3,
                Tier::Status => 2,
                Tier::Fallback => 0,
            }),
        }
    }

    fn verdict(&self, reading: &Reading<'_>, whole: &Signal<'_>, winner: Winner, level: usize) -> Verdict {
        let decided = match winner {
            Winner::Operator(index) => self.operators.get(index).map(|rule| {
                let span = self.operator_holds(reading, index).and_then(|present| present.span);
                (Cow::Owned(rule.id.clone()), Tier::Operator, rule.reason, rule.scope, span)
            }),
            Winner::Row(_, span) => self.decided(winner).map(|row| {
                let span = span.map(|span| reading.view().origins(span));
                (Cow::Borrowed(row.rule.id), row.rule.tier, row.rule.reason, row.rule.scope, span)
            }),
            Winner::Nothing => None,
        };
        let unclassified = "core/unclassified".into();
        let (rule, tier, reason, scope, span) =
            decided.unwrap_or((unclassified, Tier::Fallback, FailoverReason::Unclassified, None, None));
        // Spans are bytes of the signal's body; what a cause said has none.
        let span = span.filter(|_| level == 0);
        let hint = if may_wait(reason) { reading.hint().cloned() } else { None };
        let asks = hint.is_none() && reason.lane() == Lane::RateLimit;
        let hint = if asks { hints::windows(reading.signal.headers) } else { hint };
        let tokens = matches!(reason, FailoverReason::ContextOverflow | FailoverReason::RateLimit)
            .then(|| reading.tokens())
            .flatten();
        let scope = scope.unwrap_or(reason.default_scope());
        let preview = preview(reading, whole);
        Verdict { reason, scope, hint, tokens, evidence: Evidence { rule, tier, span, preview } }
    }
}

/// Whether a row says what the words weigh towards: then it is the row that says it. One that knows nothing better says
/// nothing, and words know no more of a credential than that it is refused.
pub(crate) fn yields(weighed: &crate::Rule, next: &crate::Rule) -> bool {
    let reason =
        if next.reason == FailoverReason::AuthPermanent { FailoverReason::Auth } else { next.reason };
    weighed.reason == reason && next.tier != Tier::Fallback && !next.family.is_weighed()
}

/// The signal itself and its causes, outermost first; one that only repeats the signal is no level.
pub(crate) fn levels<'s>(signal: &Signal<'s>) -> impl Iterator<Item = Signal<'s>> {
    let signal = *signal;
    let causes = signal.causes.iter().take(DEEPEST).filter(move |cause| {
        cause.message.as_bytes() != signal.body || cause.status != signal.status || cause.code != signal.code
    });
    let causes = causes.map(move |Cause { message, status, code }| Signal {
        status: *status,
        code: *code,
        body: message.as_bytes(),
        headers: &[],
        causes: &[],
        ..signal
    });
    std::iter::once(Signal { causes: &[], ..signal }).chain(causes)
}

/// Whether a wait can heal such a failure at all.
fn may_wait(reason: FailoverReason) -> bool {
    matches!(reason.lane(), Lane::RateLimit | Lane::Overloaded | Lane::Transient | Lane::Billing)
}

/// The text, redacted first and then cut. Where there is none, what the causes say: a refused connection has no body.
fn preview(reading: &Reading<'_>, whole: &Signal<'_>) -> Preview {
    let body = reading.signal.body;
    if body.trim_ascii().is_empty() {
        return Preview::of(&redact(&causes(whole)));
    }
    // More than is shown: what is taken out makes room.
    let front = whole_words(body, Preview::LONGEST * 3);
    let text = match &reading.source.head {
        Cow::Borrowed(head) => head.get(..front.len()),
        Cow::Owned(_) => None,
    };
    let text = text.map_or_else(|| String::from_utf8_lossy(front), Cow::Borrowed);
    Preview::of(&redact(&text))
}

/// The outermost cause and the innermost one: what failed, and what was at the bottom of it.
fn causes<'s>(signal: &Signal<'s>) -> Cow<'s, str> {
    let mut said =
        signal.causes.iter().take(DEEPEST).map(|cause| cause.message).filter(|text| !text.trim().is_empty());
    let Some(outer) = said.next() else { return Cow::Borrowed("") };
    match said.next_back() {
        Some(inner) if !outer.contains(inner) => Cow::Owned(format!("{outer}: {inner}")),
        _ => Cow::Borrowed(outer),
    }
}

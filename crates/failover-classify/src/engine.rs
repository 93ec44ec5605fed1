//! One pass over the text, then rows in the order of precedence: the first that holds decides.

use crate::compile::{Compiled, RuleSetError};
use crate::facts::Known;
use crate::fields::Fields;
use crate::operator::{self, Checked, OperatorRule, OperatorRuleError};
use crate::rule::{Fact, Family, Matcher, ProviderRules};
use crate::view::{self, View};
use crate::{Cause, Evidence, RetryHint, Signal, Tier, Tokens, Verdict, hints, redact, tokens};
use failover_types::{FailoverReason, Lane, Scope};
use std::cell::OnceCell;

/// A chain of causes is followed this far.
const DEEPEST: usize = 25;
/// The same literal counts at most this often in one text.
const MOST_HITS: u8 = 24;
/// Bytes of a preview.
const PREVIEW: usize = 240;

/// All rules, ready to be asked. Building one takes tens of milliseconds; asking it takes microseconds.
#[derive(Debug)]
pub struct Classifier {
    compiled: Compiled,
    operators: Vec<Checked>,
}

/// A row that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// The row's id.
    pub rule: String,
    /// Its tier.
    pub tier: Tier,
    /// Its family.
    pub family: Family,
    /// What it means.
    pub reason: FailoverReason,
    /// What it blames.
    pub scope: Scope,
    /// What it asked for, in words.
    pub asked: String,
    /// Where that is known from.
    pub source: String,
    /// What matched, in bytes of the body.
    pub span: Option<(usize, usize)>,
}

/// Everything that matched, in the order of precedence, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The verdict, the same that [`Classifier::classify`] gives.
    pub verdict: Verdict,
    /// All rows that matched, the winner first.
    pub matched: Vec<Match>,
    /// Why the winner won, in words.
    pub why: String,
    /// The status that counted: the signal's own, or one read from the text.
    pub status: Option<u16>,
    /// What stood in code positions.
    pub codes: Vec<String>,
}

/// A literal in the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    literal: u32,
    start: u32,
    end: u32,
}

/// One level of the signal, read.
struct Reading<'s> {
    signal: Signal<'s>,
    view: View,
    fields: Fields,
    phrases: Vec<(u32, (usize, usize))>,
    status: Option<u16>,
    hint: Option<RetryHint>,
    tokens: OnceCell<Option<Tokens>>,
}

impl Reading<'_> {
    /// Read when first asked for: most failures are not about tokens.
    fn tokens(&self) -> Option<Tokens> {
        *self.tokens.get_or_init(|| std::str::from_utf8(self.view.slice(0..4096)).ok().and_then(tokens::read))
    }
}

/// Something holds, and where in the text, if it stands in the text.
#[derive(Clone, Copy)]
struct Found {
    span: Option<(usize, usize)>,
}

/// Which row decided.
#[derive(Clone, Copy)]
enum Winner {
    Operator(usize),
    Row(usize),
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
        let readings = self.levels(signal);
        let (level, winner) = self.decide(&readings);
        self.verdict(readings.get(level), winner, level)
    }

    /// The same, with everything that matched.
    pub fn explain(&self, signal: &Signal<'_>) -> Explanation {
        let readings = self.levels(signal);
        let (level, winner) = self.decide(&readings);
        let verdict = self.verdict(readings.get(level), winner, level);
        let mut matched = Vec::new();
        for reading in readings.iter().skip(level).chain(readings.iter().take(level)) {
            for index in 0..self.operators.len() {
                if let Some(found) = self.operator_match(reading, index) {
                    matched.push(found);
                }
            }
            for index in self.candidates(reading) {
                if let Some((row, span)) = self.row_holds(reading, index) {
                    let span = (verdict.evidence.rule != row.rule.id || level == 0)
                        .then(|| span.map(|(start, end)| origin(&reading.view, start, end)))
                        .flatten();
                    matched.push(Match {
                        rule: row.rule.id.to_owned(),
                        tier: row.rule.tier,
                        family: row.rule.family,
                        reason: row.rule.reason,
                        scope: row.rule.scope.unwrap_or(row.rule.reason.default_scope()),
                        asked: row.rule.matcher.to_string(),
                        source: row.rule.evidence.to_owned(),
                        span,
                    });
                }
            }
        }
        let why = match (matched.first(), matched.get(1)) {
            (None, _) => "no row matched".to_owned(),
            (Some(first), None) => format!("{} is the only row that matched", first.rule),
            (Some(first), Some(second)) if level > 0 => {
                format!("{} decided at cause {level} of the chain, before {}", first.rule, second.rule)
            }
            (Some(first), Some(second)) if first.tier != second.tier => {
                format!(
                    "{}: tier {:?} comes before {:?} of {}",
                    first.rule, first.tier, second.tier, second.rule
                )
            }
            (Some(first), Some(second)) if first.family != second.family => {
                format!(
                    "{}: family {:?} comes before {:?} of {}",
                    first.rule, first.family, second.family, second.rule
                )
            }
            (Some(first), Some(second)) => {
                format!(
                    "{} stands before {} in one family; both mean {}",
                    first.rule, second.rule, first.reason
                )
            }
        };
        let reading = readings.get(level);
        Explanation {
            verdict,
            matched,
            why,
            status: reading.and_then(|reading| reading.status),
            codes: reading
                .map(|reading| {
                    reading.fields.codes.iter().map(|code| redact(&code.value).into_owned()).collect()
                })
                .unwrap_or_default(),
        }
    }

    /// The rows of this classifier, in the order of precedence.
    pub fn rows(&self) -> impl Iterator<Item = &crate::Rule> {
        self.compiled.rows.iter().map(|row| &row.rule)
    }

    /// The automaton alone over a text: what a benchmark compares with.
    #[doc(hidden)]
    pub fn bare_scan(&self, text: &[u8]) -> usize {
        self.compiled.automaton.find_overlapping_iter(text).count()
    }

    fn levels<'s>(&self, signal: &Signal<'s>) -> Vec<Reading<'s>> {
        let mut readings = Vec::with_capacity(1 + signal.causes.len().min(DEEPEST));
        let own = Signal { causes: &[], ..*signal };
        readings.push(self.read(own));
        for cause in signal.causes.iter().take(DEEPEST) {
            let Cause { message, status, code } = *cause;
            if message.as_bytes() == signal.body && status == signal.status && code == signal.code {
                continue;
            }
            let level =
                Signal { status, code, body: message.as_bytes(), headers: &[], causes: &[], ..*signal };
            readings.push(self.read(level));
        }
        readings
    }

    fn read<'s>(&self, signal: Signal<'s>) -> Reading<'s> {
        let (head, tail) = view::bounded(signal.body);
        let view = View::of(&head, tail.as_ref().map(|(at, text)| (*at, text.as_ref())));
        let source = |start: usize, end: usize| {
            cut(&head, tail.as_ref().map(|(at, text)| (*at, text.as_ref())), start, end)
        };
        let mut fields = Fields::of(&view, &source);
        let (hits, counts) = self.scan(&view);
        let phrases = self.phrases(&hits, &counts, &view, &source);
        for hit in &hits {
            let words = self.compiled.code_words.get(hit.literal as usize).map_or(&[][..], Vec::as_slice);
            if words.is_empty() {
                continue;
            }
            let (start, end) = origin(&view, hit.start as usize, hit.end as usize);
            let around = source(start.saturating_sub(1), end + 1);
            // The view folds `_` and `-`: only the source knows whether the word really ends here.
            for word in words.iter().filter(|word| stands_alone(&around, word)) {
                fields.codes.push(crate::fields::Field {
                    value: word.to_ascii_lowercase(),
                    span: (hit.start as usize, hit.end as usize),
                });
            }
        }
        let status = signal
            .status
            .filter(|status| *status >= 400)
            // A relay's 5xx around the 4xx that it was answered with.
            .map(|status| {
                if status >= 500 {
                    fields.status().filter(|inner| *inner < 500).unwrap_or(status)
                } else {
                    status
                }
            })
            .or_else(|| {
                signal.code.and_then(|code| code.parse().ok()).filter(|code| (400..600).contains(code))
            })
            .or_else(|| fields.status())
            .or(signal.status);
        let hint = hints::read(&signal, &view, &source);
        Reading { signal, view, fields, phrases, status, hint, tokens: OnceCell::new() }
    }

    /// Every literal in the text, by literal and place, and how often each was found.
    fn scan(&self, view: &View) -> (Vec<Hit>, Vec<u8>) {
        let text = view.bytes();
        let mut counts = vec![0_u8; self.compiled.open.len()];
        let mut hits = Vec::with_capacity(32);
        for found in self.compiled.automaton.find_overlapping_iter(text) {
            let literal = found.pattern().as_usize();
            let Some(count) = counts.get_mut(literal) else { continue };
            if *count >= MOST_HITS || !self.whole(text, literal, found.start(), found.end()) {
                continue;
            }
            *count += 1;
            let (Ok(literal), Ok(start), Ok(end)) =
                (u32::try_from(literal), u32::try_from(found.start()), u32::try_from(found.end()))
            else {
                continue;
            };
            hits.push(Hit { literal, start, end });
        }
        hits.sort_unstable();
        (hits, counts)
    }

    /// Whether the literal stands as whole words.
    fn whole(&self, text: &[u8], literal: usize, start: usize, end: usize) -> bool {
        let (open_left, open_right) = self.compiled.open.get(literal).copied().unwrap_or_default();
        let word = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
        let left =
            open_left || !word(text.get(start)) || !word(start.checked_sub(1).and_then(|at| text.get(at)));
        let right =
            open_right || !word(end.checked_sub(1).and_then(|at| text.get(at))) || !word(text.get(end));
        left && right
    }

    fn phrases(
        &self,
        hits: &[Hit],
        counts: &[u8],
        view: &View,
        source: &impl Fn(usize, usize) -> String,
    ) -> Vec<(u32, (usize, usize))> {
        let text = view.bytes();
        let mut found: Vec<(u32, (usize, usize))> = Vec::new();
        for hit in hits {
            for &phrase in self.compiled.begins.get(hit.literal as usize).into_iter().flatten() {
                if found.iter().any(|(id, _)| *id == phrase) {
                    continue;
                }
                let Some(parts) = self.compiled.phrases.get(phrase as usize).map(|phrase| &phrase.parts)
                else {
                    continue;
                };
                if parts.len() == 1 && is_identifier(view, source, *hit) {
                    continue;
                }
                if let Some(end) = rest_of(parts.get(1..).unwrap_or_default(), hits, counts, hit.end, text) {
                    found.push((phrase, (hit.start as usize, end as usize)));
                }
            }
        }
        found
    }

    /// Rows that may hold, in the order of precedence.
    fn candidates(&self, reading: &Reading<'_>) -> Vec<usize> {
        let compiled = &self.compiled;
        let mut rows: Vec<u32> = compiled.always.clone();
        for (phrase, _) in &reading.phrases {
            rows.extend(compiled.rows_of_phrase.get(*phrase as usize).into_iter().flatten());
        }
        let own = reading.signal.code.map(str::to_ascii_lowercase);
        let headers = header_codes(&reading.signal);
        let codes = reading.fields.codes.iter().map(|field| field.value.as_str());
        for code in codes.chain(own.as_deref()).chain(headers.iter().map(String::as_str)) {
            rows.extend(compiled.rows_of_code.get(code).into_iter().flatten());
            rows.extend(
                compiled
                    .rows_of_prefix
                    .iter()
                    .filter(|(prefix, _)| code.starts_with(prefix))
                    .map(|(_, row)| row),
            );
        }
        rows.sort_unstable();
        rows.dedup();
        rows.into_iter().map(|row| row as usize).collect()
    }

    fn row_holds(
        &self,
        reading: &Reading<'_>,
        index: usize,
    ) -> Option<(&crate::compile::Row, Option<(usize, usize)>)> {
        let row = self.compiled.rows.get(index)?;
        let matcher: &Matcher = &row.rule.matcher;
        let signal = &reading.signal;
        if !matcher.providers.is_empty() && !matcher.providers.iter().any(|name| is_provider(signal, name)) {
            return None;
        }
        if !matcher.surfaces.is_empty() && !matcher.surfaces.contains(&signal.surface) {
            return None;
        }
        if matcher.status.is_some_and(|set| !set.holds(reading.status)) {
            return None;
        }
        let phrase = |id: &u32| reading.phrases.iter().find(|(found, _)| found == id).map(|(_, span)| *span);
        let mut span = None;
        if !row.any.is_empty() {
            span = Some(row.any.iter().filter_map(phrase).min()?);
        }
        for id in &row.all {
            let found = phrase(id)?;
            span = span.or(Some(found));
        }
        if row.none.iter().any(|id| phrase(id).is_some()) {
            return None;
        }
        if !matcher.codes.is_empty() {
            let found = code_of(reading, matcher.codes)?;
            span = span.or(found.span);
        }
        if !matcher.no_codes.is_empty() && code_of(reading, matcher.no_codes).is_some() {
            return None;
        }
        if let Some((name, part)) = matcher.header {
            let has = signal.headers.iter().any(|(key, value)| {
                key.eq_ignore_ascii_case(name) && view::find_ignore_case_or_empty(value, part)
            });
            if !has {
                return None;
            }
        }
        if !matcher.facts.is_empty() {
            let known = Known {
                view: &reading.view,
                status: reading.status,
                hint: reading.hint.as_ref(),
                tokens: matcher.facts.contains(&Fact::AloneTooLarge).then(|| reading.tokens()).flatten(),
                body_len: signal.body.len(),
                body: front(signal.body),
                text_only: signal.code.is_none()
                    && signal.status.is_none_or(|status| status < 100)
                    && !matches!(signal.surface, crate::Surface::Transport | crate::Surface::Cancelled),
            };
            if !matcher.facts.iter().all(|fact: &Fact| known.holds(*fact)) {
                return None;
            }
        }
        Some((row, span))
    }

    fn operator_holds(&self, reading: &Reading<'_>, index: usize) -> Option<Found> {
        let rule = self.operators.get(index)?;
        let signal = &reading.signal;
        if rule.provider.as_deref().is_some_and(|name| !is_provider(signal, name))
            || rule.status.is_some_and(|status| reading.status != Some(status))
        {
            return None;
        }
        let mut span = None;
        if let Some(code) = &rule.code {
            let own = signal.code.is_some_and(|own| own.eq_ignore_ascii_case(code));
            let field = reading.fields.codes.iter().find(|field| field.value == *code);
            if !own && field.is_none() {
                return None;
            }
            span = field.map(|field| origin(&reading.view, field.span.0, field.span.1));
        }
        if let Some(text) = &rule.contains {
            let at = find(reading.view.bytes(), text.as_bytes())?;
            span = Some(origin(&reading.view, at, at + text.len()));
        }
        if let Some(regex) = &rule.regex {
            let (head, _) = view::bounded(signal.body);
            let found = regex.find(&head)?;
            span = Some((found.start(), found.end()));
        }
        Some(Found { span })
    }

    fn operator_match(&self, reading: &Reading<'_>, index: usize) -> Option<Match> {
        let span = self.operator_holds(reading, index)?.span;
        let rule = self.operators.get(index)?;
        Some(Match {
            rule: rule.id.clone(),
            tier: Tier::Operator,
            family: Family::NotAFailure,
            reason: rule.reason,
            scope: rule.scope.unwrap_or(rule.reason.default_scope()),
            asked: "an operator's rule".to_owned(),
            source: "config".to_owned(),
            span,
        })
    }

    fn winner(&self, reading: &Reading<'_>) -> Winner {
        let first =
            self.candidates(reading).into_iter().find(|index| self.row_holds(reading, *index).is_some());
        let local = first
            .and_then(|index| self.compiled.rows.get(index))
            .is_some_and(|row| row.rule.tier == Tier::Local && row.rule.family != Family::NotAFailure);
        if !local
            && let Some(index) =
                (0..self.operators.len()).find(|index| self.operator_holds(reading, *index).is_some())
        {
            return Winner::Operator(index);
        }
        first.map_or(Winner::Nothing, Winner::Row)
    }

    /// The outermost level that carries evidence decides (C-19): a row of the message tier or better, else any
    /// row that knows a reason. An abort or a local lock yields to evidence of the provider further in.
    fn decide(&self, readings: &[Reading<'_>]) -> (usize, Winner) {
        let winners: Vec<Winner> = readings.iter().map(|reading| self.winner(reading)).collect();
        let strength = |winner: &Winner| match winner {
            Winner::Operator(_) => 3,
            Winner::Nothing => 0,
            Winner::Row(index) => self.compiled.rows.get(*index).map_or(0, |row| match row.rule.tier {
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
        };
        let provider_evidence = || {
            readings.iter().zip(&winners).position(|(reading, winner)| {
                let row = match winner {
                    Winner::Row(index) => self.compiled.rows.get(*index),
                    Winner::Operator(_) | Winner::Nothing => None,
                };
                let told = reading.signal.status.is_some() || reading.signal.code.is_some();
                told && row.is_some_and(|row| {
                    row.rule.reason.lane() != Lane::Raised && row.rule.reason.lane() != Lane::Opaque
                })
            })
        };
        let best = (1..=3_u8).rev().find_map(|wanted| {
            winners.iter().position(|winner| {
                if wanted == 3 { strength(winner) == 3 } else { strength(winner) >= wanted }
            })
        });
        let level = best.unwrap_or(0);
        let winner = winners.get(level).copied().unwrap_or(Winner::Nothing);
        if let Winner::Row(index) = winner
            && readings.len() > 1
            && self
                .compiled
                .rows
                .get(index)
                .is_some_and(|row| row.rule.reason == FailoverReason::LocalCoordination)
            && let Some(other) = provider_evidence()
        {
            return (other, winners.get(other).copied().unwrap_or(Winner::Nothing));
        }
        (level, winner)
    }

    fn verdict(&self, reading: Option<&Reading<'_>>, winner: Winner, level: usize) -> Verdict {
        let (rule, tier, reason, scope, span) = match (winner, reading) {
            (Winner::Operator(index), Some(reading)) => {
                let span = self.operator_holds(reading, index).and_then(|found| found.span);
                match self.operators.get(index) {
                    Some(rule) => (rule.id.clone(), Tier::Operator, rule.reason, rule.scope, span),
                    None => nothing(),
                }
            }
            (Winner::Row(index), Some(reading)) => match self.row_holds(reading, index) {
                Some((row, span)) => {
                    let span = span.map(|(start, end)| origin(&reading.view, start, end));
                    (row.rule.id.to_owned(), row.rule.tier, row.rule.reason, row.rule.scope, span)
                }
                None => nothing(),
            },
            (Winner::Nothing, _) | (_, None) => nothing(),
        };
        // Spans are bytes of the signal's body; what a cause said has none.
        let span = span.filter(|_| level == 0);
        let hint = reading.and_then(|reading| reading.hint.clone()).filter(|_| may_wait(reason));
        let tokens = reading
            .filter(|_| matches!(reason, FailoverReason::ContextOverflow | FailoverReason::RateLimit))
            .and_then(Reading::tokens);
        let scope = scope.unwrap_or(reason.default_scope());
        let preview = reading.map_or_else(String::new, |reading| preview(reading.signal.body));
        Verdict { reason, scope, hint, tokens, evidence: Evidence { rule, tier, span, preview } }
    }
}

fn nothing() -> (String, Tier, FailoverReason, Option<Scope>, Option<(usize, usize)>) {
    ("core/unclassified".to_owned(), Tier::Fallback, FailoverReason::Unclassified, None, None)
}

/// Whether a wait can heal such a failure at all.
fn may_wait(reason: FailoverReason) -> bool {
    matches!(reason.lane(), Lane::RateLimit | Lane::Overloaded | Lane::Transient | Lane::Billing)
}

/// Whether `word` stands in `around`, written exactly so, with no letter, digit, `_` or `-` beside it.
fn stands_alone(around: &str, word: &str) -> bool {
    let joins = |ch: Option<char>| ch.is_some_and(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-'));
    around
        .split_once(word)
        .is_some_and(|(before, after)| !joins(before.chars().next_back()) && !joins(after.chars().next()))
}

/// Where the phrase ends whose remaining parts are `parts`, if they follow within their gaps.
fn rest_of(parts: &[(Vec<u32>, u32)], hits: &[Hit], counts: &[u8], end: u32, text: &[u8]) -> Option<u32> {
    let Some(((choices, reach), rest)) = parts.split_first() else { return Some(end) };
    let last = end.saturating_add(*reach);
    let present = |literal: &&u32| counts.get(**literal as usize).is_some_and(|count| *count > 0);
    choices.iter().filter(present).find_map(|&literal| {
        let from =
            hits.partition_point(|hit| hit.literal < literal || hit.literal == literal && hit.start < end);
        hits.get(from..)?
            .iter()
            .take_while(|hit| hit.literal == literal && hit.start <= last)
            .filter(|hit| one_field(text.get(end as usize..hit.start as usize).unwrap_or_default()))
            .find_map(|hit| rest_of(rest, hits, counts, hit.end, text))
    })
}

/// `rate_limit_exceeded` is a code, not the words; the view alone cannot tell.
fn is_identifier(view: &View, source: &impl Fn(usize, usize) -> String, hit: Hit) -> bool {
    let (start, end) = (hit.start as usize, hit.end as usize);
    if !view.slice(start..end).contains(&b' ') {
        return false;
    }
    let (start, end) = origin(view, start, end);
    let text = source(start, end);
    text.contains('_') && !text.contains(char::is_whitespace)
}

/// Whether a gap stays inside one string: it does not cross from one field of an object into the next.
fn one_field(gap: &[u8]) -> bool {
    !gap.windows(4).any(|window| {
        matches!(
            window,
            [b'"' | b'\'', b',' | b':', b'"' | b'\'' | b'{' | b'[', _]
                | [b'"' | b'\'', b',' | b':', b' ', b'"' | b'\'' | b'{' | b'[']
        )
    })
}

fn origin(view: &View, start: usize, end: usize) -> (usize, usize) {
    let last = end.saturating_sub(1).max(start);
    (view.origin(start), view.origin(last) + 1)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// A part of what was read of the body; ends are moved to char boundaries.
fn cut(head: &str, tail: Option<(usize, &str)>, start: usize, end: usize) -> String {
    let (base, text) = match tail {
        Some((at, text)) if start >= at => (at, text),
        _ => (0, head),
    };
    let start = crate::facts::floor(text, start.saturating_sub(base));
    let mut end = end.saturating_sub(base).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    text.get(start..end).unwrap_or_default().to_owned()
}

fn is_provider(signal: &Signal<'_>, name: &str) -> bool {
    signal.provider.is_some_and(|provider| {
        let bytes = provider.as_bytes();
        bytes.get(..name.len()).is_some_and(|front| front.eq_ignore_ascii_case(name.as_bytes()))
            && bytes.get(name.len()).is_none_or(|next| *next == b'-')
    })
}

/// Headers that carry a code.
fn header_codes(signal: &Signal<'_>) -> Vec<String> {
    const NAMES: [&str; 4] = ["x-amzn-errortype", "x-ms-error-code", "x-error-code", "grpc-status"];
    signal
        .headers
        .iter()
        .filter(|(name, _)| NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)))
        .filter_map(|(_, value)| value.split([':', ',']).next().map(|code| code.trim().to_ascii_lowercase()))
        .collect()
}

fn code_of(reading: &Reading<'_>, wanted: &[&str]) -> Option<Found> {
    let is = |code: &str| {
        wanted.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(prefix) => {
                code.len() >= prefix.len()
                    && code
                        .as_bytes()
                        .get(..prefix.len())
                        .is_some_and(|front| front.eq_ignore_ascii_case(prefix.as_bytes()))
            }
            None => wanted.eq_ignore_ascii_case(code),
        })
    };
    if reading.signal.code.is_some_and(is) || header_codes(&reading.signal).iter().any(|code| is(code)) {
        return Some(Found { span: None });
    }
    reading.fields.codes.iter().find(|field| is(&field.value)).map(|field| Found { span: Some(field.span) })
}

/// The valid text at the front of a body, as far as facts look.
fn front(body: &[u8]) -> &str {
    let bytes = body.get(..body.len().min(4096)).unwrap_or_default();
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// The text, redacted first and then cut.
fn preview(body: &[u8]) -> String {
    // Twice the length, so that no secret is cut before it is seen whole.
    let front = body.get(..body.len().min(PREVIEW * 3)).unwrap_or_default();
    let text = String::from_utf8_lossy(front);
    let clean = redact(&text);
    let cut = crate::facts::floor(&clean, PREVIEW);
    clean.get(..cut).unwrap_or_default().trim().to_owned()
}

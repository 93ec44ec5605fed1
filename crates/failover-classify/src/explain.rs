//! Everything that matched, and why the winner won.

use crate::engine::{Classifier, levels, yields};
use crate::reading::{self, Reading};
use crate::rule::Family;
use crate::{Signal, Tier, Verdict, redact};
use failover_types::{FailoverReason, Scope};

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
    /// What matched, in bytes of the body; `None` for headers, status, code, and for what a cause said.
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

impl Classifier {
    /// The verdict, with everything that matched.
    pub fn explain(&self, signal: &Signal<'_>) -> Explanation {
        let verdict = self.classify(signal);
        reading::with_scratch(|scratch| {
            let level = self.level(signal, scratch);
            let mut matched = Vec::new();
            for index in (level..levels(signal).count()).chain(0..level) {
                let reading = self.read(signal, index, scratch);
                self.matches(&reading, index == 0, &mut matched);
            }
            let reading = self.read(signal, level, scratch);
            let codes = reading.fields().codes().map(|(code, _)| redact(code).into_owned()).collect();
            Explanation { why: why(&matched, level), matched, status: reading.status, codes, verdict }
        })
    }

    /// The matches of one level. Spans are bytes of the signal's body; what a cause said has none.
    fn matches(&self, reading: &Reading<'_>, is_body: bool, matched: &mut Vec<Match>) {
        for index in 0..self.operators.len() {
            let found = self.operator_match(reading, index);
            matched.extend(found.map(|found| Match { span: found.span.filter(|_| is_body), ..found }));
        }
        let first = matched.len();
        let mut weighed: Option<&crate::Rule> = None;
        for (row, span) in reading.candidates().filter_map(|index| self.row(reading, index)) {
            let rule = &row.rule;
            // Words are weighed only where nothing above holds.
            if rule.family.is_weighed() && matched.len() > first {
                continue;
            }
            let place = match weighed.take_if(|weighed| yields(weighed, rule)) {
                Some(weighed) => {
                    // They add nothing to a wording that stands first anyway.
                    let is_next = rule.tier == Tier::Message && matched.len() == first + 1;
                    if weighed.family == Family::Outweighs && is_next {
                        matched.truncate(first);
                    }
                    first
                }
                None => matched.len(),
            };
            if rule.family.is_weighed() {
                weighed = Some(rule);
            }
            let asked = if rule.family.is_weighed() {
                reading.said_for(rule.reason)
            } else {
                rule.matcher.to_string()
            };
            matched.insert(
                place,
                Match {
                    rule: rule.id.to_owned(),
                    tier: rule.tier,
                    family: rule.family,
                    reason: rule.reason,
                    scope: rule.scope.unwrap_or(rule.reason.default_scope()),
                    asked,
                    source: rule.evidence.to_owned(),
                    span: span.filter(|_| is_body).map(|span| reading.view().origins(span)),
                },
            );
        }
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
}

/// Why the first of the matches won, in words.
fn why(matched: &[Match], level: usize) -> String {
    match (matched.first(), matched.get(1)) {
        (None, _) => "no row matched".to_owned(),
        (Some(first), None) => format!("{} is the only row that matched", first.rule),
        (Some(first), Some(second)) if level > 0 => {
            format!("{} decided at cause {level} of the chain, before {}", first.rule, second.rule)
        }
        (Some(first), Some(second)) if second.family.is_weighed() => {
            format!("{}: the words weigh towards {}, too", first.rule, first.reason)
        }
        (Some(first), Some(second)) if first.tier != second.tier => {
            format!("{}: tier {:?} comes before {:?} of {}", first.rule, first.tier, second.tier, second.rule)
        }
        (Some(first), Some(second)) if first.tier == Tier::Operator => {
            format!("{} stands before {} in the config", first.rule, second.rule)
        }
        (Some(first), Some(second)) if first.family != second.family => {
            format!(
                "{}: family {:?} comes before {:?} of {}",
                first.rule, first.family, second.family, second.rule
            )
        }
        (Some(first), Some(second)) => {
            format!("{} stands before {} in one family; both mean {}", first.rule, second.rule, first.reason)
        }
    }
}

//! What the words of a text weigh together, where no row knows its wording.
//!
//! Rows name wordings, and nobody can list them all: a text that says "your prepaid purse is empty" in words that no
//! row has still holds words that mostly stand in texts about money. Each word has a weight for each reason, learned
//! from the labelled texts of `fixtures/wordings` and `fixtures/corpus` (`cargo xtask weights` writes the table). The
//! weights of a text's words are added up, and the reason that leads by far enough is taken. Rows that ask for it
//! ([`crate::Fact::Weighs`]) stand behind every wording and every type that an error names, and before its bare status.

use crate::reading::Reading;
use failover_types::FailoverReason;
use std::sync::LazyLock;

/// A line that names the reasons, then lines of a term and its weight for each; [`BIAS`] stands for no term.
const TABLE: &str = include_str!("weights.tsv");
/// The line of what every text weighs.
const BIAS: &str = "-";
/// A word counts by this many chars of its front: endings differ more than meanings.
const STEM: usize = 7;
/// Capitals are looked for in so many chars of a word's front: what is longer is no name of a code.
const SPLIT: usize = 48;
/// No more terms of a text are looked at.
const MOST: usize = 256;
/// No more terms are taken from the table; a bit each says whether a term was met.
const LONGEST: usize = 16_384;
const REASONS: usize = FailoverReason::ALL.len();
/// No sum leads by so much.
const NEVER: i32 = 1000;

/// By how much the first reason must lead the second, as a multiple of the root of the number of known terms.
/// `cargo xtask weights` prints what each multiple gains and costs.
fn wanted(status: Option<u16>, reason: FailoverReason) -> i32 {
    use FailoverReason::{
        Aborted, Auth, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Format, LocalCoordination,
        ServerError, SessionExpired, Timeout,
    };
    match status {
        // A key that is named beside it is not refused.
        Some(429) if reason == Auth => NEVER,
        // Nothing but the words says that something failed, or the status says why, and is seldom wrong.
        None | Some(..=399 | 401 | 402 | 407 | 408 | 429 | 504 | 529) => 8,
        // These say that it was the request: "failed" and "unexpected" stand in any report of it.
        Some(400..=499)
            if matches!(reason, ServerError | Timeout | EmptyResponse | LocalCoordination | Aborted) =>
        {
            6
        }
        // These say that it was not: what another model could answer is not handed to the caller for a few words.
        Some(500..)
            if matches!(
                reason,
                Format | ContextOverflow | ContentRefusal | SessionExpired | LocalCoordination | Aborted
            ) =>
        {
            8
        }
        // A credential is not put aside for a few words, either.
        Some(500..) if matches!(reason, Auth | Billing) => 6,
        // These say that it failed.
        Some(_) => 3,
    }
}

/// Fewer known terms say nothing.
const FEWEST: i32 = 2;
/// And fewer than these must lead as much as these: three words that lean are no evidence.
const FULL: i32 = 8;

struct Term {
    text: &'static str,
    /// Read when a text holds the term: few do, and reading them all takes milliseconds.
    weights: &'static str,
}

struct Table {
    /// The columns.
    reasons: Vec<FailoverReason>,
    /// In the order of their texts.
    terms: Vec<Term>,
    bias: [i8; REASONS],
}

static WEIGHTS: LazyLock<Table> = LazyLock::new(|| Table::read(TABLE));

impl Table {
    /// A line that cannot be read is left out; a test proves that there is none.
    fn read(table: &'static str) -> Self {
        let mut lines = table.lines().filter(|line| !line.starts_with('#'));
        let columns = lines.next().unwrap_or_default().split(' ');
        let reasons = columns.map_while(|name| name.parse().ok()).take(REASONS).collect();
        let mut terms: Vec<Term> = lines.filter_map(Term::read).collect();
        // Sorted as it is written, so this only looks.
        terms.sort_unstable_by_key(|term| term.text);
        let at = terms.binary_search_by_key(&BIAS, |term| term.text);
        let bias = at.map_or([0; REASONS], |at| terms.remove(at).weights());
        terms.truncate(LONGEST);
        Self { reasons, terms, bias }
    }

    fn find(&self, term: &str) -> Option<(usize, &Term)> {
        let at = self.terms.binary_search_by_key(&term, |known| known.text).ok()?;
        self.terms.get(at).map(|term| (at, term))
    }
}

impl Term {
    fn read(line: &'static str) -> Option<Self> {
        line.split_once('\t').map(|(text, weights)| Self { text, weights })
    }

    /// One for each column.
    fn weights(&self) -> [i8; REASONS] {
        let (mut weights, mut column, mut sign) = ([0_i8; REASONS], 0, 1);
        // By hand: `parse` would take longer than all the rest of weighing.
        for byte in self.weights.bytes() {
            match (byte, weights.get_mut(column)) {
                (b' ', _) => (column, sign) = (column + 1, 1),
                (b'-', _) => sign = -1,
                (b'0'..=b'9', Some(weight)) => {
                    let digit = i8::try_from(byte - b'0').unwrap_or_default();
                    *weight = weight.wrapping_mul(10).wrapping_add(sign * digit);
                }
                _ => {}
            }
        }
        weights
    }
}

/// What the words of a text come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weighed {
    pub(crate) reason: FailoverReason,
    /// The word that says most for it, in bytes of the view; `None` if it stands in the signal's code.
    pub(crate) span: Option<(usize, usize)>,
}

impl Reading<'_> {
    /// The reason that the words weigh towards, if one leads.
    pub(crate) fn weighed(&self) -> Option<Weighed> {
        *self.weighed.get_or_init(|| self.weigh())
    }

    fn weigh(&self) -> Option<Weighed> {
        let failed = self.status.is_some_and(|status| status >= 400);
        // What a model wrote may hold any words.
        if self.heard().answer && !failed {
            return None;
        }
        let mut sums = WEIGHTS.bias.map(i32::from);
        let mut strongest = [(0, None); REASONS];
        let mut met = [0_u64; LONGEST / 64];
        let mut count = 0_i32;
        self.terms(|term, span| {
            let Some((index, known)) = WEIGHTS.find(term) else { return };
            let Some(bits) = met.get_mut(index / 64).filter(|bits| **bits & 1 << (index % 64) == 0) else {
                return;
            };
            *bits |= 1 << (index % 64);
            count += 1;
            for ((sum, best), weight) in sums.iter_mut().zip(&mut strongest).zip(known.weights()) {
                *sum += i32::from(weight);
                if weight > best.0 {
                    *best = (weight, span);
                }
            }
        });
        let (mut first, mut second) = (None::<(i32, usize)>, None::<i32>);
        for (column, (reason, sum)) in WEIGHTS.reasons.iter().zip(sums).enumerate() {
            match first {
                // A status that says that the call failed leaves no room for "nothing happened".
                _ if failed && *reason == FailoverReason::Unclassified => {}
                Some((best, _)) if sum <= best => second = second.max(Some(sum)),
                _ => {
                    second = second.max(first.map(|(best, _)| best));
                    first = Some((sum, column));
                }
            }
        }
        let (best, column) = first?;
        let reason = *WEIGHTS.reasons.get(column)?;
        let (lead, wanted) = (best - second?, wanted(self.status, reason));
        let leads = count >= FEWEST && lead * lead >= wanted * wanted * (count.max(FULL) + 1);
        let span = strongest.get(column).and_then(|(_, span)| *span);
        (leads && reason != FailoverReason::Unclassified).then_some(Weighed { reason, span })
    }

    /// The words that say most for a reason, in words: what a person is told.
    pub(crate) fn said_for(&self, reason: FailoverReason) -> String {
        const TOLD: usize = 6;
        let Some(column) = WEIGHTS.reasons.iter().position(|known| *known == reason) else {
            return String::new();
        };
        let mut said: Vec<(i8, &str)> = Vec::new();
        self.terms(|term, _| {
            let weight =
                WEIGHTS.find(term).and_then(|(_, known)| Some((*known.weights().get(column)?, known.text)));
            said.extend(weight.filter(|weight| weight.0 > 0 && !said.contains(weight)));
        });
        said.sort_unstable_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let told: Vec<String> =
            said.iter().take(TOLD).map(|(weight, text)| format!("{text} {weight}")).collect();
        format!("words that weigh towards it: {}", told.join(", "))
    }

    /// The terms of the signal's code and of the text, with their places in the view.
    pub(crate) fn terms(&self, mut found: impl FnMut(&str, Option<(usize, usize)>)) {
        if let Some(code) = self.signal.code {
            let lower = crate::lower::Lower::<{ crate::fields::LONGEST }>::of(code);
            let upper = |at: usize| code.as_bytes().get(at).is_some_and(u8::is_ascii_uppercase);
            each(lower.as_str(), upper, |term, _| found(term, None));
        }
        let view = self.view();
        let upper =
            |at: usize| self.source.byte(view.origin(at)).is_some_and(|byte| byte.is_ascii_uppercase());
        let text = std::str::from_utf8(view.bytes()).unwrap_or_default();
        each(text, upper, |term, span| found(term, Some(span)));
    }
}

/// Finds the terms of a text: the front of each word, and pairs of chars of scripts that write no spaces. `upper` says
/// whether a byte of the text was an upper-case letter before it was folded: `quotaExceeded` is two words.
fn each(text: &str, upper: impl Fn(usize) -> bool, mut found: impl FnMut(&str, (usize, usize))) {
    let mut left = MOST;
    let mut is_in_pair = false;
    let mut rest = text.char_indices().peekable();
    while let Some((start, ch)) = rest.next() {
        if left == 0 {
            return;
        }
        if !ch.is_alphabetic() {
            continue;
        }
        if is_dense(ch) {
            let next = rest.peek().filter(|(_, next)| is_dense(*next) && next.is_alphabetic());
            let end = next.map_or(start + ch.len_utf8(), |(at, next)| at + next.len_utf8());
            // The last char of a run was in a pair already.
            if next.is_some() || !is_in_pair {
                left -= 1;
                found(text.get(start..end).unwrap_or_default(), (start, end));
            }
            is_in_pair = next.is_some();
            continue;
        }
        let (mut end, mut count, mut stem) = (start + ch.len_utf8(), 1, start + ch.len_utf8());
        while let Some((at, next)) = rest.next_if(|(at, next)| {
            next.is_alphabetic() && !is_dense(*next) && (count >= SPLIT || !upper(*at) || upper(at - 1))
        }) {
            end = at + next.len_utf8();
            count += 1;
            if count <= STEM {
                stem = end;
            }
        }
        if count > 1 {
            left -= 1;
            found(text.get(start..stem).unwrap_or_default(), (start, end));
        }
    }
}

/// Whether a script writes no spaces between words, or long words of many parts: Thai, Chinese, Japanese, Korean.
fn is_dense(ch: char) -> bool {
    matches!(ch, '\u{e00}'..='\u{eff}' | '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{d7ff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Classifier, Signal, Tier};
    use test_case::test_case;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines: Vec<&str> = TABLE.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(WEIGHTS.reasons.len(), lines[0].split(' ').count());
        // The names of the reasons and the bias are lines, too.
        assert_eq!(WEIGHTS.terms.len(), lines.len() - 2);
        assert!(WEIGHTS.terms.len() < LONGEST, "terms beyond {LONGEST} are left out");
        assert!(WEIGHTS.terms.is_sorted_by(|left, right| left.text < right.text), "a term stands twice");
        let columns = |line: &&str| line.split_once('\t').map(|(_, cells)| cells.split(' ').count());
        assert!(lines[1..].iter().all(|line| columns(line) == Some(WEIGHTS.reasons.len())));
        for term in &WEIGHTS.terms {
            let parsed: Vec<i8> = term.weights.split(' ').map(|number| number.parse().unwrap()).collect();
            assert_eq!(term.weights()[..parsed.len()], parsed, "{}", term.text);
        }
    }

    #[test_case("your prepaid purse", &["your", "prepaid", "purse"]; "words")]
    #[test_case("a deactivated key", &["deactiv", "key"]; "a front of seven, nothing of one letter")]
    #[test_case("quotaExceeded HTTPError", &["quota", "exceede", "httperr"]; "camel case")]
    #[test_case("model_not-found", &["model", "not", "found"]; "joined words")]
    #[test_case("余额不足", &["余额", "额不", "不足"]; "pairs of chars")]
    #[test_case("GPU不足です", &["gpu", "不足", "足で", "です"]; "two scripts")]
    #[test_case("ключ отозван", &["ключ", "отозван"]; "cyrillic")]
    #[test_case("429: 17!", &[]; "no words")]
    fn terms_of_a_text(text: &str, wanted: &[&str]) {
        let classifier = Classifier::standard().unwrap();
        assert_eq!(classifier.terms(&Signal::text(text)), wanted);
    }

    #[test]
    fn no_more_terms_than_the_bound_are_looked_at() {
        let classifier = Classifier::standard().unwrap();
        assert_eq!(classifier.terms(&Signal::text(&"purse ".repeat(10_000))).len(), MOST);
    }

    // spec: C-3
    #[test]
    fn words_overrule_a_vague_status_and_bow_to_a_pointed_one() {
        let classifier = Classifier::standard().unwrap();
        let body = br#"{"oops": "your prepaid purse holds no more coins"}"#;
        let verdict = |status| classifier.classify(&Signal::default().with_body(body).with_status(status));
        assert_eq!(verdict(400).reason, FailoverReason::Billing);
        assert_eq!(verdict(400).evidence.rule, "core/weighs-billing");
        assert_eq!(verdict(400).evidence.tier, Tier::Status);
        let (start, end) = verdict(400).evidence.span.unwrap();
        assert!([&b"prepaid"[..], b"purse", b"coins"].contains(&&body[start..end]));
        let tells_little = |status| {
            let body = br#"{"oops": "the purse, perhaps"}"#;
            classifier.classify(&Signal::default().with_body(body).with_status(status)).reason
        };
        assert_eq!(tells_little(401), FailoverReason::Auth);
    }

    // spec: C-2
    #[test]
    fn what_weighs_is_told() {
        let classifier = Classifier::standard().unwrap();
        let body = "your prepaid purse holds no more coins";
        let explained = classifier.explain(&Signal::text(body).with_status(400));
        assert!(explained.matched[0].asked.contains("prepaid "), "{}", explained.matched[0].asked);
        // The status says it, too, and decides; the words stand behind it.
        let explained = classifier.explain(&Signal::text(body).with_status(402));
        let rules: Vec<&str> = explained.matched.iter().map(|found| found.rule.as_str()).collect();
        assert_eq!(rules, ["core/status-402", "core/weighs-billing"]);
        assert_eq!(explained.verdict.evidence.rule, "core/status-402");
    }
}

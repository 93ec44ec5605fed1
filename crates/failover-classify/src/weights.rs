//! What the words of a text weigh together, where no row knows its wording.
//!
//! Rows name wordings, and nobody can list them all: a text that says "your prepaid purse is empty" in words that no
//! row has still holds words that mostly stand in texts about money. Each word has a weight for each reason, learned
//! from the labelled texts of `fixtures/wordings` and `fixtures/corpus` (`cargo xtask weights` writes the table). The
//! weights of a text's words, and of each with the word before it, are added up, and the reason that leads by far enough
//! is taken. Rows that ask for it ([`crate::Fact::Weighs`]) stand behind every wording and every type that an error
//! names, and before its bare status. Where it leads by far more, it stands before wordings of anything else, too
//! ([`crate::Fact::Outweighs`]): "internal error" may be said by the way.

use crate::reading::Reading;
use failover_types::{FailoverReason, Lane};
use rustc_hash::{FxHashMap, FxHasher};
use std::fmt;
use std::hash::Hasher;
use std::ops::Range;
use std::sync::LazyLock;

/// A line that names the reasons, then lines of a term and its weight for each; [`BIAS`] stands for no term.
const TABLE: &str = include_str!("weights.tsv");
/// The line of what every text weighs.
const BIAS: &str = "-";
/// A word counts by this many chars of its front: endings differ more than meanings.
const STEM: usize = 7;
/// Capitals are looked for in so many chars of a word's front: what is longer is no name of a code.
const SPLIT: usize = 48;
/// No more words of a text are looked at.
const MOST: usize = 256;
/// No more terms are taken from the table; a bit each says whether a term was met.
const LONGEST: usize = 16_384;
/// The table has no more columns; a test proves it.
const COLUMNS: usize = 16;
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
        // These say that it was not: what another model could answer is not handed to the caller for a few words. And
        // whether the provider broke or was late is one lane, and the status has said so.
        Some(500..)
            if matches!(
                reason,
                Format
                    | ContextOverflow
                    | ContentRefusal
                    | SessionExpired
                    | LocalCoordination
                    | Aborted
                    | ServerError
                    | Timeout
            ) =>
        {
            8
        }
        // A credential is not put aside for a few words, either.
        Some(500..) if matches!(reason, Auth | Billing) => 6,
        // These say that it failed.
        Some(_) => 4,
    }
}

/// What [`wanted`] is before a wording that a row knows.
fn outweighing(status: Option<u16>, reason: FailoverReason) -> i32 {
    let moves_on = matches!(
        reason.lane(),
        Lane::RateLimit | Lane::Overloaded | Lane::Transient | Lane::Model | Lane::Opaque
    );
    if status.is_some_and(|status| status >= 500) && !moves_on { OUTWEIGHS_FAULT } else { OUTWEIGHS }
}

/// Fewer known terms say nothing.
const FEWEST: i32 = 2;
/// A wording that a row knows may stand beside what a text is about: "internal error. No credits were consumed". By so
/// much more must the words lead to be believed before it: of errors that neither rows nor words were made from, a dozen
/// were read rightly for it for each that was not.
const OUTWEIGHS: i32 = 8;
/// And by this much where the status says that the provider failed, and the words that it was the caller: that ends the
/// call, or puts a credential aside.
const OUTWEIGHS_FAULT: i32 = 16;
/// And fewer than these must lead as much as these: three words that lean are no evidence.
const FULL: i32 = 8;

/// What a term, or every text, weighs for each reason.
type Weights = [i8; COLUMNS];

struct Table {
    /// The columns.
    reasons: Vec<FailoverReason>,
    /// Keys of terms, each with its place in `weights`.
    terms: FxHashMap<u64, u16>,
    weights: Vec<Weights>,
    bias: Weights,
}

static WEIGHTS: LazyLock<Table> = LazyLock::new(|| Table::read(TABLE));

/// Reads the table, so that no text has to wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&WEIGHTS);
}

impl Table {
    /// A line that cannot be read is left out; a test proves that there is none.
    fn read(table: &'static str) -> Self {
        let mut lines = table.lines().filter(|line| !line.starts_with('#'));
        let columns = lines.next().unwrap_or_default().split(' ');
        let reasons = columns.map_while(|name| name.parse().ok()).take(COLUMNS).collect();
        let mut known =
            Self { reasons, terms: FxHashMap::default(), weights: Vec::new(), bias: [0; COLUMNS] };
        // A line is some fifty bytes.
        let count = (table.len() / 40).min(LONGEST);
        known.terms.reserve(count);
        known.weights.reserve(count);
        for (term, cells) in lines.filter_map(|line| line.split_once('\t')) {
            let weights = weights(cells);
            if term == BIAS {
                known.bias = weights;
            } else if let Some(index) =
                u16::try_from(known.weights.len()).ok().filter(|index| usize::from(*index) < LONGEST)
            {
                known.terms.insert(Term::written(term).key(), index);
                known.weights.push(weights);
            }
        }
        known
    }

    fn find(&self, term: Term<'_>) -> Option<(u16, &Weights)> {
        let index = *self.terms.get(&term.key())?;
        self.weights.get(usize::from(index)).map(|weights| (index, weights))
    }
}

/// One for each column.
fn weights(cells: &str) -> Weights {
    let (mut weights, mut column, mut sign) = ([0_i8; COLUMNS], 0, 1);
    // By hand: `parse` would take longer than all the rest of reading the table.
    for byte in cells.bytes() {
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

/// The terms of the table that stand in a text, each once, in the order of the text. Its memory is the thread's: twenty
/// kilobytes would take longer to empty than most texts to weigh.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// Of each term of the table a bit.
    is_in: Vec<u64>,
    terms: Vec<(u16, Span)>,
}

/// Where a term stands in the view; `None` if it stands in the signal's code.
type Span = Option<(u32, u32)>;

impl Met {
    /// Forgets what was met.
    fn clear(&mut self) {
        self.is_in.resize(LONGEST / 64, 0);
        for (index, _) in self.terms.drain(..) {
            if let Some(bits) = self.is_in.get_mut(usize::from(index) / 64) {
                *bits = 0;
            }
        }
    }

    /// Keeps a term, unless it was met before.
    fn is_new(&mut self, index: u16, span: Option<(usize, usize)>) -> bool {
        let (place, bit) = (usize::from(index) / 64, 1 << (index % 64));
        let Some(bits) = self.is_in.get_mut(place).filter(|bits| **bits & bit == 0) else { return false };
        *bits |= bit;
        let short = |at: usize| u32::try_from(at).ok();
        self.terms.push((index, span.and_then(|(start, end)| short(start).zip(short(end)))));
        true
    }

    /// Where the first of those stands that say most for a reason.
    fn strongest(&self, column: usize) -> Option<(usize, usize)> {
        let mut strongest = (0, None);
        for (index, span) in &self.terms {
            let weight = WEIGHTS.weights.get(usize::from(*index)).and_then(|weights| weights.get(column));
            if let Some(weight) = weight.filter(|weight| **weight > strongest.0) {
                strongest = (*weight, *span);
            }
        }
        strongest.1.map(|(start, end)| (start as usize, end as usize))
    }
}

/// A word of a text, or it and the word before it: "not found" says more than either.
#[derive(Clone, Copy)]
pub(crate) struct Term<'t> {
    before: Option<&'t str>,
    word: &'t str,
}

impl<'t> Term<'t> {
    fn of(word: &'t str) -> Self {
        Self { before: None, word }
    }

    /// As a term is written in the table.
    fn written(text: &'t str) -> Self {
        text.split_once(' ').map_or(Self::of(text), |(before, word)| Self { before: Some(before), word })
    }

    /// What stands for it in the table; a test proves that no two terms share one.
    fn key(self) -> u64 {
        let mut hasher = FxHasher::default();
        if let Some(before) = self.before {
            hasher.write(before.as_bytes());
        }
        hasher.write(self.word.as_bytes());
        hasher.finish()
    }
}

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before {
            Some(before) => write!(f, "{before} {}", self.word),
            None => f.write_str(self.word),
        }
    }
}

/// What the words of a text come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weighed {
    pub(crate) reason: FailoverReason,
    /// They lead by so much that a known wording of something else must be by the way.
    pub(crate) outweighs: bool,
    /// The word that says most for it, in bytes of the view; `None` if it stands in the signal's code.
    pub(crate) span: Option<(usize, usize)>,
}

impl Reading<'_> {
    /// The reason that the words weigh towards, if one leads.
    pub(crate) fn weighed(&self) -> Option<Weighed> {
        *self.weighed.get_or_init(|| {
            let mut met = self.met().take();
            met.clear();
            let weighed = self.weigh(&mut met);
            self.met().set(met);
            weighed
        })
    }

    fn weigh(&self, met: &mut Met) -> Option<Weighed> {
        let failed = self.status.is_some_and(|status| status >= 400);
        // What a model wrote may hold any words.
        if self.heard().answer && !failed {
            return None;
        }
        let mut sums = WEIGHTS.bias.map(i32::from);
        self.terms(|term, span| {
            let Some((index, weights)) = WEIGHTS.find(term) else { return };
            if met.is_new(index, span) {
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += i32::from(*weight));
            }
        });
        let count = i32::try_from(met.terms.len()).unwrap_or(i32::MAX);
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
        let leads_by = |wanted: i32| lead * lead >= wanted * wanted * (count.max(FULL) + 1);
        let is_reason = count >= FEWEST && reason != FailoverReason::Unclassified;
        (is_reason && leads_by(wanted)).then(|| Weighed {
            reason,
            outweighs: leads_by(wanted.max(outweighing(self.status, reason))),
            span: met.strongest(column),
        })
    }

    /// The words that say most for a reason, in words: what a person is told.
    pub(crate) fn said_for(&self, reason: FailoverReason) -> String {
        const TOLD: usize = 6;
        let Some(column) = WEIGHTS.reasons.iter().position(|known| *known == reason) else {
            return String::new();
        };
        let mut said: Vec<(i8, String)> = Vec::new();
        self.terms(|term, _| {
            let weight = WEIGHTS.find(term).and_then(|(_, weights)| weights.get(column)).copied();
            let said_now = weight.filter(|weight| *weight > 0).map(|weight| (weight, term.to_string()));
            said.extend(said_now.filter(|now| !said.contains(now)));
        });
        said.sort_unstable_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let told: Vec<String> =
            said.iter().take(TOLD).map(|(weight, text)| format!("{text} {weight}")).collect();
        format!("words that weigh towards it: {}", told.join(", "))
    }

    /// The terms of the signal's code and of the text, with their places in the view.
    pub(crate) fn terms(&self, mut found: impl FnMut(Term<'_>, Option<(usize, usize)>)) {
        if let Some(code) = self.signal.code {
            let lower = crate::lower::Lower::<{ crate::fields::LONGEST }>::of(code);
            let upper = |range: Range<usize>| {
                code.as_bytes().get(range).is_some_and(|bytes| bytes.iter().any(u8::is_ascii_uppercase))
            };
            each(lower.as_str(), upper, |term, _| found(term, None));
        }
        let view = self.view();
        let mut origins = view.walk();
        let upper = |range: Range<usize>| {
            let (from, to) = (origins.origin(range.start), origins.origin(range.end.saturating_sub(1)) + 1);
            // Seldom anything is left out between the letters of a word.
            if to.wrapping_sub(from) == range.len() {
                return self.source.bytes(from..to).iter().any(u8::is_ascii_uppercase);
            }
            range
                .into_iter()
                .any(|at| self.source.byte(origins.origin(at)).is_some_and(|byte| byte.is_ascii_uppercase()))
        };
        let text = std::str::from_utf8(view.bytes()).unwrap_or_default();
        each(text, upper, |term, span| found(term, Some(span)));
    }
}

/// Finds the terms of a text: each word, and it with the word before it.
fn each<'t>(
    text: &'t str,
    upper: impl FnMut(Range<usize>) -> bool,
    mut found: impl FnMut(Term<'t>, (usize, usize)),
) {
    let mut last = None;
    words(text, upper, |word, (start, end)| {
        found(Term::of(word), (start, end));
        if let Some((before, begin)) = last.replace((word, start)) {
            found(Term { before: Some(before), word }, (begin, end));
        }
    });
}

/// Finds the words of a text: the front of each, and pairs of chars of scripts that write no spaces. `upper` says
/// whether a byte of a range was an upper-case letter before it was folded: `quotaExceeded` is two words. It is asked of
/// ranges that hardly ever lie further in front than the last one.
fn words<'t>(
    text: &'t str,
    mut upper: impl FnMut(Range<usize>) -> bool,
    mut found: impl FnMut(&'t str, (usize, usize)),
) {
    let mut left = MOST;
    let mut is_in_pair = false;
    let mut at = 0;
    while at < text.len() && left > 0 {
        let start = at;
        let Some(ch) = letter(text, at) else {
            // Inside of a char no letter begins.
            at += 1;
            continue;
        };
        at += ch.len_utf8();
        if is_dense(ch) {
            let next = letter(text, at).filter(|next| is_dense(*next));
            let end = at + next.map_or(0, char::len_utf8);
            // The last char of a run was in a pair already.
            if next.is_some() || !is_in_pair {
                left -= 1;
                found(text.get(start..end).unwrap_or_default(), (start, end));
            }
            is_in_pair = next.is_some();
            continue;
        }
        let (mut count, mut stem) = (1, at);
        // Most words are small letters of ASCII, in the body too.
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        let letters = rest.iter().position(|byte| !byte.is_ascii_lowercase()).unwrap_or(rest.len());
        if letters > 1 && !upper(start + 1..start + letters) {
            (at, count, stem) = (start + letters, letters, start + letters.min(STEM));
        }
        while let Some(next) = letter(text, at).filter(|next| !is_dense(*next)) {
            if count < SPLIT && upper(at..at + 1) && !upper(at - 1..at) {
                break;
            }
            at += next.len_utf8();
            count += 1;
            if count <= STEM {
                stem = at;
            }
        }
        if count > 1 {
            left -= 1;
            found(text.get(start..stem).unwrap_or_default(), (start, at));
        }
    }
}

/// The letter that stands at a place, if one does.
#[inline]
fn letter(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at)? {
        byte if byte.is_ascii() => Some(char::from(*byte)).filter(char::is_ascii_alphabetic),
        _ => text.get(at..)?.chars().next().filter(|ch| ch.is_alphabetic()),
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
        // The names of the reasons and the bias are lines, too. A term that stood twice would be counted once.
        assert_eq!(WEIGHTS.terms.len(), lines.len() - 2);
        assert!(WEIGHTS.terms.len() < LONGEST, "terms beyond {LONGEST} are left out");
        for line in &lines[1..] {
            let (term, cells) = line.split_once('\t').unwrap();
            let parsed: Vec<i8> = cells.split(' ').map(|number| number.parse().unwrap()).collect();
            let read = WEIGHTS.find(Term::written(term)).map_or(&WEIGHTS.bias, |(_, weights)| weights);
            assert_eq!(read[..WEIGHTS.reasons.len()], parsed, "{term}");
        }
    }

    #[test_case("your prepaid purse", &["your", "prepaid", "your prepaid", "purse", "prepaid purse"]; "words and pairs")]
    #[test_case("a deactivated key", &["deactiv", "key", "deactiv key"]; "a front of seven, nothing of one letter")]
    #[test_case("quotaExceeded HTTPError", &["quota", "exceede", "quota exceede", "httperr", "exceede httperr"]; "camel case")]
    #[test_case("not-found", &["not", "found", "not found"]; "joined words")]
    #[test_case("余额不足", &["余额", "额不", "余额 额不", "不足", "额不 不足"]; "pairs of chars")]
    #[test_case("GPU不足", &["gpu", "不足", "gpu 不足"]; "two scripts")]
    #[test_case("ключ отозван", &["ключ", "отозван", "ключ отозван"]; "cyrillic")]
    #[test_case("429: 17!", &[]; "no words")]
    fn terms_of_a_text(text: &str, wanted: &[&str]) {
        let classifier = Classifier::standard().unwrap();
        assert_eq!(classifier.terms(&Signal::text(text)), wanted);
    }

    #[test]
    fn no_more_terms_than_the_bound_are_looked_at() {
        let classifier = Classifier::standard().unwrap();
        assert_eq!(classifier.terms(&Signal::text(&"purse ".repeat(10_000))).len(), 2 * MOST - 1);
    }

    // spec: C-3
    #[test]
    fn words_overrule_a_vague_status_and_bow_to_a_pointed_one() {
        let classifier = Classifier::standard().unwrap();
        let body = br#"{"oops": "your prepaid purse holds no more coins"}"#;
        let verdict = |status| classifier.classify(&Signal::default().with_body(body).with_status(status));
        assert_eq!(verdict(400).reason, FailoverReason::Billing);
        assert_eq!(verdict(400).evidence.rule, "core/outweighs-billing");
        assert_eq!(verdict(400).evidence.tier, Tier::Message);
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
        assert_eq!(rules, ["core/status-402", "core/outweighs-billing"]);
        assert_eq!(explained.verdict.evidence.rule, "core/status-402");
    }
}

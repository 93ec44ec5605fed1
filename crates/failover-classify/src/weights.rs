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
use crate::source::Source;
use crate::terms::{self, Term, Unfolded};
use crate::view::Origins;
use failover_types::{FailoverReason, Lane};
use std::sync::LazyLock;

/// A line that names the reasons, then lines of a term and its weight for each; [`BIAS`] stands for no term.
const TABLE: &str = include_str!("weights.tsv");
/// The line of what every text weighs.
const BIAS: &str = "-";
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

/// A term of the table.
struct Known {
    key: u64,
    weights: Weights,
}

/// Terms by their keys: the front of a key says where in `slots` to begin, and an empty one ends the search. Most terms of
/// a text are in no table, and a look at one slot says so of most of these.
struct Table {
    /// The columns.
    reasons: Vec<FailoverReason>,
    /// A place in `terms`, counted from one; 0 is empty.
    slots: Vec<u16>,
    terms: Vec<Known>,
    bias: Weights,
}

/// More than twice as many slots as terms.
const SLOT_BITS: u32 = 15;
const SLOTS: usize = 1 << SLOT_BITS;

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
        let mut known = Self { reasons, slots: vec![0; SLOTS], terms: Vec::new(), bias: [0; COLUMNS] };
        // A line is some fifty bytes.
        known.terms.reserve((table.len() / 40).min(LONGEST));
        for (term, cells) in lines.filter_map(|line| line.split_once('\t')) {
            let weights = weights(cells);
            if term == BIAS {
                known.bias = weights;
            } else if known.terms.len() < LONGEST {
                known.add(Known { key: terms::key(term), weights });
            }
        }
        known
    }

    fn add(&mut self, term: Known) {
        let mut slot = slot(term.key);
        while self.slots.get(slot).is_some_and(|place| *place > 0) {
            slot = (slot + 1) % SLOTS;
        }
        self.terms.push(term);
        if let (Some(place), Ok(count)) = (self.slots.get_mut(slot), u16::try_from(self.terms.len())) {
            *place = count;
        }
    }

    /// The number of a term, and what it weighs.
    #[inline]
    fn find(&self, key: u64) -> Option<(u16, &Weights)> {
        let mut slot = slot(key);
        loop {
            let index = self.slots.get(slot)?.checked_sub(1)?;
            let known = self.terms.get(usize::from(index))?;
            if known.key == key {
                return Some((index, &known.weights));
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

/// Where the search for a key begins: its highest bits depend on all of it.
#[inline]
fn slot(key: u64) -> usize {
    (key >> (u64::BITS - SLOT_BITS)) as usize
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
            let weight = WEIGHTS.terms.get(usize::from(*index)).and_then(|known| known.weights.get(column));
            if let Some(weight) = weight.filter(|weight| **weight > strongest.0) {
                strongest = (*weight, *span);
            }
        }
        strongest.1.map(|(start, end)| (start as usize, end as usize))
    }
}

/// What was met of a text so far, and what it weighs for each reason.
struct Scale<'m> {
    table: &'static Table,
    met: &'m mut Met,
    /// The words of no text weigh more than these can hold; a test proves it.
    sums: [i16; COLUMNS],
}

impl Scale<'_> {
    fn add(&mut self, term: u64, span: Option<(usize, usize)>) {
        let Some((index, weights)) = self.table.find(term) else { return };
        if self.met.is_new(index, span) {
            // A copy, which is added at once: nothing that is written to could be part of it.
            let weights = weights.map(i16::from);
            self.sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
        }
    }
}

/// What the words of a text come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weighed {
    pub(crate) reason: FailoverReason,
    /// They lead by so much that a known wording of something else must be by the way.
    pub(crate) outweighs: bool,
    /// Its column.
    column: usize,
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
        let table = &*WEIGHTS;
        let mut scale = Scale { table, met, sums: table.bias.map(i16::from) };
        self.terms(|term, span| scale.add(term.key(), span));
        let sums = scale.sums.map(i32::from);
        let count = i32::try_from(met.terms.len()).unwrap_or(i32::MAX);
        let (mut first, mut second) = (None::<(i32, usize)>, None::<i32>);
        for (column, (reason, sum)) in table.reasons.iter().zip(sums).enumerate() {
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
        let reason = *table.reasons.get(column)?;
        let (lead, wanted) = (best - second?, wanted(self.status, reason));
        let leads_by = |wanted: i32| lead * lead >= wanted * wanted * (count.max(FULL) + 1);
        let is_reason = count >= FEWEST && reason != FailoverReason::Unclassified;
        (is_reason && leads_by(wanted)).then(|| Weighed {
            reason,
            outweighs: leads_by(wanted.max(outweighing(self.status, reason))),
            column,
        })
    }

    /// The word that says most for what the words weigh towards, in bytes of the view; `None` if it stands in the signal's
    /// code.
    pub(crate) fn strongest(&self) -> Option<(usize, usize)> {
        let weighed = self.weighed()?;
        let met = self.met().take();
        let strongest = met.strongest(weighed.column);
        self.met().set(met);
        strongest
    }

    /// The words that say most for a reason, in words: what a person is told.
    pub(crate) fn said_for(&self, reason: FailoverReason) -> String {
        const TOLD: usize = 6;
        let Some(column) = WEIGHTS.reasons.iter().position(|known| *known == reason) else {
            return String::new();
        };
        let mut said: Vec<(i8, String)> = Vec::new();
        self.terms(|term, _| {
            let weight = WEIGHTS.find(term.key()).and_then(|(_, weights)| weights.get(column)).copied();
            let said_now = weight.filter(|weight| *weight > 0).map(|weight| (weight, term.to_string()));
            said.extend(said_now.filter(|now| !said.contains(now)));
        });
        said.sort_unstable_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let told: Vec<String> =
            said.iter().take(TOLD).map(|(weight, text)| format!("{text} {weight}")).collect();
        format!("words that weigh towards it: {}", told.join(", "))
    }

    /// The terms of the signal's code and of the text, in words.
    pub(crate) fn spelled_terms(&self) -> Vec<String> {
        let mut terms = Vec::new();
        self.terms(|term, _| terms.push(term.to_string()));
        terms
    }

    /// The terms of the signal's code and of the text, with their places in the view.
    fn terms(&self, mut found: impl FnMut(&Term<'_>, Option<(usize, usize)>)) {
        if let Some(code) = self.signal.code {
            let lower = crate::lower::Lower::<{ crate::fields::LONGEST }>::of(code);
            let unfolded = Unfolded { source: &Source::of(code.as_bytes()), origins: Origins::default() };
            terms::each(lower.as_str(), unfolded, |term| found(term, None));
        }
        let unfolded = Unfolded { source: &self.source, origins: self.view().walk() };
        terms::each(self.text(), unfolded, |term| found(term, Some(term.span())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Classifier, Signal, Tier};

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines: Vec<&str> = TABLE.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(WEIGHTS.reasons.len(), lines[0].split(' ').count());
        // The names of the reasons and the bias are lines, too. A term that stood twice would be counted once.
        assert_eq!(WEIGHTS.terms.len(), lines.len() - 2);
        assert!(WEIGHTS.terms.len() < LONGEST, "terms beyond {LONGEST} are left out");
        let most = WEIGHTS.terms.iter().flat_map(|known| known.weights).map(i8::unsigned_abs).max();
        let terms = 2 * (terms::MOST + crate::fields::LONGEST);
        assert!(usize::from(most.unwrap()) * terms < i16::MAX.unsigned_abs().into(), "{most:?}");
        for line in &lines[1..] {
            let (term, cells) = line.split_once('\t').unwrap();
            let parsed: Vec<i8> = cells.split(' ').map(|number| number.parse().unwrap()).collect();
            let read = WEIGHTS.find(terms::key(term)).map_or(&WEIGHTS.bias, |(_, weights)| weights);
            assert_eq!(read[..WEIGHTS.reasons.len()], parsed, "{term}");
        }
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

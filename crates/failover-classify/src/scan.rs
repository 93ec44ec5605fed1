//! One pass of the automaton over the text, and the phrases that its literals make up.

use crate::compile::{Compiled, Literal, NO_PART, Part, index};
use crate::source::Source;
use crate::view::View;
use crate::words::Heard;
use std::cell::Cell;

/// The same literal counts at most this often in one text.
const MOST_HITS: u8 = 24;
/// Steps taken at most from one hit to find the rest of a phrase.
const MOST_STEPS: u32 = 400;

/// Beyond all hits.
const NO_HIT: u32 = u32::MAX;

/// A literal in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) literal: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The next hit of the same literal; [`NO_HIT`] if there is none.
    next: u32,
}

/// The hits of one literal, in the order of the text: where its first and last ones stand in [`Found::hits`].
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    first: u32,
    last: u32,
    count: u8,
}

/// Whether a phrase stands in the text whose beginning does. Found out when a row asks for it: most rows are never asked.
#[derive(Clone, Copy, Debug, Default)]
enum Whole {
    #[default]
    Unknown,
    Absent,
    At(u32, u32),
}

/// A place for each of many things, of which a text fills a few. All are emptied at once: what an earlier text filled
/// bears an older number.
#[derive(Debug)]
struct Places<T: Copy> {
    now: u32,
    places: Vec<Cell<(u32, T)>>,
}

impl<T: Copy> Default for Places<T> {
    fn default() -> Self {
        Self { now: 0, places: Vec::new() }
    }
}

impl<T: Copy + Default> Places<T> {
    /// Empties all, and sees to it that there are so many.
    fn clear(&mut self, count: usize) {
        if self.now == u32::MAX {
            self.places.clear();
            self.now = 0;
        }
        self.now += 1;
        if self.places.len() < count {
            self.places.resize_with(count, Cell::default);
        }
    }

    #[inline]
    fn get(&self, index: u32) -> Option<T> {
        self.places
            .get(index as usize)
            .map(Cell::get)
            .filter(|(filled, _)| *filled == self.now)
            .map(|(_, value)| value)
    }

    #[inline]
    fn set(&self, index: u32, value: T) {
        if let Some(place) = self.places.get(index as usize) {
            place.set((self.now, value));
        }
    }

    /// A place to change, filled with this first if it was empty; and whether it was.
    #[inline]
    fn fill(&mut self, index: u32, value: T) -> Option<(&mut T, bool)> {
        let (filled, place) = self.places.get_mut(index as usize)?.get_mut();
        let fresh = *filled != self.now;
        if fresh {
            (*filled, *place) = (self.now, value);
        }
        Some((place, fresh))
    }
}

/// What was found in one text. Kept and cleared rather than built anew.
#[derive(Debug, Default)]
pub(crate) struct Found {
    hits: Vec<Hit>,
    /// Of each literal.
    chains: Places<Chain>,
    /// The literals that were found, each once.
    literals: Vec<u32>,
    /// Of each phrase that may stand in the text: what it begins with does, and a choice of its second part.
    wholes: Places<Whole>,
    /// Rows that may hold, a bit each.
    rows: Vec<Cell<u64>>,
    /// Numbers of parts of which a choice stands in the text.
    parts: Places<()>,
    /// Of the hits: codes.
    pub(crate) codes: Vec<Hit>,
    pub(crate) heard: Heard,
    /// Steps of work done, as far as they depend on the text.
    pub(crate) steps: Cell<u64>,
}

impl Found {
    /// Forgets what was found.
    fn clear(&mut self, compiled: &Compiled) {
        self.hits.clear();
        self.literals.clear();
        self.chains.clear(compiled.literals.len());
        self.wholes.clear(compiled.phrases.len());
        self.rows.clear();
        self.rows.extend(compiled.always.iter().copied().map(Cell::new));
        self.parts.clear(compiled.part_count);
        self.codes.clear();
        self.heard.clear();
        self.steps.set(0);
    }

    /// Bytes of memory held that depend on the text.
    pub(crate) fn memory(&self) -> usize {
        self.hits.capacity() * size_of::<Hit>()
    }

    /// Keeps in mind that a row may hold.
    #[inline]
    pub(crate) fn row(&self, row: u32) {
        if let Some(bits) = self.rows.get(row as usize / 64) {
            bits.set(bits.get() | 1 << (row % 64));
        }
    }

    /// The first row from this one on that may hold.
    pub(crate) fn next_row(&self, from: usize) -> Option<usize> {
        let mut bits = self.rows.get(from / 64)?.get() & u64::MAX << (from % 64);
        let mut place = from / 64;
        while bits == 0 {
            place += 1;
            bits = self.rows.get(place)?.get();
        }
        Some(place * 64 + bits.trailing_zeros() as usize)
    }

    /// Keeps a hit, unless there are many of its literal.
    #[inline]
    fn hit(&mut self, id: u32, literal: &Literal, numbers: &[u32], start: u32, end: u32) {
        let Ok(index) = u32::try_from(self.hits.len()) else { return };
        let chain = Chain { first: index, last: index, count: 1 };
        let Some((chain, fresh)) = self.chains.fill(id, chain) else { return };
        if fresh {
            for &number in literal.numbers.of(numbers) {
                self.parts.set(number, ());
            }
            self.literals.push(id);
        } else {
            if chain.count >= MOST_HITS {
                return;
            }
            if let Some(last) = self.hits.get_mut(chain.last as usize) {
                last.next = index;
            }
            chain.last = index;
            chain.count += 1;
        }
        let hit = Hit { literal: id, start, end, next: NO_HIT };
        self.hits.push(hit);
        if literal.is_code {
            self.codes.push(hit);
        }
    }

    /// Whether a choice of a part stands anywhere in the text.
    #[inline]
    fn stands(&self, number: u32) -> bool {
        self.parts.get(number).is_some()
    }

    /// The first hit of a literal.
    #[inline]
    fn first(&self, literal: u32) -> Option<Hit> {
        self.hits.get(self.chains.get(literal)?.first as usize).copied()
    }

    /// The next hit of the same literal.
    #[inline]
    fn next(&self, hit: Hit) -> Option<Hit> {
        self.hits.get(hit.next as usize).copied()
    }
}

impl Compiled {
    /// Finds every literal of the text.
    #[inline(never)]
    pub(crate) fn scan(&self, view: &View, found: &mut Found) {
        found.clear(self);
        let text = view.bytes();
        let walked = self.automaton.scan(text, |id, start, end| self.take(id, start, end, text, found));
        found.steps.set(walked);
    }

    /// Finds the phrases that may stand in the text, of those that rows up to a last one ask for, and which of these rows
    /// may hold because of them.
    pub(crate) fn begin(&self, found: &Found, last: u32) {
        for id in &found.literals {
            let begins = self.literals.get(*id as usize).map(|literal| literal.begins.of(&self.begins));
            for begin in begins.unwrap_or_default() {
                if begin.asked_by > last {
                    break;
                }
                if begin.second == NO_PART || found.stands(begin.second) {
                    found.wholes.set(begin.phrase, Whole::Unknown);
                    begin.rows.of(&self.rows_of_phrases).iter().for_each(|row| found.row(*row));
                }
            }
        }
    }

    /// Keeps a literal, unless a word goes on beyond its end.
    #[inline]
    fn take(&self, id: u32, start: usize, end: usize, text: &[u8], found: &mut Found) {
        let Some(literal) = self.literals.get(id as usize) else { return };
        if literal.closed_right && text.get(end).is_some_and(u8::is_ascii_alphanumeric) {
            return;
        }
        if let Some(word) = literal.word {
            found.heard.hear(word, start, end, text);
            return;
        }
        found.hit(id, literal, &self.numbers, index(start), index(end));
    }

    /// Where a phrase stands in the text.
    pub(crate) fn phrase(
        &self,
        id: u32,
        (view, source): (&View, &Source<'_>),
        found: &Found,
    ) -> Option<(usize, usize)> {
        let whole = match found.wholes.get(id)? {
            Whole::Unknown => {
                let span = self.find(id, view, source, found);
                let whole = span.map_or(Whole::Absent, |(start, end)| Whole::At(start, end));
                found.wholes.set(id, whole);
                whole
            }
            known @ (Whole::Absent | Whole::At(..)) => known,
        };
        match whole {
            Whole::At(start, end) => Some((start as usize, end as usize)),
            Whole::Absent | Whole::Unknown => None,
        }
    }

    fn find(&self, id: u32, view: &View, source: &Source<'_>, found: &Found) -> Option<(u32, u32)> {
        let phrase = self.phrases.get(id as usize)?;
        let later = phrase.later.of(&self.parts);
        // Of several beginnings the literal that was named first counts, then the first in the text.
        for &id in phrase.first.of(&self.choices) {
            let mut next = found.first(id);
            while let Some(hit) = next {
                next = found.next(hit);
                if later.is_empty()
                    && self.literals.get(id as usize).is_some_and(|literal| literal.spaced)
                    && is_identifier(view, source, (hit.start as usize, hit.end as usize))
                {
                    continue;
                }
                let mut steps = MOST_STEPS;
                let end = self.rest_of(later, found, hit.end, view.bytes(), &mut steps);
                found.steps.update(|before| before + u64::from(MOST_STEPS - steps) + 1);
                if let Some(end) = end {
                    return Some((hit.start, end));
                }
            }
        }
        None
    }

    /// Where the phrase ends whose later parts are still to come, if they follow within their gaps.
    fn rest_of(&self, parts: &[Part], found: &Found, end: u32, text: &[u8], steps: &mut u32) -> Option<u32> {
        let Some((part, rest)) = parts.split_first() else { return Some(end) };
        if !found.stands(part.number) {
            return None;
        }
        let last = end.saturating_add(part.reach);
        for &literal in part.choices.of(&self.choices) {
            let mut next = found.first(literal);
            while let Some(hit) = next.filter(|hit| hit.start <= last) {
                next = found.next(hit);
                if hit.start < end {
                    continue;
                }
                *steps = steps.checked_sub(1)?;
                if one_field(text.get(end as usize..hit.start as usize).unwrap_or_default())
                    && let Some(end) = self.rest_of(rest, found, hit.end, text, steps)
                {
                    return Some(end);
                }
            }
        }
        None
    }
}

/// `rate_limit_exceeded` is a code, not the words; the view alone cannot tell.
fn is_identifier(view: &View, source: &Source<'_>, span: (usize, usize)) -> bool {
    // What is a space in the body settles it nearly always.
    let space = memchr::memchr(b' ', view.slice(span.0..span.1)).map(|at| view.origin(span.0 + at));
    if space.and_then(|at| source.byte(at)).is_some_and(|byte| byte.is_ascii_whitespace()) {
        return false;
    }
    let (start, end) = view.origins(span);
    let text = source.cut(start, end);
    !text.bytes().any(|byte| byte.is_ascii_whitespace())
        && text.contains('_')
        && !text.contains(char::is_whitespace)
}

/// Whether a gap stays inside one string: it does not cross from one field of an object into the next.
fn one_field(gap: &[u8]) -> bool {
    // What crosses takes four bytes.
    let Some(begins) = gap.len().checked_sub(3).and_then(|last| gap.get(..last)) else { return true };
    !memchr::memchr2_iter(b'"', b'\'', begins).any(|at| {
        matches!(
            gap.get(at + 1..).unwrap_or_default(),
            [b',' | b':', b'"' | b'\'' | b'{' | b'[', ..]
                | [b',' | b':', b' ', b'"' | b'\'' | b'{' | b'[', ..]
        )
    })
}

//! One pass of the automaton over the text, and the phrases that its literals make up.

use crate::compile::{Compiled, NO_PART, Part, Slice};
use crate::source::Source;
use crate::view::View;
use crate::words::Heard;
use std::cell::OnceCell;

/// The same literal counts at most this often in one text.
const MOST_HITS: u8 = 24;
/// Steps taken at most from one hit to find the rest of a phrase.
const MOST_STEPS: u32 = 400;

/// A literal in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) literal: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The next hit of the same literal, as its index plus one; 0 if there is none.
    next: u32,
}

/// The hits of one literal, in the order of the text.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    /// Indexes plus one; 0 if there is none.
    first: u32,
    last: u32,
    count: u8,
}

/// A phrase in the text.
#[derive(Clone, Copy, Debug)]
struct Whole {
    phrase: u32,
    literal: u32,
    span: (usize, usize),
}

/// Where the choices of a part begin, first and last; the other way round if there is none.
#[derive(Clone, Copy, Debug)]
struct Reach {
    first: u32,
    last: u32,
}

const ABSENT: Reach = Reach { first: u32::MAX, last: 0 };

/// What was found in one text. Kept and cleared rather than built anew.
#[derive(Debug, Default)]
pub(crate) struct Found {
    hits: Vec<Hit>,
    /// Of each literal.
    chains: Vec<Chain>,
    wholes: Vec<Whole>,
    /// Of each phrase: its index in `wholes` plus one; 0 if it does not stand in the text.
    at: Vec<u32>,
    /// Of each number of parts: where the first and the last of its choices begin.
    parts: Vec<Reach>,
    /// The numbers of parts of which a choice stands in the text.
    marked: Vec<u32>,
    /// Of the hits: codes.
    pub(crate) codes: Vec<Hit>,
    pub(crate) heard: Heard,
    /// Steps of work done, as far as they depend on the text.
    pub(crate) steps: u64,
}

impl Found {
    /// Forgets what was found, at a cost of what was found.
    fn clear(&mut self, compiled: &Compiled) {
        for hit in &self.hits {
            if let Some(chain) = self.chains.get_mut(hit.literal as usize) {
                *chain = Chain::default();
            }
        }
        self.hits.clear();
        for whole in &self.wholes {
            if let Some(at) = self.at.get_mut(whole.phrase as usize) {
                *at = 0;
            }
        }
        self.wholes.clear();
        for number in self.marked.drain(..) {
            if let Some(part) = self.parts.get_mut(number as usize) {
                *part = ABSENT;
            }
        }
        let grow = |len: usize, wanted: usize| wanted.max(len);
        self.chains.resize(grow(self.chains.len(), compiled.literals.len()), Chain::default());
        self.at.resize(grow(self.at.len(), compiled.phrases.len()), 0);
        self.parts.resize(grow(self.parts.len(), compiled.part_count), ABSENT);
        self.codes.clear();
        self.heard.clear();
        self.steps = 0;
    }

    /// Bytes of memory held that depend on the text.
    pub(crate) fn memory(&self) -> usize {
        self.hits.capacity() * size_of::<Hit>()
    }

    /// Where a phrase stands in the text.
    pub(crate) fn phrase(&self, id: u32) -> Option<(usize, usize)> {
        self.whole(id).map(|whole| whole.span)
    }

    /// The phrases that stand in the text.
    pub(crate) fn phrases(&self) -> impl Iterator<Item = u32> {
        self.wholes.iter().map(|whole| whole.phrase)
    }

    fn whole(&self, id: u32) -> Option<Whole> {
        let index = self.at.get(id as usize)?.checked_sub(1)?;
        self.wholes.get(index as usize).copied()
    }

    fn keep(&mut self, whole: Whole) {
        let Some(at) = self.at.get_mut(whole.phrase as usize) else { return };
        if let Some(place) = at.checked_sub(1).and_then(|index| self.wholes.get_mut(index as usize)) {
            *place = whole;
            return;
        }
        self.wholes.push(whole);
        *at = u32::try_from(self.wholes.len()).unwrap_or(0);
    }

    /// Keeps a hit, unless there are many of its literal.
    #[inline]
    fn hit(&mut self, literal: u32, start: u32, end: u32) -> Option<Hit> {
        let chain = self.chains.get_mut(literal as usize)?;
        if chain.count >= MOST_HITS {
            return None;
        }
        let index = u32::try_from(self.hits.len() + 1).ok()?;
        if let Some(last) = chain.last.checked_sub(1).and_then(|last| self.hits.get_mut(last as usize)) {
            last.next = index;
        } else {
            chain.first = index;
        }
        chain.last = index;
        chain.count += 1;
        let hit = Hit { literal, start, end, next: 0 };
        self.hits.push(hit);
        Some(hit)
    }

    #[inline]
    fn mark_part(&mut self, number: u32, start: u32) {
        let Some(part) = self.parts.get_mut(number as usize) else { return };
        if part.first > part.last {
            part.first = start;
            self.marked.push(number);
        }
        part.last = start;
    }

    /// Whether a choice of a part begins at `end`, or up to `reach` behind it.
    #[inline]
    fn may_follow(&self, part: &Part, end: u32) -> bool {
        let place = self.parts.get(part.number as usize);
        place.is_some_and(|place| place.last >= end && place.first <= end.saturating_add(part.reach))
    }

    /// Whether a choice of a part stands anywhere in the text.
    #[inline]
    fn stands(&self, number: u32) -> bool {
        self.parts.get(number as usize).is_some_and(|place| place.first <= place.last)
    }

    /// The first hit of a literal.
    #[inline]
    fn first(&self, literal: u32) -> Option<Hit> {
        self.at(self.chains.get(literal as usize)?.first)
    }

    /// The next hit of the same literal.
    #[inline]
    fn next(&self, hit: Hit) -> Option<Hit> {
        self.at(hit.next)
    }

    #[inline]
    fn at(&self, index: u32) -> Option<Hit> {
        self.hits.get(index.checked_sub(1)? as usize).copied()
    }
}

impl Compiled {
    /// Finds every literal of the text, then every phrase.
    pub(crate) fn scan(&self, view: &View, source: &Source<'_>, found: &mut Found) {
        found.clear(self);
        let text = view.bytes();
        let walked = self.automaton.scan(text, |id, end| self.take(id, end, text, found));
        found.steps += walked;
        self.phrases(view, source, found);
    }

    /// Keeps a literal, unless a word goes on beyond its end.
    #[inline]
    fn take(&self, id: u32, end: usize, text: &[u8], found: &mut Found) {
        let Some(literal) = self.literals.get(id as usize) else { return };
        if literal.closed_right && text.get(end).is_some_and(u8::is_ascii_alphanumeric) {
            return;
        }
        let start = end - literal.len as usize;
        if let Some(word) = literal.word {
            found.heard.hear(word, start, end, text);
            return;
        }
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else { return };
        if let Some(hit) = found.hit(id, start, end) {
            for &number in literal.numbers.of(&self.numbers) {
                found.mark_part(number, start);
            }
            if literal.is_code {
                found.codes.push(hit);
            }
        }
    }

    fn phrases(&self, view: &View, source: &Source<'_>, found: &mut Found) {
        for index in 0..found.hits.len() {
            let Some(&hit) = found.hits.get(index) else { return };
            let Some(literal) = self.literals.get(hit.literal as usize) else { continue };
            let identifier = OnceCell::new();
            for begin in literal.begins.of(&self.begins) {
                if begin.second != NO_PART && !found.stands(begin.second) {
                    continue;
                }
                // Of several beginnings the literal that was named first counts, then the first in the text.
                if found.whole(begin.phrase).is_some_and(|whole| whole.literal <= hit.literal) {
                    continue;
                }
                let later = self
                    .phrases
                    .get(begin.phrase as usize)
                    .copied()
                    .map(|parts: Slice| parts.of(&self.parts));
                let later = later.unwrap_or_default();
                let start = hit.start as usize;
                let own = (start, hit.end as usize);
                if later.is_empty()
                    && literal.spaced
                    && *identifier.get_or_init(|| is_identifier(view, source, own))
                {
                    continue;
                }
                let mut steps = MOST_STEPS;
                let end = self.rest_of(later, found, hit.end, view.bytes(), &mut steps);
                found.steps += u64::from(MOST_STEPS - steps) + 1;
                if let Some(end) = end {
                    let span = (start, end as usize);
                    found.keep(Whole { phrase: begin.phrase, literal: hit.literal, span });
                }
            }
        }
    }

    /// Where the phrase ends whose later parts are still to come, if they follow within their gaps.
    fn rest_of(&self, parts: &[Part], found: &Found, end: u32, text: &[u8], steps: &mut u32) -> Option<u32> {
        let Some((part, rest)) = parts.split_first() else { return Some(end) };
        if !found.may_follow(part, end) {
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
    let begins = gap.get(..gap.len().saturating_sub(3)).unwrap_or_default();
    !memchr::memchr2_iter(b'"', b'\'', begins).any(|at| {
        matches!(
            gap.get(at + 1..).unwrap_or_default(),
            [b',' | b':', b'"' | b'\'' | b'{' | b'[', ..]
                | [b',' | b':', b' ', b'"' | b'\'' | b'{' | b'[', ..]
        )
    })
}

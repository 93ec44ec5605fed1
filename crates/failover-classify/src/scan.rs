//! One pass of the automaton over the text, and the phrases that its literals make up.

use crate::compile::{Compiled, Phrase};
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

/// What was found in one text. Kept and cleared rather than built anew.
#[derive(Debug, Default)]
pub(crate) struct Found {
    hits: Vec<Hit>,
    /// Of each literal.
    chains: Vec<Chain>,
    wholes: Vec<Whole>,
    /// Of each phrase: its index in `wholes` plus one; 0 if it does not stand in the text.
    at: Vec<u32>,
    /// Later parts of phrases of which a choice stands in the text, a bit each.
    parts: Vec<u64>,
    pub(crate) heard: Heard,
    /// Steps of work done, as far as they depend on the text.
    pub(crate) steps: u64,
}

impl Found {
    /// Forgets what was found, at a cost of what was found.
    fn clear(&mut self, compiled: &Compiled) {
        let (literals, phrases) = (compiled.literals.len(), compiled.phrases.len());
        for hit in self.hits.drain(..) {
            if let Some(chain) = self.chains.get_mut(hit.literal as usize) {
                *chain = Chain::default();
            }
        }
        for whole in self.wholes.drain(..) {
            if let Some(at) = self.at.get_mut(whole.phrase as usize) {
                *at = 0;
            }
        }
        if self.chains.len() < literals {
            self.chains.resize(literals, Chain::default());
        }
        if self.at.len() < phrases {
            self.at.resize(phrases, 0);
        }
        self.parts.clear();
        self.parts.resize(compiled.part_count.div_ceil(64), 0);
        self.heard.clear();
        self.steps = 0;
    }

    /// Bytes of memory held that depend on the text.
    pub(crate) fn memory(&self) -> usize {
        self.hits.capacity() * size_of::<Hit>()
    }

    pub(crate) fn hits(&self) -> &[Hit] {
        &self.hits
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

    /// Keeps a hit. Says whether it is the first of its literal.
    fn hit(&mut self, literal: u32, start: usize, end: usize) -> bool {
        let Some(chain) = self.chains.get_mut(literal as usize) else { return false };
        if chain.count >= MOST_HITS {
            return false;
        }
        let (Ok(start), Ok(end), Ok(index)) =
            (u32::try_from(start), u32::try_from(end), u32::try_from(self.hits.len() + 1))
        else {
            return false;
        };
        if let Some(last) = chain.last.checked_sub(1).and_then(|last| self.hits.get_mut(last as usize)) {
            last.next = index;
        } else {
            chain.first = index;
        }
        chain.last = index;
        chain.count += 1;
        self.hits.push(Hit { literal, start, end, next: 0 });
        chain.count == 1
    }

    fn mark_part(&mut self, number: u32) {
        if let Some(bits) = self.parts.get_mut(number as usize / 64) {
            *bits |= 1 << (number % 64);
        }
    }

    /// Whether a choice of each later part stands somewhere in the text.
    fn has_parts(&self, phrase: &Phrase) -> bool {
        phrase.parts.iter().skip(1).all(|part| {
            self.parts.get(part.number as usize / 64).is_some_and(|bits| bits >> (part.number % 64) & 1 == 1)
        })
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
    #[inline(never)]
    fn take(&self, id: u32, end: usize, text: &[u8], found: &mut Found) {
        let Some(literal) = self.literals.get(id as usize) else { return };
        let start = end - literal.len as usize;
        if literal.closed_right && text.get(end).is_some_and(u8::is_ascii_alphanumeric) {
            return;
        }
        match literal.word {
            None => {
                if found.hit(id, start, end) {
                    for &part in self.parts.get(literal.parts()).unwrap_or_default() {
                        found.mark_part(part);
                    }
                }
            }
            Some(word) => found.heard.hear(word, start, end, text),
        }
    }

    fn phrases(&self, view: &View, source: &Source<'_>, found: &mut Found) {
        for index in 0..found.hits.len() {
            let Some(&hit) = found.hits.get(index) else { return };
            let Some(literal) = self.literals.get(hit.literal as usize) else { continue };
            let identifier = OnceCell::new();
            for &id in self.begins.get(literal.begins()).unwrap_or_default() {
                let Some(phrase) = self.phrases.get(id as usize) else { continue };
                // Of several beginnings the literal that was named first counts, then the first in the text.
                if !found.has_parts(phrase)
                    || found.whole(id).is_some_and(|whole| whole.literal <= hit.literal)
                {
                    continue;
                }
                let start = hit.start as usize;
                let own = (start, hit.end as usize);
                if literal.spaced
                    && phrase.parts.len() == 1
                    && *identifier.get_or_init(|| is_identifier(view, source, own))
                {
                    continue;
                }
                let mut steps = MOST_STEPS;
                let end = rest_of(phrase, 1, found, hit.end, view.bytes(), &mut steps);
                found.steps += u64::from(MOST_STEPS - steps) + 1;
                if let Some(end) = end {
                    found.keep(Whole { phrase: id, literal: hit.literal, span: (start, end as usize) });
                }
            }
        }
    }
}

/// Where the phrase ends whose parts from `at` on are still to come, if they follow within their gaps.
fn rest_of(phrase: &Phrase, at: usize, found: &Found, end: u32, text: &[u8], steps: &mut u32) -> Option<u32> {
    let Some(part) = phrase.parts.get(at) else { return Some(end) };
    let last = end.saturating_add(part.reach);
    for &literal in &part.choices {
        let mut next = found.first(literal);
        while let Some(hit) = next.filter(|hit| hit.start <= last) {
            next = found.next(hit);
            if hit.start < end {
                continue;
            }
            *steps = steps.checked_sub(1)?;
            if one_field(text.get(end as usize..hit.start as usize).unwrap_or_default())
                && let Some(end) = rest_of(phrase, at + 1, found, hit.end, text, steps)
            {
                return Some(end);
            }
        }
    }
    None
}

/// `rate_limit_exceeded` is a code, not the words; the view alone cannot tell.
fn is_identifier(view: &View, source: &Source<'_>, span: (usize, usize)) -> bool {
    let (start, end) = view.origins(span);
    let text = source.cut(start, end);
    !text.bytes().any(|byte| byte.is_ascii_whitespace())
        && text.contains('_')
        && !text.contains(char::is_whitespace)
}

/// Whether a gap stays inside one string: it does not cross from one field of an object into the next.
fn one_field(gap: &[u8]) -> bool {
    memchr::memchr2(b'"', b'\'', gap).is_none()
        || !gap.windows(4).any(|window| {
            matches!(
                window,
                [b'"' | b'\'', b',' | b':', b'"' | b'\'' | b'{' | b'[', _]
                    | [b'"' | b'\'', b',' | b':', b' ', b'"' | b'\'' | b'{' | b'[']
            )
        })
}

//! Words that no row asks for, but retry hints, token counts and facts: the same automaton finds them.

use crate::tokens::{self, Tally};
use crate::{facts, hints};

/// What a word is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The name of a field that says when to come back: its rank.
    Field(u8),
    /// A text that says when to come back.
    Said(Said),
    /// A token count stands beside it.
    Count(tokens::Side, u8),
    /// A field of a complete answer.
    Answer,
}

/// Where the time stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A span stands behind it; `true`: a bare number counts as seconds.
    Before(bool),
    /// A span stands before it.
    Behind,
    /// A clock text stands behind it.
    Clock,
}

/// All words.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Word)> {
    hints::words().chain(tokens::words()).chain(facts::answer_words().map(|word| (word, Word::Answer)))
}

/// A word in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<W> {
    pub(crate) word: W,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Hints are looked for in this much of a text's front.
pub(crate) const REACH: usize = 16 * 1024;
/// At most so many names of fields are looked at.
const MOST_FIELDS: usize = 64;
/// And so many words before and behind times.
const MOST_SAID: usize = 128;

/// The words of one text.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) fields: Vec<At<u8>>,
    pub(crate) said: Vec<At<Said>>,
    pub(crate) tally: Tally,
    pub(crate) answer: bool,
}

impl Heard {
    pub(crate) fn clear(&mut self) {
        self.fields.clear();
        self.said.clear();
        self.tally = Tally::default();
        self.answer = false;
    }

    pub(crate) fn hear(&mut self, word: Word, start: usize, end: usize, text: &[u8]) {
        match word {
            Word::Field(word) if end <= REACH && self.fields.len() < MOST_FIELDS => {
                self.fields.push(At { word, start, end });
            }
            Word::Said(word) if end <= REACH && self.said.len() < MOST_SAID => {
                self.said.push(At { word, start, end });
            }
            Word::Count(side, rank) => self.tally.count(side, rank, end, text),
            Word::Answer => self.answer = true,
            Word::Field(_) | Word::Said(_) => {}
        }
    }
}

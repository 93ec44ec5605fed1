//! The terms of a text that weigh: its words, and each with the word before it.

use crate::eight::{self, first, front, small_letters, within};
use crate::source::Source;
use crate::view::{Origins, is_letter};
use std::fmt;
use std::ops::Range;

/// A word counts by this many chars of its front: endings differ more than meanings.
const STEM: usize = 7;
/// Capitals are looked for in so many chars of a word's front: what is longer is no name of a code.
const SPLIT: usize = 48;
/// No more words of a text are looked at.
pub(crate) const MOST: usize = 256;

/// A word of a text: where its front stands, by which it counts, and where it ends.
struct Word {
    front: Range<usize>,
    end: usize,
    key: u64,
}

/// A word, or it and the word before it: "not found" says more than either.
pub(crate) struct Term<'w> {
    text: &'w str,
    before: Option<&'w Word>,
    word: &'w Word,
}

impl Term<'_> {
    /// What stands for it in the table of weights; a test proves that no two terms of the table share one.
    #[inline]
    pub(crate) fn key(&self) -> u64 {
        self.before.map_or(self.word.key, |before| mixed(before.key, self.word.key))
    }

    /// Where it stands in the text.
    #[inline]
    pub(crate) fn span(&self) -> (usize, usize) {
        (self.before.unwrap_or(self.word).front.start, self.word.end)
    }
}

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let front = |word: &Word| self.text.get(word.front.clone()).unwrap_or_default();
        if let Some(before) = self.before {
            write!(f, "{} ", front(before))?;
        }
        f.write_str(front(self.word))
    }
}

/// The key of a term as it is written in the table.
pub(crate) fn key(term: &str) -> u64 {
    let key = |word: &str| key_of(word.as_bytes(), &(0..word.len()));
    term.split_once(' ').map_or_else(|| key(term), |(before, word)| mixed(key(before), key(word)))
}

/// The key of the front of a word.
#[inline]
fn key_of(text: &[u8], word: &Range<usize>) -> u64 {
    let (mut key, mut at) = (0, word.start);
    while at < word.end {
        key = mixed(key, first(front(text, at), word.end - at));
        at += eight::COUNT;
    }
    key
}

/// A key that depends on another one and on more bits.
#[inline]
const fn mixed(key: u64, more: u64) -> u64 {
    (key.rotate_left(5) ^ more).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What a text was before it was folded.
pub(crate) struct Unfolded<'t> {
    pub(crate) source: &'t Source<'t>,
    pub(crate) origins: Origins<'t>,
}

impl Unfolded<'_> {
    /// Whether a capital letter follows a small one in a range: `quotaExceeded` is two words. Where that is not known at
    /// once, it may be. To be asked of ranges that hardly ever lie further in front than the last one.
    #[inline]
    fn may_have_humps(&mut self, range: Range<usize>) -> bool {
        // Seldom anything is left out between the letters of a word.
        let Some(mut at) = self.origins.stretch(&range) else { return true };
        let end = at + range.len();
        let mut before = FIRST;
        while at < end {
            let capitals = within::<b'A', b'Z'>(first(self.source.front(at), end - at));
            if capitals & !(capitals << 8 | before) != 0 {
                return true;
            }
            before = capitals >> 56;
            at += eight::COUNT;
        }
        false
    }

    /// Whether a capital letter stands at a place, and none before it.
    fn is_hump(&mut self, at: usize) -> bool {
        self.is_capital(at) && !self.is_capital(at - 1)
    }

    fn is_capital(&mut self, at: usize) -> bool {
        self.source.byte(self.origins.origin(at)).is_some_and(|byte| byte.is_ascii_uppercase())
    }
}

/// The highest bit of the first of eight bytes.
const FIRST: u64 = 0x80;

/// Finds the terms of a text, as [`words`] finds its words.
pub(crate) fn each(text: &str, unfolded: Unfolded<'_>, mut found: impl FnMut(&Term<'_>)) {
    let mut last = None;
    words(text, unfolded, |front, end| {
        let key = key_of(text.as_bytes(), &front);
        let word = Word { front, end, key };
        found(&Term { text, before: None, word: &word });
        if last.is_some() {
            found(&Term { text, before: last.as_ref(), word: &word });
        }
        last = Some(word);
    });
}

/// Finds the words of a text, the front of each and the end of the whole; of scripts that write no spaces, pairs of chars.
fn words(text: &str, mut unfolded: Unfolded<'_>, mut found: impl FnMut(Range<usize>, usize)) {
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
        let (mut count, mut stem, mut end) = (1, at, at);
        if is_dense(ch) {
            let next = letter(text, at).filter(|next| is_dense(*next));
            end += next.map_or(0, char::len_utf8);
            stem = end;
            // The last char of a run was in a pair already.
            count += usize::from(next.is_some() || !is_in_pair);
            is_in_pair = next.is_some();
        } else {
            // Most words are letters of ASCII, small ones or all capitals.
            let letters = small_letters(text.as_bytes(), start);
            if letters > 0 && !unfolded.may_have_humps(start..start + letters) {
                (at, count, stem) = (start + letters, letters, start + letters.min(STEM));
            }
            while let Some(next) = letter(text, at).filter(|next| !is_dense(*next)) {
                if count < SPLIT && unfolded.is_hump(at) {
                    break;
                }
                at += next.len_utf8();
                count += 1;
                if count <= STEM {
                    stem = at;
                }
            }
            end = at;
        }
        if count > 1 {
            left -= 1;
            found(start..stem, end);
        }
    }
}

/// The letter that stands at a place, if one does.
#[inline]
fn letter(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at)? {
        byte if byte.is_ascii() => Some(char::from(*byte)).filter(char::is_ascii_alphabetic),
        _ => text.get(at..)?.chars().next().filter(|ch| is_letter(*ch)),
    }
}

/// Whether a script writes no spaces between words, or long words of many parts: Thai, Chinese, Japanese, Korean.
fn is_dense(ch: char) -> bool {
    matches!(ch, '\u{e00}'..='\u{eff}' | '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{d7ff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Classifier, Signal};
    use test_case::test_case;

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
}

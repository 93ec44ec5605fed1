//! Rows become one automaton and a few index tables, once.

use crate::phrase;
use crate::rule::{Matcher, ProviderRules, Rule};
use crate::trie::{Automaton, Entry};
use crate::weights;
use crate::words::{self, Word};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::borrow::Cow;
use std::hash::{Hash, Hasher};

/// What is wrong with a set of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleSetError {
    /// An id is not `namespace/kebab-name` of the table that holds it.
    #[error("rule id {id:?} must be {namespace:?}, a slash and a kebab-case name")]
    Id {
        /// The id.
        id: String,
        /// The table's namespace.
        namespace: String,
    },
    /// Two rows have one id.
    #[error("rule id {0:?} is used twice")]
    Twice(String),
    /// A row outside of `core` names no provider, so it would judge the errors of others.
    #[error("rule {0:?} names no provider; only rows of `core` may fire for all")]
    NoProvider(String),
    /// A phrase cannot be read.
    #[error("rule {id:?}: {what}")]
    Phrase {
        /// The rule's id.
        id: String,
        /// What is wrong.
        what: String,
    },
}

/// A range of a list that many share: where it begins and ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice(u32, u32);

impl Slice {
    /// That range of `list`.
    #[inline]
    pub(crate) fn of<T>(self, list: &[T]) -> &[T] {
        list.get(self.0 as usize..self.1 as usize).unwrap_or_default()
    }
}

/// Part of a phrase, but for the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The same for all parts with these choices.
    pub(crate) number: u32,
    /// How far behind the part before it one of its literals may begin.
    pub(crate) reach: u32,
    /// Its literals, in [`Compiled::choices`].
    pub(crate) choices: Slice,
}

/// A phrase: the literals that it begins with in [`Compiled::choices`], those that were named first in front, and its
/// later parts in [`Compiled::parts`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phrase {
    pub(crate) first: Slice,
    pub(crate) later: Slice,
}

/// A phrase that begins with a literal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    pub(crate) phrase: u32,
    /// The number of its second part; [`NO_PART`] if it has none.
    pub(crate) second: u32,
    /// The first row that asks for the phrase, be it that it must not stand in the text.
    pub(crate) asked_by: u32,
    /// Rows that may win because of it, in [`Compiled::rows_of_phrases`].
    pub(crate) rows: Slice,
}

/// Of a phrase that is a literal only.
pub(crate) const NO_PART: u32 = u32::MAX;

/// A row with its phrases and codes resolved.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) rule: Rule,
    pub(crate) any: Vec<u32>,
    pub(crate) all: Vec<u32>,
    pub(crate) none: Vec<u32>,
    pub(crate) codes: Vec<u32>,
    pub(crate) no_codes: Vec<u32>,
}

/// What is known of a literal. Small, for there are thousands, and a text touches a few.
#[derive(Clone, Debug)]
pub(crate) struct Literal {
    /// No word may go on beyond its end.
    pub(crate) closed_right: bool,
    /// It holds a space.
    pub(crate) spaced: bool,
    /// It is not of a row.
    pub(crate) word: Option<Word>,
    /// It is a code of a row, its words with spaces between them or none.
    pub(crate) is_code: bool,
    /// The phrases that begin with it, in [`Compiled::begins`].
    pub(crate) begins: Slice,
    /// The numbers of the parts that it is a choice of, in [`Compiled::numbers`].
    pub(crate) numbers: Slice,
}

#[derive(Debug)]
pub(crate) struct Compiled {
    /// In order of precedence.
    pub(crate) rows: Vec<Row>,
    pub(crate) phrases: Vec<Phrase>,
    pub(crate) parts: Vec<Part>,
    pub(crate) choices: Vec<u32>,
    pub(crate) literals: Vec<Literal>,
    /// Phrases by the literal that they begin with.
    pub(crate) begins: Vec<Begin>,
    /// Numbers of parts by the literals that are a choice of them.
    pub(crate) numbers: Vec<u32>,
    /// How many numbered parts there are.
    pub(crate) part_count: usize,
    pub(crate) rows_of_phrases: Vec<u32>,
    pub(crate) codes: Codes,
    /// Of each code: rows that may win because of it, in [`Compiled::rows_of_codes`].
    pub(crate) rows_of_code: Vec<Slice>,
    pub(crate) rows_of_codes: Vec<u32>,
    /// Rows that name neither phrase nor code, a bit each.
    pub(crate) always: Vec<u64>,
    pub(crate) automaton: Automaton,
}

/// Codes that rows name, each with a number. How a code is spelled does not matter: `model_not_found`,
/// `model-not-found`, `modelNotFound` and `MODEL_NOT_FOUND` are one.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    /// By their letters and digits, in lower case, and their dots.
    exact: FxHashMap<String, u32>,
    /// Codes that end in `*`: how they begin. Sorted when all are known.
    prefixes: Vec<(String, u32)>,
    count: u32,
}

impl Codes {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    fn id(&mut self, code: &str) -> u32 {
        let lower = code.to_ascii_lowercase();
        let known = match lower.strip_suffix('*') {
            Some(prefix) => self.prefixes.iter().find(|(known, _)| known == prefix).map(|(_, id)| *id),
            None => self.exact.get(Joined::of(&lower).as_str()).copied(),
        };
        known.unwrap_or_else(|| {
            let id = self.count;
            self.count += 1;
            match lower.strip_suffix('*') {
                Some(prefix) => self.prefixes.push((prefix.to_owned(), id)),
                None => drop(self.exact.insert(Joined::of(&lower).as_str().to_owned(), id)),
            }
            id
        })
    }

    fn ids(&mut self, codes: &[&str]) -> Vec<u32> {
        codes.iter().map(|code| self.id(code)).collect()
    }

    /// The code that a value, in lower case, is: as a whole, else what follows its last dot (`err.not_enough_balance`),
    /// else what stands before its first (`LimitExceeded.Rule7`); with what all errors are called (`ModelBusyError`,
    /// `ERR_MODEL_BUSY`) or without.
    fn exact(&self, value: &str) -> Option<u32> {
        let known = |value: &str| {
            let joined = Joined::of(value);
            let joined = joined.as_str();
            let bare = || CALLED.iter().find_map(|end| joined.strip_suffix(end));
            let after = || OPENED.iter().find_map(|begin| joined.strip_prefix(begin));
            self.exact
                .get(joined)
                .or_else(|| self.exact.get(bare()?))
                .or_else(|| self.exact.get(after()?))
                .copied()
        };
        known(value).or_else(|| {
            let (space, last) = value.rsplit_once('.')?;
            let first = space.split_once('.').map_or(space, |(first, _)| first);
            let named = !last.is_empty() && !value.contains([' ', '/']);
            known(last).or_else(|| known(first)).filter(|_| named)
        })
    }

    /// The numbers of the codes that a value, in lower case, is.
    pub(crate) fn of<'a>(&'a self, value: &'a str) -> impl Iterator<Item = u32> + 'a {
        let first = value.as_bytes().first();
        let from = self.prefixes.partition_point(|(prefix, _)| prefix.as_bytes().first() < first);
        let alike = self.prefixes.get(from..).unwrap_or_default().iter();
        let alike = alike.take_while(move |(prefix, _)| prefix.as_bytes().first() == first);
        let prefixed = alike.filter(move |(prefix, _)| value.starts_with(prefix.as_str())).map(|(_, id)| *id);
        self.exact(value).into_iter().chain(prefixed)
    }
}

/// What many a code ends with.
const CALLED: [&str; 2] = ["error", "exception"];

/// What some codes begin with.
const OPENED: [&str; 2] = ["error", "err"];

/// A code without what parts its words.
struct Joined {
    bytes: [u8; crate::fields::LONGEST],
    len: usize,
}

impl Joined {
    fn of(code: &str) -> Self {
        let mut joined = Self { bytes: [0; crate::fields::LONGEST], len: 0 };
        let kept = code.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
        for (place, byte) in joined.bytes.iter_mut().zip(kept) {
            *place = byte;
            joined.len += 1;
        }
        joined
    }

    fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

/// The words of a code with spaces between them: `model not found` of `ModelNotFound`.
fn spaced(code: &str) -> String {
    let bytes = code.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let mut words = String::with_capacity(code.len() + 4);
    for (index, ch) in code.char_indices() {
        let begins = at(index).is_ascii_uppercase()
            && index > 0
            && (at(index - 1).is_ascii_lowercase()
                || at(index - 1).is_ascii_uppercase() && at(index + 1).is_ascii_lowercase());
        if begins {
            words.push(' ');
        }
        words.push(ch);
    }
    words
}

/// Collects literals and phrases without repeating them.
#[derive(Default)]
struct Pool {
    /// The literals, one behind the other, and where each stands.
    text: String,
    texts: Vec<Text>,
    literals: Vec<Literal>,
    /// Literals by a hash of what they are; where two have one, the later is found under the next number.
    ids: FxHashMap<u64, u32>,
    parser: phrase::Parser,
    phrases: Vec<Phrase>,
    parts: Vec<Part>,
    choices: Vec<u32>,
    /// Literals, and the phrases that begin with them.
    firsts: Vec<(u32, u32)>,
    phrase_ids: FxHashMap<&'static str, u32>,
    part_numbers: FxHashMap<Vec<u32>, u32>,
}

/// A literal's text, and whether words may go on beyond its ends.
#[derive(Clone, Copy)]
struct Text {
    place: Slice,
    open_left: bool,
    open_right: bool,
}

/// So many literals are expected, about, and so many bytes of them.
const LITERALS: usize = 1 << 15;
const BYTES: usize = 1 << 19;

pub(crate) fn index(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Pool {
    fn new() -> Self {
        let mut pool = Self::default();
        pool.text.reserve(BYTES);
        pool.texts.reserve(LITERALS);
        pool.literals.reserve(LITERALS);
        pool.ids.reserve(LITERALS);
        pool
    }

    fn text_of(&self, text: Text) -> &str {
        self.text.get(text.place.0 as usize..text.place.1 as usize).unwrap_or_default()
    }

    fn literal(&mut self, literal: &phrase::Literal<'_>) -> u32 {
        let phrase::Literal { ref text, open_left, open_right } = *literal;
        let mut hasher = FxHasher::default();
        (text, open_left, open_right).hash(&mut hasher);
        let mut hash = hasher.finish();
        while let Some(&id) = self.ids.get(&hash) {
            let same = self.texts.get(id as usize).is_some_and(|known| {
                (known.open_left, known.open_right) == (open_left, open_right) && self.text_of(*known) == text
            });
            if same {
                return id;
            }
            hash = hash.wrapping_add(1);
        }
        let id = self.add(text, (open_left, open_right), None);
        self.ids.insert(hash, id);
        id
    }

    fn add(&mut self, text: &str, (open_left, open_right): (bool, bool), word: Option<Word>) -> u32 {
        let id = index(self.literals.len());
        self.literals.push(Literal {
            closed_right: !open_right
                && text.bytes().next_back().is_some_and(|byte| byte.is_ascii_alphanumeric()),
            spaced: text.bytes().any(|byte| byte == b' '),
            word,
            is_code: false,
            begins: Slice::default(),
            numbers: Slice::default(),
        });
        let begin = index(self.text.len());
        self.text.push_str(text);
        self.texts.push(Text { place: Slice(begin, index(self.text.len())), open_left, open_right });
        id
    }

    /// The literals as the automaton takes them.
    fn entries(&self) -> Vec<Entry<'_>> {
        let entry = |(id, text): (u32, &Text)| {
            let (literal, open) = (self.text_of(*text), text.open_left);
            // What begins with anything else begins anywhere.
            let open = open && literal.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
            Entry { id, text: literal, open }
        };
        (0..).zip(&self.texts).map(entry).collect()
    }

    fn phrase(&mut self, text: &'static str) -> Result<u32, String> {
        if let Some(&id) = self.phrase_ids.get(text) {
            return Ok(id);
        }
        let id = index(self.phrases.len());
        let from = index(self.parts.len());
        let mut first = None;
        let mut parser = std::mem::take(&mut self.parser);
        parser.parse(text, |literals, reach| {
            let mut literals: Vec<u32> = literals.map(|literal| self.literal(&literal)).collect();
            let choices = index(self.choices.len());
            if first.is_none() {
                self.firsts.extend(literals.iter().map(|literal| (*literal, id)));
                literals.sort_unstable();
            }
            self.choices.extend_from_slice(&literals);
            let choices = Slice(choices, index(self.choices.len()));
            if first.is_none() {
                first = Some(choices);
                return;
            }
            let fresh = index(self.part_numbers.len());
            let number = *self.part_numbers.entry(literals).or_insert(fresh);
            self.parts.push(Part { number, reach, choices });
        })?;
        self.parser = parser;
        let first = first.unwrap_or_default();
        self.phrases.push(Phrase { first, later: Slice(from, index(self.parts.len())) });
        self.phrase_ids.insert(text, id);
        Ok(id)
    }

    /// The phrases by the literal that they begin with, in the order of the rows that ask for them; literals learn their
    /// place.
    fn begins(&mut self, rows: &[Row], triggered: &[Slice]) -> Vec<Begin> {
        let mut asked_by = vec![u32::MAX; self.phrases.len()];
        for (id, row) in (0..).zip(rows) {
            for phrase in row.any.iter().chain(&row.all).chain(&row.none) {
                if let Some(first) = asked_by.get_mut(*phrase as usize) {
                    *first = id.min(*first);
                }
            }
        }
        let of = |phrase: u32| asked_by.get(phrase as usize).copied().unwrap_or_default();
        self.firsts.sort_by_key(|(_, phrase)| of(*phrase));
        let (places, list) = side_by_side(self.literals.len(), &self.firsts);
        for (literal, place) in self.literals.iter_mut().zip(places) {
            literal.begins = place;
        }
        let begin = |phrase: u32| {
            let later = self.phrases.get(phrase as usize).map(|phrase| phrase.later.of(&self.parts));
            let second = later.and_then(<[Part]>::first).map_or(NO_PART, |part| part.number);
            let rows = triggered.get(phrase as usize).copied().unwrap_or_default();
            Begin { phrase, second, asked_by: of(phrase), rows }
        };
        list.into_iter().map(begin).collect()
    }

    /// The numbers of parts by their choices; literals learn their place.
    fn numbers(&mut self) -> Vec<u32> {
        let numbered = self.part_numbers.iter();
        let pairs = numbered.flat_map(|(choices, number)| choices.iter().map(move |one| (*one, *number)));
        let (places, list) = side_by_side(self.literals.len(), &pairs.collect::<Vec<_>>());
        for (literal, place) in self.literals.iter_mut().zip(places) {
            literal.numbers = place;
        }
        list
    }

    fn phrases(&mut self, texts: &'static [&'static str]) -> Result<Vec<u32>, String> {
        texts.iter().map(|text| self.phrase(text)).collect()
    }

    /// A code that cannot be an ordinary word also counts where it stands bare in a text.
    fn code_word(&mut self, code: &'static str) {
        if !is_distinctive(code) {
            return;
        }
        let joined: String = code.chars().filter(|ch| !matches!(ch, '_' | '-')).collect();
        for spelled in [code, &joined, &spaced(code)] {
            let text = Cow::Owned(crate::view::View::normal(spelled));
            let id = self.literal(&phrase::Literal { text, open_left: false, open_right: false });
            if let Some(literal) = self.literals.get_mut(id as usize) {
                literal.is_code = true;
            }
        }
    }
}

/// Puts the values of each of so many keys side by side, in the order in which they are given, and says where those of
/// each key stand. What is given twice in a row of one key counts once.
fn side_by_side(keys: usize, pairs: &[(u32, u32)]) -> (Vec<Slice>, Vec<u32>) {
    let mut places = vec![Slice::default(); keys];
    for &(key, _) in pairs {
        if let Some(place) = places.get_mut(key as usize) {
            place.1 += 1;
        }
    }
    let mut end = 0;
    for place in &mut places {
        let count = place.1;
        *place = Slice(end, end);
        end += count;
    }
    let mut values = vec![0; end as usize];
    for &(key, value) in pairs {
        let Some(place) = places.get_mut(key as usize) else { continue };
        if place.of(&values).last() == Some(&value) {
            continue;
        }
        if let Some(free) = values.get_mut(place.1 as usize) {
            *free = value;
            place.1 += 1;
        }
    }
    (places, values)
}

/// Long, and written as no prose is: with `_` or `.`, or in camel case.
pub(crate) fn is_distinctive(code: &str) -> bool {
    let shouting = || code.len() >= 5 && code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    code.len() >= 8 && !code.ends_with('*') && (is_joined(code) || humps(code) > 0) || shouting()
}

/// Whether a word of a text is written so. A single hump makes a name of a program's own: `rateLimit`.
pub(crate) fn is_spelled(word: &str) -> bool {
    let own = || word.starts_with(|ch: char| ch.is_ascii_lowercase()) && !is_joined(word);
    is_distinctive(word) && (!own() || humps(word) > 1)
}

fn is_joined(word: &str) -> bool {
    memchr::memchr2(b'_', b'.', word.as_bytes()).is_some()
}

/// How often a capital letter follows a small one.
fn humps(word: &str) -> usize {
    let hump = |pair: &&[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    word.as_bytes().windows(2).filter(hump).count()
}

impl Compiled {
    pub(crate) fn new(tables: &[&dyn ProviderRules]) -> Result<Self, RuleSetError> {
        let mut rules = collect(tables)?;
        rules.sort_by_key(|rule| (rule.tier, rule.family));
        let mut pool = Pool::new();
        let mut known = Codes::default();
        let mut rows = Vec::with_capacity(rules.len());
        for rule in rules {
            let fault = |what| RuleSetError::Phrase { id: rule.id.to_owned(), what };
            let Matcher { any, all, none, codes, no_codes, .. } = rule.matcher;
            let any = pool.phrases(any).map_err(fault)?;
            let all = pool.phrases(all).map_err(fault)?;
            let none = pool.phrases(none).map_err(fault)?;
            for code in codes {
                pool.code_word(code);
            }
            let (codes, no_codes) = (known.ids(codes), known.ids(no_codes));
            rows.push(Row { rule, any, all, none, codes, no_codes });
        }
        known.prefixes.sort_unstable();
        if rows.iter().any(|row| row.rule.family.is_weighed()) {
            weights::prepare();
        }
        for (text, word) in words::all() {
            pool.add(text, (false, true), Some(word));
        }
        let automaton = Automaton::new(&pool.entries());
        let numbers = pool.numbers();
        let (mut by_phrase, mut by_code) = (Vec::new(), Vec::new());
        let mut always = vec![0_u64; rows.len().div_ceil(64)];
        for (id, row) in (0..).zip(&rows) {
            let triggers = if row.any.is_empty() { row.all.get(..1).unwrap_or_default() } else { &row.any };
            let (pairs, triggers) =
                if triggers.is_empty() { (&mut by_code, &*row.codes) } else { (&mut by_phrase, triggers) };
            if triggers.is_empty()
                && let Some(bits) = always.get_mut(id as usize / 64)
            {
                *bits |= 1 << (id % 64);
            }
            pairs.extend(triggers.iter().map(|trigger| (*trigger, id)));
        }
        let (rows_of_phrase, rows_of_phrases) = side_by_side(pool.phrases.len(), &by_phrase);
        let (rows_of_code, rows_of_codes) = side_by_side(known.len(), &by_code);
        let begins = pool.begins(&rows, &rows_of_phrase);
        Ok(Self {
            rows,
            phrases: pool.phrases,
            parts: pool.parts,
            choices: pool.choices,
            literals: pool.literals,
            begins,
            numbers,
            part_count: pool.part_numbers.len(),
            rows_of_phrases,
            codes: known,
            rows_of_code,
            rows_of_codes,
            always,
            automaton,
        })
    }
}

fn collect(tables: &[&dyn ProviderRules]) -> Result<Vec<Rule>, RuleSetError> {
    let mut seen = FxHashSet::default();
    let mut rules = Vec::new();
    for table in tables {
        let namespace = table.namespace();
        for rule in table.rows() {
            let name = rule.id.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('/'));
            let kebab = name.is_some_and(|name| {
                !name.is_empty()
                    && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            });
            if !kebab {
                return Err(RuleSetError::Id { id: rule.id.to_owned(), namespace: namespace.to_owned() });
            }
            if !seen.insert(rule.id) {
                return Err(RuleSetError::Twice(rule.id.to_owned()));
            }
            if namespace != "core" && rule.matcher.providers.is_empty() {
                return Err(RuleSetError::NoProvider(rule.id.to_owned()));
            }
            rules.push(*rule);
        }
    }
    Ok(rules)
}

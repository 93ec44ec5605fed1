//! Rows become one automaton and a few index tables, once.

use crate::phrase::{self, Literal};
use crate::rule::{Matcher, ProviderRules, Rule};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::collections::{HashMap, HashSet};

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
    /// The automaton cannot be built.
    #[error("the rules do not fit one automaton: {0}")]
    Automaton(String),
}

/// A phrase: literal ids and reach, part by part.
#[derive(Clone, Debug)]
pub(crate) struct Phrase {
    pub(crate) parts: Vec<(Vec<u32>, u32)>,
}

/// A row with its phrases resolved.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) rule: Rule,
    pub(crate) any: Vec<u32>,
    pub(crate) all: Vec<u32>,
    pub(crate) none: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct Compiled {
    /// In order of precedence.
    pub(crate) rows: Vec<Row>,
    pub(crate) phrases: Vec<Phrase>,
    /// Of each literal: open ends.
    pub(crate) open: Vec<(bool, bool)>,
    /// Of each literal: the phrases that begin with it.
    pub(crate) begins: Vec<Vec<u32>>,
    /// Of each literal: codes (of rows) that it is.
    pub(crate) code_words: Vec<Vec<&'static str>>,
    /// Of each phrase: rows that may win because of it.
    pub(crate) rows_of_phrase: Vec<Vec<u32>>,
    /// Rows that name a code, by code.
    pub(crate) rows_of_code: HashMap<String, Vec<u32>>,
    /// Codes that end in `*`: the beginning, and the rows.
    pub(crate) rows_of_prefix: Vec<(String, u32)>,
    /// Rows that name neither phrase nor code.
    pub(crate) always: Vec<u32>,
    pub(crate) automaton: AhoCorasick,
}

/// Collects literals and phrases without repeating them.
#[derive(Default)]
struct Pool {
    literals: Vec<Literal>,
    code_words: Vec<Vec<&'static str>>,
    ids: HashMap<Literal, u32>,
    phrases: Vec<Phrase>,
    phrase_ids: HashMap<&'static str, u32>,
}

fn index(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Pool {
    fn literal(&mut self, literal: Literal) -> u32 {
        if let Some(&id) = self.ids.get(&literal) {
            return id;
        }
        let id = index(self.literals.len());
        self.ids.insert(literal.clone(), id);
        self.literals.push(literal);
        self.code_words.push(Vec::new());
        id
    }

    fn phrase(&mut self, text: &'static str) -> Result<u32, String> {
        if let Some(&id) = self.phrase_ids.get(text) {
            return Ok(id);
        }
        let parts = phrase::parse(text)?
            .into_iter()
            .map(|part| (part.choices.into_iter().map(|literal| self.literal(literal)).collect(), part.reach))
            .collect();
        let id = index(self.phrases.len());
        self.phrases.push(Phrase { parts });
        self.phrase_ids.insert(text, id);
        Ok(id)
    }

    fn phrases(&mut self, texts: &'static [&'static str]) -> Result<Vec<u32>, String> {
        texts.iter().map(|text| self.phrase(text)).collect()
    }

    /// A code that cannot be an ordinary word also counts where it stands bare in a text.
    fn code_word(&mut self, code: &'static str) {
        if !is_distinctive(code) {
            return;
        }
        let text = crate::view::View::normal(code).trim().to_owned();
        let id = self.literal(Literal { text, open_left: false, open_right: false });
        if let Some(words) = self.code_words.get_mut(id as usize)
            && !words.contains(&code)
        {
            words.push(code);
        }
    }
}

/// Long, and written as no prose is: with `_` or `.`, or in camel case.
pub(crate) fn is_distinctive(code: &str) -> bool {
    let humps = code.as_bytes().windows(2).any(|pair| match pair {
        [a, b] => a.is_ascii_lowercase() && b.is_ascii_uppercase(),
        _ => false,
    });
    let shouting = code.len() >= 5 && code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    code.len() >= 8 && !code.ends_with('*') && (humps || code.contains('_') || code.contains('.')) || shouting
}

impl Compiled {
    pub(crate) fn new(tables: &[&dyn ProviderRules]) -> Result<Self, RuleSetError> {
        let mut rules = collect(tables)?;
        rules.sort_by_key(|rule| (rule.tier, rule.family));
        let mut pool = Pool::default();
        let mut rows = Vec::with_capacity(rules.len());
        for rule in rules {
            let fault = |what| RuleSetError::Phrase { id: rule.id.to_owned(), what };
            let Matcher { any, all, none, codes, .. } = rule.matcher;
            let any = pool.phrases(any).map_err(fault)?;
            let all = pool.phrases(all).map_err(fault)?;
            let none = pool.phrases(none).map_err(fault)?;
            for code in codes {
                pool.code_word(code);
            }
            rows.push(Row { rule, any, all, none });
        }
        let texts: Vec<&str> = pool.literals.iter().map(|literal| literal.text.as_str()).collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            // So many literals begin with every letter: looking for rare bytes first finds candidates everywhere.
            .prefilter(false)
            .build(&texts)
            .map_err(|error| RuleSetError::Automaton(error.to_string()))?;

        let mut begins = vec![Vec::new(); pool.literals.len()];
        for (id, phrase) in pool.phrases.iter().enumerate() {
            for &literal in phrase.parts.first().map(|(choices, _)| choices).into_iter().flatten() {
                if let Some(list) = begins.get_mut(literal as usize) {
                    list.push(index(id));
                }
            }
        }
        let mut rows_of_phrase = vec![Vec::new(); pool.phrases.len()];
        let mut rows_of_code: HashMap<String, Vec<u32>> = HashMap::new();
        let mut rows_of_prefix = Vec::new();
        let mut always = Vec::new();
        for (id, row) in rows.iter().enumerate() {
            let id = index(id);
            let triggers = if row.any.is_empty() { row.all.get(..1).unwrap_or_default() } else { &row.any };
            for &phrase in triggers {
                if let Some(list) = rows_of_phrase.get_mut(phrase as usize) {
                    list.push(id);
                }
            }
            if !triggers.is_empty() {
                continue;
            }
            if row.rule.matcher.codes.is_empty() {
                always.push(id);
            }
            for code in row.rule.matcher.codes {
                match code.strip_suffix('*') {
                    Some(prefix) => rows_of_prefix.push((prefix.to_ascii_lowercase(), id)),
                    None => rows_of_code.entry(code.to_ascii_lowercase()).or_default().push(id),
                }
            }
        }
        Ok(Self {
            rows,
            phrases: pool.phrases,
            open: pool.literals.iter().map(|literal| (literal.open_left, literal.open_right)).collect(),
            begins,
            code_words: pool.code_words,
            rows_of_phrase,
            rows_of_code,
            rows_of_prefix,
            always,
            automaton,
        })
    }
}

fn collect(tables: &[&dyn ProviderRules]) -> Result<Vec<Rule>, RuleSetError> {
    let mut seen = HashSet::new();
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

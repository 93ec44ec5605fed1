//! Phrases: the small language in which rows say which words they look for.

use crate::view::View;

/// A gap spans at most this many bytes.
const GAP: u32 = 80;
/// What an open word may go on for before the next part.
const TAIL: u32 = 16;
/// A part stands for at most this many literals; longer products are cut into parts that follow each other.
const MOST_LITERALS: usize = 96;

/// One literal of a phrase and whether words may go on beyond its ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Literal {
    pub(crate) text: String,
    pub(crate) open_left: bool,
    pub(crate) open_right: bool,
}

/// A choice of literals, and how far behind the part before it may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) choices: Vec<Literal>,
    pub(crate) reach: u32,
}

/// The parts of a phrase in order.
pub(crate) fn parse(phrase: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for stretch in phrase.split(" .. ") {
        let mut reach = GAP;
        let mut choices: Vec<String> = Vec::new();
        for unit in units(stretch) {
            let next = expand(unit)?;
            if choices.len() * next.len() <= MOST_LITERALS {
                choices = join(&choices, next);
                continue;
            }
            let open = choices.iter().any(|choice| choice.ends_with('*'));
            parts.push(part(choices, reach)?);
            reach = if open { TAIL } else { 1 };
            choices = next;
        }
        parts.push(part(choices, reach)?);
    }
    Ok(parts)
}

/// Words and groups, parted at spaces outside of braces.
fn units(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |ch: char| {
        match ch {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        ch == ' ' && depth == 0
    })
    .filter(|unit| !unit.is_empty())
}

fn join(heads: &[String], tails: Vec<String>) -> Vec<String> {
    if heads.is_empty() {
        return tails;
    }
    heads.iter().flat_map(|head| tails.iter().map(move |tail| joined(&[head, " ", tail]))).collect()
}

/// Most of what building a classifier takes is this, some twenty thousand times.
fn joined(parts: &[&str]) -> String {
    let mut text = String::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        text.push_str(part);
    }
    text
}

fn expand(unit: &str) -> Result<Vec<String>, String> {
    let mut choices = Vec::new();
    let mut rest = unit;
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        let close = after.find('}').ok_or_else(|| format!("unclosed {{ in {unit:?}"))?;
        let group = after.get(1..close).unwrap_or_default();
        choices = if choices.is_empty() {
            group.split('|').map(|choice| joined(&[before, choice])).collect()
        } else {
            let with = |head: &String| {
                let head = joined(&[head, before]);
                group.split('|').map(move |choice| joined(&[&head, choice])).collect::<Vec<_>>()
            };
            choices.iter().flat_map(with).collect()
        };
        rest = after.get(close + 1..).unwrap_or_default();
    }
    if choices.is_empty() {
        choices.push(String::new());
    }
    for choice in &mut choices {
        choice.push_str(rest);
    }
    Ok(choices)
}

fn part(choices: Vec<String>, reach: u32) -> Result<Part, String> {
    let choices = choices.into_iter().map(literal).collect::<Result<Vec<_>, _>>()?;
    if choices.is_empty() {
        return Err("empty phrase".to_owned());
    }
    Ok(Part { choices, reach })
}

fn literal(choice: String) -> Result<Literal, String> {
    if View::is_normal(&choice) {
        return Ok(Literal { text: choice, open_left: false, open_right: false });
    }
    let full = choice.trim();
    let (full, open_left) = full.strip_prefix('*').map_or((full, false), |text| (text, true));
    let (full, open_right) = full.strip_suffix('*').map_or((full, false), |text| (text, true));
    let text = View::normal(full);
    if text.is_empty() {
        return Err(format!("empty literal: {choice:?}"));
    }
    Ok(Literal { text, open_left, open_right })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_a_product_of_choices_with_gaps() {
        let parts = parse("{no|not enough} credit* .. left").unwrap();
        assert_eq!(parts.len(), 2);
        let texts: Vec<_> = parts[0].choices.iter().map(|literal| literal.text.as_str()).collect();
        assert_eq!(texts, ["no credit", "not enough credit"]);
        assert!(parts[0].choices[0].open_right && !parts[1].choices[0].open_right);
        assert_eq!(parts[1].reach, GAP);
    }

    #[test]
    fn a_large_product_becomes_parts_that_follow_each_other() {
        let group = "{a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p}";
        let parts = parse(&format!("{group} {group}")).unwrap();
        assert_eq!(
            parts.iter().map(|part| (part.choices.len(), part.reach)).collect::<Vec<_>>(),
            [(16, GAP), (16, 1)]
        );
    }

    #[test]
    fn a_broken_phrase_is_an_error() {
        assert!(parse("{a|b").is_err());
        assert!(parse("  ").is_err());
    }
}

//! Phrases: the small language in which rows say which words they look for.

use crate::view::View;
use std::borrow::Cow;

/// A gap spans at most this many bytes.
const GAP: u32 = 80;
/// What an open word may go on for before the next part.
const TAIL: u32 = 16;
/// A part stands for at most this many literals; longer products are cut into parts that follow each other.
const MOST_LITERALS: usize = 96;

/// One literal of a phrase and whether words may go on beyond its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literal<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) open_left: bool,
    pub(crate) open_right: bool,
}

/// Texts, one behind the other.
#[derive(Debug, Default)]
struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Adds a text, in pieces.
    fn push(&mut self, pieces: [&str; 4]) {
        for piece in pieces {
            self.text.push_str(piece);
        }
        self.ends.push(self.text.len());
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| self.text.get(begin..*end).unwrap_or_default())
    }
}

/// Reads phrases. Some twenty thousand literals are written out in its memory, which is used again for each part.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    choices: Texts,
    spare: Texts,
}

impl Parser {
    /// Hands over the parts of a phrase in order: the literals that each is a choice of, and how far behind the part
    /// before it one of them may begin.
    pub(crate) fn parse(
        &mut self,
        phrase: &str,
        mut part: impl FnMut(&mut dyn Iterator<Item = Literal<'_>>, u32),
    ) -> Result<(), String> {
        for stretch in phrase.split(" .. ") {
            let mut reach = GAP;
            self.choices.clear();
            for unit in units(stretch) {
                if self.choices.ends.len() * count(unit)? > MOST_LITERALS {
                    let open = self.choices.iter().any(|choice| choice.ends_with('*'));
                    self.hand_over(&mut part, reach)?;
                    reach = if open { TAIL } else { 1 };
                    self.choices.clear();
                }
                self.add(unit);
            }
            self.hand_over(&mut part, reach)?;
        }
        Ok(())
    }

    /// Adds a word or group behind each of the choices.
    fn add(&mut self, unit: &str) {
        let mut space = " ";
        if self.choices.ends.is_empty() {
            self.choices.push([""; 4]);
            space = "";
        }
        let mut rest = unit;
        while let Some((before, group, after)) = group(rest) {
            self.multiply([space, before], group);
            (space, rest) = ("", after);
        }
        if !space.is_empty() || !rest.is_empty() {
            self.multiply([space, rest], "");
        }
    }

    /// Each of the choices with each of the alternatives of a group behind it, and this before them.
    fn multiply(&mut self, [space, before]: [&str; 2], group: &str) {
        let group: Vec<&str> = group.split('|').collect();
        self.spare.clear();
        for head in self.choices.iter() {
            for choice in &group {
                self.spare.push([head, space, before, choice]);
            }
        }
        std::mem::swap(&mut self.choices, &mut self.spare);
    }

    fn hand_over(
        &self,
        part: &mut impl FnMut(&mut dyn Iterator<Item = Literal<'_>>, u32),
        reach: u32,
    ) -> Result<(), String> {
        if self.choices.ends.is_empty() {
            return Err("empty phrase".to_owned());
        }
        let mut empty = None;
        let literals = self.choices.iter().map(|choice| {
            let literal = literal(choice);
            if literal.text.is_empty() {
                empty = Some(choice);
            }
            literal
        });
        part(&mut { literals }, reach);
        empty.map_or(Ok(()), |choice| Err(format!("empty literal: {choice:?}")))
    }
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

/// What stands before the first group of a text, its alternatives, and what stands behind it.
fn group(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.bytes().position(|byte| byte == b'{')?;
    let len = text.bytes().skip(open).position(|byte| byte == b'}')?;
    Some((text.get(..open)?, text.get(open + 1..open + len)?, text.get(open + len + 1..)?))
}

/// How many literals a word or group stands for.
fn count(unit: &str) -> Result<usize, String> {
    let (mut count, mut rest) = (1, unit);
    while let Some((_, group, after)) = group(rest) {
        count *= group.bytes().filter(|byte| *byte == b'|').count() + 1;
        rest = after;
    }
    if rest.contains('{') { Err(format!("unclosed {{ in {unit:?}")) } else { Ok(count) }
}

fn literal(choice: &str) -> Literal<'_> {
    let full = choice.trim();
    let (full, open_left) = full.strip_prefix('*').map_or((full, false), |text| (text, true));
    let (full, open_right) = full.strip_suffix('*').map_or((full, false), |text| (text, true));
    let is_normal = View::is_normal(full);
    let text = if is_normal { Cow::Borrowed(full) } else { Cow::Owned(View::normal(full)) };
    Literal { text, open_left, open_right }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each part the literals, with a star where they are open, and its reach.
    fn parse(phrase: &str) -> Result<Vec<(Vec<String>, u32)>, String> {
        let mut parts = Vec::new();
        Parser::default().parse(phrase, |choices, reach| {
            let star = |open: bool| if open { "*" } else { "" };
            let text = |literal: Literal<'_>| {
                format!("{}{}{}", star(literal.open_left), literal.text, star(literal.open_right))
            };
            parts.push((choices.map(text).collect(), reach));
        })?;
        Ok(parts)
    }

    #[test]
    fn a_phrase_is_a_product_of_choices_with_gaps() {
        let parts = parse("{no|not enough} credit* .. {is |*}left").unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].0, ["no credit*", "not enough credit*"]);
        assert_eq!(parts[1].0, ["is left", "*left"]);
        assert_eq!(parts[1].1, GAP);
    }

    #[test]
    fn a_large_product_becomes_parts_that_follow_each_other() {
        let group = "{a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p}";
        let parts = parse(&format!("{group} {group}")).unwrap();
        assert_eq!(
            parts.iter().map(|(choices, reach)| (choices.len(), *reach)).collect::<Vec<_>>(),
            [(16, GAP), (16, 1)]
        );
    }

    #[test]
    fn a_broken_phrase_is_an_error() {
        assert!(parse("{a|b").is_err());
        assert!(parse("  ").is_err());
        assert!(parse("{a|*}").is_err());
    }
}

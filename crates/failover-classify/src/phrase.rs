//! Phrases: the small language in which rows say which words they look for.

use crate::view::View;

/// A gap spans at most this many bytes.
pub(crate) const GAP: usize = 80;
/// No phrase may stand for more literals than this.
const MOST_LITERALS: usize = 512;

/// One literal of a phrase and whether words may go on beyond its ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Literal {
    pub(crate) text: String,
    pub(crate) open_left: bool,
    pub(crate) open_right: bool,
}

/// The parts of a phrase in order, each a choice of literals; between two parts lies a gap.
pub(crate) fn parse(phrase: &str) -> Result<Vec<Vec<Literal>>, String> {
    phrase.split(" .. ").map(part).collect()
}

fn part(text: &str) -> Result<Vec<Literal>, String> {
    let mut choices = vec![String::new()];
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        let close = after.find('}').ok_or_else(|| format!("unclosed {{ in {text:?}"))?;
        let group = after.get(1..close).unwrap_or_default();
        choices = choices
            .iter()
            .flat_map(|head| group.split('|').map(move |choice| format!("{head}{before}{choice}")))
            .collect();
        if choices.len() > MOST_LITERALS {
            return Err(format!("more than {MOST_LITERALS} literals in {text:?}"));
        }
        rest = after.get(close + 1..).unwrap_or_default();
    }
    choices
        .into_iter()
        .map(|head| {
            let full = format!("{head}{rest}");
            let full = full.trim();
            let (full, open_left) = full.strip_prefix('*').map_or((full, false), |text| (text, true));
            let (full, open_right) = full.strip_suffix('*').map_or((full, false), |text| (text, true));
            let normal = View::normal(full);
            let normal = normal.trim().to_owned();
            if normal.is_empty() {
                return Err(format!("empty literal in {text:?}"));
            }
            Ok(Literal { text: normal, open_left, open_right })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_a_product_of_choices_with_gaps() {
        let parts = parse("{no|not enough} credit* .. left").unwrap();
        assert_eq!(parts.len(), 2);
        let texts: Vec<_> = parts[0].iter().map(|literal| literal.text.as_str()).collect();
        assert_eq!(texts, ["no credit", "not enough credit"]);
        assert!(parts[0][0].open_right && !parts[1][0].open_right);
    }

    #[test]
    fn a_broken_phrase_is_an_error() {
        assert!(parse("{a|b").is_err());
        assert!(parse("  ").is_err());
    }
}

//! Which numbered requirements of `docs/spec.md` no test names.

use crate::run::{Faults, Outcome, files, is_rust, text};
use std::collections::{BTreeMap, BTreeSet};

const SPEC: &str = "docs/spec.md";

/// Prints the requirements without a test, and fails where a test names one that does not exist.
pub(crate) fn main(_args: &[String]) -> Outcome {
    let known = known()?;
    let named = named()?;
    let mut faults = Faults::default();
    for (number, files) in &named {
        if !known.contains_key(number) {
            let places: Vec<&str> = files.iter().map(String::as_str).collect();
            faults
                .0
                .push(format!("{number} is named in {}, and {SPEC} has no such number", places.join(", ")));
        }
    }
    let missing: Vec<_> = known.iter().filter(|(number, _)| !named.contains_key(*number)).collect();
    println!("{} of {} requirements are named by a test", known.len() - missing.len(), known.len());
    for (number, title) in missing {
        println!("  {number:6} {title}");
    }
    faults.into_outcome()
}

/// Number and opening words of every requirement.
fn known() -> Result<BTreeMap<String, String>, Faults> {
    Ok(text(SPEC)?
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .filter_map(|line| line.split_once(' '))
        .filter(|(number, _)| is_number(number))
        .map(|(number, rest)| (number.to_owned(), rest.chars().take(90).collect()))
        .collect())
}

/// Numbers behind `// spec:` in Rust files, and where they stand.
fn named() -> Result<BTreeMap<String, BTreeSet<String>>, Faults> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files()?.into_iter().filter(|file| is_rust(file) && !file.starts_with("xtask/")) {
        for number in numbers(&text(&file)?) {
            named.entry(number).or_default().insert(file.clone());
        }
    }
    Ok(named)
}

fn numbers(source: &str) -> Vec<String> {
    source
        .lines()
        .filter_map(|line| line.split_once("// spec:"))
        .flat_map(|(_, rest)| rest.split([',', ' ']))
        .filter(|word| is_number(word))
        .map(str::to_owned)
        .collect()
}

/// A letter of a chapter, a dash, digits, and perhaps a letter: `A-12`, `C-6b`.
fn is_number(word: &str) -> bool {
    let Some((chapter, rest)) = word.split_once('-') else { return false };
    let digits = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
    chapter.len() == 1
        && "CAHSRPKUG".contains(chapter)
        && !digits.is_empty()
        && rest.len() - digits.len() <= 1
        && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_comments() {
        let source = "    // spec: A-12, C-6b\n// spec: R-1 and S-5\nlet x = \"Z-1\";";
        assert_eq!(numbers(source), ["A-12", "C-6b", "R-1", "S-5"]);
    }
}

//! What must hold of a corpus and a table of rows as a whole.

use super::case::{entries, has_extension};
use super::{Case, Corpus, CorpusError, Run};
use failover_classify::{Classifier, Family, Tier};
use failover_types::FailoverReason;
use std::collections::BTreeMap;

/// The cases that each row decides.
pub fn wins<'c>(runs: &[Run<'c>]) -> BTreeMap<String, Vec<&'c Case>> {
    let mut wins: BTreeMap<String, Vec<&Case>> = BTreeMap::new();
    for run in runs {
        wins.entry(run.explanation.verdict.evidence.rule.to_string()).or_default().push(run.case);
    }
    wins
}

/// Two rows of one tier and one family that match one case and mean different things: no documented order
/// settles which of them is right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// `provider/case`.
    pub case: String,
    /// Their tier.
    pub tier: Tier,
    /// Their family.
    pub family: Family,
    /// The row that stands first, and what it means.
    pub first: (String, FailoverReason),
    /// The other.
    pub second: (String, FailoverReason),
}

/// All conflicts between rows.
pub fn conflicts(runs: &[Run<'_>]) -> Vec<Conflict> {
    let mut found = Vec::new();
    for run in runs {
        let matched = &run.explanation.matched;
        for (at, first) in matched.iter().enumerate() {
            for second in matched.iter().skip(at + 1) {
                let one_place = first.tier == second.tier && first.family == second.family;
                if one_place && first.reason != second.reason {
                    found.push(Conflict {
                        case: run.case.path(),
                        tier: first.tier,
                        family: first.family,
                        first: (first.rule.clone(), first.reason),
                        second: (second.rule.clone(), second.reason),
                    });
                }
            }
        }
    }
    found
}

/// Rows whose evidence names a case or provider (`corpus:…`) that the corpus does not hold.
pub fn unknown_evidence(classifier: &Classifier, corpus: &Corpus) -> Vec<String> {
    classifier
        .rows()
        .filter_map(|row| Some((row.id, row.evidence.strip_prefix("corpus:")?)))
        .filter(|(_, name)| !corpus.cases.iter().any(|case| case.id == *name || case.provider == *name))
        .map(|(id, name)| format!("{id} rests on corpus:{name}, which does not exist"))
        .collect()
}

/// Snapshots (`.snap`, `.snap.new`) below the corpus that belong to no case.
///
/// # Errors
/// If a directory cannot be read.
pub fn orphans(corpus: &Corpus) -> Result<Vec<String>, CorpusError> {
    let mut orphans = Vec::new();
    for directory in entries(&corpus.root)? {
        if !directory.is_dir() {
            continue;
        }
        for path in entries(&directory)? {
            let known = has_extension(&path, "toml")
                || has_extension(&path, "snap")
                    && corpus.cases.iter().any(|case| corpus.snapshot_path(case) == path);
            if !known {
                orphans.push(path.strip_prefix(&corpus.root).unwrap_or(&path).display().to_string());
            }
        }
    }
    Ok(orphans)
}

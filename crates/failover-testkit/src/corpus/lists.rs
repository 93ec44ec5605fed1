//! The two lists of exceptions: each entry has a reason, and a stale entry is a fault.

use super::{Conflict, CorpusError, Run, conflicts, wins};
use failover_classify::Classifier;
use serde::Deserialize;
use std::path::Path;

/// A case whose verdict is known to differ from its expectation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Known {
    /// `provider/case`.
    pub case: String,
    /// Why that is so for now.
    pub reason: String,
}

/// A row that no case of the corpus is decided by.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unseen {
    /// The row's id.
    pub rule: String,
    /// Why the row stands all the same.
    pub reason: String,
}

/// Two rows of one family that may match one text and mean different things, because the first is meant to win.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Settled {
    /// The row that stands first, and wins.
    pub first: String,
    /// The other.
    pub second: String,
    /// Why that order is right.
    pub reason: String,
}

/// `KNOWN.toml` and `UNSEEN.toml` of a corpus. A missing file is an empty list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Lists {
    /// Deviations from expectations.
    pub known: Vec<Known>,
    /// Pairs of rows whose order is meant.
    pub settled: Vec<Settled>,
    /// Rows without a case.
    pub unseen: Vec<Unseen>,
}

impl Lists {
    /// Reads both lists.
    ///
    /// # Errors
    /// If a file is there and cannot be read, or is malformed.
    pub fn load(root: &Path) -> Result<Self, CorpusError> {
        let Self { known, settled, .. } = read(&root.join("KNOWN.toml"))?;
        let Self { unseen, .. } = read(&root.join("UNSEEN.toml"))?;
        Ok(Self { known, settled, unseen })
    }

    /// Cases that differ and are not listed, and entries that no longer hold.
    pub fn deviations(&self, runs: &[Run<'_>]) -> Vec<String> {
        let listed = |path: &str| self.known.iter().any(|known| known.case == path);
        let mut faults: Vec<String> = runs
            .iter()
            .filter(|run| !listed(&run.case.path()))
            .flat_map(|run| run.faults().into_iter().map(|fault| format!("{}: {fault}", run.case.path())))
            .collect();
        for known in &self.known {
            match runs.iter().find(|run| run.case.path() == known.case) {
                None => faults.push(format!("KNOWN.toml lists {}, and there is no such case", known.case)),
                Some(run) if run.faults().is_empty() => {
                    faults.push(format!("KNOWN.toml lists {}, and its verdict is right", known.case));
                }
                Some(_) if known.reason.trim().is_empty() => {
                    faults.push(format!("KNOWN.toml gives no reason for {}", known.case));
                }
                Some(_) => {}
            }
        }
        faults
    }

    /// Conflicts between rows that are not listed as settled, and entries that no longer hold.
    pub fn conflicts(&self, runs: &[Run<'_>]) -> Vec<String> {
        let conflicts = conflicts(runs);
        let is = |settled: &Settled, conflict: &Conflict| {
            settled.first == conflict.first.0 && settled.second == conflict.second.0
        };
        let open =
            conflicts.iter().filter(|conflict| !self.settled.iter().any(|settled| is(settled, conflict)));
        let mut faults: Vec<String> = open
            .map(|Conflict { case, first: (first, means), second: (second, other), .. }| {
                format!("{case}: {first} means {means}, {second} of the same family means {other}")
            })
            .collect();
        for settled in &self.settled {
            let Settled { first, second, reason } = settled;
            if !conflicts.iter().any(|conflict| is(settled, conflict)) {
                faults.push(format!("KNOWN.toml settles {first} before {second}, and they meet in no case"));
            } else if reason.trim().is_empty() {
                faults.push(format!("KNOWN.toml gives no reason for {first} before {second}"));
            }
        }
        faults
    }

    /// Rows that win no case and are not listed, and entries that no longer hold.
    pub fn coverage(&self, classifier: &Classifier, runs: &[Run<'_>]) -> Vec<String> {
        let wins = wins(runs);
        let listed = |rule: &str| self.unseen.iter().any(|unseen| unseen.rule == rule);
        let mut faults: Vec<String> = classifier
            .rows()
            .filter(|row| !wins.contains_key(row.id) && !listed(row.id))
            .map(|row| format!("{} decides no case, and UNSEEN.toml does not say why it stands", row.id))
            .collect();
        for unseen in &self.unseen {
            if !classifier.rows().any(|row| row.id == unseen.rule) {
                faults.push(format!("UNSEEN.toml lists {}, and there is no such row", unseen.rule));
            } else if let Some([case, ..]) = wins.get(unseen.rule.as_str()).map(Vec::as_slice) {
                faults.push(format!("UNSEEN.toml lists {}, and it decides {}", unseen.rule, case.path()));
            } else if unseen.reason.trim().is_empty() {
                faults.push(format!("UNSEEN.toml gives no reason for {}", unseen.rule));
            }
        }
        faults
    }
}

fn read(path: &Path) -> Result<Lists, CorpusError> {
    if !path.exists() {
        return Ok(Lists::default());
    }
    let text =
        std::fs::read_to_string(path).map_err(|source| CorpusError::Io { path: path.into(), source })?;
    toml::from_str(&text)
        .map_err(|error: toml::de::Error| CorpusError::Case { path: path.into(), what: error.to_string() })
}

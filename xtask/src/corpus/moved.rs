//! Cases whose verdict is another one than a revision's snapshots say.

use crate::run::{Faults, root};
use failover_testkit::corpus::{Run, Summary};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

/// A case whose verdict moved, came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// `provider/case`.
    pub(crate) case: String,
    /// What was accepted; `None` for a new case.
    pub(crate) old: Option<Summary>,
    /// What is said now; `None` for a case that is gone.
    pub(crate) new: Option<Summary>,
}

impl Moved {
    /// `old -> new`, in as many words as tell them apart.
    pub(crate) fn pair(&self) -> String {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if old.reason != new.reason => format!("{} -> {}", old.reason, new.reason),
            (Some(old), Some(new)) if old.hint != new.hint => format!("hint {} -> {}", old.hint, new.hint),
            (Some(old), Some(new)) => format!("rule {} -> {}", old.rule, new.rule),
            (None, Some(new)) => format!("new -> {}", new.reason),
            (Some(old), None) => format!("{} -> gone", old.reason),
            (None, None) => String::new(),
        }
    }
}

/// What moved against a revision, or against the snapshots of the working tree.
pub(crate) fn moved(revision: Option<&str>, runs: &[Run<'_>]) -> Result<Vec<Moved>, Faults> {
    let mut accepted = accepted(revision)?;
    let mut found: Vec<Moved> = runs
        .iter()
        .filter_map(|run| {
            let case = run.case.path();
            let old = accepted.remove(&case);
            let new = Summary::of(&failover_testkit::corpus::render(run));
            (old != new).then_some(Moved { case, old, new })
        })
        .collect();
    found.extend(accepted.into_iter().map(|(case, old)| Moved { case, old: Some(old), new: None }));
    Ok(found)
}

/// How often each pair occurs, the most frequent first.
pub(crate) fn counts(moved: &[Moved]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for moved in moved {
        *counts.entry(moved.pair()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// The list in plain text.
pub(crate) fn text(revision: &str, moved: &[Moved]) -> String {
    let mut text = format!("{} cases moved against {revision}\n", moved.len());
    for (pair, count) in counts(moved) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{count:5}  {pair}");
    }
    for moved in moved {
        let rule =
            |summary: &Option<Summary>| summary.as_ref().map_or("-", |summary| &summary.rule).to_owned();
        let _ =
            writeln!(text, "{}: {} ({} -> {})", moved.case, moved.pair(), rule(&moved.old), rule(&moved.new));
    }
    text
}

/// The accepted verdicts by case. One `git grep` reads the three lines that tell of all snapshots.
fn accepted(revision: Option<&str>) -> Result<BTreeMap<String, Summary>, Faults> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["grep", "-z", "-H", "--full-name", "--no-color", "-E"]);
    if revision.is_none() {
        git.arg("--untracked");
    }
    git.args(["-e", "^(reason|hint|rule)  +"])
        .args(revision.map(|revision| ["--end-of-options", revision]).iter().flatten());
    let output = git
        .args(["--", "fixtures/corpus/*.snap"])
        .output()
        .map_err(|error| Faults::one(format!("git grep: {error}")))?;
    // 1: nothing found, so nothing was accepted yet.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(Faults::one(format!("git grep: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

fn parse(lines: &str) -> BTreeMap<String, Summary> {
    let mut verdicts: BTreeMap<String, String> = BTreeMap::new();
    for (name, line) in lines.lines().filter_map(|line| line.split_once('\0')) {
        let Some((_, path)) = name.split_once("fixtures/corpus/") else { continue };
        let verdict =
            verdicts.entry(path.trim_end_matches(".snap").to_owned()).or_insert_with(|| "\n--\n".into());
        verdict.push_str(line);
        verdict.push('\n');
    }
    verdicts.into_iter().filter_map(|(case, verdict)| Some((case, Summary::of(&verdict)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_git_become_verdicts_and_verdicts_pairs() {
        let lines = "main:fixtures/corpus/acme/a.snap\0reason   billing, blames credential\n\
            main:fixtures/corpus/acme/a.snap\0hint     -\nmain:fixtures/corpus/acme/a.snap\0rule     acme/quota\n\
            main:fixtures/corpus/acme/b.snap\0reason   lacks the rest\n";
        let old = parse(lines);
        assert_eq!(old.len(), 1);
        let old = old.get("acme/a").cloned();
        let mut moved = Moved { case: "acme/a".into(), old: old.clone(), new: old };
        assert_eq!(moved.pair(), "rule acme/quota -> acme/quota");
        if let Some(new) = &mut moved.new {
            new.reason = "rate_limit, blames model".into();
        }
        assert_eq!(moved.pair(), "billing, blames credential -> rate_limit, blames model");
        assert_eq!(counts(&[moved.clone(), moved]).first().map(|(_, count)| *count), Some(2));
    }
}

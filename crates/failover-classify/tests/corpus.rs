//! The corpus: every case as expected, every verdict as accepted, every row proven by a case.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_classify::{Classifier, redact};
use failover_testkit::corpus::{self, Corpus, Lists, Run};
use failover_types::FailoverReason;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Reasons right, in percent: less fails.
const LEAST_RIGHT: usize = 99;

fn load() -> (Classifier, Corpus, Lists) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/corpus").canonicalize().unwrap();
    let lists = Lists::load(&root).unwrap();
    (Classifier::standard().unwrap(), Corpus::load(root).unwrap(), lists)
}

fn none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{} {what}:\n  {}", faults.len(), faults.join("\n  "));
}

// spec: C-2, C-3, C-24
#[test]
fn every_case_is_as_expected_or_listed() {
    let (classifier, corpus, lists) = load();
    let runs = corpus::run(&classifier, &corpus);
    let right = runs.iter().filter(|run| run.is_reason_right()).count();
    none("verdicts differ from expectations", &lists.deviations(&runs));
    assert!(right * 100 >= runs.len() * LEAST_RIGHT, "reason right in {right} of {} cases only", runs.len());
}

// spec: C-2, C-24
#[test]
fn every_verdict_is_the_accepted_one() {
    let (classifier, corpus, _) = load();
    let runs = corpus::run(&classifier, &corpus);
    let moved: Vec<String> = runs
        .iter()
        .filter(|run| catch_unwind(AssertUnwindSafe(|| compare(&corpus, run))).is_err())
        .map(|run| run.case.path())
        .collect();
    none("verdicts moved (accept with INSTA_UPDATE=always after reading them)", &moved);
}

fn compare(corpus: &Corpus, run: &Run<'_>) {
    let path = corpus.snapshot_path(run.case);
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(path.parent().unwrap());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(run.case.id.as_str(), corpus::render(run)));
}

// spec: C-2
#[test]
fn every_row_decides_a_case_or_says_why_it_stands() {
    let (classifier, corpus, lists) = load();
    let runs = corpus::run(&classifier, &corpus);
    none("rows without proof", &lists.coverage(&classifier, &runs));
}

// spec: C-24
#[test]
fn every_reason_has_a_case() {
    let (_, corpus, _) = load();
    let lacking: Vec<String> = FailoverReason::ALL
        .iter()
        .filter(|reason| !corpus.cases.iter().any(|case| case.expect.reason == **reason))
        .map(ToString::to_string)
        .collect();
    none("reasons have no case", &lacking);
}

// spec: C-3
#[test]
fn rows_of_one_family_never_disagree() {
    let (classifier, corpus, lists) = load();
    none("conflicts that no order settles", &lists.conflicts(&corpus::run(&classifier, &corpus)));
}

// spec: C-2
#[test]
fn evidence_and_snapshots_belong_to_cases() {
    let (classifier, corpus, _) = load();
    none("rows rest on nothing", &corpus::unknown_evidence(&classifier, &corpus));
    none("files belong to no case", &corpus::orphans(&corpus).unwrap());
}

// spec: C-23
#[test]
fn no_secret_stands_in_a_snapshot() {
    let (_, corpus, _) = load();
    let leaking: Vec<String> = corpus
        .cases
        .iter()
        .filter(|case| {
            let path = corpus.snapshot_path(case);
            let text =
                std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
            redact(&text) != text
        })
        .map(corpus::Case::path)
        .collect();
    none("snapshots hold what looks like a secret", &leaking);
}

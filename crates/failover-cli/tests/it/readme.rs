//! The README's record of the demo is what the demo prints, times apart.

use crate::{Ended, binary};
use std::path::Path;

const SCENES: [&str; 2] = ["both-limited", "user-pick"];
const HEAD: &str =
    "<!-- The record of the demo: UPDATE_DOCS=1 cargo nextest run -p failover-cli readme -->\n```text\n";
const TAIL: &str = "```\n<!-- End of the record. -->";

/// Every duration replaced by a sign: they differ from run to run.
fn without_times(text: &str) -> String {
    text.lines()
        .map(|line| match line.rsplit_once(" after ") {
            Some((before, after)) if after.ends_with('s') => format!("{before} after …"),
            _ => line.to_owned(),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

// spec: U-1
#[test]
fn the_record_of_the_demo_is_true() {
    let home = tempfile::tempdir().unwrap();
    let mut record = String::new();
    for scene in SCENES {
        let ended = Ended::of(&binary(home.path(), &["demo", "--scene", scene]).output().unwrap());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        if !record.is_empty() {
            record.push('\n');
        }
        // Without the words before and behind the scenes.
        let paragraphs: Vec<&str> = ended.out.trim_end().split("\n\n").collect();
        record.push_str(&paragraphs[1..paragraphs.len() - 1].join("\n\n").replace("1/1  ", ""));
        record.push('\n');
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(HEAD).unwrap();
    let (written, after) = rest.split_once(TAIL).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, format!("{before}{HEAD}{record}{TAIL}{after}")).unwrap();
        return;
    }
    assert_eq!(without_times(&record), without_times(written), "the README's record is stale, see its head");
}

//! The scenarios of `fixtures/scenarios`: each is played, and its timeline compared with the one beside it.
//!
//! `UPDATE_SCENARIOS=1` writes the timelines anew; the diff is then what a reviewer reads.

use failover_runner::simulate::{Scenario, play};
use std::path::PathBuf;

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "fixtures", "scenarios"].iter().collect()
}

// spec: R-1
#[test]
#[expect(clippy::disallowed_methods, reason = "whether to write the timelines anew")]
fn every_scenario_plays_as_it_is_written_down() {
    let update = std::env::var("UPDATE_SCENARIOS").is_ok();
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path()).collect();
    names.retain(|name| name.extension().is_some_and(|end| end == "json"));
    names.sort();
    assert!(names.len() >= 30, "{} scenarios", names.len());
    let mut wrong = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(&name).unwrap();
        let scenario: Scenario =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        assert!(!scenario.about.is_empty() && !scenario.spec.is_empty(), "{}", name.display());
        let timeline = play(&scenario).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        let again = play(&scenario).unwrap();
        assert_eq!(timeline, again, "the same scenario gives the same timeline");
        let told = format!("{}\n\n{timeline}", scenario.about);
        let beside = name.with_extension("txt");
        if update {
            std::fs::write(&beside, &told).unwrap();
        } else if std::fs::read_to_string(&beside).unwrap_or_default() != told {
            wrong.push(format!("{}:\n{told}", name.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! `failover simulate`.

use crate::{binary, with_input};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/scenarios")
}

fn run(args: &[&str]) -> crate::Ended {
    let home = TempDir::new().unwrap();
    let ended = crate::Ended::of(&binary(home.path(), args).output().unwrap());
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "a simulation leaves nothing behind");
    ended
}

// spec: R-1, U-2
#[test]
fn a_file_and_its_name_give_the_timeline_beside_it() {
    let written = std::fs::read_to_string(folder().join("rotation-auth.txt")).unwrap();
    let file = folder().join("rotation-auth.json").display().to_string();
    for scenario in ["rotation-auth", &file] {
        let ended = run(&["simulate", scenario]);
        assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), written.as_str(), ""));
    }
    let text = std::fs::read(folder().join("rotation-auth.json")).unwrap();
    let home = TempDir::new().unwrap();
    let ended = with_input(binary(home.path(), &["simulate", "-"]), &text);
    assert_eq!((ended.code, ended.out), (Some(0), written));
}

// spec: U-2
#[test]
fn machines_get_one_object() {
    let ended = run(&["simulate", "first-answers", "--json"]);
    let told = ended.json();
    assert_eq!(told["timeline"][1]["what"], "attempt 1: a/m with a:default");
    assert_eq!((&told["timeline"][2]["atMs"], &told["timeline"][2]["who"]), (&100.into(), &"turn".into()));
    let list = run(&["simulate", "--list", "--json"]).json();
    assert!(list["scenarios"].as_array().unwrap().len() >= 30);
    assert!(run(&["simulate", "--list"]).out.contains("\nfirst-answers  H-1\n  The primary answers"));
}

// spec: U-2
#[test]
fn what_is_shown_can_be_played() {
    let home = TempDir::new().unwrap();
    let shown = run(&["simulate", "--show", "session-moves-and-returns"]).out;
    std::fs::write(home.path().join("mine.json"), shown).unwrap();
    let mine = home.path().join("mine.json").display().to_string();
    assert_eq!(run(&["simulate", &mine]).out, run(&["simulate", "session-moves-and-returns"]).out);
}

// spec: U-2
#[test]
fn a_fault_is_told_with_file_line_and_column() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("bad.json");
    std::fs::write(&path, "{\n  \"chain\": [\"a/m\"],\n  \"profils\": []\n}").unwrap();
    let ended = run(&["simulate", &path.display().to_string()]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains(&format!("{}:3:11: unknown field `profils`", path.display())),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("  \"profils\": []"), "{}", ended.err);

    let missing = run(&["simulate", "nowhere.json"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.err.contains("cannot read nowhere.json") && missing.err.contains("--list"),
        "{}",
        missing.err
    );
    assert_eq!(run(&["simulate"]).code, Some(2));
}

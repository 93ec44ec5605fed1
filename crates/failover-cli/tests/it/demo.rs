//! `failover demo`: every scene ends as it tells.

use crate::{Ended, binary};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

fn demo(args: &[&str]) -> Ended {
    let args: Vec<&str> = std::iter::once("demo").chain(args.iter().copied()).collect();
    Ended::of(&binary(Path::new("/nonexistent"), &args).output().unwrap())
}

fn names() -> Vec<String> {
    let listed = demo(&["--list"]).out;
    listed.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

// spec: U-1
#[test]
fn every_scene_ends_as_told() {
    let ended = demo(&["--json"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let scenes: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let played: Vec<&str> = scenes.iter().map(|scene| scene["scene"].as_str().unwrap()).collect();
    assert_eq!(played, names());
    for scene in &scenes {
        assert_eq!(scene["asTold"], true, "{scene}");
        assert!(!scene["decisions"].as_array().unwrap().is_empty(), "{scene}");
    }
    let of = |name: &str| scenes.iter().find(|scene| scene["scene"] == name).unwrap();
    assert_eq!(of("recovery")["notices"].as_array().unwrap().len(), 2);
    assert_eq!(of("user-pick")["session"]["source"], "user");
    assert_eq!(of("all-down")["usableAgainInMs"].as_u64().unwrap().div_ceil(1000), 30);
    assert_eq!(of("overflow")["served"], Value::Null);
}

// spec: U-1, U-4
#[test]
fn it_reads_well_in_80_columns() {
    let ended = demo(&[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in ended.out.lines().chain(demo(&["--list"]).out.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.contains("{\""), "raw JSON is not for people: {line}");
    }
}

#[test]
fn one_scene_can_be_played_alone() {
    let ended = demo(&["--scene", "billing", "--json"]);
    assert_eq!((ended.code, ended.out.lines().count()), (Some(0), 1), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut command = binary(Path::new("/nonexistent"), &["demo"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
}

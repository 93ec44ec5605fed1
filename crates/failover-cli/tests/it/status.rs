//! `failover status`: what is well, who is on a fallback, what was decided last; once, and live.

use crate::World;
use failover_testkit::upstream::Step;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

const LIMITED: &str = r#"{"error":{"message":"Rate limit reached for sk-fixture-0123456789abcdefghijklmn"}}"#;

/// A world in which `first` is limited and the session `work` is on a fallback.
fn limited() -> World {
    let world = World::new();
    world.upstream.script("one", [Step::json(429, LIMITED)]);
    world.upstream.script("two", [Step::text("From two.")]);
    assert_eq!(world.run(&["run", "--session", "work", "hi"]).out, "From two.\n");
    world
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

// spec: A-23, S-13
#[test]
fn status_names_windows_sessions_on_fallback_and_the_last_decisions() {
    let world = limited();
    let shown = world.run(&["status"]);
    for wanted in ["first:a", "rate_limit", "work", "second/two", "failed", "succeeded"] {
        assert!(shown.out.contains(wanted), "{wanted} is missing: {}", shown.out);
    }
    assert!(shown.out.lines().all(|line| line.chars().count() <= 80), "{}", shown.out);
    let shown = world.run(&["status", "--json"]).json();
    assert_eq!(shown["sessions"][0]["session"], "work", "{shown}");
    assert_eq!(shown["sessions"][0]["answering"], "second/two");
    assert_eq!(shown["decisions"][0]["reason"], "rate_limit", "{shown}");
    assert!(shown["decisions"][0]["at"].as_u64().unwrap() > 0);
    // What is known is there under the names of the log, and what is not is left out.
    for known in ["decision", "runId", "requestedModel", "candidateModel", "position", "attempts"] {
        assert!(!shown["decisions"][0][known].is_null(), "{known}: {shown}");
    }
    assert!(shown["decisions"][0].get("why").is_none(), "{shown}");
}

// spec: U-4
#[test]
fn a_watch_shows_changes_of_other_processes_and_ends_when_interrupted() {
    let world = World::new();
    world.upstream.script("one", [Step::json(429, LIMITED)]);
    world.upstream.script("two", [Step::text("From two.")]);
    let mut child = world.spawn(&["status", "--watch", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["sessions"], Value::Array(Vec::new()));
    assert_eq!(world.run(&["run", "--session", "work", "hi"]).out, "From two.\n");
    // The reader that does not see it waits for ever, and the runner of tests ends it.
    while next()["sessions"][0]["session"] != "work" {}
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// A terminal is needed: `script` of util-linux makes one.
#[test]
fn a_watch_on_a_terminal_gives_the_screen_back() {
    let world = limited();
    let watch = format!("{} status --watch", env!("CARGO_BIN_EXE_failover"));
    let started = Command::new("script")
        .args(["-qec", &watch, "/dev/null"])
        .env("FAILOVER_HOME", world.home.path())
        .env("TEST_KEY", crate::KEY)
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        assert!(std::env::vars().all(|(name, _)| name != "CI"), "the tests need `script`");
        return;
    };
    let mut out = child.stdout.take().unwrap();
    let (mut shown, mut buffer) = (String::new(), [0; 4096]);
    while !shown.contains("Ctrl-C ends") {
        let read = out.read(&mut buffer).unwrap();
        assert!(read > 0, "it ended: {shown}");
        shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    assert!(shown.contains("\u{1b}[?1049h"), "{shown}");
    // What a terminal sends for Ctrl-C.
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"\x03").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\u{1b}[?1049l"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

// spec: U-3
#[test]
fn every_fault_of_a_config_is_an_object_for_machines() {
    let world = World::new();
    let good = world.run(&["config", "check", "--json"]);
    let path = world.config_path().to_string_lossy().into_owned();
    for named in [vec![path.as_str()], vec!["--config", path.as_str()]] {
        let args = [&["config", "check", "--json"], named.as_slice()].concat();
        assert_eq!(world.run(&args).out, good.out, "named as one likes");
    }
    assert_eq!((good.code, &good.json()["ok"]), (Some(0), &Value::Bool(true)), "{good:?}");
    std::fs::write(world.config_path(), "{\n  agents: { default: {} },\n  auht: {},\n}").unwrap();
    let bad = world.run(&["config", "check", "--json"]);
    assert_eq!(bad.code, Some(3), "{bad:?}");
    let faults = bad.json()["faults"].clone();
    assert_eq!((&faults[0]["line"], &faults[1]["line"]), (&2.into(), &3.into()), "{faults}");
    assert!(faults[1]["hint"].as_str().unwrap().contains("auth"), "{faults}");
}

// spec: U-2
#[test]
fn a_choice_and_its_reset_can_be_read_by_machines() {
    let world = World::new();
    let chosen = world.run(&["session", "select", "s", "second/two", "--json"]).json();
    assert_eq!((&chosen["selected"], &chosen["source"]), (&"second/two".into(), &"user".into()), "{chosen}");
    let reset = world.run(&["session", "reset", "s", "--json"]).json();
    assert_eq!(reset["selected"], "second/two", "what a person chose stays: {reset}");
    let reset = world.run(&["session", "reset", "s", "--new", "--json"]).json();
    assert_eq!((&reset["selected"], &reset["source"]), (&Value::Null, &"configured".into()), "{reset}");
}

// spec: U-2
#[test]
fn a_choice_of_a_slip_is_refused() {
    let world = World::new();
    for slip in ["sceond/two", "second/two@second:nope", "two"] {
        let refused = world.run(&["session", "select", "s", slip]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("help"), "{refused:?}");
    }
    let shown = world.run(&["session", "show", "s", "--json"]).json();
    assert_eq!(shown["source"], "configured", "{shown}");
    // Who wants to undo needs no config that can be read.
    assert_eq!(world.run(&["session", "select", "s", "second/two"]).code, Some(0));
    std::fs::write(world.config_path(), "{ nonsense").unwrap();
    assert_eq!(world.run(&["session", "select", "s", "first/one"]).code, Some(3));
    assert_eq!(world.run(&["session", "reset", "s", "--new"]).code, Some(0));
    assert_eq!(world.run(&["session", "show", "s", "--json"]).json()["source"], "configured");
}

// spec: H-2
#[test]
fn only_what_the_config_lists_can_be_chosen() {
    let world = World::new();
    let config = std::fs::read_to_string(world.config_path()).unwrap();
    let listed = config.replacen("defaults: {", "defaults: { models: { 'first/one': {} },", 1);
    assert_ne!(config, listed);
    std::fs::write(world.config_path(), listed).unwrap();
    let refused = world.run(&["session", "select", "s", "second/other"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("agents.defaults.models") && refused.err.contains("first/one"),
        "{refused:?}"
    );
    assert_eq!(world.run(&["session", "select", "s", "first/one"]).code, Some(0));
}

// spec: S-13, S-7
#[test]
fn the_next_try_is_when_the_origins_window_ends() {
    let world = limited();
    let shown = world.run(&["session", "show", "work", "--json"]).json();
    let wait = shown["nextProbe"].as_u64().unwrap() - shown["since"].as_u64().unwrap();
    assert!((25_000..=60_000).contains(&wait), "not the five minutes at the latest: {shown}");
}

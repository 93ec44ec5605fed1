//! `failover doctor`.

use crate::{Ended, World, binary};
use failover::runner::SystemClock;
use failover::store::{Expect, Key, KeyValue, Value as Stored, WriteOptions};
use failover::store_sled::{SledOptions, SledStore};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The findings of an area and a severity, a line each.
fn findings(ended: &Ended, area: &str, severity: &str) -> Vec<String> {
    let told = ended.json();
    let list = told["findings"].as_array().unwrap().iter();
    let fits = |finding: &&Value| finding["area"] == area && finding["severity"] == severity;
    list.filter(fits).map(|finding| finding["what"].as_str().unwrap().to_owned()).collect()
}

fn one_of(found: &[String], part: &str) -> bool {
    found.iter().any(|what| what.contains(part))
}

impl World {
    fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// Makes the state directory, with a session in it.
    fn with_state(self) -> Self {
        let ended = self.run(&["session", "select", "work", "first/one"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        self
    }

    fn open(&self) -> SledStore {
        SledOptions::new(self.state(), Arc::new(SystemClock::new())).open().unwrap()
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// spec: U-2
#[test]
fn nothing_is_wrong_with_a_world_in_order() {
    let world = World::new().with_state();
    let ended = world.run(&["doctor"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.out.ends_with("\nNothing is wrong.\n"), "{}", ended.out);
    for line in
        ["main begins with first/one, 2 in the chain", "first:a is usable", "first answers at 127.0.0.1"]
    {
        assert!(ended.out.contains(line), "{line} in {}", ended.out);
    }
    let told = world.run(&["doctor", "--json"]).json();
    assert_eq!((&told["ok"], &told["problems"]), (&true.into(), &0.into()));
    // Looking is not calling: no model was asked.
    assert_eq!(world.calls("one") + world.calls("two"), 0);
}

// spec: A-3, U-2
#[test]
fn rights_that_are_too_wide_are_found_and_narrowed_after_a_yes() {
    let world = World::new().with_state();
    set_mode(&world.state(), 0o755);
    set_mode(&world.state().join("sled/db"), 0o644);
    let ended = world.run(&["doctor", "--json", "--offline"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(findings(&ended, "state directory", "problem").len(), 2, "{}", ended.out);

    // The store refuses it too, and names a way out that exists.
    let refused = world.run(&["session", "select", "work", "first/one"]);
    assert!(
        refused.err.contains("failover doctor --fix") && !refused.err.contains("force"),
        "{}",
        refused.err
    );

    let asked = world.run(&["doctor", "--fix", "--offline"]);
    assert_eq!(asked.code, Some(2), "nobody can be asked here");
    assert!(asked.err.contains("set the rights of") && asked.err.contains("--yes"), "{}", asked.err);
    assert_eq!(mode(&world.state()), 0o755, "nothing was done without a yes");

    let fixed = world.run(&["doctor", "--fix", "--yes", "--offline"]);
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    assert_eq!((mode(&world.state()), mode(&world.state().join("sled/db"))), (0o700, 0o600));
    assert!(fixed.out.contains("done the rights of"), "{}", fixed.out);
}

// spec: K-2, U-2
#[test]
fn a_store_that_does_not_open_is_salvaged() {
    let world = World::new().with_state();
    // As if the disk had lost what it said it had.
    std::fs::write(world.state().join("sled/acknowledged"), u64::MAX.to_le_bytes()).unwrap();
    let ended = world.run(&["doctor", "--json", "--offline"]);
    assert_eq!(ended.code, Some(1));
    assert!(one_of(&findings(&ended, "state directory", "problem"), "acknowledged writes are missing"));

    let fixed = world.run(&["doctor", "--fix", "--yes", "--offline", "--json"]);
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    assert_eq!(fixed.json()["repairs"][0]["ok"], true);
    assert!(one_of(&findings(&fixed, "state directory", "warning"), "files of an earlier repair"));
    let shown = world.run(&["session", "show", "work", "--json"]);
    assert!(shown.out.contains("first/one"), "nothing is lost: {}", shown.out);
}

// spec: K-4, U-2
#[test]
fn records_that_cannot_be_read_are_named() {
    let world = World::new().with_state();
    let store = world.open();
    for (segments, text) in [
        (&["agent", "main", "usage", "profile", "first:a"][..], r#"{"v":99}"#),
        (&["agent", "main", "session", "broken"], "no entry"),
    ] {
        let key = Key::new(segments).unwrap();
        let put =
            store.swap(&key, Expect::Absent, Some(Stored::new(text.as_bytes())), WriteOptions::durable());
        assert!(world.runtime.block_on(put).is_ok());
    }
    drop(store);
    let ended = world.run(&["doctor", "--json", "--offline"]);
    let problems = findings(&ended, "state directory", "problem");
    assert_eq!(ended.code, Some(1));
    assert!(one_of(&problems, "newer version") && one_of(&problems, "schema version 99"), "{problems:?}");
    assert!(one_of(&problems, "agent/main/session/broken"), "{problems:?}");
}

// spec: K-2, U-2
#[test]
fn an_owner_that_does_not_answer_is_named() {
    let world = World::new().with_state();
    let store = world.open();
    let ended = world.run(&["doctor", "--json", "--offline"]);
    assert_eq!(ended.code, Some(1));
    let problems = findings(&ended, "state directory", "problem");
    assert!(one_of(&problems, &format!("process {}", std::process::id())), "{problems:?}");
    drop(store);
}

// spec: H-12, U-2
#[test]
fn a_plain_model_string_that_drops_a_chain_is_warned_of() {
    let world = World::new();
    let text = std::fs::read_to_string(world.config_path()).unwrap();
    let agents = "agents: { list: [{ id: 'main', model: 'second/two' }], defaults:";
    std::fs::write(world.config_path(), text.replace("agents: { defaults:", agents)).unwrap();
    let ended = world.run(&["doctor", "--json", "--offline"]);
    let warnings = findings(&ended, "config", "warning");
    assert!(one_of(&warnings, "drops the fallbacks of the defaults (second/two)"), "{warnings:?}");
    assert!(one_of(&warnings, "failover.json5:"), "with its line: {warnings:?}");
    assert_eq!(ended.code, Some(0), "a warning is no failure");
}

// spec: U-2, U-3
#[test]
fn a_config_with_faults_is_told_key_by_key() {
    let world = World::new();
    std::fs::write(world.config_path(), "{\n  agnets: {},\n  auth: { ordr: {} },\n}").unwrap();
    let ended = world.run(&["doctor", "--json"]);
    assert_eq!(ended.code, Some(1));
    let problems = findings(&ended, "config", "problem");
    assert!(
        one_of(&problems, "failover.json5:2:3:") && one_of(&problems, "failover.json5:3:11:"),
        "{problems:?}"
    );
    assert!(ended.out.contains("agents"), "the nearest known key is named: {}", ended.out);

    std::fs::remove_file(world.config_path()).unwrap();
    let missing = world.run(&["doctor", "--offline"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.out.contains("cannot read the config"), "{}", missing.out);
}

// spec: A-1, U-2
#[test]
fn credentials_that_lead_nowhere_or_rest_are_told() {
    let world = World::new().with_state();
    let missing = Ended::of(&binary(world.home.path(), &["doctor", "--json", "--offline"]).output().unwrap());
    let warnings = findings(&missing, "credentials", "warning");
    assert!(one_of(&warnings, "TEST_KEY is not set"), "{warnings:?}");

    let text = std::fs::read_to_string(world.config_path()).unwrap();
    let text = text.replace("key: '${TEST_KEY}'", "key: { source: 'file', path: '/nonexistent/key' }");
    std::fs::write(world.config_path(), text).unwrap();
    let unreadable = world.run(&["doctor", "--json", "--offline"]);
    let problems = findings(&unreadable, "credentials", "problem");
    assert!(one_of(&problems, "/nonexistent/key"), "{problems:?}, {}", unreadable.out);
    assert_eq!(unreadable.code, Some(1));
}

/// Answers every request with this head.
fn server(head: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ =
                stream.write_all(format!("{head}content-length: 0\r\nconnection: close\r\n\r\n").as_bytes());
        }
    });
    url
}

// spec: U-2
#[test]
fn providers_that_do_not_answer_and_clocks_that_are_off_are_told() {
    let world = World::new();
    let late = server("HTTP/1.1 404 Not Found\r\ndate: Mon, 30 Nov 2020 05:58:59 GMT\r\n");
    // A port that was free a moment ago.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "{{ agents: {{ defaults: {{ model: {{ primary: 'first/one', fallbacks: ['second/two', 'third/three'] }} }} }},
            models: {{ providers: {{
              first: {{ baseUrl: '{late}' }},
              second: {{ baseUrl: 'http://{closed}/v1' }},
              third: {{ baseUrl: 'http://name.invalid/v1' }},
            }} }} }}"
    );
    std::fs::write(world.config_path(), text).unwrap();
    let ended = world.run(&["doctor", "--json"]);
    assert_eq!(ended.code, Some(1));
    let problems = findings(&ended, "providers", "problem");
    assert!(one_of(&problems, "clock is") && one_of(&problems, "ahead of that of first"), "{problems:?}");
    assert!(one_of(&problems, "second at 127.0.0.1"), "{problems:?}");
    assert!(one_of(&problems, "third at name.invalid"), "{problems:?}");
    let warnings = findings(&ended, "providers", "warning");
    assert!(one_of(&warnings, "third is asked over http"), "{warnings:?}");

    let offline = world.run(&["doctor", "--json", "--offline"]);
    assert_eq!((offline.code, findings(&offline, "providers", "problem").len()), (Some(0), 0));
}

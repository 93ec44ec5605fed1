//! What people get wrong: one clear message each, and an exit code that says whose fault it is.

use crate::{KEY, World, binary};
use failover_testkit::upstream::Step;
use tempfile::TempDir;
use test_case::test_case;

// spec: U-3, A-3
#[test_case("{ agents: { defalts: {} } }", &["unknown key `defalts`", ":1:13", "did you mean `defaults`?"]; "unknown key")]
#[test_case("{ agents: {\n", &["not JSON5", "bad.json5:"]; "broken")]
#[test_case("", &["the config is empty"]; "empty")]
#[test_case("{}", &["agents.defaults.model.primary"]; "no model")]
#[test_case("{ models: { providers: { x: { apiKey: 'sk-fixture-0123456789abcdefghijklmn' } } } }", &["a secret does not belong", ":1:39"]; "literal key")]
fn a_wrong_config_ends_with_three(text: &str, says: &[&str]) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bad.json5");
    std::fs::write(&path, text).unwrap();
    let output = binary(dir.path(), &["run", "--config"]).arg(&path).arg("hi").output().unwrap();
    let ended = crate::Ended::of(&output);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), ""), "{ended:?}");
    for part in says {
        assert!(ended.err.contains(part), "{part} is missing in {}", ended.err);
    }
}

/// Names of files are bytes.
// spec: U-1, U-3
#[cfg(target_os = "linux")]
#[test]
fn names_of_files_may_be_of_any_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(std::ffi::OsStr::from_bytes(b"bad\xff.json5"));
    std::fs::write(&path, "{").unwrap();
    let checked = binary(dir.path(), &["config", "check", "--json"]).arg(&path).output().unwrap();
    let checked = crate::Ended::of(&checked);
    assert_eq!((checked.code, &checked.json()["ok"]), (Some(3), &false.into()), "{checked:?}");
    let home = dir.path().join(std::ffi::OsStr::from_bytes(b"home\xff"));
    std::fs::create_dir(&home).unwrap();
    let mut add = binary(dir.path(), &["auth", "add", "openai", "--env", "PATH"]);
    let added = crate::Ended::of(&add.env("FAILOVER_HOME", &home).output().unwrap());
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(home.join("state").exists(), "{added:?}");
}

#[test]
fn a_missing_config_is_named() {
    let dir = TempDir::new().unwrap();
    let ended = crate::Ended::of(&binary(dir.path(), &["run", "hi"]).output().unwrap());
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.err.contains("failover.json5") && ended.err.contains("--config"), "{ended:?}");
}

// spec: U-3
#[test]
fn an_error_is_an_object_for_those_who_asked_for_json() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bad.json5");
    std::fs::write(&path, "{ agents: { defalts: {} } }").unwrap();
    let output = binary(dir.path(), &["run", "--json", "--config"]).arg(&path).arg("hi").output().unwrap();
    let ended = crate::Ended::of(&output);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), ""), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.err).unwrap();
    assert_eq!(told["exit"], 3, "{told}");
    let error = told["error"].as_str().unwrap();
    assert!(error.contains("unknown key `defalts`") && !error.contains('\u{1b}'), "{error}");
}

/// Root reads everything, so there the file is missing instead; the hint is another one.
// spec: U-3
#[cfg(unix)]
#[test]
fn a_config_that_may_not_be_read_is_told_with_a_hint() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("failover.json5");
    std::fs::write(&path, "{}").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let hint = if std::fs::read(&path).is_ok() {
        std::fs::remove_file(&path).unwrap();
        "write one"
    } else {
        "whom the file belongs to"
    };
    let ended = crate::Ended::of(&binary(dir.path(), &["run", "hi"]).output().unwrap());
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.err.contains(hint), "{ended:?}");
}

// spec: A-4
#[test]
fn a_variable_that_is_not_set_costs_its_profile_only() {
    let world = World::new();
    world.upstream.script("one", [Step::text("From one.")]);
    world.upstream.script("two", [Step::text("From two.")]);
    let without = |args: &[&str]| {
        let mut command = world.command(args);
        command.env_remove("TEST_KEY").env_remove("TEST_SECOND_KEY");
        crate::Ended::of(&command.output().unwrap())
    };
    let ended = without(&["run", "hi"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "From two.\n"), "{ended:?}");
    assert!(ended.err.contains("TEST_KEY") && ended.err.contains("auth.profiles.first:a"), "{ended:?}");
    let nothing = without(&["run", "--model", "first/one", "hi"]);
    assert_eq!(nothing.code, Some(5), "{nothing:?}");
    assert!(nothing.err.contains("no credential"), "{nothing:?}");
    // Once it is set, it counts at once: nothing was held against the provider.
    let set = world.run(&["run", "hi"]);
    assert_eq!(set.out, "From one.\n", "{set:?}");
}

// spec: K-2
#[cfg(unix)]
#[test]
fn a_state_directory_that_cannot_be_used_costs_the_memory_and_not_the_answer() {
    let world = World::new();
    world.upstream.script("one", [Step::text("From one.")]);
    let file = world.home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let config = world.config_path();
    let output =
        binary(&file, &["run", "--config"]).arg(config).arg("hi").env("TEST_KEY", KEY).output().unwrap();
    let ended = crate::Ended::of(&output);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "From one.\n"), "{ended:?}");
    assert!(ended.err.contains("nothing is remembered"), "{ended:?}");
    let must = crate::Ended::of(&binary(&file, &["session", "reset", "s"]).output().unwrap());
    assert_eq!(must.code, Some(4), "{must:?}");
}

#[cfg(unix)]
#[test]
fn a_home_that_was_made_by_hand_is_good_enough() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.upstream.script("one", [Step::text("From one.")]);
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(world.home.path(), open).unwrap();
    let ended = world.run(&["run", "hi"]);
    assert!(!ended.err.contains("warning"), "{ended:?}");
}

#[test]
fn a_provider_that_cannot_be_reached_is_said_so() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("failover.json5");
    // Port 1 of loopback: nobody listens there.
    let config = "{ agents: { defaults: { model: { primary: 'x/y' } } }, models: { providers: { x: { baseUrl: 'http://127.0.0.1:1/v1' } } } }";
    std::fs::write(path, config).unwrap();
    let ended = crate::Ended::of(&binary(dir.path(), &["run", "hi"]).output().unwrap());
    assert_eq!((ended.code, ended.out.as_str()), (Some(5), ""), "{ended:?}");
    assert!(ended.err.contains("x/y") && ended.err.contains("timeout"), "{ended:?}");
}

#[test_case(&[] ; "nothing")]
#[test_case(&["run"] ; "no prompt")]
#[test_case(&["demo", "--scene", "nowhere"] ; "no scene")]
#[test_case(&["classify", "--surface", "moon"] ; "no surface")]
#[test_case(&["classify", "--header", "no colon"] ; "no header")]
#[test_case(&["classify", "--jsonl", "/nowhere/at/all"] ; "no file")]
fn a_wrong_command_line_ends_with_two(args: &[&str]) {
    let dir = TempDir::new().unwrap();
    let ended = crate::Ended::of(&binary(dir.path(), args).output().unwrap());
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert!(!ended.err.is_empty());
}

// spec: U-2, U-3
#[test_case(&["run", "--json", "--modle", "x", "hi"], "unexpected argument '--modle'"; "an unknown flag")]
#[test_case(&["run", "--json"], "required arguments were not provided"; "no prompt")]
#[test_case(&["session", "--json", "dance"], "unexpected argument"; "a flag in the wrong place")]
#[test_case(&["auth", "--json", "dance"], "unrecognized subcommand 'dance'"; "no command")]
fn a_wrong_command_line_is_an_object_for_those_who_asked_for_json(args: &[&str], says: &str) {
    let dir = TempDir::new().unwrap();
    let ended = crate::Ended::of(&binary(dir.path(), args).output().unwrap());
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.err).unwrap();
    assert!(told["error"].as_str().unwrap().contains(says) && told["exit"] == 2, "{told}");
    assert!(told["hint"].as_str().unwrap().contains("Usage"), "{told}");
}

// spec: U-3
#[test]
fn a_check_finds_what_only_work_would_show_with_line_and_hint() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("failover.json5");
    let config = "{
  agents: { defaults: { model: { primary: 'openai/gpt-5', fallbacks: [
    'nowhere/x',
  ] }, limits: {
    runMs: 0,
  } } },
  models: { providers: { mine: {} } },
  classifier: { rules: [{ id: 'x', reason: 'billing',
    regex: '(' }] },
}";
    std::fs::write(&path, config).unwrap();
    let checked = crate::Ended::of(&binary(dir.path(), &["config", "check", "--json"]).output().unwrap());
    assert_eq!(checked.code, Some(3), "{checked:?}");
    let told = checked.json();
    let faults = told["faults"].as_array().unwrap();
    let lines: Vec<u64> = faults.iter().map(|fault| fault["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 5, 7, 9], "{told}");
    assert!(faults.iter().all(|fault| fault["hint"].as_str().is_some_and(|hint| !hint.is_empty())), "{told}");
    let text = crate::Ended::of(&binary(dir.path(), &["config", "check"]).output().unwrap());
    assert!(text.err.contains("there is no provider nowhere") && text.err.contains(":3:5"), "{text:?}");
}

#[test]
fn a_config_is_shown_on_one_line_for_machines() {
    let world = World::new();
    let shown = world.run(&["config", "show", "--json"]);
    assert_eq!((shown.code, shown.out.lines().count()), (Some(0), 1), "{shown:?}");
    assert!(shown.json()["agents"].is_object());
}

// spec
#[test_case(&["auth", "pin", "first:ghost", "--session", "s"]; "a pin")]
#[test_case(&["auth", "pause", "first:ghost"]; "a pause")]
#[test_case(&["auth", "pause", "ghost"]; "a pause of a provider")]
#[test_case(&["auth", "resume", "first:ghost"]; "the end of a pause")]
#[test_case(&["auth", "clear", "first:ghost"]; "a window")]
#[test_case(&["auth", "order", "first", "second:x"]; "an order of somebody else's")]
fn names_of_nobody_are_refused(args: &[&str]) {
    let world = World::new();
    let ended = world.run(args);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("help: "), "{ended:?}");
}

// spec: A-4
#[test]
fn a_credential_that_only_the_config_knows_of_is_told() {
    let world = World::new();
    world.upstream.script("one", [Step::text("From one.")]);
    world.config("first: ['first:a', 'first:ghost']");
    let ended = world.run(&["run", "hi"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "From one.\n"), "{ended:?}");
    assert!(ended.err.contains("auth.order.first[1]) names first:ghost"), "{ended:?}");
    assert!(ended.err.contains("failover auth add first:ghost"), "{ended:?}");
}

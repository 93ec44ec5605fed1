//! `failover auth`, on an idle state directory and on one that another process owns.

#![expect(clippy::disallowed_methods, reason = "waits for another process, for a bounded time")]

use crate::{Ended, KEY, SECOND_KEY, World, binary, with_input};
use failover::config::load;
use failover::provider::ChatRequest;
use failover::runner::SystemClock;
use failover::store_sled::SharedStore;
use failover::{Engine, Setup, Turn};
use failover_testkit::upstream::{On, Step};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use test_case::test_case;

const THIRD_KEY: &str = "sk-fixture-thirdthirdthirdthirdthird";

/// The rows of `auth list --json`.
fn rows(world: &World) -> Vec<Value> {
    let list = world.run(&["auth", "list", "--json"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    list.json()["profiles"].as_array().unwrap().clone()
}

fn row(world: &World, profile: &str) -> Value {
    let rows = rows(world);
    rows.iter().find(|row| row["profile"] == profile).unwrap_or_else(|| panic!("{profile}: {rows:?}")).clone()
}

fn add(world: &World, args: &[&str], secret: &str) -> Ended {
    with_input(world.command(&[&["auth", "add"], args].concat()), secret.as_bytes())
}

// spec, U-2
#[test]
fn a_key_comes_from_standard_input_and_is_used_and_never_shown() {
    let world = World::new();
    world.upstream.script("two", [Step::text("From two.")]);
    world.upstream.script(On::model("one").with_key(THIRD_KEY), [Step::text("From c.")]);
    world.config("");
    let added = add(&world, &["first:c"], &format!("{THIRD_KEY}\n"));
    assert_eq!((added.code, added.out.as_str()), (Some(0), "first:c is stored\n"), "{added:?}");
    world.config("first: ['first:c', 'first:a']");
    let ended = world.run(&["run", "hi"]);
    assert_eq!(ended.out, "From c.\n", "{ended:?}");
    let again = add(&world, &["first:c", "--json"], THIRD_KEY);
    assert_eq!(again.json()["replaced"], true, "{again:?}");
    // Readable by its owner only.
    #[cfg(unix)]
    for file in walk(&world.home.path().join("state")) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o077;
        assert_eq!(mode, 0, "{}", file.display());
    }
    let row = row(&world, "first:c");
    assert_eq!((&row["type"], &row["secretFrom"]), (&"api_key".into(), &"store".into()), "{row}");
    assert!(row["lastUsed"].is_u64(), "{row}");
}

#[cfg(unix)]
fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = vec![dir.to_owned()];
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(walk(&path)) } else { all.push(path) }
    }
    all
}

// spec: A-3
#[test_case("", "empty"; "nothing")]
#[test_case("sk-fixture-a\nsk-fixture-b", "line break"; "two lines")]
#[test_case("\u{201c}sk-fixture-a\u{201d}", "outside ASCII"; "smart quotes")]
#[test_case("[REDACTED]", "placeholder"; "a placeholder")]
#[test_case("Bearer sk-fixture-a", "white space or quotes"; "with its header")]
fn what_can_be_no_key_is_refused(text: &str, says: &str) {
    let world = World::new();
    let refused = add(&world, &["first:c"], text);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains(says) && refused.err.contains("nothing was stored"), "{refused:?}");
    assert!(rows(&world).iter().all(|row| row["profile"] != "first:c"));
}

// spec: A-3
#[cfg(target_os = "linux")]
#[test]
fn a_person_is_asked_and_what_they_type_is_not_shown() {
    use std::io::{Read as _, Write as _};
    let world = World::new();
    world.config("first: ['first:c']");
    world.upstream.script(On::model("one").with_key(THIRD_KEY), [Step::text("From c.")]);
    let line = format!("{} auth add first:c", env!("CARGO_BIN_EXE_failover"));
    let command = world.command(&[]);
    // `script` gives the command a terminal.
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qefc", &line, "/dev/null"]).env_clear().env("PATH", "/usr/bin:/bin").env("TERM", "dumb");
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        terminal.env(name, value);
    }
    let piped = std::process::Stdio::piped;
    let mut child = terminal.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("not shown") {
        let mut some = [0; 256];
        let read = screen.read(&mut some).unwrap();
        assert!(read > 0, "the prompt does not come: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&some[..read]);
    }
    // The terminal's echo goes off right behind the prompt, and nothing tells when; nobody types faster than this.
    std::thread::sleep(Duration::from_secs(2));
    keyboard.write_all(format!("{THIRD_KEY}\n").as_bytes()).unwrap();
    screen.read_to_end(&mut seen).unwrap();
    drop(keyboard);
    assert!(child.wait().unwrap().success());
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("is stored") && !seen.contains("sk-fixture"), "{seen}");
    assert_eq!(world.run(&["run", "hi"]).out, "From c.\n");
}

// spec
#[test]
fn references_are_stored_as_such_and_read_at_use() {
    let world = World::new();
    world.upstream.script("one", [Step::text("From one.")]);
    let secret = world.home.path().join("secret");
    std::fs::write(&secret, KEY).unwrap();
    let path = secret.to_str().unwrap();
    let by_file = ["auth", "add", "first:file", "--file", path];
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
        let exposed = world.run(&by_file);
        assert_eq!(exposed.code, Some(1), "{exposed:?}");
        assert!(exposed.err.contains("chmod 600"), "{exposed:?}");
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(world.run(&by_file).code, Some(0));
    assert_eq!(world.run(&["auth", "add", "first:env", "--env", "TEST_SECOND_KEY"]).code, Some(0));
    let command = format!("/bin/cat {path}");
    assert_eq!(world.run(&["auth", "add", "first:command", "--command", &command]).code, Some(0));
    let later = world.run(&["auth", "add", "first:later", "--env", "NOT_YET"]);
    assert_eq!(later.code, Some(0), "{later:?}");
    assert!(later.err.contains("NOT_YET") && later.err.contains("read at each use"), "{later:?}");
    for name in ["first:file", "first:env", "first:command"] {
        world.config(&format!("first: ['{name}']"));
        let ended = world.run(&["run", "--json", "hi"]);
        assert_eq!(ended.json()["profile"], name, "{ended:?}");
    }
    // The key in the place of its variable is not kept, and not shown.
    let key = world.run(&["auth", "add", "first:key", "--env", KEY]);
    assert_eq!(key.code, Some(2), "{key:?}");
    assert!(key.err.contains("name of the variable") && !format!("{key:?}").contains(KEY), "{key:?}");
    let two = world.run(&["auth", "add", "first:x", "--env", "A", "--file", "B"]);
    assert_eq!(two.code, Some(2), "{two:?}");
    let named = world.run(&["auth", "add", "first:a", "--env", "A"]);
    assert_eq!(named.code, Some(2), "the config says where its secret is: {named:?}");
}

// spec, U-2
#[test]
fn the_list_shows_order_state_reason_and_end() {
    let world = World::new();
    world.config("first: ['first:a', 'first:b']");
    world.upstream.script(On::model("one").with_key(KEY), [Step::json(402, "{}")]);
    world.upstream.script(On::model("one").with_key(SECOND_KEY), [Step::text("From b.")]);
    assert_eq!(world.run(&["run", "hi"]).out, "From b.\n");
    let (a, b) = (row(&world, "first:a"), row(&world, "first:b"));
    assert_eq!(
        (&b["position"], &b["why"], &b["state"]),
        (&1.into(), &"listed".into(), &"usable".into()),
        "{b}"
    );
    assert_eq!(
        (&a["position"], &a["why"], &a["state"]),
        (&2.into(), &"waiting".into(), &"disabled".into()),
        "{a}"
    );
    assert_eq!((&a["reason"], &a["orderFrom"]), (&"billing".into(), &"config_order".into()), "{a}");
    assert!(a["until"].is_u64() && a["nextProbe"].as_u64() < a["until"].as_u64(), "{a}");
    assert_eq!(a["windows"][0]["source"], "ladder", "{a}");
    let text = world.run(&["auth", "list"]);
    for part in ["first:a", "api_key", "2 (waiting)", "disabled", "billing", "next probe", "ago"] {
        assert!(text.out.contains(part), "{part} is missing in {}", text.out);
    }

    let cleared = world.run(&["auth", "clear", "first:a"]);
    assert_eq!((cleared.code, cleared.out.contains("first:a")), (Some(0), true), "{cleared:?}");
    assert_eq!(row(&world, "first:a")["state"], "usable");
    let nothing = world.run(&["auth", "clear", "--all", "--json"]);
    assert_eq!(nothing.json()["cleared"].as_array().unwrap().len(), 0, "{nothing:?}");
}

// spec
#[test]
fn order_pin_pause_and_remove_steer_what_is_asked() {
    let world = World::new();
    world.config("first: ['first:a', 'first:b']");
    world.upstream.script("one", [Step::text("From one.")]);
    world.upstream.script("two", [Step::text("From two.")]);
    let asked =
        |session: &str| world.run(&["run", "--json", "--session", session, "hi"]).json()["profile"].clone();
    let ok = |args: &[&str]| {
        let ended = world.run(&[&["auth"], args].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    };
    assert_eq!(asked("s1"), "first:a");
    ok(&["order", "first", "first:b", "first:a"]);
    assert_eq!(ok(&["order", "first", "--json"]).json()["order"][0], "first:b");
    assert_eq!(asked("s2"), "first:b");
    ok(&["pin", "first:a", "--session", "s2"]);
    assert_eq!(asked("s2"), "first:a");
    ok(&["pin", "--release", "--session", "s2"]);
    assert_eq!(asked("s3"), "first:b");
    let paused = ok(&["pause", "first:b"]);
    assert!(paused.out.contains("until it is resumed by hand"), "{paused:?}");
    assert_eq!(asked("s4"), "first:a");
    let row_b = row(&world, "first:b");
    assert_eq!((&row_b["state"], &row_b["leftOut"]), (&"left_out".into(), &"paused".into()), "{row_b}");
    ok(&["clear", "first:b"]);
    assert_eq!(asked("s5"), "first:a", "a pause is not lifted by clearing");
    ok(&["resume", "first:b"]);
    assert_eq!(asked("s6"), "first:b");
    ok(&["pause", "first", "--model", "one"]);
    assert_eq!(asked("s7"), "second:default", "the model is paused at the provider as a whole");
    ok(&["resume", "first", "--model", "first/one"]);
    ok(&["pause", "first:a", "--model", "first/one"]);
    ok(&["pause", "first:b", "--model", "one"]);
    assert_eq!(asked("s9"), "second:default", "by whichever name");
    ok(&["resume", "first:a", "--model", "one"]);
    ok(&["resume", "first:b", "--model", "first/one"]);
    for model in ["second/two", "two", "no such model"] {
        let refused = world.run(&["auth", "pause", "first:a", "--model", model]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
    ok(&["order", "first", "--clear"]);
    assert_eq!(asked("s8"), "first:a");

    assert_eq!(add(&world, &["first:c"], THIRD_KEY).code, Some(0));
    assert_eq!(row(&world, "first:c")["leftOut"], "not_listed");
    ok(&["remove", "first:c"]);
    assert!(rows(&world).iter().all(|row| row["profile"] != "first:c"));
    let twice = world.run(&["auth", "remove", "first:c"]);
    assert_eq!(twice.code, Some(1), "{twice:?}");
}

// spec
#[test]
fn a_probe_is_one_real_attempt_and_shows_its_result() {
    let world = World::new();
    world.config("first: ['first:a']");
    world.upstream.script("two", [Step::text("From two.")]);
    world.upstream.script("one", [Step::json(402, "{}")]);
    assert_eq!(world.run(&["run", "hi"]).out, "From two.\n");
    let calls = world.calls("one");
    let failed = world.run(&["auth", "probe", "first:a", "--json"]);
    assert_eq!((failed.code, world.calls("one")), (Some(1), calls + 1), "{failed:?}");
    let result = failed.json();
    assert_eq!(
        (&result["result"], &result["reason"], &result["status"]),
        (&"failed".into(), &"billing".into(), &402.into())
    );
    world.upstream.script("one", [Step::text("From one.")]);
    let answered = world.run(&["auth", "probe", "first:a"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.out.contains("first:a answered at first/one"), "{answered:?}");
    assert_eq!(row(&world, "first:a")["state"], "usable");
    assert_eq!(world.run(&["run", "hi"]).out, "From one.\n");
    assert_eq!(world.run(&["auth", "pause", "first:a"]).code, Some(0));
    let not_tried = world.run(&["auth", "probe", "first:a"]);
    assert_eq!(not_tried.code, Some(5), "{not_tried:?}");
    assert!(not_tried.err.contains("paused"), "{not_tried:?}");
    let unknown = world.run(&["auth", "probe", "third:x"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

/// Asks in this process, which owns the state directory, until `expected` answers.
fn until(engine: &Engine, world: &World, expected: &str) {
    let patience = Instant::now() + Duration::from_mins(1);
    loop {
        let turn = Turn::new(ChatRequest::prompt("hi"));
        let answered = world.runtime.block_on(engine.chat(&turn)).map(|answer| answer.profile.to_string());
        if answered.as_deref().ok() == Some(expected) {
            return;
        }
        assert!(Instant::now() < patience, "{expected} never answers: {answered:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

// spec: A-23, K-2
#[cfg(unix)]
#[test]
fn commands_reach_the_process_that_owns_the_store_while_it_runs() {
    let world = World::new();
    world.config("");
    world.upstream.script("one", [Step::text("From one.")]);
    world.upstream.script("two", [Step::text("From two.")]);
    let engine = world.runtime.block_on(async {
        let clock = Arc::new(SystemClock::new());
        let store = SharedStore::open(world.home.path().join("state"), clock).await.unwrap();
        assert!(store.owned().is_some());
        let variables = |name: &str| match name {
            "TEST_KEY" => Some(KEY.to_owned()),
            "TEST_SECOND_KEY" => Some(SECOND_KEY.to_owned()),
            _ => None,
        };
        let loaded = load(&world.config_path()).unwrap();
        let builder = Engine::builder(loaded).store(Arc::new(store)).environment(Arc::new(variables));
        let Setup { engine, .. } = builder.build().await.unwrap();
        engine
    });
    let ok = |args: &[&str]| {
        let ended = world.run(&[&["auth"], args].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    ok(&["order", "first", "first:b"]);
    until(&engine, &world, "first:b");
    ok(&["order", "first", "first:a", "first:b"]);
    until(&engine, &world, "first:a");
    ok(&["pause", "first:a"]);
    until(&engine, &world, "first:b");
    assert_eq!(add(&world, &["first:c"], THIRD_KEY).code, Some(0));
    ok(&["order", "first", "first:c", "first:a"]);
    until(&engine, &world, "first:c");
    ok(&["remove", "first:c"]);
    until(&engine, &world, "second:default");
    ok(&["resume", "first:a"]);
    until(&engine, &world, "first:a");

    // What the owner learnt is seen and lifted from here.
    world.upstream.script("one", [Step::json(402, "{}")]);
    until(&engine, &world, "second:default");
    let patience = Instant::now() + Duration::from_mins(1);
    while row(&world, "first:a")["state"] != "disabled" {
        assert!(Instant::now() < patience, "the window is never seen");
    }
    world.upstream.script("one", [Step::text("From one.")]);
    ok(&["clear", "first:a"]);
    until(&engine, &world, "first:a");
    world.runtime.block_on(async move { drop(engine) });
}

// spec: K-2
#[cfg(unix)]
#[test]
fn without_its_state_directory_it_says_so() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for args in [&["auth", "list"][..], &["auth", "pause", "a:b"], &["auth", "clear", "--all"]] {
        let ended = Ended::of(&binary(&file, args).output().unwrap());
        assert_eq!(ended.code, Some(4), "{args:?}: {ended:?}");
    }
    // Without any config there is still a store.
    let home = dir.path().join("home");
    let added = with_input(binary(&home, &["auth", "add", "openai"]), THIRD_KEY.as_bytes());
    assert_eq!(added.code, Some(0), "{added:?}");
    let list = Ended::of(&binary(&home, &["auth", "list", "--json"]).output().unwrap());
    assert_eq!(list.json()["profiles"][0]["profile"], "openai:default", "{list:?}");
}

// spec: U-2
#[test_case("list")]
#[test_case("add")]
#[test_case("remove")]
#[test_case("order")]
#[test_case("pin")]
#[test_case("clear")]
#[test_case("pause")]
#[test_case("resume")]
#[test_case("probe")]
fn help_has_examples(command: &str) {
    let dir = TempDir::new().unwrap();
    let help = Ended::of(&binary(dir.path(), &["auth", command, "--help"]).output().unwrap());
    assert_eq!(help.code, Some(0), "{help:?}");
    assert!(help.out.contains(&format!("failover auth {command}")), "{help:?}");
    assert!(help.out.lines().all(|line| line.chars().count() <= 100), "{help:?}");
}

//! `failover run` against a provider in another process.

use crate::{Ended, KEY, SECOND_KEY, World, with_input};
use failover_testkit::upstream::{Answer, On, Step};
use std::io::{BufRead as _, BufReader, Read as _};
use test_case::test_case;

const LIMITED: &str =
    r#"{"error":{"message":"Rate limit reached for sk-fixture-0123456789abcdefghijklmn","type":"tokens"}}"#;

fn both_well(world: &World) {
    world.upstream.script("one", [Step::text("From one.")]);
    world.upstream.script("two", [Step::text("From two.")]);
}

// spec: U-1
#[test]
fn the_answer_goes_to_stdout_and_decisions_to_stderr() {
    let world = World::new();
    both_well(&world);
    let ended = world.run(&["run", "hi"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "From one.\n"), "{ended:?}");
    assert!(ended.err.contains("first/one with first:a answered"), "{ended:?}");
    let quiet = world.run(&["run", "--quiet", "hi"]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("From one.\n", ""));
}

// spec: A-18, K-2, R-2
#[test_case(429, LIMITED, "rate_limit", 1; "a rate limit")]
#[test_case(402, "{}", "billing", 1; "an empty account")]
#[test_case(500, "{}", "server_error", 2; "a crash, tried once more")]
fn a_second_call_skips_what_the_first_learnt(status: u16, body: &str, reason: &str, calls: usize) {
    let world = World::new();
    both_well(&world);
    world.upstream.script("one", [Step::json(status, body)]);
    let first = world.run(&["run", "--json", "hi"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(first.json()["attempts"][0]["reason"], reason);
    assert_eq!(world.calls("one"), calls);
    let second = world.run(&["run", "hi"]);
    assert_eq!((second.code, second.out.as_str()), (Some(0), "From two.\n"), "{second:?}");
    // A primary that rests may be probed, at most once in this time; nothing else may ask it again.
    assert_eq!(world.calls("one"), calls, "{second:?}");
}

// spec: U-1, R-11
#[test]
fn a_failure_without_a_response_is_shown_by_what_its_causes_say() {
    let world = World::new();
    both_well(&world);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let open = world.upstream.base_url();
    let config = std::fs::read_to_string(world.config_path()).unwrap();
    let config = config.replacen(&format!("baseUrl: '{open}'"), &format!("baseUrl: 'http://{closed}/v1'"), 1);
    std::fs::write(world.config_path(), config).unwrap();
    let ended = world.run(&["run", "hi"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "From two.\n"), "{ended:?}");
    assert!(ended.err.contains("no connection to the provider: Connection refused"), "{ended:?}");
}

// spec: A-5, A-15
#[test]
fn the_second_key_answers_and_the_empty_one_is_left_alone() {
    let world = World::new();
    both_well(&world);
    world.config("first: ['first:a', 'first:b']");
    world.upstream.script(On::model("one").with_key(KEY), [Step::json(402, "{}")]);
    world.upstream.script(On::model("one").with_key(SECOND_KEY), [Step::text("From b.")]);
    assert_eq!(world.run(&["run", "hi"]).out, "From b.\n");
    assert_eq!(world.calls("one"), 2);
    assert_eq!(world.run(&["run", "hi"]).out, "From b.\n");
    assert_eq!(world.calls("one"), 3);
    let status = world.run(&["status"]);
    assert!(status.out.contains("billing"), "{status:?}");
}

// spec: S-7, S-11
#[test]
fn a_session_stays_on_its_fallback_and_is_told_once() {
    let world = World::new();
    both_well(&world);
    world.upstream.script("one", [Step::json(429, LIMITED)]);
    let first = world.run(&["run", "--session", "s", "hi"]);
    assert!(first.err.contains("Model Fallback: second/two (selected first/one; rate_limit)"), "{first:?}");
    world.upstream.script("one", [Step::text("From one.")]);
    let second = world.run(&["run", "--session", "s", "hi"]);
    assert_eq!(second.out, "From two.\n", "{second:?}");
    assert!(!second.err.contains("Model Fallback"), "{second:?}");
    assert_eq!(world.calls("one"), 1);
    let shown = world.run(&["session", "show", "s", "--json"]).json();
    assert_eq!((&shown["answering"], &shown["source"]), (&"second/two".into(), &"auto".into()), "{shown}");
}

// spec: U-1, A-8
#[test]
fn a_model_that_is_named_is_asked_strictly() {
    let world = World::new();
    both_well(&world);
    world.upstream.script("one", [Step::json(402, "{}")]);
    let ended = world.run(&["run", "--model", "first/one", "hi"]);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert_eq!(world.calls("two"), 0);
    world.upstream.script("one", [Step::text("From one.")]);
    world.config("first: ['first:a', 'first:b']");
    let pinned = world.run(&["run", "--model", "first/one@first:b", "hi"]);
    assert_eq!((pinned.code, pinned.out.as_str()), (Some(0), "From one.\n"), "{pinned:?}");
    assert!(pinned.err.contains("first:b"), "{pinned:?}");
    let unknown = world.run(&["run", "--model", "first/one@first:nobody", "hi"]);
    assert_eq!(unknown.code, Some(5), "{unknown:?}");
    assert!(unknown.err.contains("no credential"), "{unknown:?}");
    // One that is there and that the order leaves out is not called missing.
    world.config("first: ['first:a']");
    let unlisted = world.run(&["run", "--model", "first/one@first:b", "hi"]);
    assert_eq!(unlisted.code, Some(5), "{unlisted:?}");
    assert!(unlisted.err.contains("does not list it"), "{unlisted:?}");
    assert!(!unlisted.err.contains("no credential"), "{unlisted:?}");
}

// spec: U-1
#[test]
fn json_is_one_object_with_every_attempt() {
    let world = World::new();
    both_well(&world);
    world.upstream.script("one", [Step::json(429, LIMITED)]);
    let ended = world.run(&["run", "--json", "--session", "s", "hi"]);
    assert_eq!((ended.code, ended.out.lines().count()), (Some(0), 1), "{ended:?}");
    let result = ended.json();
    assert_eq!(result["ok"], true);
    assert_eq!(result["answer"], "From two.");
    assert_eq!(result["model"], "second/two");
    assert_eq!(result["requested"], "first/one");
    assert_eq!(result["attempts"][0]["status"], 429);
    assert_eq!(result["attempts"][1]["ok"], true);
    assert_eq!(result["notices"].as_array().unwrap().len(), 1);
    assert!(!result["decisions"].as_array().unwrap().is_empty());

    world.upstream.script("two", [Step::json(402, "{}")]);
    let failed = world.run(&["run", "--json", "hi"]);
    assert_eq!(failed.code, Some(5), "{failed:?}");
    assert_eq!(failed.json()["ok"], false);
    assert!(failed.json()["retryAt"].is_u64(), "{failed:?}");
}

// spec: P-3, R-9
#[test]
fn an_answer_that_is_cut_is_shown_and_ends_with_one() {
    let world = World::new();
    both_well(&world);
    world.upstream.script("one", [Step::Answer(Answer::text(["So ", "far", " and on"]).cut_after(2))]);
    let ended = world.run(&["run", "hi"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), "So far\n"), "{ended:?}");
    assert!(ended.err.contains("the answer is incomplete"), "{ended:?}");
    assert_eq!(world.calls("two"), 0);
}

#[test]
fn a_prompt_comes_from_stdin_whole() {
    let world = World::new();
    both_well(&world);
    let prompt = "é".repeat(1_000_000);
    let ended = with_input(world.command(&["run", "-"]), prompt.as_bytes());
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "From one.\n"), "{ended:?}");
    assert!(world.upstream.log()[0].body.contains(&prompt));
}

/// Starts a run and waits until its first words are out.
fn begun(world: &World) -> (std::process::Child, BufReader<std::process::ChildStdout>) {
    world.upstream.script("one", [Step::Answer(Answer::text(["First\n", "then"]).stall_after(1))]);
    let mut child = world.spawn(&["run", "--session", "s", "hi"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "First\n");
    (child, out)
}

fn end(child: &mut std::process::Child, signal: &str) -> std::process::ExitStatus {
    let killed = std::process::Command::new("kill").arg(signal).arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    child.wait().unwrap()
}

// spec: R-12, S-6
#[cfg(unix)]
#[test]
fn an_interrupt_ends_with_130_and_closes_the_upstream() {
    let world = World::new();
    both_well(&world);
    let (mut child, _out) = begun(&world);
    assert_eq!(end(&mut child, "-INT").code(), Some(130));
    world.runtime.block_on(world.upstream.until(|log| log.iter().all(|attempt| attempt.abandoned)));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("interrupted"), "{said}");
}

// spec: S-6, K-2
#[cfg(unix)]
#[test]
fn a_run_after_kill_9_works() {
    let world = World::new();
    both_well(&world);
    let (mut child, _out) = begun(&world);
    assert_eq!(end(&mut child, "-KILL").code(), None);
    both_well(&world);
    let ended = world.run(&["run", "--session", "s", "hi"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "From one.\n"), "{ended:?}");
    assert!(!ended.err.contains("warning"), "{ended:?}");
}

// spec: K-2
#[cfg(unix)]
#[test]
fn two_at_once_share_one_state_directory() {
    let world = World::new();
    both_well(&world);
    let (mut owner, _out) = begun(&world);
    world.upstream.script("one", [Step::json(402, "{}")]);
    let second = world.run(&["run", "hi"]);
    assert_eq!((second.code, second.out.as_str()), (Some(0), "From two.\n"), "{second:?}");
    assert!(!second.err.contains("warning"), "{second:?}");
    end(&mut owner, "-INT");
    let calls = world.calls("one");
    let third = world.run(&["run", "hi"]);
    assert_eq!((third.out.as_str(), world.calls("one")), ("From two.\n", calls), "{third:?}");
}

// spec: K-2
#[cfg(unix)]
#[test]
fn an_owner_that_hangs_costs_the_memory_and_not_the_answer() {
    let world = World::new();
    both_well(&world);
    let (mut owner, _out) = begun(&world);
    let stop = std::process::Command::new("kill").arg("-STOP").arg(owner.id().to_string()).status();
    assert!(stop.unwrap().success());
    both_well(&world);
    let ended = world.run(&["run", "hi"]);
    let must_write = world.run(&["session", "select", "s", "second/two"]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "From one.\n"), "{ended:?}");
    assert!(ended.err.contains("nothing is remembered"), "{ended:?}");
    assert_eq!(must_write.code, Some(4), "{must_write:?}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let world = World::new();
    world.upstream.script("one", [Step::Answer(Answer::text(["one\n", "two\n", "three\n"]))]);
    let mut child = world.spawn(&["run", "hi"]);
    drop(child.stdout.take());
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.err.contains("error"), "{ended:?}");
}

// spec: S-10, S-13
#[cfg(unix)]
#[test]
fn a_model_that_another_process_selects_is_followed_by_the_run_under_way() {
    let world = World::new();
    world.upstream.script("one", [Step::silent()]);
    world.upstream.script("two", [Step::text("From two.")]);
    let child = world.spawn(&["run", "--json", "--session", "s", "hi"]);
    world.runtime.block_on(world.upstream.until(|log| !log.is_empty()));
    let selected = world.run(&["session", "select", "s", "second/two"]);
    assert_eq!(selected.code, Some(0), "{selected:?}");
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!((ended.code, &ended.json()["answer"]), (Some(0), &"From two.".into()), "{ended:?}");
    let decisions = ended.json()["decisions"].as_array().unwrap().clone();
    let switch = decisions.iter().find(|it| it["detail"] == "switched to second/two");
    assert!(switch.is_some_and(|it| it["nextModel"] == "second/two"), "{decisions:?}");
}

// spec: U-1
#[test_case("" ; "nothing")]
#[test_case(" \n" ; "white space")]
fn an_empty_prompt_is_not_sent(prompt: &str) {
    let world = World::new();
    both_well(&world);
    let ended = world.run(&["run", prompt]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("the prompt is empty"), "{ended:?}");
    let piped = with_input(world.command(&["run", "-"]), prompt.as_bytes());
    assert_eq!(piped.code, Some(2), "{piped:?}");
    assert_eq!(world.calls("one"), 0);
}

// spec: H-6
#[test]
fn an_alias_is_a_model_wherever_one_is_named() {
    let world = World::new();
    both_well(&world);
    let config = std::fs::read_to_string(world.config_path()).unwrap();
    let models = "models: { 'second/two': { alias: 'Quick' }, 'first/one': {} }, model:";
    let config = config.replace("model: { primary", &format!("{models} {{ primary"));
    std::fs::write(world.config_path(), config).unwrap();
    assert_eq!(world.run(&["run", "--quiet", "--model", "quick", "hi"]).out, "From two.\n");
    let explained = world.run(&["explain", "--json", "--model", "QUICK"]).json();
    assert_eq!(explained["selected"], "second/two", "{explained}");
    let selected = world.run(&["session", "select", "s", "quick"]);
    assert_eq!(selected.code, Some(0), "{selected:?}");
    let nothing = world.run(&["run", "--model", "slow", "hi"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(nothing.err.contains("alias"), "{nothing:?}");
}

// spec: S-13
#[test]
fn a_session_says_who_pinned_its_profile() {
    let world = World::new();
    both_well(&world);
    assert_eq!(world.run(&["run", "--session", "s", "hi"]).code, Some(0));
    let shown = world.run(&["session", "show", "s", "--json"]).json();
    assert_eq!((&shown["profile"], &shown["profileSource"]), (&"first:a".into(), &"auto".into()), "{shown}");
    assert!(world.run(&["session", "show", "s"]).out.contains("first:a (pinned automatically)"));
    assert_eq!(world.run(&["auth", "pin", "first:a", "--session", "s"]).code, Some(0));
    let shown = world.run(&["session", "show", "s", "--json"]).json();
    assert_eq!(shown["profileSource"], "user", "{shown}");
    assert!(world.run(&["session", "show", "s"]).out.contains("pinned by a person"));
}

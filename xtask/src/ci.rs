//! What the pipeline checks: the same at the desk. `--full` adds what is too dear for every run.

use crate::run::{Faults, Outcome, cargo, check, has, watch};
use crate::{keys, layers, outside, rules, tidy};
use std::process::Command;
use std::time::Instant;

/// How often a property is tried with `--full`; else 256 times.
const CASES: &str = "2048";
/// The features of `failover-clients`, one for each client.
const CLIENTS: &[&str] = &["async-openai", "aws", "genai", "reqwest", "rig"];

/// Runs every step and stops at the first failure.
pub(crate) fn main(args: &[String]) -> Outcome {
    let full = match args {
        [] => false,
        [full] if full == "--full" => true,
        _ => return Err(Faults::one("usage: cargo xtask ci [--full]")),
    };
    let started = now();
    step("format", || {
        check(cargo(&["fmt", "--all", "--check"]))?;
        check(clients(&["fmt"], &["--check"]))
    })?;
    step("tidy", || tidy::main(&[]))?;
    step("layers", || layers::main(&[]))?;
    step("rules", || rules::main(&["--check".to_owned()]))?;
    step("keys", || keys::main(&["--check".to_owned()]))?;
    step("clippy", || {
        check(cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]))
    })?;
    step("clippy, features off", clippy_features_off)?;
    let mut ran = Counts::default();
    step("tests", || tests(full, &mut ran))?;
    step("doc tests", || doc_tests(&mut ran))?;
    step("docs", || {
        documents(cargo(&["doc", "--workspace", "--no-deps", "--all-features", "--locked", "--quiet"]))
    })?;
    step("outside", || outside::main(&[]))?;
    if full {
        step("clients", || clients_with_features(&mut ran))?;
        step("licenses and sources", denied)?;
    }
    println!("\nall steps passed in {} s", started.elapsed().as_secs());
    println!("{} passed, {} failed, {} skipped", ran.passed, ran.failed, ran.skipped);
    if ran.passed == 0 { Err(Faults::one("no test ran")) } else { Ok(()) }
}

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

fn step(name: &str, action: impl FnOnce() -> Outcome) -> Outcome {
    println!("\n== {name}");
    let started = now();
    action()?;
    println!("== {name}: ok in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a tool that measures its own steps")]
fn now() -> Instant {
    Instant::now()
}

/// Feature unification hides what a crate is missing by itself, so crates with features are checked alone.
fn clippy_features_off() -> Outcome {
    for package in layers::packages_with_features()? {
        let args =
            ["clippy", "--package", &package, "--no-default-features", "--locked", "--", "-D", "warnings"];
        check(cargo(&args))?;
    }
    check(clients(&["clippy", "--locked"], &["--", "-D", "warnings"]))
}

/// A command for the crate of the clients, which is no member of the workspace: `-p` does not reach it.
fn clients(front: &[&str], back: &[&str]) -> Command {
    let mut command = cargo(front);
    command.args(["--manifest-path", layers::APART]).args(back);
    command
}

/// What that crate is for: every client by itself, then all of them over real sockets.
fn clients_with_features(ran: &mut Counts) -> Outcome {
    for feature in CLIENTS {
        check(clients(&["clippy", "--locked", "--features", feature], &["--", "-D", "warnings"]))?;
    }
    let all = ["--all-features", "--locked"];
    check(clients(&["clippy", "--all-targets"], &[&all[..], &["--", "-D", "warnings"]].concat()))?;
    watch(clients(&["test"], &all), |line| count(line, ran))?;
    check(clients(&["run", "--quiet", "--example", "genai_client"], &all))?;
    documents(clients(&["doc", "--no-deps", "--quiet"], &all))
}

fn documents(mut command: Command) -> Outcome {
    command.env("RUSTDOCFLAGS", "-Dwarnings");
    check(command)
}

/// Needs cargo-deny, which is no part of the toolchain. Advisories want a database of their own, and are asked for by
/// hand.
fn denied() -> Outcome {
    if !has("cargo-deny") {
        println!("left out: cargo-deny is not installed");
        return Ok(());
    }
    for manifest in ["Cargo.toml", layers::APART] {
        let place = ["--manifest-path", manifest, "--locked"];
        check(cargo(&[&["deny"][..], &place, &["check", "bans", "licenses", "sources"]].concat()))?;
    }
    Ok(())
}

fn tests(full: bool, ran: &mut Counts) -> Outcome {
    let mut command = if has("cargo-nextest") {
        cargo(&["nextest", "run", "--workspace", "--all-features", "--locked", "--no-fail-fast"])
    } else {
        cargo(&[
            "test",
            "--workspace",
            "--all-features",
            "--locked",
            "--lib",
            "--bins",
            "--tests",
            "--no-fail-fast",
        ])
    };
    // A snapshot is accepted by a person, never by a test run.
    command.env("INSTA_UPDATE", "no").env("CARGO_TERM_COLOR", "never");
    if full {
        command.env("PROPTEST_CASES", CASES);
    }
    watch(command, |line| count(line, ran))
}

fn doc_tests(ran: &mut Counts) -> Outcome {
    let command = cargo(&["test", "--workspace", "--all-features", "--locked", "--doc"]);
    watch(command, |line| count(line, ran))
}

/// Adds the counts of a closing line, of either runner, to `ran`.
fn count(line: &str, ran: &mut Counts) {
    let line = line.trim();
    let nextest = line.starts_with("Summary [") && line.contains(" run: ");
    if !nextest && !line.starts_with("test result:") {
        return;
    }
    let mut before = "";
    for word in line.split([' ', ',', ';']).filter(|word| !word.is_empty()) {
        let number = before.parse().unwrap_or(0);
        match word {
            "passed" => ran.passed += number,
            "failed" => ran.failed += number,
            "skipped" | "ignored" => ran.skipped += number,
            _ => {}
        }
        before = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_both_runners_are_counted() {
        let mut ran = Counts::default();
        count("     Summary [   0.014s] 12 tests run: 10 passed (1 slow), 2 failed, 3 skipped", &mut ran);
        assert_eq!(ran, Counts { passed: 10, failed: 2, skipped: 3 });
        count(
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            &mut ran,
        );
        assert_eq!(ran, Counts { passed: 15, failed: 2, skipped: 4 });
        count("all is passed, they say", &mut ran);
        assert_eq!(ran.passed, 15);
    }
}

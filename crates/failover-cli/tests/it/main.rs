//! The binary, as people and programs run it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test helpers"
)]

mod auth;
mod bad_input;
mod classify;
mod demo;
#[cfg(unix)]
mod doctor;
mod import;
mod readme;
mod run;
#[cfg(unix)]
mod serve;
#[cfg(feature = "store-redis")]
mod shared;
mod simulate;
mod status;

use failover::runner::SystemClock;
use failover_testkit::upstream::Upstream;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The key of every test here; nothing may ever show it.
const KEY: &str = "sk-fixture-0123456789abcdefghijklmn";
const SECOND_KEY: &str = "sk-fixture-nmlkjihgfedcba9876543210";

/// A provider in this process, and a state directory for the binary.
struct World {
    upstream: Upstream,
    home: TempDir,
    runtime: Runtime,
}

impl World {
    /// With the chain `first/one`, `second/two`, both at the same upstream.
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let upstream = runtime.block_on(Upstream::start(Arc::new(SystemClock::new()))).unwrap();
        let world = Self { upstream, home: TempDir::new().unwrap(), runtime };
        world.config("first: ['first:a']");
        world
    }

    /// Writes the config with this order of profiles.
    fn config(&self, order: &str) {
        let url = self.upstream.base_url();
        let text = format!(
            "{{
  auth: {{
    profiles: {{
      'first:a': {{ provider: 'first', key: '${{TEST_KEY}}' }},
      'first:b': {{ provider: 'first', key: '${{TEST_SECOND_KEY}}' }},
    }},
    order: {{ {order} }},
  }},
  agents: {{ defaults: {{ model: {{ primary: 'first/one', fallbacks: ['second/two'] }} }} }},
  models: {{ providers: {{ first: {{ baseUrl: '{url}' }}, second: {{ baseUrl: '{url}' }} }} }},
}}"
        );
        std::fs::write(self.config_path(), text).unwrap();
    }

    fn config_path(&self) -> PathBuf {
        self.home.path().join("failover.json5")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = binary(self.home.path(), args);
        command.env("TEST_KEY", KEY).env("TEST_SECOND_KEY", SECOND_KEY);
        command
    }

    /// Runs the binary to its end.
    fn run(&self, args: &[&str]) -> Ended {
        Ended::of(&self.command(args).output().unwrap())
    }

    /// Starts the binary.
    fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn calls(&self, model: &str) -> usize {
        self.upstream.count(model)
    }
}

/// The binary with an environment of its own: a state directory, and nothing of the machine's.
fn binary(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_failover"));
    command.args(args).env_clear().env("FAILOVER_HOME", home).stdin(Stdio::null());
    command
}

/// How the binary ended, and what it said. No key and no escape code may be in it.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ended {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let ended = Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) };
        for said in [&ended.out, &ended.err] {
            assert!(!said.contains("sk-fixture"), "a key is shown: {said}");
            assert!(!said.contains('\u{1b}'), "an escape code goes into a pipe: {said}");
            assert!(!said.contains("panicked"), "{said}");
        }
        ended
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Runs the binary with `input` at its standard input.
fn with_input(mut command: Command, input: &[u8]) -> Ended {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || {
        // A command that needs no more of it may close it early.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    Ended::of(&output)
}

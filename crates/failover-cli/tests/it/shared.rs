//! `FAILOVER_STORE_URL`: the store that several machines share.
#![expect(clippy::disallowed_methods, reason = "waits for other processes, for a bounded time")]

use crate::serve::{Server, served};
use crate::{Ended, World};
use failover_testkit::RedisServer;
use failover_testkit::upstream::Step;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMITED: &str = r#"{"error":{"message":"Rate limit reached","type":"tokens"}}"#;

/// A command of a machine whose home is `home`, on the config of the world.
fn machine(world: &World, home: &Path, url: &str, args: &[&str]) -> Command {
    let mut command = world.command(args);
    command.env("FAILOVER_HOME", home).env("FAILOVER_STORE_URL", url);
    command.arg("--config").arg(world.config_path());
    command
}

// spec: K-3, U-2
#[test]
fn what_one_server_learns_the_other_knows() {
    let Some(redis) = RedisServer::start("what_one_server_learns_the_other_knows", &[]) else { return };
    let world = World::new();
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let serve = |home: &TempDir| {
        let command = machine(&world, home.path(), &redis.url(), &["serve", "--listen", "127.0.0.1:0"]);
        Server::of(command, home.path())
    };
    let (first, second) = (serve(&one), serve(&other));
    world.upstream.script("one", [Step::json(429, LIMITED)]);
    world.upstream.script("two", [Step::text("From two.")]);
    let (status, answer) = first.ask(Some("s"));
    assert_eq!((status, served(&answer)), (200, "second/two"), "{answer}");
    let asked = world.calls("one");
    // A third process reads the store, so the write is there; the second is told of it, or looks within a second.
    let begun = std::time::Instant::now();
    while !Ended::of(&machine(&world, one.path(), &redis.url(), &["status"]).output().unwrap())
        .out
        .contains("rate_limit")
    {
        assert!(begun.elapsed() < Duration::from_mins(1), "the window never reached the store");
    }
    std::thread::sleep(Duration::from_secs(1));
    let (status, answer) = second.ask(Some("s"));
    assert_eq!((status, served(&answer)), (200, "second/two"), "{answer}");
    assert_eq!(world.calls("one"), asked, "the other server asked a key that is known to be limited");
    assert!(!one.path().join("state").join("sled").exists(), "nothing is kept on the machine");
}

// spec: A-25, U-2
#[test]
fn a_server_serves_while_the_shared_store_is_away() {
    let world = World::new();
    world.upstream.script("one", [Step::text("From one.")]);
    let home = TempDir::new().unwrap();
    let url = format!("redis+unix://{}", home.path().join("nobody.sock").display());
    let server =
        Server::of(machine(&world, home.path(), &url, &["serve", "--listen", "127.0.0.1:0"]), home.path());
    let (status, answer) = server.ask(Some("s"));
    assert_eq!((status, served(&answer)), (200, "first/one"), "{answer}");
    let doctor = Ended::of(&machine(&world, home.path(), &url, &["doctor"]).output().unwrap());
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("shared store"), "{doctor:?}");
    let session = Ended::of(
        &world.command(&["session", "reset", "s"]).env("FAILOVER_STORE_URL", &url).output().unwrap(),
    );
    assert_eq!(session.code, Some(4), "a command that must write says so: {session:?}");
}

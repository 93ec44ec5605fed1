//! `failover serve` as a process: its signals, its log, its state.

#![expect(clippy::disallowed_methods, reason = "waits for another process, for a bounded time")]

use crate::{World, binary};
use failover_testkit::upstream::{Answer, Step};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(1);
const BUSY: &str = r#"{"error":{"type":"overloaded_error","message":"busy"}}"#;

/// The server, and what it logs.
pub(crate) struct Server {
    child: Child,
    address: String,
    log: mpsc::Receiver<String>,
    admin: String,
}

impl Server {
    fn start(world: &World) -> Self {
        Self::of(world.command(&["serve", "--listen", "127.0.0.1:0"]), world.home.path())
    }

    /// Starts the command, which keeps its state in `home`.
    pub(crate) fn of(mut command: Command, home: &Path) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (tell, log) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let begun = Instant::now();
        let address = loop {
            let line = log.recv_timeout(PATIENCE).expect("the server said nothing");
            assert!(begun.elapsed() < PATIENCE);
            let entry: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            if entry["message"] == "serving" {
                break entry["address"].as_str().unwrap().to_owned();
            }
        };
        let file = home.join("state").join("admin-token");
        let admin = std::fs::read_to_string(file).unwrap_or_default().trim().to_owned();
        Self { child, address, log, admin }
    }

    fn request(&self, head: &str, body: &str) -> std::io::Result<(u16, String)> {
        let mut client = TcpStream::connect(&self.address)?;
        client.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        write!(
            client,
            "{head}host: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        client.read_to_string(&mut answer)?;
        let status = answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok((status, answer))
    }

    pub(crate) fn ask(&self, session: Option<&str>) -> (u16, String) {
        let session = session.map(|id| format!("x-failover-session: {id}\r\n")).unwrap_or_default();
        let body = json!({ "model": "default", "messages": [{ "role": "user", "content": "hi" }] });
        self.request(&format!("POST /v1/chat/completions HTTP/1.1\r\n{session}"), &body.to_string()).unwrap()
    }

    fn admin(&self, path: &str) -> Value {
        let head = format!("GET /admin/v1/{path} HTTP/1.1\r\nauthorization: Bearer {}\r\n", self.admin);
        let (status, answer) = self.request(&head, "").unwrap();
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(name).arg(id).status().unwrap().success());
    }

    /// Waits until the log has a line with this text.
    pub(crate) fn said(&self, text: &str) -> String {
        loop {
            let line = self.log.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("never said {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn served(answer: &str) -> &str {
    answer.lines().find_map(|line| line.strip_prefix("x-failover-served: ")).unwrap_or("nobody")
}

// spec: G-9
#[test]
fn it_takes_more_connections_than_the_soft_limit_of_open_files() {
    let world = World::new();
    let wanted = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -Sn 64; exec \"$0\" \"$@\""])
        .arg(wanted.get_program())
        .args(wanted.get_args());
    limited.env_clear();
    for (name, value) in wanted.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    let server = Server::of(limited, world.home.path());
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let (status, answer) = server.ask(None);
    assert_eq!((status, served(&answer)), (200, "first/one"), "{answer}");
    drop(idle);
}

/// Here the state directory is a file.
// spec: A-25
#[test]
fn a_store_that_cannot_be_opened_is_told_and_no_reason_not_to_serve() {
    let world = World::new();
    let state = world.home.path().join("state");
    let _ = std::fs::remove_dir_all(&state);
    std::fs::write(&state, "").unwrap();
    let server = Server::start(&world);
    let (status, answer) = server.ask(Some("s"));
    assert_eq!((status, served(&answer)), (200, "first/one"), "{answer}");
}

// spec: U-2, G-1, G-8
#[test]
fn it_serves_logs_as_json_and_ends_on_sigterm() {
    let world = World::new();
    let mut server = Server::start(&world);
    let (status, answer) = server.ask(None);
    assert_eq!((status, served(&answer)), (200, "first/one"), "{answer}");
    let line: Value = serde_json::from_str(&server.said("\"request\"")).unwrap();
    assert_eq!((&line["served"], &line["outcome"]), (&json!("first/one"), &json!("answered")), "{line}");
    assert!(!line.to_string().contains("sk-fixture"));
    // A stream that is under way comes to its end.
    let slow = Answer::text((0..20).map(|at| format!("w{at} "))).drip(Duration::from_millis(50));
    world.upstream.script("one", [slow.into()]);
    let address = server.address.clone();
    let streaming = std::thread::spawn(move || {
        let mut client = TcpStream::connect(address).unwrap();
        let body =
            json!({ "model": "default", "stream": true, "messages": [{ "role": "user", "content": "x" }] });
        let body = body.to_string();
        let length = body.len();
        write!(
            client,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    });
    world
        .runtime
        .block_on(world.upstream.until(|log| log.iter().any(|it| it.stream && it.answered_at.is_some())));
    server.signal("-TERM");
    assert!(streaming.join().unwrap().contains("[DONE]"));
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

// spec: G-9
#[test]
fn sighup_reloads_and_a_wrong_config_is_told_and_left() {
    let world = World::new();
    let server = Server::start(&world);
    assert_eq!(served(&server.ask(None).1), "first/one");
    let good = std::fs::read_to_string(world.config_path()).unwrap();
    std::fs::write(world.config_path(), "{ agnets: {} }").unwrap();
    server.signal("-HUP");
    assert!(server.said("the old one stays").contains("agnets"));
    assert_eq!(server.ask(None).0, 200);
    let turned = good.replace("'first/one'", "'second/two'").replace("['second/two']", "['first/one']");
    std::fs::write(world.config_path(), turned).unwrap();
    server.signal("-HUP");
    server.said("the config is reloaded");
    assert_eq!(served(&server.ask(None).1), "second/two");
}

// spec: G-9, K-2, S-2
#[test]
fn kill_9_under_load_loses_nothing_that_was_promised() {
    let world = World::new();
    let one = [Step::json(529, BUSY)];
    world.upstream.script("one", one);
    for round in 0..2 {
        let mut server = Server::start(&world);
        let session = format!("s{round}");
        let (status, answer) = server.ask(Some(&session));
        assert_eq!((status, served(&answer)), (200, "second/two"), "{answer}");
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..8)
            .map(|at| {
                let (address, stop) = (server.address.clone(), Arc::clone(&stop));
                std::thread::spawn(move || {
                    let body = json!({ "model": "default", "messages": [{ "role": "user", "content": "hi" }] });
                    let (body, mut asked) = (body.to_string(), 0);
                    while !stop.load(Ordering::Relaxed) {
                        let Ok(mut client) = TcpStream::connect(&address) else { break };
                        let length = body.len();
                        let head = format!(
                            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-failover-session: c{at}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                        );
                        let mut answer = String::new();
                        let _ = client.write_all(head.as_bytes());
                        let _ = client.read_to_string(&mut answer);
                        asked += usize::from(answer.contains(" 200 "));
                    }
                    asked
                })
            })
            .collect();
        let calls = world.calls("two");
        world.runtime.block_on(
            world
                .upstream
                .until(|log| log.iter().filter(|attempt| attempt.model == "two").count() > calls + 40),
        );
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        stop.store(true, Ordering::Relaxed);
        let asked: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert!(asked > 0);
        drop(server);
    }
    let server = Server::start(&world);
    let sessions = server.admin("sessions").to_string();
    for session in ["s0", "s1"] {
        assert!(sessions.contains(&format!("\"{session}\"")), "{sessions}");
        assert_eq!(served(&server.ask(Some(session)).1), "second/two");
    }
}

// spec: K-2
#[test]
fn other_commands_reach_the_state_of_a_server() {
    let world = World::new();
    world.upstream.script("one", [Step::json(402, r#"{"error":{"message":"Insufficient credits"}}"#)]);
    let server = Server::start(&world);
    assert_eq!(served(&server.ask(Some("s1")).1), "second/two");
    let shown = world.run(&["session", "show", "s1"]);
    assert!(shown.out.contains("second/two"), "{shown:?}");
    let status = world.run(&["status", "--json"]);
    assert!(status.out.contains("billing"), "{status:?}");
    assert_eq!(server.ask(None).0, 200);
}

// spec: G-7, U-1
#[test]
fn it_does_not_open_itself_to_the_world_unasked() {
    let world = World::new();
    let ended = world.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.err.contains("tokens") && ended.err.contains("--new-token"), "{ended:?}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ended = world.run(&["serve", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(ended.code, Some(6), "{ended:?}");
    let output = binary(world.home.path(), &["serve", "--new-token", "app"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let (shown, entry) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(shown.starts_with("fo-") && entry.contains("name: \"app\"") && !entry.contains(shown.trim()));
}

// spec: A-3, G-7
#[cfg(unix)]
#[test]
fn the_admin_token_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let server = Server::start(&world);
    let file = world.home.path().join("state").join("admin-token");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.admin("status")["profiles"].as_array().unwrap().len() > 1);
    while let Ok(line) = server.log.try_recv() {
        assert!(!line.contains(&server.admin), "{line}");
    }
}

// spec: G-7, K-2
#[test]
fn a_second_server_on_one_state_directory_locks_nobody_out() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let file = world.home.path().join("state").join("admin-token");
    let first = Server::start(&world);
    let second = Server::start(&world);
    assert_eq!(first.admin, second.admin);
    assert!(!first.admin("profiles").is_null() && !second.admin("profiles").is_null());
    drop(second);
    let kept = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(kept, first.admin, "what lies there is good for the one that is left");
    first.admin("profiles");
    drop(first);
    // What others may have read is good for nobody any more.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let third = Server::start(&world);
    assert_ne!(third.admin, kept);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    third.admin("profiles");
}

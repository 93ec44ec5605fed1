//! A Redis server that belongs to one test.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Looks at a starting server this often.
const STEP: Duration = Duration::from_millis(10);
/// For a minute: a loaded machine starts processes slowly.
const STEPS: usize = 6_000;

/// A real `redis-server` on a socket in a directory of its own, killed when dropped. It syncs each write before it
/// acknowledges it, and evicts nothing, unless the test sets something else.
#[derive(Debug)]
pub struct RedisServer {
    dir: TempDir,
    child: Option<Child>,
}

#[expect(clippy::panic, reason = "a test that cannot have its server fails with the reason")]
impl RedisServer {
    /// Starts a server; `settings` are options of its command line. `None` where none is installed: the test returns,
    /// having said so, and with `CI` set it fails instead.
    ///
    /// # Panics
    ///
    /// When the server does not start, and when there is none although `CI` is set.
    #[must_use]
    #[expect(clippy::print_stderr, clippy::disallowed_methods, reason = "a test that is skipped says so")]
    pub fn start(test: &str, settings: &[&str]) -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            assert!(
                std::env::var("CI").is_err(),
                "{test}: redis-server is not installed, and CI must run this"
            );
            eprintln!("SKIPPED {test}: redis-server is not installed (Debian: apt-get install redis-server)");
            return None;
        }
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("no directory for a server: {e}"));
        let mut server = Self { dir, child: None };
        server.restart(settings);
        Some(server)
    }

    /// Kills the server if it runs and starts it over the files that it left, with these settings. Returns when it
    /// answers.
    ///
    /// # Panics
    ///
    /// When it does not start within a minute.
    pub fn restart(&mut self, settings: &[&str]) {
        self.kill();
        let dir = self.dir.path();
        let child = Command::new("redis-server")
            .args(["--port", "0", "--unixsocket", "redis.sock", "--save", "", "--dir"])
            .arg(dir)
            .args(["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"])
            .args(settings)
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap_or_else(|e| panic!("the server cannot be started: {e}")));
        let answers = (0..STEPS).any(|_| {
            let there = self.answers();
            if !there {
                std::thread::sleep(STEP);
            }
            there
        });
        assert!(answers, "the server does not start");
    }

    /// Whether it has read its files: until then every command is refused.
    fn answers(&self) -> bool {
        let mut answer = [0; 5];
        UnixStream::connect(self.socket())
            .and_then(|mut stream| {
                stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                stream.write_all(b"PING\r\n")?;
                stream.read_exact(&mut answer)
            })
            .is_ok_and(|()| answer == *b"+PONG")
    }

    /// kill -9, as a crash would. [`restart`](Self::restart) brings it back.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A child that is gone already is what was wanted.
            let _ = child.kill();
            let _ = child.wait();
            let _ = std::fs::remove_file(self.socket());
        }
    }

    /// The number of the process, for signals; `None` after [`kill`](Self::kill).
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its address, as the store wants it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

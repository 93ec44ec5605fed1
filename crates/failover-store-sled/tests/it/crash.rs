//! kill -9 at random moments, and what a killed owner leaves.

use crate::common::{clock, private_dir};
use failover_store::conformance::kill;
use failover_store::{KeyValue, StoreError};
use failover_store_sled::SledStore;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

const CHILD: &str = "crash::child_that_is_killed";
const OWNED_DIR: &str = "FAILOVER_TEST_OWNED_DIR";
/// Rounds over all writer counts together.
const ROUNDS: &str = "FAILOVER_KILL_ROUNDS";
const DEFAULT_ROUNDS: u32 = 20;

#[expect(clippy::disallowed_methods, reason = "how the test talks to the child that it starts")]
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn open(dir: &Path) -> Result<Arc<dyn KeyValue>, StoreError> {
    Ok(Arc::new(SledStore::open(dir, clock())?))
}

/// Does nothing in an ordinary test run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_is_killed() {
    kill::child(&open).await.unwrap();
}

// spec: K-2
#[test_case::test_case(1; "one writer")]
#[test_case::test_case(8; "eight writers")]
#[test_case::test_case(64; "sixty four writers")]
#[tokio::test]
async fn nothing_acknowledged_is_lost_by_kill_9(writers: u64) {
    let rounds = env(ROUNDS).map_or(DEFAULT_ROUNDS, |rounds| rounds.parse().unwrap()).div_ceil(3);
    let dir = private_dir();
    let acked = kill::survives(CHILD, dir.path(), writers, rounds, &open).await.unwrap();
    report(&format!("{acked} acknowledged writes over {rounds} kills with {writers} writers, none lost"));
}

#[expect(clippy::print_stdout, reason = "the long run is there to be read")]
fn report(line: &str) {
    println!("{line}");
}

// spec: K-2
#[tokio::test]
async fn a_killed_owner_leaves_the_directory_free() {
    let dir = private_dir();
    kill::survives(CHILD, dir.path(), 1, 1, &open).await.unwrap();
}

/// The child that owns a directory until it is killed. Does nothing in an ordinary test run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_owns() {
    let Some(dir) = env(OWNED_DIR) else { return };
    let _store = failover_store_sled::SharedStore::open(PathBuf::from(dir), clock()).await.unwrap();
    std::io::stderr().write_all(b"owns").unwrap();
    std::future::pending::<()>().await;
}

/// A process that owns a directory.
pub(crate) struct Owner(std::process::Child);

impl Owner {
    /// Returns once it has the directory.
    pub(crate) fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child_that_owns", "--nocapture"])
            .env(OWNED_DIR, dir)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 4];
        child.stderr.as_mut().unwrap().read_exact(&mut word).unwrap();
        assert_eq!(&word, b"owns");
        Self(child)
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

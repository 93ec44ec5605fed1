//! Real processes share one login: one of them refreshes it, and one that is killed is survived.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod shared;

use async_trait::async_trait;
use failover_auth::RefreshPolicy;
use failover_classify::Surface;
use failover_provider::{AttemptFailure, RefreshError, TokenRefresher};
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Version, Versioned, WriteOptions,
};
use failover_types::{BoxFuture, Clock, OAuth, Timestamp};
use shared::{T0, login, process, profile, provider, store_login, stored_login};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Long enough that a busy machine does not let it run out by itself, short enough to wait for.
const LEASE: Duration = Duration::from_secs(3);
const DIR: &str = "FAILOVER_TEST_DIR";
const UPSTREAM: &str = "FAILOVER_TEST_UPSTREAM";

struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "real processes need a real clock")]
    fn now(&self) -> Timestamp {
        Timestamp::ZERO.after(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
    }

    #[expect(clippy::disallowed_methods, reason = "real processes need a real clock")]
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

/// A directory that several processes write, one at a time. A record is its version and its value in one file that is
/// put in place whole, so that a kill leaves the old one or the new one.
struct Files(PathBuf);

impl Files {
    fn locked<T>(&self, work: impl FnOnce() -> T) -> T {
        let lock = File::create(self.0.join("lock")).unwrap();
        lock.lock().unwrap();
        work()
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.0.join(format!("record-{}", key.as_str().replace('/', "~")))
    }

    fn look(&self, key: &Key) -> Option<Versioned> {
        let bytes = std::fs::read(self.path(key)).ok()?;
        let (version, value) = bytes.split_first_chunk::<8>().unwrap();
        Some(Versioned { version: Version(u64::from_le_bytes(*version)), value: Value::new(value) })
    }

    fn put(&self, path: &Path, bytes: &[u8]) {
        let draft = self.0.join("draft");
        std::fs::write(&draft, bytes).unwrap();
        std::fs::rename(draft, path).unwrap();
    }

    /// A number in a file, raised by one.
    fn next(&self, name: &str) -> u64 {
        let path = self.0.join(name);
        let next = std::fs::read_to_string(&path).map_or(0, |text| text.parse().unwrap()) + 1;
        self.put(&path, next.to_string().as_bytes());
        next
    }
}

#[async_trait]
impl KeyValue for Files {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        Ok(self.locked(|| self.look(key)))
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        _write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        Ok(self.locked(|| {
            let current = self.look(key);
            if Expect::from(current.as_ref()) != expect {
                return Swap::Lost(current);
            }
            let Some(value) = next else {
                std::fs::remove_file(self.path(key)).unwrap();
                return Swap::Done(None);
            };
            let version = self.next("version");
            self.put(&self.path(key), &[&version.to_le_bytes(), value.as_bytes()].concat());
            Swap::Done(Some(Version(version)))
        }))
    }

    async fn scan(&self, _: &Prefix, _: Option<&Key>, _: usize) -> Result<Vec<(Key, Versioned)>, StoreError> {
        panic!("these tests list nothing")
    }

    async fn changes(&self, _: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        Ok(None)
    }
}

/// The provider as all processes see it: it takes each refresh token once, and writes down each call.
struct Upstream {
    files: Files,
    /// `answers`, or where it hangs: `hangs before` or `hangs after` it took the token.
    behavior: String,
}

impl Upstream {
    async fn hang(&self) {
        std::fs::write(self.files.0.join("hangs"), "").unwrap();
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl TokenRefresher for Upstream {
    async fn refresh(&self, current: &OAuth, now: Timestamp) -> Result<OAuth, RefreshError> {
        if self.behavior == "hangs before" {
            self.hang().await;
        }
        let taken = self.files.locked(|| {
            let log = self.files.0.join("calls");
            let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
            writeln!(log, "{}", current.refresh.expose()).unwrap();
            let good = std::fs::read_to_string(self.files.0.join("good")).unwrap_or_else(|_| "0".into());
            (current.refresh.expose() == format!("refresh-{good}")).then(|| self.files.next("good"))
        });
        let Some(generation) = taken else {
            return Err(AttemptFailure::new(provider(), Surface::Http).with_status(400).into());
        };
        if self.behavior == "hangs after" {
            self.hang().await;
        }
        Ok(login(generation, now.after(Duration::from_hours(1))))
    }
}

fn variable(name: &str) -> String {
    std::env::vars().find_map(|(key, value)| (key == name).then_some(value)).unwrap()
}

/// What each process does: six tasks ask for the credential, and write down what they got.
#[test]
#[ignore = "a process that the other tests start"]
fn child() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let dir = PathBuf::from(variable(DIR));
    let mut policy = RefreshPolicy::default();
    (policy.lease, policy.poll) = (LEASE, Duration::from_millis(20));
    let upstream = Upstream { files: Files(dir.clone()), behavior: variable(UPSTREAM) };
    let credentials =
        process(Arc::new(Files(dir.clone())), Arc::new(upstream), policy, Arc::new(SystemClock));
    let got = runtime.block_on(async move {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let credentials = credentials.clone();
            tasks.spawn(async move {
                match credentials.resolve(&profile()).await {
                    Ok(resolved) => resolved.secret.expose().to_owned(),
                    Err(error) => error.reason().to_string(),
                }
            });
        }
        tasks.join_all().await
    });
    std::fs::write(dir.join(format!("got-{}", std::process::id())), got.join("\n")).unwrap();
}

struct World(tempfile::TempDir);

impl World {
    async fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        store_login(&world.look(), login(0, T0.before(Duration::from_hours(24 * 365 * 20)))).await;
        world
    }

    /// This process's own view of the store; it refreshes nothing.
    fn look(&self) -> failover_credentials::Credentials {
        let files = || Files(self.0.path().to_owned());
        let upstream = Upstream { files: files(), behavior: "answers".into() };
        process(Arc::new(files()), Arc::new(upstream), RefreshPolicy::default(), Arc::new(SystemClock))
    }

    fn start(&self, upstream: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--ignored"])
            .env(DIR, self.0.path())
            .env(UPSTREAM, upstream)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// What the tasks of a process got.
    fn got(&self, mut child: Child) -> Vec<String> {
        assert!(child.wait().unwrap().success());
        let text = std::fs::read_to_string(self.0.path().join(format!("got-{}", child.id()))).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Kills a process in the middle of its call, with another one waiting for it already.
    fn kill_in_the_middle(&self, upstream: &str) -> Vec<String> {
        let mut victim = self.start(upstream);
        let hangs = self.0.path().join("hangs");
        while !hangs.exists() {
            assert!(victim.try_wait().unwrap().is_none(), "the victim ended before its call");
            std::thread::yield_now();
        }
        let waits = self.start("answers");
        victim.kill().unwrap();
        victim.wait().unwrap();
        self.got(waits)
    }
}

// spec: A-19
#[tokio::test]
async fn three_processes_make_one_call() {
    let world = World::new().await;
    let children = [(); 3].map(|()| world.start("answers"));
    for child in children {
        assert_eq!(world.got(child), ["access-1"; 6]);
    }
    assert_eq!(world.calls(), ["refresh-0"]);
    assert_eq!(stored_login(&world.look()).await.refresh.expose(), "refresh-1");
}

// spec: A-19
#[tokio::test]
async fn a_process_killed_before_the_token_was_taken_is_survived() {
    let world = World::new().await;
    assert_eq!(world.kill_in_the_middle("hangs before"), ["access-1"; 6]);
    assert_eq!(world.calls(), ["refresh-0"]);
}

// spec: A-19
#[tokio::test]
async fn a_pair_that_died_with_its_process_is_told_as_a_login_that_is_gone() {
    let world = World::new().await;
    assert_eq!(world.kill_in_the_middle("hangs after"), ["auth_permanent"; 6]);
    assert_eq!(stored_login(&world.look()).await.refresh.expose(), "refresh-0", "nothing was written over");
    // A person logs in again.
    let hour = SystemClock.now().after(Duration::from_hours(1));
    store_login(&world.look(), login(9, hour)).await;
    assert_eq!(world.got(world.start("answers")), ["access-9"; 6]);
}

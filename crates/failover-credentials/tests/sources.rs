//! Secrets from the environment, files and commands.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "test helpers, and tasks that the tests wait for"
)]

use failover_credentials::{Secrets, SourceError};
use failover_testkit::ManualClock;
use failover_types::{Secret, SecretSource, Timestamp};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

fn secrets() -> (Arc<ManualClock>, Secrets) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(5)));
    let environment = Arc::new(|name: &str| (name == "KEY").then(|| " sk-env\n".to_owned()));
    (Arc::clone(&clock), Secrets::new(clock).environment(environment))
}

fn command(argv: &[&str]) -> SecretSource {
    SecretSource::Command(argv.iter().map(|part| (*part).to_owned()).collect())
}

fn file(dir: &tempfile::TempDir, content: &[u8], mode: u32) -> PathBuf {
    let path = dir.path().join(format!("key-{mode:o}-{}", content.len()));
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

async fn read(source: SecretSource) -> Result<Secret, SourceError> {
    secrets().1.read(&source).await
}

/// The whole error, its sources too: no part of it may quote the secret.
fn text(error: &SourceError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error} {error:?} {source}")
}

// spec: A-1
#[tokio::test]
async fn every_source_gives_the_trimmed_value() {
    let dir = tempfile::tempdir().unwrap();
    let sources = [
        (SecretSource::Literal(Secret::new("sk-literal")), "sk-literal"),
        (SecretSource::Env("KEY".into()), "sk-env"),
        (SecretSource::File(file(&dir, b"sk-file\n", 0o600)), "sk-file"),
        (command(&["printf", "sk-%s\\n", "printed"]), "sk-printed"),
    ];
    for (source, expected) in sources {
        assert_eq!(read(source).await.unwrap().expose(), expected);
    }
}

// spec: A-3
#[tokio::test]
async fn a_file_that_others_can_read_is_refused_unless_forced() {
    let dir = tempfile::tempdir().unwrap();
    for mode in [0o640, 0o604, 0o622] {
        let path = file(&dir, b"sk-hidden", mode);
        let error = read(SecretSource::File(path.clone())).await.unwrap_err();
        assert!(matches!(error, SourceError::Exposed { mode: found, .. } if found == mode), "{error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
        let forced = secrets().1.force(true).read(&SecretSource::File(path)).await;
        assert_eq!(forced.unwrap().expose(), "sk-hidden");
    }
}

// spec: A-3
#[tokio::test]
async fn errors_say_what_to_do_and_never_quote_the_secret() {
    let dir = tempfile::tempdir().unwrap();
    let long = vec![b'k'; 70_000];
    let cases = [
        (SecretSource::Env("NO_KEY".into()), "NO_KEY is not set"),
        (SecretSource::File(dir.path().join("none")), "cannot be read"),
        (SecretSource::File(dir.path().to_owned()), "no regular file"),
        (SecretSource::File(file(&dir, b"two hidden keys", 0o600)), "is no secret"),
        (SecretSource::File(file(&dir, b"\xff\xfehidden", 0o600)), "gives no text"),
        (SecretSource::File(file(&dir, &long, 0o600)), "gives no text"),
        (command(&[]), "is empty"),
        (command(&["/no/such/program", "--token=hidden"]), "/no/such/program cannot be run"),
        (command(&["sh", "-c", "echo hidden; echo hidden >&2; exit 3"]), "failed (exit status: 3)"),
        (command(&["true", "hidden"]), "is no secret"),
        (command(&["head", "-c", "70000", "/dev/zero"]), "gives no text"),
    ];
    for (source, expected) in cases {
        let error = read(source).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!text(&error).contains("hidden"), "{}", text(&error));
    }
}

// spec: A-1
#[tokio::test]
async fn a_command_that_hangs_is_killed_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let (clock, secrets) = secrets();
    let script = format!("echo $$ > {}; exec sleep 600", pid.display());
    let source = command(&["sh", "-c", &script]);
    let reading = tokio::spawn(async move { secrets.limit(Duration::from_secs(5)).read(&source).await });
    clock.until_waiting(1).await;
    // Wait for the script's own word that it runs.
    let pid = loop {
        match std::fs::read_to_string(&pid) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => tokio::task::yield_now().await,
        }
    };
    clock.advance(Duration::from_secs(5));
    let error = reading.await.unwrap().unwrap_err();
    assert!(matches!(error, SourceError::TooSlow { .. }), "{error}");
    // Killed: it is gone, or a corpse that nobody has buried yet.
    let stat = format!("/proc/{pid}/stat");
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::task::yield_now().await;
    }
}

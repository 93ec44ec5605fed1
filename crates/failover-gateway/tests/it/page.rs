//! The status page in a real browser, where there is one: `chromium` in the path.

use crate::common::{Setup, World, question};
use failover_testkit::upstream::Step;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A browser without a window; `None` where the machine has none: the test returns, having said so, and with `CI` set it
/// fails instead.
#[expect(clippy::print_stderr, reason = "a skip is told by name")]
fn browser() -> Option<PathBuf> {
    let path = std::env::vars_os().find(|(name, _)| name == "PATH")?.1;
    let found = std::env::split_paths(&path)
        .flat_map(|dir| ["chromium", "chromium-browser", "google-chrome"].map(|name| dir.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        let in_ci = std::env::vars_os().any(|(name, _)| name == "CI");
        assert!(!in_ci, "the status page: chromium is not installed, and CI must run this");
        eprintln!("SKIPPED the status page: chromium is not installed (Debian: apt-get install chromium)");
    }
    found
}

/// The page as it stands after two looks at the server.
async fn look(browser: &Path, url: &str, more: &[&str]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ])
        .args(["--virtual-time-budget=6000", "--timeout=60000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(url);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

// spec: G-8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_profiles_windows_sessions_and_decisions() {
    let Some(browser) = browser() else { return };
    let world = World::with(Setup::gateway("routes: { fast: { chain: ['second/two'] } }")).await;
    let billing = r#"{"error":{"message":"Your credit balance is too low <script>alert(1)</script>","type":"billing_error"}}"#;
    world.first.script("one", [Step::json(402, billing)]);
    let headers = [("x-failover-session", "ada's <b>session</b>".replace([' ', '\''], "-"))];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(world.post("/v1/chat/completions", &headers, &question("default")).await.status, 200);
    let url = format!("http://{}/status#fo-admin", world.address);
    let shown = look(&browser, &url, &["--dump-dom"]).await;
    for text in [
        "3 of 4 credentials usable",
        "first:default",
        "disabled",
        "billing",
        "second:default",
        "second/two answers in place of first/one",
        "failed, on to second/two",
        "status 402",
        "data-until",
        "1. second/two",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(!shown.contains("<b>session") && !shown.contains("<script>alert"), "text is text: {shown}");
    assert!(!shown.contains("fo-admin"), "the token is not kept in the page");
    let refused = look(&browser, &format!("http://{}/status#fo-wrong", world.address), &["--dump-dom"]).await;
    assert!(refused.contains("This token is not known here"), "{refused}");
    assert!(!refused.contains("first:default"));
}

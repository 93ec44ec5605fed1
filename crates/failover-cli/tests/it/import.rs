//! `failover import openclaw`: real layouts in, a store and a config out, and no secret anywhere else.

use crate::{Ended, binary};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/import").join(name)
}

/// Every file below, and what it holds.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

fn import(home: &Path, fixture: &Path, args: &[&str]) -> Ended {
    let path = fixture.to_str().unwrap();
    let ended = Ended::of(&binary(home, &[&["import", "openclaw", path], args].concat()).output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

fn list(home: &Path, agent: &str) -> Vec<Value> {
    let args = ["auth", "list", "--json", "--agent", agent];
    let ended = Ended::of(&binary(home, &args).env("GROQ_API_KEY", "sk-groq").output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()["profiles"].as_array().unwrap().clone()
}

fn find<'a>(rows: &'a [Value], profile: &str) -> &'a Value {
    rows.iter().find(|row| row["profile"] == profile).unwrap_or_else(|| panic!("{profile}: {rows:?}"))
}

fn left(report: &Value) -> Vec<(&str, &str)> {
    let left = report["left"].as_array().unwrap();
    left.iter().map(|left| (left["what"].as_str().unwrap(), left["why"].as_str().unwrap())).collect()
}

// spec: A-21
#[test]
fn a_dry_run_tells_everything_and_writes_nothing() {
    let home = TempDir::new().unwrap();
    let report = import(home.path(), &fixture("openclaw"), &["--dry-run", "--json"]).json();
    assert!(contents(home.path()).is_empty(), "{:?}", contents(home.path()).keys());
    assert_eq!(report["dryRun"], true);
    assert!(report["taken"].as_array().unwrap().len() >= 8, "{report}");
    let text = import(home.path(), &fixture("openclaw"), &["--dry-run"]);
    assert!(text.out.contains("would come over") && text.out.contains("nothing was written"), "{text:?}");
}

// spec: A-21, A-3, A-18
#[test]
fn credentials_health_orders_and_config_come_over_once_and_nothing_is_lost() {
    let home = TempDir::new().unwrap();
    let original = contents(&fixture("openclaw"));
    let first = import(home.path(), &fixture("openclaw"), &["--json"]).json();
    assert_eq!(contents(&fixture("openclaw")), original, "originals are kept");

    let main = list(home.path(), "main");
    for (profile, kind) in [
        ("openai:work", "api_key"),
        ("openai:ada@example.com", "oauth"),
        ("anthropic:default", "token"),
        ("groq:default", "api_key"),
        ("google:default", "oauth"),
        ("acme:default", "api_key"),
    ] {
        assert_eq!(find(&main, profile)["type"], kind, "{profile}");
    }
    // The newer place of health counts, and so does the order in it.
    let work = find(&main, "openai:work");
    assert_eq!((&work["state"], &work["reason"]), (&"disabled".into(), &"billing".into()), "{work}");
    assert_eq!((&work["errors"], &work["lastUsed"]), (&2.into(), &1_700_000_000_123_u64.into()), "{work}");
    let ada = find(&main, "openai:ada@example.com");
    assert_eq!((&ada["state"], &ada["orderFrom"]), (&"blocked".into(), &"stored_order".into()), "{ada}");
    assert_eq!(ada["windows"][0]["source"], "reset: wham", "{ada}");
    let research = list(home.path(), "research");
    assert_eq!(find(&research, "openai:default")["type"], "api_key");
    // The config's order names it for every agent; its credential is the other agent's alone.
    let work = find(&research, "openai:work");
    assert_eq!(
        (&work["type"], &work["leftOut"]),
        (&Value::Null, &"unknown".into()),
        "agents are apart: {work}"
    );

    // The config is valid, and holds no secret.
    let config = std::fs::read_to_string(home.path().join("failover.json5")).unwrap();
    assert!(!config.contains("sk-fixture"), "{config}");
    let checked = Ended::of(&binary(home.path(), &["config", "check"]).output().unwrap());
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["agents"]["defaults"]["model"]["fallbacks"][1], "mini");
    assert_eq!(config["auth"]["order"]["openai"][0], "openai:ada@example.com");
    assert_eq!(config["models"]["providers"]["openai"]["apiKey"], "${OPENAI_API_KEY}");
    assert_eq!(config["models"]["providers"]["local"]["apiKey"], "${LOCAL_KEY}");
    assert_eq!(config["models"]["providers"]["acme"]["models"][0]["contextWindow"], 128_000);

    let left = left(&first);
    for (what, why) in [
        ("profiles.mistral:default", "could never be sent"),
        ("profiles.vault:default", "secret provider"),
        ("profiles.bedrock:sdk", "type is not known"),
        ("profiles.openai:ada@example.com.accountId", "not kept"),
        ("lastGood", "no such thing"),
        ("usageStats.anthropic:default", "cannot be read"),
        ("groq", "another one under this name"),
        ("models.providers.vault.apiKey", "secret provider"),
        ("auth.cooldowns.billingBackoffHours", "another form"),
        ("auth.profiles.bedrock:sdk", "another form"),
        ("agents.defaults.heartbeat.every", "no such key"),
        ("channels", "no part of failover"),
        ("env", "variables are not set here"),
    ] {
        let told = left.iter().any(|(at, cause)| *at == what && cause.contains(why));
        assert!(told, "{what} ({why}) is missing in {left:#?}");
    }

    // A second run changes nothing.
    // When a profile may be probed next hangs on when one looks.
    let stands = || {
        let mut rows = list(home.path(), "main");
        for row in &mut rows {
            row["nextProbe"] = Value::Null;
        }
        rows
    };
    let before = stands();
    let second = import(home.path(), &fixture("openclaw"), &["--json"]).json();
    assert_eq!(second["taken"].as_array().unwrap().len(), 0, "{second}");
    assert_eq!(second["config"]["state"], "same");
    assert_eq!(second["same"].as_array().unwrap().len(), first["taken"].as_array().unwrap().len());
    assert_eq!(stands(), before);
}

// spec: A-21
#[test]
fn the_first_layout_comes_over_too() {
    let home = TempDir::new().unwrap();
    let report = import(home.path(), &fixture("openclaw-old"), &["--json"]).json();
    let rows = list(home.path(), "main");
    assert_eq!(find(&rows, "anthropic:default")["type"], "api_key");
    assert_eq!(find(&rows, "openai:default")["type"], "api_key");
    assert_eq!(report["config"]["state"], "none");
}

// spec: A-21
#[test]
fn what_stands_here_is_not_written_over() {
    let home = TempDir::new().unwrap();
    let config = "{ agents: { defaults: { model: 'openai/gpt-5' } } }";
    std::fs::write(home.path().join("failover.json5"), config).unwrap();
    let added =
        crate::with_input(binary(home.path(), &["auth", "add", "openai:work"]), b"sk-fixture-own-0000");
    assert_eq!(added.code, Some(0), "{added:?}");
    let ordered = binary(home.path(), &["auth", "order", "openai", "openai:work"]).output().unwrap();
    assert!(ordered.status.success());
    for state in ["written_beside", "same_beside"] {
        let report = import(home.path(), &fixture("openclaw"), &["--json"]).json();
        assert_eq!(report["config"]["state"], state);
        let left = left(&report);
        assert!(left.iter().any(|(what, _)| what.contains("the credential openai:work")), "{left:?}");
        assert!(left.iter().any(|(what, _)| what.contains("the order of openai")), "{left:?}");
    }
    assert_eq!(std::fs::read_to_string(home.path().join("failover.json5")).unwrap(), config);
    let beside = std::fs::read_to_string(home.path().join("failover.openclaw.json5")).unwrap();
    assert!(!beside.contains("sk-fixture"), "{beside}");
}

// spec: A-21
#[test]
fn what_is_no_installation_is_told() {
    let home = TempDir::new().unwrap();
    let empty = TempDir::new().unwrap();
    let path = empty.path().to_str().unwrap();
    let nothing = Ended::of(&binary(home.path(), &["import", "openclaw", path]).output().unwrap());
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(nothing.err.contains("holds nothing of OpenClaw"), "{nothing:?}");
    let missing =
        Ended::of(&binary(home.path(), &["import", "openclaw", "/no/such/place"]).output().unwrap());
    assert_eq!(missing.code, Some(2), "{missing:?}");
    // Damage is reported, and hides nothing else.
    let folder = empty.path().join("agents/main/agent");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("auth-profiles.json"), "{ \"profiles\": {\"a:b\": sk-fixture").unwrap();
    std::fs::write(folder.join("auth.json"), r#"{"groq":{"type":"api_key","key":"sk-fixture-1"}}"#).unwrap();
    let report = import(home.path(), empty.path(), &["--json"]).json();
    assert!(left(&report).iter().any(|(_, why)| why.contains("no JSON object")), "{report}");
    assert_eq!(report["taken"].as_array().unwrap().len(), 1, "{report}");
}

//! What operators see and do: numbers, pages, steering, reloads, and stopping.

use crate::common::{PATIENCE, Setup, World, environment, question, said, words};
use failover::config::load_text;
use failover::store::MemoryStore;
use failover_testkit::upstream::{Step, Upstream};
use serde_json::{Value, json};
use std::sync::Arc;
use test_case::test_case;

const BUSY: &str = r#"{"error":{"type":"overloaded_error","message":"busy"}}"#;

// spec: G-8
#[tokio::test]
async fn numbers_and_decisions_tell_what_happened() {
    let world = World::new().await;
    world.first.script("one", [Step::json(529, BUSY)]);
    assert_eq!(world.chat(&question("default")).await.status, 200);
    assert_eq!(world.chat(&question("nobody/x")).await.status, 404);
    let text = world.get("/metrics", &[]).await.text();
    for line in [
        r#"failover_requests_total{dialect="chat",route="default",model="second/two",outcome="answered",status="200"} 1"#,
        r#"failover_fallbacks_total{route="default",model="second/two"} 1"#,
        r#"failover_tokens_total{model="second/two",kind="input"} 11"#,
        r#"failover_profile_usable{profile="second:default"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("nobody"), "what a client made up is no label: {text}");
    let status = world.admin("status").await;
    let decisions = status["decisions"].as_array().unwrap();
    let failed =
        decisions.iter().find(|it| it["reason"] == "overloaded" && it["decision"] == "candidate_failed");
    assert_eq!(failed.unwrap()["next"], "second/two", "{status}");
    assert!(decisions.iter().any(|it| it["decision"] == "candidate_succeeded"), "{status}");
    let newest = decisions[0]["number"].as_u64().unwrap();
    let later = world.admin(&format!("decisions?after={newest}")).await;
    assert_eq!(later["decisions"], json!([]));
}

// spec: G-8
#[tokio::test]
async fn health_readiness_and_the_page() {
    let world = World::new().await;
    assert_eq!(world.get("/healthz", &[]).await.text(), "ok\n");
    assert_eq!(world.get("/readyz", &[]).await.status, 200);
    let page = world.get("/status", &[]).await;
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    let text = page.text();
    assert!(!text.contains("http://") && !text.contains("https://"), "no assets of others");
    assert_eq!(world.get("/", &[]).await.header("location"), Some("/status"));
    for token in [&[][..], &[("authorization", "Bearer fo-wrong")][..]] {
        assert_eq!(world.get("/admin/v1/status", token).await.status, 401);
    }
}

async fn steer(world: &World, path: &str, body: &Value) -> Value {
    let headers = [("authorization", "Bearer fo-admin")];
    let answer = world.post(&format!("/admin/v1/{path}"), &headers, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

// spec: G-7, A-23
#[tokio::test]
async fn profiles_are_steered_by_admins() {
    let world = World::new().await;
    let served =
        async || world.chat(&question("default")).await.header("x-failover-served").unwrap().to_owned();
    assert_eq!(served().await, "first/one");
    let paused = steer(&world, "profiles/first:default/pause", &json!({})).await;
    assert_eq!(paused["state"], "paused");
    assert_eq!(served().await, "second/two");
    steer(&world, "profiles/first%3Adefault/resume", &json!({})).await;
    assert_eq!(served().await, "first/one");

    let billing = r#"{"error":{"message":"Your credit balance is too low","type":"billing_error"}}"#;
    world.first.script("one", [Step::json(402, billing), Step::text("well again")]);
    assert_eq!(served().await, "second/two");
    assert_eq!(served().await, "second/two");
    let profiles = world.admin("profiles").await;
    let first = &profiles["profiles"][0];
    assert_eq!((&first["state"], &first["reason"]), (&json!("disabled"), &json!("billing")), "{profiles}");
    let probed = steer(&world, "profiles/first:default/probe", &json!({})).await;
    assert_eq!(probed["probe"]["ok"], true, "{probed}");
    steer(&world, "profiles/first:default/clear", &json!({})).await;
    assert_eq!(served().await, "first/one");
    let headers = [("authorization", "Bearer fo-admin")];
    for path in ["profiles/nobody:x/clear", "profiles/first:default/explode", "nothing"] {
        let answer = world.post(&format!("/admin/v1/{path}"), &headers, &json!({})).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

// spec: A-23
#[tokio::test]
async fn a_pause_covers_the_model_that_was_meant_or_is_refused() {
    let world = World::new().await;
    let served =
        async || world.chat(&question("default")).await.header("x-failover-served").unwrap().to_owned();
    for written in ["one", "first/one", "FIRST/one"] {
        let paused = steer(&world, "profiles/first:default/pause", &json!({ "model": written })).await;
        assert_eq!(paused["pauses"], json!(["one"]), "{written}");
        assert_eq!(served().await, "second/two", "{written}");
        let resumed = steer(&world, "profiles/first:default/resume", &json!({ "model": written })).await;
        assert_eq!(resumed["pauses"], json!([]), "{written}");
        assert_eq!(served().await, "first/one", "{written}");
    }
    // No chain has it, and it can be asked for all the same.
    let paused = steer(&world, "profiles/first:default/pause", &json!({ "model": "first/other" })).await;
    assert_eq!(paused["pauses"], json!(["other"]));
    let probed = steer(&world, "profiles/first:default/probe", &json!({ "model": "first/one" })).await;
    assert_eq!(probed["probe"]["model"], "first/one", "{probed}");
    let headers = [("authorization", "Bearer fo-admin")];
    for (verb, written) in
        [("pause", "second/two"), ("pause", "no such model"), ("pause", "two"), ("probe", "second/two")]
    {
        let path = format!("/admin/v1/profiles/first:default/{verb}");
        let refused = world.post(&path, &headers, &json!({ "model": written })).await;
        assert_eq!(refused.status, 400, "{verb} {written}: {}", refused.text());
        assert!(refused.text().contains("first"), "{}", refused.text());
    }
}

// spec: G-8, R-11
#[test_case("default", ""; "passed on")]
#[test_case("held", "routes: { held: { chain: ['first/one', 'second/two'], streamRescue: 'buffer', bufferBytes: 500 } }"; "longer than what is held")]
#[tokio::test]
async fn an_answer_that_breaks_off_is_a_decision_like_any_failure(model: &str, routes: &str) {
    let world = World::with(Setup::gateway(routes)).await;
    world.first.script("one", [words(60).cut_after(40).into()]);
    let streamed = world.stream(model).await;
    assert!(streamed.error.is_some() && !streamed.text.is_empty(), "{}", streamed.raw);
    let status = world.admin("status").await;
    let of_first: Vec<&Value> =
        status["decisions"].as_array().unwrap().iter().filter(|it| it["model"] == "first/one").collect();
    let [failed] = of_first.as_slice() else { panic!("one break, one decision: {status}") };
    assert_eq!(
        (&failed["decision"], &failed["profile"]),
        (&json!("candidate_failed"), &json!("first:default"))
    );
    assert_eq!((&failed["reason"], &failed["position"]), (&json!("timeout"), &json!(1)), "{failed}");
    let profile = &world.admin("profiles").await["profiles"][0];
    assert_eq!((&profile["state"], &profile["reason"]), (&json!("cooling"), &failed["reason"]), "{profile}");
    assert_eq!(profile["errors"], 1);
}

// spec: S-3, S-8
#[tokio::test]
async fn a_choice_can_be_undone_and_is_not_made_of_a_slip() {
    let world = World::new().await;
    let headers = [("x-failover-session", "s1")];
    let served = async || {
        let answer = world.post("/v1/chat/completions", &headers, &question("default")).await;
        answer.header("x-failover-served").unwrap().to_owned()
    };
    let admin = [("authorization", "Bearer fo-admin")];
    for slip in ["sceond/two", "second/two@second:nope", "two"] {
        let refused = world.post("/admin/v1/sessions/s1/select", &admin, &json!({ "model": slip })).await;
        assert_eq!(refused.status, 400, "{slip}: {}", refused.text());
    }
    assert_eq!(served().await, "first/one");
    steer(&world, "sessions/s1/select", &json!({ "model": "second/two@second:default" })).await;
    steer(&world, "sessions/s1/reset", &json!({})).await;
    assert_eq!(served().await, "second/two", "what a person chose stays");
    steer(&world, "sessions/s1/reset", &json!({ "new": true })).await;
    assert_eq!(served().await, "first/one");
    for (verb, body) in [("reset", json!({ "model": "second/two" })), ("select", json!({ "new": true }))] {
        let refused = world.post(&format!("/admin/v1/sessions/s1/{verb}"), &admin, &body).await;
        assert_eq!(refused.status, 400, "{verb}: {}", refused.text());
    }
}

// spec: H-2, A-23
#[tokio::test]
async fn only_what_the_config_lists_is_chosen_for_a_session() {
    let setup = Setup { defaults: "models: { 'first/one': {} },".to_owned(), ..Setup::default() };
    let world = World::with(setup).await;
    let admin = [("authorization", "Bearer fo-admin")];
    let refused =
        world.post("/admin/v1/sessions/s/select", &admin, &json!({ "model": "second/other" })).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("first/one"), "{}", refused.text());
    steer(&world, "sessions/s/select", &json!({ "model": "first/one" })).await;
}

// spec: G-7, S-8
#[tokio::test]
async fn sessions_are_selected_and_reset_by_admins() {
    let world = World::new().await;
    let headers = [("x-failover-session", "s1")];
    let ask = async || world.post("/v1/chat/completions", &headers, &question("default")).await;
    steer(&world, "sessions/s1/select", &json!({ "model": "second/two" })).await;
    assert_eq!(ask().await.header("x-failover-served"), Some("second/two"));
    let sessions = world.admin("sessions").await;
    assert_eq!(sessions["sessions"][0]["source"], "user", "{sessions}");
    world.first.script("one", [Step::json(529, BUSY), Step::text("back")]);
    let other = [("x-failover-session", "s2")];
    let moved = world.post("/v1/chat/completions", &other, &question("default")).await;
    assert_eq!(moved.header("x-failover-served"), Some("second/two"));
    steer(&world, "sessions/s2/reset", &json!({})).await;
    assert!(!world.admin("sessions").await.to_string().contains("s2"));
}

// spec: K-3, A-23
#[tokio::test]
async fn what_another_process_did_to_a_profile_is_shown() {
    let store = Arc::new(MemoryStore::new(Arc::new(failover::runner::SystemClock::new())));
    let here = World::with(Setup { store: Some(Arc::clone(&store) as _), ..Setup::default() }).await;
    let there = World::with(Setup { store: Some(store), ..Setup::default() }).await;
    for (verb, state, usable) in [("pause", "paused", "0"), ("resume", "usable", "1")] {
        steer(&there, &format!("profiles/first:default/{verb}"), &json!({})).await;
        assert_eq!(here.admin("profiles").await["profiles"][0]["state"], state);
        assert_eq!(here.admin("status").await["profiles"][0]["state"], state);
        let metrics = here.get("/metrics", &[]).await.text();
        let line = metrics.lines().find(|line| line.contains("first:default") && line.contains("usable"));
        assert!(line.is_some_and(|line| line.ends_with(usable)), "{line:?}");
    }
}

// spec: G-9
#[tokio::test]
async fn a_reload_is_for_what_comes_and_streams_go_on() {
    let store = Arc::new(MemoryStore::new(Arc::new(failover::runner::SystemClock::new())));
    let world = World::with(Setup { store: Some(store), ..Setup::default() }).await;
    world.first.script("one", [words(60).drip(std::time::Duration::from_millis(20)).into()]);
    let mut open = world.open_stream("default").await;
    open.until("w1 ").await;
    let turned = Setup::gateway("routes: { default: { chain: ['second/two', 'first/one'] } }");
    let loaded = load_text("failover.json5", &turned.config(&world.first, &world.second)).unwrap();
    world.gateway.reload(loaded).await.unwrap();
    assert_eq!(world.chat(&question("default")).await.header("x-failover-served"), Some("second/two"));
    let whole = open.whole().await;
    assert!(whole.text().contains("[DONE]") && whole.text().contains("w59"), "{}", whole.text());
}

// spec: G-9
#[tokio::test]
async fn what_a_reload_cannot_change_is_told() {
    let world = World::new().await;
    let loaded = |gateway: &str| {
        load_text("failover.json5", &Setup::gateway(gateway).config(&world.first, &world.second)).unwrap()
    };
    assert_eq!(world.gateway.reload(loaded("keepaliveMs: 1000")).await.unwrap(), Vec::<String>::new());
    let told = world.gateway.reload(loaded("listen: '127.0.0.1:9999'")).await.unwrap();
    assert!(told.len() == 1 && told[0].contains("gateway.listen"), "{told:?}");
    let told =
        world.gateway.reload(loaded("telemetry: { otlpEndpoint: 'http://127.0.0.1:1' }")).await.unwrap();
    assert!(told.len() == 1 && told[0].contains("gateway.telemetry"), "{told:?}");
}

// spec: G-9
#[tokio::test]
async fn what_is_known_of_credentials_survives_a_reload() {
    let world = World::new().await;
    let billing = r#"{"error":{"message":"Your credit balance is too low","type":"billing_error"}}"#;
    world.first.script("one", [Step::json(402, billing)]);
    assert_eq!(world.chat(&question("default")).await.header("x-failover-served"), Some("second/two"));
    let loaded = load_text("failover.json5", &Setup::default().config(&world.first, &world.second)).unwrap();
    world.gateway.reload(loaded).await.unwrap();
    assert_eq!(world.chat(&question("default")).await.header("x-failover-served"), Some("second/two"));
    assert_eq!(world.first.count("one"), 1);
}

// spec: G-9
#[tokio::test]
async fn a_wrong_config_changes_nothing_and_is_told() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("failover.json5");
    let upstream = &world.first;
    let config = Setup::default().config(upstream, upstream);
    std::fs::write(&path, &config).unwrap();
    let made = failover_gateway::Gateway::builder(load_text("x", &config).unwrap())
        .config_file(&path)
        .environment(environment())
        .build()
        .await
        .unwrap();
    std::fs::write(&path, "{ agnets: {} }").unwrap();
    let fault = made.gateway.reload_file().await.unwrap_err();
    assert!(fault.contains("agnets") && fault.contains(":1:3"), "{fault}");
    std::fs::write(&path, &config).unwrap();
    made.gateway.reload_file().await.unwrap();
}

// spec: G-9
#[tokio::test]
async fn a_changed_file_is_put_to_work_by_itself() {
    let upstream = Upstream::start(Arc::new(failover::runner::SystemClock::new())).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("failover.json5");
    let config = Setup::default().config(&upstream, &upstream);
    std::fs::write(&path, &config).unwrap();
    let made = failover_gateway::Gateway::builder(load_text("x", &config).unwrap())
        .config_file(&path)
        .environment(environment())
        .build()
        .await
        .unwrap();
    let gateway = made.gateway.clone();
    let watching = tokio::spawn(async move { gateway.watch().await });
    let primary = || made.gateway.engine().chain_config().selection().unwrap().model().to_string();
    assert_eq!(primary(), "first/one");
    let wanted = config.replace("primary: 'first/one'", "primary: 'second/other'");
    let changed = async {
        while primary() != "second/other" {
            // Written again and again, so that no clock of a file system is too coarse.
            std::fs::write(&path, &wanted).unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, changed).await.unwrap();
    watching.abort();
}

// spec: G-9
#[tokio::test]
async fn a_drain_lets_streams_end_and_takes_nothing_new() {
    let mut world = World::new().await;
    world.first.script("one", [words(60).drip(std::time::Duration::from_millis(20)).into()]);
    let mut open = world.open_stream("default").await;
    open.until("w1 ").await;
    let served = world.stop();
    let whole = open.whole().await;
    assert!(whole.text().contains("[DONE]"), "{}", whole.text());
    let drained = tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap();
    assert_eq!(drained.cut, 0);
    assert!(tokio::net::TcpStream::connect(world.address).await.is_err(), "nobody listens");
    assert!(said(60).len() > 100);
}

// spec: G-9
#[tokio::test]
async fn a_drain_does_not_wait_for_ever() {
    let mut world = World::with(Setup::gateway("limits: { drainMs: 300 }")).await;
    world.first.script("one", [words(10).stall_after(2).into()]);
    let mut open = world.open_stream("default").await;
    open.until("w1 ").await;
    let drained = tokio::time::timeout(PATIENCE, world.stop()).await.unwrap().unwrap();
    assert_eq!(drained.cut, 1);
}

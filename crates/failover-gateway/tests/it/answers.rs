//! Questions and answers: whole and streamed, from the first model and from the next.

use crate::common::{Setup, World, question, said, until, words};
use failover_testkit::upstream::{Answer, Respond, Step};
use http::Method;
use serde_json::json;
use std::time::{Duration, Instant};
use test_case::test_case;

// spec: G-1, G-5
#[tokio::test]
async fn a_whole_answer_of_the_first_model() {
    let world = World::new().await;
    world.first.script("one", [Step::text("hello there")]);
    for model in ["default", "first/one"] {
        let answer = world.chat(&question(model)).await;
        assert_eq!((answer.status, answer.said().as_str()), (200, "hello there"), "{}", answer.text());
        assert_eq!(answer.header("x-failover-requested"), Some(model));
        assert_eq!(answer.header("x-failover-served"), Some("first/one"));
        assert_eq!(answer.header("x-failover-attempts"), Some("1"));
        assert_eq!(answer.header("x-failover-reason"), None);
        assert_eq!(answer.json()["usage"]["total_tokens"], 18);
        assert!(answer.json()["model"].as_str().unwrap().ends_with("one"));
    }
    assert_eq!(world.second.log().len(), 0);
}

// spec: G-1, G-5
#[tokio::test]
async fn the_next_model_answers_and_says_so() {
    let world = World::new().await;
    world.first.script("one", [Step::json(529, r#"{"error":{"type":"overloaded_error","message":"busy"}}"#)]);
    world.second.script("two", [Answer::text(["I am two"]).into()]);
    let answer = world.chat(&question("default")).await;
    assert_eq!((answer.status, answer.said().as_str()), (200, "I am two"));
    assert_eq!(answer.header("x-failover-served"), Some("second/two"));
    assert_eq!(answer.header("x-failover-reason"), Some("overloaded"));
    assert!(answer.json()["model"].as_str().unwrap().ends_with("two"));
    let streamed = world.stream("default").await;
    assert!(streamed.is_complete(), "{}", streamed.raw);
    assert_eq!(streamed.header("x-failover-served"), Some("second/two"));
    assert!(streamed.models.iter().all(|model| model.is_empty() || model.ends_with("two")), "{streamed:?}");
}

// spec: G-1
#[tokio::test]
async fn a_stream_comes_piece_by_piece() {
    let world = World::new().await;
    world.first.script("one", [words(3).stall_after(2).into()]);
    let mut open = world.open_stream("default").await;
    assert_eq!(open.status, 200);
    assert_eq!(open.headers["content-type"], "text/event-stream");
    open.until("w1").await;
    // Two pieces are here, though the provider is far from done.
    assert!(world.first.log()[0].closed_at.is_none());
}

#[tokio::test]
async fn what_has_come_at_once_goes_out_in_few_writes() {
    let world = World::new().await;
    world.first.script("one", [words(60).into()]);
    let mut open = world.open_stream("default").await;
    let mut pieces = Vec::new();
    while let Some(piece) = open.next().await {
        pieces.push(String::from_utf8_lossy(&piece).into_owned());
    }
    let together: usize = pieces.iter().map(|piece| piece.matches("\"content\":\"w").count()).sum();
    assert_eq!(together, 60);
    assert!(pieces.len() < 30, "{} writes", pieces.len());
}

// spec: G-1, G-5
#[tokio::test]
async fn a_stream_ends_as_an_answer_ends() {
    let world = World::new().await;
    world.first.script("one", [words(60).into()]);
    let streamed = world.stream("default").await;
    assert!(streamed.is_complete(), "{}", streamed.raw);
    assert_eq!(streamed.text, said(60));
    assert_eq!(streamed.usage.as_ref().unwrap()["completion_tokens"], 7);
    assert_eq!(streamed.header("x-failover-attempts"), Some("1"));
}

// spec: G-2
#[tokio::test]
async fn a_total_failure_has_a_true_status_and_says_what_was_tried() {
    let world = World::new().await;
    let limited = r#"{"error":{"message":"Rate limit reached","type":"rate_limit_error","code":"rate_limit_exceeded"}}"#;
    let step = |wait: &str| Respond::new(429).header("retry-after", wait).body(limited).into();
    world.first.script("one", [step("120")]);
    world.second.script("two", [step("42")]);
    let begun = Instant::now();
    for stream in [false, true] {
        let body =
            json!({ "model": "default", "stream": stream, "messages": [{ "role": "user", "content": "x" }] });
        let answer = world.chat(&body).await;
        assert_eq!(answer.status, 429, "{}", answer.text());
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        let least = 42_u64.saturating_sub(begun.elapsed().as_secs() + 1);
        assert!((least..=42).contains(&wait), "the soonest of both: {wait}");
        assert_eq!(answer.header("x-failover-reason"), Some("rate_limit"));
        let error = &answer.json()["error"];
        assert_eq!(error["type"], "rate_limit_error");
        let attempts = error["failover"]["attempts"].as_array().unwrap();
        let models: Vec<&str> = attempts.iter().map(|attempt| attempt["model"].as_str().unwrap()).collect();
        assert!(models.contains(&"first/one") && models.contains(&"second/two"), "{error}");
        assert!(attempts.iter().all(|attempt| attempt["reason"] == "rate_limit"), "{error}");
        assert!(!answer.text().contains("sk-"));
    }
}

// spec: G-2
#[test_case(Step::json(500, r#"{"error":{"message":"The server had an error","type":"server_error"}}"#), 502, 503; "crashed")]
#[test_case(words(9).cut_after(0).into(), 504, 503; "broken off")]
#[test_case(Step::json(429, r#"{"error":{"message":"Rate limit reached"}}"#), 429, 429; "limited")]
#[tokio::test]
async fn where_everybody_rests_waiting_is_what_helps(step: Step, first: u16, then: u16) {
    let world = World::new().await;
    world.first.script("one", [step]);
    let told = world.chat(&question("first/one")).await;
    assert_eq!(told.status, first, "{}", told.text());
    let calls = world.first.log().len();
    let told = world.chat(&question("first/one")).await;
    assert_eq!((told.status, world.first.log().len()), (then, calls), "{}", told.text());
    assert_eq!(told.header("x-failover-attempts"), Some("0"));
    let wait: u64 = told.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

// spec: G-1, G-2
#[tokio::test]
async fn a_name_that_nothing_stands_behind() {
    let world = World::new().await;
    let answer = world.chat(&question("gpt-4o")).await;
    assert_eq!(answer.status, 404, "{}", answer.text());
    assert!(answer.text().contains("default"), "{}", answer.text());
    assert_eq!(world.chat(&question("")).await.status, 400);
    for nobody in ["nobody/model", "second/two@second:nope", "second/two@first:default"] {
        let answer = world.chat(&question(nobody)).await;
        assert_eq!(answer.status, 404, "{}", answer.text());
        assert!(answer.header("retry-after").is_none(), "waiting does not help");
        assert!(!answer.text().contains("second:default"), "whose keys there are is nobody's business");
    }
    assert_eq!(world.chat(&question("second/two@second:default")).await.status, 200);
    let any = World::with(Setup::gateway("routes: { '*': {} }")).await;
    assert_eq!(any.chat(&question("gpt-4o")).await.status, 200);
}

/// Proxies and SDKs send it beside any request.
// spec: G-1
#[tokio::test]
async fn a_header_does_not_change_the_dialect_of_a_path() {
    let world = World::new().await;
    let headers = [("anthropic-version", "2023-06-01")];
    let answer = world.post("/v1/chat/completions", &headers, &question("default")).await;
    assert_eq!(answer.json()["object"], "chat.completion", "{}", answer.text());
}

// spec: G-1
#[tokio::test]
async fn routes_and_models_are_listed() {
    let world = World::with(Setup::gateway("routes: { fast: { chain: ['second/two'] } }")).await;
    let list = world.get("/v1/models", &[]).await.json();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["default", "fast", "first/one", "second/two"]);
    let anthropic = world.get("/v1/models", &[("anthropic-version", "2023-06-01")]).await.json();
    assert_eq!(anthropic["first_id"], "default");
    assert_eq!(world.get("/v1/models/second%2Ftwo", &[]).await.json()["id"], "second/two");
    assert_eq!(world.get("/v1/models/nobody", &[]).await.status, 404);
    assert_eq!(world.chat(&question("fast")).await.header("x-failover-served"), Some("second/two"));
}

// spec: G-6
#[tokio::test]
async fn a_client_that_leaves_closes_the_upstream_and_starts_nothing() {
    let world = World::new().await;
    // In the middle of an answer, and before one.
    for step in [words(60).stall_after(2).into(), Step::silent()] {
        let before = world.first.log().len();
        world.first.script("one", [step]);
        let client = world.connect().await;
        let body =
            json!({ "model": "default", "stream": true, "messages": [{ "role": "user", "content": "x" }] });
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let (mut reader, mut writer) = client.into_split();
        tokio::io::AsyncWriteExt::write_all(&mut writer, head.as_bytes()).await.unwrap();
        until(&world.first, |log| log.len() > before).await;
        if before == 0 {
            let mut some = [0; 64];
            let read = tokio::io::AsyncReadExt::read(&mut reader, &mut some).await.unwrap();
            assert!(read > 0);
        }
        let left = Instant::now();
        let left_at = failover::types::Clock::now(&failover::runner::SystemClock::new());
        drop((reader, writer));
        until(&world.first, |log| log[before].closed_at.is_some()).await;
        let noticed = left.elapsed();
        let log = world.first.log();
        assert!(log[before].abandoned);
        // By the upstream's own clock; a second more for machines on which nobody gets a turn.
        let took = log[before].closed_at.unwrap().since(left_at);
        assert!(took < Duration::from_secs(2) && took <= noticed + Duration::from_secs(1), "{took:?}");
    }
    let profiles = world.admin("profiles").await;
    let first = profiles["profiles"].as_array().unwrap().iter().find(|it| it["provider"] == "first").unwrap();
    assert_eq!((&first["state"], first["errors"].as_u64()), (&json!("usable"), Some(0)), "{first}");
    assert_eq!(world.second.log().len(), 0, "no fallback was begun");
    let text = world.get("/metrics", &[]).await.text();
    assert!(text.contains("outcome=\"client_gone\""), "{text}");
}

// spec: G-1
#[tokio::test]
async fn http2_without_tls_is_spoken_too() {
    let world = World::new().await;
    let io = hyper_util::rt::TokioIo::new(world.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let body = question("default").to_string();
    let request = http::Request::builder()
        .method(Method::POST)
        .uri(format!("http://{}/v1/chat/completions", world.address))
        .body(http_body_util::Full::new(bytes::Bytes::from(body)))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!((response.status(), response.version()), (http::StatusCode::OK, http::Version::HTTP_2));
}

// spec: G-1
#[tokio::test]
async fn a_session_stays_with_its_fallback_and_single_questions_leave_nothing() {
    let world = World::with(Setup::gateway("routes: { alone: { sessions: 'off' } }")).await;
    world.first.script("one", [Step::json(529, r#"{"error":{"type":"overloaded_error","message":"busy"}}"#)]);
    let ask = async |headers: &[(&str, &str)], body| {
        let answer = world.post("/v1/chat/completions", headers, &body).await;
        assert_eq!(answer.status, 200);
    };
    ask(&[], question("default")).await;
    ask(&[("x-failover-session", "s1")], question("alone")).await;
    assert_eq!(world.admin("sessions").await["sessions"], json!([]));
    ask(&[("x-failover-session", "s1")], question("default")).await;
    let mut keyed = question("default");
    keyed["user"] = json!("ada@example.com");
    ask(&[], keyed).await;
    let sessions = world.admin("sessions").await;
    let list = sessions["sessions"].as_array().unwrap();
    assert_eq!(list.len(), 2, "{sessions}");
    let named = list.iter().find(|session| session["session"] == "s1").unwrap();
    assert_eq!(named["answering"], "second/two");
    assert!(!sessions.to_string().contains("ada"), "{sessions}");
    let bad =
        world.post("/v1/chat/completions", &[("x-failover-session", "a b")], &question("default")).await;
    assert_eq!(bad.status, 400);
}

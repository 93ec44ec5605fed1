//! Every dialect of clients in front of every dialect of providers.

use crate::common::{Open, PATIENCE, World, said, until, words};
use failover_testkit::upstream::Step;
use http::Method;
use serde_json::{Value, json};
use test_case::test_matrix;

/// A request in a client's dialect.
fn request(dialect: &str, model: &str, stream: bool) -> (&'static str, Value) {
    match dialect {
        "chat" => (
            "/v1/chat/completions",
            json!({ "model": model, "stream": stream, "messages": [{ "role": "user", "content": "hi" }] }),
        ),
        "messages" => (
            "/v1/messages",
            json!({ "model": model, "stream": stream, "max_tokens": 100,
                    "messages": [{ "role": "user", "content": "hi" }] }),
        ),
        _ => ("/v1/responses", json!({ "model": model, "stream": stream, "input": "hi" })),
    }
}

async fn ask(world: &World, dialect: &str, model: &str, stream: bool) -> Open {
    let (path, body) = request(dialect, model, stream);
    world.send(Method::POST, path, &[], body.to_string().as_bytes()).await
}

/// The text of a whole answer.
fn text(dialect: &str, answer: &Value) -> String {
    let joined = |list: &Value| -> String {
        list.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect()
    };
    match dialect {
        "chat" => answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned(),
        "messages" => joined(&answer["content"]),
        _ => {
            let items = answer["output"].as_array().unwrap();
            items
                .iter()
                .filter(|item| item["type"] == "message")
                .map(|item| joined(&item["content"]))
                .collect()
        }
    }
}

/// What a stream of events says: its text, and how it ended.
fn read(dialect: &str, raw: &str) -> (String, &'static str) {
    let (mut text, mut end) = (String::new(), "nothing");
    for data in raw.lines().filter_map(|line| line.strip_prefix("data: ")) {
        assert_ne!(end, "error", "after the error: {data}");
        if data == "[DONE]" {
            end = "normal";
            continue;
        }
        let event: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
        let kind = event["type"].as_str().unwrap_or_default();
        match (dialect, kind) {
            ("chat", _) if !event["error"].is_null() => end = "error",
            ("chat", _) => {
                text.push_str(event["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
            }
            ("messages", "content_block_delta") => {
                text.push_str(event["delta"]["text"].as_str().unwrap_or_default());
            }
            ("messages", "message_stop") | (_, "response.completed") => end = "normal",
            ("messages" | "responses", "error") | (_, "response.failed") => end = "error",
            (_, "response.output_text.delta") => text.push_str(event["delta"].as_str().unwrap()),
            _ => {}
        }
    }
    (text, end)
}

// spec: G-1, G-5
#[test_matrix(["chat", "messages", "responses"], ["first/one", "third/one", "fourth/one"])]
#[tokio::test]
async fn any_dialect_in_and_any_provider_out(dialect: &str, model: &str) {
    let world = World::new().await;
    world.first.script("one", [words(60).into()]);
    let whole = ask(&world, dialect, model, false).await.whole().await;
    assert_eq!(whole.status, 200, "{}", whole.text());
    assert_eq!(text(dialect, &whole.json()), said(60));
    assert_eq!(whole.header("x-failover-served"), Some(model));
    assert!(whole.json()["model"].as_str().unwrap().ends_with("one"), "{}", whole.text());
    let streamed = ask(&world, dialect, model, true).await;
    assert_eq!(streamed.status, 200);
    let raw = streamed.whole().await.text();
    assert_eq!(read(dialect, &raw), (said(60), "normal"), "{raw}");
}

// spec: G-3
#[test_matrix(["chat", "messages", "responses"], ["first/one", "third/one", "fourth/one"])]
#[tokio::test]
async fn what_breaks_off_ends_as_an_error_in_every_dialect(dialect: &str, model: &str) {
    let world = World::new().await;
    world.first.script("one", [words(60).cut_after(40).into()]);
    let raw = ask(&world, dialect, model, true).await.whole().await.text();
    assert_eq!(read(dialect, &raw), (said(40), "error"), "{raw}");
}

// spec: G-2
#[test_matrix(["chat", "messages", "responses"])]
#[tokio::test]
async fn a_total_failure_is_told_in_the_clients_words(dialect: &str) {
    let world = World::new().await;
    let busy = Step::json(529, r#"{"error":{"type":"overloaded_error","message":"busy"}}"#);
    world.first.script("one", [busy.clone()]);
    world.second.script("two", [busy]);
    let answer = ask(&world, dialect, "default", true).await.whole().await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.header("retry-after").is_some());
    let body = answer.json();
    let kind = if dialect == "messages" { "overloaded_error" } else { "server_error" };
    assert_eq!(body["error"]["type"], kind, "{body}");
    assert!(body["error"]["failover"]["attempts"].as_array().unwrap().len() >= 2, "{body}");
}

// spec: G-6
#[tokio::test]
async fn a_client_of_http2_that_leaves_closes_the_upstream() {
    let world = World::new().await;
    world.first.script("one", [words(60).stall_after(2).into()]);
    let io = hyper_util::rt::TokioIo::new(world.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let (path, body) = request("chat", "default", true);
    let request = http::Request::post(format!("http://{}{path}", world.address))
        .body(http_body_util::Full::new(bytes::Bytes::from(body.to_string())))
        .unwrap();
    let response = tokio::time::timeout(PATIENCE, sender.send_request(request)).await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    drop(response);
    until(&world.first, |log| log[0].closed_at.is_some()).await;
    assert!(world.first.log()[0].abandoned);
    assert_eq!(world.second.log().len(), 0);
}

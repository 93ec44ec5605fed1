//! Clients that send too much, too slowly, or nothing that makes sense.

use crate::common::{PATIENCE, Setup, World, question, said, words};
use failover_testkit::upstream::Step;
use futures_util::future::join_all;
use std::time::Duration;
use test_case::test_case;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Everything until the server closes.
async fn read_to_end(client: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let read = tokio::time::timeout(PATIENCE, client.read_to_end(&mut all)).await.expect("never closed");
    // A reset is a way of closing too.
    let _ = read;
    String::from_utf8_lossy(&all).into_owned()
}

// spec: G-7
#[tokio::test]
async fn a_long_body_is_refused_promised_or_not() {
    let world = World::with(Setup::gateway("limits: { bodyBytes: 2000 }")).await;
    let mut long = question("default");
    long["user"] = "x".repeat(3000).into();
    let answer = world.chat(&long).await;
    assert_eq!(answer.status, 413, "{}", answer.text());
    let mut client = world.connect().await;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..30 {
        let chunk = format!("64\r\n{}\r\n", "x".repeat(100));
        if client.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    assert!(read_to_end(&mut client).await.starts_with("HTTP/1.1 413"));
    assert_eq!(world.first.log().len(), 0);
}

// spec: G-7
#[tokio::test]
async fn a_head_is_as_long_as_the_config_allows_and_no_longer() {
    let world = World::with(Setup::gateway("limits: { headerBytes: 20000 }")).await;
    for (length, status) in [(19_000, 200), (20_001, 431), (35_000, 431)] {
        let long = "x".repeat(length);
        let answer = world.post("/v1/chat/completions", &[("x-long", &long)], &question("default")).await;
        assert_eq!(answer.status, status, "{length}: {}", answer.text());
    }
    assert_eq!(world.first.log().len(), 1);
}

// spec: G-7
#[test_case(""; "nothing at all")]
#[test_case("P"; "the beginning of either protocol")]
#[test_case("POST /v1/chat/completions HTTP/1.1\r\nhost: loc"; "half a head")]
#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for(begun: &str) {
    let world = World::with(Setup::gateway("limits: { headerMs: 200 }")).await;
    let mut client = world.connect().await;
    client.write_all(begun.as_bytes()).await.unwrap();
    read_to_end(&mut client).await;
    assert_eq!(world.chat(&question("default")).await.status, 200, "others are served");
}

// spec: G-7
#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let world = World::with(Setup::gateway("limits: { bodyMs: 200 }")).await;
    let mut client = world.connect().await;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{";
    client.write_all(head.as_bytes()).await.unwrap();
    assert!(read_to_end(&mut client).await.starts_with("HTTP/1.1 408"));
}

// spec: G-7
#[tokio::test]
async fn a_client_that_takes_nothing_is_let_go() {
    let world = World::with(Setup::gateway("limits: { writeMs: 300 }")).await;
    let big = failover_testkit::upstream::Answer::text((0..400).map(|_| "x".repeat(50_000)));
    world.first.script("one", [big.into()]);
    let client = world.connect().await;
    let body = serde_json::json!({ "model": "default", "stream": true,
                                   "messages": [{ "role": "user", "content": "x" }] });
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (_reader, mut writer) = client.into_split();
    writer.write_all(head.as_bytes()).await.unwrap();
    crate::common::until(&world.first, |log| log.first().is_some_and(|it| it.closed_at.is_some())).await;
}

// spec: G-7
#[tokio::test]
async fn a_slow_reader_slows_the_provider_and_not_the_memory() {
    let world = World::new().await;
    let big = failover_testkit::upstream::Answer::text((0..400).map(|_| "x".repeat(20_000)));
    world.first.script("one", [big.into()]);
    let mut open = world.open_stream("default").await;
    open.next().await.unwrap();
    // Eight megabytes do not fit into the sockets in between: the provider waits.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(world.first.log()[0].closed_at.is_none());
    let whole = open.whole().await;
    assert!(whole.body.len() > 7_900_000, "{}", whole.body.len());
}

// spec: G-7
#[tokio::test]
async fn connections_beyond_the_bound_are_told_to_come_back() {
    let world = World::with(Setup::gateway("limits: { connections: 2 }")).await;
    world.first.script("one", [words(10).stall_after(2).into()]);
    let (mut one, mut two) = (world.open_stream("default").await, world.open_stream("default").await);
    one.until("w1").await;
    two.until("w1").await;
    let mut third = world.connect().await;
    assert!(read_to_end(&mut third).await.starts_with("HTTP/1.1 503"));
    one.leave();
    let served = async {
        loop {
            let mut again = world.connect().await;
            let _ = again
                .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                .await;
            if read_to_end(&mut again).await.starts_with("HTTP/1.1 200") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, served).await.unwrap();
}

// spec: G-7
#[test_case(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"; "a handshake of TLS")]
#[test_case(b"\x00\x00\x00\x00\x00\x00"; "zeros")]
#[test_case(b"GET / HTTP/9.9\r\n\r\n"; "no such version")]
#[test_case(b"PRI * HTTP/2.0\r\n\r\nnonsense follows here and goes on"; "half of http2")]
#[test_case(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"; "two lengths")]
#[tokio::test]
async fn garbage_hurts_nobody(garbage: &[u8]) {
    let world = World::with(Setup::gateway("limits: { headerMs: 500, bodyMs: 500 }")).await;
    let mut client = world.connect().await;
    client.write_all(garbage).await.unwrap();
    read_to_end(&mut client).await;
    assert_eq!(world.chat(&question("default")).await.status, 200);
}

// spec: G-7
#[test_case("{"; "broken JSON")]
#[test_case("[]"; "no object")]
#[test_case(r#"{"model":"default"}"#; "no messages")]
#[test_case(r#"{"model":7,"messages":[]}"#; "a number for a name")]
#[test_case(""; "nothing")]
#[tokio::test]
async fn bodies_that_make_no_sense_are_the_clients_mistake(body: &str) {
    let world = World::new().await;
    let open = world.send(http::Method::POST, "/v1/chat/completions", &[], body.as_bytes()).await;
    let answer = open.whole().await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    assert_eq!(world.first.log().len(), 0);
    let long_name = world.chat(&question(&"x".repeat(5000))).await;
    assert_eq!(long_name.status, 404);
    assert!(long_name.body.len() < 1000, "{}", long_name.text());
}

#[tokio::test]
async fn wrong_paths_and_methods() {
    let world = World::new().await;
    assert_eq!(world.get("/v1/chat/completions", &[]).await.status, 405);
    assert_eq!(world.get("/nowhere", &[]).await.status, 404);
    assert_eq!(world.post("/healthz", &[], &question("x")).await.status, 405);
}

// spec: G-7
#[tokio::test]
async fn hundreds_of_streams_at_once_come_whole_though_every_primary_refuses() {
    const STREAMS: usize = 300;
    let world = World::new().await;
    world.first.script("one", [Step::json(429, r#"{"error":{"message":"Rate limit reached"}}"#)]);
    world.second.script("two", [words(20).drip(Duration::from_millis(20)).into()]);
    let all = join_all((0..STREAMS).map(|_| world.stream("default"))).await;
    for streamed in &all {
        assert!(streamed.is_complete() && streamed.text == said(20), "{}", streamed.raw);
    }
    assert_eq!(world.second.log().len(), STREAMS);
}

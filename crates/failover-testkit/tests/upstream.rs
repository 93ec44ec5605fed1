//! The upstream misbehaves exactly as its script says.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, FrameKind, On, Port, Step, Upstream, key_hash};
use failover_types::Timestamp;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn upstream() -> (Arc<ManualClock>, Upstream) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000)));
    let upstream = Upstream::start(Arc::<ManualClock>::clone(&clock)).await.unwrap();
    (clock, upstream)
}

async fn send(upstream: &Upstream, model: &str, key: &str, stream: bool) -> TcpStream {
    let body = format!(r#"{{"model":"{model}","stream":{stream}}}"#);
    let mut connection = TcpStream::connect(upstream.address()).await.unwrap();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {key}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    connection
}

/// Everything until the upstream closes; the connection is half closed first, so that kept-alive ones end too.
async fn read(mut connection: TcpStream) -> io::Result<String> {
    let _ = connection.shutdown().await;
    let mut text = String::new();
    connection.read_to_string(&mut text).await?;
    Ok(text)
}

async fn ask(upstream: &Upstream, model: &str, key: &str) -> String {
    read(send(upstream, model, key, true).await).await.unwrap()
}

// spec: P-6
#[tokio::test]
async fn scripts_are_chosen_by_model_and_key_and_the_last_step_repeats() {
    let (_, upstream) = upstream().await;
    upstream.script("m", [Step::json(429, "{}"), Step::text("back")]);
    upstream.script(On::model("m").with_key("sk-2"), [Step::json(402, "{}")]);
    assert!(ask(&upstream, "m", "sk-1").await.starts_with("HTTP/1.1 429"));
    assert!(ask(&upstream, "m", "sk-2").await.starts_with("HTTP/1.1 402"));
    assert!(ask(&upstream, "m", "sk-1").await.contains("back"));
    assert!(ask(&upstream, "m", "sk-1").await.contains("back"));
    assert!(ask(&upstream, "other", "sk-1").await.contains("this is other"));
    let log = upstream.log();
    assert_eq!(log.len(), 5);
    let second = log.get(1).unwrap();
    assert_eq!(second.key_hash, Some(key_hash("sk-2")));
    assert!(!format!("{second:?}").contains("sk-2"), "the log holds no key");
}

// spec: P-6
#[tokio::test]
async fn a_cut_has_no_terminating_chunk_and_a_reset_is_a_reset() {
    let (_, upstream) = upstream().await;
    upstream.script("whole", [Answer::text(["one", "two"]).into()]);
    upstream.script("cut", [Answer::text(["one", "two"]).cut_after(1).into()]);
    upstream.script("unfinished", [Answer::text(["one"]).without(FrameKind::Finish).into()]);
    upstream.script("reset", [Step::reset()]);
    let whole = ask(&upstream, "whole", "k").await;
    assert!(whole.contains("two") && whole.contains("[DONE]") && whole.ends_with("0\r\n\r\n"));
    let cut = ask(&upstream, "cut", "k").await;
    assert!(cut.contains("one") && !cut.contains("two") && !cut.ends_with("0\r\n\r\n"));
    let unfinished = ask(&upstream, "unfinished", "k").await;
    assert!(unfinished.contains("[DONE]") && !unfinished.contains("\"finish_reason\":\"stop\""));
    let reset = read(send(&upstream, "reset", "k", true).await).await;
    assert_eq!(reset.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

// spec: P-6
#[tokio::test]
async fn delays_follow_the_clock_and_leaving_is_logged() {
    let (clock, upstream) = upstream().await;
    upstream.script("late", [Answer::text(["x"]).after(Duration::from_secs(9)).into()]);
    upstream.script("stall", [Answer::text(["x"]).stall_after(1).into()]);
    let late = send(&upstream, "late", "k", false).await;
    clock.until_waiting(1).await;
    clock.advance(Duration::from_secs(9));
    upstream.until(|log| log.iter().any(|attempt| attempt.answered_at.is_some())).await;
    assert!(read(late).await.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(upstream.log().first().unwrap().answered_at, Some(Timestamp::from_millis(10_000)));

    let stalled = send(&upstream, "stall", "k", true).await;
    upstream.until(|log| log.iter().any(|attempt| attempt.model == "stall")).await;
    drop(stalled);
    upstream.until(|log| log.iter().any(|attempt| attempt.abandoned)).await;
    assert_eq!(upstream.log().last().unwrap().closed_at, Some(Timestamp::from_millis(10_000)));
}

// spec: P-6
#[tokio::test]
async fn quiet_ports_refuse_or_say_nothing() {
    let refusing = Port::refusing().unwrap();
    let error = TcpStream::connect(refusing.address()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    let silent = Port::silent().unwrap();
    assert!(TcpStream::connect(silent.address()).await.is_ok());
}

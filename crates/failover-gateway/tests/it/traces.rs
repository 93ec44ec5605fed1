//! Traces and metrics, as a collector gets them.

use crate::common::{PATIENCE, Setup, World, question};
use failover::types::Timestamp;
use failover_testkit::ManualClock;
use failover_testkit::upstream::Step;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Takes the next export to `path` and answers it well, and all that come before it.
async fn export(listener: &TcpListener, path: &str) -> Value {
    loop {
        let (client, _) = tokio::time::timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        if let Some(body) = read(client, path).await {
            return body;
        }
    }
}

/// Answers one export; gives it if it is one to `path`.
async fn read(mut client: TcpStream, path: &str) -> Option<Value> {
    let mut read = Vec::new();
    let (head, body) = loop {
        let mut chunk = [0; 8192];
        let more = tokio::time::timeout(PATIENCE, client.read(&mut chunk)).await.unwrap().unwrap();
        read.extend_from_slice(&chunk[..more]);
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap() {
                break (head.to_owned(), serde_json::from_str(body).unwrap());
            }
        }
        assert!(more > 0, "{text}");
    };
    client.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    head.starts_with(&format!("POST {path} ")).then_some(body)
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let found = span["attributes"].as_array().unwrap().iter().find(|it| it["key"] == key);
    found.map_or(&Value::Null, |it| it["value"].as_object().unwrap().values().next().unwrap())
}

// spec: G-8
#[tokio::test]
async fn a_request_and_its_attempts_are_one_trace_by_the_conventions() {
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("telemetry: {{ otlpEndpoint: 'http://{}' }}", collector.local_addr().unwrap());
    let world = World::with(Setup::gateway(&endpoint)).await;
    world.first.script("one", [Step::json(529, r#"{"error":{"type":"overloaded_error","message":"busy"}}"#)]);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let headers = [("traceparent", parent.as_str()), ("x-failover-session", "s1")];
    assert_eq!(world.post("/v1/chat/completions", &headers, &question("default")).await.status, 200);
    let sent = export(&collector, "/v1/traces").await;
    let resource = &sent["resourceSpans"][0];
    assert_eq!(attribute(&resource["resource"], "service.name"), "failover");
    let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
    let request = &spans[0];
    assert_eq!((&request["traceId"], &request["parentSpanId"]), (&trace.into(), &"b7ad6b7169203331".into()));
    assert_eq!(request["name"], "chat default");
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "default"),
        ("gen_ai.provider.name", "second"),
        ("gen_ai.response.model", "two"),
        ("gen_ai.usage.input_tokens", "11"),
        ("gen_ai.usage.output_tokens", "7"),
        ("gen_ai.conversation.id", "s1"),
        ("failover.reason", "overloaded"),
    ] {
        assert_eq!(attribute(request, key), value, "{key}");
    }
    let failed = spans.iter().find(|span| attribute(span, "error.type") == "overloaded").unwrap();
    assert_eq!((&failed["parentSpanId"], &failed["status"]["code"]), (&request["spanId"], &2.into()));
    assert!(spans.iter().all(|span| span["traceId"] == trace));
    assert!(!sent.to_string().contains("sk-fixture"));
}

/// The points of a histogram, by their attributes.
fn points<'a>(sent: &'a Value, name: &str) -> Vec<&'a Value> {
    let metrics = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric =
        metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name} in {sent}"));
    assert_eq!(metric["histogram"]["aggregationTemporality"], 2);
    metric["histogram"]["dataPoints"].as_array().unwrap().iter().collect()
}

// spec: G-8
#[tokio::test]
async fn calls_requests_and_tokens_are_histograms_by_the_conventions() {
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("telemetry: {{ otlpEndpoint: 'http://{}' }}", collector.local_addr().unwrap());
    let mut world = World::with(Setup::gateway(&endpoint)).await;
    world.first.script("one", [Step::json(529, r#"{"error":{"type":"overloaded_error","message":"busy"}}"#)]);
    // A trace that its client does not want kept is measured all the same.
    let unsampled = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")];
    for _ in 0..2 {
        assert_eq!(world.post("/v1/chat/completions", &unsampled, &question("default")).await.status, 200);
    }
    assert_eq!(world.post("/v1/chat/completions", &unsampled, &question("no/such")).await.status, 404);
    let stopped = world.stop();
    let sent = export(&collector, "/v1/metrics").await;
    stopped.await.unwrap();

    let calls = points(&sent, "gen_ai.client.operation.duration");
    let failed = calls.iter().find(|point| attribute(point, "error.type") == "overloaded").unwrap();
    assert_eq!(attribute(failed, "gen_ai.request.model"), "one");
    let served = calls.iter().find(|point| attribute(point, "error.type").is_null()).unwrap();
    assert_eq!(attribute(served, "gen_ai.provider.name"), "second");
    assert_eq!(served["count"], "2");
    let classes: Vec<u64> = served["bucketCounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(classes.len(), served["explicitBounds"].as_array().unwrap().len() + 1);
    assert_eq!(classes.iter().sum::<u64>(), 2);

    let tokens = points(&sent, "gen_ai.client.token.usage");
    let of = |kind| {
        tokens.iter().find(|point| attribute(point, "gen_ai.token.type") == kind).unwrap()["sum"].clone()
    };
    assert_eq!((of("input"), of("output")), (22.0.into(), 14.0.into()));

    let requests = points(&sent, "gen_ai.server.request.duration");
    let answered = requests.iter().find(|point| attribute(point, "failover.outcome") == "answered").unwrap();
    assert_eq!(
        (attribute(answered, "gen_ai.request.model"), &answered["count"]),
        (&"default".into(), &"2".into())
    );
    assert!(requests.iter().all(|point| attribute(point, "gen_ai.request.model") != "no/such"));
    assert!(!sent.to_string().contains("sk-fixture"));
}

// spec: G-8
#[tokio::test]
async fn metrics_leave_on_their_own_where_something_changed() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("telemetry: {{ otlpEndpoint: 'http://{}' }}", collector.local_addr().unwrap());
    let setup = Setup { clock: Arc::<ManualClock>::clone(&clock), ..Setup::gateway(&endpoint) };
    let world = World::with(setup).await;
    assert_eq!(world.chat(&question("default")).await.status, 200);
    // The account of a request is closed a moment after its client has all of it, so time goes on until somebody calls.
    let sent = loop {
        let called = tokio::time::timeout(PATIENCE, async {
            loop {
                tokio::select! {
                    called = collector.accept() => break called.unwrap().0,
                    () = tokio::task::yield_now() => clock.advance(Duration::from_secs(1)),
                }
            }
        });
        if let Some(sent) = read(called.await.unwrap(), "/v1/metrics").await {
            break sent;
        }
    };
    assert_eq!(points(&sent, "gen_ai.server.request.duration")[0]["count"], "1");
}

//! Traces, as a collector gets them.

use crate::common::{PATIENCE, Setup, World, question};
use failover_testkit::upstream::Step;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Takes one export and answers well.
async fn export(listener: &TcpListener) -> (String, Value) {
    let (mut client, _) = tokio::time::timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let mut read = Vec::new();
    let body = loop {
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
    client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    body
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
    let (head, sent) = export(&collector).await;
    assert!(head.starts_with("POST /v1/traces "), "{head}");
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

//! What is passed on as it came, in both directions; and what is not, because it belongs elsewhere.

use crate::common::{Setup, Whole, World, words};
use failover_testkit::upstream::{Answer, FrameKind, Piece, Respond, Step};
use http::Method;
use serde_json::{Value, json};
use test_case::test_case;

const BUSY: &str = r#"{"error":{"type":"overloaded_error","message":"busy"}}"#;
const ROUTES: &str = "routes: {
    messages: { chain: ['third/one', 'fifth/two'] },
    responses: { chain: ['fourth/one', 'second/two', 'sixth/two'] },
    elsewhere: { chain: ['first/one', 'sixth/two'] },
}";

fn setup() -> Setup {
    Setup { twice: true, ..Setup::gateway(ROUTES) }
}

async fn post(world: &World, path: &str, headers: &[(&str, &str)], body: &str) -> Whole {
    world.send(Method::POST, path, headers, body.as_bytes()).await.whole().await
}

const CHAT: &str = r#"{"model":"first/one","n":1,"seed":7,"frequency_penalty":0.50,"logit_bias":{"1":-1},
 "parallel_tool_calls":false,"top_k":3,"user":"u","messages":[{"role":"user","name":"ada","content":"hi"}]}"#;
const MESSAGES: &str = r#"{"model":"third/one","max_tokens":9,"top_k":3,"metadata":{"user_id":"u"},
 "system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],
 "messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[
  {"type":"thinking","thinking":"hm","signature":"EqQB"},{"type":"text","text":"yes"}]},{"role":"user","content":"go on"}]}"#;
const RESPONSES: &str = r#"{"model":"fourth/one","previous_response_id":"resp_1","truncation":"auto","max_tool_calls":3,
 "include":["reasoning.encrypted_content"],"store":true,"input":[{"type":"reasoning","id":"rs_1","summary":[],
 "encrypted_content":"gAAA"},{"role":"user","content":"go on"}]}"#;

// spec: G-1, P-5
#[test_case("/v1/chat/completions", CHAT; "chat")]
#[test_case("/v1/messages", MESSAGES; "messages")]
#[test_case("/v1/responses", RESPONSES; "responses")]
#[tokio::test]
async fn who_speaks_the_dialect_is_sent_what_the_client_wrote_whatever_it_is_called(path: &str, body: &str) {
    let world = World::new().await;
    let answer = post(&world, path, &[], body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (from, _) = body.split_once(',').unwrap();
    let sent = world.first.log()[0].body.clone();
    assert_eq!(sent, body.replacen(from, r#"{"model":"one""#, 1));
    assert_eq!(answer.header("x-failover-lost"), None);
}

// spec: G-1, P-5
#[tokio::test]
async fn who_does_not_is_not_sent_its_parameters_and_the_loss_is_told() {
    let world = World::new().await;
    let body = json!({ "model": "first/one", "truncation": "auto", "max_tool_calls": 3, "store": false,
        "parallel_tool_calls": false, "include": ["reasoning.encrypted_content"], "reasoning": { "effort": "low" },
        "input": "x" });
    for stream in [false, true] {
        let mut body = body.clone();
        body["stream"] = json!(stream);
        let answer = world.post("/v1/responses", &[], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let lost: Vec<&str> = answer.header("x-failover-lost").unwrap().split(", ").collect();
        assert_eq!(lost, ["include", "max_tool_calls", "truncation"]);
    }
    let sent: Value = serde_json::from_str(&world.first.log()[0].body).unwrap();
    for name in ["truncation", "max_tool_calls", "store", "include", "reasoning"] {
        assert_eq!(sent.get(name), None, "{sent}");
    }
    assert_eq!((&sent["parallel_tool_calls"], &sent["reasoning_effort"]), (&json!(false), &json!("low")));
}

const PDF: &str = "data:application/pdf;base64,eA==";

/// The same document and question, in each dialect.
fn asking(dialect: &str, model: &str) -> (&'static str, Value) {
    match dialect {
        "chat" => (
            "/v1/chat/completions",
            json!({ "model": model, "messages": [{ "role": "user", "content": [
                { "type": "file", "file": { "filename": "a.pdf", "file_data": PDF } }, { "type": "text", "text": "hi" }] }] }),
        ),
        "messages" => (
            "/v1/messages",
            json!({ "model": model, "max_tokens": 9, "messages": [{ "role": "user", "content": [
                { "type": "document", "title": "a.pdf", "cache_control": { "type": "ephemeral" },
                  "source": { "type": "base64", "media_type": "application/pdf", "data": "eA==" } },
                { "type": "text", "text": "hi" }] }] }),
        ),
        _ => (
            "/v1/responses",
            json!({ "model": model, "input": [{ "role": "user", "content": [
                { "type": "input_file", "filename": "a.pdf", "file_data": PDF },
                { "type": "input_text", "text": "hi" }] }] }),
        ),
    }
}

// spec: P-5, G-1
#[test_case("chat"; "chat")]
#[test_case("messages"; "messages")]
#[test_case("responses"; "responses")]
#[tokio::test]
async fn a_document_is_shown_to_everybody_and_what_is_said_about_it_told(dialect: &str) {
    let world = World::new().await;
    let chat = json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": PDF } });
    let messages = json!({ "type": "document", "title": "a.pdf",
        "source": { "type": "base64", "media_type": "application/pdf", "data": "eA==" } });
    let responses = json!({ "type": "input_file", "filename": "a.pdf", "file_data": PDF });
    for (model, own, list, block) in [
        ("first/one", "chat", "messages", chat),
        ("third/one", "messages", "messages", messages),
        ("fourth/one", "responses", "input", responses),
    ] {
        let (path, body) = asking(dialect, model);
        let answer = world.post(path, &[], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let sent: Value = serde_json::from_str(&world.first.log().pop().unwrap().body).unwrap();
        if own == dialect {
            assert_eq!(sent[list], body[list]);
            assert_eq!(answer.header("x-failover-lost"), None);
        } else {
            assert_eq!(sent[list][0]["content"][0], block, "{sent}");
            let lost = (dialect == "messages").then_some("messages[].content[].cache_control");
            assert_eq!(answer.header("x-failover-lost"), lost);
        }
    }
}

// spec: H-11, G-2
#[tokio::test]
async fn who_cannot_hear_is_not_asked() {
    let world = World::with(setup()).await;
    let heard = json!({ "type": "input_audio", "input_audio": { "data": "eA==", "format": "wav" } });
    let mut body = json!({ "model": "messages", "messages": [{ "role": "user", "content": [heard] }] });
    let refused = world.post("/v1/chat/completions", &[], &body).await;
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].as_str()),
        (400, Some("unfit")),
        "{}",
        refused.text()
    );
    assert!(refused.text().contains("modality") && world.first.log().is_empty(), "{}", refused.text());
    body["model"] = json!("responses");
    let answer = world.post("/v1/chat/completions", &[], &body).await;
    assert_eq!(answer.header("x-failover-served"), Some("second/two"), "{}", answer.text());
    assert!(world.first.log().is_empty());
}

// spec: P-5
#[tokio::test]
async fn what_is_lost_is_told_within_bounds() {
    let world = World::new().await;
    let mut body = json!({ "model": "third/one", "messages": [{ "role": "user", "content": "x" }] });
    for at in 0..40 {
        body[format!("field,{at}é\u{1F980}{}", "x".repeat(500))] = json!(1);
    }
    let answer = world.chat(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let lost = answer.header("x-failover-lost").unwrap();
    assert!(lost.len() < 1_000 && lost.ends_with("+24"), "{lost}");
}

// spec: P-5
#[test_case(json!({ "previous_response_id": "resp_1", "input": "x" }); "an answer")]
#[test_case(json!({ "conversation": "conv_1", "input": "x" }); "a conversation")]
#[test_case(json!({ "prompt": { "id": "pmpt_1" }, "input": "x" }); "a template")]
#[test_case(json!({ "input": [{ "type": "item_reference", "id": "msg_1" }, { "role": "user", "content": "x" }] }); "an item")]
#[test_case(json!({ "input": [{ "role": "user", "content": [{ "type": "input_file", "file_id": "f" }] }] }); "a file")]
#[tokio::test]
async fn what_a_provider_stores_is_not_asked_of_others(mut body: Value) {
    let world = World::with(setup()).await;
    let mut ask = async |model: &str| {
        body["model"] = json!(model);
        world.post("/v1/responses", &[], &body).await
    };
    let answer = ask("elsewhere").await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.json()["error"]["code"], "stored_elsewhere");
    assert_eq!(world.first.log().len() + world.second.log().len(), 0, "nobody answers without it");
    assert_eq!(ask("responses").await.status, 200);
    world.first.script("one", [Step::json(529, BUSY)]);
    let answer = ask("responses").await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(world.second.log().len(), 0);
    let attempts = &answer.json()["error"]["failover"]["attempts"];
    assert_eq!(attempts[1], json!({ "model": "second/two", "reason": "state" }), "{attempts}");
}

#[tokio::test]
async fn what_would_have_to_be_fetched_from_its_provider_is_refused() {
    let world = World::new().await;
    let body = json!({ "model": "fourth/one", "background": true, "input": "x" });
    let answer = world.post("/v1/responses", &[], &body).await;
    assert_eq!((answer.status, &answer.json()["error"]["param"]), (400, &json!("background")));
    assert_eq!(world.first.log().len(), 0);
}

/// What follows on an answer: the same request, with it as the history.
fn next_turn(answer: &Value) -> Value {
    json!({ "model": "messages", "max_tokens": 9, "messages": [{ "role": "user", "content": "hi" },
            { "role": "assistant", "content": answer["content"] }, { "role": "user", "content": "go on" }] })
}

// spec: P-5
#[tokio::test]
async fn a_signature_goes_back_to_its_origin_and_to_nobody_else() {
    let world = World::with(setup()).await;
    let thought = || Answer::new(vec![Piece::Reasoning("hm".into()), Piece::Text("yes".into())]);
    world.first.script("one", [thought().into(), Step::json(529, BUSY), thought().into()]);
    world.second.script("two", [thought().into()]);
    let session = [("x-failover-session", "s")];
    let first =
        json!({ "model": "messages", "max_tokens": 9, "messages": [{ "role": "user", "content": "hi" }] });
    let by_first = world.post("/v1/messages", &session, &first).await.json();
    assert_eq!(by_first["content"][0]["signature"], "c2lnbmVk", "as it came");
    // The next model knows nothing of it, and what it signs itself says whose it is.
    let answer = world.post("/v1/messages", &session, &next_turn(&by_first)).await;
    assert_eq!(answer.header("x-failover-served"), Some("fifth/two"), "{}", answer.text());
    assert_eq!(answer.header("x-failover-lost"), Some("signature"));
    assert!(!world.second.log()[0].body.contains("c2lnbmVk"), "{}", world.second.log()[0].body);
    let by_second = answer.json();
    assert!(by_second["content"][0]["signature"].as_str().unwrap().starts_with("failover:"), "{by_second}");
    // It gets that back, bare.
    let answer = world.post("/v1/messages", &session, &next_turn(&by_second)).await;
    assert_eq!(answer.header("x-failover-served"), Some("fifth/two"), "{}", answer.text());
    assert!(
        world.second.log()[1].body.contains(r#""signature":"c2lnbmVk""#),
        "{}",
        world.second.log()[1].body
    );
    // The first does not.
    let mut direct = next_turn(&by_second);
    direct["model"] = json!("third/three");
    let answer = world.post("/v1/messages", &[], &direct).await;
    assert_eq!((answer.status, answer.header("x-failover-lost")), (200, Some("signature")));
    let sent = world.first.log().pop().unwrap().body;
    assert!(!sent.contains("signature") && sent.contains("yes"), "{sent}");
}

// spec: P-5, R-5
#[tokio::test]
async fn a_history_that_is_refused_goes_without_its_proofs() {
    let world = World::new().await;
    let refused = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#;
    world.first.script("one", [Step::json(400, refused), Step::text("yes")]);
    let answer = post(&world, "/v1/messages", &[], MESSAGES).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent: Vec<bool> = world.first.log().iter().map(|attempt| attempt.body.contains("EqQB")).collect();
    assert_eq!(sent, [true, false]);
    assert_eq!(answer.header("x-failover-lost"), Some("signature, system[].cache_control"));
}

// spec: R-5
#[tokio::test]
async fn what_is_wrong_with_or_without_its_proofs_is_asked_once() {
    let world = World::new().await;
    let refused = r#"{"type":"error","error":{"type":"invalid_request_error","message":"temperature: Input should be less than or equal to 1"}}"#;
    world.first.script("one", [Step::json(400, refused), Step::text("yes")]);
    let answer = post(&world, "/v1/messages", &[], MESSAGES).await;
    assert_eq!((answer.status, world.first.count("one")), (400, 1), "{}", answer.text());
}

// spec: G-1
#[tokio::test]
async fn headers_of_the_dialect_go_along_and_no_others() {
    let world = World::with(setup()).await;
    let headers = [
        ("anthropic-beta", "context-1m-2025-08-07, fine-grained-tool-streaming-2025-05-14"),
        ("anthropic-version", "2024-01-01"),
        ("openai-beta", "responses=experimental"),
        ("openai-organization", "org-of-the-client"),
        ("x-api-key", "sk-of-the-client"),
        ("cookie", "a=b"),
    ];
    world.post("/v1/messages", &headers, &serde_json::from_str(MESSAGES).unwrap()).await;
    let sent = world.first.log().pop().unwrap();
    assert_eq!(sent.header("anthropic-version"), Some("2024-01-01"));
    let features = "context-1m-2025-08-07,fine-grained-tool-streaming-2025-05-14";
    assert_eq!(sent.header("anthropic-beta"), Some(features));
    for name in ["openai-beta", "openai-organization", "cookie"] {
        assert_eq!(sent.header(name), None);
    }
    world.post("/v1/responses", &headers, &json!({ "model": "fourth/one", "input": "x" })).await;
    let sent = world.first.log().pop().unwrap();
    assert_eq!(sent.header("openai-beta"), Some("responses=experimental"));
    assert_eq!((sent.header("anthropic-beta"), sent.header("openai-organization")), (None, None));
    // Another dialect has no use for them.
    let mut crossing: Value = serde_json::from_str(MESSAGES).unwrap();
    crossing["model"] = json!("first/one");
    world.post("/v1/messages", &headers, &crossing).await;
    assert_eq!(world.first.log().pop().unwrap().header("anthropic-beta"), None);
}

// spec: G-3, P-3
#[test_case("/v1/chat/completions", "first/one", "[DONE]"; "chat")]
#[test_case("/v1/messages", "third/one", "message_stop"; "messages")]
#[test_case("/v1/responses", "fourth/one", "[DONE]"; "responses")]
#[tokio::test]
async fn a_sentinel_without_a_finish_marker_is_no_end(path: &str, model: &str, sentinel: &str) {
    let world = World::new().await;
    let mut answer = words(3).without(FrameKind::Finish);
    if model == "fourth/one" {
        answer = answer.without(FrameKind::Done).bytes_after(3, "data: [DONE]\n\n");
    }
    world.first.script("one", [answer.into()]);
    let body = json!({ "model": model, "stream": true, "max_tokens": 9, "input": "x",
                       "messages": [{ "role": "user", "content": "x" }] });
    let raw = world.post(path, &[], &body).await.text();
    assert!(raw.contains("w2 ") && !raw.contains(sentinel), "{raw}");
    let last = raw.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(!last["error"].is_null() || last["type"] == "response.failed", "{last}");
}

// spec: G-3
#[tokio::test]
async fn a_response_that_breaks_off_ends_as_the_same_response() {
    let world = World::new().await;
    let event = |kind: &str, number: u32, more: &str| {
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number}{more}}}\n\n")
    };
    let response = r#","response":{"id":"resp_of_theirs","model":"one-2025","status":"in_progress"}"#;
    let stream = [
        event("response.created", 0, response),
        event("response.in_progress", 1, response),
        event("response.output_text.delta", 2, r#","output_index":0,"item_id":"m","delta":"hi"#)
            .replace("hi}", "hi\"}"),
        event("response.output_item.done", 7, r#","output_index":0,"item":{"type":"message","id":"m"}"#),
        ": ping\n\n".to_owned(),
    ];
    world.first.script("one", [Step::events(stream.concat())]);
    let body = json!({ "model": "fourth/one", "stream": true, "input": "x" });
    let raw = world.post("/v1/responses", &[], &body).await.text();
    let events: Vec<Value> = raw
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {raw}")))
        .collect();
    let kinds: Vec<(&str, u64)> = events
        .iter()
        .map(|event| (event["type"].as_str().unwrap(), event["sequence_number"].as_u64().unwrap()))
        .collect();
    assert_eq!(kinds[3..], [("response.output_item.done", 7), ("response.failed", 8)], "{raw}");
    assert_eq!(kinds.len(), 5, "{raw}");
    let ids: Vec<&Value> =
        events.iter().map(|event| &event["response"]["id"]).filter(|id| !id.is_null()).collect();
    assert!(ids.iter().all(|id| **id == "resp_of_theirs"), "{raw}");
}

// spec: P-3
#[tokio::test]
async fn frames_that_no_client_can_read_are_not_passed_on() {
    let world = World::new().await;
    let mut malformed = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n".to_vec();
    malformed.extend_from_slice(b"event: ping\n\ndata:\n\ndata: []\n\ndata: 7\n\n");
    world.first.script("one", [words(3).bytes_after(1, malformed).into()]);
    let streamed = world.stream("first/one").await;
    assert!(streamed.is_complete() && !streamed.raw.contains("ping"), "{}", streamed.raw);
    assert_eq!(streamed.text, "w0 w1 w2 ");
}

// spec: C-9, G-2
#[tokio::test]
async fn an_answer_that_is_compressed_unasked_is_the_providers_fault_and_never_quoted() {
    let world = World::new().await;
    world.first.script("one", [Step::cut_gzip()]);
    let answer = world.chat(&crate::common::question("first/one")).await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert_eq!(answer.json()["error"]["failover"]["attempts"][0]["reason"], "server_error");
    let decisions = world.admin("decisions").await.to_string();
    assert!(decisions.contains("compressed (gzip)"), "{decisions}");
    assert_eq!(world.first.log()[0].header("accept-encoding"), Some("identity"));
    let limited = Respond::new(429)
        .header("content-encoding", "gzip")
        .header("retry-after", "42")
        .body(vec![0x1f, 0x8b, 8]);
    let world = World::new().await;
    world.first.script("one", [limited.into()]);
    let answer = world.chat(&crate::common::question("first/one")).await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((41..=42).contains(&wait), "{wait}");
    assert!(!answer.text().contains('\u{fffd}') && !answer.text().contains("\\u001f"), "{}", answer.text());
}

// spec: C-5, C-23
#[test_case(r#"{"error":{"message":"no such parameter: x","type":"invalid_request_error"}}"#, "no such parameter: x"; "openai")]
#[test_case(r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#, "no"; "anthropic")]
#[test_case(r#"[{"error":{"code":400,"message":"bad\nvalue"}}]"#, "bad\nvalue"; "google")]
#[test_case(r#"{"error":{"message":"{\"error\":{\"message\":\"inner\"}}"}}"#, "inner"; "twice encoded")]
#[test_case(r#"{"detail":[{"msg":"field required","loc":["body"]}]}"#, "field required"; "a list of details")]
#[test_case(r#"{"error":"plain"}"#, "plain"; "a text")]
#[test_case("plain text", "plain text"; "no json")]
#[test_case(r#"{"error":{"message":"key sk-abcdefghijklmnopqrstuvwxyz0123456789 is unknown"}}"#, "key [redacted"; "a secret")]
#[tokio::test]
async fn the_clients_message_is_what_the_provider_says(body: &str, expected: &str) {
    let world = World::new().await;
    world.first.script("one", [Step::json(400, body)]);
    let answer = world.chat(&crate::common::question("first/one")).await;
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    let begins = format!("first/one: {expected}");
    assert!(
        message.starts_with(&begins) && !message.contains('{') && !message.contains("abcdefghij"),
        "{message}"
    );
}

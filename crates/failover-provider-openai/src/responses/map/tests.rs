//! Golden requests.

use super::*;
use failover_provider::{Effort, Origin};
use failover_testkit::provider::{golden_requests, in_scope};
use failover_types::ProviderId;
use test_case::test_case;

/// Everything that a request can hold, as a caller would write it down.
const FULL: &str = include_str!("full_request.json");

fn mapped(request: &ChatRequest, model: &str) -> Mapped {
    in_scope(model, |scope| map(request, scope).unwrap())
}

fn body(request: &ChatRequest, model: &str) -> Value {
    serde_json::from_str(&mapped(request, model).body).unwrap()
}

// spec: P-5, P-7
#[test]
fn golden_requests_at_home_and_elsewhere() {
    for (name, golden) in golden_requests(FULL, &["openai/gpt-5", "my-own/gpt-4o"], mapped) {
        insta::assert_snapshot!(name, golden);
    }
}

#[test]
fn a_plain_prompt_is_a_plain_body() {
    let mapped = mapped(&ChatRequest::prompt("hi"), "openai/m");
    let expected = r#"{"model":"m","input":[{"role":"user","content":"hi"}],"stream":false,"store":false}"#;
    assert_eq!((mapped.body.as_str(), mapped.losses.len()), (expected, 0));
}

fn opaque(provider: &str, name: &str, value: &str) -> Opaque {
    Opaque::new(Origin::new(ProviderId::new(provider).unwrap()), name, Json::parse(value).unwrap())
}

// spec: P-5
#[test]
fn items_keep_the_order_in_which_things_were_said() {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"eA=="}"#;
    let proof = Some(opaque("openai", REASONING, reasoning));
    let mut request = ChatRequest::prompt("look");
    request.messages.insert(0, Message::text(Role::System, "Be brief."));
    request.messages.push(Message::new(
        Role::Assistant,
        vec![
            Part::Reasoning { text: "shown".into(), proof },
            Part::Text("I look.".into()),
            Part::ToolCall(ToolCall::new("a", "look", "{}")),
            Part::Text("And listen.".into()),
        ],
    ));
    request.messages.push(Message::text(Role::System, "Be briefer."));
    let body = body(&request, "openai/gpt-5");
    assert_eq!(body["instructions"], "Be brief.");
    let input = body["input"].as_array().unwrap();
    let kinds: Vec<_> =
        input.iter().map(|item| item.get("type").or(item.get("role")).unwrap().as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "reasoning", "assistant", "function_call", "assistant", "system"]);
    assert_eq!(input[1], serde_json::from_str::<Value>(reasoning).unwrap(), "whole, as it came");
}

// spec: P-5
#[test]
fn vendor_fields_go_home_and_nowhere_else() {
    let mut request = ChatRequest::prompt("hi");
    request.opaque = vec![
        opaque("openai", "store", "true"),
        opaque("openai", "include", "[]"),
        opaque("openai", "model", "\"other\""),
        opaque("anthropic", "container", "\"c\""),
    ];
    let mapped = mapped(&request, "openai/gpt-5");
    assert!(mapped.body.ends_with(r#""stream":false,"store":true,"include":[]}"#), "{}", mapped.body);
    let lost: Vec<_> = mapped.losses.iter().map(|loss| (loss.what.as_str(), loss.reason)).collect();
    assert_eq!(lost, [("model", LossReason::NoPlace), ("container", LossReason::ForeignOrigin)]);
}

#[test_case("gpt-5-mini", None, true)]
#[test_case("openai/o3", None, true; "behind a relay")]
#[test_case("gpt-5-chat-latest", None, false; "chat")]
#[test_case("gpt-4o", None, false; "does not reason")]
#[test_case("my-model", Some(Effort::Low), true; "asked to")]
#[test_case("my-model", Some(Effort::None), false; "asked not to")]
fn encrypted_reasoning_is_asked_of_models_that_reason(model: &str, effort: Option<Effort>, expected: bool) {
    assert_eq!(reasons(model, effort), expected);
}

fn file(media_type: &str, data: &str) -> File {
    File::new(FileSource::Base64 { media_type: media_type.into(), data: data.into() })
}

fn showing(files: Vec<File>) -> ChatRequest {
    let parts = files.into_iter().map(Part::File).chain([Part::Text("What is it?".into())]);
    ChatRequest::new(vec![Message::new(Role::User, parts.collect())])
}

// spec: P-5, H-11
#[test]
fn files_are_parts_of_the_input() {
    let linked = File::new(FileSource::Url("https://a.example/b.pdf".into()));
    let sent = mapped(
        &showing(vec![file("application/pdf", "eA=="), linked, file("text/plain", "aGk=")]),
        "openai/m",
    );
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    let expected = json!([
        {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,eA=="},
        {"type": "input_file", "file_url": "https://a.example/b.pdf"},
        {"type": "input_text", "text": "hi"},
        {"type": "input_text", "text": "What is it?"}
    ]);
    assert_eq!((&body["input"][0]["content"], sent.losses.len()), (&expected, 0));
}

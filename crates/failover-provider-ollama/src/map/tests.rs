//! Golden requests.

use super::*;
use failover_provider::{FileSource, Opaque, Origin};
use failover_testkit::provider::{golden_requests, in_scope};
use failover_types::ProviderId;
use serde_json::Value;

/// Everything that a request can hold, as a caller would write it down.
const FULL: &str = include_str!("full_request.json");

fn mapped(request: &ChatRequest, model: &str) -> Mapped {
    in_scope(model, |scope| map(request, scope).unwrap())
}

// spec: P-5
#[test]
fn golden_requests_at_home_and_elsewhere() {
    for (name, golden) in golden_requests(FULL, &["ollama/llama", "my-own/llama"], mapped) {
        insta::assert_snapshot!(name, golden);
    }
}

#[test]
fn a_plain_prompt_is_a_plain_body() {
    let mapped = mapped(&ChatRequest::prompt("hi"), "ollama/m");
    let expected = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":false}"#;
    assert_eq!((mapped.body.as_str(), mapped.losses.len()), (expected, 0));
}

#[test]
fn results_name_their_tool() {
    let mut request = ChatRequest::prompt("look");
    request
        .messages
        .push(Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("a", "look", "{\"at\":1}"))]));
    request.messages.push(Message::new(Role::Tool, vec![Part::ToolResult(ToolResult::text("a", "seen"))]));
    let body: Value = serde_json::from_str(&mapped(&request, "ollama/m").body).unwrap();
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["arguments"]["at"], 1);
    assert_eq!(body["messages"][2]["tool_name"], "look");
    assert_eq!(body["messages"][2]["content"], "seen");
}

// spec: P-5
#[test]
fn vendor_fields_go_home_and_nowhere_else() {
    let opaque = |provider: &str, name: &str| {
        let origin = Origin::new(ProviderId::new(provider).unwrap());
        Opaque::new(origin, name, Json::parse("\"kept\"").unwrap())
    };
    let mut request = ChatRequest::prompt("hi");
    request.opaque = vec![opaque("ollama", "keep_alive"), opaque("openai", "service_tier")];
    let thought = Part::Reasoning { text: "thought".into(), proof: Some(opaque("openai", "thinking")) };
    request.messages.push(Message::new(Role::Assistant, vec![thought]));
    let mapped = mapped(&request, "ollama/m");
    assert!(mapped.body.contains(r#""keep_alive":"kept""#), "{}", mapped.body);
    assert!(!mapped.body.contains("service_tier") && !mapped.body.contains("thought"), "{}", mapped.body);
    let lost: Vec<_> = mapped.losses.iter().map(|loss| loss.what.as_str()).collect();
    assert_eq!(lost, ["thinking", "service_tier"]);
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
fn plain_texts_are_read_and_nothing_else_is_taken() {
    let sent = mapped(&showing(vec![file("text/csv", "YSxi").with_name(Some("t".into()))]), "ollama/m");
    assert!(
        sent.body.contains(r#""content":"t:\n\na,b\nWhat is it?""#) && sent.losses.is_empty(),
        "{sent:?}"
    );
    assert!(takes_shown(&Part::File(file("text/csv", ""))));
    assert!(!takes_shown(&Part::File(file("application/pdf", ""))));
    assert!(!takes_shown(&Part::Image(Image::new(ImageSource::Url("https://a.example/a.png".into())))));
}

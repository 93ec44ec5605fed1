//! Golden requests.

use super::*;
use failover_provider::{Opaque, Origin};
use failover_testkit::provider::{golden_requests, in_scope};
use failover_types::ProviderId;

/// Everything that a request can hold, as a caller would write it down.
const FULL: &str = include_str!("full_request.json");

fn mapped(request: &ChatRequest, model: &str) -> Mapped {
    in_scope(model, |scope| map(request, scope, 4_096).unwrap())
}

// spec: P-5
#[test]
fn golden_requests_at_home_and_elsewhere() {
    for (name, golden) in golden_requests(FULL, &["anthropic/claude", "my-own/claude"], mapped) {
        insta::assert_snapshot!(name, golden);
    }
}

#[test]
fn a_plain_prompt_is_a_plain_body() {
    let mapped = mapped(&ChatRequest::prompt("hi"), "anthropic/m");
    let expected = r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"text":"hi","type":"text"}]}],"stream":false}"#;
    assert_eq!((mapped.body.as_str(), mapped.losses.len()), (expected, 0));
}

#[test]
fn results_of_parallel_calls_come_in_one_turn() {
    let mut request = ChatRequest::prompt("look");
    let call = |id: &str| Part::ToolCall(ToolCall::new(id, "look", "{}"));
    request.messages.push(Message::new(Role::Assistant, vec![call("a"), call("b")]));
    for id in ["a", "b"] {
        let result = Part::ToolResult(ToolResult::text(id, "seen"));
        request.messages.push(Message::new(Role::Tool, vec![result]));
    }
    let body: Value = serde_json::from_str(&mapped(&request, "anthropic/m").body).unwrap();
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(body["messages"][2]["content"].as_array().unwrap().len(), 2);
}

// spec: P-5
#[test]
fn arguments_that_are_no_object_are_reported() {
    let mut request = ChatRequest::prompt("look");
    request
        .messages
        .push(Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("a", "look", "{\"at\":"))]));
    let mapped = mapped(&request, "anthropic/m");
    assert!(mapped.body.contains(r#""input":{}"#), "{}", mapped.body);
    assert_eq!(mapped.losses.len(), 1);
}

// spec: P-5
#[test]
fn what_a_text_is_from_goes_back_into_its_block() {
    let cited = |provider: &str| {
        let origin = Origin::new(ProviderId::new(provider).unwrap());
        let own = Opaque::new(origin, "citations", Json::parse(r#"[{"url":"https://a.example"}]"#).unwrap());
        let said = vec![Part::Text("Cold.".into()), Part::Opaque(own)];
        let mut request = ChatRequest::prompt("hi");
        request.messages.push(Message::new(Role::Assistant, said));
        mapped(&request, "anthropic/m")
    };
    let home = cited("anthropic");
    let block = r#"{"citations":[{"url":"https://a.example"}],"text":"Cold.","type":"text"}"#;
    assert!(home.body.contains(block) && home.losses.is_empty(), "{home:?}");
    let elsewhere = cited("other");
    assert!(!elsewhere.body.contains("https"), "{elsewhere:?}");
    assert_eq!(elsewhere.losses[0].what, "citations");
}

// spec: P-5
#[test]
fn vendor_fields_go_home_and_nowhere_else() {
    let opaque = |provider: &str, name: &str| {
        let origin = Origin::new(ProviderId::new(provider).unwrap());
        Opaque::new(origin, name, Json::parse("\"kept\"").unwrap())
    };
    let mut request = ChatRequest::prompt("hi");
    request.opaque = vec![opaque("anthropic", "container"), opaque("openai", "service_tier")];
    let thought = Part::Reasoning { text: "thought".into(), proof: Some(opaque("openai", "signature")) };
    request.messages.push(Message::new(Role::Assistant, vec![thought]));
    let mapped = mapped(&request, "anthropic/m");
    assert!(mapped.body.contains(r#""container":"kept""#), "{}", mapped.body);
    assert!(!mapped.body.contains("service_tier") && !mapped.body.contains("thought"), "{}", mapped.body);
    let lost: Vec<_> = mapped.losses.iter().map(|loss| loss.what.as_str()).collect();
    assert_eq!(lost, ["signature", "service_tier"]);
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
fn documents_go_as_such_and_what_it_cannot_read_is_not_taken() {
    let pdf = file("application/pdf", "eA==").with_name(Some("a.pdf".into()));
    let linked = File::new(FileSource::Url("https://a.example/b.pdf".into()));
    let sent = mapped(&showing(vec![pdf, linked, file("text/csv", "YSxi")]), "anthropic/m");
    let sources: Value = serde_json::from_str(&sent.body).unwrap();
    let content = sources["messages"][0]["content"].clone();
    let expected = json!([
        {"type": "document", "title": "a.pdf",
         "source": {"type": "base64", "media_type": "application/pdf", "data": "eA=="}},
        {"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
        {"type": "text", "text": "What is it?"}
    ]);
    assert_eq!((content, sent.losses.len()), (expected, 0));
    for (kind, taken) in
        [("application/pdf", true), ("text/plain", true), ("audio/wav", false), ("application/msword", false)]
    {
        assert_eq!(takes_shown(&Part::File(file(kind, "eA=="))), taken, "{kind}");
    }
}

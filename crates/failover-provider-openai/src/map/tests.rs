//! Golden requests: one of each kind of server.

use super::*;
use crate::facts::facts_for;
use failover_provider::{Effort, Origin};
use failover_testkit::provider::{golden_requests, in_scope};
use failover_types::ProviderId;

/// Everything that a request can hold, as a caller would write it down.
const FULL: &str = include_str!("full_request.json");

fn mapped(request: &ChatRequest, model: &str) -> Mapped {
    in_scope(model, |scope| map(request, scope, facts_for(scope.model.provider())).unwrap())
}

// spec: P-5, P-7
#[test]
fn golden_requests_for_each_kind_of_server() {
    for (name, golden) in golden_requests(
        FULL,
        &["openai/gpt-5", "openrouter/vendor/model", "mistral/large", "deepseek/chat", "my-own/llama"],
        mapped,
    ) {
        insta::assert_snapshot!(name, golden);
    }
}

#[test]
fn a_plain_prompt_is_a_plain_body() {
    let mapped = mapped(&ChatRequest::prompt("hi"), "openai/m");
    let expected = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":false}"#;
    assert_eq!((mapped.body.as_str(), mapped.losses.len()), (expected, 0));
}

// spec: P-5
#[test]
fn vendor_fields_go_home_and_nowhere_else() {
    let opaque = |provider: &str, name: &str| {
        let origin = Origin::new(ProviderId::new(provider).unwrap());
        Opaque::new(origin, name, Json::parse("\"kept\"").unwrap())
    };
    let mut request = ChatRequest::prompt("hi");
    request.opaque =
        vec![opaque("openai", "service_tier"), opaque("anthropic", "container"), opaque("openai", "model")];
    request.messages.push(Message::new(
        Role::Assistant,
        vec![Part::Reasoning {
            text: "secret thought".into(),
            proof: Some(opaque("anthropic", "signature")),
        }],
    ));
    let mapped = mapped(&request, "openai/m");
    assert!(mapped.body.contains(r#""service_tier":"kept""#), "{}", mapped.body);
    assert!(!mapped.body.contains("container") && !mapped.body.contains("thought"), "{}", mapped.body);
    let lost: Vec<_> = mapped.losses.iter().map(|loss| (loss.what.as_str(), loss.reason)).collect();
    let expected = [
        ("signature", LossReason::ForeignOrigin),
        ("container", LossReason::ForeignOrigin),
        ("model", LossReason::NoPlace),
    ];
    assert_eq!(lost, expected);
}

// spec: P-7
#[test]
fn what_mistral_thought_goes_back_among_the_content() {
    let raw = r#"{"thinking":[{"text":"Hm.","type":"text"}],"type":"thinking"}"#;
    let origin = Origin::new(ProviderId::new("mistral").unwrap());
    let proof = Some(Opaque::new(origin, "thinking", Json::parse(raw).unwrap()));
    let said = vec![Part::Reasoning { text: "Hm.".into(), proof }, Part::Text("Yes.".into())];
    let mut request = ChatRequest::prompt("hi");
    request.messages.push(Message::new(Role::Assistant, said));
    let sent = mapped(&request, "mistral/m");
    assert!(sent.body.contains(&format!(r#""content":[{raw},{{"text":"Yes.","type":"text"}}]"#)), "{sent:?}");
    assert_eq!(mapped(&request, "openai/m").losses[0].what, "thinking");
}

// spec: P-7
#[test]
fn no_server_is_sent_more_stops_than_it_takes() {
    let mut request = ChatRequest::prompt("hi");
    request.stop = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
    let sent = mapped(&request, "openai/gpt-4o");
    assert!(sent.body.contains(r#""stop":["a","b","c","d"]"#), "{sent:?}");
    assert_eq!(sent.losses[0].what, "stop");
    assert!(!takes(facts_for(&ProviderId::new("openai").unwrap()), &request), "its own 400 helps nobody");
    assert!(mapped(&request, "vllm/m").losses.is_empty());
}

#[test]
fn an_effort_without_a_place_is_reported() {
    let mut request = ChatRequest::prompt("hi");
    request.effort = Some(Effort::High);
    assert!(mapped(&request, "openai/m").body.contains(r#""reasoning_effort":"high""#));
    assert_eq!(mapped(&request, "mistral/m").losses.len(), 1);
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
fn files_go_in_the_words_of_each_server() {
    let files = || {
        let pdf = file("application/pdf", "eA==").with_name(Some("a.pdf".into()));
        vec![pdf, file("audio/wav", "eA=="), file("text/plain", "aGk=")]
    };
    let content = |model: &str| {
        let sent = mapped(&showing(files()), model);
        serde_json::from_str::<Value>(&sent.body).unwrap()["messages"][0]["content"].clone()
    };
    let openai = json!([
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,eA=="}},
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}},
        {"type": "text", "text": "hi"},
        {"type": "text", "text": "What is it?"}
    ]);
    assert_eq!(content("openai/gpt-4o"), openai);
    let mistral = json!({"type": "document_url", "document_name": "a.pdf", "document_url": "data:application/pdf;base64,eA=="});
    assert_eq!(content("mistral/large")[0], mistral);
    let linked = File::new(FileSource::Url("https://a.example/b.pdf".into()));
    for (provider, file, taken) in [
        ("openai", file("application/pdf", ""), true),
        ("openai", linked.clone(), false),
        ("openai", file("audio/flac", ""), false),
        ("openrouter", linked, true),
        ("deepseek", file("application/pdf", ""), false),
        ("deepseek", file("text/plain", ""), true),
        ("vllm", file("audio/wav", ""), true),
        ("my-own", file("application/pdf", ""), true),
    ] {
        let facts = facts_for(&ProviderId::new(provider).unwrap());
        assert_eq!(takes_shown(facts, &Part::File(file)), taken, "{provider}");
    }
}

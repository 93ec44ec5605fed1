//! Golden requests.

use super::*;
use failover_provider::{Loss, Opaque, Origin};
use failover_testkit::provider::{golden_requests, in_scope};
use failover_types::ProviderId;
use test_case::test_case;

/// Everything that a request can hold, as a caller would write it down.
const FULL: &str = include_str!("full_request.json");

fn mapped(request: &ChatRequest, model: &str) -> Mapped {
    in_scope(model, |scope| map(request, scope).unwrap())
}

fn body(request: &ChatRequest) -> Value {
    serde_json::from_str(&mapped(request, "amazon-bedrock/m").body).unwrap()
}

// spec: P-5
#[test]
fn golden_requests_at_home_and_elsewhere() {
    for (name, golden) in golden_requests(FULL, &["amazon-bedrock/claude", "my-own/claude"], mapped) {
        insta::assert_snapshot!(name, golden);
    }
}

#[test]
fn a_plain_prompt_is_a_plain_body() {
    let mapped = mapped(&ChatRequest::prompt("hi"), "amazon-bedrock/m");
    let expected = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;
    assert_eq!((mapped.body.as_str(), mapped.losses.len()), (expected, 0));
}

#[test]
fn sides_alternate_and_results_of_parallel_calls_come_in_one_turn() {
    let mut request = ChatRequest::prompt("look");
    let call = |id: &str| Part::ToolCall(ToolCall::new(id, "look", "{}"));
    request.messages.push(Message::new(Role::Assistant, vec![call("a/1"), call("b")]));
    for id in ["a/1", "b"] {
        let mut result = ToolResult::text(id, "seen");
        result.is_error = id == "b";
        request.messages.push(Message::new(Role::Tool, vec![Part::ToolResult(result)]));
    }
    request.messages.push(Message::text(Role::User, "and?"));
    let body = body(&request);
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let results = &body["messages"][2]["content"];
    assert_eq!(
        results[0]["toolResult"]["toolUseId"],
        body["messages"][1]["content"][0]["toolUse"]["toolUseId"]
    );
    assert_eq!((&results[1]["toolResult"]["status"], &results[2]["text"]), (&json!("error"), &json!("and?")));
}

#[test_case(None, &json!(null), 0; "nothing said")]
#[test_case(Some(ToolChoice::Auto), &json!({"auto": {}}), 0; "auto")]
#[test_case(Some(ToolChoice::Required), &json!({"any": {}}), 0; "some tool")]
#[test_case(Some(ToolChoice::Named("look".into())), &json!({"tool": {"name": "look"}}), 0; "this one")]
fn tool_choices(choice: Option<ToolChoice>, expected: &Value, losses: usize) {
    let mut request =
        ChatRequest::prompt("hi").with_tools(vec![Tool::new("look", Json::parse("{}").unwrap())]);
    request.tool_choice = choice;
    assert_eq!(&body(&request)["toolConfig"]["toolChoice"], expected);
    assert_eq!(mapped(&request, "amazon-bedrock/m").losses.len(), losses);
}

#[test]
fn where_no_tool_may_be_called_none_is_offered_unless_some_were_called() {
    let mut request =
        ChatRequest::prompt("hi").with_tools(vec![Tool::new("look", Json::parse("{}").unwrap())]);
    request.tool_choice = Some(ToolChoice::None);
    assert_eq!(body(&request).get("toolConfig"), None);
    request
        .messages
        .push(Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("a", "look", "{}"))]));
    let mapped = mapped(&request, "amazon-bedrock/m");
    assert!(mapped.body.contains("toolConfig"), "{}", mapped.body);
    assert_eq!(mapped.losses, [Loss::new("tool_choice", LossReason::NoPlace)]);
}

#[test_case(ImageSource::Base64 { media_type: "image/png".into(), data: "eA==".into() },
    &json!({"image": {"format": "png", "source": {"bytes": "eA=="}}}); "bytes")]
#[test_case(ImageSource::Url("data:image/jpeg;base64,eA==".into()),
    &json!({"image": {"format": "jpeg", "source": {"bytes": "eA=="}}}); "data url")]
#[test_case(ImageSource::Url("s3://bucket/cat.webp".into()),
    &json!({"image": {"format": "webp", "source": {"s3Location": {"uri": "s3://bucket/cat.webp"}}}}); "storage")]
#[test_case(ImageSource::Url("https://a.example/cat.png".into()), &json!(null); "address")]
#[test_case(ImageSource::Base64 { media_type: "image/tiff".into(), data: "eA==".into() }, &json!(null); "format")]
fn images(source: ImageSource, expected: &Value) {
    let mut request = ChatRequest::prompt("hi");
    request.messages.push(Message::new(Role::User, vec![Part::Image(Image::new(source))]));
    let mapped = mapped(&request, "amazon-bedrock/m");
    let body: Value = serde_json::from_str(&mapped.body).unwrap();
    assert_eq!(&body["messages"][0]["content"][1], expected);
    assert_eq!(mapped.losses.is_empty(), !expected.is_null(), "what is left out is reported");
}

// spec: P-5
#[test]
fn vendor_fields_go_home_and_nowhere_else() {
    let opaque = |provider: &str, name: &str, value: &str| {
        Opaque::new(Origin::new(ProviderId::new(provider).unwrap()), name, Json::parse(value).unwrap())
    };
    let mut request = ChatRequest::prompt("hi");
    request.opaque =
        vec![opaque("amazon-bedrock", "guardrailConfig", "{\"a\":1}"), opaque("openai", "service_tier", "1")];
    let reasoning = |provider: &str| Part::Reasoning {
        text: format!("thought of {provider}"),
        proof: Some(opaque(provider, SIGNATURE, "\"s\"")),
    };
    request
        .messages
        .push(Message::new(Role::Assistant, vec![reasoning("amazon-bedrock"), reasoning("anthropic")]));
    let mapped = mapped(&request, "amazon-bedrock/m");
    assert!(mapped.body.contains(r#""guardrailConfig":{"a":1}"#), "{}", mapped.body);
    let kept =
        r#"{"reasoningContent":{"reasoningText":{"text":"thought of amazon-bedrock","signature":"s"}}}"#;
    assert!(mapped.body.contains(kept) && !mapped.body.contains("of anthropic"), "{}", mapped.body);
    let lost: Vec<_> = mapped.losses.iter().map(|loss| loss.what.as_str()).collect();
    assert_eq!(lost, [SIGNATURE, "service_tier"]);
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
fn documents_have_names_that_differ_and_a_word_about_them() {
    let pdf = || file("application/pdf", "eA==").with_name(Some("my_report.pdf".into()));
    let mut request = showing(vec![pdf(), pdf(), File::new(FileSource::Text("hi".into()))]);
    request.messages[0].parts.pop();
    let sent = mapped(&request, "amazon-bedrock/m");
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    let expected = json!([
        {"document": {"format": "pdf", "name": "my report pdf", "source": {"bytes": "eA=="}}},
        {"document": {"format": "pdf", "name": "document 2 my report pdf", "source": {"bytes": "eA=="}}},
        {"document": {"format": "txt", "name": "document 3", "source": {"text": "hi"}}},
        {"text": "See the document."}
    ]);
    assert_eq!((&body["messages"][0]["content"], sent.losses.len()), (&expected, 0));
    let linked = File::new(FileSource::Url("https://a.example/b.pdf".into()));
    for (file, taken) in [(pdf(), true), (linked, false), (file("audio/wav", ""), false)] {
        assert_eq!(takes_shown(&Part::File(file)), taken);
    }
    let image = |url: &str| Part::Image(Image::new(ImageSource::Url(url.into())));
    assert!(takes_shown(&image("s3://b/a.png")) && !takes_shown(&image("https://a.example/a.png")));
}

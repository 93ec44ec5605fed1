//! Golden requests.

use super::*;
use failover_provider::Origin;
use failover_testkit::provider::{golden_requests, in_scope};
use failover_types::ProviderId;
use test_case::test_case;

/// Everything that a request can hold, as a caller would write it down.
const FULL: &str = include_str!("full_request.json");

fn mapped(request: &ChatRequest, model: &str) -> Mapped {
    let service = if model.contains("vertex") { Service::Vertex } else { Service::Gemini };
    in_scope(model, |scope| map(request, scope, service).unwrap())
}

fn body(request: &ChatRequest, model: &str) -> Value {
    serde_json::from_str(&mapped(request, model).body).unwrap()
}

// spec: P-5
#[test]
fn golden_requests_at_home_and_elsewhere() {
    for (name, golden) in
        golden_requests(FULL, &["google/gemini-2.5-flash", "google-vertex/gemini-3-pro-preview"], mapped)
    {
        insta::assert_snapshot!(name, golden);
    }
}

#[test]
fn a_plain_prompt_is_a_plain_body() {
    let mapped = mapped(&ChatRequest::prompt("hi"), "google/m");
    let expected = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    assert_eq!((mapped.body.as_str(), mapped.losses.len()), (expected, 0));
}

fn opaque(provider: &str, name: &str, value: &str) -> Opaque {
    Opaque::new(Origin::new(ProviderId::new(provider).unwrap()), name, Json::parse(value).unwrap())
}

// spec: P-5
#[test]
fn a_signature_goes_back_on_the_part_that_it_came_with() {
    let proof = |value: &str| Part::Reasoning {
        text: "thought".into(),
        proof: Some(opaque("google", SIGNATURE, value)),
    };
    let call = |id: &str| Part::ToolCall(ToolCall::new(id, "look", "{}"));
    let mut request = ChatRequest::prompt("look");
    let parts = vec![proof("\"1\""), call("a"), call("b"), Part::Text("and".into()), proof("\"2\"")];
    request.messages.push(Message::new(Role::Assistant, parts));
    let body = body(&request, "google/m");
    let signatures: Vec<_> = body["contents"][1]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part.get(SIGNATURE).and_then(Value::as_str))
        .collect();
    assert_eq!(signatures, [Some("1"), None, None, Some("2")]);
    assert!(!body.to_string().contains("thought\""), "{body}");
}

// spec: P-5
#[test]
fn results_of_parallel_calls_come_in_one_turn_under_their_names() {
    let mut request = ChatRequest::prompt("look");
    let call = |id: &str, name: &str| Part::ToolCall(ToolCall::new(id, name, "{}"));
    request.messages.push(Message::new(Role::Assistant, vec![call("a/1", "look"), call("b", "listen")]));
    for (id, text) in [("a/1", "{\"seen\":[\"cat\"]}"), ("b", "a bark")] {
        let mut result = ToolResult::text(id, text);
        result.is_error = id == "b";
        request.messages.push(Message::new(Role::Tool, vec![Part::ToolResult(result)]));
    }
    let gemini = body(&request, "google/m");
    let results = &gemini["contents"][2]["parts"];
    assert_eq!(gemini["contents"].as_array().unwrap().len(), 3);
    assert_eq!(results[0]["functionResponse"]["name"], "look");
    assert_eq!(results[0]["functionResponse"]["response"], json!({"seen": ["cat"]}));
    assert_eq!(results[1]["functionResponse"]["response"], json!({"error": "a bark"}));
    let id = &gemini["contents"][1]["parts"][0]["functionCall"]["id"];
    assert_ne!(id, "a/1");
    assert_eq!(&results[0]["functionResponse"]["id"], id, "one id throughout an attempt");
    let vertex = body(&request, "google-vertex/m").to_string();
    assert!(!vertex.contains("\"id\""), "Vertex AI refuses ids: {vertex}");
}

// spec: P-5
#[test]
fn vendor_fields_go_home_and_nowhere_else() {
    let mut request = ChatRequest::prompt("hi");
    request.temperature = Some(0.5);
    request.opaque = vec![
        opaque("google", "cachedContent", "\"cachedContents/1\""),
        opaque("google", GENERATION, r#"{"topK": 3, "temperature": 1}"#),
        opaque("openai", "service_tier", "\"flex\""),
    ];
    let mapped = mapped(&request, "google/m");
    assert!(mapped.body.contains(r#""cachedContent":"cachedContents/1""#), "{}", mapped.body);
    assert!(mapped.body.contains(r#""generationConfig":{"temperature":0.5,"topK":3}"#), "{}", mapped.body);
    let lost: Vec<_> = mapped.losses.iter().map(|loss| loss.what.as_str()).collect();
    assert_eq!(lost, ["generationConfig.temperature", "service_tier"]);
}

// spec: P-5
#[test_case("google/gemini-3-pro-preview", &[Some(NO_SIGNATURE), None]; "third generation")]
#[test_case("google/gemini-3.5-flash", &[Some(NO_SIGNATURE), None]; "and later")]
#[test_case("google/gemini-2.5-pro", &[None, None]; "second generation")]
fn calls_of_other_models_are_let_pass(model: &str, expected: &[Option<&str>]) {
    let call = |id: &str| Part::ToolCall(ToolCall::new(id, "look", "{}"));
    let mut request = ChatRequest::prompt("look");
    request.messages.push(Message::new(Role::Assistant, vec![call("a"), call("b")]));
    let body = body(&request, model);
    let parts = body["contents"][1]["parts"].as_array().unwrap().iter();
    let signatures: Vec<_> = parts.map(|part| part.get(SIGNATURE).and_then(Value::as_str)).collect();
    assert_eq!(signatures, expected);
}

#[test_case("https://a.example/cat.JPG?x=1", Some("image/jpeg"))]
#[test_case("gs://bucket/cat.webp", Some("image/webp"); "storage")]
#[test_case("https://a.example/cat", None; "no ending")]
fn media_types_are_told_by_the_ending(url: &str, expected: Option<&str>) {
    assert_eq!(media_type(url), expected);
}

#[test]
fn a_data_url_is_put_into_the_request() {
    let mut request = ChatRequest::prompt("hi");
    let image = Image::new(ImageSource::Url("data:image/png;base64,iVBORw0KGgo=".into()));
    request.messages.push(Message::new(Role::User, vec![Part::Image(image)]));
    let inline = &body(&request, "google/m")["contents"][0]["parts"][1]["inlineData"];
    assert_eq!(inline, &json!({"mimeType": "image/png", "data": "iVBORw0KGgo="}));
}

#[test_case("gemini-2.5-flash", Effort::None, Some(&json!({"thinkingBudget": 0})); "off")]
#[test_case("gemini-2.5-pro", Effort::None, None; "cannot be off")]
#[test_case("gemini-2.5-pro", Effort::High, Some(&json!({"thinkingBudget": 24_576})); "budget")]
#[test_case("gemini-3-flash-preview", Effort::Minimal, Some(&json!({"thinkingLevel": "minimal"})); "level")]
#[test_case("gemini-3-pro-preview", Effort::Minimal, Some(&json!({"thinkingLevel": "low"})); "nearest level")]
#[test_case("gemma-3-27b-it", Effort::High, None; "does not think")]
fn effort_is_said_in_the_words_of_the_generation(model: &str, effort: Effort, expected: Option<&Value>) {
    assert_eq!(thinking(model, effort).as_ref(), expected);
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
fn files_of_every_kind_go_inline_or_by_address() {
    let linked = File::new(FileSource::Url("https://a.example/b.pdf".into()));
    let files =
        vec![file("application/pdf", "eA=="), file("audio/wav", "eA=="), linked, file("text/csv", "YSxi")];
    let sent = mapped(&showing(files), "google/gemini-2.5-pro");
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    let expected = json!([
        {"inlineData": {"mimeType": "application/pdf", "data": "eA=="}},
        {"inlineData": {"mimeType": "audio/wav", "data": "eA=="}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/b.pdf"}},
        {"text": "a,b"},
        {"text": "What is it?"}
    ]);
    assert_eq!((&body["contents"][0]["parts"], sent.losses.len()), (&expected, 0));
    assert!(!takes_shown(&Part::File(file("application/msword", ""))));
}

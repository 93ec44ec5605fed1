//! OpenAI's responses.

use crate::support::{meta, opaque, pretty, rendered};
use bytes::{Bytes, BytesMut};
use failover_gateway::dialect::{
    ClientDialect, ErrorBody, ErrorKind, Inbound, StreamRenderer, parse_request, render_error, render_reply,
};
use failover_provider::{ChatReply, Dialect, FinishReason, Part, ReplyEvent, ToolCall, ToolCallDelta, Usage};
use serde_json::{Value, json};
use test_case::test_case;

const REQUEST: &str = include_str!("requests/responses.json");

fn parse(body: impl Into<Bytes>) -> Inbound {
    parse_request(ClientDialect::Responses, &body.into()).unwrap()
}

fn call(index: u32, arguments: &str, start: Option<&str>) -> ReplyEvent {
    let delta = ToolCallDelta::new(index, arguments);
    ReplyEvent::ToolCall(match start {
        Some(id) => delta.with_start(Some(id.into()), Some("look".into())),
        None => delta,
    })
}

fn events(finish: FinishReason) -> Vec<ReplyEvent> {
    let mut usage = Usage::new(31, 17);
    usage.cached_input = Some(5);
    usage.reasoning = Some(3);
    vec![
        ReplyEvent::Reasoning("Let me".into()),
        ReplyEvent::Reasoning(" see.".into()),
        ReplyEvent::ReasoningProof(opaque("openai", "encrypted_content", "\"gAAA\"")),
        ReplyEvent::Opaque(opaque("openai", "web_search_call", r#"{"type":"web_search_call","id":"ws_1"}"#)),
        ReplyEvent::Text("Hé\"llo\n".into()),
        ReplyEvent::Text("world".into()),
        call(0, "", Some("call_a")),
        call(0, "{\"at\":", None),
        call(1, "{}", Some("call_b")),
        call(0, "1}", None),
        ReplyEvent::Usage(usage),
        ReplyEvent::Finish(finish),
    ]
}

fn data(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

// spec: G-1
#[test]
fn a_request_is_read_whole() {
    let mut inbound = parse(REQUEST);
    let native = inbound.request.native.take().unwrap();
    assert_eq!((native.dialect, native.body), (Dialect::OpenAiResponses, Bytes::from(REQUEST)));
    insta::assert_snapshot!("responses_request", pretty(&inbound.request));
    assert_eq!((inbound.model.as_str(), inbound.stream), ("main", true));
    insta::assert_debug_snapshot!("responses_hint", inbound.session_hint);
}

#[test]
fn a_string_is_what_the_user_says() {
    let request = parse(r#"{"model":"m","input":"Hi"}"#).request;
    assert_eq!(request.messages, failover_provider::ChatRequest::prompt("Hi").messages);
}

// spec: G-1
#[test]
fn a_stream_is_written_as_the_vendor_writes_it() {
    let stream = rendered(ClientDialect::Responses, &events(FinishReason::ToolCalls));
    insta::assert_snapshot!("responses_stream", stream);
}

// spec: G-1
#[test_case(FinishReason::Stop, "response.completed", None)]
#[test_case(FinishReason::Other("odd".into()), "response.completed", None)]
#[test_case(FinishReason::Length, "response.incomplete", Some("max_output_tokens"))]
#[test_case(FinishReason::ContentFilter, "response.incomplete", Some("content_filter"))]
fn a_stream_adds_up(finish: FinishReason, last: &str, reason: Option<&str>) {
    let data = data(&rendered(ClientDialect::Responses, &events(finish)));
    let numbers: Vec<u64> = data.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..data.len() as u64).collect::<Vec<_>>());
    let end = data.last().unwrap();
    assert_eq!(
        (&end["type"], &end["response"]["incomplete_details"]["reason"]),
        (&json!(last), &json!(reason))
    );
    assert_eq!(end["response"]["usage"]["output_tokens_details"]["reasoning_tokens"], 3);
    let done: Vec<&Value> = data
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| &event["item"])
        .collect();
    assert_eq!(done.len(), 5);
    for (event, item) in data
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| (event, &event["item"]))
    {
        let at = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
        assert_eq!(&end["response"]["output"][at], item, "the whole has what the events told");
    }
    assert_eq!(end["response"]["output"][3]["arguments"], "{\"at\":1}");
}

// spec: G-1, G-5
#[test]
fn a_whole_answer_can_be_sent_back() {
    let parts = vec![
        Part::Reasoning { text: "Hm.".into(), proof: Some(opaque("acme", "thought_signature", "\"EqQB\"")) },
        Part::Opaque(opaque("acme", "plan", r#"{"z":1,"a":[]}"#)),
        Part::Text("Hello".into()),
        Part::ToolCall(ToolCall::new("call_a", "look", "{\"at\": 1}")),
    ];
    let reply = ChatReply::new(parts.clone(), FinishReason::ToolCalls).with_usage(Some(Usage::new(9, 4)));
    let body = render_reply(ClientDialect::Responses, &reply, &meta());
    insta::assert_snapshot!("responses_reply", String::from_utf8(body.to_vec()).unwrap());
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["model"], "acme/large", "the model names who answered");
    let request = parse(json!({"model": "m", "input": body["output"]}).to_string()).request;
    assert_eq!(request.messages[0].parts, parts);
    assert_eq!(request.native, None, "the next target may be another one");
}

// spec: G-3
#[test]
fn a_stream_that_fails_ends_as_an_error() {
    let mut renderer = StreamRenderer::new(ClientDialect::Responses, meta());
    let mut out = BytesMut::new();
    renderer.push(&ReplyEvent::Text("Hel".into()), &mut out);
    renderer.fail(&ErrorBody::new(ErrorKind::RateLimit, "the upstream broke off"), &mut out);
    renderer.push(&ReplyEvent::Finish(FinishReason::Stop), &mut out);
    let text = String::from_utf8(out.to_vec()).unwrap();
    assert!(!text.contains("response.completed"), "no normal end");
    insta::assert_snapshot!("responses_failed", text);
}

#[test_case(r#"{"input":"x"}"#, "model"; "no model")]
#[test_case(r#"{"model":"m"}"#, "input"; "no input")]
#[test_case(r#"{"model":"m","input":[]}"#, "input"; "empty input")]
#[test_case(r#"{"model":"m","input":7}"#, "input"; "input is a number")]
#[test_case(r#"{"model":"m","input":[{}]}"#, "input[0].type"; "item without a type")]
#[test_case(r#"{"model":"m","input":[{"role":"robot","content":"x"}]}"#, "input[0].role"; "odd role")]
#[test_case(r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text"}]}]}"#, "input[0].content[0].text"; "part without text")]
#[test_case(r#"{"model":"m","input":[{"type":"function_call_output","output":"x"}]}"#, "input[0].call_id"; "result of no call")]
#[test_case(r#"{"model":"m","input":"x","tools":[{"type":"function"}]}"#, "tools[0].name"; "tool without a name")]
#[test_case(r#"{"model":"m","input":"x","text":{"format":{"type":"json_schema"}}}"#, "text.format.name"; "schema without a name")]
#[test_case(r#"{"model":"m","input":"x","reasoning":{"effort":7}}"#, "reasoning.effort"; "effort is a number")]
fn faults_are_named(body: &'static str, field: &str) {
    let bad = parse_request(ClientDialect::Responses, &Bytes::from_static(body.as_bytes())).unwrap_err();
    assert_eq!(bad.field.as_deref(), Some(field), "{bad}");
    let (status, _) = render_error(ClientDialect::Responses, &bad.into());
    assert_eq!(status.as_u16(), 400);
}

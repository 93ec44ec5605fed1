//! Chat completions.

use crate::support::{Canned, meta, opaque, open, pretty, read_stream, read_whole, rendered};
use bytes::{Bytes, BytesMut};
use failover_gateway::dialect::{
    AttemptNote, ClientDialect, ErrorBody, ErrorKind, StreamRenderer, parse_request, render_error,
    render_reply,
};
use failover_provider::{
    ChatReply, ChatRequest, Dialect, FinishReason, Part, ReplyEvent, ToolCall, ToolCallDelta, Usage,
};
use failover_provider_openai::OpenAi;
use failover_types::ProviderId;
use std::sync::Arc;
use test_case::test_case;

const REQUEST: &str = include_str!("requests/chat.json");

fn parse(body: impl Into<Bytes>) -> failover_gateway::dialect::Inbound {
    parse_request(ClientDialect::Chat, &body.into()).unwrap()
}

fn adapter(provider: &str, transport: Arc<Canned>) -> OpenAi {
    let id = ProviderId::new(provider).unwrap();
    OpenAi::builder(id).base_url("http://peer.example/v1").transport(transport).build().unwrap()
}

fn events() -> Vec<ReplyEvent> {
    let mut usage = Usage::new(31, 17);
    usage.cached_input = Some(5);
    usage.reasoning = Some(3);
    vec![
        ReplyEvent::Reasoning("Let me".into()),
        ReplyEvent::Reasoning(" see.".into()),
        ReplyEvent::Text("Hé\"llo\n".into()),
        ReplyEvent::Text("world".into()),
        ReplyEvent::ToolCall(
            ToolCallDelta::new(0, "").with_start(Some("call_a".into()), Some("look".into())),
        ),
        ReplyEvent::ToolCall(ToolCallDelta::new(0, "{\"at\":")),
        ReplyEvent::ToolCall(ToolCallDelta::new(0, "1}")),
        ReplyEvent::ToolCall(
            ToolCallDelta::new(1, "{}").with_start(Some("call_b".into()), Some("look".into())),
        ),
        ReplyEvent::Usage(usage),
        ReplyEvent::Finish(FinishReason::ToolCalls),
    ]
}

// spec: G-1
#[test]
fn a_request_is_read_whole() {
    let mut inbound = parse(REQUEST);
    let native = inbound.request.native.take().unwrap();
    assert_eq!((native.dialect, native.body), (Dialect::OpenAiChat, Bytes::from(REQUEST)));
    insta::assert_snapshot!("chat_request", pretty(&inbound.request));
    assert_eq!((inbound.model.as_str(), inbound.stream, inbound.include_usage), ("main", true, true));
    insta::assert_debug_snapshot!("chat_hint", inbound.session_hint);
}

// spec: G-1
#[tokio::test]
async fn the_same_vendor_is_sent_what_the_client_wrote() {
    let mut request = parse(REQUEST).request;
    request.native = None;
    let peer = Canned::new(rendered(ClientDialect::Chat, &events()), "text/event-stream");
    open(&adapter("openai", Arc::clone(&peer)), "openai/large", &request).await.unwrap();
    insta::assert_snapshot!("chat_sent", pretty(&peer.sent()));
}

// spec: G-1
#[test]
fn a_stream_is_written_as_the_vendor_writes_it() {
    insta::assert_snapshot!("chat_stream", rendered(ClientDialect::Chat, &events()));
}

// spec: G-1
#[tokio::test]
async fn what_is_streamed_is_read_back_by_the_adapter() {
    let stream = rendered(ClientDialect::Chat, &events());
    let (mut read, failure) =
        read_stream(&adapter("openai", Canned::new(stream, "text/event-stream")), "openai/m").await;
    assert_eq!(failure, None);
    read.retain(|event| *event != ReplyEvent::Usage(Usage::default()));
    assert_eq!(read, events());
}

// spec: G-1, G-5
#[tokio::test]
async fn a_whole_answer_is_read_back_by_the_adapter() {
    let parts = vec![
        Part::Reasoning { text: "Hm.".into(), proof: None },
        Part::Text("Hello".into()),
        Part::ToolCall(ToolCall::new("call_a", "look", "{\"at\": 1}")),
    ];
    let reply = ChatReply::new(parts, FinishReason::ToolCalls).with_usage(Some(Usage::new(9, 4)));
    let body = render_reply(ClientDialect::Chat, &reply, &meta());
    insta::assert_snapshot!("chat_reply", String::from_utf8(body.to_vec()).unwrap());
    let read = read_whole(&adapter("openai", Canned::new(body, "application/json")), "openai/m").await;
    assert_eq!((&read.parts, &read.finish, read.usage), (&reply.parts, &reply.finish, reply.usage));
    assert_eq!(read.head.model.as_deref(), Some("acme/large"), "the model names who answered");
}

#[test]
fn usage_comes_only_where_it_was_asked_for() {
    let mut renderer = StreamRenderer::new(ClientDialect::Chat, meta().with_usage(false));
    let mut out = BytesMut::new();
    for event in &events() {
        renderer.push(event, &mut out);
    }
    let text = String::from_utf8(out.to_vec()).unwrap();
    assert!(!text.contains("usage") && text.ends_with("data: [DONE]\n\n"));
}

// spec: G-3
#[tokio::test]
async fn a_stream_that_fails_ends_as_an_error() {
    let mut renderer = StreamRenderer::new(ClientDialect::Chat, meta());
    let mut out = BytesMut::new();
    renderer.push(&ReplyEvent::Text("Hel".into()), &mut out);
    renderer.fail(&ErrorBody::new(ErrorKind::Server, "the upstream broke off"), &mut out);
    renderer.push(&ReplyEvent::Finish(FinishReason::Stop), &mut out);
    let text = String::from_utf8(out.to_vec()).unwrap();
    assert!(!text.contains("[DONE]") && !text.contains("\"finish_reason\":\""), "no normal end");
    insta::assert_snapshot!("chat_failed", text);
    let peer = Canned::new(text, "text/event-stream");
    let (read, failure) = read_stream(&adapter("openai", peer), "openai/m").await;
    assert_eq!(read, [ReplyEvent::Text("Hel".into())]);
    assert!(String::from_utf8_lossy(&failure.unwrap().body).contains("the upstream broke off"));
}

// spec: G-2
#[test_case(ClientDialect::Chat, "error_chat")]
#[test_case(ClientDialect::Responses, "error_responses")]
#[test_case(ClientDialect::Messages, "error_messages")]
fn an_error_names_what_was_tried(dialect: ClientDialect, name: &str) {
    let attempts = vec![
        AttemptNote::new("openai/large", "rate_limit")
            .with_status(Some(429))
            .with_until(Some(1_764_490_030_000)),
        AttemptNote::new("acme/m", "timeout"),
    ];
    let error = ErrorBody::new(ErrorKind::RateLimit, "all models of the route are rate limited")
        .with_attempts(attempts, Some(1_764_490_030_000));
    let (status, body) = render_error(dialect, &error);
    assert_eq!(status.as_u16(), 429);
    insta::assert_snapshot!(name, String::from_utf8(body.to_vec()).unwrap());
}

// spec: G-1
#[tokio::test]
async fn proofs_and_items_of_other_vendors_find_their_way_back() {
    let proof = opaque("anthropic", "signature", "\"EqQB\"");
    let item = opaque("anthropic", "redacted_thinking", r#"{"type":"redacted_thinking","data":"x"}"#);
    let parts = vec![
        Part::Reasoning { text: "Hm.".into(), proof: Some(proof) },
        Part::Opaque(item),
        Part::Text("Hello".into()),
    ];
    let reply = ChatReply::new(parts.clone(), FinishReason::Stop);
    let body = render_reply(ClientDialect::Chat, &reply, &meta());
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let mut message = body["choices"][0]["message"].clone();
    message.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let turn = serde_json::json!({"model": "m", "messages": [message]});
    let request: ChatRequest = parse(turn.to_string()).request;
    assert_eq!(request.messages[0].parts, parts);
    assert_eq!(request.native, None, "the next target may be another one");

    // Streamed, the same.
    let mut stream: Vec<ReplyEvent> = vec![ReplyEvent::Reasoning("Hm.".into())];
    for part in &parts {
        match part {
            Part::Reasoning { proof: Some(proof), .. } => {
                stream.push(ReplyEvent::ReasoningProof(proof.clone()));
            }
            Part::Opaque(item) => stream.push(ReplyEvent::Opaque(item.clone())),
            _ => {}
        }
    }
    stream.push(ReplyEvent::Finish(FinishReason::Stop));
    insta::assert_snapshot!("chat_carried", rendered(ClientDialect::Chat, &stream));
}

#[test_case(r#"{"messages":[{"role":"user","content":"x"}]}"#, "model"; "no model")]
#[test_case(r#"{"model":7,"messages":[]}"#, "model"; "model is no text")]
#[test_case(r#"{"model":"m"}"#, "messages"; "no messages")]
#[test_case(r#"{"model":"m","messages":[]}"#, "messages"; "empty messages")]
#[test_case(r#"{"model":"m","messages":[{"content":"x"}]}"#, "messages[0].role"; "no role")]
#[test_case(r#"{"model":"m","messages":[{"role":"robot","content":"x"}]}"#, "messages[0].role"; "odd role")]
#[test_case(r#"{"model":"m","messages":[{"role":"user","content":7}]}"#, "messages[0].content"; "content is a number")]
#[test_case(r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}"#, "messages[0].content[0].text"; "part without text")]
#[test_case(r#"{"model":"m","messages":[{"role":"tool","content":"x"}]}"#, "messages[0].tool_call_id"; "result of no call")]
#[test_case(r#"{"model":"m","temperature":"hot","messages":[]}"#, "temperature"; "temperature is a text")]
#[test_case(r#"{"model":"m","max_tokens":-1,"messages":[]}"#, "max_tokens"; "negative bound")]
#[test_case(r#"{"model":"m","tools":[{"type":"function","function":{}}],"messages":[{"role":"user","content":"x"}]}"#, "tools[0].function.name"; "tool without a name")]
#[test_case(r#"{"model":"m","tool_choice":"maybe","messages":[{"role":"user","content":"x"}]}"#, "tool_choice"; "odd choice")]
#[test_case(r#"{"model":"m","response_format":{"type":"json_schema"},"messages":[{"role":"user","content":"x"}]}"#, "response_format.json_schema"; "no schema")]
fn faults_are_named(body: &'static str, field: &str) {
    let bad = parse_request(ClientDialect::Chat, &Bytes::from_static(body.as_bytes())).unwrap_err();
    assert_eq!(bad.field.as_deref(), Some(field), "{bad}");
    let (status, _) = render_error(ClientDialect::Chat, &bad.into());
    assert_eq!(status.as_u16(), 400);
}

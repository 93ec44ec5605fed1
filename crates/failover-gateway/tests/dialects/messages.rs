//! Anthropic's messages.

use crate::support::{Canned, meta, meta_of, opaque, open, pretty, read_stream, read_whole, rendered};
use bytes::{Bytes, BytesMut};
use failover_gateway::dialect::{
    ClientDialect, ErrorBody, ErrorKind, Inbound, StreamRenderer, parse_request, render_error, render_reply,
};
use failover_http::TargetConfig;
use failover_provider::{
    ChatReply, Dialect, Effort, FinishReason, Origin, Part, ReplyEvent, Role, ToolCall, ToolCallDelta, Usage,
};
use failover_provider_anthropic::Anthropic;
use failover_types::ProviderId;
use std::sync::Arc;
use test_case::test_case;

const REQUEST: &str = include_str!("requests/messages.json");

fn parse(body: impl Into<Bytes>) -> Inbound {
    parse_request(ClientDialect::Messages, &body.into()).unwrap()
}

fn adapter(transport: Arc<Canned>) -> Anthropic {
    let config = TargetConfig::new().base_url("http://peer.example/v1").transport(transport);
    Anthropic::new(ProviderId::new("anthropic").unwrap(), config).unwrap()
}

fn call(index: u32, arguments: &str, start: Option<&str>) -> ReplyEvent {
    let delta = ToolCallDelta::new(index, arguments);
    ReplyEvent::ToolCall(match start {
        Some(id) => delta.with_start(Some(id.into()), Some("look".into())),
        None => delta,
    })
}

fn proof() -> failover_provider::Opaque {
    let mut proof = opaque("anthropic", "signature", "\"EqQB\"");
    proof.home = Origin::new(ProviderId::new("anthropic").unwrap()).with_model("m").into();
    proof
}

fn events() -> Vec<ReplyEvent> {
    let mut usage = Usage::new(31, 17);
    usage.cached_input = Some(5);
    let mut redacted = opaque("anthropic", "redacted_thinking", r#"{"type":"redacted_thinking","data":"x"}"#);
    redacted.home = proof().home;
    vec![
        ReplyEvent::Usage(usage),
        ReplyEvent::Reasoning("Let me".into()),
        ReplyEvent::Reasoning(" see.".into()),
        ReplyEvent::ReasoningProof(proof()),
        ReplyEvent::Opaque(redacted),
        ReplyEvent::Text("Hé\"llo\n".into()),
        ReplyEvent::Text("world".into()),
        call(0, "", Some("toolu_a")),
        call(0, "{\"at\":", None),
        call(0, "1}", None),
        call(1, "", Some("toolu_b")),
        call(1, "{}", None),
        ReplyEvent::Usage(usage),
        ReplyEvent::Finish(FinishReason::ToolCalls),
    ]
}

// spec: G-1
#[test]
fn a_request_is_read_whole() {
    let mut inbound = parse(REQUEST);
    let native = inbound.request.native.take().unwrap();
    assert_eq!((native.dialect, native.body), (Dialect::AnthropicMessages, Bytes::from(REQUEST)));
    insta::assert_snapshot!("messages_request", pretty(&inbound.request));
    assert_eq!((inbound.model.as_str(), inbound.stream), ("main", true));
    insta::assert_debug_snapshot!("messages_hint", inbound.session_hint);
}

// spec: G-1
#[tokio::test]
async fn the_same_vendor_is_sent_what_the_client_wrote() {
    let mut request = parse(REQUEST).request;
    request.native = None;
    let peer = Canned::new(rendered(ClientDialect::Messages, &events()), "text/event-stream");
    open(&adapter(Arc::clone(&peer)), "anthropic/large", &request).await.unwrap();
    insta::assert_snapshot!("messages_sent", pretty(&peer.sent()));
}

// spec: G-1
#[test]
fn a_stream_is_written_as_the_vendor_writes_it() {
    insta::assert_snapshot!("messages_stream", rendered(ClientDialect::Messages, &events()));
}

// spec: G-1, G-5
#[tokio::test]
async fn what_is_streamed_is_read_back_by_the_adapter() {
    let stream = rendered(ClientDialect::Messages, &events());
    let (read, failure) =
        read_stream(&adapter(Canned::new(stream, "text/event-stream")), "anthropic/m").await;
    assert_eq!(failure, None);
    assert_eq!(read, events());
}

// spec: G-1, G-5
#[tokio::test]
async fn a_whole_answer_is_read_back_by_the_adapter() {
    let parts = vec![
        Part::Reasoning { text: "Hm.".into(), proof: Some(proof()) },
        Part::Reasoning { text: "Unproved.".into(), proof: None },
        Part::Text("Hello".into()),
        Part::ToolCall(ToolCall::new("toolu_a", "look", "{\"z\":1.50,\"a\":2}")),
    ];
    let reply = ChatReply::new(parts, FinishReason::Length).with_usage(Some(Usage::new(9, 4)));
    let body = render_reply(ClientDialect::Messages, &reply, &meta_of(ClientDialect::Messages));
    insta::assert_snapshot!("messages_reply", String::from_utf8(body.to_vec()).unwrap());
    let read = read_whole(&adapter(Canned::new(body, "application/json")), "anthropic/m").await;
    assert_eq!((&read.parts, &read.finish, read.usage), (&reply.parts, &reply.finish, reply.usage));
    assert_eq!(read.head.model.as_deref(), Some("acme/large"), "the model names who answered");
}

/// What the vendor's own tools were asked, and where a text is from, is told like the rest, and read back.
// spec: P-5, G-1
#[tokio::test]
async fn server_tools_and_citations_survive() {
    let own = |name: &str, json: &str| {
        let mut own = opaque("anthropic", name, json);
        own.home = proof().home;
        own
    };
    let asked = own(
        "server_tool_use",
        r#"{"id":"srvtoolu_1","input":{"query":"oslo"},"name":"web_search","type":"server_tool_use"}"#,
    );
    let from = own("citations", r#"[{"type":"web_search_result_location","url":"https://a.example"}]"#);
    let parts = vec![
        Part::Opaque(asked.clone()),
        Part::Text("Cold.".into()),
        Part::Opaque(from.clone()),
        Part::Text(" And dark.".into()),
    ];
    let events = [
        ReplyEvent::Opaque(asked),
        ReplyEvent::Text("Cold.".into()),
        ReplyEvent::Opaque(from),
        ReplyEvent::Text(" And dark.".into()),
        ReplyEvent::Usage(Usage::default()),
        ReplyEvent::Finish(FinishReason::Stop),
    ];
    let stream = rendered(ClientDialect::Messages, &events);
    assert!(
        stream.contains(r#"{"type":"citations_delta","citation":{"type":"web_search_result_location""#),
        "{stream}"
    );
    let (read, failure) =
        read_stream(&adapter(Canned::new(stream, "text/event-stream")), "anthropic/m").await;
    let read: Vec<_> = read.into_iter().filter(|event| !matches!(event, ReplyEvent::Usage(_))).collect();
    assert_eq!((read.len(), failure), (5, None), "{read:?}");
    assert_eq!((&read[..4], &read[4]), (&events[..4], &events[5]));
    let reply = ChatReply::new(parts, FinishReason::Stop);
    let body = render_reply(ClientDialect::Messages, &reply, &meta_of(ClientDialect::Messages));
    let read = read_whole(&adapter(Canned::new(body, "application/json")), "anthropic/m").await;
    assert_eq!(read.parts, reply.parts);
}

// spec: G-3
#[tokio::test]
async fn a_stream_that_fails_ends_as_an_error() {
    let mut renderer = StreamRenderer::new(ClientDialect::Messages, meta());
    let mut out = BytesMut::new();
    renderer.keep_alive(&mut out);
    renderer.push(&ReplyEvent::Text("Hel".into()), &mut out);
    renderer.fail(&ErrorBody::new(ErrorKind::Overloaded, "the upstream broke off"), &mut out);
    renderer.push(&ReplyEvent::Finish(FinishReason::Stop), &mut out);
    let text = String::from_utf8(out.to_vec()).unwrap();
    assert!(!text.contains("message_stop"), "no normal end");
    insta::assert_snapshot!("messages_failed", text);
    let (read, failure) = read_stream(&adapter(Canned::new(text, "text/event-stream")), "anthropic/m").await;
    assert_eq!(read.last(), Some(&ReplyEvent::Text("Hel".into())));
    assert!(String::from_utf8_lossy(&failure.unwrap().body).contains("the upstream broke off"));
}

/// Calls that a server mixes up come as one block after the other, whole.
#[tokio::test]
async fn blocks_do_not_overlap() {
    let mixed = [
        call(0, "{\"a\":", Some("toolu_a")),
        call(1, "{\"b\":", Some("toolu_b")),
        call(2, "", Some("toolu_c")),
        call(0, "[1", None),
        call(1, "2", None),
        call(0, "]}", None),
        call(1, "}", None),
        ReplyEvent::Finish(FinishReason::ToolCalls),
    ];
    let stream = rendered(ClientDialect::Messages, &mixed);
    let mut open_block = None;
    for line in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        match event["type"].as_str().unwrap() {
            "content_block_start" => assert_eq!(open_block.replace(event["index"].clone()), None),
            "content_block_delta" => assert_eq!(open_block.as_ref(), Some(&event["index"])),
            "content_block_stop" => assert_eq!(open_block.take().as_ref(), Some(&event["index"])),
            "message_stop" => assert_eq!(open_block, None),
            _ => {}
        }
    }
    let (read, _) = read_stream(&adapter(Canned::new(stream, "text/event-stream")), "anthropic/m").await;
    let mut arguments = vec![String::new(); 3];
    for event in read {
        if let ReplyEvent::ToolCall(delta) = event {
            arguments[delta.index as usize].push_str(&delta.arguments);
        }
    }
    assert_eq!(arguments, ["{\"a\":[1]}", "{\"b\":2}", ""]);
}

// spec: G-1
#[test]
fn proofs_and_items_of_other_vendors_find_their_way_back() {
    let parts = vec![
        Part::Reasoning { text: "Hm.".into(), proof: Some(opaque("acme", "thought_signature", "\"EqQB\"")) },
        Part::Opaque(opaque("acme", "plan", r#"{"z":1,"a":[]}"#)),
        Part::Reasoning { text: "Unproved.".into(), proof: None },
        Part::Text("Hello".into()),
    ];
    let reply = ChatReply::new(parts.clone(), FinishReason::Stop);
    let body = render_reply(ClientDialect::Messages, &reply, &meta_of(ClientDialect::Messages));
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let turn = serde_json::json!({"model": "m", "max_tokens": 1,
        "messages": [{"role": "assistant", "content": body["content"]}]});
    let request = parse(turn.to_string()).request;
    assert_eq!(request.messages[0].parts, parts);
    assert_eq!(request.native, None, "the next target may be another one");
}

#[test_case(r#"{"type":"enabled","budget_tokens":3999}"#, Some(Effort::High))]
#[test_case(r#"{"type":"enabled","budget_tokens":2000}"#, Some(Effort::Medium))]
#[test_case(r#"{"type":"enabled","budget_tokens":1000}"#, Some(Effort::Low))]
#[test_case(r#"{"type":"enabled","budget_tokens":100}"#, Some(Effort::Minimal))]
#[test_case(r#"{"type":"disabled"}"#, None)]
#[test_case(r#"{"type":"adaptive"},"output_config":{"effort":"low"}"#, Some(Effort::Low))]
fn thinking_is_an_effort(thinking: &str, expected: Option<Effort>) {
    let body = format!(
        r#"{{"model":"m","max_tokens":4000,"messages":[{{"role":"user","content":"x"}}],"thinking":{thinking}}}"#
    );
    assert_eq!(parse(body).request.effort, expected);
}

#[test]
fn results_are_messages_of_their_own_in_their_order() {
    let roles: Vec<Role> = parse(REQUEST).request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::User, Role::Assistant]);
}

#[test_case(r#"{"messages":[]}"#, "model"; "no model")]
#[test_case(r#"{"model":"m","messages":[]}"#, "messages"; "empty messages")]
#[test_case(r#"{"model":"m","messages":[{"role":"tool","content":"x"}]}"#, "messages[0].role"; "odd role")]
#[test_case(r#"{"model":"m","messages":[{"role":"user"}]}"#, "messages[0].content"; "no content")]
#[test_case(r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url"}}]}]}"#, "messages[0].content[0].source.url"; "image without address")]
#[test_case(r#"{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","content":7}]}]}"#, "messages[0].content[0].content"; "result is a number")]
#[test_case(r#"{"model":"m","system":7,"messages":[]}"#, "system"; "system is a number")]
#[test_case(r#"{"model":"m","messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"tool"}}"#, "tool_choice.name"; "choice without a name")]
#[test_case(r#"{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"name":"x","input_schema":[]}]}"#, "tools[0].input_schema"; "schema is a list")]
#[test_case(r#"{"model":"m","messages":[{"role":"user","content":"x"}],"metadata":{"user_id":7}}"#, "metadata.user_id"; "user is a number")]
fn faults_are_named(body: &'static str, field: &str) {
    let bad = parse_request(ClientDialect::Messages, &Bytes::from_static(body.as_bytes())).unwrap_err();
    assert_eq!(bad.field.as_deref(), Some(field), "{bad}");
    let (status, body) = render_error(ClientDialect::Messages, &bad.into());
    assert_eq!(status.as_u16(), 400);
    assert!(body.starts_with(br#"{"type":"error","error":{"type":"invalid_request_error""#));
}

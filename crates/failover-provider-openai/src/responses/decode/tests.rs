//! Events and whole answers, read.

use super::*;
use failover_http::replay;
use failover_types::ProviderId;
use proptest::prelude::*;
use test_case::test_case;

fn decoder() -> Decoder {
    Decoder::new(Origin::new(ProviderId::new("openai").unwrap()))
}

fn event(data: &str) -> SseEvent {
    let mut event = SseEvent::default();
    data.clone_into(&mut event.data);
    event
}

fn read(data: &[&str]) -> (Vec<ReplyEvent>, Answered) {
    let (mut decoder, mut answered) = (decoder(), Answered::default());
    for data in data {
        decoder.event(&event(data), &mut answered).unwrap();
    }
    (answered.ready.drain(..).collect(), answered)
}

#[test_case("completed", "null", &FinishReason::Stop)]
#[test_case("incomplete", r#"{"reason":"max_output_tokens"}"#, &FinishReason::Length; "length")]
#[test_case("incomplete", r#"{"reason":"content_filter"}"#, &FinishReason::ContentFilter; "filter")]
fn endings(status: &str, details: &str, expected: &FinishReason) {
    let response = format!(r#"{{"status":"{status}","incomplete_details":{details},"output":[]}}"#);
    let data = format!(r#"{{"type":"response.{status}","response":{response}}}"#);
    let (_, answered) = read(&[&data]);
    assert_eq!((answered.finish.as_ref(), answered.done), (Some(expected), true));
}

// spec: P-2, P-3
#[test_case(r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down"}"#; "error event")]
#[test_case(r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}"#; "failed")]
#[test_case(r#"{"error":{"message":"nested"}}"#; "error of a gateway")]
fn errors_are_faults_and_keep_their_text(data: &str) {
    assert_eq!(decoder().event(&event(data), &mut Answered::default()), Err(Fault::Error(data.to_owned())));
}

// spec: P-2
#[test_case(r#"{"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}"#; "failed")]
#[test_case(r#"{"status":"in_progress","output":[]}"#; "not over")]
#[test_case("{\"status\""; "no json")]
fn a_whole_answer_that_is_none_is_a_fault(body: &str) {
    assert!(matches!(decoder().whole(body, &mut Answered::default()), Err(Fault::Error(_))));
}

#[test]
fn servers_that_send_items_only_whole_are_understood() {
    let (events, answered) = read(&[
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#,
    ]);
    let call = ToolCallDelta::new(0, "{}").with_start(Some("c".into()), Some("f".into()));
    assert_eq!(events, [ReplyEvent::Text("ab".into()), ReplyEvent::ToolCall(call)]);
    assert_eq!(answered.finish, Some(FinishReason::ToolCalls));
    assert_eq!(answered.head.id.as_deref(), Some("r"));
}

#[test]
fn arguments_come_once_however_they_are_sent() {
    let added = r#"{"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}"#;
    let delta = r#"{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{}"}"#;
    let done = r#"{"type":"response.function_call_arguments.done","output_index":3,"arguments":"{}"}"#;
    let item = r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}"#;
    for data in [vec![added, delta, done, item], vec![added, done, item], vec![added, item]] {
        let text: String = read(&data)
            .0
            .iter()
            .filter_map(|event| {
                if let ReplyEvent::ToolCall(call) = event { Some(call.arguments.as_str()) } else { None }
            })
            .collect();
        assert_eq!(text, "{}", "{data:?}");
    }
}

// spec: P-2, P-5
#[test]
fn reasoning_is_kept_whole_and_is_no_answer_alone() {
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"eA=="}"#;
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    assert_eq!(read(&[&done]).0, []);
    let text = r#"{"type":"response.output_text.delta","output_index":1,"delta":"a"}"#;
    let (events, _) = read(&[&done, text]);
    let [ReplyEvent::ReasoningProof(proof), ReplyEvent::Text(_)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((proof.name.as_str(), proof.value.as_str()), (REASONING, item));
}

// spec: P-3
#[test]
fn a_malformed_event_is_skipped() {
    let (events, answered) =
        read(&["{\"type\":\"resp", r#"{"type":"response.output_text.delta","delta":"a"}"#]);
    assert_eq!((events, answered.finish), (vec![ReplyEvent::Text("a".into())], None));
}

// spec: P-5
#[test]
fn golden_answers() {
    for (name, text) in [
        ("reasoning_then_tool.sse", include_str!("answers/reasoning_then_tool.sse")),
        ("web_search.json", include_str!("answers/web_search.json")),
    ] {
        let answered = replay(decoder(), text, !name.contains(".json")).unwrap();
        insta::assert_snapshot!(name, answered.to_string());
    }
}

proptest! {
    #[test]
    fn any_event_is_harmless(data in "\\PC{0,80}", pieces in proptest::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("["), Just("]"), Just(":"), Just(","), Just("null"), Just("\"type\""),
        Just("\"response.output_item.done\""), Just("\"item\""), Just("\"output_index\""), Just("-1"), Just("\"x\"")
    ], 0..40)) {
        let (mut decoder, mut answered) = (decoder(), Answered::default());
        for data in [data, pieces.concat()] {
            // Whether it is a fault does not matter; that it does not panic does.
            let _ = decoder.event(&event(&data), &mut answered);
            let _ = decoder.whole(&data, &mut answered);
        }
    }
}

//! Events and whole answers, read.

use super::*;
use failover_http::replay;
use failover_provider::FinishReason;
use failover_types::ProviderId;
use proptest::prelude::*;
use test_case::test_case;

fn decoder() -> Decoder {
    Decoder::new(Origin::new(ProviderId::new("google").unwrap()), 7)
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

fn parts(parts: &str, finish: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"{finish}"}}]}}"#)
}

#[test_case("STOP", &FinishReason::Stop)]
#[test_case("MAX_TOKENS", &FinishReason::Length)]
#[test_case("SAFETY", &FinishReason::ContentFilter)]
#[test_case("RECITATION", &FinishReason::ContentFilter)]
#[test_case("LANGUAGE", &FinishReason::Other("LANGUAGE".into()))]
fn finish_reasons(word: &str, expected: &FinishReason) {
    assert_eq!(read(&[&parts(r#"{"text":"a"}"#, word)]).1.finish.as_ref(), Some(expected));
}

// spec: C-15
#[test_case("MALFORMED_FUNCTION_CALL")]
#[test_case("UNEXPECTED_TOOL_CALL")]
fn what_the_model_got_wrong_is_a_fault(word: &str) {
    let fault = decoder().event(&event(&parts("", word)), &mut Answered::default());
    assert_eq!(fault, Err(Fault::Finish(word.to_owned())));
}

#[test]
fn calls_get_ids_that_no_other_answer_gives() {
    let call = r#"{"functionCall":{"name":"look","args":{"at": 1}}}"#;
    let own = r#"{"functionCall":{"id":"own","name":"look"}}"#;
    let (events, answered) = read(&[
        r#"{"responseId":"r1","candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#,
        &parts(&format!("{call},{own},{call}"), "STOP"),
    ]);
    let calls: Vec<_> = events
        .iter()
        .filter_map(|event| {
            if let ReplyEvent::ToolCall(call) = event {
                Some((call.index, call.id.as_deref()?, call.arguments.as_str()))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(calls, [(0, "call_r1_0", "{\"at\": 1}"), (1, "own", "{}"), (2, "call_r1_2", "{\"at\": 1}")]);
    assert_eq!(answered.finish, Some(FinishReason::ToolCalls));
    let (events, _) = read(&[&parts(call, "STOP")]);
    assert!(matches!(&events[0], ReplyEvent::ToolCall(call) if call.id.as_deref() == Some("call_7_0")));
}

// spec: P-5
#[test]
fn signatures_stand_before_what_they_sign() {
    let (events, _) = read(&[&parts(
        r#"{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s1"},{"text":"","thoughtSignature":"s2"}"#,
        "STOP",
    )]);
    let [
        ReplyEvent::Reasoning(_),
        ReplyEvent::ReasoningProof(one),
        ReplyEvent::ToolCall(_),
        ReplyEvent::Opaque(two),
    ] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!((one.name.as_str(), one.value.as_str()), (SIGNATURE, "\"s1\""));
    assert_eq!(two.value.as_str(), r#"{"text":"","thoughtSignature":"s2"}"#);
}

// spec: P-2
#[test]
fn a_signature_alone_is_no_answer() {
    let signed = r#"{"text":"","thoughtSignature":"s"}"#;
    assert_eq!(read(&[&parts(signed, "STOP")]).0, []);
    let (events, _) = read(&[&parts(&format!(r#"{signed},{{"text":"a"}}"#), "STOP")]);
    assert!(matches!(events.as_slice(), [ReplyEvent::Opaque(_), ReplyEvent::Text(_)]), "{events:?}");
}

// spec: P-5
#[test]
fn parts_of_other_kinds_are_kept_whole() {
    let image = r#"{"thoughtSignature":"s","inlineData":{"mimeType":"image/png","data":"eA=="}}"#;
    let (events, _) = read(&[&parts(image, "STOP")]);
    let [ReplyEvent::Opaque(opaque)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((opaque.name.as_str(), opaque.value.as_str()), ("inlineData", image));
}

#[test]
fn usage_counts_thoughts_as_output() {
    let (events, _) = read(&[
        r#"{"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":2,"candidatesTokenCount":5,"thoughtsTokenCount":3,"cachedContentTokenCount":4}}"#,
    ]);
    let [ReplyEvent::Usage(usage)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((usage.input, usage.output, usage.cached_input, usage.reasoning), (12, 8, Some(4), Some(3)));
}

// spec: P-2
#[test_case(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#; "blocked prompt")]
#[test_case(r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#; "error in a stream")]
fn errors_are_faults_and_keep_their_text(data: &str) {
    assert_eq!(decoder().event(&event(data), &mut Answered::default()), Err(Fault::Error(data.to_owned())));
}

#[test]
fn a_list_of_pieces_is_one_answer() {
    let (mut decoder, mut answered) = (decoder(), Answered::default());
    let list = format!("[{},\n{}]", parts(r#"{"text":"a"}"#, ""), parts(r#"{"text":"b"}"#, "STOP"));
    decoder.whole(&list, &mut answered).unwrap();
    assert_eq!(answered.ready, [ReplyEvent::Text("a".into()), ReplyEvent::Text("b".into())]);
}

// spec: P-3
#[test]
fn a_malformed_event_is_skipped() {
    let (events, answered) = read(&["{\"candidates\":[{", &parts(r#"{"text":"a"}"#, "STOP")]);
    assert_eq!(events, [ReplyEvent::Text("a".into())]);
    assert_eq!(answered.finish, Some(FinishReason::Stop));
}

// spec: P-5
#[test]
fn golden_answers() {
    for (name, text) in [
        ("thinking_then_tools.sse", include_str!("answers/thinking_then_tools.sse")),
        ("code_and_image.json", include_str!("answers/code_and_image.json")),
    ] {
        let answered = replay(decoder(), text, !name.contains(".json")).unwrap();
        insta::assert_snapshot!(name, answered.to_string());
    }
}

proptest! {
    #[test]
    fn any_event_is_harmless(data in "\\PC{0,80}", pieces in proptest::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("["), Just("]"), Just(":"), Just(","), Just("null"), Just("\"candidates\""),
        Just("\"content\""), Just("\"parts\""), Just("\"functionCall\""), Just("-1"), Just("\"x\"")
    ], 0..40)) {
        let (mut decoder, mut answered) = (decoder(), Answered::default());
        for data in [data, pieces.concat()] {
            // Whether it is a fault does not matter; that it does not panic does.
            let _ = decoder.event(&event(&data), &mut answered);
            let _ = decoder.whole(&data, &mut answered);
        }
    }
}

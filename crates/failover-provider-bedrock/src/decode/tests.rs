//! Events and whole answers, read.

use super::*;
use failover_http::replay;
use failover_types::ProviderId;
use proptest::prelude::*;
use test_case::test_case;

fn decoder() -> Decoder {
    Decoder::new(Origin::new(ProviderId::new("amazon-bedrock").unwrap()))
}

fn event(kind: &str, data: &str) -> SseEvent {
    let mut event = SseEvent::default();
    kind.clone_into(&mut event.event);
    data.clone_into(&mut event.data);
    event
}

fn read(events: &[(&str, &str)]) -> (Vec<ReplyEvent>, Answered) {
    let (mut decoder, mut answered) = (decoder(), Answered::default());
    for (kind, data) in events {
        decoder.event(&event(kind, data), &mut answered).unwrap();
    }
    (answered.ready.drain(..).collect(), answered)
}

#[test_case("end_turn", &FinishReason::Stop)]
#[test_case("stop_sequence", &FinishReason::Stop)]
#[test_case("max_tokens", &FinishReason::Length)]
#[test_case("model_context_window_exceeded", &FinishReason::Length)]
#[test_case("tool_use", &FinishReason::ToolCalls)]
#[test_case("guardrail_intervened", &FinishReason::ContentFilter)]
#[test_case("content_filtered", &FinishReason::ContentFilter)]
#[test_case("pause", &FinishReason::Other("pause".into()))]
fn stop_reasons(word: &str, expected: &FinishReason) {
    assert_eq!(finish(word).as_ref(), Ok(expected));
}

// spec: C-15
#[test_case("malformed_tool_use")]
#[test_case("malformed_model_output")]
fn what_the_model_got_wrong_is_a_fault(word: &str) {
    assert_eq!(finish(word), Err(Fault::Finish(word.to_owned())));
}

// spec: P-5
#[test]
fn reasoning_is_kept_with_its_proof_whole_or_in_pieces() {
    let redacted = r#"{"reasoningContent":{"redactedContent":"eA=="}}"#;
    let whole = format!(
        r#"{{"output":{{"message":{{"content":[{{"reasoningContent":{{"reasoningText":{{"text":"hm","signature":"s"}}}}}},{redacted}]}}}}}}"#
    );
    let (mut decoder, mut answered) = (decoder(), Answered::default());
    decoder.whole(&whole, &mut answered).unwrap();
    let (pieces, _) = read(&[
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s"}}}"#),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"eA=="}}}"#,
        ),
    ]);
    assert_eq!(answered.ready, pieces);
    let [ReplyEvent::Reasoning(_), ReplyEvent::ReasoningProof(proof), ReplyEvent::Opaque(kept)] =
        pieces.as_slice()
    else {
        panic!("{pieces:?}")
    };
    assert_eq!((proof.name.as_str(), proof.value.as_str()), (SIGNATURE, "\"s\""));
    assert_eq!((kept.name.as_str(), kept.value.as_str()), (REASONING, redacted));
}

#[test]
fn calls_are_told_apart_by_their_blocks() {
    let (events, answered) = read(&[
        ("contentBlockStart", r#"{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{}"}}}"#),
        ("contentBlockStart", r#"{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"b","name":"g"}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"[]"}}}"#),
        ("messageStop", r#"{"stopReason":"tool_use"}"#),
    ]);
    let calls: Vec<_> = events
        .iter()
        .filter_map(|event| {
            if let ReplyEvent::ToolCall(call) = event {
                Some((call.index, call.arguments.as_str()))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(calls, [(0, ""), (0, "{}"), (1, ""), (1, "[]")]);
    assert_eq!((answered.finish, answered.done), (Some(FinishReason::ToolCalls), false));
}

#[test]
fn usage_counts_the_cache_as_input_and_ends_the_stream() {
    let counts =
        r#"{"usage":{"inputTokens":5,"outputTokens":9,"cacheReadInputTokens":20,"cacheWriteInputTokens":3}}"#;
    let (events, answered) = read(&[("metadata", counts)]);
    let [ReplyEvent::Usage(usage)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((usage.input, usage.cached_input, usage.output, answered.done), (28, Some(20), 9, true));
}

// spec: P-3
#[test]
fn a_malformed_event_is_skipped() {
    let (events, _) = read(&[
        ("contentBlockDelta", "{\"contentBlo"),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"a"}}"#),
    ]);
    assert_eq!(events, [ReplyEvent::Text("a".into())]);
}

// spec: P-5
#[test]
fn golden_answers() {
    for (name, text) in [
        ("reasoning_then_tool.sse", include_str!("answers/reasoning_then_tool.sse")),
        ("redacted.json", include_str!("answers/redacted.json")),
    ] {
        let answered = replay(decoder(), text, !name.contains(".json")).unwrap();
        insta::assert_snapshot!(name, answered.to_string());
    }
}

proptest! {
    #[test]
    fn any_event_is_harmless(data in "\\PC{0,80}", pieces in proptest::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("["), Just("]"), Just(":"), Just(","), Just("null"), Just("\"delta\""),
        Just("\"toolUse\""), Just("\"input\""), Just("\"contentBlockIndex\""), Just("-1"), Just("\"x\"")
    ], 0..40), kind in prop_oneof![Just("contentBlockDelta"), Just("contentBlockStart"), Just("metadata"), Just("")]) {
        let (mut decoder, mut answered) = (decoder(), Answered::default());
        for data in [data, pieces.concat()] {
            // Whether it is a fault does not matter; that it does not panic does.
            let _ = decoder.event(&event(kind, &data), &mut answered);
            let _ = decoder.whole(&data, &mut answered);
        }
    }
}

//! What the decoder makes of answers, whole and streamed.

use super::*;
use failover_http::replay;
use failover_types::ProviderId;
use proptest::prelude::*;
use test_case::test_case;

fn decoder() -> Decoder {
    Decoder::new(Origin::new(ProviderId::new("anthropic").unwrap()))
}

fn events(data: &[&str]) -> (Vec<ReplyEvent>, Answered) {
    let (mut decoder, mut answered) = (decoder(), Answered::default());
    for data in data {
        let mut event = SseEvent::default();
        (*data).clone_into(&mut event.data);
        decoder.event(&event, &mut answered).unwrap();
    }
    (answered.ready.drain(..).collect(), answered)
}

#[test_case("end_turn", &FinishReason::Stop)]
#[test_case("stop_sequence", &FinishReason::Stop)]
#[test_case("max_tokens", &FinishReason::Length)]
#[test_case("model_context_window_exceeded", &FinishReason::Length)]
#[test_case("tool_use", &FinishReason::ToolCalls)]
#[test_case("refusal", &FinishReason::ContentFilter)]
#[test_case("pause_turn", &FinishReason::Other("pause_turn".into()))]
fn stop_reasons(word: &str, expected: &FinishReason) {
    assert_eq!(finish(word), *expected);
}

// spec: P-5
#[test]
fn redacted_thinking_is_kept_whole_with_its_origin() {
    let block = r#"{"type":"redacted_thinking","data":"eA=="}"#;
    let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
    let (events, _) = events(&[&start]);
    let [ReplyEvent::Opaque(opaque)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((opaque.name.as_str(), opaque.value.as_str()), ("redacted_thinking", block));
    assert_eq!(opaque.origin().unwrap().provider.as_str(), "anthropic");
}

#[test]
fn counts_add_up_the_cache_and_are_cumulative() {
    let (events, _) = events(&[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
    ]);
    let Some(ReplyEvent::Usage(usage)) = events.last() else { panic!("{events:?}") };
    assert_eq!((usage.input, usage.cached_input, usage.output), (28, Some(20), 9));
}

// spec: P-3
#[test]
fn a_malformed_event_is_skipped() {
    let (events, answered) = events(&[
        "{\"type\":\"content_block_del",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
    ]);
    assert_eq!(events, [ReplyEvent::Text("a".into())]);
    assert_eq!(answered.finish, None);
}

// spec: P-5
#[test]
fn golden_answers() {
    for (name, text) in [
        ("thinking_then_tool.sse", include_str!("answers/thinking_then_tool.sse")),
        ("server_tool.sse", include_str!("answers/server_tool.sse")),
        ("server_tool.json", include_str!("answers/server_tool.json")),
    ] {
        let answered = replay(decoder(), text, !name.contains(".json")).unwrap();
        insta::assert_snapshot!(name, answered.to_string());
    }
}

proptest! {
    #[test]
    fn any_event_is_harmless(data in "\\PC{0,80}", pieces in proptest::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("["), Just("]"), Just(":"), Just(","), Just("null"), Just("\"type\""),
        Just("\"content_block_delta\""), Just("\"delta\""), Just("\"index\""), Just("-1"), Just("\"x\"")
    ], 0..40)) {
        let (mut decoder, mut answered) = (decoder(), Answered::default());
        for data in [data, pieces.concat()] {
            let mut event = SseEvent::default();
            event.data.clone_from(&data);
            // Whether it is a fault does not matter; that it does not panic does.
            let _ = decoder.event(&event, &mut answered);
            let _ = decoder.whole(&data, &mut answered);
        }
    }
}

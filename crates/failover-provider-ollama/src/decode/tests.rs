//! What the decoder makes of answers, whole and streamed.

use super::*;
use failover_http::replay;
use failover_types::ProviderId;
use proptest::prelude::*;
use test_case::test_case;

fn decoder() -> Decoder {
    Decoder::new(Origin::new(ProviderId::new("ollama").unwrap()))
}

fn line(data: &str) -> SseEvent {
    let mut event = SseEvent::default();
    data.clone_into(&mut event.data);
    event
}

#[test_case(Some("stop"), false, &FinishReason::Stop)]
#[test_case(None, false, &FinishReason::Stop; "not said")]
#[test_case(Some("stop"), true, &FinishReason::ToolCalls; "it called")]
#[test_case(Some("length"), true, &FinishReason::Length; "cut while calling")]
#[test_case(Some("load"), false, &FinishReason::Other("load".into()))]
fn done_reasons(word: Option<&str>, called: bool, expected: &FinishReason) {
    assert_eq!(finish(word, called), *expected);
}

// spec: P-3
#[test]
fn a_malformed_line_is_skipped_and_a_first_line_is_no_whole_answer() {
    let (mut decoder, mut answered) = (decoder(), Answered::default());
    decoder.event(&line("{\"message\":"), &mut answered).unwrap();
    let first = r#"{"model":"m","message":{"role":"assistant","content":"a"},"done":false}"#;
    decoder.event(&line(first), &mut answered).unwrap();
    assert_eq!(answered.ready, [ReplyEvent::Text("a".into())]);
    assert!(answered.finish.is_none() && !answered.done);
    assert!(decoder.whole(first, &mut answered).is_err());
}

// spec: P-5
#[test]
fn golden_answers() {
    for (name, text) in [
        ("thinking_then_tool.ndjson", include_str!("answers/thinking_then_tool.ndjson")),
        ("whole.json", include_str!("answers/whole.json")),
    ] {
        let answered = replay(decoder(), text, !name.contains(".json")).unwrap();
        insta::assert_snapshot!(name, answered.to_string());
    }
}

proptest! {
    #[test]
    fn any_line_is_harmless(data in "\\PC{0,80}", pieces in proptest::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("["), Just("]"), Just(":"), Just(","), Just("null"), Just("\"message\""),
        Just("\"tool_calls\""), Just("\"function\""), Just("\"done\""), Just("true"), Just("-1"), Just("\"x\"")
    ], 0..40)) {
        let (mut decoder, mut answered) = (decoder(), Answered::default());
        for data in [data, pieces.concat()] {
            // Whether it is a fault does not matter; that it does not panic does.
            let _ = decoder.event(&line(&data), &mut answered);
            let _ = decoder.whole(&data, &mut answered);
        }
    }
}

//! What the decoder makes of answers, whole and streamed.

use super::*;
use crate::facts::FACTS;
use crate::look::Glancer;
use failover_http::Look;
use failover_http::replay;
use failover_types::ProviderId;
use proptest::prelude::*;

fn decoder() -> Decoder {
    let origin = Origin::new(ProviderId::new("openrouter").unwrap());
    let facts = FACTS.iter().find(|facts| facts.id == "openrouter").unwrap();
    Decoder::new(origin, facts)
}

fn event(data: &str) -> SseEvent {
    let mut event = SseEvent::default();
    data.clone_into(&mut event.data);
    event
}

// spec: P-3
#[test]
fn a_malformed_event_is_skipped() {
    let (mut decoder, mut answered) = (decoder(), Answered::default());
    decoder.event(&event("{\"choices\":[{"), &mut answered).unwrap();
    let text = r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}"#;
    decoder.event(&event(text), &mut answered).unwrap();
    assert_eq!(answered.ready, [ReplyEvent::Text("a".into())]);
}

#[test]
fn a_proof_that_is_too_long_is_left_out_whole() {
    let (mut decoder, mut answered) = (decoder(), Answered::default());
    let item = format!(r#"{{"choices":[{{"delta":{{"reasoning_details":["{}"]}}}}]}}"#, "x".repeat(700_000));
    decoder.event(&event(&item), &mut answered).unwrap();
    decoder.event(&event(&item), &mut answered).unwrap();
    assert_eq!(decoder.take_proof(), None);
}

// spec: P-5
#[test]
fn golden_answers() {
    for (name, text) in [
        ("parallel_tools.sse", include_str!("answers/parallel_tools.sse")),
        ("openrouter_reasoning.sse", include_str!("answers/openrouter_reasoning.sse")),
        ("content_parts.json", include_str!("answers/content_parts.json")),
    ] {
        let answered = replay(decoder(), text, !name.contains(".json")).unwrap();
        insta::assert_snapshot!(name, answered.to_string());
    }
}

// spec: P-7
#[test]
fn what_mistral_thinks_is_reasoning_and_goes_back_as_it_came() {
    let decoder = || {
        let mistral = ProviderId::new("mistral").unwrap();
        Decoder::new(Origin::new(mistral.clone()), crate::facts::facts_for(&mistral))
    };
    let streamed = [
        r#"{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"..."}]}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}]}"#,
    ];
    let streamed = format!("data: {}\n\n", streamed.join("\n\ndata: "));
    let whole = r#"{"choices":[{"index":0,"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm..."}]},{"type":"text","text":"Yes."}]},"finish_reason":"stop"}]}"#;
    for (text, stream) in [(streamed.as_str(), true), (whole, false)] {
        let answered = replay(decoder(), text, stream).unwrap();
        let (mut thought, mut said, mut proof) = (String::new(), String::new(), String::new());
        for event in &answered.ready {
            if let ReplyEvent::Reasoning(more) = event {
                thought.push_str(more);
            } else if let ReplyEvent::Text(more) = event {
                said.push_str(more);
            } else if let ReplyEvent::ReasoningProof(own) = event {
                proof.push_str(own.value.as_str());
            }
        }
        assert_eq!((thought.as_str(), said.as_str()), ("Hm...", "Yes."));
        assert_eq!(proof, r#"{"thinking":[{"text":"Hm...","type":"text"}],"type":"thinking"}"#);
    }
}

proptest! {
    #[test]
    fn any_event_is_harmless(data in "\\PC{0,80}", pieces in proptest::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("["), Just("]"), Just(":"), Just(","), Just("null"), Just("\"choices\""),
        Just("\"delta\""), Just("\"content\""), Just("\"tool_calls\""), Just("\"index\""), Just("-1"), Just("\"x\"")
    ], 0..40)) {
        let (mut decoder, mut answered) = (decoder(), Answered::default());
        for data in [data, pieces.concat()] {
            // Whether it is a fault does not matter; that it does not panic does.
            let _ = decoder.event(&event(&data), &mut answered);
            let _ = decoder.whole(&data, &mut answered);
            let _ = Glancer::new(false).look("", &data, &mut answered);
        }
    }
}

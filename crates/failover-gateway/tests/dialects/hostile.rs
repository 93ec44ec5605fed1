//! Requests from clients that mean harm, or know no better: an answer, never a panic.

use bytes::Bytes;
use failover_gateway::dialect::{ClientDialect, parse_request, render_error};
use proptest::prelude::*;
use test_case::test_case;

const ALL: [ClientDialect; 3] = [ClientDialect::Chat, ClientDialect::Responses, ClientDialect::Messages];

const FIXTURES: [(ClientDialect, &str); 3] = [
    (ClientDialect::Chat, include_str!("requests/chat.json")),
    (ClientDialect::Responses, include_str!("requests/responses.json")),
    (ClientDialect::Messages, include_str!("requests/messages.json")),
];

fn deep(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

#[test_case(""; "nothing")]
#[test_case("null"; "null")]
#[test_case("[]"; "a list")]
#[test_case("{\"model\":\"m\",\"model\":\"n\",\"messages\":[],\"input\":\"x\"}"; "two models")]
#[test_case("{\"model\":\"m\",\"messages\":[],\"x\":1,\"x\":2}"; "a field twice")]
#[test_case("{\"model\":\"m\",\"temperature\":1e999,\"messages\":[]}"; "a number out of range")]
#[test_case("{\"model\":\"m\",\"max_tokens\":184467440737095516160,\"max_output_tokens\":184467440737095516160}"; "a huge count")]
#[test_case("{\"model\":\"m\""; "cut")]
#[test_case("{} {}"; "two bodies")]
fn refused(body: &'static str) {
    for dialect in ALL {
        let bad = parse_request(dialect, &Bytes::from_static(body.as_bytes())).unwrap_err();
        let (status, body) = render_error(dialect, &bad.into());
        assert_eq!(status.as_u16(), 400);
        assert!(serde_json::from_slice::<serde_json::Value>(&body).unwrap()["error"]["message"].is_string());
    }
}

#[test]
fn bytes_that_are_no_text() {
    for dialect in ALL {
        let bad = parse_request(dialect, &Bytes::from_static(b"{\"model\":\"\xff\"}")).unwrap_err();
        assert!(bad.message.contains("UTF-8"));
    }
}

#[test]
fn depth_is_harmless() {
    for depth in [100, 20_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"type\":", "}]"), ("[{\"content\":", "}]")] {
            let nested = deep(open, close, depth);
            for field in ["x", "messages", "input", "tool_choice", "system", "stop"] {
                let body = Bytes::from(format!("{{\"model\":\"m\",\"{field}\":{nested}}}"));
                for dialect in ALL {
                    // Whether it is taken does not matter here.
                    let _ = parse_request(dialect, &body);
                }
            }
        }
    }
}

/// Replaces the value that begins at one of the fixture's quotes, brackets or digits.
fn mangled(text: &str, at: usize, with: &str) -> String {
    let places: Vec<usize> = text
        .char_indices()
        .filter(|(_, c)| matches!(c, '"' | '{' | '[' | '0'..='9' | 't' | 'f' | 'n'))
        .map(|(at, _)| at)
        .collect();
    let at = places[at % places.len()];
    let rest = &text[at..];
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Box<serde_json::value::RawValue>>();
    let end = if matches!(values.next(), Some(Ok(_))) { values.byte_offset() } else { 1 };
    format!("{}{with}{}", &text[..at], &rest[end..])
}

proptest! {
    #[test]
    fn any_text_is_harmless(text in "\\PC{0,80}") {
        for dialect in ALL {
            let _ = parse_request(dialect, &Bytes::from(text.clone()));
        }
    }

    #[test]
    fn any_value_anywhere_is_harmless(at in 0usize..10_000, with in prop_oneof![
        Just("null"), Just("0"), Just("-1"), Just("1e999"), Just("1e400"), Just("true"), Just("\"\""), Just("\"x\""),
        Just("[]"), Just("{}"), Just("[null]"), Just("[[]]"), Just("{\"type\":null}"), Just("[{\"type\":\"x\"}]"),
        Just("\"\\ud800\""), Just("\"failover:{}\""), Just("99999999999999999999"), Just("{\"a\":1,\"a\":2}"), Just(""),
    ]) {
        for (dialect, text) in FIXTURES {
            let body = mangled(text, at, with);
            if let Err(bad) = parse_request(dialect, &Bytes::from(body)) {
                let (status, _) = render_error(dialect, &bad.into());
                prop_assert_eq!(status.as_u16(), 400);
            }
        }
    }
}

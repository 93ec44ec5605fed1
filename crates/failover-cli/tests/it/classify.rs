//! `failover classify`, above all the batch interface: its names and its order are a contract.

use crate::{Ended, binary, with_input};
use serde_json::{Value, json};
use std::path::Path;
use test_case::test_case;

fn batch(input: &[u8]) -> Ended {
    with_input(binary(Path::new("/nonexistent"), &["classify", "--jsonl", "-"]), input)
}

fn rows(ended: &Ended) -> Vec<Value> {
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row(line: &Value) -> Value {
    let ended = batch(line.to_string().as_bytes());
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    rows(&ended).remove(0)
}

// spec: C-2
#[test]
fn a_row_has_these_fields_in_this_order() {
    let ended = batch(br#"{"id":"a","provider":"openai","surface":"http","status":402,"headers":{"retry-after":"20"},"code":null,"body":null}"#);
    let start =
        r#"{"id":"a","reason":"billing","scope":"credential","retry_after_ms":20000,"reset_at":null,"rule":"#;
    assert!(ended.out.starts_with(start), "{ended:?}");
    assert!(ended.out.ends_with("\"layer\":\"status\",\"span\":null}\n"), "{ended:?}");
}

#[test]
fn malformed_lines_stand_in_their_place_and_the_rest_goes_on() {
    let ended = batch(b"{\"id\":1,\"status\":429}\nnonsense\n[1,null,null,429,null,null,null]\n\"x\"\nnull\n\n  \r\n{\"id\":2,\"status\":429}\n");
    assert_eq!(ended.code, Some(1));
    let rows = rows(&ended);
    let ids: Vec<&Value> = rows.iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, [&json!(1), &Value::Null, &Value::Null, &Value::Null, &Value::Null, &json!(2)]);
    assert!(rows.get(1..5).unwrap().iter().all(|row| row["error"].is_string()), "{ended:?}");
    assert!(ended.out.lines().nth(1).unwrap().starts_with("{\"id\":null,\"error\":"), "{ended:?}");
}

#[test_case("7"; "number")]
#[test_case("12345678901234567890123456789"; "a number beyond 64 bits")]
#[test_case("\"a\""; "text")]
#[test_case("null"; "null")]
#[test_case("[1,2]"; "list")]
#[test_case("{\"z\":1,\"a\":2}"; "object")]
fn an_id_comes_back_as_it_was(id: &str) {
    let ended = batch(format!("{{\"id\":{id},\"status\":500}}").as_bytes());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.starts_with(&format!("{{\"id\":{id},\"reason\":\"server_error\"")), "{ended:?}");
}

#[test_case(&json!("429"), "rate_limit"; "text")]
#[test_case(&json!(429.0), "rate_limit"; "float")]
#[test_case(&json!(null), "empty_response"; "null")]
#[test_case(&json!("none"), "empty_response"; "nonsense")]
#[test_case(&json!(-1), "empty_response"; "negative")]
#[test_case(&json!(70_000), "empty_response"; "too large")]
fn a_status_is_read_for_what_it_is_worth(status: &Value, reason: &str) {
    assert_eq!(row(&json!({ "status": status }))["reason"], reason);
}

// spec: C-20
#[test_case(&json!({ "Retry-After": "7" }); "object")]
#[test_case(&json!({ "Retry-After": 7 }); "number")]
#[test_case(&json!({ "Retry-After": ["7"] }); "lists in an object")]
#[test_case(&json!([["retry-after", "7"]]); "pairs")]
#[test_case(&json!([{ "name": "retry-after", "value": "7" }]); "named pairs")]
#[test_case(&json!([{ "retry-after": "7" }]); "small objects")]
#[test_case(&json!(["retry-after: 7"]); "lines in a list")]
#[test_case(&json!("x: y\r\nretry-after: 7\r\n"); "lines")]
fn headers_are_read_in_every_usual_shape(headers: &Value) {
    assert_eq!(row(&json!({ "status": 429, "headers": headers }))["retry_after_ms"], 7000);
}

#[test]
fn odd_fields_do_not_cost_the_verdict() {
    let odd = json!({
        "id": 1, "provider": 5, "surface": "moon", "status": [], "headers": 9, "code": {}, "more": 1,
        "body": "Rate limit reached",
    });
    assert_eq!(row(&odd)["reason"], "rate_limit");
    let nulls = json!({ "id": null, "provider": null, "surface": null, "status": null, "headers": null,
        "code": null, "body": null });
    assert_eq!(row(&nulls)["reason"], "empty_response");
    assert_eq!(row(&json!({ "code": 402 })), row(&json!({ "code": "402" })));
    let provider =
        |name: &str| row(&json!({ "provider": name, "status": 403, "body": "Key limit exceeded" }));
    assert_eq!(provider("OpenRouter"), provider("openrouter"));
}

// spec: C-2
#[test_case("{\"id\":1,\"body\":\"über: Rate limit reached\"}", "über: Rate limit reached"; "text, after an umlaut")]
#[test_case("{\"id\":1,\"body\":{ \"z\": 1, \"error\": \"Rate limit reached\" }}", "{ \"z\": 1, \"error\": \"Rate limit reached\" }"; "an object, as written")]
fn a_span_counts_bytes_of_the_body_as_given(line: &str, body: &str) {
    let rows = rows(&batch(line.as_bytes()));
    let at = |end: usize| usize::try_from(rows[0]["span"][end].as_u64().unwrap()).unwrap();
    assert_eq!(body.get(at(0)..at(1)), Some("Rate limit reached"));
}

// spec: C-22
#[test]
fn bytes_of_any_kind_are_harmless() {
    let mut input = b"\xEF\xBB\xBF{\"id\":1,\"status\":429}\r\n".to_vec();
    input.extend_from_slice(b"{\"id\":2,\"body\":\"\xFF\xFE Rate limit reached\"}\r\n");
    input.extend_from_slice(b"{\"id\":3,\"body\":\"\\udcff \\\\udcff \\ud83d\\ude00 Rate limit reached\"}\n");
    input.extend_from_slice(b"{\"id\":4,\"body\":\"");
    input.resize(input.len() + 10 * 1024 * 1024, b'x');
    input.extend_from_slice(b" Rate limit reached\"}\n{\"id\":5,\"body\":");
    input.extend_from_slice(&[b'['; 100]);
    input.extend_from_slice(b"\"Rate limit reached\"");
    input.extend_from_slice(&[b']'; 100]);
    input.extend_from_slice(b"}");
    let ended = batch(&input);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let reasons: Vec<Value> = rows(&ended).iter().map(|row| row["reason"].clone()).collect();
    assert_eq!(reasons, ["rate_limit"; 5]);
}

// spec: C-2, U-2
#[test]
fn one_signal_is_explained_from_flags_and_from_a_raw_response() {
    let home = Path::new("/nonexistent");
    let flags =
        ["classify", "--status", "429", "--header", "Retry-After: 3", "--body", "slow down", "--explain"];
    let flags = Ended::of(&binary(home, &flags).output().unwrap());
    assert!(flags.out.contains("rate_limit") && flags.out.contains("in 3 s"), "{flags:?}");
    assert!(flags.out.contains("rules that matched"), "{flags:?}");
    let raw = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\n\r\nslow down";
    let http = with_input(binary(home, &["classify", "--http", "--explain"]), raw);
    assert_eq!(http.out, flags.out);
    let piped = with_input(binary(home, &["classify", "--explain"]), raw);
    assert_eq!(piped.out, flags.out, "a response is known by its first line");
    let text = with_input(binary(home, &["classify"]), b"Rate limit reached, try again in 2.1s\n");
    assert!(text.out.contains("rate_limit") && text.out.contains("in 2.1 s"), "{text:?}");
}

#[test_case(&["classify"]; "nothing at all")]
#[test_case(&["classify", "--provider", "openai"]; "a provider says nothing of the failure")]
#[test_case(&["classify", "--status", "9999"]; "no such status")]
fn what_cannot_be_judged_is_a_usage_error(args: &[&str]) {
    let ended = with_input(binary(Path::new("/nonexistent"), args), b"");
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert!(!ended.err.is_empty());
}

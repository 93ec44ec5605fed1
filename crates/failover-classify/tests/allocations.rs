//! A failure that names no secret is classified without an allocation, once a thread has classified one before.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use allocation_counter::measure;
use failover_classify::{Cause, Classifier, Signal};
use test_case::test_case;

fn allocations(classifier: &Classifier, signal: &Signal<'_>) -> u64 {
    // The first reading of a thread gets its memory.
    classifier.classify(signal);
    let counts = measure(|| drop(classifier.classify(signal)));
    counts.count_total
}

const RATE: &str = r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000, Used 14567, Requested 24754. Please try again in 18.642s.","type":"tokens","code":"rate_limit_exceeded"}}"#;

#[test_case(Some(429), RATE; "rate limit with a wait")]
#[test_case(Some(529), r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#; "overloaded")]
#[test_case(Some(429), r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#; "billing")]
#[test_case(Some(400), r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens.","code":"context_length_exceeded"}}"#; "overflow")]
#[test_case(Some(401), r#"{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}"#; "key")]
#[test_case(Some(429), r#"{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34s"}]}}"#; "field with a wait")]
#[test_case(Some(429), r#"{"error":{"code":"1302","message":"您当前使用该API的并发数过高，请降低并发"}}"#; "chinese")]
#[test_case(None, "request to https://api.example.com/v1/chat failed, reason: connect ECONNREFUSED 10.0.0.12:443"; "transport")]
#[test_case(Some(502), "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"; "page")]
#[test_case(Some(418), r#"{"message":"the tea was not ready yet"}"#; "unknown")]
#[test_case(None, ""; "nothing")]
fn typical_failures_cost_no_allocation(status: Option<u16>, body: &str) {
    let classifier = Classifier::standard().unwrap();
    let headers = [("content-type", "application/json"), ("retry-after", "12")];
    let mut signal = Signal::default().with_body(body.as_bytes());
    if let Some(status) = status {
        signal = signal.with_status(status);
    }
    assert_eq!(allocations(&classifier, &signal), 0);
    assert_eq!(allocations(&classifier, &signal.with_headers(&headers).with_provider("openai")), 0);
}

#[test]
fn long_bodies_and_chains_cost_none_either() {
    let classifier = Classifier::standard().unwrap();
    let prose =
        "The quick brown fox jumps over the lazy dog, and the model was asked for a limit. ".repeat(1000);
    assert_eq!(allocations(&classifier, &Signal::text(&prose)), 0);
    let causes = [Cause::new("fetch failed"), Cause::new(RATE).with_status(429)];
    assert_eq!(allocations(&classifier, &Signal::text("Request was aborted.").with_causes(&causes)), 0);
}

#[test]
fn the_counter_counts() {
    let classifier = Classifier::standard().unwrap();
    let secret = "Incorrect API key provided: sk-proj-abcdefghijklmnop1234.";
    assert!(allocations(&classifier, &Signal::text(secret)) > 0);
}

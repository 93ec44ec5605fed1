//! Which border is which: the pairs of reasons that are easily taken for each other.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_classify::{Classifier, Signal, Surface};
use std::sync::LazyLock;
use test_case::test_case;

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(|| Classifier::standard().unwrap());

fn judged(status: Option<u16>, body: &str) -> (&'static str, &'static str) {
    let mut signal = match status {
        Some(_) => Signal::new(Surface::Http),
        None => Signal::new(Surface::SdkMessage),
    };
    signal.status = status;
    signal.body = body.as_bytes();
    let verdict = CLASSIFIER.classify(&signal);
    (verdict.reason.as_str(), verdict.scope.as_str())
}

// spec: C-4
#[test_case(Some(400), "", "unclassified"; "empty 400")]
#[test_case(Some(422), "", "unclassified"; "empty 422")]
#[test_case(None, "400 status code (no body)", "unclassified"; "a client's words for an empty 400")]
#[test_case(None, "Error: 422 status code (no body)", "unclassified"; "a client's words for an empty 422")]
#[test_case(None, "", "empty_response"; "neither status nor text")]
#[test_case(Some(200), "", "empty_response"; "an empty success")]
#[test_case(Some(400), r#"{"error":{"message":"temperature must be at most 2"}}"#, "format"; "a 400 that says why")]
fn an_empty_400_is_no_wrong_request(status: Option<u16>, body: &str, reason: &str) {
    assert_eq!(judged(status, body).0, reason);
}

// spec: C-15b
#[test_case("Usage limit reached, resets at 3pm", "rate_limit"; "a window heals by itself")]
#[test_case("You have used all credits of this plan. Upgrade to continue.", "billing"; "credits need a person")]
#[test_case("You are sending requests too quickly", "rate_limit"; "the caller's fault")]
#[test_case("429: the model is at capacity, try another", "overloaded"; "everybody's, also on a 429")]
#[test_case("413 Rate limit of 30000 tokens per minute exceeded", "rate_limit"; "tokens a minute")]
#[test_case("413 the prompt is longer than the context window", "context_overflow"; "tokens at all")]
#[test_case("certificate verify failed", "timeout"; "a broken transport")]
#[test_case("500 internal server error", "server_error"; "a bad answer")]
#[test_case("The API key has expired", "auth"; "a refused credential")]
#[test_case("The API key has been revoked", "auth_permanent"; "a credential that is gone")]
#[test_case("This model does not support tools", "model_not_found"; "what this model cannot do")]
#[test_case("400 messages: roles must alternate", "format"; "what no model accepts")]
#[test_case("the model returned an empty response", "empty_response"; "nothing came")]
#[test_case("Previous response with id resp_1 not found", "session_expired"; "what was remembered is gone")]
#[test_case("database is locked", "local_coordination"; "this machine")]
#[test_case("Request was aborted by the user", "aborted"; "the caller")]
fn borders_are_where_the_corpus_says(text: &str, reason: &str) {
    assert_eq!(judged(None, text).0, reason);
}

// spec: C-15b
#[test]
fn a_region_block_blames_the_provider_and_a_bare_block_page_is_the_server_s() {
    let region = r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}"#;
    assert_eq!(judged(Some(403), region), ("auth", "provider"));
    assert_eq!(
        judged(Some(403), "<html><title>Attention Required! | Cloudflare</title></html>"),
        ("server_error", "provider")
    );
    assert_eq!(judged(Some(403), "error code: 1020"), ("server_error", "provider"));
}

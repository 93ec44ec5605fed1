//! A handful of cases of every kind, the conflicts that the order of precedence settles, and what wrapping must not change.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_classify::{Cause, Classifier, Family, OperatorRule, RetryWhen, Signal, Surface, Tier};
use failover_types::{FailoverReason, Scope, Timestamp};
use proptest::prelude::*;
use std::sync::LazyLock;
use std::time::Duration;
use test_case::test_case;

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(|| Classifier::standard().unwrap());

/// Texts that stand for their kind, without a status.
const TEXTS: &[(&str, &str)] = &[
    (
        "rate_limit",
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 14567, Requested 24754. Please try again in 18.642s.",
    ),
    ("rate_limit", "Too many concurrent requests, please slow down"),
    ("overloaded", "The model is overloaded. Please try again later."),
    ("overloaded", "当前分组上游负载已饱和，请稍后再试"),
    ("billing", "Your credit balance is too low to access the API."),
    ("billing", "Insufficient Balance"),
    ("billing", "残高が不足しています"),
    ("auth", "Incorrect API key provided: sk-abc. You can find your API key at https://example.com"),
    ("auth", "Ungültiger API-Schlüssel"),
    ("auth_permanent", "This organization has been disabled."),
    ("model_not_found", "The model `gpt-9` does not exist or you do not have access to it."),
    ("model_not_found", "模型不存在，请检查模型代码"),
    (
        "context_overflow",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    ),
    ("context_overflow", "prompt is too long: 201234 tokens > 200000 maximum"),
    ("content_refusal", "Your request was rejected as a result of our safety system."),
    ("session_expired", "No conversation found with session ID: a2e8c8c3"),
    ("timeout", "upstream request timed out after 60s"),
    ("timeout", "read tcp 10.0.0.1:443: connection reset by peer"),
    ("server_error", "The server had an error while processing your request. Sorry about that!"),
    ("empty_response", "The model returned an empty response"),
    ("no_error_details", "Unknown error (no error details in response)"),
];

fn reason_of(signal: &Signal<'_>) -> &'static str {
    CLASSIFIER.classify(signal).reason.as_str()
}

// spec: C-6, C-7, C-8, C-9, C-11, C-12, C-13, C-14, C-15, C-18
#[test]
fn texts_mean_what_they_say() {
    for (reason, text) in TEXTS {
        let verdict = CLASSIFIER.classify(&Signal::text(text));
        assert_eq!(verdict.reason.as_str(), *reason, "{text} by {}", verdict.evidence.rule);
    }
}

// spec: R-5
#[test_case("messages.1.content.0: Invalid `signature` in `thinking` block", true)]
#[test_case(
    "messages.3.content.0: `thinking` blocks in the latest assistant message cannot be modified",
    true
)]
#[test_case("The reasoning item rs_0a1b was sealed with another key and is not readable here.", true)]
#[test_case("temperature: Input should be less than or equal to 1", false)]
#[test_case("Expected `thinking` or `redacted_thinking`, but found `tool_use`", false; "one that is wanted")]
#[test_case("No conversation found with session ID: a2e8c8c3", false)]
fn a_proof_that_is_refused_is_told_from_other_faults(message: &str, expected: bool) {
    let body = format!(r#"{{"error":{{"type":"invalid_request_error","message":"{message}"}}}}"#);
    let verdict =
        CLASSIFIER.classify(&Signal::new(Surface::Http).with_status(400).with_body(body.as_bytes()));
    assert_eq!(verdict.refuses_a_proof(), expected, "by {}", verdict.evidence.rule);
}

// spec: C-3, C-10, C-11, C-16
#[test_case(Some("openai"), 429, r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#, "billing"; "openai quota")]
#[test_case(None, 500, r#"{"error":{"message":"internal error: insufficient balance"}}"#, "billing"; "balance in an internal error")]
#[test_case(Some("google"), 429, r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"33s"}]}}"#, "rate_limit"; "gemini retry info")]
#[test_case(None, 403, r#"{"error":{"message":"Payment required: add credits to your account"}}"#, "billing"; "billing at 403")]
#[test_case(None, 402, r#"{"error":"weekly usage limit exhausted, resets tomorrow"}"#, "rate_limit"; "window at 402")]
#[test_case(Some("openrouter"), 403, r#"{"error":{"message":"Key limit exceeded (daily limit)","code":403}}"#, "billing"; "openrouter key limit")]
#[test_case(Some("groq"), 403, r#"{"error":{"message":"Key limit exceeded (daily limit)","code":403}}"#, "auth"; "key limit of another provider")]
#[test_case(None, 403, "Key limit exceeded", "auth"; "key limit of nobody")]
#[test_case(Some("openai"), 400, r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","code":"unsupported_value"}}"#, "model_not_found"; "a value that this model does not take")]
#[test_case(Some("openai"), 400, r#"{"error":{"message":"Unsupported parameter: 'reasoning_effort' is not supported with this model.","code":"unsupported_parameter"}}"#, "model_not_found"; "a parameter that this model does not take")]
#[test_case(Some("anthropic"), 400, r#"{"error":{"type":"invalid_request_error","message":"`temperature` is deprecated for this model."}}"#, "model_not_found"; "a parameter that is deprecated")]
#[test_case(Some("anthropic"), 400, r#"{"error":{"type":"invalid_request_error","message":"`temperature` and `top_p` cannot both be specified for this model. Please use only one."}}"#, "model_not_found"; "two parameters")]
#[test_case(Some("openai"), 400, r#"{"error":{"message":"Unsupported value: 'temperature' must be at most 2.","code":"unsupported_value"}}"#, "format"; "a value that nobody takes")]
#[test_case(Some("anthropic"), 400, r#"{"error":{"type":"invalid_request_error","message":"`temperature` and `top_p` cannot both be specified."}}"#, "format"; "two parameters anywhere")]
#[test_case(None, 413, r#"{"error":{"message":"Request too large on tokens per minute (TPM): Limit 6000, Requested 6294"}}"#, "rate_limit"; "tokens a minute at 413")]
#[test_case(None, 413, "<html><head><title>413 Request Entity Too Large</title></head></html>", "context_overflow"; "page 413")]
#[test_case(None, 403, "<html><head><title>Just a moment...</title><style>.quota{insufficient balance}</style></head></html>", "server_error"; "challenge page")]
#[test_case(None, 400, "", "unclassified"; "bare 400")]
#[test_case(None, 429, r#"{"error":{"message":"the model is at capacity","code":"rate_limit_exceeded"}}"#, "overloaded"; "capacity at 429")]
fn conflicts_are_settled(provider: Option<&str>, status: u16, body: &str, reason: &str) {
    let mut signal = Signal::new(Surface::Http).with_status(status).with_body(body.as_bytes());
    if let Some(provider) = provider {
        signal = signal.with_provider(provider);
    }
    let explanation = CLASSIFIER.explain(&signal);
    assert_eq!(explanation.verdict.reason.as_str(), reason, "{explanation:#?}");
}

// spec: C-16
#[test_case("openrouter", "timeout")]
#[test_case("groq", "unclassified")]
fn a_row_of_a_provider_is_silent_for_others(provider: &str, reason: &str) {
    assert_eq!(reason_of(&Signal::text("Provider returned error").with_provider(provider)), reason);
}

// spec: C-5
#[test_case("acme.errors.QuotaDepletedError: InsufficientCreditsError", "billing"; "beside a class that nobody knows")]
#[test_case("GoUsageLimitError: call failed", "rate_limit"; "behind the name of whose it is")]
#[test_case("Dify PluginInvokeError: {}\nInvokeServerUnavailableError\n", "server_error"; "at the end of a line")]
#[test_case("LlmError::Overloaded", "overloaded"; "a variant")]
#[test_case("FileNotFoundError: call failed", "local_coordination"; "a file is no model")]
#[test_case("ModuleNotFoundError: call failed", "local_coordination"; "a module is no model")]
fn names_of_classes_are_codes(text: &str, reason: &str) {
    assert_eq!(reason_of(&Signal::new(Surface::SdkMessage).with_body(text.as_bytes())), reason);
}

// spec: C-5, C-6c, C-17
#[test_case("req_0142950312 took 429 tokens on 2024-04-29"; "numbers elsewhere")]
#[test_case("LLM request failed with an unknown error."; "own fallback text")]
#[test_case("The vendor's API has a rate limit of 100 calls a minute."; "prose")]
#[test_case(r#"{"role":"tool","content":"Error: insufficient balance, rate limit reached"}"#; "tool output")]
fn what_is_no_error_is_left_alone(text: &str) {
    assert_eq!(reason_of(&Signal::text(text)), "unclassified");
}

// spec: C-6b, C-14
#[test]
fn a_request_larger_than_the_limit_blames_the_request() {
    let text = "Request too large for model on tokens per minute (TPM): Limit 8000, Requested 8098, please reduce your message size";
    let verdict = CLASSIFIER.classify(&Signal::text(text));
    assert_eq!((verdict.reason, verdict.scope), (FailoverReason::RateLimit, Scope::Request));
    let tokens = verdict.tokens.unwrap();
    assert_eq!((tokens.observed, tokens.allowed), (Some(8098), Some(8000)));
}

// spec: C-2
#[test]
fn the_span_is_what_matched() {
    let body = "{\"error\": {\"message\": \"Your account has INSUFFICIENT\\n balance\"}}";
    let verdict =
        CLASSIFIER.classify(&Signal::new(Surface::Http).with_status(403).with_body(body.as_bytes()));
    let (start, end) = verdict.evidence.span.unwrap();
    assert_eq!(&body[start..end], "INSUFFICIENT\\n balance");
    let nothing = CLASSIFIER.classify(&Signal::text("zxcv"));
    assert_eq!((&*nothing.evidence.rule, nothing.evidence.span), ("core/unclassified", None));
}

// spec: C-19
#[test]
fn chains_are_read_from_the_outside() {
    let timeout = [Cause::new("TimeoutError: the request timed out")];
    let abort = Signal::text("AbortError: This operation was aborted");
    assert_eq!(reason_of(&abort), "aborted");
    assert_eq!(reason_of(&abort.with_causes(&timeout)), "timeout");
    let lock = Signal::new(Surface::Local).with_body(b"session file locked (timeout 60000ms)");
    assert_eq!(reason_of(&lock), "local_coordination");
    let told = [Cause::new("Too many requests").with_status(429)];
    assert_eq!(reason_of(&lock.with_causes(&told)), "rate_limit");
    let endless = [Cause::new("wrapped"); 400];
    assert_eq!(reason_of(&Signal::text("outer").with_causes(&endless)), "unclassified");
    assert_eq!(reason_of(&Signal::new(Surface::Cancelled).with_body(b"Rate limit reached")), "aborted");
}

// spec: C-19
#[test]
fn what_a_cause_said_has_no_span_in_the_body() {
    let causes = [Cause::new("upstream said: rate limit exceeded"), Cause::new("429 Too Many Requests")];
    for body in ["是指", "outer error: connection reset by peer", "Rate limit exceeded"] {
        let rules = [OperatorRule::new("own", FailoverReason::RateLimit).with_contains("many requests")];
        let classifier = Classifier::standard().unwrap().with_operator_rules(&rules).unwrap();
        let explanation = classifier.explain(&Signal::text(body).with_causes(&causes));
        assert!(explanation.matched.len() > 2, "{body}");
        for (start, end) in explanation.matched.iter().filter_map(|found| found.span) {
            assert!(body.get(start..end).is_some(), "{body}: {start}..{end}");
        }
    }
}

// spec: C-20
#[test_case("usage limit reached|1755615600", None, Some(1_755_615_600_000))]
#[test_case("Rate limit exceeded. Retrying in 5 seconds (attempt 2/10)", None, None)]
#[test_case("Rate limit exceeded, please retry after 7m12.5s", Some(432_500), None)]
#[test_case("请求过于频繁，请在 30 秒后重试", Some(30_000), None)]
#[test_case("Rate limit exceeded. Please retry after 2026-12-01T03:00:00Z.", None, Some(1_796_094_000_000); "a time after after")]
#[test_case("Rate limit exceeded. Try again after 2026-12-01T03:00:00.5Z", None, Some(1_796_094_000_500); "a time with a fraction")]
#[test_case("Rate limit exceeded. Please retry your request after 2026-12-01T03:00:00Z.", None, Some(1_796_094_000_000); "a time after a request")]
#[test_case(
    r#"{"error":{"message":"Rate limit reached. Please retry after 2026-12-01T03:00:00Z.","type":"rate_limit_exceeded"}}"#,
    None,
    Some(1_796_094_000_000); "a time in a message"
)]
#[test_case("Rate limit exceeded, retry after 60-90 seconds", Some(60_000), None; "a range is no date")]
#[test_case("Rate limit exceeded: retry-after: 99999999. Please try again in 20s", Some(20_000), None; "a field of nonsense")]
#[test_case("Rate limit exceeded, retry after 99999999 seconds or try again in 20s", Some(20_000), None; "a text of nonsense")]
#[test_case("429 Resource has been exhausted (e.g. check quota). [retry_delay {\n  seconds: 34\n}\n]", Some(34_000), None; "a message of python")]
#[test_case("429 Resource has been exhausted (e.g. check quota). retry_delay {\n  seconds: 1\n  nanos: 500000000\n}", Some(1_500), None; "a message with nanos")]
#[test_case(r#"{"error":{"status":"RESOURCE_EXHAUSTED","message":"rate limit exceeded","retryDelay":{"seconds":7}}}"#, Some(7_000), None; "a message in json")]
#[test_case(
    r#"{"error":{"type":"usage_limit_reached","resets_at":1777936568,"resets_in_seconds":13872}}"#,
    Some(13_872_000),
    Some(1_777_936_568_000)
)]
fn hints_are_the_provider_s_own_words(text: &str, after: Option<u64>, at: Option<u64>) {
    let hint = CLASSIFIER.classify(&Signal::text(text)).hint;
    assert_eq!(
        hint.as_ref().and_then(failover_classify::RetryHint::after).map(failover_types::millis),
        after
    );
    assert_eq!(hint.as_ref().and_then(failover_classify::RetryHint::at).map(Timestamp::as_millis), at);
}

// spec: C-20
#[test_case("retry after 2026-12-01", 1_796_083_200_000; "a date")]
#[test_case("try again after 2026-12-01 03:00:00 UTC", 1_796_094_000_000; "a date and a time of day")]
#[test_case("retry after 1 December 2026", 1_796_083_200_000; "a month in words")]
#[test_case("try again after 5 pm UTC", 1_796_058_000_000; "a time of day")]
fn a_date_is_no_count_of_seconds(text: &str, wanted: u64) {
    let body = format!("Rate limit exceeded, {text}.");
    let hint = CLASSIFIER.classify(&Signal::text(&body)).hint.unwrap();
    assert_eq!(
        hint.resolve(Timestamp::from_millis(1_796_040_000_000)).map(Timestamp::as_millis),
        Some(wanted),
        "{hint:?}"
    );
}

// spec: C-20
#[test]
fn windows_of_headers_give_a_wait_for_rate_limits_only() {
    let headers = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "6m0s"),
        ("ratelimit", "\"a\";r=0;t=9"),
    ];
    for (status, expected) in [(500, None), (529, None), (402, None), (429, Some(Duration::from_mins(6)))] {
        let signal = Signal::new(Surface::Http).with_status(status).with_headers(&headers);
        let hint = CLASSIFIER.classify(&signal).hint;
        assert_eq!(hint.and_then(|hint| hint.after()), expected, "{status}");
    }
    let open = [
        ("anthropic-ratelimit-unified-7d-reset", "1796094000"),
        ("anthropic-ratelimit-unified-7d-status", "allowed"),
        ("anthropic-ratelimit-unified-reset", "1796094000"),
        ("anthropic-ratelimit-unified-status", "allowed_warning"),
    ];
    let signal = Signal::new(Surface::Http).with_status(429).with_headers(&open);
    assert_eq!(CLASSIFIER.classify(&signal).hint, None);
    let text = b"Rate limit reached. Please try again in 20s";
    let nonsense = [("retry-after", "99999999")];
    let signal = Signal::new(Surface::Http).with_status(429).with_headers(&nonsense).with_body(text);
    assert_eq!(CLASSIFIER.classify(&signal).hint.unwrap().after(), Some(Duration::from_secs(20)));
}

// spec: C-9
#[test]
fn every_status_of_a_server_is_known() {
    for status in (500..600).filter(|status| !matches!(status, 504 | 522 | 524 | 529 | 598 | 599)) {
        let signal = Signal::new(Surface::Http).with_status(status).with_body(b"{}");
        assert_eq!(reason_of(&signal), "server_error", "{status}");
    }
}

// spec: C-20
#[test]
fn nonsense_hints_resolve_to_nothing() {
    let now = Timestamp::from_millis(1_767_268_800_000);
    let far = failover_classify::RetryHint::new(RetryWhen::After(Duration::from_hours(32 * 24)), "text");
    let past = failover_classify::RetryHint::new(RetryWhen::At(Timestamp::from_millis(5)), "text");
    let near = failover_classify::RetryHint::new(RetryWhen::After(Duration::from_secs(5)), "text");
    assert_eq!((far.resolve(now), past.resolve(now)), (None, None));
    assert_eq!(near.resolve(now), Some(now.after(Duration::from_secs(5))));
}

// spec: C-21
#[test]
fn rules_of_an_operator_come_right_after_the_local_tier() {
    let rules = [OperatorRule::new("house-proxy", FailoverReason::Overloaded)
        .with_contains("Insufficient balance")
        .with_status(500)];
    let classifier = Classifier::standard().unwrap().with_operator_rules(&rules).unwrap();
    let signal = Signal::new(Surface::Http).with_status(500).with_body(b"insufficient  BALANCE");
    let verdict = classifier.classify(&signal);
    assert_eq!(verdict.evidence.rule, "operator/house-proxy");
    assert_eq!((verdict.reason, verdict.evidence.tier), (FailoverReason::Overloaded, Tier::Operator));
    let cancelled = Signal::new(Surface::Cancelled).with_status(500).with_body(b"insufficient balance");
    assert_eq!(classifier.classify(&cancelled).reason, FailoverReason::Aborted);
}

// spec: C-21, C-5
#[test_case(
    "^quota for .* is gone$",
    r#"{"error":{"message":"Quota for \"x\" is gone"}}"#,
    Some(r#"Quota for \"x\" is gone"#)
)]
#[test_case(
    "for \"x\" is",
    r#"429 {"error":{"message":"Quota for \"x\" is gone"}}"#,
    Some(r#"Quota for \"x\" is gone"#)
)]
#[test_case("\"code\": ?\"e7", r#"{"code": "E7"}"#, Some(r#""code": "E7"#); "as it came")]
#[test_case("^quota$", r#"{"error":{"message":"Quota for x"}}"#, None)]
fn an_expression_reads_the_body_and_its_strings(regex: &str, body: &str, expected: Option<&str>) {
    let rules = [OperatorRule::new("house", FailoverReason::AuthPermanent).with_regex(regex)];
    let classifier = Classifier::standard().unwrap().with_operator_rules(&rules).unwrap();
    let verdict =
        classifier.classify(&Signal::new(Surface::Http).with_status(429).with_body(body.as_bytes()));
    let found = (verdict.evidence.rule == "operator/house").then(|| verdict.evidence.span.unwrap());
    assert_eq!(found.map(|(start, end)| &body[start..end]), expected);
}

// spec: C-16, C-21
#[test_case("openai", true)]
#[test_case("openai-local", false)]
fn a_rule_of_an_operator_is_for_the_provider_that_it_names(provider: &str, holds: bool) {
    let rules = [OperatorRule::new("house", FailoverReason::AuthPermanent).with_provider("OpenAI")];
    let classifier = Classifier::standard().unwrap().with_operator_rules(&rules).unwrap();
    let verdict = classifier.classify(&Signal::new(Surface::Http).with_status(429).with_provider(provider));
    assert_eq!(verdict.evidence.rule == "operator/house", holds);
}

// spec: C-21
#[test_case(OperatorRule::new("Bad Id", FailoverReason::Auth).with_status(500), "id")]
#[test_case(OperatorRule::new("empty", FailoverReason::Auth), "id")]
#[test_case(OperatorRule::new("regex", FailoverReason::Auth).with_regex("("), "regex")]
#[test_case(OperatorRule::new("regex", FailoverReason::Auth).with_regex("(no credit)?"), "regex")]
#[test_case(OperatorRule::new("status", FailoverReason::Auth).with_status(42), "status")]
fn broken_rules_of_an_operator_are_refused(rule: OperatorRule, field: &str) {
    let error = Classifier::standard().unwrap().with_operator_rules(&[rule]).unwrap_err();
    assert_eq!(error.field, field);
}

// spec: C-23
#[test]
fn evidence_holds_no_secret() {
    let body = "Incorrect API key provided: sk-proj-abcdefghij0123456789. Contact jane@example.com";
    let verdict = CLASSIFIER.classify(&Signal::text(body));
    let written = serde_json::to_string(&verdict).unwrap();
    assert!(!written.contains("abcdefghij") && !written.contains("jane@"), "{written}");
}

// spec: C-22
#[test]
fn huge_and_deep_bodies_are_harmless() {
    let deep = "[".repeat(100_000);
    let huge = vec![b'a'; 10 * 1024 * 1024];
    let mut ends = huge.clone();
    ends.extend_from_slice(b" insufficient balance");
    assert_eq!(reason_of(&Signal::text(&deep)), "unclassified");
    assert_eq!(reason_of(&Signal::new(Surface::Http).with_body(&huge)), "unclassified");
    assert_eq!(reason_of(&Signal::new(Surface::Http).with_body(&ends)), "billing");
}

// spec: C-3, C-16
#[test]
fn the_table_is_sound() {
    for rule in CLASSIFIER.rows() {
        assert!(!rule.evidence.is_empty(), "{}", rule.id);
        assert!(rule.id.starts_with("core/") || !rule.matcher.providers.is_empty(), "{}", rule.id);
    }
    let order: Vec<(Tier, Family)> = CLASSIFIER.rows().map(|rule| (rule.tier, rule.family)).collect();
    assert!(order.is_sorted());
}

// spec: C-3
#[test]
fn rows_of_one_family_agree() {
    for (_, text) in TEXTS {
        let matched = CLASSIFIER.explain(&Signal::text(text)).matched;
        let first = matched.first().unwrap();
        for other in matched.iter().filter(|other| (other.tier, other.family) == (first.tier, first.family)) {
            assert_eq!(other.reason, first.reason, "{} and {} on {text}", first.rule, other.rule);
        }
    }
}

/// Wraps a text the way clients, proxies and logs do.
fn wrap(text: &str, how: u8) -> String {
    let json = |text: &str| serde_json::json!({ "error": { "message": text } }).to_string();
    match how {
        0 => format!("Error: {text}"),
        1 => json(text),
        2 => json(&json(text)),
        3 => json(&json(&json(text))),
        4 => format!("event: error\ndata: {}\n\n", json(text)),
        5 => format!("  {}\n", text.replace(". ", ".\n    ")),
        6 => format!("openai.APIError: {text} | cause: Error: {text}"),
        7 => format!("Error code: 418 - {{'error': {{'message': \"{text}\", 'param': None}}}}"),
        8 => format!("Unhandled rejection {text}\n    at Object.<anonymous> (/app/index.js:10:15)"),
        _ => text.to_uppercase(),
    }
}

proptest! {
    // spec: C-5, C-19
    #[test]
    fn wrapping_keeps_the_meaning(case in 0..TEXTS.len(), how in 0..9_u8) {
        let (reason, text) = TEXTS[case];
        let plain = CLASSIFIER.classify(&Signal::text(text));
        let wrapped = wrap(text, how);
        let verdict = CLASSIFIER.classify(&Signal::text(&wrapped));
        prop_assert_eq!(verdict.reason.as_str(), reason, "{} by {}", wrapped, verdict.evidence.rule);
        prop_assert_eq!(verdict.scope, plain.scope);
        prop_assert_eq!(verdict.hint, plain.hint);
    }

    // spec: C-1, C-2, C-22
    #[test]
    fn any_bytes_give_one_verdict(body in proptest::collection::vec(any::<u8>(), 0..2000), status in proptest::option::of(any::<u16>())) {
        let mut signal = Signal::new(Surface::Http).with_body(&body);
        signal.status = status;
        let verdict = CLASSIFIER.classify(&signal);
        prop_assert_eq!(&verdict, &CLASSIFIER.classify(&signal));
        if let Some((start, end)) = verdict.evidence.span {
            prop_assert!(start < end && end <= body.len());
        }
    }

    // spec: C-2, C-22
    #[test]
    fn spans_stand_on_boundaries(case in 0..TEXTS.len(), front in "\\PC{0,20}", back in "\\PC{0,20}") {
        let text = format!("{front} {} {back}", TEXTS[case].1);
        if let Some((start, end)) = CLASSIFIER.classify(&Signal::text(&text)).evidence.span {
            prop_assert!(text.is_char_boundary(start) && text.is_char_boundary(end), "{start}..{end} of {text}");
        }
    }

    // spec: C-22, C-23
    #[test]
    fn redaction_is_total_and_settles(text in "\\PC{0,200}") {
        let once = failover_classify::redact(&text).into_owned();
        prop_assert_eq!(failover_classify::redact(&once).into_owned(), once);
    }
}

// spec: C-20
#[test_case("41.065029449s", 41_065; "noise of a float, down")]
#[test_case("28.542992187s", 28_543; "noise of a float, up")]
#[test_case("13.0427s", 13_043; "what was meant rounds up")]
#[test_case("21.2504s", 21_251; "though it is less than half")]
#[test_case("5s", 5_000; "whole")]
fn a_delay_of_protobuf_is_taken_to_the_nearest_millisecond(delay: &str, wanted: u64) {
    let body = format!(
        r#"{{"error":{{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}]}}}}"#
    );
    let verdict = CLASSIFIER.classify(&Signal::text(&body).with_status(429));
    let hint = verdict.hint.unwrap();
    let now = Timestamp::from_millis(0);
    assert_eq!(hint.resolve(now).unwrap().as_millis(), wanted);
}

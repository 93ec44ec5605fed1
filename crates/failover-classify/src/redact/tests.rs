//! What is taken out of texts, and what stays.

use super::*;
use test_case::test_case;

// spec: C-23
#[test_case("key sk-proj-abcdefghijklmnop1234 bad", "abcdefgh"; "openai key")]
#[test_case("Consumer 'api_key:AIzaSyDUMMYdummyDUMMYdummyDUMMYdummy00000'", "DUMMY"; "google key")]
#[test_case("mail jane.doe@example.com now", "jane"; "address")]
#[test_case("écrivez à zoë.müller@bücher.example svp", "zoë.müller@bücher"; "address with other letters")]
#[test_case("напишите на иван@почта.рф пожалуйста", "иван"; "address in another alphabet")]
#[test_case("usedsk-ant-api03-AbCdEf0123456789GhIjKl", "AbCdEf"; "glued to a word")]
#[test_case("sk-ant-api03-AbCdEf0123456789GhIjKl=x", "AbCdEf"; "before an equals sign")]
#[test_case("password: hunter2 was refused", "hunter2"; "short password")]
#[test_case("{\"password\":\"horse\"}", "horse"; "password in quotes")]
#[test_case("PASSWORD=Horse,next", "Horse"; "password of upper case letters")]
#[test_case("Set-Cookie: sid=abc123; Path=/; session=Zm9vYmFy1\r\nnext", "sid=abc123"; "first pair of a cookie")]
#[test_case("Cookie: sid=abc123; session=Zm9vYmFy1; csrf=dead\nnext", "csrf=dead"; "last pair of a cookie")]
#[test_case("{\"cookie\": \"sid=abc123; b=c\", \"x\": 1}", "b=c"; "cookie in quotes")]
#[test_case("-----BEGIN RSA PRIVATE KEY-----\\nMIIEow\\nabc\\n-----END RSA PRIVATE KEY-----", "MIIEow"; "private key")]
#[test_case("key: -----BEGIN PRIVATE KEY-----\nMIIEow", "MIIEow"; "private key that is cut")]
fn secrets_are_taken_out(text: &str, secret: &str) {
    let clean = redact(text);
    assert!(!clean.contains(secret), "{clean}");
    assert!(clean.contains(MARK));
}

/// Every way in which texts say a key, with every shape of a key that has no beginning of its own.
// spec: C-23
#[test]
fn what_a_name_asks_for_is_taken_out_however_it_is_written() {
    let shapes = [
        "3f9a2b7c8d1e4f5a6b7c8d9e0f1a2b3c",
        "dXNlcjpwYXNzd29yZA==",
        "Zm9vYmFyMTIz",
        "550e8400-e29b-41d4-a716-446655440000",
        "0123abcd4567",
        "abcdefghijklmnopqrstuvwxyzabcdef",
    ];
    let ways = [
        "Authorization: Bearer {}",
        "authorization: Basic {}",
        "Incorrect API key provided: {}. Ask for another",
        "The api key `{}` was not found",
        "Token ({}) rejected",
        "token [{}] has run out",
        "Your token is {}.",
        "GET /v1/models?api_key={}&x=1",
        "x-api-key: {}",
        "\"api_key\": \"{}\"",
        "{\\\"refresh_token\\\":\\\"{}\\\"}",
        "<ApiKey>{}</ApiKey>",
        "client_secret = {}",
        "secret='{}'",
        "password: {}",
        "Cookie: sid={}; path=/",
    ];
    for way in ways {
        for shape in shapes {
            let text = way.replacen("{}", shape, 1);
            let text = if way.starts_with("{\\") {
                format!("{{\\\"refresh_token\\\":\\\"{shape}\\\"}}")
            } else {
                text
            };
            let clean = redact(&text);
            assert!(!clean.contains(shape.trim_end_matches('=')), "{clean}");
            assert!(clean.contains(MARK), "{clean}");
        }
    }
}

// spec: C-23
#[test_case("task-manager-of-the-desk-2 asks for risk_assessment_of_2025 in https://x.io/disk-usage/ABC")]
#[test_case("Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000")]
#[test_case("Invalid password: incorrect. The password specified is wrong; cookie: not found")]
#[test_case("Missing header authorization: unauthenticated, or token: expired")]
#[test_case("请联系管理员@张三，或者稍后再试")]
#[test_case("-----BEGIN CERTIFICATE-----\nMIIB")]
fn plain_text_is_handed_back(text: &str) {
    assert!(matches!(redact(text), Cow::Borrowed(_)), "{}", redact(text));
}

// spec: C-23
#[test]
fn known_values_are_taken_out_wherever_they_stand() {
    let known = KnownSecrets::new(["hunter2hunter2", "x"]);
    assert_eq!(known.redact("xx-hunter2hunter2-xx"), "xx-[redacted]-xx");
    assert!(!format!("{known:?}").contains("hunter2"));
}

//! Clients that hand over a text only.

use crate::support::{repeatable, told};
use failover_clients::ClientError;
use failover_types::FailoverReason;
use std::error::Error;
use std::io;
use std::time::Duration;
use test_case::test_case;

// spec: P-7, C-5
#[test_case(
    "HTTP 429 Too Many Requests: {\"error\":{\"message\":\"slow down\"}}",
    FailoverReason::RateLimit,
    None
)]
#[test_case("error code: 429 - {'error': {'code': 'insufficient_quota'}}", FailoverReason::Billing, None; "Python")]
#[test_case(
    "Error code: 401 - {'error': {'message': 'Incorrect API key provided'}}",
    FailoverReason::Auth,
    None
)]
#[test_case("API Error: Request failed with status code 529", FailoverReason::Overloaded, None; "axios")]
#[test_case("status 502 Bad Gateway: {\"message\":\"no answer\"}", FailoverReason::ServerError, None)]
#[test_case("Failed: {\"status\":429,\"retry_after\":7}", FailoverReason::RateLimit, Some(7); "a record")]
#[test_case("429: rate limited, try again in 1m30s", FailoverReason::RateLimit, Some(90); "a wait in words")]
#[test_case("invalid status code: 402, body: no credit", FailoverReason::Billing, None; "a body in words")]
#[test_case("request req_0142950312 took 429 tokens", FailoverReason::Unclassified, None; "numbers of other kinds")]
#[test_case("", FailoverReason::EmptyResponse, None; "nothing")]
fn status_and_body_are_found_in_a_text(text: &str, reason: FailoverReason, wait: Option<u64>) {
    let wait = wait.map(Duration::from_secs);
    assert_eq!(told(&ClientError(text)), (reason, wait));
    assert_eq!(told(&ClientError(text.to_owned())), (reason, wait));
}

// spec: P-7, C-19
#[test]
fn a_boxed_error_tells_its_chain() {
    let boxed: Box<dyn Error + Send + Sync> =
        Box::new(ClientError(io::Error::other(Outer(io::ErrorKind::ConnectionReset.into()))));
    assert_eq!(told(&ClientError(boxed)).0, FailoverReason::Timeout);
    let boxed: Box<dyn Error + Send + Sync> = "402: no credit".into();
    let error = ClientError(boxed);
    assert_eq!(told(&error).0, FailoverReason::Billing);
    assert!(!repeatable(&error));
}

#[derive(Debug, thiserror::Error)]
#[error("the call failed")]
struct Outer(#[source] io::Error);

//! What benchmarks classify.

use failover_classify::Signal;

/// A body and the status beside it.
pub(crate) struct Body {
    /// What it is called in tables.
    pub(crate) name: &'static str,
    status: Option<u16>,
    /// The body.
    pub(crate) text: String,
}

fn body(name: &'static str, status: impl Into<Option<u16>>, text: impl Into<String>) -> Body {
    Body { name, status: status.into(), text: text.into() }
}

/// All of them.
pub(crate) fn bodies() -> Vec<Body> {
    let prose = "The quick brown fox jumps over the lazy dog; the model was asked for a limit and answered. "
        .repeat(720);
    let page = format!(
        "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><p>{prose}</p></body></html>"
    );
    let detail =
        r#"{"id":12345,"loc":["body","messages",3,"content"],"msg":"Field required here","ctx":null}"#;
    let details = vec![detail; 720].join(",");
    let json = format!(
        r#"{{"error":{{"message":"Invalid request","type":"invalid_request_error","details":[{details}]}}}}"#
    );
    vec![
        body(
            "rate limit",
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000, Used 14567, Requested 24754. Please try again in 18.642s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ),
        body(
            "quota",
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        ),
        body(
            "overloaded",
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#,
        ),
        body(
            "overflow",
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ),
        body(
            "key",
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#,
        ),
        body(
            "exhausted",
            429,
            r#"{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}"#,
        ),
        body(
            "transport",
            None,
            "request to https://api.example.com/v1/chat/completions failed, reason: connect ECONNREFUSED 10.0.0.12:443 at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1555:16) FetchError: request failed",
        ),
        body(
            "chinese",
            429,
            r#"{"error":{"code":"1302","message":"您当前使用该API的并发数过高，请降低并发，或联系客服增加限额。您的账户已达到速率限制，请您控制请求频率"}}"#,
        ),
        body(
            "unknown",
            418,
            r#"{"message":"The request was turned away by the front desk since the tea was not ready yet; have a look at the notes of the house and come back when the kettle sings, or ask the neighbours for a cup of coffee instead."}"#,
        ),
        body("prose 64 KiB", None, prose),
        body("page 64 KiB", 502, page),
        body("json 64 KiB", 422, json),
    ]
}

/// As the classifier takes it.
pub(crate) fn signal(body: &Body) -> Signal<'_> {
    let signal = Signal::default().with_body(body.text.as_bytes());
    body.status.map_or(signal, |status| signal.with_status(status))
}

//! How long classification takes, beside bare scans of the same literals over the same bytes.
//!
//! `cargo bench -p failover-classify` first prints one table of medians and ratios, taken in turns in one run, then runs
//! criterion. `-- --quick` shortens the latter.
#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "benchmark")]

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use criterion::{Criterion, criterion_group, criterion_main};
use failover_classify::{Classifier, Signal};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds of a measured run; the best of them counts, for others use the machine too.
const ROUNDS: usize = 60;
/// How long a round takes.
const ROUND: Duration = Duration::from_millis(2);

struct Body {
    name: &'static str,
    status: Option<u16>,
    text: String,
}

fn body(name: &'static str, status: impl Into<Option<u16>>, text: impl Into<String>) -> Body {
    Body { name, status: status.into(), text: text.into() }
}

fn bodies() -> Vec<Body> {
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

fn signal(body: &Body) -> Signal<'_> {
    let signal = Signal::default().with_body(body.text.as_bytes());
    body.status.map_or(signal, |status| signal.with_status(status))
}

/// The best time of one call, in nanoseconds, of things called in turns.
fn best(calls: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut best = vec![f64::MAX; calls.len()];
    for _ in 0..ROUNDS {
        for (call, best) in calls.iter_mut().zip(&mut best) {
            let begin = Instant::now();
            call();
            // Reading the clock takes time itself: quick calls are counted in batches.
            let batch = if begin.elapsed() > ROUND / 20 { 1 } else { 16 };
            let begin = Instant::now();
            let mut count = 0;
            while begin.elapsed() < ROUND {
                (0..batch).for_each(|_| call());
                count += batch;
            }
            *best = best.min(begin.elapsed().as_secs_f64() * 1e9 / f64::from(count));
        }
    }
    best
}

/// Prints times and ratios: beside the classifier's own automaton, and beside Aho-Corasick over the same literals.
fn table(classifier: &Classifier) {
    let reference = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .prefilter(false)
        .build(classifier.literals())
        .unwrap();
    println!(
        "{:14}{:>8}{:>14}{:>12}{:>8}{:>16}{:>8}",
        "body", "bytes", "classify ns", "bare ns", "ratio", "aho-corasick ns", "ratio"
    );
    for body in bodies() {
        let lower = body.text.to_ascii_lowercase();
        let (signal, text) = (signal(&body), lower.as_bytes());
        let times = best(&mut [
            &mut || drop(black_box(classifier.classify(black_box(&signal)))),
            &mut || _ = black_box(classifier.bare_scan(black_box(text))),
            &mut || _ = black_box(reference.find_overlapping_iter(black_box(text)).count()),
        ]);
        if let [classify, bare, reference] = times.as_slice() {
            println!(
                "{:14}{:>8}{classify:>14.0}{bare:>12.0}{:>8.2}{reference:>16.0}{:>8.2}",
                body.name,
                body.text.len(),
                classify / bare,
                classify / reference
            );
        }
    }
    let build = best(&mut [&mut || drop(black_box(Classifier::standard().unwrap()))]);
    println!("build: {:.1} ms\n", build.first().copied().unwrap_or_default() / 1e6);
}

fn bench(c: &mut Criterion) {
    let classifier = Classifier::standard().unwrap();
    table(&classifier);
    for body in bodies() {
        let signal = signal(&body);
        c.bench_function(body.name, |b| b.iter(|| classifier.classify(black_box(&signal))));
    }
    c.bench_function("build", |b| b.iter(|| Classifier::standard().unwrap()));
}

criterion_group!(benches, bench);
criterion_main!(benches);

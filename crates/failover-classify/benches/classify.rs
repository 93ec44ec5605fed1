//! How long classification takes, beside a bare scan of the same automaton over the same bytes.
#![expect(clippy::unwrap_used, reason = "benchmark")]

use criterion::{Criterion, criterion_group, criterion_main};
use failover_classify::{Classifier, Signal};
use std::hint::black_box;

fn bench(c: &mut Criterion) {
    let classifier = Classifier::standard().unwrap();
    let short = br#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000, Used 14567, Requested 24754. Please try again in 18.642s.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    let prose = "The quick brown fox jumps over the lazy dog; the model was asked for a limit and answered. "
        .repeat(720);
    let page = format!("<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head>{prose}</html>");
    c.bench_function("short", |b| {
        b.iter(|| classifier.classify(black_box(&Signal::default().with_status(429).with_body(short))));
    });
    c.bench_function("short bare scan", |b| b.iter(|| classifier.bare_scan(black_box(short))));
    c.bench_function("prose 64 KiB", |b| b.iter(|| classifier.classify(black_box(&Signal::text(&prose)))));
    c.bench_function("prose 64 KiB bare scan", |b| {
        b.iter(|| classifier.bare_scan(black_box(prose.as_bytes())));
    });
    c.bench_function("page 64 KiB", |b| b.iter(|| classifier.classify(black_box(&Signal::text(&page)))));
    c.bench_function("build", |b| b.iter(|| Classifier::standard().unwrap()));
}

criterion_group!(benches, bench);
criterion_main!(benches);

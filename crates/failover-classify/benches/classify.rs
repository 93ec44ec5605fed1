//! How long classification takes, beside bare scans of the same literals over the same bytes.
//!
//! `cargo bench -p failover-classify` first prints one table of medians and ratios, taken in turns in one run, then runs
//! criterion. `-- --quick` shortens the latter. `-- work BODY TIMES` does nothing but classify one of the bodies so often,
//! and `-- work build` builds the classifier, for a tool that counts instructions.
#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "benchmark")]

mod bodies;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use bodies::{bodies, signal};
use criterion::{Criterion, criterion_group};
use failover_classify::Classifier;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds of a measured run; the best of them counts, for others use the machine too.
const ROUNDS: usize = 60;
/// How long a round takes.
const ROUND: Duration = Duration::from_millis(2);

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

/// Classifies one body so often, and nothing else.
fn work(name: &str, times: u32) {
    let classifier = Classifier::standard().unwrap();
    for body in bodies().iter().filter(|body| body.name == name) {
        let signal = signal(body);
        for _ in 0..times {
            drop(black_box(classifier.classify(black_box(&signal))));
        }
    }
}

criterion_group!(benches, bench);

fn main() {
    let mut args = std::env::args().skip_while(|arg| arg != "work").skip(1);
    if let Some(name) = args.next() {
        return work(&name, args.next().map_or(1, |times| times.parse().unwrap()));
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}

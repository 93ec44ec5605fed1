//! Bodies of any size and shape are read in bounded work, and spans fall between chars.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_classify::{Classifier, Signal};
use test_case::test_case;

const WORDS: &str = "rate limit exceeded, try again in 3 seconds. ";

// spec: C-22
#[test]
fn the_middle_of_ten_mebibytes_is_not_read_and_its_ends_are() {
    let classifier = Classifier::standard().unwrap();
    let filler = "x ".repeat(5 << 20);
    let front = classifier.classify(&Signal::text(&format!("{WORDS}{filler}")));
    let back = classifier.classify(&Signal::text(&format!("{filler}{WORDS}")));
    assert_eq!(front.reason.as_str(), "rate_limit");
    assert_eq!(back.reason.as_str(), "rate_limit");
    assert!(front.evidence.preview.len() <= 240);
}

// spec: C-22
#[test]
fn a_hundred_thousand_levels_are_no_trouble() {
    let classifier = Classifier::standard().unwrap();
    for open in ["[", "{\"error\":", "\\\"", "<html>", "[\"content\":"] {
        let body = format!("{}{WORDS}", open.repeat(100_000));
        assert!(classifier.classify(&Signal::text(&body)).evidence.preview.len() <= 240);
    }
}

// spec: C-22
#[test]
fn spans_fall_between_chars() {
    let classifier = Classifier::standard().unwrap();
    for around in ["é", "错误", "😀", "\u{feff}", "“", "ſ", "İ"] {
        let body = format!("{around}Rate{around} {around} rate limit exceeded{around} {around}");
        let explanation = classifier.explain(&Signal::text(&body).with_status(429));
        for (start, end) in explanation.matched.iter().filter_map(|found| found.span) {
            assert!(body.get(start..end).is_some(), "{body} {start}..{end}");
        }
        assert!(!explanation.matched.is_empty());
    }
}

/// Bodies that would be slow to read if anything looked back or ahead without a bound.
fn hostile(unit: &str, len: usize) -> String {
    unit.repeat(len / unit.len())
}

// spec: C-22
#[test_case("rate limit exceeded, try again in 3 seconds. "; "an error again and again")]
#[test_case("you have exceeded your "; "beginnings of phrases")]
#[test_case("the the the model model is is not not "; "words of many phrases")]
#[test_case("{\"error\":{\"code\":"; "nested objects")]
#[test_case("[[[[[[[["; "nested arrays")]
#[test_case("\\\\\\\""; "escapes")]
#[test_case("\\u00"; "broken escapes")]
#[test_case("<html><title>"; "pages that do not end")]
#[test_case("<title></title></html>"; "pages that end only")]
#[test_case("\"content\":\"\",\"role\":"; "messages")]
#[test_case("code: 429 "; "statuses")]
#[test_case(": : : = = "; "empty fields")]
#[test_case("((((429))))"; "brackets")]
#[test_case("resets at resets in retry after "; "hints without times")]
#[test_case("limit of > has requested "; "counts without numbers")]
#[test_case("sk-sk-"; "beginnings of keys")]
#[test_case("a@a.b@"; "addresses")]
#[test_case("错误限额"; "chinese")]
#[test_case("\u{feff}\u{200b}"; "nothing visible")]
fn work_grows_with_the_bytes_read_and_no_further(unit: &str) {
    let classifier = Classifier::standard().unwrap();
    let steps = |len: usize| classifier.steps(&Signal::text(&hostile(unit, len)).with_status(429));
    let (one, two, four) = (steps(8 << 10), steps(16 << 10), steps(32 << 10));
    // A byte costs a bounded number of steps …
    assert!(four <= (32 << 10) * 64, "{four}");
    // … whatever else there is: doubling the text at most doubles the work, but for what stands at its ends.
    assert!(two <= one * 2 + one / 8 + 4096, "{one} {two}");
    assert!(four <= two * 2 + two / 8 + 4096, "{two} {four}");
    // Only the ends of a long body are read.
    assert_eq!(steps(1 << 20) / 1000, steps(10 << 20) / 1000);
}

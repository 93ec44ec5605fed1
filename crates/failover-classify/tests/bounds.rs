//! Bodies of any size and shape are read in bounded work, and spans fall between chars.

use failover_classify::{Classifier, Signal};

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

//! Headers that say when to come back.

use super::duration::{self, MILLIS, SECONDS};
use super::{is_sane, wall};
use crate::lower::Lower;
use crate::view::find_ignore_case;
use crate::{RetryHint, RetryWhen};
use failover_types::Timestamp;
use std::time::{Duration, UNIX_EPOCH};

fn value<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// Numbers above this are times, not spans: seconds of the year 2001.
const EPOCH_SECONDS: u64 = 1_000_000_000;
/// And above this they are milliseconds.
const EPOCH_MILLIS: u64 = 100_000_000_000;

/// A header's value: a span, a bare number of `unit` nanoseconds, an epoch, an HTTP date or an ISO time.
pub(super) fn when(text: &str, unit: u128) -> Option<RetryWhen> {
    let text = text.trim().trim_matches('"');
    if let Some(at) = epoch(text, unit) {
        return Some(RetryWhen::At(at));
    }
    if let Some((span, "")) = duration::clock(text) {
        return Some(RetryWhen::After(span));
    }
    // Nothing that reads as a span is longer.
    let lower = Lower::<64>::of(text);
    if text.len() <= 64
        && let Some((span, rest)) = duration::leading(lower.as_str(), Some(unit))
        && rest.trim().is_empty()
    {
        return Some(RetryWhen::After(span));
    }
    if let Some(at) = wall::iso(text) {
        return Some(RetryWhen::At(at));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    Some(RetryWhen::At(Timestamp::ZERO.after(since)))
}

/// A number so large that it is a time: milliseconds of the epoch, or seconds with or without a fraction.
fn epoch(text: &str, unit: u128) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let number = whole.parse::<u64>().ok()?;
    if number >= EPOCH_MILLIS {
        return Some(Timestamp::from_millis(number));
    }
    if number < EPOCH_SECONDS || unit != SECONDS || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis =
        fraction.bytes().chain(*b"000").take(3).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let rest = fraction.bytes().skip(3).any(|digit| digit != b'0');
    Some(Timestamp::from_millis(number.saturating_mul(1000).saturating_add(millis + u64::from(rest))))
}

/// Headers whose only purpose is to say when.
pub(super) fn explicit(headers: &[(&str, &str)]) -> Option<RetryHint> {
    const NAMES: [(&str, u128); 7] = [
        ("retry-after-ms", MILLIS),
        ("x-ms-retry-after-ms", MILLIS),
        ("x-retry-after-ms", MILLIS),
        ("retry-after", SECONDS),
        ("x-retry-after", SECONDS),
        ("x-ratelimit-retry-after", SECONDS),
        ("x-ratelimit-timeremaining", SECONDS),
    ];
    if headers.is_empty() {
        return None;
    }
    let (name, when) = NAMES
        .iter()
        .find_map(|(name, unit)| Some((*name, when(value(headers, name)?, *unit).filter(is_sane)?)))?;
    if when == RetryWhen::After(Duration::ZERO) {
        return Some(RetryHint::new(when, name));
    }
    let mut hint = RetryHint::new(when, name);
    // A window that is named as used up gives the time itself as well.
    if matches!(hint.when, RetryWhen::After(_)) {
        hint.also = rejected(headers).map(|(_, at)| at).filter(|when| matches!(when, RetryWhen::At(_)));
    }
    Some(hint)
}

/// Reset of the window that is used up: they are sent with every answer, so only an exhausted one counts.
pub(crate) fn windows(headers: &[(&str, &str)]) -> Option<RetryHint> {
    if headers.is_empty() {
        return None;
    }
    let (name, when) = rejected(headers).or_else(|| exhausted(headers))?;
    Some(RetryHint::new(when, name))
}

/// The longer of two waits, where they can be compared; nonsense is none.
fn keep_longest(longest: &mut Option<(String, RetryWhen)>, name: String, when: RetryWhen) {
    if is_sane(&when) && longest.as_ref().is_none_or(|(_, other)| later(&when, other)) {
        *longest = Some((name, when));
    }
}

/// `anthropic-ratelimit-unified-*-status: rejected` and the reset beside it.
fn rejected(headers: &[(&str, &str)]) -> Option<(String, RetryWhen)> {
    let mut latest: Option<(String, RetryWhen)> = None;
    for (name, status) in headers {
        if !starts_with(name, "anthropic-ratelimit-") || !status.trim().eq_ignore_ascii_case("rejected") {
            continue;
        }
        let name = name.to_ascii_lowercase();
        let Some(base) = name.strip_suffix("-status") else { continue };
        let reset = format!("{base}-reset");
        if let Some(at) = value(headers, &reset).and_then(|text| when(text, SECONDS)) {
            keep_longest(&mut latest, reset, at);
        }
    }
    latest
}

fn starts_with(name: &str, what: &str) -> bool {
    crate::view::has_at(name, 0, what)
}

fn later(one: &RetryWhen, other: &RetryWhen) -> bool {
    match (one, other) {
        (RetryWhen::At(one), RetryWhen::At(other)) => one > other,
        (RetryWhen::After(one), RetryWhen::After(other)) => one > other,
        _ => false,
    }
}

/// `…-remaining-tokens: 0` or `…-tokens-remaining: 0` and the reset beside it; a reset beside which nothing says that
/// the window is open.
fn exhausted(headers: &[(&str, &str)]) -> Option<(String, RetryWhen)> {
    let mut latest: Option<(String, RetryWhen)> = None;
    for (name, text) in headers {
        if let Some(at) = structured(name, text) {
            keep_longest(&mut latest, name.to_ascii_lowercase(), at);
            continue;
        }
        if !LIMITS.iter().any(|word| find_ignore_case(name, word).is_some())
            || find_ignore_case(name, "reset").is_none()
        {
            continue;
        }
        let name = name.to_ascii_lowercase();
        let remaining = value(headers, &name.replace("reset", "remaining"));
        if remaining.is_some_and(|left| left.parse::<f64>().is_ok_and(|left| left > 0.0)) {
            continue;
        }
        if value(headers, &name.replace("reset", "status")).is_some_and(|status| !is_used_up(status)) {
            continue;
        }
        let unit = if name.ends_with("-ms") { MILLIS } else { SECONDS };
        if let Some(at) = when(text, unit) {
            keep_longest(&mut latest, name, at);
        }
    }
    latest
}

/// Whether the status of a window says that nothing is left in it: `rejected`, and not `allowed` or `allowed_warning`.
fn is_used_up(status: &str) -> bool {
    ["reject", "exhaust", "exceed", "block", "denied", "limited", "throttled"]
        .iter()
        .any(|word| find_ignore_case(status, word).is_some())
}

/// Words of headers that speak of a limit.
const LIMITS: [&str; 3] = ["ratelimit", "rate-limit", "quota"];

/// `RateLimit: limit=10, remaining=0, reset=30` and `RateLimit: "burst";r=5;t=5, "daily";r=0;t=30`: the drafts of the
/// IETF. Of policies that are used up, the longest counts.
fn structured(name: &str, text: &str) -> Option<RetryWhen> {
    if !name.eq_ignore_ascii_case("ratelimit") && !name.eq_ignore_ascii_case("x-ratelimit") {
        return None;
    }
    if let Some(at) = window(&text.split([',', ';']), ["remaining", "reset"]) {
        return Some(at);
    }
    let policies = text.split(',').filter_map(|policy| window(&policy.split(';'), ["r", "t"]));
    policies.filter(is_sane).reduce(|longest, other| if later(&other, &longest) { other } else { longest })
}

/// The reset among pairs that say that nothing is left.
fn window<'a>(
    pairs: &(impl Iterator<Item = &'a str> + Clone),
    [left, reset]: [&str; 2],
) -> Option<RetryWhen> {
    let pair = |name: &str| {
        pairs
            .clone()
            .filter_map(|part| part.trim().split_once('='))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
    };
    pair(left).filter(|left| *left == "0")?;
    when(pair(reset)?, SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: C-20
    #[test_case("retry-after", "7", &RetryWhen::After(Duration::from_secs(7)); "seconds")]
    #[test_case("Retry-After", "1.5", &RetryWhen::After(Duration::from_millis(1500)); "fraction")]
    #[test_case("retry-after-ms", "250", &RetryWhen::After(Duration::from_millis(250)); "milliseconds")]
    #[test_case("retry-after", "Thu, 01 Jan 2026 00:00:10 GMT",
        &RetryWhen::At(Timestamp::from_millis(1_767_225_610_000)); "date")]
    #[test_case("retry-after", "1767225610.2501", &RetryWhen::At(Timestamp::from_millis(1_767_225_610_251)); "epoch with a fraction")]
    #[test_case("retry-after", "1767225610250", &RetryWhen::At(Timestamp::from_millis(1_767_225_610_250)); "epoch in milliseconds")]
    #[test_case("x-retry-after", "00:01:30", &RetryWhen::After(Duration::from_secs(90)); "span of a clock")]
    #[test_case("retry-after", "1787400000", &RetryWhen::At(Timestamp::from_millis(1_787_400_000_000)); "epoch")]
    fn explicit_headers(name: &str, value: &str, expected: &RetryWhen) {
        assert_eq!(explicit(&[(name, value)]).unwrap().when, *expected);
    }

    // spec: C-20
    #[test]
    fn only_an_exhausted_window_counts() {
        let headers = [
            ("x-ratelimit-remaining-requests", "12"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "2m30s"),
        ];
        assert_eq!(windows(&headers).unwrap().when, RetryWhen::After(Duration::from_secs(150)));
        assert_eq!(windows(&headers[..2]), None);
    }

    // spec: C-20
    #[test_case("RateLimit", "limit=100, remaining=0, reset=30", Some(30_000); "pairs")]
    #[test_case("ratelimit", "\"default\";r=0;t=7", Some(7_000); "parameters")]
    #[test_case("ratelimit", "\"default\";r=5;t=7", None; "something is left")]
    #[test_case("ratelimit", "\"burst\";r=5;t=5, \"daily\";r=0;t=3600", Some(3_600_000); "one of two policies")]
    #[test_case("ratelimit", "\"daily\";r=0;t=3600, \"burst\";r=0;t=5", Some(3_600_000); "two policies that are used up")]
    #[test_case("ratelimit", "\"burst\";r=0;t=5, \"daily\";r=7;t=3600", Some(5_000); "the shorter of two policies")]
    #[test_case("x-rate-limit-reset", "12", Some(12_000); "hyphenated")]
    #[test_case("x-ratelimit-reset-ms", "1250", Some(1_250); "milliseconds")]
    fn windows_are_written_in_many_ways(name: &str, value: &str, ms: Option<u64>) {
        let after = windows(&[(name, value)]).map(|hint| hint.when);
        assert_eq!(after, ms.map(|ms| RetryWhen::After(Duration::from_millis(ms))));
    }

    // spec: C-20
    #[test_case("allowed", None; "allowed")]
    #[test_case("allowed_warning", None; "nearly used up")]
    #[test_case("rejected", Some(1_787_400_000_000); "rejected")]
    #[test_case("quota_exceeded", Some(1_787_400_000_000); "exceeded")]
    fn a_window_with_a_status_is_believed(status: &str, at: Option<u64>) {
        let headers = [
            ("anthropic-ratelimit-unified-7d-reset", "1787400000"),
            ("anthropic-ratelimit-unified-7d-status", status),
            ("anthropic-ratelimit-unified-5h-reset", "1787000000"),
            ("anthropic-ratelimit-unified-5h-status", "allowed"),
        ];
        let when = windows(&headers).map(|hint| hint.when);
        assert_eq!(when, at.map(|ms| RetryWhen::At(Timestamp::from_millis(ms))));
    }

    // spec: C-20
    #[test]
    fn a_wait_that_is_nonsense_hides_no_other() {
        let headers = [("retry-after-ms", "99999999999"), ("retry-after", "7")];
        assert_eq!(explicit(&headers[..1]), None);
        assert_eq!(explicit(&headers).unwrap().when, RetryWhen::After(Duration::from_secs(7)));
        let windows_of = [("x-ratelimit-reset-tokens", "99999999s"), ("x-ratelimit-reset-requests", "20s")];
        assert_eq!(windows(&windows_of).unwrap().when, RetryWhen::After(Duration::from_secs(20)));
    }
}

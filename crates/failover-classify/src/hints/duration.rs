//! Spans of time as people and protocols write them.

use crate::lower::words_by_byte;
use std::time::Duration;

const MS: u128 = 1_000_000;
const S: u128 = 1_000 * MS;
const MIN: u128 = 60 * S;
const HOUR: u128 = 60 * MIN;
const DAY: u128 = 24 * HOUR;

/// Units by the beginning of their word, longest first where one begins another. The text is lower case, its
/// Chinese characters are simplified.
const UNITS: &[(&str, u128, bool)] = &[
    // (word, nanoseconds, a whole word only)
    ("millisec", MS, false),
    ("msec", MS, false),
    ("ms", MS, true),
    ("毫秒", MS, false),
    ("мс", MS, true),
    ("мсек", MS, false),
    ("seg", S, false),
    ("sec", S, false),
    ("sek", S, false),
    ("s", S, true),
    ("秒", S, false),
    ("초", S, false),
    ("сек", S, false),
    ("с", S, true),
    ("min", MIN, false),
    ("m", MIN, true),
    ("分", MIN, false),
    ("분", MIN, false),
    ("мин", MIN, false),
    ("м", MIN, true),
    ("hour", HOUR, false),
    ("hora", HOUR, false),
    ("heure", HOUR, false),
    ("hr", HOUR, false),
    ("h", HOUR, true),
    ("std", HOUR, false),
    ("stunde", HOUR, false),
    ("小时", HOUR, false),
    ("个小时", HOUR, false),
    ("时间", HOUR, false),
    ("시간", HOUR, false),
    ("час", HOUR, false),
    ("ч", HOUR, true),
    ("day", DAY, false),
    ("dia", DAY, false),
    ("día", DAY, false),
    ("jour", DAY, false),
    ("tag", DAY, false),
    ("d", DAY, true),
    ("天", DAY, false),
    ("日", DAY, false),
    ("일", DAY, false),
    ("день", DAY, false),
    ("дня", DAY, false),
    ("дней", DAY, false),
    ("week", 7 * DAY, false),
    ("周", 7 * DAY, false),
    // Italian, Spanish, Portuguese
    ("ora", HOUR, true),
    ("ore", HOUR, true),
    ("giorn", DAY, false),
    ("settiman", 7 * DAY, false),
    ("semana", 7 * DAY, false),
    ("semaine", 7 * DAY, false),
    ("woche", 7 * DAY, false),
    // Dutch, Swedish, Danish, Norwegian
    ("uur", HOUR, true),
    ("uren", HOUR, true),
    ("dag", DAY, false),
    ("timm", HOUR, false),
    ("time", HOUR, false),
    ("døgn", DAY, false),
    // Polish, Czech, Romanian
    ("godzin", HOUR, false),
    ("hodin", HOUR, false),
    ("dzień", DAY, false),
    ("dni", DAY, true),
    ("dny", DAY, true),
    ("zile", DAY, false),
    // Ukrainian, Russian
    ("хв", MIN, false),
    ("годин", HOUR, false),
    ("недел", 7 * DAY, false),
    // Turkish
    ("saniye", S, false),
    ("dakika", MIN, false),
    ("saat", HOUR, false),
    ("gün", DAY, false),
    // Vietnamese
    ("giây", S, false),
    ("phút", MIN, false),
    ("giờ", HOUR, false),
    ("ngày", DAY, false),
    // Indonesian
    ("detik", S, false),
    ("menit", MIN, false),
    ("jam", HOUR, true),
    ("hari", DAY, true),
    // Arabic, Persian, Hebrew
    ("ثانية", S, false),
    ("ثوان", S, false),
    ("ثانیه", S, false),
    ("دقيقة", MIN, false),
    ("دقائق", MIN, false),
    ("دقیقه", MIN, false),
    ("ساعة", HOUR, false),
    ("ساعات", HOUR, false),
    ("ساعت", HOUR, false),
    ("שניות", S, false),
    ("דקות", MIN, false),
    ("שעות", HOUR, false),
    // Hindi, Thai
    ("सेकंड", S, false),
    ("सेकेंड", S, false),
    ("मिनट", MIN, false),
    ("घंटे", HOUR, false),
    ("घंटा", HOUR, false),
    ("วินาที", S, false),
    ("นาที", MIN, false),
    ("ชั่วโมง", HOUR, false),
];

/// The span that begins the text, and the rest after it. A number without a unit counts as `bare` nanoseconds.
pub(crate) fn leading(text: &str, bare: Option<u128>) -> Option<(Duration, &str)> {
    // ISO 8601: `pt2m30s`.
    let mut rest = text
        .strip_prefix("pt")
        .filter(|rest| rest.starts_with(|ch: char| ch.is_ascii_digit()))
        .unwrap_or(text);
    let mut total: u128 = 0;
    let mut seen = false;
    loop {
        let trimmed = if seen { joined(rest) } else { rest };
        let Some((number, digits, after)) = number(trimmed).or_else(|| spelled(trimmed)) else { break };
        let after_space = after.strip_prefix(' ').unwrap_or(after);
        if let Some((unit, tail)) = unit(after_space) {
            total = total.checked_add(scale(number, digits, unit)?)?;
            rest = tail;
            seen = true;
        } else if let Some(unit) = bare.filter(|_| !seen) {
            return span(scale(number, digits, unit)?).map(|span| (span, after));
        } else {
            break;
        }
    }
    if !seen {
        return None;
    }
    span(total).map(|span| (span, rest))
}

/// A span as clocks write it, and the rest after it: .NET's `2.18:33:05` and `00:00:05.5000000`, `1:02:03`.
pub(crate) fn clock(text: &str) -> Option<(Duration, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let part = |text: &str, len: usize| text.get(..len)?.parse::<u128>().ok();
    let first = digits(text);
    let (days, rest) = match text.get(first..)?.strip_prefix('.') {
        Some(rest) if first <= 4 => (part(text, first)?, rest),
        _ => (0, text),
    };
    let len = digits(rest);
    let hours = part(rest, len).filter(|hours| len <= 2 && *hours < 24)?;
    let rest = rest.get(len..)?.strip_prefix(':')?;
    let minutes = part(rest, 2).filter(|minutes| digits(rest) == 2 && *minutes < 60)?;
    let rest = rest.get(2..)?.strip_prefix(':')?;
    let seconds = digits(rest) == 2 && part(rest, 2).is_some_and(|seconds| seconds < 60);
    let (seconds, scale_digits, rest) = number(rest).filter(|_| seconds)?;
    let nanos = days * DAY + hours * HOUR + minutes * MIN + scale(seconds, scale_digits, S)?;
    span(nanos).map(|span| (span, rest))
}

fn span(nanos: u128) -> Option<Duration> {
    let seconds = u64::try_from(nanos / S).ok()?;
    let rest = u32::try_from(nanos % S).ok()?;
    Some(Duration::new(seconds, rest))
}

/// Between the parts of a span: `1h 2m`, `1 hour, 2 minutes`, `1 hour and 2 minutes`.
fn joined(text: &str) -> &str {
    let text = text.strip_prefix(',').unwrap_or(text);
    // `1 Std. 12 Min.`: the points of abbreviations.
    let text = text.strip_prefix('.').filter(|rest| rest.starts_with(' ')).unwrap_or(text);
    let text = text.strip_prefix(' ').unwrap_or(text);
    ["and ", "und ", "y ", "et ", "e ", "i ", "en ", "och ", "og ", "и ", "і ", "ve ", "và ", "dan "]
        .iter()
        .find_map(|word| text.strip_prefix(word))
        .unwrap_or(text)
}

/// A small number in words: `one hour`, `一小时`. "a minute" is no number, it means a while.
fn spelled(text: &str) -> Option<(u128, u32, &str)> {
    const WORDS: &[(&str, u128)] = &[
        ("one ", 1),
        ("two ", 2),
        ("three ", 3),
        ("four ", 4),
        ("five ", 5),
        ("six ", 6),
        ("seven ", 7),
        ("eight ", 8),
        ("nine ", 9),
        ("ten ", 10),
        ("fifteen ", 15),
        ("twenty ", 20),
        ("thirty ", 30),
        ("一", 1),
        ("两", 2),
        ("二", 2),
        ("三", 3),
        ("五", 5),
        ("十", 10),
    ];
    let (rest, value) = WORDS.iter().find_map(|(word, value)| Some((text.strip_prefix(word)?, *value)))?;
    unit(rest).map(|_| (value, 0, rest))
}

/// Digits without their point, and how many stood after it.
fn number(text: &str) -> Option<(u128, u32, &str)> {
    let mut value: u128 = 0;
    let mut after: Option<u32> = None;
    let mut end = 0;
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate().take(30) {
        match byte {
            b'0'..=b'9' => {
                if after.is_some_and(|digits| digits >= 12) {
                    end = at + 1;
                    continue;
                }
                value = value.checked_mul(10)?.checked_add(u128::from(byte - b'0'))?;
                after = after.map(|digits| digits + 1);
                end = at + 1;
            }
            b'.' if after.is_none() && at > 0 && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                after = Some(0);
            }
            b',' if after.is_none()
                && at > 0
                && bytes.get(at + 1..at + 4).is_some_and(|d| d.iter().all(u8::is_ascii_digit))
                && !bytes.get(at + 4).is_some_and(u8::is_ascii_digit) => {}
            _ => break,
        }
    }
    (end > 0).then_some((value, after.unwrap_or(0), text.get(end..)?))
}

fn scale(number: u128, digits: u32, unit: u128) -> Option<u128> {
    let divisor = 10_u128.checked_pow(digits)?;
    Some(number.checked_mul(unit)?.div_ceil(divisor))
}

/// Units by their first byte.
const FIRST: [u128; 256] = words_by_byte!(UNITS, 0, u128);

fn unit(text: &str) -> Option<(u128, &str)> {
    let mut alike = *FIRST.get(usize::from(text.bytes().next()?))?;
    let alike = std::iter::from_fn(|| {
        let unit = UNITS.get(alike.trailing_zeros() as usize);
        alike &= alike.wrapping_sub(1);
        unit
    });
    alike
        .filter(|(word, _, whole)| {
            text.strip_prefix(word)
                .is_some_and(|rest| !*whole || !rest.chars().next().is_some_and(char::is_alphabetic))
        })
        .max_by_key(|(word, _, _)| word.len())
        .map(|&(word, nanos, whole)| {
            let rest = text.get(word.len()..).unwrap_or_default();
            let ascii = word.is_ascii() || word.chars().any(|ch| ('а'..='я').contains(&ch));
            let rest = if whole || !ascii {
                rest.strip_prefix('钟')
                    .or_else(|| rest.strip_prefix('鐘'))
                    .or_else(|| rest.strip_prefix('间'))
                    .unwrap_or(rest)
            } else {
                let rest = rest.trim_start_matches(char::is_alphabetic);
                rest.strip_prefix("(s)").unwrap_or(rest)
            };
            (nanos, rest)
        })
}

/// Nanoseconds of a second: the usual unit of a bare number.
pub(crate) const SECONDS: u128 = S;
/// Nanoseconds of a millisecond.
pub(crate) const MILLIS: u128 = MS;

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    // spec: C-20
    #[test_case("7m12.5s", 432_500; "go")]
    #[test_case("1m47.5854s.", 107_586; "fraction rounds up")]
    #[test_case("6hr 29min.", 23_340_000; "abbreviated")]
    #[test_case("2 minutes before", 120_000; "words")]
    #[test_case("1 hour, 5 minutes and 3 seconds", 3_903_000; "joined")]
    #[test_case("one hour and thirty minutes", 5_400_000; "numbers in words")]
    #[test_case("174ms", 174; "milliseconds")]
    #[test_case("30 秒后", 30_000; "chinese")]
    #[test_case("5 小时", 18_000_000; "chinese hours")]
    #[test_case("一小时后", 3_600_000; "a chinese number")]
    #[test_case("20 секунд", 20_000; "russian")]
    #[test_case("160h20m10.7s", 577_210_700; "long")]
    #[test_case("pt2m30s", 150_000; "iso 8601")]
    fn spans_are_read(text: &str, ms: u64) {
        let (span, _) = leading(text, None).unwrap();
        assert_eq!(failover_types::millis(span), ms);
    }

    // spec: C-20
    #[test_case("10 secondi", 10_000; "italian")]
    #[test_case("1 std. 12 min.", 4_320_000; "points of abbreviations")]
    #[test_case("2 stunden", 7_200_000; "german")]
    #[test_case("10 giây", 10_000; "vietnamese")]
    #[test_case("3 godziny i 5 minut", 11_100_000; "polish")]
    #[test_case("30 saniye", 30_000; "turkish")]
    #[test_case("45 วินาที", 45_000; "thai")]
    #[test_case("5 хвилин", 300_000; "ukrainian")]
    fn spans_of_other_languages_are_read(text: &str, ms: u64) {
        assert_eq!(leading(text, None).map(|(span, _)| failover_types::millis(span)), Some(ms));
    }

    // spec: C-20
    #[test_case("2.18:33:05.", Some(239_585_000); "days")]
    #[test_case("00:00:23", Some(23_000); "seconds")]
    #[test_case("00:00:05.1234567", Some(5_124); "fraction rounds up")]
    #[test_case("1:02:03", Some(3_723_000); "short hour")]
    #[test_case("12:30", None; "a time of day")]
    #[test_case("3.5 seconds", None; "a number")]
    fn spans_of_clocks_are_read(text: &str, ms: Option<u64>) {
        assert_eq!(clock(text).map(|(span, _)| failover_types::millis(span)), ms);
    }

    // spec: C-20
    #[test]
    fn a_bare_number_needs_a_unit() {
        assert_eq!(leading("60", None), None);
        assert_eq!(leading("60", Some(SECONDS)).unwrap().0, Duration::from_mins(1));
        assert_eq!(leading("99999999999999999999999999999", Some(SECONDS)), None);
    }
}

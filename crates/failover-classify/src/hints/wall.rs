//! Clock texts: times without a date, a year or a zone, and ISO times that have all of them.

use super::zones::Zone;
use failover_types::Timestamp;

pub(super) const DAY_MS: i64 = 86_400_000;

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar (Howard Hinnant's algorithm).
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since the epoch.
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted - era * 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// `2026-07-14T07:49:08.5Z` or with an offset; nothing without a zone.
pub(crate) fn iso(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let dashed = bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    if !dashed || !matches!(bytes.get(10), Some(b'T' | b't' | b' ')) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute) = (number(11..13)?, number(14..16)?);
    let second = if bytes.get(16) == Some(&b':') { number(17..19)? } else { 0 };
    let mut rest = text.get(if bytes.get(16) == Some(&b':') { 19 } else { 16 }..)?;
    let mut millis = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let len = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let digits: String = fraction.get(..len)?.chars().chain("000".chars()).take(3).collect();
        millis = digits.parse::<i64>().ok()?;
        rest = fraction.get(len..)?;
    }
    let zone = Zone::named(rest)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let at = days(year, month, day) * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + millis;
    let at = at - zone.of_local(at);
    u64::try_from(at).ok().map(Timestamp::from_millis)
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The clock text that begins `text`: `(text, zone)`, or nothing if no time and no date begins it.
pub(crate) fn leading(text: &str) -> Option<(String, Option<String>)> {
    let mut end = 0;
    let mut telling = 0;
    let mut zone = None;
    let mut at = 0;
    for _ in 0..10 {
        let rest = text.get(at..)?;
        let skipped = rest.len() - rest.trim_start_matches([' ', ',', '\n', '\t']).len();
        let rest = rest.get(skipped..)?;
        if let Some(inner) = rest.strip_prefix('(') {
            if telling > 0
                && let Some((name, _)) = inner.split_once(')')
                && is_zone(name)
            {
                zone = Some(name.to_owned());
            }
            break;
        }
        let len = rest
            .find(|ch: char| {
                ch.is_whitespace()
                    || ch.is_control()
                    || matches!(ch, ',' | '(' | ')' | '"' | '\'' | ';' | '\\' | '|' | '<' | '}' | '。' | '，')
            })
            .unwrap_or(rest.len());
        let word = rest.get(..len)?.trim_end_matches(['.', ':', '!']);
        let lower = word.to_ascii_lowercase();
        if word.is_empty() {
            break;
        }
        if telling > 0 && is_zone(word) {
            zone = Some(word.to_owned());
            break;
        }
        if is_clock_word(&lower) {
            telling += 1;
            end = at + skipped + word.len();
        } else if !matches!(lower.as_str(), "at" | "on" | "the" | "of" | "um" | "am") {
            break;
        }
        at += skipped + len;
        if word.len() < len {
            break;
        }
    }
    if telling == 0 {
        return None;
    }
    let clock = text.get(..end)?.trim();
    let clock = clock.strip_prefix("at ").or_else(|| clock.strip_prefix("on ")).unwrap_or(clock);
    (clock.contains(':') || clock.chars().any(|ch| ch.is_ascii_digit()) && clock.len() >= 3)
        .then(|| (clock.split_whitespace().collect::<Vec<_>>().join(" "), zone))
}

/// Whether a number begins a date or a time of day: `2026-12-01`, `12:30`, `12/01/2026`, `5 pm`, `1st`, `1 December`.
pub(super) fn is_date(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits..).unwrap_or_default();
    if digits == 0 || digits > 4 {
        return false;
    }
    let numbered = |rest: &str| rest.starts_with(|ch: char| ch.is_ascii_digit());
    if let Some(rest) = rest.strip_prefix([':', '/']) {
        return numbered(rest);
    }
    // Two dashes: `60-90 seconds` has one.
    if let Some((middle, rest)) = rest.strip_prefix('-').and_then(|rest| rest.split_once('-')) {
        return (1..=9).contains(&middle.len())
            && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && numbered(rest);
    }
    let rest = rest.trim_start_matches(' ');
    let (word, rest) = rest.split_at(rest.find(|ch: char| !ch.is_ascii_alphabetic()).unwrap_or(rest.len()));
    let is = |words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
    let is_month = |month: &&str| word.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(month));
    let marked = is(&["am", "pm", "st", "nd", "rd", "th"])
        || is(&["a", "p"])
            && rest.starts_with('.')
            && rest.get(1..2).is_some_and(|ch| ch.eq_ignore_ascii_case("m"));
    // `30 may help` is no date.
    let rest = rest.trim_start_matches([' ', '.', ',']);
    let dated = MONTHS.iter().any(is_month) && !rest.starts_with(|ch: char| ch.is_ascii_alphabetic());
    digits <= 2 && (marked || dated)
}

fn is_zone(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    // `ist` and `et` are words of other languages.
    let written_as_one = word.contains(['/', '+', '-'])
        || !word.bytes().any(|byte| byte.is_ascii_lowercase())
        || matches!(lower.as_str(), "z" | "utc" | "gmt");
    written_as_one && Zone::named(&lower).is_some()
        || word.contains('/')
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+'))
        || (word.len() == 3 || word.len() == 4)
            && word.bytes().all(|b| b.is_ascii_uppercase())
            && word.ends_with('T')
}

fn is_clock_word(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let rest = word.get(digits..).unwrap_or_default();
    if digits > 0 {
        return rest.is_empty() && digits <= 4
            || matches!(rest, "am" | "pm" | "st" | "nd" | "rd" | "th" | "a.m" | "p.m")
            || rest.starts_with([':', '-', '/']) && rest.bytes().filter(u8::is_ascii_digit).count() >= 2;
    }
    matches!(word, "am" | "pm" | "a.m" | "p.m" | "tomorrow" | "midnight" | "noon")
        || MONTHS.iter().chain(&WEEKDAYS).any(|name| word.starts_with(name) && word.len() <= 9)
            && word.bytes().all(|b| b.is_ascii_lowercase())
}

/// The first time after `now` at which the clock shows `text`. Without a zone it is read as UTC.
pub(crate) fn resolve(text: &str, zone: Option<&str>, now: Timestamp) -> Option<Timestamp> {
    let zone = Zone::named(zone.unwrap_or("utc"))?;
    let now = i64::try_from(now.as_millis()).ok()?;
    let local_now = now.checked_add(zone.at(now))?;
    let (this_year, _, _) = date(local_now.div_euclid(DAY_MS));
    let (mut year, mut month, mut day, mut clock) = (None, None, None, None);
    let mut tomorrow = false;
    let lower = text.to_ascii_lowercase();
    if lower.len() > 64 {
        return None;
    }
    let lower_words: Vec<&str> = lower.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    for (i, word) in lower_words.iter().enumerate() {
        if let Some(at) = MONTHS.iter().position(|name| word.starts_with(name)) {
            month = i64::try_from(at + 1).ok();
        } else if word.contains(':')
            || word.ends_with("am") && word.len() > 2
            || word.ends_with("pm") && word.len() > 2
        {
            let half = lower_words.get(i + 1).copied().unwrap_or_default();
            clock = Some(time_of(word, half)?);
        } else if word.contains('-') || word.contains('/') {
            let parts: Vec<i64> = word.split(['-', '/']).filter_map(|part| part.parse().ok()).collect();
            if let [y, m, d] = parts.as_slice()
                && *y > 1900
            {
                (year, month, day) = (Some(*y), Some(*m), Some(*d));
            }
        } else if *word == "tomorrow" {
            tomorrow = true;
        } else {
            let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
            match (digits.len(), digits.parse::<i64>()) {
                (4, Ok(number)) => year = Some(number),
                (1 | 2, Ok(number)) => {
                    let half = lower_words.get(i + 1).copied().unwrap_or_default();
                    if matches!(half, "am" | "pm") {
                        clock = Some(time_of(word, half)?);
                    } else {
                        day = Some(number);
                    }
                }
                _ => {}
            }
        }
    }
    let clock = clock.unwrap_or(0);
    let utc = |local: i64| local - zone.of_local(local);
    let at = |year, month, day: i64| utc(days(year, month, day) * DAY_MS + clock);
    let found = match (month, day) {
        (Some(month @ 1..=12), Some(day @ 1..=31)) => {
            let first = at(year.unwrap_or(this_year), month, day);
            if year.is_none() && first < now { at(this_year + 1, month, day) } else { first }
        }
        (None, None) => {
            let today = local_now.div_euclid(DAY_MS) * DAY_MS + clock;
            if utc(today) < now || tomorrow { utc(today + DAY_MS) } else { utc(today) }
        }
        _ => return None,
    };
    u64::try_from(found).ok().map(Timestamp::from_millis)
}

/// Milliseconds since midnight of `4pm`, `11:10pm`, `16:00:05`, `4:13` followed by `pm`.
fn time_of(word: &str, next: &str) -> Option<i64> {
    let digits = word.trim_end_matches(|ch: char| ch.is_alphabetic() || ch == '.');
    let half = match word.get(digits.len()..).unwrap_or_default() {
        "" => next,
        half => half,
    };
    let mut parts = digits.split(':').map(str::parse::<i64>);
    let hour = parts.next()?.ok()?;
    let minute = parts.next().transpose().ok()?.unwrap_or(0);
    let second = parts.next().transpose().ok()?.unwrap_or(0);
    let hour = match half {
        "pm" if hour < 12 => hour + 12,
        "am" if hour == 12 => 0,
        _ => hour,
    };
    (hour <= 24 && minute < 60 && second <= 60).then_some(((hour * 60 + minute) * 60 + second) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    const NOON: Timestamp = Timestamp::from_millis(1_767_268_800_000); // 2026-01-01T12:00:00Z

    // spec: C-20
    #[test_case("4pm", None, 1_767_283_200_000; "today")]
    #[test_case("9am", Some("UTC"), 1_767_344_400_000; "tomorrow")]
    #[test_case("Jan 3, 10am", None, 1_767_434_400_000; "with a date")]
    #[test_case("2026-01-02 00:00:00", Some("+08:00"), 1_767_283_200_000; "zone")]
    #[test_case("Jan 2nd, 2026 4:13 PM", None, 1_767_370_380_000; "ordinal")]
    #[test_case("11:40am", Some("America/Los_Angeles"), 1_767_296_400_000; "zone with summer time")]
    #[test_case("Jul 1, 9am", Some("Europe/Berlin"), 1_782_889_200_000; "summer in the zone")]
    fn clock_texts_become_times(text: &str, zone: Option<&str>, ms: u64) {
        assert_eq!(resolve(text, zone, NOON), Some(Timestamp::from_millis(ms)));
    }

    // spec: C-20
    #[test_case("11:40am (America/Los_Angeles)", "11:40am", Some("America/Los_Angeles"); "zone in brackets")]
    #[test_case("Apr 28th, 2026 4:13 PM.", "Apr 28th, 2026 4:13 PM", None; "long")]
    #[test_case("2026-04-01 at 00:00 UTC.", "2026-04-01 at 00:00", Some("UTC"); "zone bare")]
    #[test_case("Oct 6, 10am.", "Oct 6, 10am", None; "short")]
    #[test_case("2026-07-14 07:49:08 重置", "2026-07-14 07:49:08", None; "chinese")]
    #[test_case("April 20, 2026 at 2:00 AM or switch to", "April 20, 2026 at 2:00 AM", None; "full month")]
    fn clock_texts_are_found(text: &str, clock: &str, zone: Option<&str>) {
        assert_eq!(leading(text), Some((clock.to_owned(), zone.map(str::to_owned))));
    }

    // spec: C-20
    #[test]
    fn iso_times_need_a_zone() {
        assert_eq!(iso("2026-01-01T12:00:00Z"), Some(NOON));
        assert_eq!(iso("2026-01-01T14:00:00.000+02:00"), Some(NOON));
        assert_eq!(iso("2026-01-01T12:00:00"), None);
    }
}

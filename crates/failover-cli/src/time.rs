//! Times for people.

use failover::types::Timestamp;
use std::time::Duration;

/// `850 ms`, `12 s`, `4 min 30 s`, `5 h`, `3 d 2 h`.
pub(crate) fn duration(wait: Duration) -> String {
    let ms = failover::types::millis(wait);
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    let seconds = ms.div_ceil(1_000);
    let pair = |big: u64, big_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{big} {big_unit}"),
        small => format!("{big} {big_unit} {small} {small_unit}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => pair(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => pair(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => pair(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// A wait to the millisecond where it is below a minute: what a provider said should be recognized.
pub(crate) fn exact(wait: Duration) -> String {
    let ms = failover::types::millis(wait);
    match (ms / 1_000, ms % 1_000) {
        (seconds @ 1..60, rest @ 1..) => {
            let fraction = format!("{rest:03}");
            format!("{seconds}.{} s", fraction.trim_end_matches('0'))
        }
        _ => duration(wait),
    }
}

/// `2026-11-30T05:58:59Z`.
pub(crate) fn date(at: Timestamp) -> String {
    let ms = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.to_string(),
        Err(_) => at.to_string(),
    }
}

/// `in 30 s`, or `now`.
pub(crate) fn until(at: Timestamp, now: Timestamp) -> String {
    if at <= now { "now".to_owned() } else { format!("in {}", duration(at.since(now))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case(2_100, "2.1 s")]
    #[test_case(1_001, "1.001 s")]
    #[test_case(20_000, "20 s")]
    #[test_case(90_500, "1 min 31 s")]
    fn exact_durations(ms: u64, text: &str) {
        assert_eq!(exact(Duration::from_millis(ms)), text);
    }

    #[test_case(850, "850 ms")]
    #[test_case(1_001, "2 s")]
    #[test_case(60_000, "1 min")]
    #[test_case(270_000, "4 min 30 s")]
    #[test_case(18_000_000, "5 h")]
    #[test_case(266_400_000, "3 d 2 h")]
    fn durations(ms: u64, text: &str) {
        assert_eq!(duration(Duration::from_millis(ms)), text);
    }
}

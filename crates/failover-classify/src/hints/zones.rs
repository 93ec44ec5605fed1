//! How far the clocks of the world are from UTC: the zones that providers and their customers write.
//!
//! A table, not a database: each zone's present offset and the rule of its summer time. Offsets are in minutes. Checked
//! against the tz database (2025b); a zone that changes its rule needs a new line here.

use super::wall::{DAY_MS, date, days};

/// When summer time begins and ends.
#[derive(Clone, Copy)]
enum Summer {
    Never,
    /// Second Sunday of March to first Sunday of November, at two in local time.
    America,
    /// Last Sunday of March to last Sunday of October, at one in UTC.
    Europe,
    /// First Sunday of October to first Sunday of April, at two in standard time.
    Australia,
    /// Last Sunday of September to first Sunday of April, at two in standard time.
    Zealand,
}

use Summer::{America, Australia, Europe, Never, Zealand};

/// Names, in lower case. Abbreviations of summer time stand with their own offset.
const ZONES: &[(&[&str], i64, Summer)] = &[
    (
        &[
            "z",
            "utc",
            "gmt",
            "etc/utc",
            "etc/gmt",
            "utc+0",
            "africa/abidjan",
            "africa/accra",
            "atlantic/reykjavik",
        ],
        0,
        Never,
    ),
    (&["pst"], -480, Never),
    (&["pdt"], -420, Never),
    (&["mst", "america/phoenix"], -420, Never),
    (&["mdt"], -360, Never),
    (&["cst", "america/mexico_city", "america/costa_rica", "america/guatemala"], -360, Never),
    (&["cdt"], -300, Never),
    (&["est", "america/bogota", "america/lima", "america/panama", "america/jamaica"], -300, Never),
    (&["edt"], -240, Never),
    (&["cet"], 60, Never),
    (&["cest"], 120, Never),
    (&["wet"], 0, Never),
    (&["west", "bst"], 60, Never),
    (&["eet"], 120, Never),
    (&["eest"], 180, Never),
    (&["msk"], 180, Never),
    (&["ist", "asia/kolkata", "asia/calcutta", "asia/colombo"], 330, Never),
    (&["jst", "asia/tokyo"], 540, Never),
    (&["kst", "asia/seoul"], 540, Never),
    (&["hkt", "sgt"], 480, Never),
    (&["aest", "australia/brisbane"], 600, Never),
    (&["aedt"], 660, Never),
    (&["nzst"], 720, Never),
    (&["nzdt"], 780, Never),
    (&["pt", "america/los_angeles", "us/pacific", "america/vancouver", "america/tijuana"], -480, America),
    (&["mt", "america/denver", "us/mountain", "america/edmonton", "america/boise"], -420, America),
    (&["ct", "america/chicago", "us/central", "america/winnipeg"], -360, America),
    (
        &["et", "america/new_york", "us/eastern", "america/toronto", "america/detroit", "america/montreal"],
        -300,
        America,
    ),
    (&["america/halifax", "atlantic/bermuda"], -240, America),
    (&["america/st_johns"], -210, America),
    (&["america/anchorage", "us/alaska"], -540, America),
    (&["pacific/honolulu", "us/hawaii", "hst"], -600, Never),
    (&["america/caracas", "america/la_paz", "america/puerto_rico", "america/santo_domingo"], -240, Never),
    (
        &[
            "america/sao_paulo",
            "brt",
            "america/argentina/buenos_aires",
            "america/buenos_aires",
            "america/montevideo",
        ],
        -180,
        Never,
    ),
    (&["europe/london", "europe/dublin", "europe/lisbon", "atlantic/canary"], 0, Europe),
    (
        &[
            "europe/berlin",
            "europe/paris",
            "europe/madrid",
            "europe/rome",
            "europe/amsterdam",
            "europe/brussels",
            "europe/vienna",
            "europe/zurich",
            "europe/stockholm",
            "europe/oslo",
            "europe/copenhagen",
            "europe/prague",
            "europe/warsaw",
            "europe/budapest",
            "europe/belgrade",
            "europe/zagreb",
            "europe/luxembourg",
        ],
        60,
        Europe,
    ),
    (
        &[
            "europe/athens",
            "europe/helsinki",
            "europe/kyiv",
            "europe/kiev",
            "europe/bucharest",
            "europe/sofia",
            "europe/vilnius",
            "europe/riga",
            "europe/tallinn",
        ],
        120,
        Europe,
    ),
    (
        &[
            "europe/moscow",
            "europe/istanbul",
            "europe/minsk",
            "asia/riyadh",
            "asia/baghdad",
            "africa/nairobi",
            "asia/kuwait",
            "asia/qatar",
        ],
        180,
        Never,
    ),
    (&["africa/johannesburg", "sast", "africa/tripoli", "africa/harare"], 120, Never),
    (&["africa/lagos", "wat", "africa/algiers"], 60, Never),
    (&["asia/tehran"], 210, Never),
    (&["asia/dubai", "gst", "asia/tbilisi", "asia/yerevan", "asia/baku"], 240, Never),
    (&["asia/kabul"], 270, Never),
    (&["asia/karachi", "pkt", "asia/tashkent", "asia/almaty", "asia/yekaterinburg"], 300, Never),
    (&["asia/kathmandu"], 345, Never),
    (&["asia/dhaka", "asia/omsk"], 360, Never),
    (&["asia/yangon"], 390, Never),
    (
        &[
            "asia/bangkok",
            "asia/jakarta",
            "asia/ho_chi_minh",
            "asia/saigon",
            "wib",
            "ict",
            "asia/novosibirsk",
        ],
        420,
        Never,
    ),
    (
        &[
            "asia/shanghai",
            "asia/beijing",
            "asia/chongqing",
            "prc",
            "asia/hong_kong",
            "asia/singapore",
            "asia/taipei",
            "asia/manila",
            "asia/kuala_lumpur",
            "asia/macau",
            "australia/perth",
            "awst",
        ],
        480,
        Never,
    ),
    (&["australia/darwin", "acst"], 570, Never),
    (&["australia/adelaide"], 570, Australia),
    (&["australia/sydney", "australia/melbourne", "australia/canberra", "australia/hobart"], 600, Australia),
    (&["asia/vladivostok"], 600, Never),
    (&["pacific/auckland"], 720, Zealand),
];

/// A zone whose distance from UTC is known.
#[derive(Clone, Copy)]
pub(crate) struct Zone {
    minutes: i64,
    summer: Summer,
}

impl Zone {
    /// The zone that is called so: a name, an abbreviation, or a distance (`+08:00`, `utc-5`, `gmt+0530`).
    pub(crate) fn named(name: &str) -> Option<Self> {
        let lower = name.trim().to_ascii_lowercase();
        if let Some((_, minutes, summer)) = ZONES.iter().find(|(names, ..)| names.contains(&lower.as_str())) {
            return Some(Self { minutes: *minutes, summer: *summer });
        }
        let rest = lower.trim_start_matches("utc").trim_start_matches("gmt").trim_start();
        let sign = match rest.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let digits: String = rest.chars().filter(char::is_ascii_digit).collect();
        let (hours, minutes) = match digits.len() {
            1 | 2 => (digits.parse::<i64>().ok()?, 0),
            4 => (digits.get(..2)?.parse::<i64>().ok()?, digits.get(2..)?.parse::<i64>().ok()?),
            _ => return None,
        };
        (hours <= 14 && minutes < 60)
            .then_some(Self { minutes: sign * (hours * 60 + minutes), summer: Never })
    }

    /// The distance from UTC at a time that is given in UTC, in milliseconds.
    pub(crate) fn at(self, utc: i64) -> i64 {
        let standard = self.minutes * 60_000;
        let (year, ..) = date(utc.div_euclid(DAY_MS));
        let hour = 3_600_000;
        let (begins, ends) = match self.summer {
            Never => return standard,
            America => {
                (nth_sunday(year, 3, 2) + 2 * hour - standard, nth_sunday(year, 11, 1) + hour - standard)
            }
            Europe => (last_sunday(year, 3) + hour, last_sunday(year, 10) + hour),
            Australia => {
                (nth_sunday(year, 10, 1) + 2 * hour - standard, nth_sunday(year, 4, 1) + 2 * hour - standard)
            }
            Zealand => {
                (last_sunday(year, 9) + 2 * hour - standard, nth_sunday(year, 4, 1) + 2 * hour - standard)
            }
        };
        let summer = if begins < ends { (begins..ends).contains(&utc) } else { utc >= begins || utc < ends };
        if summer { standard + hour } else { standard }
    }

    /// The distance from UTC at a time that is given as the zone's clocks show it, in milliseconds.
    pub(crate) fn of_local(self, local: i64) -> i64 {
        self.at(local - self.at(local - self.minutes * 60_000))
    }
}

/// Midnight of the month's n-th Sunday, as if in UTC.
fn nth_sunday(year: i64, month: i64, n: i64) -> i64 {
    let first = days(year, month, 1);
    // 1970-01-01 was a Thursday.
    let to_sunday = (3 - first.rem_euclid(7)).rem_euclid(7);
    (first + to_sunday + 7 * (n - 1)) * DAY_MS
}

/// Midnight of the month's last Sunday, as if in UTC.
fn last_sunday(year: i64, month: i64) -> i64 {
    let next = if month == 12 { days(year + 1, 1, 1) } else { days(year, month + 1, 1) };
    let back = (next - 1 - 3).rem_euclid(7);
    (next - 1 - back) * DAY_MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    const HOUR: i64 = 3_600_000;
    const JANUARY: i64 = 1_767_268_800_000; // 2026-01-01T12:00:00Z
    const JULY: i64 = 1_782_907_200_000; // 2026-07-01T12:00:00Z

    // spec: C-20
    #[test_case("America/Los_Angeles", -8, -7)]
    #[test_case("America/New_York", -5, -4)]
    #[test_case("Europe/Berlin", 1, 2)]
    #[test_case("Europe/London", 0, 1)]
    #[test_case("Australia/Sydney", 11, 10)]
    #[test_case("Pacific/Auckland", 13, 12)]
    #[test_case("Asia/Shanghai", 8, 8)]
    #[test_case("PT", -8, -7)]
    #[test_case("UTC+8", 8, 8)]
    fn zones_know_summer(name: &str, january: i64, july: i64) {
        let zone = Zone::named(name).unwrap();
        assert_eq!((zone.at(JANUARY), zone.at(JULY)), (january * HOUR, july * HOUR));
    }

    // spec: C-20
    #[test]
    fn summer_time_turns_at_the_hour() {
        // 2026-03-08T10:00:00Z is two o'clock in Los Angeles, and then three.
        let turn = 1_772_964_000_000;
        let zone = Zone::named("America/Los_Angeles").unwrap();
        assert_eq!((zone.at(turn - 1), zone.at(turn)), (-8 * HOUR, -7 * HOUR));
        assert_eq!(zone.of_local(turn - 8 * HOUR - 1), -8 * HOUR);
        assert!(Zone::named("Mars/Olympus").is_none());
    }
}

//! Fields and texts of a body that say when to come back.

use super::duration::{self, SECONDS};
use super::headers::when;
use super::words::FIELDS;
use super::{is_sane, wall};
use crate::reading::Reading;
use crate::source::Source;
use crate::view::View;
use crate::words::{Heard, REACH, Said};
use crate::{RetryHint, RetryWhen};
use failover_types::Timestamp;
use std::time::Duration;

/// The front of a text and the words of hints in it.
pub(super) struct Front<'a> {
    text: &'a str,
    view: &'a View,
    source: &'a Source<'a>,
    heard: &'a Heard,
}

fn alone(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    let after = text.get(end..).and_then(|text| text.chars().next());
    !before.is_some_and(|ch| ch.is_ascii_alphanumeric()) && !after.is_some_and(|ch| ch.is_ascii_alphabetic())
}

impl<'a> Front<'a> {
    pub(super) fn of(reading: &'a Reading<'_>) -> Self {
        let (view, heard) = (reading.view(), reading.heard());
        let silent = heard.fields.is_empty() && heard.said.is_empty();
        let text = if silent { "" } else { valid(view.slice(0..REACH)) };
        Self { text, view, source: &reading.source, heard }
    }

    /// What fields say: `retryDelay`, `resets_at`, `retry_after` …
    pub(super) fn fields(&self) -> Option<RetryHint> {
        let mut best: [Option<(u8, RetryHint)>; 2] = [None, None];
        for found in &self.heard.fields {
            let Some((_, name, unit)) = FIELDS.get(usize::from(found.word)) else { continue };
            if !alone(self.text, found.start, found.end) {
                continue;
            }
            let Some(mut when) = self.value(found.end, *unit).filter(is_sane) else { continue };
            // A time of day without a date: not a span, though it is written like one.
            if matches!(when, RetryWhen::After(_)) && is_point(name) && self.is_clock(found.end) {
                continue;
            }
            if let RetryWhen::After(span) = &mut when
                && matches!(*name, "retrydelay" | "retry_delay" | "quotaresetdelay")
            {
                *span = without_noise(*span);
            }
            let slot = usize::from(matches!(when, RetryWhen::At(_)));
            if let Some(place) = best.get_mut(slot)
                && place.as_ref().is_none_or(|(other, _)| found.word < *other)
            {
                *place = Some((found.word, RetryHint::new(when, *name)));
            }
        }
        let [span, time] = best;
        match (span, time) {
            (Some((_, mut span)), Some((_, time))) => {
                span.also = Some(time.when);
                Some(span)
            }
            (Some((_, hint)), None) | (None, Some((_, hint))) => Some(hint),
            (None, None) => None,
        }
    }

    /// The value of the field whose name ends at `end`.
    fn value(&self, end: usize, unit: u128) -> Option<RetryWhen> {
        let rest = self.text.get(end..)?;
        let named = rest.trim_start_matches(['"', '\'', ' ']);
        if let Some(span) = message(named) {
            return Some(RetryWhen::After(span));
        }
        let value = match named.strip_prefix([':', '=']) {
            Some(value) => value,
            // Pairs of headers as Python prints them: `('retry-after', '900')`.
            None => named.strip_prefix(", ").filter(|_| named.len() < rest.len())?,
        };
        let value = value.trim_start_matches(['"', '\'', ' ', '~', '[']);
        let value = value.strip_prefix("b'").unwrap_or(value);
        let start = end + (rest.len() - value.len());
        let len = value.bytes().take(40).take_while(|byte| !b"\"',};)]".contains(byte)).count();
        let raw = self.source.cut(self.view.origin(start), self.view.origin(start + len));
        let raw = raw.trim_end_matches(['\\', ' ', '"', '\'']);
        // `Mon, 30 Nov 2026 12:05:00 GMT` has a comma of its own.
        if len == 3 && raw.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            let from = self.view.origin(start);
            return when(self.source.cut(from, from + HTTP_DATE), unit);
        }
        when(raw, unit).or_else(|| when(raw.split_whitespace().next().unwrap_or_default(), unit))
    }

    fn is_clock(&self, end: usize) -> bool {
        let near = self.text.get(end..crate::facts::floor(self.text, end + 16)).unwrap_or_default();
        near.bytes().filter(|byte| *byte == b':').count() > 2
    }

    /// What the text says, in words.
    pub(super) fn said(&self) -> Option<RetryHint> {
        let mut clock = None;
        for found in &self.heard.said {
            let (start, end) = (found.start, found.end);
            let span = match found.word {
                Said::Before(bare) if alone(self.text, start, end) => {
                    let dated = self.is_date(end);
                    if dated && clock.is_none() && self.text.get(start..end).is_some_and(is_after) {
                        clock = self.clock_after(end);
                    }
                    span_after(self.text, start, end, bare && !dated)
                }
                Said::Behind => span_before(self.text, start),
                Said::Clock if clock.is_none() => {
                    clock = self.clock_after(end);
                    None
                }
                Said::Before(_) | Said::Clock => None,
            };
            if let Some(when) = span.map(RetryWhen::After).filter(is_sane) {
                return Some(RetryHint::new(when, "text"));
            }
        }
        clock
    }

    /// Whether a date or a time of day stands behind `end`. The source is asked: the text has no `-`.
    fn is_date(&self, end: usize) -> bool {
        let Some(rest) = self.text.get(end..) else { return false };
        let skipped = rest.len() - rest.trim_start_matches([' ', ':', '"', '\'']).len();
        let from = self.view.origin(end + skipped);
        wall::is_date(self.source.cut(from, from + 32))
    }

    /// The clock text, or the time, that stands behind `end`.
    fn clock_after(&self, end: usize) -> Option<RetryHint> {
        let rest = self.text.get(end..)?;
        let trimmed = rest.trim_start_matches([' ', ':', '"', '\'']);
        let trimmed = ["at ", "on "].iter().find_map(|word| trimmed.strip_prefix(word)).unwrap_or(trimmed);
        let skipped = rest.len() - trimmed.len();
        let from = self.view.origin(end + skipped);
        let raw = self.source.cut(from, from + 64);
        let digits = raw.len() - raw.trim_start_matches(|ch: char| ch.is_ascii_digit()).len();
        if let Some(number) = raw.get(..digits).and_then(|digits| digits.parse::<u64>().ok())
            && (9..=13).contains(&digits)
        {
            let ms = if digits > 11 { number } else { number.saturating_mul(1000) };
            return Some(RetryHint::new(RetryWhen::At(Timestamp::from_millis(ms)), "text"));
        }
        let word = raw.split([' ', '"', ')', ',', '}', '\\', '\'']).next().unwrap_or_default();
        if let Some(at) = wall::iso(word.trim_end_matches('.')) {
            return Some(RetryHint::new(RetryWhen::At(at), "text"));
        }
        let (text, zone) = wall::leading(raw)?;
        Some(RetryHint::new(RetryWhen::Wall { text, zone }, "text"))
    }
}

/// The text at the front of bytes that a cut may have left with half a char.
fn valid(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => bytes.get(..error.valid_up_to()).map(valid).unwrap_or_default(),
    }
}

/// What a program printed with nine digits is noise below the millisecond, and is taken to the nearest one: rounded up,
/// `41.065029449s` would be a millisecond more than the provider says. `21.2504s` is meant as it stands.
fn without_noise(span: Duration) -> Duration {
    const HALF: Duration = Duration::from_micros(500);
    if span.subsec_nanos().is_multiple_of(1000) {
        return span;
    }
    Duration::from_millis(u64::try_from(span.saturating_add(HALF).as_millis()).unwrap_or(u64::MAX))
}

/// Whether words before a wait may stand before a time as well: `retry your request after`.
fn is_after(words: &str) -> bool {
    words.ends_with(" after")
}

/// A span as the fields of a message: `{ seconds: 34 nanos: 500 }`, `: {"seconds": 34}`.
fn message(text: &str) -> Option<Duration> {
    let text = text.trim_start_matches([':', '=', ' ']).strip_prefix('{')?;
    let (fields, _) = text.split_once('}').unwrap_or((text, ""));
    let number = |name: &str| {
        let (_, rest) = fields.split_once(name)?;
        let rest = rest.trim_start_matches(['"', '\'', ':', '=', ' ']);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest.get(..digits)?.parse::<u64>().ok()
    };
    let (seconds, nanos) = (number("seconds"), number("nanos"));
    seconds.or(nanos)?;
    Duration::from_secs(seconds.unwrap_or(0)).checked_add(Duration::from_nanos(nanos.unwrap_or(0)))
}

/// Whether a field's name says that a point in time stands in it.
fn is_point(name: &str) -> bool {
    ["at", "time", "timestamp", "until", "date"].iter().any(|end| name.ends_with(end))
}

/// The length of a date of HTTP.
const HTTP_DATE: usize = 29;

/// A sentence is looked at this far back.
const LOOK_BACK: usize = 512;

fn span_after(text: &str, start: usize, end: usize, bare: bool) -> Option<Duration> {
    let word = text.get(start..end)?;
    let before = text.get(crate::facts::floor(text, start.saturating_sub(LOOK_BACK))..start)?.trim_end();
    // A client's or a router's own plan: `retrying in 5 s`, `will retry in`, `(reset after 3s)`.
    if word.contains("retry")
        && before
            .rsplit(['.', '\n'])
            .next()
            .is_some_and(|line| line.contains("retrying") && word == "retry in")
        || before.ends_with("will") && word.starts_with("retry")
        || before.ends_with("with")
        // LiteLLM's router: its own cooldown.
        || word.ends_with("again in") && before.contains("no deployments available")
        || before.ends_with('(') && word.starts_with("reset after")
        || before.ends_with("timeout")
        || before.ends_with("timed out")
    {
        return None;
    }
    let rest = text.get(end..)?;
    let mut rest = rest.trim_start_matches([' ', ':', '~', '≈']);
    for filler in
        ["about ", "approximately ", "another ", "at least ", "around ", "up to ", "roughly ", "the next "]
    {
        rest = rest.strip_prefix(filler).unwrap_or(rest);
    }
    if !bare && let Some((span, _)) = duration::clock(rest) {
        return Some(span);
    }
    let (mut span, after) = duration::leading(rest, bare.then_some(SECONDS))?;
    if bare && after.starts_with([':', '-', '/']) || after.starts_with(" 20") && !after.starts_with(" 20 ") {
        return None;
    }
    // "retry in" is Gemini's wording of its protobuf delay.
    if word == "retry in" {
        span = without_noise(span);
    }
    if word == "provider requested" && !after.trim_start().starts_with("wait") {
        return None;
    }
    Some(span)
}

/// A span stands at most this far before the word that follows it.
const SPAN_REACH: usize = 48;

fn span_before(text: &str, start: usize) -> Option<Duration> {
    let near = text.get(crate::facts::floor(text, start.saturating_sub(SPAN_REACH))..start)?;
    let begins = |at: usize| {
        let before = near.get(..at).unwrap_or_default();
        !before.strip_suffix('.').unwrap_or(before).ends_with(|ch: char| ch.is_ascii_digit())
    };
    near.char_indices().filter(|(at, ch)| ch.is_ascii_digit() && begins(*at)).find_map(|(at, _)| {
        let (span, rest) = duration::leading(near.get(at..)?, None)?;
        matches!(rest.trim(), "" | "," | "以" | "之" | "后" | "sonra" | "を" | "ほど").then_some(span)
    })
}

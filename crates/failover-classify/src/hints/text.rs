//! Fields and texts of a body that say when to come back.

use super::duration::{self, MILLIS, SECONDS};
use super::headers::when;
use super::wall;
use crate::reading::Reading;
use crate::source::Source;
use crate::view::View;
use crate::words::{Heard, REACH, Said, Word};
use crate::{RetryHint, RetryWhen};
use failover_types::Timestamp;
use std::time::Duration;

/// Fields (in the view's normal form), their names in evidence, and the unit of a bare number in them. Earlier ones are believed first.
const FIELDS: [(&str, &str, u128); 51] = [
    ("retrydelay", "retrydelay", SECONDS),
    ("retry after ms", "retry_after_ms", MILLIS),
    ("retryafterms", "retryafterms", MILLIS),
    ("retry after seconds", "retry_after_seconds", SECONDS),
    ("retryafterseconds", "retryafterseconds", SECONDS),
    ("resets in seconds", "resets_in_seconds", SECONDS),
    ("retry after", "retry_after", SECONDS),
    ("retryafter", "retryafter", SECONDS),
    ("quotaresetdelay", "quotaresetdelay", SECONDS),
    ("resets in", "resets_in", SECONDS),
    ("reset in", "reset_in", SECONDS),
    ("reset seconds", "reset_seconds", SECONDS),
    ("estimated time", "estimated_time", SECONDS),
    ("resets at", "resets_at", SECONDS),
    ("reset at", "reset_at", SECONDS),
    ("resetsat", "resetsat", SECONDS),
    ("resetat", "resetat", SECONDS),
    ("reset time", "reset_time", SECONDS),
    ("quotaresettimestamp", "quotaresettimestamp", SECONDS),
    ("x ratelimit reset", "x_ratelimit_reset", SECONDS),
    ("retry delay", "retry_delay", SECONDS),
    ("retry in seconds", "retry_in_seconds", SECONDS),
    ("retryinseconds", "retryinseconds", SECONDS),
    ("retry in ms", "retry_in_ms", MILLIS),
    ("retry delay ms", "retry_delay_ms", MILLIS),
    ("retrydelayms", "retrydelayms", MILLIS),
    ("seconds until reset", "seconds_until_reset", SECONDS),
    ("reset after", "reset_after", SECONDS),
    ("reset after seconds", "reset_after_seconds", SECONDS),
    ("resetafter", "resetafter", SECONDS),
    ("resetinseconds", "resetinseconds", SECONDS),
    ("resetsinseconds", "resetsinseconds", SECONDS),
    ("reset in seconds", "reset_in_seconds", SECONDS),
    ("reset in ms", "reset_in_ms", MILLIS),
    ("retry at", "retry_at", SECONDS),
    ("retryat", "retryat", SECONDS),
    ("resettime", "resettime", SECONDS),
    ("reset timestamp", "reset_timestamp", SECONDS),
    ("next reset time", "next_reset_time", SECONDS),
    ("nextresettime", "nextresettime", SECONDS),
    ("available at", "available_at", SECONDS),
    ("blocked until", "blocked_until", SECONDS),
    ("reset date", "reset_date", SECONDS),
    ("retry after secs", "retry_after_secs", SECONDS),
    ("wait seconds", "wait_seconds", SECONDS),
    ("waitseconds", "waitseconds", SECONDS),
    ("wait ms", "wait_ms", MILLIS),
    ("cooldown seconds", "cooldown_seconds", SECONDS),
    ("backoff seconds", "backoff_seconds", SECONDS),
    ("backoff ms", "backoff_ms", MILLIS),
    ("next allowed in", "next_allowed_in", SECONDS),
];

/// Words after which a span stands. `true`: a bare number counts as seconds.
const BEFORE: [(&str, bool); 144] = [
    ("versuche es in", false),
    ("versuch es in", false),
    ("probiere es in", false),
    ("erneuter versuch in", false),
    ("nouvel essai dans", false),
    ("possible dans", false),
    ("try again in", false),
    ("try again after", true),
    ("trying again in", false),
    ("again in", false),
    ("come back in", false),
    ("for the next", false),
    ("retry in", false),
    ("retry after", true),
    ("retry again in", false),
    ("retry your request in", false),
    ("retry your request after", false),
    ("retry the request after", true),
    ("retry this request after", false),
    ("retrying after", false),
    ("please wait", false),
    ("wait for", false),
    ("wait at least", false),
    ("must wait", false),
    ("need to wait", false),
    ("wait", false),
    ("will reset in", false),
    ("will reset after", false),
    ("resets in", false),
    ("resets after", false),
    ("reset in", false),
    ("reset after", false),
    ("refreshes in", false),
    ("renews in", false),
    ("available in", false),
    ("available again in", false),
    ("back off for", false),
    ("back off for at least", false),
    ("lifted in", false),
    ("provider requested", false),
    ("cooldown:", false),
    ("expires in", false),
    ("через", false),
    ("warten sie", false),
    ("versuchen sie es in", false),
    ("erneut in", false),
    ("dans", false),
    ("dentro de", false),
    ("retry request in", false),
    ("replenished in", false),
    ("replenishes in", false),
    ("replenish in", false),
    ("renewed in", false),
    ("restored in", false),
    ("refilled in", false),
    ("refills in", false),
    ("refill in", false),
    ("resumes in", false),
    ("resume in", false),
    ("ready in", false),
    ("unlocks in", false),
    ("unblocked in", false),
    ("blocked for", false),
    ("throttled for", false),
    ("limited for", false),
    ("pause for", false),
    ("hold off for", false),
    ("cool down for", false),
    ("cooling down for", false),
    ("next request in", false),
    ("time until reset:", false),
    ("time remaining:", false),
    ("later in", false),
    ("again later in", false),
    ("again in about", false),
    ("riprova tra", false),
    ("riprova fra", false),
    ("riprovare tra", false),
    ("riprovare fra", false),
    ("attendi", false),
    ("attendere", false),
    ("thử lại sau", false),
    ("ponownie za", false),
    ("spróbuj za", false),
    ("lagi dalam", false),
    ("lagi setelah", false),
    ("opnieuw over", false),
    ("probeer het over", false),
    ("wacht", false),
    ("de nuevo en", false),
    ("nuevamente en", false),
    ("reintente en", false),
    ("espere", false),
    ("espera", false),
    ("novamente em", false),
    ("aguarde", false),
    ("daqui a", false),
    ("attendez", false),
    ("patientez", false),
    ("patienter", false),
    ("warte", false),
    ("bitte in", false),
    ("wieder in", false),
    ("igen om", false),
    ("igjen om", false),
    ("znovu za", false),
    ("din nou în", false),
    ("din nou peste", false),
    ("подождите", false),
    ("подождать", false),
    ("зачекайте", false),
    ("أخرى بعد", false),
    ("بعد", false),
    ("อีกครั้งใน", false),
    ("请等待", false),
    ("等待", false),
    ("还需", false),
    ("剩余冷却时间", false),
    ("冷却时间", false),
    ("opens in", false),
    ("slot in", false),
    ("opens up in", false),
    ("a intentarlo en", false),
    ("intentarlo en", false),
    ("intente en", false),
    ("tentar em", false),
    ("tente em", false),
    ("zurückgesetzt in", false),
    ("expected available in", false),
    ("wieder verfügbar in", false),
    ("verfügbar in", false),
    ("disponible dans", false),
    ("disponible en", false),
    ("disponível em", false),
    ("reset dans", false),
    ("frees up in", false),
    ("free up in", false),
    ("next one in", false),
    ("next attempt in", false),
    ("retry possible in", false),
    ("cool off period:", false),
    ("cooldown period:", false),
    ("nächster versuch in", false),
    ("accepted again in", false),
];

/// Words that follow a span; it stands before them.
const BEHIND: [&str; 37] = [
    "后重试",
    "后再试",
    "后再次",
    "后重新",
    "后に",
    "후에",
    "후 다시",
    "之后重试",
    "后自动",
    "后恢复",
    "后重置",
    "后可",
    "erneut",
    "sonra tekrar",
    "sonra yeniden",
    "बाद",
    "后再",
    "后继续",
    "后刷新",
    "后解除",
    "之后再试",
    "后,",
    "お待ち",
    "待って",
    "후 재시도",
    "뒤에",
    "뒤 다시",
    "이후",
    "before retrying",
    "before trying again",
    "before sending",
    "opnieuw",
    "之后再",
    "后再来",
    "后にもう",
    "뒤에 다시",
    "以降に",
];

/// Words after which a clock text stands.
const CLOCKS: [&str; 42] = [
    "resets at",
    "reset at",
    "resets on",
    "reset on",
    "will reset at",
    "will reset on",
    "resets",
    "renews at",
    "renews on",
    "refreshes at",
    "refreshes on",
    "try again at",
    "try again after",
    "try again on",
    "retry after",
    "retry at",
    "regain access on",
    "regain access at",
    "available again at",
    "available at",
    "限额将在",
    "额度将在",
    "将在",
    "将于",
    "リセット时刻:",
    "limit reached|",
    "重置时间:",
    "重置时间为",
    "恢复时间:",
    "リセット",
    "сбросится",
    "обновится",
    "zurückgesetzt um",
    "erneut um",
    "se restablece",
    "se réinitialise",
    "not before",
    "blocked until",
    "limited until",
    "wait until",
    "back at",
    "come back at",
];

/// The words of hints, for the automaton. Fields are believed in this order.
pub(crate) fn words() -> impl Iterator<Item = (&'static str, Word)> {
    let fields = (0_u8..).zip(&FIELDS).map(|(rank, (word, _, _))| (*word, Word::Field(rank)));
    let before = BEFORE.iter().map(|(word, bare)| (*word, Word::Said(Said::Before(*bare))));
    let behind = BEHIND.iter().map(|word| (*word, Word::Said(Said::Behind)));
    let clocks = CLOCKS.iter().map(|word| (*word, Word::Said(Said::Clock)));
    fields.chain(before).chain(behind).chain(clocks)
}

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
    pub(super) fn of(reading: &'a Reading<'a>) -> Self {
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
            let Some(mut when) = self.value(found.end, *unit) else { continue };
            // A time of day without a date: not a span, though it is written like one.
            if matches!(when, RetryWhen::After(_)) && is_point(name) && self.is_clock(found.end) {
                continue;
            }
            if let RetryWhen::After(span) = &mut when
                && matches!(*name, "retrydelay" | "quotaresetdelay")
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
                Said::Before(bare) if alone(self.text, start, end) => span_after(self.text, start, end, bare),
                Said::Behind => span_before(self.text, start),
                Said::Clock if clock.is_none() => {
                    clock = self.clock_after(end);
                    None
                }
                Said::Before(_) | Said::Clock => None,
            };
            if let Some(span) = span {
                return Some(RetryHint::new(RetryWhen::After(span), "text"));
            }
        }
        clock
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

//! Fields and texts of a body that say when to come back.

use super::duration::{self, MILLIS, SECONDS};
use super::headers::when;
use super::wall;
use crate::view::View;
use crate::{RetryHint, RetryWhen};
use aho_corasick::{AhoCorasick, MatchKind};
use failover_types::Timestamp;
use std::sync::LazyLock;
use std::time::Duration;

/// Hints are looked for in this much of a text's front.
const REACH: usize = 16 * 1024;

/// Fields (in the view's normal form) and the unit of a bare number in them. Earlier ones are believed first.
const FIELDS: [(&str, u128); 20] = [
    ("retrydelay", SECONDS),
    ("retry after ms", MILLIS),
    ("retryafterms", MILLIS),
    ("retry after seconds", SECONDS),
    ("retryafterseconds", SECONDS),
    ("resets in seconds", SECONDS),
    ("retry after", SECONDS),
    ("retryafter", SECONDS),
    ("quotaresetdelay", SECONDS),
    ("resets in", SECONDS),
    ("reset in", SECONDS),
    ("reset seconds", SECONDS),
    ("estimated time", SECONDS),
    ("resets at", SECONDS),
    ("reset at", SECONDS),
    ("resetsat", SECONDS),
    ("resetat", SECONDS),
    ("reset time", SECONDS),
    ("quotaresettimestamp", SECONDS),
    ("x ratelimit reset", SECONDS),
];

/// Words after which a span stands. `true`: a bare number counts as seconds.
const BEFORE: [(&str, bool); 42] = [
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
];

/// Words that follow a span; it stands before them.
const BEHIND: [&str; 14] = [
    "后重试",
    "后再试",
    "后再次",
    "后重新",
    "後に",
    "後再",
    "후에",
    "후 다시",
    "之后重试",
    "后自动",
    "後重試",
    "后恢复",
    "后重置",
    "后可",
];

/// Words after which a clock text stands.
const CLOCKS: [&str; 26] = [
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
    "リセット時刻:",
    "limit reached|",
];

#[derive(Clone, Copy)]
enum Kind {
    Field(u128),
    Before(bool),
    Behind,
    Clock,
}

struct Triggers {
    automaton: AhoCorasick,
    kinds: Vec<Kind>,
}

fn triggers<'a>(list: impl Iterator<Item = (&'a str, Kind)>) -> Option<Triggers> {
    let (words, kinds): (Vec<_>, Vec<_>) = list.unzip();
    let automaton =
        AhoCorasick::builder().match_kind(MatchKind::Standard).prefilter(false).build(words).ok()?;
    Some(Triggers { automaton, kinds })
}

static FIELD_WORDS: LazyLock<Option<Triggers>> =
    LazyLock::new(|| triggers(FIELDS.iter().map(|(word, unit)| (*word, Kind::Field(*unit)))));
static SAID_WORDS: LazyLock<Option<Triggers>> = LazyLock::new(|| {
    let before = BEFORE.iter().map(|(word, bare)| (*word, Kind::Before(*bare)));
    let behind = BEHIND.iter().map(|word| (*word, Kind::Behind));
    let clocks = CLOCKS.iter().map(|word| (*word, Kind::Clock));
    triggers(before.chain(behind).chain(clocks))
});

fn front(view: &View) -> &str {
    let bytes = view.slice(0..REACH);
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
    }
}

fn alone(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    let after = text.get(end..).and_then(|text| text.chars().next());
    !before.is_some_and(|ch| ch.is_ascii_alphanumeric()) && !after.is_some_and(|ch| ch.is_ascii_alphabetic())
}

/// What fields say: `retryDelay`, `resets_at`, `retry_after` …
pub(super) fn fields(view: &View, source: &impl Fn(usize, usize) -> String) -> Option<RetryHint> {
    let words = FIELD_WORDS.as_ref()?;
    let text = front(view);
    let mut best: [Option<(usize, RetryHint)>; 2] = [None, None];
    for found in words.automaton.find_overlapping_iter(text).take(64) {
        let Some(Kind::Field(unit)) = words.kinds.get(found.pattern().as_usize()) else { continue };
        if !alone(text, found.start(), found.end()) {
            continue;
        }
        let rest = text.get(found.end()..).unwrap_or_default();
        let value = rest.trim_start_matches(['"', '\'', ' ']);
        let Some(value) = value.strip_prefix([':', '=']) else { continue };
        let offset = value.trim_start_matches(['"', '\'', ' ', '~']);
        let start = found.end() + (rest.len() - offset.len());
        let len = offset.find(['"', '\'', ',', '}', ';', ')', ']']).unwrap_or(offset.len()).min(40);
        let raw = source(view.origin(start), view.origin(start + len));
        let raw = raw.trim_end_matches(['\\', ' ', '"', '\'']);
        let word = raw.split_whitespace().next().unwrap_or_default();
        let Some(mut when) = when(raw, *unit).or_else(|| when(word, *unit)) else { continue };
        let name = FIELDS.get(found.pattern().as_usize()).map_or("", |(name, _)| name);
        if let RetryWhen::After(span) = &mut when {
            // Protobuf's nine digits are noise of a float; the provider itself rounds down.
            if name == "retrydelay" || name == "quotaresetdelay" {
                *span = Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
            }
        }
        let slot = usize::from(matches!(when, RetryWhen::At(_)));
        let rank = found.pattern().as_usize();
        if let Some(place) = best.get_mut(slot)
            && place.as_ref().is_none_or(|(other, _)| rank < *other)
        {
            *place = Some((rank, RetryHint::new(when, name.replace(' ', "_"))));
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

/// What the text says, in words.
pub(super) fn said(view: &View, source: &impl Fn(usize, usize) -> String) -> Option<RetryHint> {
    let words = SAID_WORDS.as_ref()?;
    let text = front(view);
    let mut clock = None;
    for found in words.automaton.find_overlapping_iter(text).take(128) {
        let (start, end) = (found.start(), found.end());
        match words.kinds.get(found.pattern().as_usize()) {
            Some(Kind::Before(bare)) if alone(text, start, end) => {
                if let Some(span) = span_after(text, start, end, *bare) {
                    return Some(RetryHint::new(RetryWhen::After(span), "text"));
                }
            }
            Some(Kind::Behind) => {
                if let Some(span) = span_before(text, start) {
                    return Some(RetryHint::new(RetryWhen::After(span), "text"));
                }
            }
            Some(Kind::Clock) if clock.is_none() => clock = clock_after(view, text, end, source),
            _ => {}
        }
    }
    clock
}

fn span_after(text: &str, start: usize, end: usize, bare: bool) -> Option<Duration> {
    let word = text.get(start..end)?;
    let before = text.get(..start)?.trim_end();
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
    let (mut span, after) = duration::leading(rest, bare.then_some(SECONDS))?;
    if bare && after.starts_with([':', '-', '/']) || after.starts_with(" 20") && !after.starts_with(" 20 ") {
        return None;
    }
    // "retry in" is Gemini's wording of its protobuf delay.
    if word == "retry in" {
        span = Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    }
    if word == "provider requested" && !after.trim_start().starts_with("wait") {
        return None;
    }
    Some(span)
}

fn span_before(text: &str, start: usize) -> Option<Duration> {
    let before = text.get(..start)?;
    let mut from = before.len();
    for (at, ch) in before.char_indices().rev().take(24) {
        if !(ch.is_ascii_digit()
            || ch == '.'
            || ch == ' '
            || "秒分钟小时天毫초분시간時間日后後約约".contains(ch))
        {
            break;
        }
        from = at;
    }
    let span = before.get(from..)?.trim_start_matches(|ch: char| !ch.is_ascii_digit());
    duration::leading(span, None).map(|(span, _)| span)
}

fn clock_after(
    view: &View,
    text: &str,
    end: usize,
    source: &impl Fn(usize, usize) -> String,
) -> Option<RetryHint> {
    let rest = text.get(end..)?;
    let trimmed = rest.trim_start_matches([' ', ':', '"', '\'']);
    let trimmed = ["at ", "on "].iter().find_map(|word| trimmed.strip_prefix(word)).unwrap_or(trimmed);
    let skipped = rest.len() - trimmed.len();
    let from = view.origin(end + skipped);
    let raw = source(from, from + 64);
    let digits: String = raw.chars().take_while(char::is_ascii_digit).collect();
    if let Ok(number) = digits.parse::<u64>()
        && (9..=13).contains(&digits.len())
    {
        let ms = if digits.len() > 11 { number } else { number.saturating_mul(1000) };
        return Some(RetryHint::new(RetryWhen::At(Timestamp::from_millis(ms)), "text"));
    }
    let word =
        raw.split([' ', '"', ')', ',', '}', '\\', '\'']).next().unwrap_or_default().trim_end_matches('.');
    if let Some(at) = wall::iso(word) {
        return Some(RetryHint::new(RetryWhen::At(at), "text"));
    }
    let (text, zone) = wall::leading(&raw)?;
    Some(RetryHint::new(RetryWhen::Wall { text, zone }, "text"))
}

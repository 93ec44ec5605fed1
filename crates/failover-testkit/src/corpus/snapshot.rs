//! What a reviewer reads of a case: the input in short, then the whole verdict.

use super::Run;
use failover_classify::{RetryHint, RetryWhen, Verdict, redact};
use failover_types::{Timestamp, millis};
use std::fmt::Write as _;

/// Bytes of a body that a snapshot shows.
const SHOWN: usize = 900;
/// Bytes of a matched text that a snapshot shows.
const MATCHED: usize = 160;

/// The snapshot of a run: input, a line `--`, verdict. Redacted; the same for the same run.
pub fn render(run: &Run<'_>) -> String {
    let mut text = String::new();
    let case = run.case;
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<9}{}", value.replace('\n', "\n         "));
    };
    line("source", case.source.as_str());
    line("provider", &case.provider);
    line("surface", &words(&case.surface));
    line("status", &case.status.map_or_else(|| "-".to_owned(), |status| status.to_string()));
    line("code", &case.code.as_deref().map_or("-".into(), redact));
    for (header, value) in &case.headers {
        line("header", &format!("{header}: {}", redact(value)));
    }
    line("body", &body_of(&case.body, SHOWN));
    let verdict = &run.explanation.verdict;
    text.push_str("--\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<9}{}", value.replace('\n', "\n         "));
    };
    line("reason", &format!("{}, blames {}", verdict.reason, verdict.scope));
    line("hint", &hint_words(verdict).unwrap_or_else(|| "-".to_owned()));
    if let Some(tokens) = verdict.tokens {
        let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        line("tokens", &format!("{} observed, {} allowed", number(tokens.observed), number(tokens.allowed)));
    }
    line("rule", &verdict.evidence.rule);
    line("tier", &words(&verdict.evidence.tier));
    line("span", &span(&case.body, verdict.evidence.span));
    for lost in run.explanation.matched.iter().skip(1) {
        let order = format!("{}, {}", words(&lost.tier), words(&lost.family));
        line("lost", &format!("{} -> {} ({order})", lost.rule, lost.reason));
    }
    text
}

/// A body in short: redacted, then cut.
pub fn body_of(body: &str, most: usize) -> String {
    if body.is_empty() {
        return "(empty)".to_owned();
    }
    // Twice: what stands beside a secret may look like one only when that is gone.
    let once = redact(body);
    let clean = redact(&once);
    let visible: String = clean
        .trim_end_matches('\n')
        .chars()
        .flat_map(|c| {
            let hidden = c.is_control() && c != '\n'
                || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
            if hidden { c.escape_unicode().collect::<Vec<_>>() } else { vec![c] }
        })
        .collect();
    cut(&visible, most)
}

/// The clock text and zone of a hint.
pub fn wall_text(hint: &RetryHint) -> Option<(String, Option<String>)> {
    [Some(&hint.when), hint.also.as_ref()].into_iter().flatten().find_map(|when| match when {
        RetryWhen::Wall { text, zone } => Some((text.clone(), zone.clone())),
        RetryWhen::After(_) | RetryWhen::At(_) => None,
    })
}

/// The hint of a verdict in words.
pub fn hint_words(verdict: &Verdict) -> Option<String> {
    let hint = verdict.hint.as_ref()?;
    let forms: Vec<String> = [Some(&hint.when), hint.also.as_ref()]
        .into_iter()
        .flatten()
        .map(|when| match when {
            RetryWhen::After(wait) => format!("after {} ms", millis(*wait)),
            RetryWhen::At(at) => format!("at {}", Timestamp::as_millis(*at)),
            RetryWhen::Wall { text, zone: Some(zone) } => format!("at the clock text {text:?} in {zone}"),
            RetryWhen::Wall { text, zone: None } => format!("at the clock text {text:?}"),
        })
        .collect();
    Some(format!("{} ({})", forms.join(" or "), hint.source))
}

fn span(body: &str, span: Option<(usize, usize)>) -> String {
    let Some((start, end)) = span else { return "-".to_owned() };
    let text = body.get(start..end).map_or("(not on boundaries of characters)".into(), redact);
    format!("{start}..{end} {:?}", cut(&text, MATCHED))
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} … ({} bytes more)", text.get(..end).unwrap_or_default(), text.len() - end)
}

/// The name of a variant in words: `RateWindow` is `rate window`.
pub fn words(variant: &impl std::fmt::Debug) -> String {
    let mut text = String::new();
    for c in format!("{variant:?}").chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// The verdict as a snapshot tells it: what is compared between two revisions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Summary {
    /// `rate_limit, blames model`.
    pub reason: String,
    /// The hint in words, or `-`.
    pub hint: String,
    /// The deciding row.
    pub rule: String,
}

impl Summary {
    /// Reads the part behind `--` of a snapshot, with or without insta's head. `None` if there is none.
    pub fn of(snapshot: &str) -> Option<Self> {
        let (_, verdict) = snapshot.rsplit_once("\n--\n")?;
        let field = |name: &str| {
            verdict.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
        };
        Some(Self { reason: field("reason ")?, hint: field("hint ")?, rule: field("rule ")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Case, Expect};
    use failover_classify::{AsSignal, Classifier};
    use failover_types::FailoverReason;

    // spec: C-2, C-24
    #[test]
    fn a_snapshot_tells_both_halves_and_is_read_back() {
        let classifier = Classifier::standard().unwrap();
        let mut case = Case::new(
            "a",
            "acme",
            "line one\nkey sk-abcdefghijklmnop1234",
            Expect::new(FailoverReason::RateLimit),
        );
        case.status = Some(429);
        let run = Run { case: &case, explanation: case.with_signal(|signal| classifier.explain(signal)) };
        let text = render(&run);
        assert!(
            text.contains("body     line one\n         key [redacted]\n--\nreason   rate_limit"),
            "{text}"
        );
        let summary = Summary::of(&text).unwrap();
        assert_eq!(summary.rule, run.explanation.verdict.evidence.rule);
        assert!(summary.reason.starts_with("rate_limit, blames "));
    }
}

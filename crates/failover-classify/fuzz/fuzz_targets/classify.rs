//! Any bytes as body, headers, codes and causes: a verdict comes of them, twice the same; its spans stand on
//! boundaries, its hint resolves to a time that is not absurd, and a secret that stands in the text does not leave.
#![no_main]

use failover_classify::{Cause, Classifier, KnownSecrets, Signal, Surface, redact};
use failover_types::Timestamp;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(|| Classifier::standard().expect("built-in rules"));

const SECRET: &str = "sk-ant-api03-AbCdEf0123456789GhIjKl";
const NOW: Timestamp = Timestamp::from_millis(1_767_268_800_000);
const MONTH_MS: u64 = 31 * 86_400_000;

const PROVIDERS: [&str; 8] =
    ["", "openai", "anthropic", "openrouter", "zhipu", "google", "amazon-bedrock", "litellm"];
const STATUSES: [Option<u16>; 8] =
    [None, Some(200), Some(400), Some(401), Some(403), Some(429), Some(500), Some(503)];
const SURFACES: [Surface; 4] = [Surface::Http, Surface::SdkMessage, Surface::StreamEvent, Surface::Transport];

fn check(signal: &Signal<'_>, text: Option<&str>) {
    let explanation = CLASSIFIER.explain(signal);
    let verdict = CLASSIFIER.classify(signal);
    assert_eq!(verdict, explanation.verdict);
    if let Some(first) = explanation.matched.first()
        && signal.causes.is_empty()
    {
        assert_eq!(first.rule, verdict.evidence.rule);
    }
    let spans = explanation.matched.iter().filter_map(|found| found.span).chain(verdict.evidence.span);
    for (start, end) in spans {
        assert!(start <= end && end <= signal.body.len());
        if let Some(text) = text {
            assert!(text.get(start..end).is_some(), "{start}..{end}");
        }
    }
    if let Some(at) = verdict.hint.as_ref().and_then(|hint| hint.resolve(NOW)) {
        assert!(at >= NOW && at.as_millis() - NOW.as_millis() <= MONTH_MS);
    }
    assert!(!verdict.evidence.preview.contains(SECRET));
}

fuzz_target!(|data: &[u8]| {
    let (choice, data) = data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let surface = SURFACES[choice & 3];
    let status = STATUSES[(choice >> 2) & 7];
    let provider = PROVIDERS[choice >> 5];
    let text = std::str::from_utf8(data).ok();

    let mut signal = Signal::new(surface).with_body(data).with_provider(provider);
    if let Some(status) = status {
        signal = signal.with_status(status);
    }
    check(&signal, text);

    let Some(text) = text else { return };
    let (front, back) = text.split_once('\n').unwrap_or((text, ""));
    let headers = [("retry-after", front), ("x-ratelimit-reset-requests", back), (front, back)];
    check(&signal.with_headers(&headers).with_code(front), Some(text));
    let causes = [Cause::new(back), Cause::new(front).with_code(back)];
    check(&signal.with_causes(&causes), Some(text));

    // A key in the middle of anything is taken out.
    let planted = format!("{front} {SECRET} {back}");
    assert!(!redact(&planted).contains(SECRET));
    check(&Signal::text(&planted), Some(&planted));
    let _ = KnownSecrets::new([front]).redact(back);
});

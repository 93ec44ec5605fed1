//! What clients, proxies and logs do to an error must not change what it means: over the whole corpus.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_classify::{AsSignal, Classifier, Fact, Family, Rule, Verdict};
use failover_testkit::corpus::{Case, Corpus};
use failover_types::FailoverReason;
use std::path::Path;

/// Facts that look at the body as a whole: a body inside another is no longer that body.
const OF_THE_WHOLE: &[Fact] = &[
    Fact::EmptyBody,
    Fact::EmptyAnswer,
    Fact::Tiny,
    Fact::Bare,
    Fact::Worded,
    Fact::Short,
    Fact::Prose,
    Fact::Record,
    Fact::Speech,
    Fact::Plain,
];

/// Of a hundred texts so many may be tipped by what stands around them where words that are weighed have a say: they
/// are weighed with the words of the text.
const TIPPED: usize = 2;

/// Cases whose meaning stands behind the words that decide: what follows takes a better row's words away, or brings them.
const DECIDED_LATER: &[(&str, &str)] = &[
    (
        "amazon-bedrock/aws-sso",
        "an expired session is a login only where the text goes on to say how to log in",
    ),
    ("assemblyai/assemblyai-4004", "half of a line of a log, until it says what was closed"),
    (
        "openai/openai-node-apiuseraborterror-stack",
        "a line of code, until the trace below shows that it was thrown",
    ),
    (
        "openrouter/openrouter-403-region-block-double-encoded-raw",
        "the code that decides stands behind the relay's words",
    ),
    ("vllm/vllm-pydantic-stream-error", "listed as a deviation"),
];

fn load() -> (Classifier, Corpus) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/corpus").canonicalize().unwrap();
    (Classifier::standard().unwrap(), Corpus::load(root).unwrap())
}

fn verdict(classifier: &Classifier, case: &Case, body: &str) -> Verdict {
    case.with_signal(|signal| {
        let mut signal = *signal;
        signal.body = body.as_bytes();
        classifier.classify(&signal)
    })
}

fn row<'c>(classifier: &'c Classifier, verdict: &Verdict) -> Option<&'c Rule> {
    classifier.rows().find(|row| row.id == verdict.evidence.rule)
}

/// What wrapping must keep.
fn meaning(verdict: &Verdict) -> impl PartialEq + std::fmt::Debug {
    (verdict.reason, verdict.scope, verdict.hint.as_ref().map(|hint| (hint.when.clone(), hint.also.clone())))
}

fn json(text: &str) -> String {
    serde_json::json!({ "error": { "message": text } }).to_string()
}

type Wrap = fn(&str) -> String;

/// The ways of wrapping, by name.
fn wrappings() -> Vec<(&'static str, Wrap)> {
    vec![
        ("prefix of an SDK", |text| format!("Error: {text}")),
        ("JSON in a string", json),
        ("JSON in a string, twice", |text| json(&json(text))),
        ("JSON in a string, three times", |text| json(&json(&json(text)))),
        ("frame of a stream", |text| format!("event: error\ndata: {}\n\n", json(text))),
        ("indentation", |text| format!("\n    {}\n", text.replace('\n', "\n    "))),
        ("flattened chain of causes", |text| format!("Request failed | cause: {text}")),
        ("stack trace", |text| format!("{text}\n    at async run (/app/index.js:10:15)")),
    ]
}

/// Whether words that are weighed have a say in one of these texts.
fn is_weighed(classifier: &Classifier, case: &Case, bodies: [&str; 2]) -> bool {
    bodies.iter().any(|body| {
        let matched = case.with_signal(|signal| {
            let mut signal = *signal;
            signal.body = body.as_bytes();
            classifier.explain(&signal).matched
        });
        matched.iter().take(2).any(|row| matches!(row.family, Family::Outweighs | Family::Weight))
    })
}

// spec: C-5, C-19
#[test]
fn wrapping_keeps_the_meaning_of_every_case() {
    let (classifier, corpus) = load();
    let (mut faults, mut tipped, mut count) = (Vec::new(), 0, 0);
    for case in &corpus.cases {
        let plain = verdict(&classifier, case, &case.body);
        let whole = row(&classifier, &plain)
            .is_none_or(|row| row.matcher.facts.iter().any(|fact| OF_THE_WHOLE.contains(fact)));
        // What is no failure may become one by a prefix that says that it is one.
        if plain.reason == FailoverReason::Unclassified || whole {
            continue;
        }
        for (how, wrap) in wrappings() {
            let wrapped = verdict(&classifier, case, &wrap(&case.body));
            count += 1;
            if meaning(&wrapped) == meaning(&plain) {
                continue;
            }
            if is_weighed(&classifier, case, [&case.body, &wrap(&case.body)]) {
                tipped += 1;
                continue;
            }
            faults.push(format!(
                "{} in a {how}: {} by {}, not {} by {}",
                case.path(),
                wrapped.reason,
                wrapped.evidence.rule,
                plain.reason,
                plain.evidence.rule
            ));
        }
    }
    assert!(tipped * 100 <= count * TIPPED, "{tipped} of {count} are tipped");
    assert!(faults.is_empty(), "{} faults:\n  {}", faults.len(), faults.join("\n  "));
}

// spec: C-5
#[test]
fn truncation_keeps_the_meaning_while_the_deciding_words_survive() {
    let (classifier, corpus) = load();
    let (mut faults, mut tipped, mut count) = (Vec::new(), 0, 0);
    let mut seen: Vec<String> = Vec::new();
    for case in &corpus.cases {
        let plain = verdict(&classifier, case, &case.body);
        let Some((_, end)) = plain.evidence.span else { continue };
        // A row that asks for more than one thing decides by more than its span.
        let one_thing = row(&classifier, &plain)
            .is_some_and(|row| row.matcher.facts.is_empty() && row.matcher.all.is_empty());
        if !one_thing {
            continue;
        }
        for more in [1, 12, 60] {
            let cut = (end + more..case.body.len()).find(|at| case.body.is_char_boundary(*at));
            let Some(body) = cut.and_then(|cut| case.body.get(..cut)) else { continue };
            let short = verdict(&classifier, case, body);
            count += 1;
            if (short.reason, short.scope) != (plain.reason, plain.scope) {
                if is_weighed(&classifier, case, [&case.body, body]) {
                    tipped += 1;
                    continue;
                }
                seen.push(case.path());
                if !DECIDED_LATER.iter().any(|(path, _)| *path == case.path()) {
                    faults.push(format!(
                        "{} cut at {}: {} by {}, not {} by {}",
                        case.path(),
                        body.len(),
                        short.reason,
                        short.evidence.rule,
                        plain.reason,
                        plain.evidence.rule
                    ));
                }
            }
        }
    }
    assert!(tipped * 100 <= count * TIPPED, "{tipped} of {count} are tipped");
    let stale = DECIDED_LATER.iter().filter(|(path, _)| !seen.iter().any(|other| other == path));
    faults.extend(stale.map(|(path, _)| format!("{path} is listed, and truncation changes nothing there")));
    assert!(faults.is_empty(), "{} faults:\n  {}", faults.len(), faults.join("\n  "));
}

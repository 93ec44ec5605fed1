//! What words weigh: a logistic regression over the labelled texts of `fixtures/wordings` and of the corpus.
//!
//! A text is the set of its terms (see `weights.rs` of the classifier). The table is source like any other: it is written
//! when somebody adds texts and asks for it, and a reviewer sees in the snapshots of the corpus what it moved.

#![expect(
    clippy::indexing_slicing,
    reason = "reasons and terms are counted here, and places come from that count"
)]

use crate::corpus::Bench;
use crate::run::{Faults, Outcome, root};
use failover_classify::{AsSignal, Classifier, Signal};
use failover_types::FailoverReason;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const TEXTS: &str = "fixtures/wordings";
const FILE: &str = "crates/failover-classify/src/weights.tsv";
const HEAD: &str = "# Written by `cargo xtask weights`: what a term weighs for each of these reasons.\n";

/// Passes over all texts.
const PASSES: usize = 14;
/// The first step; Adagrad makes each weight's own smaller as it moves.
const STEP: f64 = 0.5;
/// How much of a weight is taken away at each step.
const DECAY: f64 = 2e-3;
/// A word of fewer texts is left out: little can be learned from them.
const FEWEST: usize = 3;
/// A pair of words says little that its words do not; most stand together by chance.
const FEWEST_PAIRS: usize = 6;
/// A weight of 1.0 in the table.
const UNIT: f64 = 4.0;
/// A weight nearer to zero than this, in the table's units, is none.
const SMALLEST: f64 = 2.0;
/// Of so many parts each is once what the rest is tried on.
const PARTS: usize = 5;

/// What stands around errors and says nothing of them. Each wording is learned from once more in one of these, so that
/// their words weigh nothing.
const WRAPPERS: &[(&str, &str)] = &[
    (
        "Error: ",
        "\n    at processTicksAndRejections (node:internal/process/task_queues:95:5)\n    at async OpenAI.makeRequest (/app/node_modules/openai/core.js:306:19)\n    at async main (/app/dist/index.js:42:10)",
    ),
    ("[2026-01-04 10:22:31,412] ERROR app.services.llm_client: request failed: ", ""),
    (
        "Traceback (most recent call last):\n  File \"/app/main.py\", line 88, in call\n    response = client.chat.completions.create(\nopenai.APIError: ",
        "",
    ),
    ("LLM provider error: ", " (request id: req_0142950312)"),
    (r#"{"error":{"message":""#, r#"","type":"error","param":null,"code":null}}"#),
    (
        "java.lang.RuntimeException: ",
        "\n\tat com.example.llm.Client.call(Client.java:142)\n\tat java.base/java.lang.Thread.run(Thread.java:840)",
    ),
    (
        "litellm.APIError: APIError: OpenAIException - ",
        ". Received Model Group=default\nAvailable Model Group Fallbacks=None",
    ),
    ("Failed after 3 attempts. Last error: ", ""),
];

const REASONS: usize = FailoverReason::ALL.len();

/// Where a text comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The line of this number of all wordings.
    Wording(usize),
    /// The same in a wrapper.
    Wrapped(usize),
    Case,
}

impl Kind {
    /// How much a text counts.
    const fn worth(self) -> f64 {
        match self {
            Self::Wording(_) => 1.0,
            // No new wording.
            Self::Wrapped(_) => 0.5,
            // It has all that stands around a message.
            Self::Case => 2.0,
        }
    }

    /// Whether a wording is left out of learning, to be tried later; it and its wrapped form stay together.
    const fn is_kept(self, part: usize) -> bool {
        matches!(self, Self::Wording(line) | Self::Wrapped(line) if line % PARTS == part)
    }
}

struct Labelled {
    terms: Vec<String>,
    reason: FailoverReason,
    kind: Kind,
}

struct Text {
    terms: Vec<usize>,
    reason: usize,
    kind: Kind,
}

/// Weights of all terms, and what every text weighs.
struct Weights {
    terms: Vec<[f64; REASONS]>,
    bias: [f64; REASONS],
}

pub(crate) fn main(args: &[String]) -> Outcome {
    if !args.is_empty() {
        return Err(Faults::one("usage: cargo xtask weights"));
    }
    let bench = Bench::load()?;
    let mut labelled = wordings(&bench.classifier)?;
    for case in &bench.corpus.cases {
        let terms = case.with_signal(|signal| bench.classifier.terms(signal));
        labelled.push(Labelled { terms, reason: case.expect.reason, kind: Kind::Case });
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in labelled.iter().filter(|text| !matches!(text.kind, Kind::Wrapped(_))) {
        for term in text.terms.iter().collect::<BTreeSet<_>>() {
            *counts.entry(term).or_default() += 1;
        }
    }
    counts.retain(|term, count| *count >= if term.contains(' ') { FEWEST_PAIRS } else { FEWEST });
    let names: Vec<&str> = counts.keys().copied().collect();
    let texts: Vec<Text> = labelled
        .iter()
        .map(|text| {
            let known: BTreeSet<usize> =
                text.terms.iter().filter_map(|term| names.binary_search(&term.as_str()).ok()).collect();
            Text { terms: known.into_iter().collect(), reason: place(text.reason), kind: text.kind }
        })
        .collect();
    let cases = texts.iter().filter(|text| text.kind == Kind::Case).count();
    println!("{} wordings, {cases} cases, {} terms", (texts.len() - cases) / 2, names.len());
    tried(&texts, names.len());
    let all: Vec<&Text> = texts.iter().collect();
    let table = render(&names, &learn(&all, names.len()));
    std::fs::write(root().join(FILE), table).map_err(|error| Faults::one(format!("{FILE}: {error}")))
}

/// A credential is never given up for words alone.
fn place(reason: FailoverReason) -> usize {
    let reason = if reason == FailoverReason::AuthPermanent { FailoverReason::Auth } else { reason };
    FailoverReason::ALL.iter().position(|known| *known == reason).unwrap_or_default()
}

/// Lines of a reason and a text, of every file, each also in a wrapper.
fn wordings(classifier: &Classifier) -> Result<Vec<Labelled>, Faults> {
    let fault = |error: &dyn std::error::Error| Faults::one(format!("{TEXTS}: {error}"));
    let entries = std::fs::read_dir(root().join(TEXTS)).map_err(|error| fault(&error))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "tsv")).collect();
    files.sort();
    let mut found = Vec::new();
    let mut lines = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| fault(&error))?;
        for (number, line) in (1..).zip(text.lines()) {
            let parsed = line.split_once('\t').and_then(|(reason, text)| Some((reason.parse().ok()?, text)));
            let Some((reason, text)) = parsed else {
                return Err(Faults::one(format!("{}:{number}: not `reason<TAB>text`", file.display())));
            };
            let labelled =
                |text: &str, kind| Labelled { terms: classifier.terms(&Signal::text(text)), reason, kind };
            found.push(labelled(text, Kind::Wording(lines)));
            let (front, back) = WRAPPERS[lines % WRAPPERS.len()];
            found.push(labelled(&format!("{front}{text}{back}"), Kind::Wrapped(lines)));
            lines += 1;
        }
    }
    Ok(found)
}

/// How the weights do on wordings that they were not learned from.
fn tried(texts: &[Text], terms: usize) {
    let mut heard: Vec<(f64, bool, bool)> = Vec::new();
    for part in 0..PARTS {
        let (kept, rest): (Vec<&Text>, Vec<&Text>) = texts.iter().partition(|text| text.kind.is_kept(part));
        let weights = learn(&rest, terms);
        for text in kept {
            let sums = weights.sums(text);
            let (first, best) = top(&sums, None);
            let (_, second) = top(&sums, Some(first));
            let lead = (best - second) * UNIT;
            let is_failure = text.reason != place(FailoverReason::Unclassified);
            if first != place(FailoverReason::Unclassified) {
                heard.push((lead, first == text.reason, is_failure));
            }
        }
    }
    let own = || texts.iter().filter(|text| text.kind != Kind::Case);
    let failures = own().filter(|text| text.reason != place(FailoverReason::Unclassified)).count();
    println!(
        "lead   right   wrong   of texts that report nothing   (of {failures} failures, {} others)",
        own().count() - failures
    );
    for lead in 0..=16 {
        let count = |right: bool, failure: bool| {
            let beyond = heard.iter().filter(|(own, ..)| *own >= f64::from(lead));
            beyond.filter(|(_, is_right, is_failure)| (*is_right, *is_failure) == (right, failure)).count()
        };
        println!("{lead:4} {:7} {:7} {:7}", count(true, true), count(false, true), count(false, false));
    }
}

fn top(sums: &[f64; REASONS], without: Option<usize>) -> (usize, f64) {
    let others = sums.iter().copied().enumerate().filter(|(index, _)| Some(*index) != without);
    others.max_by(|left, right| left.1.total_cmp(&right.1)).unwrap_or_default()
}

/// A long text has more words, and is not the surer for it.
#[expect(clippy::cast_precision_loss, reason = "a text has few terms")]
fn root_of(text: &Text) -> f64 {
    ((text.terms.len() + 1) as f64).sqrt()
}

impl Weights {
    fn sums(&self, text: &Text) -> [f64; REASONS] {
        let scale = 1.0 / root_of(text);
        let mut sums = self.bias.map(|weight| weight * scale);
        for term in text.terms.iter().filter_map(|term| self.terms.get(*term)) {
            for (sum, weight) in sums.iter_mut().zip(term) {
                *sum += weight * scale;
            }
        }
        sums
    }
}

fn learn(texts: &[&Text], terms: usize) -> Weights {
    let mut weights = Weights { terms: vec![[0.0; REASONS]; terms], bias: [f64::NEG_INFINITY; REASONS] };
    for text in texts {
        weights.bias[text.reason] = 0.0;
    }
    let mut moved = vec![[1e-6; REASONS]; terms];
    let mut order: Vec<usize> = (0..texts.len()).collect();
    let mut seed = 1;
    for _ in 0..PASSES {
        shuffle(&mut order, &mut seed);
        for text in order.iter().filter_map(|index| texts.get(*index)) {
            let mut parts = weights.sums(text);
            let (_, best) = top(&parts, None);
            for part in &mut parts {
                *part = (*part - best).exp();
            }
            let whole: f64 = parts.iter().sum();
            let scale = 1.0 / root_of(text);
            for (reason, part) in parts.iter().enumerate() {
                let miss = text.kind.worth() * (part / whole - f64::from(u8::from(reason == text.reason)));
                if miss.abs() < 1e-3 {
                    continue;
                }
                weights.bias[reason] -= 0.02 * miss * scale;
                for term in &text.terms {
                    let slope = miss * scale + DECAY * weights.terms[*term][reason];
                    moved[*term][reason] += slope * slope;
                    weights.terms[*term][reason] -= STEP * slope / moved[*term][reason].sqrt();
                }
            }
        }
    }
    weights
}

/// The same order at every run.
fn shuffle(order: &mut [usize], seed: &mut u64) {
    for last in (1..order.len()).rev() {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(*seed >> 33).unwrap_or_default() % (last + 1);
        order.swap(last, other);
    }
}

/// Columns of the reasons that any text has.
fn render(names: &[&str], weights: &Weights) -> String {
    let used: Vec<usize> = (0..REASONS).filter(|reason| weights.bias[*reason].is_finite()).collect();
    let columns: Vec<&str> = used.iter().map(|reason| FailoverReason::ALL[*reason].as_str()).collect();
    let mut page = format!("{HEAD}{}\n", columns.join(" "));
    for (name, weights) in std::iter::once((&"-", &weights.bias)).chain(names.iter().zip(&weights.terms)) {
        let cells = rounded(used.iter().map(|reason| weights[*reason]).collect());
        if cells.iter().any(|cell| *cell != 0.0) {
            let cells: Vec<String> = cells.iter().map(f64::to_string).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(page, "{name}\t{}", cells.join(" "));
        }
    }
    page
}

/// In the table's units, beside the reason in the middle: what a term weighs for all of them says nothing.
fn rounded(weights: Vec<f64>) -> Vec<f64> {
    let mut sorted = weights.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    let units = |weight: f64| ((weight - middle) * UNIT).round().clamp(-127.0, 127.0);
    // Not -0.
    weights.into_iter().map(units).map(|units| if units.abs() < SMALLEST { 0.0 } else { units }).collect()
}

//! Scores the classifier on labelled cases: `cargo run -p failover-classify --example score -- FILE [--fails] [--id ID]`.
#![expect(
    clippy::indexing_slicing,
    clippy::too_many_lines,
    clippy::similar_names,
    clippy::wildcard_enum_match_arm,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "an example that reports to its user"
)]

use failover_classify::{Classifier, RetryWhen, Signal, Surface};
use serde_json::Value;
use std::collections::BTreeMap;

fn surface(name: &str) -> Surface {
    serde_json::from_value(Value::from(name)).unwrap_or_default()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args.first().expect("a file of cases");
    let fails = args.iter().any(|arg| arg == "--fails");
    let only = args.iter().position(|arg| arg == "--id").and_then(|at| args.get(at + 1));
    let classifier = Classifier::standard().expect("built-in rules");
    let text = std::fs::read_to_string(path).expect("readable cases");
    let (mut total, mut right, mut hints, mut hints_right) = (0, 0, 0, 0);
    let mut pairs: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut rules: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(case) = serde_json::from_str::<Value>(line) else { continue };
        let id = case["id"].as_str().unwrap_or_default();
        if only.is_some_and(|only| only != id) {
            continue;
        }
        let headers: Vec<(String, String)> = case["headers"].as_object().map_or_else(Vec::new, |map| {
            map.iter()
                .map(|(k, v)| (k.clone(), v.as_str().map_or_else(|| v.to_string(), str::to_owned)))
                .collect()
        });
        let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let body = match &case["body"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let code = match &case["code"] {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        };
        let mut signal = Signal::new(surface(case["surface"].as_str().unwrap_or("http")))
            .with_headers(&headers)
            .with_body(body.as_bytes());
        if let Some(provider) = case["provider"].as_str() {
            signal = signal.with_provider(provider);
        }
        if let Some(status) = case["status"].as_u64() {
            signal = signal.with_status(u16::try_from(status).unwrap_or(0));
        }
        if let Some(code) = &code {
            signal = signal.with_code(code);
        }
        let explanation = classifier.explain(&signal);
        let verdict = &explanation.verdict;
        let got = verdict.reason.as_str();
        let expected = case["expect"]["reason"].as_str().unwrap_or_default();
        let accepted = expected == got
            || case["accept"]
                .as_array()
                .is_some_and(|list| list.iter().any(|name| name.as_str() == Some(got)));
        total += 1;
        right += usize::from(accepted);
        let rule = rules.entry(verdict.evidence.rule.to_string()).or_default();
        rule.0 += 1;
        rule.1 += usize::from(!accepted);
        let wait =
            verdict.hint.as_ref().and_then(failover_classify::RetryHint::after).map(failover_types::millis);
        let at = verdict
            .hint
            .as_ref()
            .and_then(failover_classify::RetryHint::at)
            .map(failover_types::Timestamp::as_millis);
        let wanted_wait = case["expect"]["retry_after_ms"].as_u64();
        let wanted_at = case["expect"]["reset_at"].as_u64();
        let wanted_text = case["expect"]["reset_text"].as_str();
        let wall = verdict.hint.as_ref().and_then(|hint| {
            [Some(&hint.when), hint.also.as_ref()].into_iter().flatten().find_map(|when| match when {
                RetryWhen::Wall { text, .. } => Some(text.clone()),
                _ => None,
            })
        });
        let hint_right = wait == wanted_wait
            && (wanted_at == at)
            && (wanted_text.is_some() == wall.is_some() || wanted_wait.is_some() || wanted_at.is_some());
        if wanted_wait.is_some() || wanted_at.is_some() || wanted_text.is_some() || verdict.hint.is_some() {
            hints += 1;
            hints_right += usize::from(hint_right);
        }
        if !accepted {
            *pairs.entry((expected.to_owned(), got.to_owned())).or_default() += 1;
        }
        if only.is_some() {
            println!("{explanation:#?}");
        }
        if fails && (!accepted || !hint_right) {
            let shown: String = body.replace('\n', "⏎").chars().take(420).collect();
            let label = if accepted { "HINT" } else { "FAIL" };
            println!(
                "{label} {id} want {expected} got {got} by {} | {:?} {:?} {:?} {code:?} | hint {:?} want {wanted_wait:?} {wanted_at:?} {wanted_text:?}\n    {shown}",
                verdict.evidence.rule,
                signal.provider,
                signal.surface,
                signal.status,
                verdict.hint.as_ref().map(|h| &h.when),
            );
            if let Some(why) = case["why"].as_str() {
                println!("    why: {why}");
            }
        }
    }
    for ((expected, got), count) in &pairs {
        println!("{count:4}  {expected} -> {got}");
    }
    println!("rules that erred:");
    for (rule, (hits, wrong)) in rules.iter().filter(|(_, (_, wrong))| *wrong > 0) {
        println!("{wrong:4} of {hits:4}  {rule}");
    }
    println!("reason {right}/{total}; hints {hints_right}/{hints}");
}

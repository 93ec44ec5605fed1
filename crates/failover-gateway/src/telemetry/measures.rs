//! Histograms for OpenTelemetry, with the names, the units and the bounds of the conventions for generative AI: what the
//! providers took, as their client; what this server took; and the tokens that were served.

use super::{Span, provider_name, text};
use crate::record::Outcome;
use failover::runner::plan::What;
use failover::types::{ModelRef, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Series that are kept. What comes beyond them is counted as one, as the specification of metrics has it: models may be
/// named by callers.
const MAX_SERIES: usize = 2_000;

/// What a histogram measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    /// A call of a provider, whether it answered or failed.
    Call,
    /// The tokens of an answer that was served.
    Tokens,
    /// A request of a client, from its head to the end of its answer.
    Request,
    /// The same, up to the first content.
    FirstToken,
}

impl Family {
    const ALL: [Self; 4] = [Self::Call, Self::Tokens, Self::Request, Self::FirstToken];

    /// Its name, its unit, and the upper ends of its classes.
    const fn facts(self) -> (&'static str, &'static str, &'static [f64]) {
        match self {
            Self::Call => ("gen_ai.client.operation.duration", "s", SECONDS),
            Self::Tokens => ("gen_ai.client.token.usage", "{token}", COUNTS),
            Self::Request => ("gen_ai.server.request.duration", "s", SECONDS),
            Self::FirstToken => ("gen_ai.server.time_to_first_token", "s", FIRST),
        }
    }
}

const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
const COUNTS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

type Labels = Vec<(&'static str, String)>;

/// The values of one series since the start.
#[derive(Clone, Debug, Default)]
struct Histogram {
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, value: f64, bounds: &[f64]) {
        self.counts.resize(bounds.len() + 1, 0);
        // A bound belongs to the class below it.
        let class = bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(class) {
            *count += 1;
        }
        self.sum += value;
    }
}

#[derive(Debug, Default)]
struct Series {
    of: BTreeMap<(Family, Labels), Histogram>,
    changed: bool,
}

/// All histograms of a server.
#[derive(Debug)]
pub(super) struct Measures {
    since: Timestamp,
    series: Mutex<Series>,
}

impl Measures {
    pub(super) fn new(since: Timestamp) -> Self {
        Self { since, series: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Series> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request that is over, and its calls. A request that was not let in asked no model.
    pub(super) fn add(&self, span: &Span) {
        if span.outcome == Outcome::Refused {
            return;
        }
        let mut series = self.lock();
        series.changed = true;
        for visit in &span.trail {
            if let What::Attempt(attempt) = &visit.what {
                let mut labels = model_labels(&visit.model);
                labels.extend(
                    attempt.error.as_ref().map(|error| ("error.type", error.reason.as_str().to_owned())),
                );
                series.add(Family::Call, labels, attempt.took.as_secs_f64());
            }
        }
        let mut labels = vec![
            ("gen_ai.operation.name", "chat".to_owned()),
            ("gen_ai.request.model", span.route.to_string()),
            ("failover.outcome", span.outcome.as_str().to_owned()),
        ];
        if let Some((model, _)) = &span.served {
            labels.push(("gen_ai.provider.name", provider_name(model).to_owned()));
            labels.push(("gen_ai.response.model", model.model().to_owned()));
            if let Some(usage) = &span.usage {
                for (kind, count) in [("input", usage.input), ("output", usage.output)] {
                    let mut labels = model_labels(model);
                    labels.push(("gen_ai.token.type", kind.to_owned()));
                    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
                    series.add(Family::Tokens, labels, count as f64);
                }
            }
        }
        if let Some(first) = span.first_content {
            series.add(Family::FirstToken, labels.clone(), first.as_secs_f64());
        }
        labels.extend(span.failure().map(|kind| ("error.type", kind.to_owned())));
        series.add(Family::Request, labels, span.ended.since(span.begun).as_secs_f64());
    }

    /// Has them exported again where nothing has come: the last export did not arrive.
    pub(super) fn again(&self) {
        self.lock().changed = true;
    }

    /// All of them as OTLP writes metrics; `None` where nothing has come since the last time.
    pub(super) fn take(&self, now: Timestamp) -> Option<Value> {
        let mut series = self.lock();
        if !std::mem::take(&mut series.changed) {
            return None;
        }
        let metrics = Family::ALL.into_iter().filter_map(|family| {
            let (name, unit, bounds) = family.facts();
            let points: Vec<_> = series
                .of
                .iter()
                .filter(|((of, _), _)| *of == family)
                .map(|((_, labels), histogram)| point(labels, histogram, bounds, self.since, now))
                .collect();
            // 2: cumulative.
            (!points.is_empty()).then(|| {
                json!({ "name": name, "unit": unit,
                        "histogram": { "aggregationTemporality": 2, "dataPoints": points } })
            })
        });
        Some(metrics.collect())
    }
}

impl Series {
    fn add(&mut self, family: Family, labels: Labels, value: f64) {
        let key = (family, labels);
        let full = self.of.len() >= MAX_SERIES && !self.of.contains_key(&key);
        let key = if full { (family, Labels::new()) } else { key };
        self.of.entry(key).or_default().add(value, family.facts().2);
    }
}

fn model_labels(model: &ModelRef) -> Labels {
    vec![
        ("gen_ai.operation.name", "chat".to_owned()),
        ("gen_ai.provider.name", provider_name(model).to_owned()),
        ("gen_ai.request.model", model.model().to_owned()),
    ]
}

fn point(labels: &Labels, histogram: &Histogram, bounds: &[f64], since: Timestamp, now: Timestamp) -> Value {
    let attributes: Vec<_> = if labels.is_empty() {
        vec![json!({ "key": "otel.metric.overflow", "value": { "boolValue": true } })]
    } else {
        labels.iter().map(|(key, value)| text(key, value)).collect()
    };
    json!({
        "attributes": attributes,
        "startTimeUnixNano": super::nanos(since), "timeUnixNano": super::nanos(now),
        "count": histogram.counts.iter().sum::<u64>().to_string(), "sum": histogram.sum,
        "bucketCounts": histogram.counts.iter().map(u64::to_string).collect::<Vec<_>>(),
        "explicitBounds": bounds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: G-8
    #[test]
    fn series_beyond_the_bound_are_counted_as_one() {
        let measures = Measures::new(Timestamp::ZERO);
        for at in 0..MAX_SERIES + 7 {
            measures.lock().add(Family::Call, vec![("gen_ai.request.model", at.to_string())], 0.02);
        }
        measures.again();
        let metrics = measures.take(Timestamp::ZERO).unwrap();
        let points = metrics[0]["histogram"]["dataPoints"].as_array().unwrap();
        assert_eq!(points.len(), MAX_SERIES + 1);
        let rest = points.iter().find(|it| it["attributes"][0]["key"] == "otel.metric.overflow").unwrap();
        assert_eq!(rest["count"], "7");
        // A bound belongs to the class below it.
        assert_eq!(rest["bucketCounts"][1], "7");
        assert!(measures.take(Timestamp::ZERO).is_none());
    }
}

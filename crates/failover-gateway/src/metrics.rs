//! Counters for Prometheus, in its text format. Labels are bounded: a name that a client made up counts as `other`.

use failover::types::millis;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper ends of the classes of times, in milliseconds: from a cached answer to a long one.
const BOUNDS: [u64; 14] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000];
/// Most series of one family: labels come from the config and from small enums, so this is never met in earnest.
const MAX_SERIES: usize = 2_000;

/// A family of counters, by labels.
#[derive(Debug, Default)]
struct Counters(Mutex<BTreeMap<String, u64>>);

#[derive(Clone, Copy, Debug, Default)]
struct Classes {
    counts: [u64; BOUNDS.len()],
    count: u64,
    sum_ms: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Labels as Prometheus writes them.
fn labels(pairs: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(64);
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                c => text.push(c),
            }
        }
        text.push('"');
    }
    text
}

impl Counters {
    fn add(&self, pairs: &[(&str, &str)], more: u64) {
        let labels = labels(pairs);
        let mut series = lock(&self.0);
        if let Some(count) = series.get_mut(&labels) {
            *count = count.saturating_add(more);
        } else if series.len() < MAX_SERIES {
            series.insert(labels, more);
        }
    }

    fn write(&self, name: &str, help: &str, out: &mut String) {
        write_counts(name, help, &lock(&self.0), out);
    }
}

impl Classes {
    fn add(&mut self, time: Duration) {
        let ms = millis(time);
        if let Some((count, _)) = self.counts.iter_mut().zip(BOUNDS).find(|(_, bound)| ms <= *bound) {
            *count += 1;
        }
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
    }

    fn merge(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(other.counts) {
            *own += more;
        }
        self.count += other.count;
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
    }
}

fn write_counts(name: &str, help: &str, series: &BTreeMap<String, u64>, out: &mut String) {
    head(name, help, "counter", out);
    for (labels, count) in series {
        let _ = writeln!(out, "{name}{{{labels}}} {count}");
    }
}

fn write_times(name: &str, help: &str, series: &BTreeMap<String, Classes>, out: &mut String) {
    head(name, help, "histogram", out);
    for (labels, classes) in series {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut sum = 0;
        for (count, bound) in classes.counts.iter().zip(BOUNDS) {
            sum += count;
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{}\"}} {sum}", seconds(bound));
        }
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", classes.count);
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}", seconds(classes.sum_ms));
        let _ = writeln!(out, "{name}_count{{{labels}}} {}", classes.count);
    }
}

fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1_000, ms % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn head(name: &str, help: &str, kind: &str, out: &mut String) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A number that is counted up while something lasts.
#[derive(Debug)]
pub(crate) struct Held(Arc<AtomicI64>);

impl Held {
    fn new(gauge: &Arc<AtomicI64>) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(gauge))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What tells finished requests apart. One look-up accounts for a request; the families are made from it when they are
/// read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finished {
    pub(crate) dialect: &'static str,
    pub(crate) route: Arc<str>,
    /// Who answered; `none` where nobody did.
    pub(crate) model: Arc<str>,
    pub(crate) outcome: &'static str,
    pub(crate) status: u16,
    /// Whether another model than the first answered.
    pub(crate) fallback: bool,
}

/// What tells decisions apart: its kind, the model's label, and the reason's name.
type Decided = (&'static str, Arc<str>, &'static str);

/// What they come to.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    took: Classes,
    first_content: Classes,
    tokens: (u64, u64),
}

/// A profile's state when the numbers are read.
#[derive(Clone, Debug)]
pub(crate) struct ProfileState {
    pub(crate) profile: String,
    pub(crate) usable: bool,
    /// When its last window ends, from now.
    pub(crate) window: Duration,
}

/// Every number of the server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<Finished, Sums>>,
    decisions: Mutex<BTreeMap<Decided, u64>>,
    attempts: Mutex<BTreeMap<String, u64>>,
    rescues: Counters,
    reloads: Counters,
    refused: AtomicU64,
    dropped_spans: Arc<AtomicU64>,
    connections: Arc<AtomicI64>,
    in_flight: Arc<AtomicI64>,
}

impl Metrics {
    /// A connection, for as long as the value lives.
    pub(crate) fn connection(&self) -> Held {
        Held::new(&self.connections)
    }

    /// A request at work, for as long as the value lives.
    pub(crate) fn request(&self) -> Held {
        Held::new(&self.in_flight)
    }

    /// The counter of spans that no collector got.
    pub(crate) const fn dropped_spans(&self) -> &Arc<AtomicU64> {
        &self.dropped_spans
    }

    /// How many requests are at work.
    pub(crate) fn in_flight(&self) -> i64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn refused_connection(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reloaded(&self, worked: bool) {
        self.reloads.add(&[("outcome", if worked { "done" } else { "refused" })], 1);
    }

    /// A stream that broke off was gone on with by another model, or was to be.
    pub(crate) fn rescued(&self, mode: &str, worked: bool) {
        self.rescues.add(&[("mode", mode), ("outcome", if worked { "done" } else { "failed" })], 1);
    }

    pub(crate) fn decided(&self, kind: &'static str, model: Arc<str>, reason: &'static str) {
        let (mut decisions, decided) = (lock(&self.decisions), (kind, model, reason));
        if let Some(count) = decisions.get_mut(&decided) {
            *count += 1;
        } else if decisions.len() < MAX_SERIES {
            decisions.insert(decided, 1);
        }
    }

    pub(crate) fn attempted(&self, model: &str) {
        let mut attempts = lock(&self.attempts);
        if let Some(count) = attempts.get_mut(model) {
            *count += 1;
        } else if attempts.len() < MAX_SERIES {
            attempts.insert(model.to_owned(), 1);
        }
    }

    pub(crate) fn finished(
        &self,
        done: Finished,
        took: Duration,
        first_content: Option<Duration>,
        tokens: Option<(u64, u64)>,
    ) {
        let mut requests = lock(&self.requests);
        if requests.len() >= MAX_SERIES && !requests.contains_key(&done) {
            return;
        }
        let sums = requests.entry(done).or_default();
        sums.count += 1;
        sums.took.add(took);
        if let Some(first) = first_content {
            sums.first_content.add(first);
        }
        let (input, output) = tokens.unwrap_or_default();
        sums.tokens = (sums.tokens.0.saturating_add(input), sums.tokens.1.saturating_add(output));
    }

    /// The families of finished requests.
    fn write_requests(&self, out: &mut String) {
        let (mut requests, mut fallbacks, mut tokens) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut durations, mut firsts) =
            (BTreeMap::<String, Classes>::new(), BTreeMap::<String, Classes>::new());
        for (done, sums) in &*lock(&self.requests) {
            let Finished { dialect, route, model, outcome, status, fallback } = done;
            let status = status.to_string();
            let all = [
                ("dialect", *dialect),
                ("route", route),
                ("model", model),
                ("outcome", outcome),
                ("status", &status),
            ];
            *requests.entry(labels(&all)).or_default() += sums.count;
            if *fallback {
                *fallbacks.entry(labels(&[("route", route), ("model", model)])).or_default() += sums.count;
            }
            for (kind, count) in [("input", sums.tokens.0), ("output", sums.tokens.1)] {
                if count > 0 {
                    *tokens.entry(labels(&[("model", model), ("kind", kind)])).or_default() += count;
                }
            }
            let place = labels(&[("dialect", dialect), ("route", route)]);
            durations.entry(place.clone()).or_default().merge(&sums.took);
            if sums.first_content.count > 0 {
                firsts.entry(place).or_default().merge(&sums.first_content);
            }
        }
        write_counts("failover_requests_total", "Requests by how they ended.", &requests, out);
        let help = "Requests that another model than the first answered.";
        write_counts("failover_fallbacks_total", help, &fallbacks, out);
        write_counts("failover_tokens_total", "Tokens of the answers that were served.", &tokens, out);
        let help = "From the request to the end of its answer.";
        write_times("failover_request_duration_seconds", help, &durations, out);
        let help = "From the request to its first content.";
        write_times("failover_first_content_seconds", help, &firsts, out);
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn render(&self, profiles: &[ProfileState]) -> String {
        let mut out = String::with_capacity(8 * 1024);
        let out_ref = &mut out;
        self.write_requests(out_ref);
        let attempts = lock(&self.attempts);
        let attempts = attempts.iter().map(|(model, count)| (labels(&[("model", model)]), *count)).collect();
        write_counts("failover_attempts_total", "Attempts at models.", &attempts, out_ref);
        let decisions = lock(&self.decisions);
        let decisions = decisions.iter().map(|((kind, model, reason), count)| {
            (labels(&[("decision", kind), ("model", model), ("reason", reason)]), *count)
        });
        write_counts("failover_decisions_total", "Decisions of runs.", &decisions.collect(), out_ref);
        self.rescues.write(
            "failover_rescues_total",
            "Streams that broke off and were to be rescued.",
            out_ref,
        );
        self.reloads.write("failover_reloads_total", "Reloads of the config.", out_ref);
        for (name, help, count) in [
            ("failover_connections_refused_total", "Connections beyond the bound.", &self.refused),
            ("failover_spans_dropped_total", "Spans that no collector got.", &*self.dropped_spans),
        ] {
            head(name, help, "counter", out_ref);
            let _ = writeln!(out_ref, "{name} {}", count.load(Ordering::Relaxed));
        }
        for (name, help, gauge) in [
            ("failover_connections", "Open connections.", &self.connections),
            ("failover_requests_in_flight", "Requests at work.", &self.in_flight),
        ] {
            head(name, help, "gauge", out_ref);
            let _ = writeln!(out_ref, "{name} {}", gauge.load(Ordering::Relaxed));
        }
        head("failover_profile_usable", "Whether a profile may be used now.", "gauge", out_ref);
        for state in profiles {
            let labels = labels(&[("profile", &state.profile)]);
            let _ = writeln!(out_ref, "failover_profile_usable{{{labels}}} {}", u8::from(state.usable));
        }
        head("failover_profile_window_seconds", "Until a profile's last window ends.", "gauge", out_ref);
        for state in profiles {
            let labels = labels(&[("profile", &state.profile)]);
            let left = seconds(millis(state.window));
            let _ = writeln!(out_ref, "failover_profile_window_seconds{{{labels}}} {left}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: G-8
    #[test]
    fn the_text_is_what_prometheus_reads() {
        let metrics = Metrics::default();
        metrics.decided("skip", "a/b".into(), "with \"quotes\"\nand lines");
        metrics.decided("skip", "a/b".into(), "with \"quotes\"\nand lines");
        let done = Finished {
            dialect: "chat",
            route: "x".into(),
            model: "a/b".into(),
            outcome: "answered",
            status: 200,
            fallback: true,
        };
        metrics.finished(done.clone(), Duration::from_millis(30), None, Some((3, 0)));
        metrics.finished(done, Duration::from_hours(1), None, Some((4, 0)));
        let text = metrics.render(&[]);
        assert!(text.contains(
            "failover_decisions_total{decision=\"skip\",model=\"a/b\",reason=\"with \\\"quotes\\\"\\nand lines\"} 2\n"
        ));
        for line in [
            "failover_request_duration_seconds_bucket{dialect=\"chat\",route=\"x\",le=\"0.025\"} 0",
            "failover_request_duration_seconds_bucket{dialect=\"chat\",route=\"x\",le=\"0.05\"} 1",
            "failover_request_duration_seconds_bucket{dialect=\"chat\",route=\"x\",le=\"300\"} 1",
            "failover_request_duration_seconds_bucket{dialect=\"chat\",route=\"x\",le=\"+Inf\"} 2",
            "failover_tokens_total{model=\"a/b\",kind=\"input\"} 7",
            "failover_fallbacks_total{route=\"x\",model=\"a/b\"} 2",
            "failover_request_duration_seconds_sum{dialect=\"chat\",route=\"x\"} 3600.03",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_gauge_falls_when_its_holder_goes() {
        let metrics = Metrics::default();
        let held = metrics.request();
        assert_eq!(metrics.in_flight(), 1);
        drop(held);
        assert_eq!(metrics.in_flight(), 0);
    }
}

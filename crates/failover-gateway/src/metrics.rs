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

/// A family of histograms, by labels.
#[derive(Debug, Default)]
struct Times(Mutex<BTreeMap<String, Classes>>);

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
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{name}=\"");
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
        head(name, help, "counter", out);
        for (labels, count) in &*lock(&self.0) {
            let _ = writeln!(out, "{name}{{{labels}}} {count}");
        }
    }
}

impl Times {
    fn add(&self, pairs: &[(&str, &str)], time: Duration) {
        let (labels, ms) = (labels(pairs), millis(time));
        let mut series = lock(&self.0);
        if !series.contains_key(&labels) && series.len() >= MAX_SERIES {
            return;
        }
        let classes = series.entry(labels).or_default();
        if let Some((count, _)) = classes.counts.iter_mut().zip(BOUNDS).find(|(_, bound)| ms <= *bound) {
            *count += 1;
        }
        classes.count += 1;
        classes.sum_ms = classes.sum_ms.saturating_add(ms);
    }

    fn write(&self, name: &str, help: &str, out: &mut String) {
        head(name, help, "histogram", out);
        for (labels, classes) in &*lock(&self.0) {
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

/// What a finished request counts for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished<'a> {
    pub(crate) dialect: &'a str,
    pub(crate) route: &'a str,
    /// Who answered; `none` where nobody did.
    pub(crate) model: &'a str,
    pub(crate) outcome: &'a str,
    pub(crate) status: u16,
    pub(crate) took: Duration,
    pub(crate) first_content: Option<Duration>,
    pub(crate) tokens: Option<(u64, u64)>,
    /// Whether another model than the first answered.
    pub(crate) fallback: bool,
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
    requests: Counters,
    fallbacks: Counters,
    decisions: Counters,
    attempts: Counters,
    tokens: Counters,
    rescues: Counters,
    reloads: Counters,
    durations: Times,
    first_content: Times,
    refused: AtomicU64,
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

    pub(crate) fn decided(&self, kind: &str, model: &str, reason: &str) {
        self.decisions.add(&[("decision", kind), ("model", model), ("reason", reason)], 1);
    }

    pub(crate) fn attempted(&self, model: &str) {
        self.attempts.add(&[("model", model)], 1);
    }

    pub(crate) fn finished(&self, done: &Finished<'_>) {
        let status = done.status.to_string();
        self.requests.add(
            &[
                ("dialect", done.dialect),
                ("route", done.route),
                ("model", done.model),
                ("outcome", done.outcome),
                ("status", &status),
            ],
            1,
        );
        self.durations.add(&[("dialect", done.dialect), ("route", done.route)], done.took);
        if let Some(first) = done.first_content {
            self.first_content.add(&[("dialect", done.dialect), ("route", done.route)], first);
        }
        if let Some((input, output)) = done.tokens {
            self.tokens.add(&[("model", done.model), ("kind", "input")], input);
            self.tokens.add(&[("model", done.model), ("kind", "output")], output);
        }
        if done.fallback {
            self.fallbacks.add(&[("route", done.route), ("model", done.model)], 1);
        }
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn render(&self, profiles: &[ProfileState]) -> String {
        let mut out = String::with_capacity(8 * 1024);
        let out_ref = &mut out;
        self.requests.write("failover_requests_total", "Requests by how they ended.", out_ref);
        self.fallbacks.write(
            "failover_fallbacks_total",
            "Requests that another model than the first answered.",
            out_ref,
        );
        self.attempts.write("failover_attempts_total", "Attempts at models.", out_ref);
        self.decisions.write("failover_decisions_total", "Decisions of runs.", out_ref);
        self.tokens.write("failover_tokens_total", "Tokens of the answers that were served.", out_ref);
        self.rescues.write(
            "failover_rescues_total",
            "Streams that broke off and were to be rescued.",
            out_ref,
        );
        self.reloads.write("failover_reloads_total", "Reloads of the config.", out_ref);
        self.durations.write(
            "failover_request_duration_seconds",
            "From the request to the end of its answer.",
            out_ref,
        );
        self.first_content.write(
            "failover_first_content_seconds",
            "From the request to its first content.",
            out_ref,
        );
        let refused = self.refused.load(Ordering::Relaxed);
        head("failover_connections_refused_total", "Connections beyond the bound.", "counter", out_ref);
        let _ = writeln!(out_ref, "failover_connections_refused_total {refused}");
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
        metrics.decided("skip", "a/b", "with \"quotes\"\nand lines");
        metrics.decided("skip", "a/b", "with \"quotes\"\nand lines");
        metrics.durations.add(&[("route", "x")], Duration::from_millis(30));
        metrics.durations.add(&[("route", "x")], Duration::from_hours(1));
        let text = metrics.render(&[]);
        assert!(text.contains(
            "failover_decisions_total{decision=\"skip\",model=\"a/b\",reason=\"with \\\"quotes\\\"\\nand lines\"} 2\n"
        ));
        for line in [
            "failover_request_duration_seconds_bucket{route=\"x\",le=\"0.025\"} 0",
            "failover_request_duration_seconds_bucket{route=\"x\",le=\"0.05\"} 1",
            "failover_request_duration_seconds_bucket{route=\"x\",le=\"300\"} 1",
            "failover_request_duration_seconds_bucket{route=\"x\",le=\"+Inf\"} 2",
            "failover_request_duration_seconds_sum{route=\"x\"} 3600.03",
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

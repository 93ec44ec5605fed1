//! The log of `failover serve`: its form, and a bound on what trouble may write into it.

use clap::ValueEnum;
use failover::types::{Clock, Timestamp};
use std::collections::HashMap;
use std::hash::Hash;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata};
use tracing_subscriber::layer::{Context, Filter, Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, filter::FilterExt as _};

/// Name of the variable that says what is logged: `warn`, `failover_gateway=debug`.
const LOG: &str = "FAILOVER_LOG";
/// Warnings from one place in the code that are written within [`SPAN`]; the rest are counted. While a shared store is
/// away every request meets it several times.
const BURST: u32 = 5;
const SPAN: Duration = Duration::from_mins(1);

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    /// An object a line.
    Json,
    /// For people.
    Text,
}

/// Starts the log of this process, on standard error. What it holds back is told by [`Thin::tell`].
pub(crate) fn start(form: LogForm, clock: Arc<dyn Clock>) -> Thin {
    let wanted = EnvFilter::try_from_env(LOG).unwrap_or_else(|_| EnvFilter::new("info"));
    let thin = Thin { kinds: Arc::new(Mutex::new(Kinds(HashMap::new()))), clock };
    let filter = wanted.and(thin.clone());
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = tracing_subscriber::registry();
    match form {
        LogForm::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
            log.with(lines.with_filter(filter)).init();
        }
        LogForm::Text => {
            log.with(lines.with_ansi(std::io::stderr().is_terminal()).with_filter(filter)).init();
        }
    }
    thin
}

/// Lets through the first warnings of each kind, and counts the rest.
#[derive(Clone)]
pub(crate) struct Thin {
    kinds: Arc<Mutex<Kinds<Identifier>>>,
    clock: Arc<dyn Clock>,
}

impl Thin {
    fn kinds(&self) -> std::sync::MutexGuard<'_, Kinds<Identifier>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells every minute how many lines of which kind were held back. Never returns.
    pub(crate) async fn tell(&self) {
        loop {
            self.clock.sleep_until(self.clock.now().after(SPAN)).await;
            let held_back = self.kinds().end(self.clock.now());
            for (place, lines) in held_back {
                tracing::info!(place, lines, "more warnings of the same kind were held back");
            }
        }
    }
}

impl<S> Filter<S> for Thin {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let kind = event.metadata();
        *kind.level() > Level::WARN || self.kinds().admits(kind.callsite(), kind.target(), self.clock.now())
    }
}

/// One entry for each place in the code that has warned lately.
struct Kinds<K>(HashMap<K, Kind>);

struct Kind {
    target: String,
    since: Timestamp,
    lines: u32,
}

impl<K: Hash + Eq> Kinds<K> {
    fn admits(&mut self, place: K, target: &str, now: Timestamp) -> bool {
        let kind = self.0.entry(place);
        let kind = kind.or_insert_with(|| Kind { target: target.to_owned(), since: now, lines: 0 });
        kind.lines = kind.lines.saturating_add(1);
        kind.lines <= BURST
    }

    /// Forgets the kinds whose minute has ended; gives those that had more lines than were written.
    fn end(&mut self, now: Timestamp) -> Vec<(String, u32)> {
        let mut held_back = Vec::new();
        self.0.retain(|_, kind| {
            let goes_on = now.since(kind.since) < SPAN;
            if !goes_on && kind.lines > BURST {
                held_back.push((std::mem::take(&mut kind.target), kind.lines - BURST));
            }
            goes_on
        });
        held_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: G-8
    #[test]
    fn a_flood_of_one_kind_is_counted_and_hides_no_other() {
        let at = Timestamp::from_millis;
        let mut kinds = Kinds(HashMap::new());
        let written = (0..100).filter(|ms| kinds.admits("one", "books", at(*ms))).count();
        assert_eq!(written, 5);
        assert!(kinds.admits("other", "books", at(100)));
        assert_eq!(kinds.end(at(59_999)), []);
        assert_eq!(kinds.end(at(60_000)), [("books".to_owned(), 95)]);
        assert!(kinds.admits("one", "books", at(60_000)), "a new minute");
        assert_eq!(kinds.end(at(160_000)), [], "nothing was held back of either");
    }
}

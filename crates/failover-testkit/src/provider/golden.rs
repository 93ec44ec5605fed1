//! Golden requests: what a mapping makes of a request that holds everything, as a reviewer reads it.

#![expect(clippy::panic, reason = "a test fails with what is wrong with its input")]

use crate::ManualClock;
use failover_provider::{AttemptScope, ChatRequest, Mapped};
use failover_types::ModelRef;
use serde::de::IgnoredAny;
use std::sync::Arc;

/// Runs `attempt` in the scope of an attempt at `model` (`provider/model`), at the beginning of time.
///
/// # Panics
///
/// Where `model` is no such name.
pub fn in_scope<T>(model: &str, attempt: impl FnOnce(&AttemptScope<'_>) -> T) -> T {
    let model: ModelRef = model.parse().unwrap_or_else(|error| panic!("{model}: {error}"));
    attempt(&AttemptScope::new(&model, Arc::new(ManualClock::default())))
}

/// Maps `full`, a request as JSON, for each of `models`: a name for a snapshot, and the body with what is lost in it.
///
/// # Panics
///
/// Where `full` is no request, where a body is no JSON, and where an attempt leaves its mark on the request.
pub fn golden_requests(
    full: &str,
    models: &[&str],
    map: impl Fn(&ChatRequest, &str) -> Mapped,
) -> Vec<(String, String)> {
    let request: ChatRequest = serde_json::from_str(full).unwrap_or_else(|error| panic!("{error} in {full}"));
    let untouched = request.clone();
    let golden = models.iter().map(|model| {
        let mapped = map(&request, model);
        if let Err(error) = serde_json::from_str::<IgnoredAny>(&mapped.body) {
            panic!("{model}: {error} in {}", mapped.body);
        }
        (model.replace('/', "-"), shown(&mapped))
    });
    let golden = golden.collect();
    assert_eq!(request, untouched, "an attempt leaves the request as it was");
    golden
}

/// A field a line, nearly. Not through a value, which would sort the fields.
fn shown(mapped: &Mapped) -> String {
    let losses: Vec<String> =
        mapped.losses.iter().map(|loss| format!("{}: {:?}", loss.what, loss.reason)).collect();
    let body = mapped.body.replace(",\"", ",\n  \"").replace(":{", ": {").replace("},{", "},\n  {");
    format!("{body}\n\nlost: {losses:?}")
}

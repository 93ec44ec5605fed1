//! What the log says, field by field.

use crate::common::{model, policy};
use crate::driver::{ClientError, classifier, run_spec, status};
use failover_runner::{Attempt, Runner};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The fields of one event, by name.
type Fields = BTreeMap<String, String>;

/// Keeps the events of this crate.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Fields>>>);

struct Reader(Fields);

impl Visit for Reader {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("failover_runner")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut reader = Reader(Fields::new());
        event.record(&mut reader);
        self.0.lock().unwrap().push(reader.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

// spec: R-11, C-23
#[test]
fn a_decision_is_logged_under_its_field_names_and_without_secrets() {
    let kept = Kept::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    tracing::subscriber::with_default(kept.clone(), || {
        let runner = Runner::new(classifier());
        let spec = run_spec("run-1", &["a/m", "b/m"], &policy(|_| {}));
        let answer = runtime.block_on(runner.start(spec).run(|attempt: Attempt| async move {
            if attempt.model == model("a/m") {
                let body = "Incorrect API key provided: sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD";
                return Err(ClientError { body, ..status(401) });
            }
            Ok(())
        }));
        assert!(answer.is_ok());
    });
    let kept = kept.0.lock().unwrap();
    let decisions: Vec<&Fields> =
        kept.iter().filter(|fields| fields["message"] == "model_fallback_decision").collect();
    let [failed, answered] = decisions[..] else { panic!("{kept:?}") };
    let expected = [
        ("decision", "candidate_failed"),
        ("runId", "run-1"),
        ("requestedModel", "a/m"),
        ("candidateModel", "a/m"),
        ("fallbackStepFromModel", "a/m"),
        ("fallbackStepToModel", "b/m"),
        ("fallbackStepFromFailureReason", "auth"),
        ("fallbackStepChainPosition", "1"),
        ("fallbackStepFinalOutcome", "next_fallback"),
        ("status", "401"),
        ("attempt", "1"),
        ("total", "2"),
        ("profileCount", "1"),
    ];
    for (name, value) in expected {
        assert_eq!(failed.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(failed.contains_key("fallbackStepFromFailureDetail"));
    assert_eq!(answered["fallbackStepFinalOutcome"], "succeeded");
    assert!(!format!("{kept:?}").contains("abcdefghijklmnop"), "no secret in the log");
}

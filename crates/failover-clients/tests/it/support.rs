//! What the tests of all clients share: the refusals of the corpus, and faults below HTTP.

use failover_classify::{AsSignal, Classifier, Verdict};
use failover_runner::SystemClock;
use failover_runner::plan::Failed;
use failover_testkit::corpus::{Case, Corpus};
use failover_testkit::upstream::{
    Act, ChatCompletions, Converse, Dialect, On, Port, Respond, Step, Upstream,
};
use failover_types::{FailoverReason, Timestamp};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// How long a client waits for a provider that is silent on purpose.
pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// How long it waits for every other.
pub(crate) const LONG: Duration = Duration::from_mins(1);

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(|| Classifier::standard().unwrap());

/// It speaks chat completions, and Bedrock's own dialect.
pub(crate) async fn upstream() -> Upstream {
    let dialects: Vec<Box<dyn Dialect>> =
        vec![Box::new(ChatCompletions::default()), Box::new(Converse::default())];
    Upstream::start_with(Arc::new(SystemClock::new()), dialects).await.unwrap()
}

pub(crate) fn verdict(provider: &str, error: &impl AsSignal) -> Verdict {
    error.with_signal(|signal| CLASSIFIER.classify(&signal.with_provider(provider)))
}

/// Why, and how long to wait.
pub(crate) fn told(error: &impl AsSignal) -> (FailoverReason, Option<Duration>) {
    let verdict = verdict("acme", error);
    (verdict.reason, verdict.hint.and_then(|hint| hint.after()))
}

/// Whether the runner may repeat the attempt at once: a connection that broke before anything was answered.
pub(crate) fn repeatable(error: &impl AsSignal) -> bool {
    error.with_signal(|signal| {
        Failed::from_verdict(signal, &CLASSIFIER.classify(signal), Timestamp::from_millis(0)).repeatable
    })
}

/// Every answer of the corpus with an error status.
pub(crate) fn refusals() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/corpus").canonicalize().unwrap();
    let mut cases = Corpus::load(root).unwrap().cases;
    cases.retain(|case| {
        // A code apart from the body was seen by a client, not on the wire.
        let answered = case.surface == failover_classify::Surface::Http && case.code.is_none();
        answered && case.status.is_some_and(|status| status >= 400)
    });
    assert!(cases.len() > 400, "{} cases", cases.len());
    cases
}

fn step(case: &Case) -> Step {
    let mut respond = Respond::new(case.status.unwrap()).body(case.body.clone());
    if !case.headers.contains_key("content-type") {
        let json = case.body.trim_start().starts_with(['{', '[']);
        respond = respond.header("content-type", if json { "application/json" } else { "text/plain" });
    }
    for (name, value) in &case.headers {
        respond = respond.header(name, value);
    }
    respond.into()
}

/// Answers a client with every refusal of the corpus. What its error tells must come to the verdict that the answer
/// itself comes to; those that do not are returned, a line each.
pub(crate) async fn replay<E: AsSignal>(ask: impl AsyncFn(&str, Duration) -> E) -> Vec<String> {
    replay_cases(&refusals(), ask, true).await
}

/// The same with these cases, and with or without the wait that the answer asks for.
pub(crate) async fn replay_cases<E: AsSignal>(
    cases: &[Case],
    ask: impl AsyncFn(&str, Duration) -> E,
    with_hint: bool,
) -> Vec<String> {
    let upstream = upstream().await;
    upstream.script(On::any(), cases.iter().map(step));
    let mut other = Vec::new();
    for case in cases {
        let error = ask(&upstream.base_url(), LONG).await;
        let mut meant = verdict(&case.provider, case);
        let mut seen = verdict(&case.provider, &error);
        if !with_hint {
            (meant.hint, seen.hint) = (None, None);
        }
        let key = |verdict: &Verdict| {
            (verdict.reason, verdict.scope, verdict.hint.as_ref().map(|hint| hint.when.clone()))
        };
        if key(&meant) != key(&seen) {
            let shown = |verdict: &Verdict| format!("{:?} by {}", key(verdict), verdict.evidence.rule);
            other.push(format!("{}: {}, meant {}", case.path(), shown(&seen), shown(&meant)));
        }
    }
    assert_eq!(upstream.log().len(), cases.len(), "one request for a call: no retry of the client's own");
    other
}

/// What a fault below HTTP must come to, and whether it may be repeated at once.
pub(crate) struct Expected {
    pub(crate) reason: FailoverReason,
    pub(crate) repeatable: bool,
}

/// Faults below HTTP and in a body, by name.
pub(crate) fn faults() -> Vec<(&'static str, Step, Expected)> {
    let timeout = |repeatable| Expected { reason: FailoverReason::Timeout, repeatable };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n{\"id\":\"";
    let half = |end: Act| Step::Raw(vec![Act::Send(head.into()), end]);
    vec![
        ("reset before an answer", Step::reset(), timeout(true)),
        ("closed before an answer", Step::close(), timeout(true)),
        ("silent", Step::silent(), timeout(false)),
        ("half a status line", Step::slow_head(), timeout(false)),
        ("reset inside the answer", half(Act::Reset), timeout(false)),
        ("closed inside the answer", half(Act::Close), timeout(false)),
        ("silent inside the answer", half(Act::Stall), timeout(false)),
    ]
}

/// Tries all faults below HTTP, and a port that refuses connections.
pub(crate) async fn below_http<E: AsSignal + std::fmt::Debug>(ask: impl AsyncFn(&str, Duration) -> E) {
    let mut wrong = Vec::new();
    let mut check = |name: &str, error: &E, expected: &Expected| {
        let (reason, repeats) = (told(error).0, repeatable(error));
        if (reason, repeats) != (expected.reason, expected.repeatable) {
            let signal = error.with_signal(|signal| format!("{signal:?}"));
            wrong.push(format!("{name}: {reason}, repeatable {repeats}\n  {error:?}\n  {signal}"));
        }
    };
    let port = Port::refusing().unwrap();
    let refused = ask(&format!("http://{}/v1", port.address()), LONG).await;
    check("refused", &refused, &Expected { reason: FailoverReason::Timeout, repeatable: true });
    for (name, step, expected) in faults() {
        let upstream = upstream().await;
        upstream.script(On::any(), [step]);
        let patience = if name.contains("silent") || name.contains("half") { SHORT } else { LONG };
        check(name, &ask(&upstream.base_url(), patience).await, &expected);
        assert!(upstream.log().len() <= 1, "{name}: no retry of the client's own");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the error says when the provider asks for a wait, and when it answers with broken JSON.
pub(crate) async fn waits_and_junk<E: AsSignal + std::fmt::Debug>(
    ask: impl AsyncFn(&str, Duration) -> E,
) -> (E, E) {
    let upstream = upstream().await;
    let busy = r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
    let busy =
        Respond::new(429).header("content-type", "application/json").header("retry-after", "7").body(busy);
    upstream.script(On::any(), [busy.into(), Step::json(200, r#"{"id":"x","choices":[{"#)]);
    (ask(&upstream.base_url(), LONG).await, ask(&upstream.base_url(), LONG).await)
}

/// What the error says of streamed answers that break off, fall silent, or end in a complaint.
pub(crate) async fn broken_streams<E: AsSignal + std::fmt::Debug>(ask: impl AsyncFn(&str, Duration) -> E) {
    let upstream = upstream().await;
    let overloaded = r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let answer = || Answer::text(["a", "b"]);
    for (answer, patience, reason) in [
        (answer().cut_after(1), LONG, FailoverReason::Timeout),
        (answer().reset_after(1), LONG, FailoverReason::Timeout),
        (answer().stall_after(1), SHORT, FailoverReason::Timeout),
        (answer().error_after(1, overloaded), LONG, FailoverReason::Overloaded),
    ] {
        upstream.script(On::any(), [answer.into()]);
        let error = ask(&upstream.base_url(), patience).await;
        assert_eq!(told(&error).0, reason, "{error:?}");
    }
}

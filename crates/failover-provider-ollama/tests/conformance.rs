//! The published suite, and what only this adapter does, over real sockets.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_classify::{AsSignal, Classifier};
use failover_http::TargetConfig;
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FinishReason, Part, ProviderAdapter, Reply,
};
use failover_provider_ollama::Ollama;
use failover_testkit::ManualClock;
use failover_testkit::provider::Subject;
use failover_testkit::upstream::{Answer, Dialect, OllamaChat, Piece, Step, Upstream};
use failover_types::FailoverReason::{self, Auth, ContextOverflow, ModelNotFound, Overloaded, ServerError};
use failover_types::{ModelRef, ProviderId};
use std::sync::Arc;
use test_case::test_case;

fn adapter(base: &str) -> Ollama {
    Ollama::new(ProviderId::new("ollama").unwrap(), TargetConfig::new().base_url(base)).unwrap()
}

// spec: P-2, P-3, P-4, P-5, P-6, P-7, R-16, R-17, R-18, C-23
failover_testkit::provider_conformance!(
    Subject::new(|base| Arc::new(adapter(base)))
        .with_dialect(|| Box::new(OllamaChat::default()))
        .without_idempotency_key()
);

async fn open(step: impl Into<Step>, stream: bool) -> Result<Reply, AttemptFailure> {
    let clock = Arc::new(ManualClock::default());
    let dialects: Vec<Box<dyn Dialect>> = vec![Box::new(OllamaChat::default())];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script("m", [step.into()]);
    let adapter = adapter(&format!("http://{}", upstream.address()));
    let model: ModelRef = "ollama/m".parse().unwrap();
    let request = ChatRequest::prompt("hi").with_stream(stream);
    let mut reply = adapter.open(&request, AttemptScope::new(&model, clock)).await?;
    if let Reply::Stream(stream) = reply {
        reply = Reply::Complete(stream.into_reply().await?);
    }
    Ok(reply)
}

// spec: P-5
#[tokio::test]
async fn thinking_goes_home_and_calls_get_ids() {
    let call = Piece::ToolCall { id: String::new(), name: "look".into(), arguments: "{\"at\":1}".into() };
    let answer = Answer::new(vec![
        Piece::Reasoning("hm".into()),
        Piece::Reasoning(", yes".into()),
        Piece::Text("I look.".into()),
        call.clone(),
        call,
    ]);
    for stream in [false, true] {
        let Reply::Complete(reply) = open(answer.clone(), stream).await.unwrap() else { unreachable!() };
        let [
            Part::Reasoning { text, proof: Some(proof) },
            Part::Text(_),
            Part::ToolCall(a),
            Part::ToolCall(b),
        ] = reply.parts.as_slice()
        else {
            panic!("{:?}", reply.parts)
        };
        assert_eq!(
            (text.as_str(), proof.name.as_str(), proof.value.as_str()),
            ("hm, yes", "thinking", "\"hm, yes\"")
        );
        assert!(!a.id.is_empty() && a.id != b.id, "{a:?} {b:?}");
        assert_eq!(reply.finish, FinishReason::ToolCalls, "the server says only that it stopped");
    }
}

// spec: P-4, C-7, C-12, C-13, C-14
#[test_case(Step::json(404, r#"{"error":"model 'm' not found"}"#), ModelNotFound; "no such model")]
#[test_case(Step::json(404, r#"{"error":"model \"m\" not found, try pulling it first"}"#), ModelNotFound; "not pulled")]
#[test_case(Step::json(400, r#"{"error":"registry.ollama.ai/library/m:latest does not support tools"}"#), ModelNotFound; "no tools")]
#[test_case(Step::json(400, r#"{"error":"\"m\" does not support thinking"}"#), ModelNotFound; "no thinking")]
#[test_case(Step::json(503, r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#), Overloaded; "busy")]
#[test_case(Step::json(500, r#"{"error":"llama runner process has terminated: exit status 2"}"#), ServerError; "runner died")]
#[test_case(Step::json(500, r#"{"error":"model requires more system memory (9.0 GiB) than is available (4.0 GiB)"}"#), ServerError; "no memory")]
#[test_case(Step::json(400, r#"{"error":"the input length exceeds the context length"}"#), ContextOverflow; "too long")]
#[test_case(Step::json(401, r#"{"error":"unauthorized"}"#), Auth; "cloud without key")]
#[tokio::test]
async fn faults_reach_their_verdict(step: Step, expected: FailoverReason) {
    for stream in [false, true] {
        let failure = open(step.clone(), stream).await.unwrap_err();
        let verdict = failure.with_signal(|signal| Classifier::standard().unwrap().classify(signal));
        assert_eq!(verdict.reason, expected, "{verdict:?}");
    }
}

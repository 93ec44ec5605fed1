//! The published suite, and what only this adapter does, over real sockets.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_http::TargetConfig;
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FinishReason, Part, ProviderAdapter, Reply,
};
use failover_provider_google::Google;
use failover_testkit::ManualClock;
use failover_testkit::provider::Subject;
use failover_testkit::upstream::{Answer, Dialect, Gemini, Piece, Step, Upstream, key_hash};
use failover_types::{CredentialKind, ModelRef, ProfileId, ProviderId, ResolvedCredential, Secret};
use std::sync::Arc;
use test_case::test_case;

fn gemini(base: &str) -> Google {
    let config = TargetConfig::new().base_url(format!("{base}/v1beta"));
    Google::new(ProviderId::new("google").unwrap(), config).unwrap()
}

fn vertex(base: &str) -> Google {
    let base = format!("{base}/v1/projects/p/locations/europe-west1/publishers/google");
    Google::new(ProviderId::new("google-vertex").unwrap(), TargetConfig::new().base_url(base)).unwrap()
}

// spec: P-2, P-3, P-4, P-5, P-6, P-7, R-16, R-17, R-18, C-23
failover_testkit::provider_conformance!(
    Subject::new(|base| Arc::new(gemini(base)))
        .with_dialect(|| Box::new(Gemini::default()))
        .without_idempotency_key()
);

mod on_vertex {
    use super::{Arc, Gemini, Subject, vertex};

    failover_testkit::provider_conformance!(
        Subject::new(|base| Arc::new(vertex(base)))
            .with_dialect(|| Box::new(Gemini::default()))
            .without_idempotency_key()
    );
}

async fn open(
    adapter: impl Fn(&str) -> Google,
    step: impl Into<Step>,
    kind: CredentialKind,
    stream: bool,
) -> (Upstream, Result<Reply, AttemptFailure>) {
    let clock = Arc::new(ManualClock::default());
    let dialects: Vec<Box<dyn Dialect>> = vec![Box::new(Gemini::default())];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script("m", [step.into()]);
    let adapter = adapter(&format!("http://{}", upstream.address()));
    let model = ModelRef::new(adapter.id().clone(), "m").unwrap();
    let profile = ProfileId::for_account(adapter.id(), None).unwrap();
    let credential = ResolvedCredential::new(profile, kind, Secret::new("sk-0123456789"));
    let request = ChatRequest::prompt("hi").with_stream(stream);
    let scope = AttemptScope::new(&model, clock).with_credential(&credential);
    let reply = adapter.open(&request, scope).await;
    (upstream, reply)
}

// spec: P-7
#[test_case(gemini, CredentialKind::ApiKey, false, "/v1beta/models/m:generateContent"; "key")]
#[test_case(gemini, CredentialKind::OAuth, true, "/v1beta/models/m:streamGenerateContent?alt=sse"; "token")]
#[test_case(vertex, CredentialKind::Token, false, "/v1/projects/p/locations/europe-west1/publishers/google/models/m:generateContent"; "vertex")]
#[tokio::test]
async fn requests_go_where_they_belong(
    adapter: fn(&str) -> Google,
    kind: CredentialKind,
    stream: bool,
    target: &str,
) {
    let (upstream, reply) = open(adapter, Answer::text(["x"]), kind, stream).await;
    reply.unwrap();
    let log = upstream.log();
    let attempt = log.first().unwrap();
    assert_eq!(attempt.key_hash, Some(key_hash("sk-0123456789")));
    assert_eq!(attempt.target, target);
}

// spec: P-5
#[tokio::test]
async fn an_answer_goes_back_as_it_came() {
    let answer = Answer::new(vec![
        Piece::Reasoning("hm".into()),
        Piece::Text("I look.".into()),
        Piece::ToolCall { id: String::new(), name: "look".into(), arguments: "{\"at\":1}".into() },
    ]);
    for stream in [false, true] {
        let (upstream, reply) = open(gemini, answer.clone(), CredentialKind::ApiKey, stream).await;
        let reply = match reply.unwrap() {
            Reply::Complete(reply) => reply,
            Reply::Stream(stream) => stream.into_reply().await.unwrap(),
        };
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        let Some(Part::Reasoning { proof: Some(proof), .. }) = reply.parts.first() else {
            panic!("{:?}", reply.parts)
        };
        assert_eq!(proof.origin().unwrap().model.as_deref(), Some("m"));
        let mut request = ChatRequest::prompt("hi");
        request
            .messages
            .push(failover_provider::Message::new(failover_provider::Role::Assistant, reply.parts));
        let model: ModelRef = "google/m".parse().unwrap();
        let scope = AttemptScope::new(&model, Arc::new(ManualClock::default()));
        let adapter = gemini(&format!("http://{}", upstream.address()));
        adapter.open(&request, scope).await.unwrap();
        let sent: serde_json::Value = serde_json::from_str(&upstream.log().last().unwrap().body).unwrap();
        let parts = sent["contents"][1]["parts"].as_array().unwrap();
        assert_eq!(parts[0], serde_json::json!({"text": "I look.", "thoughtSignature": "c2lnbmVk"}));
        assert_eq!(parts[1]["functionCall"]["args"], serde_json::json!({"at": 1}));
    }
}

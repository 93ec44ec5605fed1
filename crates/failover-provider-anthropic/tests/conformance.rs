//! The published suite, and what only this adapter does, over real sockets.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use failover_http::TargetConfig;
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FinishReason, Part, ProviderAdapter, Reply,
};
use failover_provider_anthropic::Anthropic;
use failover_testkit::ManualClock;
use failover_testkit::provider::Subject;
use failover_testkit::upstream::{Answer, Messages, Piece, Step, Upstream, key_hash};
use failover_types::{CredentialKind, ModelRef, ProfileId, ProviderId, ResolvedCredential, Secret};
use std::sync::Arc;
use test_case::test_case;

fn adapter(base: &str) -> Anthropic {
    let config = TargetConfig::new().base_url(format!("{base}/v1"));
    Anthropic::new(ProviderId::new("anthropic").unwrap(), config).unwrap()
}

// spec: P-2, P-3, P-4, P-5, P-6, R-16, R-17, R-18, C-23
failover_testkit::provider_conformance!(
    Subject::new(|base| Arc::new(adapter(base)))
        .with_dialect(|| Box::new(Messages::default()))
        .without_idempotency_key()
);

async fn open(
    step: impl Into<Step>,
    kind: CredentialKind,
    stream: bool,
) -> (Upstream, Result<Reply, AttemptFailure>) {
    let clock = Arc::new(ManualClock::default());
    let dialects: Vec<Box<dyn failover_testkit::upstream::Dialect>> = vec![Box::new(Messages::default())];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script("m", [step.into()]);
    let adapter = adapter(&format!("http://{}", upstream.address()));
    let model: ModelRef = "anthropic/m".parse().unwrap();
    let profile = ProfileId::new("anthropic:default").unwrap();
    let credential = ResolvedCredential::new(profile, kind, Secret::new("sk-0123456789"));
    let request = ChatRequest::prompt("hi").with_stream(stream);
    let scope = AttemptScope::new(&model, clock).with_credential(&credential);
    let reply = adapter.open(&request, scope).await;
    (upstream, reply)
}

#[test_case(CredentialKind::ApiKey, None; "key")]
#[test_case(CredentialKind::OAuth, Some("oauth-2025-04-20"); "token")]
#[tokio::test]
async fn keys_and_tokens_go_where_they_belong(kind: CredentialKind, beta: Option<&str>) {
    let (upstream, reply) = open(Answer::text(["x"]), kind, false).await;
    reply.unwrap();
    let log = upstream.log();
    let attempt = log.first().unwrap();
    assert_eq!(attempt.key_hash, Some(key_hash("sk-0123456789")));
    assert_eq!(
        (attempt.header("anthropic-version"), attempt.header("anthropic-beta")),
        (Some("2023-06-01"), beta)
    );
}

// spec: P-5
#[tokio::test]
async fn thinking_keeps_its_signature() {
    let answer = Answer::new(vec![Piece::Reasoning("hm".into()), Piece::Text("yes".into())]);
    for stream in [false, true] {
        let reply = match open(answer.clone(), CredentialKind::ApiKey, stream).await.1.unwrap() {
            Reply::Complete(reply) => reply,
            Reply::Stream(stream) => stream.into_reply().await.unwrap(),
        };
        let Some(Part::Reasoning { text, proof: Some(proof) }) = reply.parts.first() else {
            panic!("{:?}", reply.parts)
        };
        assert_eq!(
            (text.as_str(), proof.name.as_str(), proof.value.as_str()),
            ("hm", "signature", "\"c2lnbmVk\"")
        );
        assert_eq!(proof.origin().unwrap().model.as_deref(), Some("m"));
        assert_eq!((reply.text().as_str(), reply.finish), ("yes", FinishReason::Stop));
    }
}

#[tokio::test]
async fn a_call_is_put_together_from_its_pieces() {
    let call = Answer::tool_call("toolu_1", "look", "{\"at\":1}");
    for stream in [false, true] {
        let reply = match open(call.clone(), CredentialKind::ApiKey, stream).await.1.unwrap() {
            Reply::Complete(reply) => reply,
            Reply::Stream(stream) => stream.into_reply().await.unwrap(),
        };
        let Some(Part::ToolCall(call)) = reply.parts.first() else { panic!("{:?}", reply.parts) };
        assert_eq!((call.id.as_str(), call.arguments.as_str()), ("toolu_1", "{\"at\":1}"));
    }
}

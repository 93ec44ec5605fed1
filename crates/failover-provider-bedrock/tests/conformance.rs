//! The published suite, and what only this adapter does, over real sockets.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod verify;

use failover_http::TargetConfig;
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FinishReason, Message, Part, ProviderAdapter, Reply, Role,
};
use failover_provider_bedrock::Bedrock;
use failover_testkit::ManualClock;
use failover_testkit::provider::Subject;
use failover_testkit::upstream::{Answer, Converse, Dialect, Piece, Respond, Step, Upstream, key_hash};
use failover_types::{
    CredentialKind, ModelRef, ProfileId, ProviderId, ResolvedCredential, Secret, Timestamp,
};
use futures_util::StreamExt;
use std::sync::Arc;
use verify::Signed;

const MODEL: &str = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.vendor.model-v1:0";
const ACCESS: &str = "ASIAEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJIMEYCIQ==";

fn adapter(base: &str) -> Bedrock {
    let id = ProviderId::new("amazon-bedrock").unwrap();
    Bedrock::in_region(id, "eu-central-1", TargetConfig::new().base_url(base)).unwrap()
}

// spec: P-2, P-3, P-4, P-5, P-6, P-7, R-16, R-17, R-18, C-23
failover_testkit::provider_conformance!(
    Subject::new(|base| Arc::new(adapter(base)))
        .with_dialect(|| Box::new(Converse::default()))
        .without_idempotency_key()
);

async fn open(
    dialect: impl Dialect + 'static,
    step: impl Into<Step>,
    secret: &str,
    stream: bool,
) -> (Upstream, Result<Reply, AttemptFailure>) {
    // 2023-11-14T22:13:20Z: signatures have a date.
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_000)));
    let dialects: Vec<Box<dyn Dialect>> = vec![Box::new(dialect)];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock), dialects).await.unwrap();
    upstream.script(MODEL, [step.into()]);
    let adapter = adapter(&format!("http://{}", upstream.address()));
    let model = ModelRef::new(adapter.id().clone(), MODEL).unwrap();
    let profile = ProfileId::for_account(adapter.id(), None).unwrap();
    let credential = ResolvedCredential::new(profile, CredentialKind::ApiKey, Secret::new(secret));
    let request = ChatRequest::prompt("hi").with_stream(stream);
    let scope = AttemptScope::new(&model, clock).with_credential(&credential);
    let reply = adapter.open(&request, scope).await;
    (upstream, reply)
}

fn signed() -> Signed {
    Signed { access: ACCESS, secret: SECRET, token: Some(TOKEN), region: "eu-central-1", service: "bedrock" }
}

// spec: P-7
#[tokio::test]
async fn the_upstream_accepts_the_signature() {
    for stream in [false, true] {
        let (upstream, reply) =
            open(signed(), Answer::text(["x"]), &format!("{ACCESS}:{SECRET}:{TOKEN}"), stream).await;
        assert_eq!(read(reply.unwrap()).await.text(), "x");
        let log = upstream.log();
        let attempt = log.first().unwrap();
        assert_eq!(attempt.key_hash, Some(key_hash(ACCESS)), "the signature was verified");
        assert_eq!(attempt.model, MODEL, "the model's name is one segment of the path");
    }
}

#[tokio::test]
async fn another_key_does_not_pass() {
    let (upstream, _) = open(signed(), Answer::text(["x"]), &format!("{ACCESS}:other:{TOKEN}"), false).await;
    assert_eq!(upstream.log().first().unwrap().key_hash, None);
}

// spec: P-4
#[tokio::test]
async fn no_part_of_the_keys_comes_back() {
    let echo = format!("The canonical string should have been x-amz-security-token:{TOKEN} and not {SECRET}");
    let step = Respond::new(403).header("x-amzn-errortype", "InvalidSignatureException").body(echo);
    let (_, reply) = open(signed(), step, &format!("{ACCESS}:{SECRET}:{TOKEN}"), false).await;
    let failure = reply.unwrap_err();
    let body = String::from_utf8_lossy(&failure.body).into_owned();
    assert!(body.contains("canonical string") && !body.contains(TOKEN) && !body.contains(SECRET), "{body}");
}

#[tokio::test]
async fn keys_that_are_none_are_a_failure_of_this_machine() {
    let (upstream, reply) = open(signed(), Answer::text(["x"]), "AKIAHALF", false).await;
    let failure = reply.unwrap_err();
    assert!(!failure.may_have_been_sent() && upstream.log().is_empty());
    assert!(!format!("{:?}", failure.causes).contains("AKIAHALF"));
}

async fn read(reply: Reply) -> failover_provider::ChatReply {
    match reply {
        Reply::Complete(reply) => reply,
        Reply::Stream(stream) => stream.into_reply().await.unwrap(),
    }
}

// spec: P-5
#[tokio::test]
async fn an_answer_goes_back_as_it_came() {
    let answer = Answer::new(vec![
        Piece::Reasoning("hm".into()),
        Piece::Text("I look.".into()),
        Piece::ToolCall { id: "tooluse_1".into(), name: "look".into(), arguments: "{\"at\":1}".into() },
    ])
    .finish("tool_calls");
    for stream in [false, true] {
        let (upstream, reply) = open(Converse::default(), answer.clone(), "key-0123456789", stream).await;
        let reply = read(reply.unwrap()).await;
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        assert_eq!(reply.usage.map(|usage| (usage.input, usage.output)), Some((11, 7)));
        let mut request = ChatRequest::prompt("hi");
        request.messages.push(Message::new(Role::Assistant, reply.parts));
        let adapter = adapter(&format!("http://{}", upstream.address()));
        let model = ModelRef::new(adapter.id().clone(), MODEL).unwrap();
        adapter.open(&request, AttemptScope::new(&model, Arc::new(ManualClock::default()))).await.unwrap();
        let sent: serde_json::Value = serde_json::from_str(&upstream.log().last().unwrap().body).unwrap();
        let expected = serde_json::json!([
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2lnbmVk"}}},
            {"text": "I look."},
            {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"at": 1}}},
        ]);
        assert_eq!(sent["messages"][1]["content"], expected);
    }
}

// spec: P-3
#[tokio::test]
async fn a_broken_frame_ends_the_stream_and_keeps_what_came() {
    let mut broken = Converse::default().heartbeat();
    let last = broken.len() - 1;
    broken[last] ^= 1;
    let answer = Answer::text(["one", "two"]).bytes_after(1, broken);
    let (_, reply) = open(Converse::default(), answer, "key-0123456789", true).await;
    let Ok(Reply::Stream(stream)) = reply else { panic!("no stream") };
    let events: Vec<_> = stream.collect().await;
    let failure = events.last().unwrap().as_ref().unwrap_err();
    assert_eq!(failure.code.as_deref(), Some("EPROTO"));
    assert_eq!(failure.incomplete.as_ref().unwrap().text(), "one");
}

// spec: P-5
#[tokio::test]
async fn part_of_a_reply_is_reasoning_with_its_origin() {
    let answer = Answer::new(vec![Piece::Reasoning("hm".into()), Piece::Text("yes".into())]);
    let (_, reply) = open(Converse::default(), answer, "key-0123456789", true).await;
    let reply = read(reply.unwrap()).await;
    let Some(Part::Reasoning { proof: Some(proof), .. }) = reply.parts.first() else {
        panic!("{:?}", reply.parts)
    };
    assert_eq!(proof.origin().unwrap().model.as_deref(), Some(MODEL));
}

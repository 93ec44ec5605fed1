//! The published suite, and what only this adapter does, over real sockets.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use failover_classify::{AsSignal, Surface};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FinishReason, Part, ProviderAdapter, Reply, ReplyEvent,
};
use failover_provider_openai::OpenAi;
use failover_testkit::ManualClock;
use failover_testkit::provider::Subject;
use failover_testkit::upstream::{Answer, Piece, Step, Upstream};
use failover_types::{CredentialKind, ModelRef, ProfileId, ProviderId, ResolvedCredential, Secret};
use futures_util::StreamExt;
use std::sync::Arc;
use test_case::test_case;

fn adapter(provider: &str, base: &str) -> OpenAi {
    OpenAi::builder(ProviderId::new(provider).unwrap()).base_url(format!("{base}/v1")).build().unwrap()
}

// spec: P-2, P-3, P-4, P-5, P-6, R-16, R-17, R-18, C-23
failover_testkit::provider_conformance!(Subject::new(|base| Arc::new(adapter("openai", base))));

async fn open(
    provider: &str,
    step: impl Into<Step>,
    stream: bool,
) -> (Upstream, Result<Reply, AttemptFailure>) {
    let clock = Arc::new(ManualClock::default());
    let upstream = Upstream::start(Arc::<ManualClock>::clone(&clock)).await.unwrap();
    upstream.script("m", [step.into()]);
    let adapter = adapter(provider, &format!("http://{}", upstream.address()));
    let model: ModelRef = format!("{provider}/m").parse().unwrap();
    let profile = ProfileId::new(format!("{provider}:default")).unwrap();
    let credential = ResolvedCredential::new(profile, CredentialKind::ApiKey, Secret::new("sk-0123456789"));
    let request = ChatRequest::prompt("hi").with_stream(stream);
    let scope = AttemptScope::new(&model, clock).with_credential(&credential);
    let reply = adapter.open(&request, scope).await;
    (upstream, reply)
}

async fn events(provider: &str, data: &[&str]) -> Vec<Result<ReplyEvent, AttemptFailure>> {
    let body = format!("data: {}\n\n", data.join("\n\ndata: "));
    match open(provider, Step::events(body), true).await.1 {
        Ok(Reply::Stream(stream)) => stream.collect().await,
        other => panic!("{other:?}"),
    }
}

// spec: P-7
#[tokio::test]
async fn azure_takes_keys_in_a_header_of_its_own() {
    let (upstream, reply) = open("azure-openai", Answer::text(["x"]), false).await;
    reply.unwrap();
    let log = upstream.log();
    assert_eq!(log.first().unwrap().key_hash, Some(failover_testkit::upstream::key_hash("sk-0123456789")));
}

// spec: P-7
#[tokio::test]
async fn copilot_gets_the_headers_that_it_wants() {
    let (upstream, reply) = open("github-copilot", Answer::text(["x"]), false).await;
    reply.unwrap();
    let log = upstream.log();
    assert_eq!(log.first().unwrap().header("copilot-integration-id"), Some("vscode-chat"));
}

// spec: C-8, C-15
#[test_case("network_error"; "transport word")]
#[test_case("MALFORMED_FUNCTION_CALL"; "malformed call")]
#[test_case("content_filter"; "filter without content")]
#[tokio::test]
async fn a_finish_reason_that_means_failed_is_a_failure(word: &str) {
    for stream in [false, true] {
        let failure = open("openai", Answer::blank().finish(word), stream).await.1.unwrap_err();
        assert_eq!(failure.code.as_deref(), Some(word));
        failure.with_signal(|signal| assert_eq!(signal.body, format!("stop reason: {word}").as_bytes()));
    }
}

// spec: P-3
#[tokio::test]
async fn a_failed_finish_after_content_keeps_what_came() {
    let events = events(
        "openai",
        &[
            r#"{"choices":[{"delta":{"content":"one"}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
            "[DONE]",
        ],
    )
    .await;
    let failure = events.last().unwrap().as_ref().unwrap_err();
    assert_eq!((failure.surface, failure.code.as_deref()), (Surface::StreamEvent, Some("error")));
    assert_eq!(failure.incomplete.as_ref().unwrap().text(), "one");
}

#[tokio::test]
async fn reasoning_comes_under_either_name_and_goes_home_whole() {
    let reasoning = Answer::new(vec![Piece::Reasoning("hm".into()), Piece::Text("yes".into())]);
    for stream in [false, true] {
        let reply = match open("deepseek", reasoning.clone(), stream).await.1.unwrap() {
            Reply::Complete(reply) => reply,
            Reply::Stream(stream) => stream.into_reply().await.unwrap(),
        };
        let proofs: Vec<_> = reply
            .parts
            .iter()
            .filter_map(|part| {
                if let Part::Reasoning { proof: Some(proof), .. } = part { Some(proof) } else { None }
            })
            .collect();
        let [proof] = proofs.as_slice() else { panic!("{:?}", reply.parts) };
        assert_eq!((proof.name.as_str(), proof.value.as_str()), ("reasoning_content", "\"hm\""));
        assert_eq!((reply.text().as_str(), reply.finish), ("yes", FinishReason::Stop));
    }
    let events = events(
        "openrouter",
        &[
            r#"{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"n":1}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"b","reasoning_details":[{"n":2}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ],
    )
    .await;
    let proof = events.iter().find_map(|event| match event {
        Ok(ReplyEvent::ReasoningProof(proof)) => Some(proof.value.as_str()),
        _ => None,
    });
    assert_eq!(proof, Some(r#"[{"n":1},{"n":2}]"#));
}

#[tokio::test]
async fn tool_calls_without_an_index_are_told_apart() {
    let events = events(
        "openai",
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":{"x":1}}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
    )
    .await;
    let calls: Vec<(u32, &str)> = events
        .iter()
        .filter_map(|event| match event {
            Ok(ReplyEvent::ToolCall(delta)) => Some((delta.index, delta.arguments.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [(0, "{"), (0, "}"), (1, "{\"x\":1}")]);
}

#[tokio::test]
async fn a_stream_that_nobody_asked_for_is_read_whole() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"one\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let reply = open("openai", Step::events(body), false).await.1.unwrap();
    assert!(matches!(reply, Reply::Complete(reply) if reply.text() == "one"));
    let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n";
    let failure = open("openai", Step::events(cut), false).await.1.unwrap_err();
    assert!(failure.progress < failover_provider::Progress::Delivered, "nothing reached the caller");
}

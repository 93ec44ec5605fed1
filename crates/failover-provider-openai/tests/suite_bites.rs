//! The conformance suite finds adapters that break the rules, and says which.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use async_trait::async_trait;
use failover_classify::ProviderRules;
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FinishReason, Part, ProviderAdapter, Reply, ReplyEvent,
    ReplyStream,
};
use failover_provider_openai::OpenAi;
use failover_testkit::provider::{Subject, run};
use failover_types::ProviderId;
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use test_case::test_case;

/// What an adapter may get wrong.
#[derive(Clone, Copy, Debug)]
enum Sin {
    /// Tries again by itself.
    Retries,
    /// Calls a broken stream complete.
    Swallows,
    /// Forgets the idempotency key.
    NoKey,
    /// Resolves before content.
    Hasty,
    /// Leaves results of tools out.
    Forgets,
    /// Says nothing of calls.
    Withholds,
}

struct Sinner {
    inner: OpenAi,
    sin: Sin,
}

#[async_trait]
impl ProviderAdapter for Sinner {
    fn id(&self) -> &ProviderId {
        self.inner.id()
    }

    fn rules(&self) -> &dyn ProviderRules {
        self.inner.rules()
    }

    async fn open(
        &self,
        request: &ChatRequest,
        mut scope: AttemptScope<'_>,
    ) -> Result<Reply, AttemptFailure> {
        match self.sin {
            Sin::Retries => match self.inner.open(request, scope.clone()).await {
                Err(_) => self.inner.open(request, scope).await,
                reply => reply,
            },
            Sin::Swallows => Ok(match self.inner.open(request, scope).await? {
                Reply::Stream(events) => {
                    let events = events.map(|event| event.or(Ok(ReplyEvent::Finish(FinishReason::Stop))));
                    Reply::Stream(ReplyStream::new(self.id().clone(), events))
                }
                reply @ Reply::Complete(_) => reply,
            }),
            Sin::NoKey => {
                scope.idempotency_key = None;
                self.inner.open(request, scope).await
            }
            Sin::Forgets => {
                let mut request = request.clone();
                for message in &mut request.messages {
                    message.parts.retain(|part| !matches!(part, Part::ToolResult(_)));
                }
                self.inner.open(&request, scope).await
            }
            Sin::Withholds => match self.inner.open(request, scope).await? {
                Reply::Complete(mut reply) => {
                    reply.parts.retain(|part| !matches!(part, Part::ToolCall(_)));
                    Ok(Reply::Complete(reply))
                }
                reply @ Reply::Stream(_) => Ok(reply),
            },
            Sin::Hasty => {
                let outcome = self.inner.open(request, scope).await;
                let provider = self.id().clone();
                Ok(outcome.unwrap_or_else(|failure| {
                    Reply::Stream(ReplyStream::new(provider, stream::iter([Err(failure)])))
                }))
            }
        }
    }
}

// spec: P-6
#[test_case(Sin::Retries, "fails_before_content")]
#[test_case(Sin::Swallows, "never_passes_off_an_incomplete_answer")]
#[test_case(Sin::NoKey, "sends_the_key_and_the_idempotency_key_once")]
#[test_case(Sin::Hasty, "fails_before_content"; "hasty")]
#[test_case(Sin::Forgets, "asks_for_what_is_asked")]
fn the_suite_bites(sin: Sin, case: &str) {
    let subject = subject(sin);
    let fault = run(&subject, case).unwrap_err();
    assert!(!fault.is_empty());
    assert_eq!(run(&subject, "answers_whole"), Ok(()), "and blames nothing else");
}

// spec: P-5
#[test]
fn the_suite_finds_calls_that_are_withheld() {
    let fault = run(&subject(Sin::Withholds), "tells_what_is_answered").unwrap_err();
    // The smallest answer with a call, not the first one that was tried.
    assert!(fault.contains("ToolCall") && fault.len() < 600, "{fault}");
}

fn subject(sin: Sin) -> Subject {
    Subject::new(move |base| {
        let builder = OpenAi::builder(ProviderId::new("openai").unwrap());
        Arc::new(Sinner { inner: builder.base_url(format!("{base}/v1")).build().unwrap(), sin })
    })
}

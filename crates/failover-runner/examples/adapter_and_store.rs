//! Provider adapters, credentials, a store and a session: what a gateway is made of.
//!
//! `cargo run -p failover-runner --example adapter_and_store`

use async_trait::async_trait;
use failover_auth::UserPinMode;
use failover_chain::{ChainConfig, Fallbacks, Reference, resolve};
use failover_classify::{Classifier, ProviderRules, RuleTable, Surface, standard_tables};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatReply, ChatRequest, FinishReason, Part, ProviderAdapter, Reply,
};
use failover_runner::plan::{Candidate, RunSpec};
use failover_runner::session::{preference, select};
use failover_runner::{Adapters, CredentialSource, Runner, StoredSession, SystemClock};
use failover_session::{ProbePolicy, SessionKey, Sessions};
use failover_store::{KeyValue, MemoryStore};
use failover_types::{
    AgentId, BoxFuture, Clock, ModelRef, ProfileId, ProviderId, ResolvedCredential, SessionId, Timestamp,
};
use std::sync::Arc;

/// An adapter without a network: it fails or it greets.
struct Scripted {
    id: ProviderId,
    down: bool,
    rules: RuleTable,
}

#[async_trait]
impl ProviderAdapter for Scripted {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn rules(&self) -> &dyn ProviderRules {
        &self.rules
    }

    async fn open(&self, _: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        if self.down {
            let failure = AttemptFailure::new(self.id.clone(), Surface::Http).with_status(529);
            return Err(failure.with_body(br#"{"type":"error","error":{"type":"overloaded_error"}}"#));
        }
        let text = format!("hello from {}", scope.model);
        Ok(Reply::Complete(ChatReply::new(vec![Part::Text(text)], FinishReason::Stop)))
    }
}

/// Servers that want no key.
struct NoKeys;

impl CredentialSource for NoKeys {
    fn resolve<'a>(
        &'a self,
        _: &'a ProfileId,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<ResolvedCredential>, AttemptFailure>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let store: Arc<dyn KeyValue> = Arc::new(MemoryStore::new(Arc::clone(&clock)));
    let sessions = Sessions::new(Arc::clone(&store));
    let runner = Runner::builder(Classifier::standard()?)
        .clock(Arc::clone(&clock))
        .store(Arc::clone(&store), AgentId::main())
        .build();
    let mut adapters = Adapters::new(Arc::new(NoKeys), Arc::clone(&clock));
    for (id, down) in [("anthropic", true), ("openai", false)] {
        let rules = standard_tables().into_iter().next().ok_or("no rules")?;
        adapters = adapters.with(Arc::new(Scripted { id: ProviderId::new(id)?, down, rules }));
    }
    let mut config = ChainConfig::default();
    config.defaults.primary = Some(Reference::new("anthropic/claude-sonnet-4-5"));
    config.defaults.fallbacks = Fallbacks::list(["openai/gpt-5"]);

    for turn in 1..=2 {
        let run = runner.next_run()?;
        let key = SessionKey::new(AgentId::main(), SessionId::new("demo")?);
        let now = clock.now();
        let session =
            StoredSession::open(sessions.clone(), key.clone(), run.clone(), UserPinMode::Strict, now).await?;
        // The same entry says which model the run begins with.
        let wants = preference(session.entry(), UserPinMode::Strict);
        let free_at = |model: &ModelRef| runner.health().free_at(model, &wants, now);
        let configured = config.selection()?;
        let (selection, _probe) =
            select(session.entry(), Some(&configured), free_at, &ProbePolicy::default(), now);
        let chain = resolve(selection.as_ref().unwrap_or(&configured), &config, None);
        let spec = RunSpec::new(run, Candidate::of_chain(&chain)).with_policy(runner.policy().clone());
        let session = Arc::new(session.for_spec(&spec));
        let request = ChatRequest::prompt("hello");
        let answer = runner.start(spec).session(session).chat(&adapters, &request).await?;
        println!("turn {turn}: {} answered", answer.model);
        for notice in &answer.notices {
            println!("  {notice}");
        }
    }
    runner.flush().await;
    Ok(())
}

//! An adapter from outside, added with one call: nothing of the workspace knows its name.

use crate::common::T0;
use async_trait::async_trait;
use failover::classify::{Family, ProviderRules, Rule, RuleTable, Surface, Tier};
use failover::config::load_text;
use failover::provider::{
    AttemptFailure, AttemptScope, ChatReply, ChatRequest, FinishReason, Part, ProviderAdapter, Reply,
};
use failover::runner::plan::What;
use failover::types::{FailoverReason, ProviderId};
use failover::{Engine, Setup, Turn};
use failover_testkit::ManualClock;
use std::sync::Arc;

/// What only this provider says.
const RULES: RuleTable = RuleTable::new(
    "acme",
    &[Rule::new("acme/tank", Tier::Code, Family::Billing, FailoverReason::Billing)
        .providers(&["acme"])
        .codes(&["TANK_EMPTY"])],
);

/// A provider that has run dry for one of its models.
struct Acme(ProviderId);

#[async_trait]
impl ProviderAdapter for Acme {
    fn id(&self) -> &ProviderId {
        &self.0
    }

    fn rules(&self) -> &dyn ProviderRules {
        &RULES
    }

    async fn open(&self, _: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        if scope.model.model() == "dry" {
            let failure = AttemptFailure::new(self.0.clone(), Surface::Http).with_status(418);
            return Err(failure.with_body(br#"{"error":{"code":"TANK_EMPTY","message":"refill, please"}}"#));
        }
        let key = scope.credential.map(|credential| credential.secret.expose().to_owned());
        let text = format!("wet, with {}", key.unwrap_or_default());
        Ok(Reply::Complete(ChatReply::new(vec![Part::Text(text)], FinishReason::Stop)))
    }
}

// spec: P-1, C-16
#[tokio::test]
async fn an_adapter_from_outside_brings_its_protocol_and_its_rules() {
    let config = r#"{
        agents: { defaults: { model: { primary: "acme/dry", fallbacks: ["acme2/wet"] } } },
        models: { providers: { acme: { apiKey: { source: "env", id: "ACME" } } } },
    }"#;
    let builder = Engine::builder(load_text("failover.json5", config).unwrap())
        .clock(Arc::new(ManualClock::new(T0)))
        .environment(Arc::new(|name| Some(format!("key-{name}"))))
        .adapter(Arc::new(Acme(ProviderId::new("acme").unwrap())))
        .adapter(Arc::new(Acme(ProviderId::new("acme2").unwrap())));
    let Setup { engine, warnings, .. } = builder.build().await.unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    let answer = engine.chat(&Turn::new(ChatRequest::prompt("hello"))).await.unwrap();
    assert_eq!(answer.model.to_string(), "acme2/wet");
    let failed = answer.trail.iter().find_map(|visit| match &visit.what {
        What::Attempt(attempt) => attempt.error.clone(),
        What::Skip(_) => None,
    });
    let error = failed.unwrap();
    assert_eq!((error.reason, error.rule.as_deref()), (FailoverReason::Billing, Some("acme/tank")));
    let Reply::Complete(reply) = answer.value else { unreachable!() };
    assert_eq!(reply.text(), "wet, with key-ACME2_API_KEY");
}

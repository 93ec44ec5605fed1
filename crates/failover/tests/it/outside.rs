//! An adapter from outside, added with one call: nothing of the workspace knows its name.

use crate::common::T0;
use async_trait::async_trait;
use failover::classify::{Family, ProviderRules, Rule, RuleTable, Surface, Tier};
use failover::config::load_text;
use failover::provider::{
    AttemptFailure, AttemptScope, ChatReply, ChatRequest, FinishReason, Part, ProviderAdapter, Reply,
};
use failover::runner::plan::What;
use failover::types::{FailoverReason, ModelSelector, ProviderId};
use failover::{Engine, Setup, Turn};
use failover_testkit::ManualClock;
use failover_testkit::upstream::{ChatCompletions, Dialect, Messages, OllamaChat, Upstream};
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

/// Known providers, and one of the operator's own, by nothing but config: each speaks its own protocol.
// spec: P-7
#[cfg(all(feature = "provider-openai", feature = "provider-anthropic", feature = "provider-ollama"))]
#[tokio::test]
async fn config_leads_to_the_adapter_of_each_protocol() {
    let clock = Arc::new(ManualClock::new(T0));
    let dialects: Vec<Box<dyn Dialect>> = vec![
        Box::new(ChatCompletions::default()),
        Box::new(Messages::default()),
        Box::new(OllamaChat::default()),
    ];
    let upstream = Upstream::start_with(Arc::<ManualClock>::clone(&clock) as _, dialects).await.unwrap();
    let at = format!("http://{}", upstream.address());
    // Written as the vendors' own clients want it: with a version, without one, with one that is not there.
    let config = format!(
        r#"{{
        agents: {{ defaults: {{ model: {{ primary: "openai/m" }} }} }},
        models: {{ providers: {{
            openai: {{ baseUrl: "{at}/v1" }},
            anthropic: {{ baseUrl: "{at}" }},
            ollama: {{ baseUrl: "{at}/v1" }},
            mine: {{ baseUrl: "{at}/anthropic/v1", api: "anthropic-messages" }},
        }} }},
    }}"#
    );
    let builder = Engine::builder(load_text("failover.json5", &config).unwrap())
        .clock(clock)
        .environment(Arc::new(|name| name.ends_with("_API_KEY").then(|| format!("key-{name}"))));
    // Not in the config at all, and never asked: there is no server.
    let Setup { engine, warnings, .. } =
        builder.provider(ProviderId::new("groq").unwrap()).build().await.unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    for (model, path) in [
        ("openai/m", "/v1/chat/completions"),
        ("anthropic/m", "/v1/messages"),
        ("ollama/m", "/api/chat"),
        ("mine/m", "/anthropic/v1/messages"),
    ] {
        let selector = ModelSelector::new(model.parse().unwrap(), None);
        let answer =
            engine.chat(&Turn::new(ChatRequest::prompt("hello")).with_model(selector)).await.unwrap();
        let Reply::Complete(reply) = answer.value else { unreachable!() };
        assert_eq!((answer.model.to_string().as_str(), reply.text().as_str()), (model, "this is m"));
        assert_eq!(upstream.log().last().unwrap().target, path);
    }
}

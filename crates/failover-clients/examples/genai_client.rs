//! A team that keeps genai as its client, and lets failover choose the model and the key of each attempt.
//!
//! `cargo run --manifest-path crates/failover-clients/Cargo.toml --features genai --example genai_client`
//!
//! Two servers on this machine stand in for the providers. At the first, one key has reached its limit and the other
//! has no credit; the second answers.

use failover_auth::{Profile, UsageStats};
use failover_classify::Classifier;
use failover_clients::ClientError;
use failover_runner::health::Roster;
use failover_runner::plan::Candidate;
use failover_runner::{Attempt, Runner, SystemClock};
use failover_testkit::upstream::{On, Respond, Step, Upstream};
use failover_types::{Credential, ProfileId, ProviderId, Secret, SecretSource};
use genai::adapter::AdapterKind;
use genai::chat::ChatRequest;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

/// One attempt: the model and the key of failover's choice, and genai's own error.
async fn ask(
    addresses: &HashMap<&str, String>,
    attempt: Attempt,
) -> Result<String, ClientError<genai::Error>> {
    let base = addresses.get(attempt.model.provider().as_str()).cloned().unwrap_or_default();
    // A real program looks its key up here.
    let key = format!("key-of-{}", attempt.profile);
    let target = move |asked: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
        let model = ModelIden::new(AdapterKind::OpenAI, asked.model.model_name);
        let (endpoint, auth) = (Endpoint::from_owned(base.clone()), AuthData::from_single(key.clone()));
        Ok(ServiceTarget { endpoint, auth, model })
    };
    let client = Client::builder().with_service_target_resolver_fn(target).build()?;
    let answer = client.exec_chat(attempt.model.model(), ChatRequest::from_user("hello"), None).await?;
    Ok(answer.into_first_text().unwrap_or_default())
}

/// Two keys for the first provider, in this order.
fn keys() -> Result<Roster, Box<dyn Error>> {
    let first = ProviderId::new("first")?;
    let mut roster = Roster::default();
    for id in ["first:work", "first:private"] {
        let id: ProfileId = id.parse()?;
        let key = SecretSource::Literal(Secret::new(format!("key-of-{id}")));
        let credential = Credential::ApiKey { provider: first.clone(), key };
        roster.profiles.insert(Profile::new(id.clone(), &credential, UsageStats::default()));
        roster.config_order.entry(first.clone()).or_default().push(id);
    }
    Ok(roster)
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example")]
async fn main() -> Result<(), Box<dyn Error>> {
    let first = Upstream::start(Arc::new(SystemClock::new())).await?;
    let second = Upstream::start(Arc::new(SystemClock::new())).await?;
    let limit = Respond::new(429).header("content-type", "application/json").header("retry-after", "120");
    let limit = limit.body(r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#);
    let broke = r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#;
    first.script(On::model("large").with_key("key-of-first:work"), [limit.into()]);
    first.script(On::model("large").with_key("key-of-first:private"), [Step::json(429, broke)]);
    second.script(On::any(), [Step::text("hello from the second")]);
    let base = |upstream: &Upstream| format!("{}/", upstream.base_url());
    let addresses = HashMap::from([("first", base(&first)), ("second", base(&second))]);

    let mut chain = Vec::new();
    for model in ["first/large", "second/small"] {
        chain.push(Candidate::new(model.parse()?));
    }
    let runner = Runner::builder(Classifier::standard()?).roster(keys()?).build();
    let answer = runner.run(chain, |attempt| ask(&addresses, attempt)).await?;
    println!("{}", answer.value);
    for visit in &answer.trail {
        println!("  {visit}");
    }
    Ok(())
}

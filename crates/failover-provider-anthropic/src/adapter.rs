//! The adapter: one attempt over HTTP.

use crate::decode::Decoder;
use crate::map::map;
use async_trait::async_trait;
use failover_classify::{ProviderRules, RuleTable};
use failover_http::{Exchange, Target, TargetConfig, TargetError, receive};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Origin, ProviderAdapter, Reply, ReplyHead,
};
use failover_types::{CredentialKind, ProviderId};
use http::header::{HeaderName, HeaderValue};

/// Where the API lives, its version included.
pub const BASE_URL: &str = "https://api.anthropic.com/v1";
/// The bound on generated tokens where the request has none: the API demands one, and no model of it takes less.
pub const DEFAULT_MAX_TOKENS: u64 = 4096;

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// The codes and wordings of this API stand in the classifier's standard tables.
const RULES: RuleTable = RuleTable::new("anthropic-messages", &[]);

/// The Messages API of one provider.
#[derive(Debug)]
pub struct Anthropic {
    target: Target,
}

impl Anthropic {
    /// The adapter of a provider.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the address or the headers.
    pub fn new(id: ProviderId, config: TargetConfig) -> Result<Self, TargetError> {
        Ok(Self { target: config.build(id, BASE_URL)? })
    }
}

#[async_trait]
impl ProviderAdapter for Anthropic {
    fn id(&self) -> &ProviderId {
        self.target.id()
    }

    fn rules(&self) -> &dyn ProviderRules {
        &RULES
    }

    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        let mapped = map(request, &scope).map_err(|error| self.target.local(&error.to_string()))?;
        let accept = if request.stream { "text/event-stream" } else { "application/json" };
        let mut http = self.target.post("/messages", mapped.body, accept, &scope)?;
        let headers = http.headers_mut();
        headers.entry(VERSION).or_insert(HeaderValue::from_static("2023-06-01"));
        if let Some(credential) = scope.credential {
            let key = credential.kind == CredentialKind::ApiKey;
            if !key {
                // Tokens of a subscription are refused without it.
                headers.entry(BETA).or_insert(HeaderValue::from_static("oauth-2025-04-20"));
            }
            self.target.authorize(headers, key.then_some("x-api-key"), credential.secret.expose())?;
        }
        let mut exchange = Exchange::new(self.id(), &scope);
        let status = exchange.send(self.target.transport(), http).await?;
        let mut head = ReplyHead::default();
        head.losses = mapped.losses;
        let origin = Origin::new(self.id().clone()).with_model(scope.model.model());
        receive(exchange, self.id(), status, Decoder::new(origin), head, request.stream).await
    }
}

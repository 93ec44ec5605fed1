//! The adapter: one attempt over HTTP.

use crate::decode::Decoder;
use crate::limits::Limits;
use crate::longest::longest;
use crate::look::Glancer;
use crate::map::{TOOL_IDS, map, takes_shown};
use async_trait::async_trait;
use failover_classify::{ProviderRules, RuleTable};
use failover_http::{
    Exchange, Passing, Target, TargetConfig, TargetError, add_dialect_headers, add_features, receive,
    receive_native,
};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Dialect, LimitProbe, Origin, Part, ProviderAdapter, Reply,
    ReplyHead,
};
use failover_types::{CredentialKind, ProviderId};
use http::header::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the API lives, its version included.
pub const BASE_URL: &str = "https://api.anthropic.com/v1";

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// What callers speak who are passed through.
const DIALECT: Dialect = Dialect::AnthropicMessages;

/// The codes and wordings of this API stand in the classifier's standard tables.
const RULES: RuleTable = RuleTable::new("anthropic-messages", &[]);

/// The Messages API of one provider.
#[derive(Debug)]
pub struct Anthropic {
    target: Arc<Target>,
    /// Longest answers that the operator knows, by model.
    longest: BTreeMap<String, u64>,
}

impl Anthropic {
    /// The adapter of a provider.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the address or the headers.
    pub fn new(id: ProviderId, config: TargetConfig) -> Result<Self, TargetError> {
        Ok(Self { target: Arc::new(config.build(id, BASE_URL)?), longest: BTreeMap::new() })
    }

    /// Says how many tokens models may generate, by name, where a request does not: the API demands a bound. Of Claude's models
    /// it is known.
    #[must_use]
    pub fn with_longest(mut self, tokens: impl IntoIterator<Item = (String, u64)>) -> Self {
        self.longest.extend(tokens);
        self
    }

    fn longest(&self, model: &str, request: &ChatRequest) -> u64 {
        self.longest.get(model).copied().unwrap_or_else(|| longest(model, request))
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

    fn dialect(&self) -> Option<Dialect> {
        Some(DIALECT)
    }

    fn takes(&self, shown: &Part) -> bool {
        takes_shown(shown)
    }

    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        let native = request.native.as_ref().filter(|native| native.dialect == DIALECT);
        // Passed through where nothing in it belongs elsewhere.
        let native = native.filter(|_| request.passes_unchanged(DIALECT, &scope, TOOL_IDS));
        let mut head = ReplyHead::default();
        head.passed = native.is_some();
        let body = match native {
            Some(native) => native.for_model(scope.model.model()).map_err(|error| error.to_string()),
            None => map(request, &scope, self.longest(scope.model.model(), request))
                .map_err(|error| error.to_string())
                .map(|mapped| {
                    head.losses = mapped.losses;
                    mapped.body.into()
                }),
        };
        let body = body.map_err(|error| self.target.local(&error))?;
        let accept = if request.stream { "text/event-stream" } else { "application/json" };
        let mut http = self.target.post("/messages", body, accept, &scope)?;
        let headers = http.headers_mut();
        add_dialect_headers(headers, request, DIALECT);
        headers.entry(VERSION).or_insert(HeaderValue::from_static("2023-06-01"));
        if let Some(credential) = scope.credential {
            let key = credential.kind == CredentialKind::ApiKey;
            if !key {
                // Tokens of a subscription are refused without it.
                add_features(headers, &BETA, "oauth-2025-04-20");
            }
            self.target.authorize(headers, key.then_some("x-api-key"), credential.secret.expose())?;
        }
        let mut exchange = Exchange::new(self.id(), &scope);
        let status = exchange.send(self.target.transport(), http).await?;
        let decoder = Decoder::new(Origin::new(self.id().clone()).with_model(scope.model.model()));
        // What somebody else signed must not reach the caller as if it were by whom it asked: it would be sent there.
        if native.is_some() && scope.asked {
            let passing = Passing { dialect: DIALECT, head, streamed: request.stream };
            return receive_native(exchange, self.id(), status, decoder, Glancer::default(), passing).await;
        }
        receive(exchange, self.id(), status, decoder, head, request.stream).await
    }

    fn limit_probe(&self) -> Option<Arc<dyn LimitProbe>> {
        Some(Arc::new(Limits::new(Arc::clone(&self.target))))
    }
}

//! The adapter: one attempt over HTTP.

use crate::decode::Decoder;
use crate::map::{map, takes_shown};
use async_trait::async_trait;
use failover_classify::{ProviderRules, RuleTable};
use failover_http::{Exchange, Target, TargetConfig, TargetError, receive};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Origin, Part, ProviderAdapter, Reply, ReplyHead,
};
use failover_types::ProviderId;

/// Where a server on this machine listens.
pub const BASE_URL: &str = "http://127.0.0.1:11434";

/// The wordings of this server stand in the classifier's standard tables.
const RULES: RuleTable = RuleTable::new("ollama-chat", &[]);

/// The chat API of one server.
#[derive(Debug)]
pub struct Ollama {
    target: Target,
}

impl Ollama {
    /// The adapter of a provider. The base URL is without `/api`.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the address or the headers.
    pub fn new(id: ProviderId, config: TargetConfig) -> Result<Self, TargetError> {
        Ok(Self { target: config.build(id, BASE_URL)? })
    }
}

#[async_trait]
impl ProviderAdapter for Ollama {
    fn id(&self) -> &ProviderId {
        self.target.id()
    }

    fn rules(&self) -> &dyn ProviderRules {
        &RULES
    }

    fn takes(&self, shown: &Part) -> bool {
        takes_shown(shown)
    }

    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        let mapped = map(request, &scope).map_err(|error| self.target.local(&error.to_string()))?;
        let accept = if request.stream { "application/x-ndjson" } else { "application/json" };
        let mut http = self.target.post("/api/chat", mapped.body, accept, &scope)?;
        if let Some(credential) = scope.credential {
            self.target.authorize(http.headers_mut(), None, credential.secret.expose())?;
        }
        let mut exchange = Exchange::new(self.id(), &scope);
        let status = exchange.send(self.target.transport(), http).await?;
        let mut head = ReplyHead::default();
        head.losses = mapped.losses;
        let origin = Origin::new(self.id().clone()).with_model(scope.model.model());
        receive(exchange, self.id(), status, Decoder::new(origin), head, request.stream).await
    }
}

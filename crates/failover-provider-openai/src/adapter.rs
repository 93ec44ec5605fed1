//! The adapter: one attempt over HTTP.

use crate::decode::Decoder;
use crate::facts::{Auth, FACTS, Facts, facts_for};
use crate::look::Glancer;
use crate::map::{map, takes, takes_shown};
use async_trait::async_trait;
use bytes::Bytes;
use failover_classify::{ProviderRules, RuleTable};
use failover_http::{
    Exchange, Passing, Target, TargetConfig, TargetError, Transport, add_dialect_headers, receive,
    receive_native,
};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Dialect, Mapped, Native, Origin, Part, ProviderAdapter, Reply,
    ReplyHead,
};
use failover_types::{CredentialKind, ProviderId};
use http::header::{HeaderName, HeaderValue};
use std::fmt;
use std::sync::Arc;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What callers speak who are passed through.
pub(crate) const DIALECT: Dialect = Dialect::OpenAiChat;

/// The codes and wordings of these servers stand in the classifier's standard tables, by provider.
const RULES: RuleTable = RuleTable::new("openai-compatible", &[]);

/// Why an adapter could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The provider has no address of its own.
    #[error("provider {provider} needs a base URL: every installation has its own")]
    NoBaseUrl {
        /// The provider.
        provider: ProviderId,
    },
    /// A dialect row that does not exist.
    #[error("there are no facts named {name:?}")]
    NoFacts {
        /// The name as given.
        name: String,
    },
    /// The address, a header or the transport cannot be used.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Chat completions of one provider.
pub struct OpenAi {
    facts: &'static Facts,
    target: Target,
}

/// Builds an [`OpenAi`].
#[derive(Debug)]
#[must_use]
pub struct Builder {
    id: ProviderId,
    facts: Option<String>,
    target: TargetConfig,
}

impl Builder {
    /// Where the API lives, up to and without `/chat/completions`. A query is kept.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.target = self.target.base_url(url);
        self
    }

    /// Uses the facts of another row: `vllm` for a provider that is called otherwise.
    pub fn facts(mut self, name: impl Into<String>) -> Self {
        self.facts = Some(name.into());
        self
    }

    /// Sends a header with every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.target = self.target.header(name, value);
        self
    }

    /// Uses this transport instead of one of its own.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.target = self.target.transport(transport);
        self
    }

    /// Checks everything and builds the adapter.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] says what is wrong.
    pub fn build(self) -> Result<OpenAi, ConfigError> {
        let facts = match self.facts {
            None => facts_for(&self.id),
            Some(name) => FACTS.iter().find(|row| row.id == name).ok_or(ConfigError::NoFacts { name })?,
        };
        let Some(base) = facts.base_url.or(self.target.has_base_url().then_some("")) else {
            return Err(ConfigError::NoBaseUrl { provider: self.id });
        };
        Ok(OpenAi { facts, target: self.target.build(self.id, base)? })
    }
}

impl OpenAi {
    /// Starts building the adapter of a provider.
    pub fn builder(id: ProviderId) -> Builder {
        Builder { id, facts: None, target: TargetConfig::new() }
    }

    /// The adapter of a provider, with the facts of its own row.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] says what is wrong.
    pub fn new(id: ProviderId, target: TargetConfig) -> Result<Self, ConfigError> {
        Builder { id, facts: None, target }.build()
    }

    fn request(
        &self,
        body: Bytes,
        asked: &ChatRequest,
        scope: &AttemptScope<'_>,
    ) -> Result<http::Request<Bytes>, AttemptFailure> {
        let accept = if asked.stream { "text/event-stream" } else { "application/json" };
        let mut request = self.target.post("/chat/completions", body, accept, scope)?;
        let headers = request.headers_mut();
        add_dialect_headers(headers, asked, DIALECT);
        for (name, value) in self.facts.headers {
            headers.entry(*name).or_insert(HeaderValue::from_static(value));
        }
        if let Some(key) = scope.idempotency_key {
            let key = HeaderValue::try_from(key).map_err(|_| {
                self.target.local("the idempotency key has characters that no header may have")
            })?;
            headers.entry(IDEMPOTENCY_KEY).or_insert(key);
        }
        if let Some(credential) = scope.credential {
            let own = match self.facts.auth {
                Auth::Header(name) if credential.kind == CredentialKind::ApiKey => Some(name),
                Auth::Header(_) | Auth::Bearer => None,
            };
            self.target.authorize(headers, own, credential.secret.expose())?;
        }
        Ok(request)
    }

    /// What goes out: the caller's own words where it speaks the dialect and nothing in them is foreign here, else the
    /// neutral request, mapped.
    fn outgoing(&self, request: &ChatRequest, scope: &AttemptScope<'_>) -> Result<Outgoing, AttemptFailure> {
        let local = |error: &dyn fmt::Display| self.target.local(&error.to_string());
        let native = request.native.as_ref().filter(|native| native.dialect == DIALECT);
        let passes = |_: &&Native| {
            request.passes_unchanged(DIALECT, scope, self.facts.tool_ids) && takes(self.facts, request)
        };
        if let Some(native) = native.filter(passes) {
            return self.passed(native, request.stream, scope).map_err(|error| local(&error));
        }
        let Mapped { body, losses, .. } = map(request, scope, self.facts).map_err(|error| local(&error))?;
        let mut head = ReplyHead::default();
        head.losses = losses;
        Ok(Outgoing { body: body.into(), head, look: None })
    }

    fn passed(
        &self,
        native: &Native,
        streamed: bool,
        scope: &AttemptScope<'_>,
    ) -> Result<Outgoing, failover_provider::NativeError> {
        let model = scope.model.model();
        let (body, asked) = if streamed && self.facts.ask_for_usage {
            native.for_model_with_usage(model)?
        } else {
            (native.for_model(model)?, false)
        };
        let mut head = ReplyHead::default();
        head.passed = true;
        Ok(Outgoing { body, head, look: Some(Glancer::new(asked)) })
    }
}

struct Outgoing {
    body: Bytes,
    head: ReplyHead,
    /// How the answer is read where the request is passed through.
    look: Option<Glancer>,
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("target", &self.target).field("facts", &self.facts.id).finish()
    }
}

#[async_trait]
impl ProviderAdapter for OpenAi {
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
        takes_shown(self.facts, shown)
    }

    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        let Outgoing { body, head, look } = self.outgoing(request, &scope)?;
        let http = self.request(body, request, &scope)?;
        let mut exchange = Exchange::new(self.id(), &scope);
        let status = exchange.send(self.target.transport(), http).await?;
        let origin = Origin::new(self.id().clone()).with_model(scope.model.model());
        let decoder = Decoder::new(origin, self.facts);
        match look {
            None => receive(exchange, self.id(), status, decoder, head, request.stream).await,
            Some(look) => {
                let passing = Passing { dialect: DIALECT, head, streamed: request.stream };
                receive_native(exchange, self.id(), status, decoder, look, passing).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_errors() {
        let builder = |id: &str| OpenAi::builder(ProviderId::new(id).unwrap());
        assert!(matches!(builder("azure-openai").build(), Err(ConfigError::NoBaseUrl { .. })));
        assert!(matches!(builder("openai").facts("nobody").build(), Err(ConfigError::NoFacts { .. })));
        assert!(matches!(builder("openai").header("a b", "c").build(), Err(ConfigError::Target(_))));
        assert!(matches!(builder("mine").base_url("ftp://x").build(), Err(ConfigError::Target(_))));
        assert!(builder("my-own").base_url("http://127.0.0.1:1/v1").facts("vllm").build().is_ok());
    }
}

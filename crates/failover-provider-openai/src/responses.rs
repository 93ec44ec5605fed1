//! OpenAI's Responses API, as a second adapter.

mod decode;
mod look;
mod map;
mod wire;

use crate::facts::{Auth, Facts, facts_for};
use async_trait::async_trait;
use decode::Decoder;
use failover_classify::{ProviderRules, RuleTable};
use failover_http::{
    Exchange, Passing, Target, TargetConfig, TargetError, add_dialect_headers, receive, receive_native,
};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Dialect, Origin, Part, ProviderAdapter, Reply, ReplyHead,
};
use failover_types::{CredentialKind, ProviderId};
use http::header::{HeaderName, HeaderValue};
use look::Glancer;
use map::{TOOL_IDS, map};

const BASE_URL: &str = "https://api.openai.com/v1";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What callers speak who are passed through.
const DIALECT: Dialect = Dialect::OpenAiResponses;

/// The codes and wordings of this API stand in the classifier's standard tables.
const RULES: RuleTable = RuleTable::new("openai-responses", &[]);

/// The Responses API of one provider.
///
/// Reasoning comes back encrypted and goes home whole: to the same provider, model and credential. Nothing is stored
/// at the provider unless the request says so itself (`store` as an opaque field).
#[derive(Debug)]
pub struct Responses {
    target: Target,
    facts: &'static Facts,
}

impl Responses {
    /// The adapter of a provider. The base URL ends before `/responses`.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the address or the headers.
    pub fn new(id: ProviderId, config: TargetConfig) -> Result<Self, TargetError> {
        let facts = facts_for(&id);
        Ok(Self { target: config.build(id, facts.base_url.unwrap_or(BASE_URL))?, facts })
    }
}

#[async_trait]
impl ProviderAdapter for Responses {
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
        // It hears nothing (<https://platform.openai.com/docs/guides/audio>).
        !matches!(shown, Part::File(file) if file.is_audio())
    }

    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        let native = request.native.as_ref().filter(|native| native.dialect == DIALECT);
        // Passed through where nothing in it belongs elsewhere.
        let native = native.filter(|_| request.passes_unchanged(DIALECT, &scope, TOOL_IDS));
        let mut head = ReplyHead::default();
        head.passed = native.is_some();
        let body = match native {
            Some(native) => native.for_model(scope.model.model()).map_err(|error| error.to_string()),
            None => map(request, &scope).map_err(|error| error.to_string()).map(|mapped| {
                head.losses = mapped.losses;
                mapped.body.into()
            }),
        };
        let body = body.map_err(|error| self.target.local(&error))?;
        let accept = if request.stream { "text/event-stream" } else { "application/json" };
        let mut http = self.target.post("/responses", body, accept, &scope)?;
        add_dialect_headers(http.headers_mut(), request, DIALECT);
        if let Some(key) = scope.idempotency_key {
            let key = HeaderValue::try_from(key).map_err(|_| {
                self.target.local("the idempotency key has characters that no header may have")
            })?;
            http.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        let mut origin = Origin::new(self.id().clone()).with_model(scope.model.model());
        if let Some(credential) = scope.credential {
            // What is encrypted for one organization cannot be read by another.
            origin = origin.with_profile(credential.profile.clone());
            let header = match (self.facts.auth, credential.kind) {
                (Auth::Header(name), CredentialKind::ApiKey) => Some(name),
                _ => None,
            };
            self.target.authorize(http.headers_mut(), header, credential.secret.expose())?;
        }
        let mut exchange = Exchange::new(self.id(), &scope);
        let status = exchange.send(self.target.transport(), http).await?;
        let decoder = Decoder::new(origin);
        // What somebody else encrypted must not reach the caller as if it were by whom it asked: it would be sent there.
        if native.is_some() && scope.asked {
            let passing = Passing { dialect: DIALECT, head, streamed: request.stream };
            return receive_native(exchange, self.id(), status, decoder, Glancer::default(), passing).await;
        }
        receive(exchange, self.id(), status, decoder, head, request.stream).await
    }
}

//! The adapter: one attempt over HTTP.

use crate::complete::{self, Unusable};
use crate::decode::Decoder;
use crate::facts::{Auth, FACTS, Facts, facts_for};
use crate::map::map;
use crate::stream::{Streaming, failed_finish};
use async_trait::async_trait;
use bytes::Bytes;
use failover_classify::{ProviderRules, RuleTable, Surface};
use failover_http::{BuildError, Exchange, HyperTransport, Transport};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, FailureCause, Origin, Progress, ProviderAdapter, Reply,
    ReplyHead, ReplyStream,
};
use failover_types::{CredentialKind, ProviderId, ResolvedCredential};
use futures_util::{StreamExt, stream};
use http::Uri;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use std::fmt;
use std::sync::Arc;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("failover/", env!("CARGO_PKG_VERSION")));
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// White space before an answer, most of it: servers send some to keep a connection alive.
const MAX_PADDING_BYTES: usize = 256 * 1024;

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
    /// The base URL is none.
    #[error("{url:?} is not an http or https URL")]
    BadBaseUrl {
        /// The URL as given.
        url: String,
    },
    /// A header that HTTP does not allow.
    #[error("header {name:?} has a name or a value that HTTP does not allow")]
    BadHeader {
        /// The header's name.
        name: String,
    },
    /// A dialect row that does not exist.
    #[error("there are no facts named {name:?}")]
    NoFacts {
        /// The name as given.
        name: String,
    },
    /// No transport.
    #[error(transparent)]
    Transport(#[from] BuildError),
}

/// Chat completions of one provider.
pub struct OpenAi {
    id: ProviderId,
    facts: &'static Facts,
    endpoint: Uri,
    headers: HeaderMap,
    transport: Arc<dyn Transport>,
}

/// Builds an [`OpenAi`].
#[must_use]
pub struct Builder {
    id: ProviderId,
    facts: Option<String>,
    base_url: Option<String>,
    headers: Vec<(String, String)>,
    transport: Option<Arc<dyn Transport>>,
}

impl Builder {
    /// Where the API lives, up to and without `/chat/completions`. A query is kept.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Uses the facts of another row: `vllm` for a provider that is called otherwise.
    pub fn facts(mut self, name: impl Into<String>) -> Self {
        self.facts = Some(name.into());
        self
    }

    /// Sends a header with every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Uses this transport instead of one of its own.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
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
        let base = match (&self.base_url, facts.base_url) {
            (Some(url), _) => url.as_str(),
            (None, Some(url)) => url,
            (None, None) => return Err(ConfigError::NoBaseUrl { provider: self.id }),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            let parsed = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value).ok());
            let (key, value) = parsed.ok_or(ConfigError::BadHeader { name })?;
            headers.insert(key, value);
        }
        let transport = match self.transport {
            Some(transport) => transport,
            None => Arc::new(HyperTransport::new()?),
        };
        Ok(OpenAi { endpoint: endpoint(base)?, id: self.id, facts, headers, transport })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("id", &self.id)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

fn endpoint(base: &str) -> Result<Uri, ConfigError> {
    let bad = || ConfigError::BadBaseUrl { url: base.to_owned() };
    let (path, query) = base.split_once('?').map_or((base, None), |(path, query)| (path, Some(query)));
    let mut url = format!("{}/chat/completions", path.trim_end_matches('/'));
    if let Some(query) = query {
        url.push('?');
        url.push_str(query);
    }
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    if known && uri.host().is_some_and(|host| !host.is_empty()) { Ok(uri) } else { Err(bad()) }
}

impl OpenAi {
    /// Starts building the adapter of a provider.
    pub fn builder(id: ProviderId) -> Builder {
        Builder { id, facts: None, base_url: None, headers: Vec::new(), transport: None }
    }

    /// A failure of this machine: the request never left.
    fn local(&self, what: &str) -> AttemptFailure {
        AttemptFailure::new(self.id.clone(), Surface::Local).with_causes(vec![FailureCause::new(what)])
    }

    fn request(
        &self,
        body: String,
        streamed: bool,
        scope: &AttemptScope<'_>,
    ) -> Result<http::Request<Bytes>, AttemptFailure> {
        let enterprise = scope.credential.and_then(|credential| credential.enterprise_url.as_deref());
        let uri = match enterprise {
            Some(url) => endpoint(url).map_err(|error| self.local(&error.to_string()))?,
            None => self.endpoint.clone(),
        };
        let accept = if streamed { "text/event-stream" } else { "application/json" };
        let mut request = http::Request::new(Bytes::from(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(USER_AGENT, AGENT);
        if let Some(key) = scope.idempotency_key {
            let key = HeaderValue::try_from(key)
                .map_err(|_| self.local("the idempotency key has characters that no header may have"))?;
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        headers.extend(self.headers.clone());
        if let Some(credential) = scope.credential {
            let (name, value) = self
                .auth_header(credential)
                .ok_or_else(|| self.local("the credential has characters that no header may have"))?;
            headers.insert(name, value);
        }
        Ok(request)
    }

    fn auth_header(&self, credential: &ResolvedCredential) -> Option<(HeaderName, HeaderValue)> {
        let secret = credential.secret.expose();
        let (name, value) = match (self.facts.auth, credential.kind) {
            (Auth::Header(name), CredentialKind::ApiKey) => {
                (HeaderName::from_static(name), HeaderValue::try_from(secret).ok()?)
            }
            _ => (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {secret}")).ok()?),
        };
        let mut value = value;
        value.set_sensitive(true);
        Some((name, value))
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("id", &self.id)
            .field("facts", &self.facts.id)
            .field("host", &self.endpoint.host())
            .finish_non_exhaustive()
    }
}

/// What a body is, by its first bytes: servers label event streams as JSON, and pages as anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    Undecided,
    Json,
    Events,
    Other,
}

fn look(bytes: &[u8]) -> Looks {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let start = bytes.trim_ascii_start();
    let fields: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    match start {
        [] if bytes.len() < MAX_PADDING_BYTES => Looks::Undecided,
        [b'{' | b'[', ..] => Looks::Json,
        _ if fields.iter().any(|field| start.starts_with(field)) => Looks::Events,
        _ if fields.iter().any(|field| field.starts_with(start)) => Looks::Undecided,
        _ => Looks::Other,
    }
}

#[async_trait]
impl ProviderAdapter for OpenAi {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn rules(&self) -> &dyn ProviderRules {
        &RULES
    }

    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        let mapped = map(request, &scope, self.facts).map_err(|error| self.local(&error.to_string()))?;
        let http = self.request(mapped.body, request.stream, &scope)?;
        let mut exchange = Exchange::new(&self.id, &scope);
        let status = exchange.send(self.transport.as_ref(), http).await?;
        if !(200..300).contains(&status) {
            return Err(exchange.refused(b"").await);
        }
        if exchange.header("content-encoding").is_some_and(|encoding| encoding != "identity") {
            // None was asked for.
            return Err(exchange.refused(b"").await.with_code("unexpected_content_encoding"));
        }
        let mut read = Vec::new();
        while look(&read) == Looks::Undecided {
            match exchange.first_chunk().await? {
                Some(bytes) => read.extend_from_slice(&bytes),
                None => break,
            }
        }
        let origin = Origin::new(self.id.clone()).with_model(scope.model.model());
        let mut head = ReplyHead::default();
        head.losses = mapped.losses;
        let decoder = Decoder::new(origin, self.facts, head);
        match look(&read) {
            Looks::Events => self.streamed(exchange, decoder, &read, request.stream).await,
            Looks::Json => {
                let body = exchange.read_whole(read).await?;
                complete::read(&body, &self.id, decoder).map(Reply::Complete).map_err(|unusable| {
                    match unusable {
                        Unusable::Body => exchange.failure(Surface::Http, &body),
                        Unusable::Finish(word) => failed_finish(&exchange, Surface::Http, &word),
                    }
                })
            }
            Looks::Undecided | Looks::Other => Err(exchange.refused(&read).await),
        }
    }
}

impl OpenAi {
    async fn streamed(
        &self,
        exchange: Exchange,
        decoder: Decoder,
        read: &[u8],
        wanted: bool,
    ) -> Result<Reply, AttemptFailure> {
        let mut streaming = Streaming::new(exchange, decoder, read);
        let begun = streaming.begin().await?;
        let head = streaming.decoder.head.clone();
        let rest = stream::unfold(streaming, |mut streaming| async move {
            let event = streaming.next().await?;
            Some((event, streaming))
        });
        let events = stream::iter(begun.into_iter().map(Ok)).chain(rest);
        let reply = ReplyStream::new(self.id.clone(), events).with_head(head);
        if wanted {
            return Ok(Reply::Stream(reply));
        }
        // The server streams though nobody asked: nothing of it reaches the caller before it is whole.
        let whole = reply.into_reply().await;
        whole.map(Reply::Complete).map_err(|failure| failure.with_progress(Progress::Answered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("https://a.example/v1/", "https://a.example/v1/chat/completions")]
    #[test_case(
        "https://a.example/openai/v1?api-version=preview",
        "https://a.example/openai/v1/chat/completions?api-version=preview"
    )]
    fn endpoints(base: &str, expected: &str) {
        assert_eq!(endpoint(base).unwrap().to_string(), expected);
    }

    #[test_case("ftp://a.example")]
    #[test_case("a.example/v1")]
    #[test_case("https:///v1")]
    #[test_case("")]
    fn no_endpoints(base: &str) {
        assert!(matches!(endpoint(base), Err(ConfigError::BadBaseUrl { .. })));
    }

    #[test]
    fn wrong_settings_are_errors() {
        let builder = |id: &str| OpenAi::builder(ProviderId::new(id).unwrap());
        assert!(matches!(builder("azure-openai").build(), Err(ConfigError::NoBaseUrl { .. })));
        assert!(matches!(builder("openai").facts("nobody").build(), Err(ConfigError::NoFacts { .. })));
        assert!(matches!(builder("openai").header("a b", "c").build(), Err(ConfigError::BadHeader { .. })));
        assert!(builder("my-own").facts("vllm").build().is_ok());
    }

    // spec: P-3
    #[test_case(b"", Looks::Undecided)]
    #[test_case(b" \n", Looks::Undecided; "padding")]
    #[test_case(b"da", Looks::Undecided; "half a field name")]
    #[test_case(b"data: {}", Looks::Events)]
    #[test_case(b": OPENROUTER PROCESSING", Looks::Events; "comment")]
    #[test_case(b"\xef\xbb\xbfevent: x", Looks::Events; "byte-order mark")]
    #[test_case(b"\n {\"a\"", Looks::Json; "padded json")]
    #[test_case(b"<!DOCTYPE html>", Looks::Other)]
    #[test_case(b"\x1f\x8b", Looks::Other; "gzip")]
    fn bodies_are_known_by_their_first_bytes(bytes: &[u8], expected: Looks) {
        assert_eq!(look(bytes), expected);
    }
}

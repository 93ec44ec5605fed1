//! Where an adapter's requests go, and what every one of them carries.

use crate::{BuildError, HyperTransport, Transport};
use bytes::Bytes;
use failover_classify::Surface;
use failover_provider::{AttemptFailure, AttemptScope, ChatRequest, Dialect, FailureCause};
use failover_types::ProviderId;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    USER_AGENT,
};
use http::uri::Scheme;
use http::{Request, Uri};
use std::fmt;
use std::sync::{Arc, OnceLock};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("failover/", env!("CARGO_PKG_VERSION")));

/// How many headers a request has besides the operator's, and room for one that is looked for: there is room at once.
const HEADERS: usize = 8;

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
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
    /// No transport.
    #[error(transparent)]
    Transport(#[from] BuildError),
}

/// What an operator may change about where requests go.
#[derive(Default)]
#[must_use]
pub struct TargetConfig {
    base_url: Option<String>,
    headers: Vec<(String, String)>,
    transport: Option<Arc<dyn Transport>>,
}

impl TargetConfig {
    /// The provider's own address, no further headers, a transport of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the API lives, its version path included. A query is kept.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Whether an address was given.
    pub fn has_base_url(&self) -> bool {
        self.base_url.is_some()
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

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong.
    pub fn build(self, id: ProviderId, default_url: &str) -> Result<Target, TargetError> {
        let base = self.base_url.unwrap_or_else(|| default_url.to_owned());
        join(&base, "/").ok_or_else(|| TargetError::BadBaseUrl { url: base.clone() })?;
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            let parsed = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value).ok());
            let (key, value) = parsed.ok_or(TargetError::BadHeader { name })?;
            headers.insert(key, value);
        }
        let transport = match self.transport {
            Some(transport) => transport,
            None => Arc::new(HyperTransport::new()?),
        };
        Ok(Target { id, base, headers, transport, first: OnceLock::new() })
    }
}

impl fmt::Debug for TargetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetConfig").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

/// Puts a path, and a query of its own, behind a base URL that may have one too.
fn join(base: &str, path: &str) -> Option<Uri> {
    let (base, kept) = base.split_once('?').map_or((base, None), |(base, query)| (base, Some(query)));
    let (path, own) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut url = format!("{}{path}", base.trim_end_matches('/'));
    let queries: Vec<&str> = kept.into_iter().chain(own).collect();
    if !queries.is_empty() {
        url.push('?');
        url.push_str(&queries.join("&"));
    }
    let uri: Uri = url.parse().ok()?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    (known && uri.host().is_some_and(|host| !host.is_empty())).then_some(uri)
}

/// The host's name as a header, where every request needs one: over TLS it may be HTTP/2, which has a field of its own.
fn host_of(uri: &Uri) -> Option<HeaderValue> {
    let authority = uri.authority().filter(|_| uri.scheme() == Some(&Scheme::HTTP))?;
    let name = match authority.port_u16() {
        Some(80) => authority.host(),
        _ => authority.as_str().rsplit('@').next()?,
    };
    HeaderValue::from_str(name).ok()
}

/// Adds what the caller says in headers of the dialect. What the operator set stands; lists of features are put together.
pub fn add_dialect_headers(headers: &mut HeaderMap, request: &ChatRequest, dialect: Dialect) {
    for given in request.headers.iter().filter(|given| given.dialect == dialect) {
        let Ok(name) = HeaderName::try_from(given.name.as_str()) else { continue };
        if name.as_str().ends_with("-beta") {
            add_features(headers, &name, &given.value);
        } else if let Ok(value) = HeaderValue::try_from(given.value.as_str()) {
            headers.entry(name).or_insert(value);
        }
    }
}

/// Adds features to a header that lists them, each once.
pub fn add_features(headers: &mut HeaderMap, name: &HeaderName, more: &str) {
    let mut all: Vec<&str> = Vec::new();
    let there = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    for feature in there.chain([more]).flat_map(|list| list.split(',')).map(str::trim) {
        if !feature.is_empty() && !all.contains(&feature) {
            all.push(feature);
        }
    }
    if let Ok(value) = HeaderValue::try_from(all.join(",")) {
        headers.insert(name, value);
    }
}

/// Where the requests of one provider go.
pub struct Target {
    id: ProviderId,
    base: String,
    headers: HeaderMap,
    transport: Arc<dyn Transport>,
    /// The first path that was asked for, its address, and its host's name: most adapters know only one.
    first: OnceLock<(String, Uri, Option<HeaderValue>)>,
}

impl Target {
    /// The provider.
    pub fn id(&self) -> &ProviderId {
        &self.id
    }

    /// Where the API lives, the version path included.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// What carries the requests.
    pub fn transport(&self) -> &dyn Transport {
        self.transport.as_ref()
    }

    /// A failure of this machine: the request never left.
    pub fn local(&self, what: &str) -> AttemptFailure {
        AttemptFailure::new(self.id.clone(), Surface::Local).with_causes(vec![FailureCause::new(what)])
    }

    /// A POST of this body to a path below the base, or below the credential's own address, with the operator's
    /// headers.
    ///
    /// # Errors
    ///
    /// A local failure where the address is none.
    pub fn post(
        &self,
        path: &str,
        body: impl Into<Bytes>,
        accept: &'static str,
        scope: &AttemptScope<'_>,
    ) -> Result<Request<Bytes>, AttemptFailure> {
        let enterprise = scope.credential.and_then(|credential| credential.enterprise_url.as_deref());
        let found = match enterprise {
            Some(base) => join(base, path).map(|uri| (uri, None)),
            None => self.address(path),
        };
        let (uri, host) = found
            .ok_or_else(|| self.local("the provider's base URL and the model's name make no address"))?;
        let mut request = Request::new(body.into());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.reserve(HEADERS + self.headers.len());
        if let Some(host) = host {
            headers.insert(HOST, host);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        // Nothing here unpacks: some servers compress unless they are told not to.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, AGENT);
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        Ok(request)
    }

    fn address(&self, path: &str) -> Option<(Uri, Option<HeaderValue>)> {
        if let Some((_, uri, host)) = self.first.get().filter(|(first, ..)| first == path) {
            return Some((uri.clone(), host.clone()));
        }
        let uri = join(&self.base, path)?;
        let host = host_of(&uri);
        let _ = self.first.set((path.to_owned(), uri.clone(), host.clone()));
        Some((uri, host))
    }

    /// Puts a key into a header of its own, or a token into `Authorization` where `name` is `None`.
    ///
    /// # Errors
    ///
    /// A local failure where no header may hold the secret.
    pub fn authorize(
        &self,
        headers: &mut HeaderMap,
        name: Option<&'static str>,
        secret: &str,
    ) -> Result<(), AttemptFailure> {
        let (name, text) = match name {
            Some(name) => (HeaderName::from_static(name), secret.to_owned()),
            None => (AUTHORIZATION, ["Bearer ", secret].concat()),
        };
        let mut value = HeaderValue::try_from(text)
            .map_err(|_| self.local("the credential has characters that no header may have"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("https://a.example/v1/", "/x", "https://a.example/v1/x")]
    #[test_case("https://a.example?k=1", "/x?alt=sse", "https://a.example/x?k=1&alt=sse"; "both queries")]
    fn addresses(base: &str, path: &str, expected: &str) {
        assert_eq!(join(base, path).unwrap().to_string(), expected);
    }

    #[test_case("http://a.example:8080/v1", Some("a.example:8080"))]
    #[test_case("http://a.example:80", Some("a.example"); "the port that goes without saying")]
    #[test_case("http://[::1]:1/v1", Some("[::1]:1"))]
    #[test_case("https://a.example", None; "may be another version of http")]
    fn hosts(base: &str, expected: Option<&str>) {
        let host = host_of(&join(base, "/x").unwrap());
        assert_eq!(host.as_ref().map(|host| host.to_str().unwrap()), expected);
    }

    #[test_case("ftp://a.example")]
    #[test_case("a.example/v1")]
    #[test_case("https:///v1")]
    #[test_case("")]
    fn wrong_settings_are_errors(base: &str) {
        let id = || ProviderId::new("p").unwrap();
        let built = TargetConfig::new().base_url(base).build(id(), "https://a.example");
        assert!(matches!(built, Err(TargetError::BadBaseUrl { .. })));
        let built = TargetConfig::new().header("a b", "c").build(id(), "https://a.example");
        assert!(matches!(built, Err(TargetError::BadHeader { .. })));
    }
}

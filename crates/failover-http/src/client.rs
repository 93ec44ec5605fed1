//! The transport over hyper: one shared pool, rustls with ring, nothing repeated.

use crate::error::DnsError;
use crate::proxy::{ProxyConfig, Route};
use crate::transport::{Connected, ResponseBody, Transport};
use crate::{TransportError, TransportErrorKind};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http_body_util::{BodyDataStream, Full};
use hyper::body::{Body, Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// An idle connection is kept this long: shorter than the idle limits of common load balancers (60 s), so that a
/// request rarely meets a connection that is just being closed.
const POOL_IDLE: Duration = Duration::from_secs(50);
const POOL_IDLE_PER_HOST: usize = 32;
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Most bytes of a response's head.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// Why a transport could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The TLS library cannot be set up.
    #[error("tls cannot be set up on this machine")]
    Tls(#[from] rustls::Error),
    /// A root certificate cannot be used.
    #[error("not a PEM file of certificates that can be trusted")]
    Roots,
}

/// How a transport reaches providers.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct TransportConfig {
    proxy: ProxyConfig,
    roots: Vec<CertificateDer<'static>>,
}

impl TransportConfig {
    /// No proxy, and the Mozilla root certificates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes through proxies.
    pub fn proxy(mut self, proxy: ProxyConfig) -> Self {
        self.proxy = proxy;
        self
    }

    /// Trusts the certificates of a PEM file besides the Mozilla roots.
    ///
    /// # Errors
    ///
    /// [`BuildError::Roots`] where it holds none, or a broken one.
    pub fn roots_pem(mut self, pem: &[u8]) -> Result<Self, BuildError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let read = read.ok().filter(|read| !read.is_empty()).ok_or(BuildError::Roots)?;
        self.roots.extend(read);
        Ok(self)
    }

    fn tls(&self) -> Result<ClientConfig, BuildError> {
        let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        for root in &self.roots {
            roots.add(root.clone()).map_err(|_| BuildError::Roots)?;
        }
        // The provider of cryptography is named: rustls panics where two are compiled in and none is chosen.
        Ok(ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth())
    }
}

/// HTTP/1.1 and HTTP/2 over TCP and TLS. Cheap to clone; clones share one pool of connections.
#[derive(Clone)]
pub struct HyperTransport {
    client: Client<HttpsConnector<Route>, Outgoing>,
    proxy: ProxyConfig,
}

impl HyperTransport {
    /// A transport without proxies that trusts the Mozilla root certificates. Must be used within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`BuildError`] where the TLS library cannot offer its protocol versions.
    pub fn new() -> Result<Self, BuildError> {
        Self::with(TransportConfig::new())
    }

    /// A transport of this config. Must be used within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`BuildError`] where a root certificate cannot be used, or the TLS library cannot offer its protocol versions.
    pub fn with(config: TransportConfig) -> Result<Self, BuildError> {
        let tls = config.tls()?;
        let mut tcp = HttpConnector::new_with_resolver(Resolver);
        tcp.enforce_http(false);
        // Requests are small and written at once: waiting for more to send only costs time.
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        let to_proxy = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp.clone());
        let proxy = config.proxy;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(Route { proxy: proxy.clone(), tcp, to_proxy });
        let client = Client::builder(TokioExecutor::new())
            // One owner of retries, and it is not this one.
            .retry_canceled_requests(false)
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_IDLE_PER_HOST)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .build(connector);
        Ok(Self { client, proxy })
    }
}

impl fmt::Debug for HyperTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HyperTransport")
    }
}

#[async_trait]
impl Transport for HyperTransport {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        connected: Connected,
    ) -> Result<http::Response<ResponseBody>, TransportError> {
        let mut request = request.map(|body| Outgoing { body: Full::new(body), connected });
        if let Some(value) = self.proxy.authorization(request.uri()) {
            request.headers_mut().insert(http::header::PROXY_AUTHORIZATION, value);
        }
        let response = self.client.request(request).await;
        let response = response.map_err(|error| read(&error, error.is_connect()))?;
        Ok(response.map(|body| {
            let chunks = BodyDataStream::new(body).into_stream();
            ResponseBody::new(chunks.map(|chunk| chunk.map_err(|error| read(&error, false))))
        }))
    }
}

/// The body of a request. It is first asked for by the connection that is about to write the request: one stands by then.
struct Outgoing {
    body: Full<Bytes>,
    connected: Connected,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.connected.signal();
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn read(error: &(dyn std::error::Error + 'static), connecting: bool) -> TransportError {
    let mut read = TransportError::read(error, connecting);
    if read.kind == TransportErrorKind::Broken && read.code.is_none() {
        // A connection that the peer was closing when it was used, a stream that it reset, a farewell by HTTP/2.
        read.code = Some("ECONNRESET");
    }
    read
}

/// The system's resolver, with its failures marked as such.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolver;

type Resolved = Result<std::vec::IntoIter<SocketAddr>, DnsError>;

impl tower_service::Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = DnsError;
    type Future = Pin<Box<dyn Future<Output = Resolved> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DnsError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await.map_err(DnsError)?;
            Ok(addresses.collect::<Vec<_>>().into_iter())
        })
    }
}

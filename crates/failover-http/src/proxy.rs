//! Proxies: which requests go through one, and the way there.

use crate::client::Resolver;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Servers of this machine are reached directly, whatever the variables say: no proxy could reach them.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// An address that cannot be used as a proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{url:?} is no proxy that can be used: give http:// or https://, a host and a port")]
pub struct ProxyError {
    /// The address as given, without user and password.
    pub url: String,
}

/// Which requests go through a proxy, and which one.
#[derive(Clone, Default)]
pub struct ProxyConfig(Option<Arc<Matcher>>);

impl ProxyConfig {
    /// Every request goes straight to its provider.
    pub fn none() -> Self {
        Self(None)
    }

    /// Every request goes through this one. User and password may stand in the URL.
    ///
    /// # Errors
    ///
    /// [`ProxyError`] where the URL is none of a proxy over HTTP.
    pub fn all(url: &str) -> Result<Self, ProxyError> {
        check(url)?;
        Ok(Self(Some(Arc::new(Matcher::builder().all(url.to_owned()).build()))))
    }

    /// What `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in either case, as curl reads them; `read` looks
    /// a variable up. This machine is always excepted.
    ///
    /// # Errors
    ///
    /// [`ProxyError`] where one of them is set to something that cannot be used: passing it over would send requests
    /// where they should not go.
    pub fn from_variables(read: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let first = |names: [&str; 2]| {
            names.iter().filter_map(|name| read(name)).find(|value| !value.trim().is_empty())
        };
        let https = first(["HTTPS_PROXY", "https_proxy"]);
        // Programs behind a web server are given headers as variables: HTTP_PROXY would be a request's own.
        let http = first(["http_proxy", "HTTP_PROXY"]).filter(|_| read("REQUEST_METHOD").is_none());
        let all = first(["ALL_PROXY", "all_proxy"]);
        let mut matcher = Matcher::builder();
        let mut any = false;
        for url in [&https, &http, &all].into_iter().flatten() {
            check(url)?;
            any = true;
        }
        if !any {
            return Ok(Self::none());
        }
        matcher = matcher.all(all.unwrap_or_default());
        if let Some(url) = https {
            matcher = matcher.https(url);
        }
        if let Some(url) = http {
            matcher = matcher.http(url);
        }
        let excepted = first(["NO_PROXY", "no_proxy"]).unwrap_or_default();
        matcher = matcher.no(format!("{LOOPBACK},{excepted}"));
        Ok(Self(Some(Arc::new(matcher.build()))))
    }

    fn intercept(&self, to: &Uri) -> Option<Intercept> {
        self.0.as_ref()?.intercept(to)
    }

    /// The header that a proxy wants of a request that it passes on itself: one that is not encrypted.
    pub(crate) fn authorization(&self, to: &Uri) -> Option<HeaderValue> {
        let plain = to.scheme_str() == Some("http");
        self.intercept(to).filter(|_| plain)?.basic_auth().cloned()
    }
}

impl fmt::Debug for ProxyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without what stands in it: passwords do.
        f.debug_tuple("ProxyConfig").field(&self.0.is_some()).finish()
    }
}

fn check(url: &str) -> Result<(), ProxyError> {
    // A bare host and port is an HTTP proxy, as for curl.
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let uri = full.parse::<Uri>().ok();
    let usable = uri.as_ref().is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    if usable {
        return Ok(());
    }
    let shown = match url.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
            format!("{}{host}", scheme.unwrap_or_default())
        }
        None => url.to_owned(),
    };
    Err(ProxyError { url: shown })
}

/// Connects to the provider itself, or to the proxy on the way to it.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) proxy: ProxyConfig,
    pub(crate) tcp: HttpConnector<Resolver>,
    /// To proxies, which may want TLS of their own.
    pub(crate) to_proxy: HttpsConnector<HttpConnector<Resolver>>,
}

impl Service<Uri> for Route {
    type Response = Hop;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Hop, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self.proxy.intercept(&to) else {
            let connecting = self.tcp.call(to);
            return Box::pin(async move { Ok(Hop::Direct(connecting.await?)) });
        };
        if to.scheme_str() == Some("http") {
            let connecting = self.to_proxy.call(proxy.uri().clone());
            return Box::pin(async move { Ok(Hop::Proxied(connecting.await?)) });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy.clone());
        if let Some(value) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(value.clone());
        }
        let connecting = tunnel.call(to);
        Box::pin(async move { Ok(Hop::Tunnel(connecting.await?)) })
    }
}

type Tcp = TokioIo<TcpStream>;

/// The first leg of a connection.
pub(crate) enum Hop {
    /// To the provider.
    Direct(Tcp),
    /// To a proxy that reads the requests.
    Proxied(MaybeHttpsStream<Tcp>),
    /// Through a proxy that sees nothing but bytes.
    Tunnel(MaybeHttpsStream<Tcp>),
}

impl Connection for Hop {
    /// Nothing of both ends' addresses, which would be put into every answer, and which nobody asks for.
    fn connected(&self) -> Connected {
        match self {
            Self::Direct(_) | Self::Tunnel(_) => Connected::new(),
            Self::Proxied(_) => Connected::new().proxy(true),
        }
    }
}

macro_rules! each {
    ($this:expr, $io:ident => $call:expr) => {
        match $this.get_mut() {
            Self::Direct($io) => {
                let $io = Pin::new($io);
                $call
            }
            Self::Proxied($io) | Self::Tunnel($io) => {
                let $io = Pin::new($io);
                $call
            }
        }
    };
}

impl Read for Hop {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_read(cx, buf))
    }
}

impl Write for Hop {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, io => io.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Direct(io) => io.is_write_vectored(),
            Self::Proxied(io) | Self::Tunnel(io) => io.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, io => io.poll_write_vectored(cx, bufs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn config(variables: &[(&str, &str)]) -> Result<ProxyConfig, ProxyError> {
        ProxyConfig::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn proxy_of(variables: &[(&str, &str)], to: &str) -> Option<String> {
        let config = config(variables).unwrap();
        config.intercept(&to.parse().unwrap()).map(|found| found.uri().host().unwrap().to_owned())
    }

    #[test_case(&[("HTTPS_PROXY", "http://p:1")], "https://a.example/", Some("p"); "https")]
    #[test_case(&[("HTTPS_PROXY", "http://p:1")], "http://a.example/", None; "not for http")]
    #[test_case(&[("http_proxy", "p:1")], "http://a.example/", Some("p"); "no scheme, lower case")]
    #[test_case(&[("ALL_PROXY", "http://q:1"), ("HTTPS_PROXY", "http://p:1")], "https://a.example/", Some("p"); "the closer one")]
    #[test_case(&[("ALL_PROXY", "http://q:1"), ("NO_PROXY", "example, 10.0.0.0/8")], "https://a.example/", None; "excepted name")]
    #[test_case(&[("ALL_PROXY", "http://q:1"), ("NO_PROXY", "10.0.0.0/8")], "http://10.1.2.3/", None; "excepted network")]
    #[test_case(&[("ALL_PROXY", "http://q:1")], "http://127.0.0.1:11434/", None; "this machine")]
    #[test_case(&[("ALL_PROXY", "http://q:1")], "http://localhost:11434/", None; "this machine by name")]
    #[test_case(&[("HTTPS_PROXY", " ")], "https://a.example/", None; "blank")]
    #[test_case(&[("HTTP_PROXY", "http://p:1"), ("REQUEST_METHOD", "GET")], "http://a.example/", None; "behind a web server")]
    fn variables_are_read_as_curl_does(variables: &[(&str, &str)], to: &str, expected: Option<&str>) {
        assert_eq!(proxy_of(variables, to).as_deref(), expected);
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_tells_no_password() {
        let error = config(&[("ALL_PROXY", "socks5://me:hunter2@p:1")]).unwrap_err();
        assert_eq!(error.url, "socks5://p:1");
        assert!(ProxyConfig::all("ftp://x").is_err() && ProxyConfig::all("").is_err());
        let config = ProxyConfig::all("http://me:hunter2@p:1").unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert!(config.authorization(&"http://a.example".parse().unwrap()).is_some());
        assert!(config.authorization(&"https://a.example".parse().unwrap()).is_none());
    }
}

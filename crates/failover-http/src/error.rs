//! What went wrong below HTTP, told apart and with its causes.

use failover_provider::{FailureCause, io_code};
use std::error::Error;
use std::io;

/// Where a transport failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The name could not be resolved.
    Dns,
    /// No TCP connection.
    Connect,
    /// No TLS session.
    Tls,
    /// The connection broke, before or inside the response.
    Broken,
    /// The peer does not speak HTTP as it should.
    Protocol,
}

/// A failure below HTTP.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", text(*.kind))]
#[non_exhaustive]
pub struct TransportError {
    /// Where.
    pub kind: TransportErrorKind,
    /// The operating system's name for it (`ECONNRESET`), or one in its style.
    pub code: Option<&'static str>,
    /// The chain of causes, outermost first.
    pub causes: Vec<FailureCause>,
}

fn text(kind: TransportErrorKind) -> &'static str {
    match kind {
        TransportErrorKind::Dns => "dns: the provider's name could not be resolved",
        TransportErrorKind::Connect => "tcp: no connection to the provider",
        TransportErrorKind::Tls => "tls: no secure session with the provider",
        TransportErrorKind::Broken => "the connection to the provider broke",
        TransportErrorKind::Protocol => "the provider does not speak http as it should",
    }
}

impl TransportError {
    /// A failure without causes.
    pub fn new(kind: TransportErrorKind, code: Option<&'static str>) -> Self {
        Self { kind, code, causes: Vec::new() }
    }

    /// Reads the chain of an error. `connecting` says whether a connection was still being made.
    pub fn read(error: &(dyn Error + 'static), connecting: bool) -> Self {
        let kind = if connecting { TransportErrorKind::Connect } else { TransportErrorKind::Broken };
        let mut this = Self::new(kind, None);
        this.causes = FailureCause::chain(error, |error| {
            let code = this.look_at(error);
            this.code = this.code.or(code);
            code
        });
        this
    }

    fn look_at(&mut self, error: &(dyn Error + 'static)) -> Option<&'static str> {
        if let Some(error) = error.downcast_ref::<DnsError>() {
            self.kind = TransportErrorKind::Dns;
            return Some(error.code());
        }
        if error.downcast_ref::<rustls::Error>().is_some() {
            self.kind = TransportErrorKind::Tls;
            return Some("ETLS");
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            if error.is_parse() {
                self.kind = TransportErrorKind::Protocol;
                return Some("EPROTO");
            }
            // The peer closed politely in the middle, which the operating system has no name for.
            return error.is_incomplete_message().then_some("ECONNRESET");
        }
        io_code(error)
    }
}

/// A name that could not be resolved.
#[derive(Debug, thiserror::Error)]
#[error("dns lookup failed")]
pub(crate) struct DnsError(#[source] pub(crate) io::Error);

impl DnsError {
    /// The standard library keeps the resolver's number to itself, so its text must tell.
    fn code(&self) -> &'static str {
        if self.0.to_string().to_ascii_lowercase().contains("temporary") { "EAI_AGAIN" } else { "ENOTFOUND" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test_case(io::ErrorKind::ConnectionRefused.into(), true, TransportErrorKind::Connect, "ECONNREFUSED")]
    #[test_case(io::ErrorKind::ConnectionReset.into(), false, TransportErrorKind::Broken, "ECONNRESET")]
    #[test_case(io::Error::other(rustls::Error::DecryptError), true, TransportErrorKind::Tls, "ETLS")]
    #[test_case(
        io::Error::other(DnsError(io::Error::other("Temporary failure in name resolution"))),
        true,
        TransportErrorKind::Dns,
        "EAI_AGAIN"
    )]
    #[test_case(
        io::Error::other(DnsError(io::Error::other("Name or service not known"))),
        true,
        TransportErrorKind::Dns,
        "ENOTFOUND"
    )]
    fn kinds_are_told_apart(inner: io::Error, connecting: bool, kind: TransportErrorKind, code: &str) {
        let error = TransportError::read(&Outer(inner), connecting);
        assert_eq!((error.kind, error.code), (kind, Some(code)));
        assert_eq!(error.causes.first().unwrap().message, "outer");
        assert!(error.causes.len() > 1, "{:?}", error.causes);
    }
}

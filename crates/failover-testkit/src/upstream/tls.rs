//! TLS on loopback: a certificate of the moment, and a front that decrypts for a plain upstream.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate for `localhost`, and whom to trust for it.
pub(super) struct Identity {
    pub(super) acceptor: TlsAcceptor,
    /// The certificate of its issuer, in PEM.
    pub(super) ca_pem: String,
}

impl Identity {
    /// A new one, offering these protocols.
    pub(super) fn new(alpn: &[&[u8]]) -> io::Result<Self> {
        let mut authority = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let issuer = CertifiedIssuer::self_signed(authority, key).map_err(io::Error::other)?;
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let names = CertificateParams::new(vec!["localhost".to_owned()]).map_err(io::Error::other)?;
        let leaf = names.signed_by(&key, &issuer).map_err(io::Error::other)?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], private)
            })
            .map_err(io::Error::other)?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), ca_pem: issuer.pem() })
    }
}

/// Decrypts for an upstream that speaks plain HTTP/1.1. Dropping it closes its port and its connections.
pub struct TlsFront {
    address: SocketAddr,
    ca_pem: String,
    accepting: AbortHandle,
}

impl TlsFront {
    /// Starts one on a free port of loopback, in front of `to`.
    ///
    /// # Errors
    ///
    /// The operating system's, where no port can be had.
    pub async fn start(to: SocketAddr) -> io::Result<Self> {
        let Identity { acceptor, ca_pem } = Identity::new(&[b"http/1.1"])?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let serve = async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    let mut inside = acceptor.accept(stream).await?;
                    let mut outside = TcpStream::connect(to).await?;
                    tokio::io::copy_bidirectional(&mut inside, &mut outside).await
                });
            }
        };
        #[expect(clippy::disallowed_methods, reason = "aborted when the front is dropped")]
        let accepting = tokio::spawn(serve).abort_handle();
        Ok(Self { address, ca_pem, accepting })
    }

    /// Base URL for clients: its certificate is for `localhost`.
    pub fn base_url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// The root certificate to trust, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl fmt::Debug for TlsFront {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsFront").field("address", &self.address).finish_non_exhaustive()
    }
}

//! A forward proxy on loopback: tunnels by CONNECT, and requests that it passes on itself.

use super::http::{head, read_request};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// A request that came to a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proxied {
    /// Method and target: `CONNECT localhost:443`.
    pub line: String,
    /// Its `Proxy-Authorization`.
    pub authorization: Option<String>,
}

/// The proxy. Dropping it closes its port and its connections.
pub struct ForwardProxy {
    address: SocketAddr,
    log: Arc<Mutex<Vec<Proxied>>>,
    accepting: AbortHandle,
}

impl ForwardProxy {
    /// Starts one on a free port of loopback. With `authorization`, requests without that very header are refused.
    ///
    /// # Errors
    ///
    /// The operating system's, where no port can be had.
    pub async fn start(authorization: Option<&str>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let (shared, wanted) = (Arc::clone(&log), authorization.map(str::to_owned));
        let serve = async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (shared, wanted) = (Arc::clone(&shared), wanted.clone());
                connections.spawn(async move { forward(stream, &shared, wanted.as_deref()).await });
            }
        };
        #[expect(clippy::disallowed_methods, reason = "aborted when the proxy is dropped")]
        let accepting = tokio::spawn(serve).abort_handle();
        Ok(Self { address, log, accepting })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything that came, in order.
    pub fn log(&self) -> Vec<Proxied> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl fmt::Debug for ForwardProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardProxy").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn forward(mut client: TcpStream, log: &Mutex<Vec<Proxied>>, wanted: Option<&str>) -> io::Result<()> {
    let mut buffer = Vec::new();
    let Some(request) = read_request(&mut client, &mut buffer).await? else { return Ok(()) };
    let authorization = request.header("proxy-authorization").map(str::to_owned);
    let refused = wanted.is_some_and(|wanted| authorization.as_deref() != Some(wanted));
    log.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Proxied { line: format!("{} {}", request.method, request.target), authorization });
    if refused {
        return client.write_all(&head(407, &[("content-length".to_owned(), "0".to_owned())])).await;
    }
    if request.method == "CONNECT" {
        let mut server = TcpStream::connect(&request.target).await?;
        client.write_all(&head(200, &[])).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    }
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "no absolute target");
    let rest = request.target.strip_prefix("http://").ok_or_else(bad)?;
    let (host, path) = rest.split_once('/').ok_or_else(bad)?;
    let mut server = TcpStream::connect(host).await?;
    let mut sent = format!("{} /{path} HTTP/1.1\r\nconnection: close\r\n", request.method);
    for (name, value) in request.headers.iter().filter(|(name, _)| name != "proxy-authorization") {
        for piece in [name, ": ", value, "\r\n"] {
            sent.push_str(piece);
        }
    }
    sent.push_str("\r\n");
    server.write_all(sent.as_bytes()).await?;
    server.write_all(&request.body).await?;
    // One request on a connection is all that is asked of it.
    let mut answer = [0; 4096];
    loop {
        let read = tokio::select! {
            read = server.read(&mut answer) => read?,
            gone = client.read_buf(&mut buffer) => if gone? == 0 { return Ok(()) } else { continue },
        };
        if read == 0 {
            return client.shutdown().await;
        }
        client.write_all(answer.get(..read).unwrap_or_default()).await?;
    }
}

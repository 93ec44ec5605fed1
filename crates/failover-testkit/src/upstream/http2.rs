//! An upstream that speaks HTTP/2 over TLS, and takes its leave in the ways that HTTP/2 has.

use super::tls::Identity;
use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use http::{HeaderValue, Request, Response};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What has been queued is out after so long.
const FLUSH: Duration = Duration::from_millis(50);

/// What the upstream does with one request; without a script it answers in full.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Http2Step {
    /// An event stream of these bytes.
    Answer(Bytes),
    /// An event stream of these bytes, and GOAWAY after it: no further request on this connection.
    AnswerThenGoAway(Bytes),
    /// GOAWAY with an error after these bytes, in the middle of the answer.
    GoAwayInside(Bytes),
    /// These bytes of an answer, then a reset of the stream with an error.
    ResetInside(Bytes),
    /// A reset of the stream that says that the request was not looked at.
    Refuse,
    /// GOAWAY without an error that leaves this request out.
    GoAwayBefore,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: usize,
    steps: VecDeque<Http2Step>,
}

/// The upstream. Dropping it closes its port and its connections.
pub struct Http2Upstream {
    address: SocketAddr,
    ca_pem: String,
    seen: Arc<Mutex<Seen>>,
    accepting: AbortHandle,
}

impl Http2Upstream {
    /// Starts one on a free port of loopback that takes these steps, one for a request.
    ///
    /// # Errors
    ///
    /// The operating system's, where no port can be had.
    pub async fn start(steps: impl IntoIterator<Item = Http2Step>) -> io::Result<Self> {
        let Identity { acceptor, ca_pem } = Identity::new(&[b"h2"])?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Seen { steps: steps.into_iter().collect(), ..Seen::default() }));
        let shared = Arc::clone(&seen);
        let serve = async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
                // A client that breaks off is what tests do.
                connections.spawn(async move { drop(converse(acceptor, stream, &shared).await) });
            }
        };
        #[expect(clippy::disallowed_methods, reason = "aborted when the upstream is dropped")]
        let accepting = tokio::spawn(serve).abort_handle();
        Ok(Self { address, ca_pem, seen, accepting })
    }

    /// Base URL for clients: its certificate is for `localhost`.
    pub fn base_url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// The root certificate to trust, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Connections and requests that came so far.
    pub fn counts(&self) -> (usize, usize) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.connections, seen.requests)
    }
}

impl Drop for Http2Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl fmt::Debug for Http2Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Upstream").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn converse(acceptor: TlsAcceptor, stream: TcpStream, seen: &Mutex<Seen>) -> io::Result<()> {
    let stream = acceptor.accept(stream).await?;
    seen.lock().unwrap_or_else(PoisonError::into_inner).connections += 1;
    let mut connection = h2::server::handshake(stream).await.map_err(io::Error::other)?;
    while let Some(request) = connection.accept().await {
        let request = request.map_err(io::Error::other)?;
        let step = {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.requests += 1;
            seen.steps.pop_front()
        };
        let answer = Http2Step::Answer(Bytes::from_static(b"data: [DONE]\n\n"));
        if perform(&mut connection, request, step.unwrap_or(answer)).await.map_err(io::Error::other)? {
            break;
        }
    }
    // Until everything is out and the client has left.
    while connection.accept().await.is_some() {}
    Ok(())
}

/// Takes one step, and says whether the connection is over with it.
async fn perform(
    connection: &mut Connection<TlsStream<TcpStream>, Bytes>,
    (request, mut respond): (Request<h2::RecvStream>, SendResponse<Bytes>),
    step: Http2Step,
) -> Result<bool, h2::Error> {
    drop(request);
    let mut head = Response::new(());
    head.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
    match step {
        Http2Step::Answer(bytes) => {
            respond.send_response(head, false)?.send_data(bytes, true)?;
            Ok(false)
        }
        Http2Step::AnswerThenGoAway(bytes) => {
            respond.send_response(head, false)?.send_data(bytes, true)?;
            connection.graceful_shutdown();
            Ok(false)
        }
        Http2Step::GoAwayInside(bytes) => {
            let mut stream = respond.send_response(head, false)?;
            stream.send_data(bytes, false)?;
            flush(connection).await;
            connection.abrupt_shutdown(Reason::INTERNAL_ERROR);
            Ok(true)
        }
        Http2Step::ResetInside(bytes) => {
            let mut stream = respond.send_response(head, false)?;
            stream.send_data(bytes, false)?;
            flush(connection).await;
            stream.send_reset(Reason::INTERNAL_ERROR);
            Ok(false)
        }
        Http2Step::Refuse => {
            respond.send_reset(Reason::REFUSED_STREAM);
            Ok(false)
        }
        Http2Step::GoAwayBefore => {
            connection.abrupt_shutdown(Reason::NO_ERROR);
            Ok(true)
        }
    }
}

/// Lets the connection write what is queued.
async fn flush(connection: &mut Connection<TlsStream<TcpStream>, Bytes>) {
    // No request comes meanwhile: the client waits for this answer.
    drop(tokio::time::timeout(FLUSH, connection.accept()).await);
}

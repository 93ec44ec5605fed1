//! A provider that misbehaves to a script, over raw TCP on loopback.
//!
//! Scripts are chosen by model and key; each request takes the next step of its script, and the last step repeats.
//! A request without a script gets a good answer. Everything that arrives is logged, with the times of arrival and
//! of the connection's end.
//!
//! Delays follow the upstream's clock: with a [`ManualClock`](crate::ManualClock) they pass when the test says so.

mod converse;
mod dialect;
mod gemini;
mod hearing;
mod http;
#[cfg(feature = "tls")]
mod http2;
mod messages;
mod ollama;
mod proxy;
mod responses;
mod server;
mod step;
#[cfg(feature = "tls")]
mod tls;

pub use converse::Converse;
pub use dialect::{Asked, ChatCompletions, Dialect, Frame};
pub use gemini::Gemini;
pub use http::Request;
#[cfg(feature = "tls")]
pub use http2::{Http2Step, Http2Upstream};
pub use messages::Messages;
pub use ollama::OllamaChat;
pub use proxy::{ForwardProxy, Proxied};
pub use responses::Responses;
pub use step::{Act, Answer, FrameKind, Piece, Respond, Step};
#[cfg(feature = "tls")]
pub use tls::TlsFront;

use failover_types::{Clock, Timestamp};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Which requests a script is for. The most specific script wins: model and key, then key, then model, then any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct On {
    /// The model; `None` is any.
    pub model: Option<String>,
    /// Hash of the key, as [`key_hash`] gives it; `None` is any.
    pub key: Option<String>,
}

impl On {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests for this model.
    pub fn model(model: &str) -> Self {
        Self { model: Some(model.into()), key: None }
    }

    /// Only those that come with this key.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key_hash(key));
        self
    }

    fn fits(&self, model: &str, key: Option<&str>) -> bool {
        self.model.as_deref().is_none_or(|own| own == model)
            && self.key.as_deref().is_none_or(|own| Some(own) == key)
    }

    fn weight(&self) -> u8 {
        u8::from(self.model.is_some()) + 2 * u8::from(self.key.is_some())
    }
}

impl From<&str> for On {
    fn from(model: &str) -> Self {
        Self::model(model)
    }
}

/// A short hash of a key, so that logs can tell keys apart without holding them. Not for security.
pub fn key_hash(key: &str) -> String {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// A request that arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// When it had been read.
    pub at: Timestamp,
    /// On which connection it came, counted from 1.
    pub connection: u64,
    /// The model that it asks for.
    pub model: String,
    /// Hash of its key.
    pub key_hash: Option<String>,
    /// Whether it asks for a stream.
    pub stream: bool,
    /// Its path and query.
    pub target: String,
    /// Its headers, those that carry the key left out; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: String,
    /// What was done with it.
    pub step: String,
    /// When the first byte of a response was sent.
    pub answered_at: Option<Timestamp>,
    /// When its connection ended.
    pub closed_at: Option<Timestamp>,
    /// Whether it was the client that ended it, while the step still had something to do.
    pub abandoned: bool,
}

impl Attempt {
    /// The first header of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

struct Script {
    on: On,
    steps: Vec<Step>,
    next: usize,
}

#[derive(Default)]
struct State {
    scripts: Vec<Script>,
    log: Vec<Attempt>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    dialects: Vec<Box<dyn Dialect>>,
    state: Mutex<State>,
    /// Counts changes of the log.
    changes: watch::Sender<u64>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state());
        self.changes.send_modify(|count| *count += 1);
        result
    }
}

/// The scripted upstream. Dropping it closes its port and its connections.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl Upstream {
    /// Starts one on a free port of loopback, speaking chat completions.
    ///
    /// # Errors
    ///
    /// The operating system's, where no port can be had.
    pub async fn start(clock: Arc<dyn Clock>) -> io::Result<Self> {
        Self::start_with(clock, vec![Box::new(ChatCompletions)]).await
    }

    /// Starts one that speaks these dialects.
    ///
    /// # Errors
    ///
    /// The operating system's, where no port can be had.
    pub async fn start_with(clock: Arc<dyn Clock>, dialects: Vec<Box<dyn Dialect>>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Mutex::default();
        let shared = Arc::new(Shared { clock, dialects, state, changes: watch::Sender::new(0) });
        #[expect(clippy::disallowed_methods, reason = "aborted when the upstream is dropped")]
        let accepting = tokio::spawn(server::accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, shared, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Base URL for clients of the OpenAI dialect.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Sets the steps for these requests; an earlier script for the same is replaced.
    pub fn script(&self, on: impl Into<On>, steps: impl IntoIterator<Item = Step>) {
        let on = on.into();
        let script = Script { on: on.clone(), steps: steps.into_iter().collect(), next: 0 };
        self.shared.update(|state| {
            state.scripts.retain(|known| known.on != on);
            state.scripts.push(script);
        });
    }

    /// Everything that arrived, in order.
    pub fn log(&self) -> Vec<Attempt> {
        self.shared.state().log.clone()
    }

    /// How many requests for this model arrived.
    pub fn count(&self, model: &str) -> usize {
        self.shared.state().log.iter().filter(|attempt| attempt.model == model).count()
    }

    /// Completes once the log satisfies `met`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn until(&self, met: impl Fn(&[Attempt]) -> bool + Send + Sync) {
        let mut changes = self.shared.changes.subscribe();
        while !met(&self.shared.state().log) {
            // Cannot fail while `self` holds the sender.
            let _ = changes.changed().await;
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A port of loopback on which nobody talks, held for as long as this value lives.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _held: Held,
}

#[derive(Debug)]
enum Held {
    Refusing { _socket: TcpSocket },
    Silent { _listener: StdListener },
}

impl Port {
    /// Connections are refused.
    ///
    /// # Errors
    ///
    /// The operating system's, where no port can be had.
    pub fn refusing() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self { address: socket.local_addr()?, _held: Held::Refusing { _socket: socket } })
    }

    /// Connections are accepted, and then nothing happens: not even a TLS handshake.
    ///
    /// # Errors
    ///
    /// The operating system's, where no port can be had.
    pub fn silent() -> io::Result<Self> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self { address: listener.local_addr()?, _held: Held::Silent { _listener: listener } })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

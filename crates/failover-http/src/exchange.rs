//! One request and its response, under limits, with failures that keep everything.

use crate::{Connected, ResponseBody, Transport, TransportError};
use bytes::Bytes;
use failover_classify::Surface;
use failover_provider::{
    AttemptFailure, AttemptLimits, AttemptScope, BodyCapture, FailureCause, Limit, Progress,
};
use failover_types::{Clock, ProviderId, Secret, Timestamp};
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt};
use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Longest answer that is read whole, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// How much of an error's body is read before the rest is left unread.
const MAX_ERROR_BYTES: u64 = 1024 * 1024;
/// How long the body of an error is waited for: its status is known already.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);

/// How long the end of a body is waited for once its answer is complete.
const SETTLE: Duration = Duration::from_millis(250);

/// One request and its response. Dropping it closes the connection.
pub struct Exchange {
    provider: ProviderId,
    clock: Arc<dyn Clock>,
    started: Timestamp,
    limits: AttemptLimits,
    deadline: Option<Timestamp>,
    secrets: Vec<Secret>,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    progress: Progress,
    body: Option<ResponseBody>,
}

impl Exchange {
    /// Starts the attempt's clocks.
    pub fn new(provider: &ProviderId, scope: &AttemptScope<'_>) -> Self {
        Self {
            provider: provider.clone(),
            clock: Arc::clone(&scope.clock),
            started: scope.clock.now(),
            limits: scope.limits,
            deadline: scope.deadline,
            secrets: scope.known_secrets().cloned().collect(),
            status: None,
            headers: Vec::new(),
            progress: Progress::NotSent,
            body: None,
        }
    }

    /// Sends the request and waits for the head of the response. Resolves for every status.
    ///
    /// # Errors
    ///
    /// The transport's failure, or the limit that fired: connect, first byte, first content, deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the connection closes.
    pub async fn send(
        &mut self,
        transport: &dyn Transport,
        request: http::Request<Bytes>,
    ) -> Result<u16, AttemptFailure> {
        let connected = Connected::new();
        let clock = Arc::clone(&self.clock);
        let mut sending = pin!(transport.send(request, connected.clone()));
        let connect = self.due(Limit::Connect, self.started);
        let standing = pin!(connected.wait());
        let early = match until(clock.as_ref(), connect, select(sending.as_mut(), standing)).await {
            Ok(Either::Left((answer, _))) => Some(answer),
            Ok(Either::Right(_)) => None,
            Err(limit) => return Err(self.timed_out(limit)),
        };
        if connected.is_set() {
            self.progress = Progress::Sent;
        }
        let first_byte = self.due(Limit::FirstByte, self.started);
        let answer = match early {
            Some(answer) => Ok(answer),
            None => until(clock.as_ref(), first_byte, sending).await,
        };
        let answer = answer.map_err(|limit| self.timed_out(limit))?;
        let (head, body) = answer.map_err(|error| self.broken(error))?.into_parts();
        self.progress = Progress::Answered;
        self.headers = head
            .headers
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        self.body = Some(body);
        let status = head.status.as_u16();
        self.status = Some(status);
        Ok(status)
    }

    /// The first header of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// What the clock says.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The next bytes of the body before the first content; `None` at its end.
    ///
    /// # Errors
    ///
    /// The transport's failure, or the limit that fired: first content or deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no bytes are lost.
    pub async fn first_chunk(&mut self) -> Result<Option<Bytes>, AttemptFailure> {
        self.chunk_until(self.due(Limit::FirstContent, self.started)).await
    }

    /// The next bytes of the body after content that came, or was asked for, at `since`; `None` at its end.
    ///
    /// # Errors
    ///
    /// The transport's failure, or the limit that fired: idle or deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no bytes are lost.
    pub async fn next_chunk(&mut self, since: Timestamp) -> Result<Option<Bytes>, AttemptFailure> {
        self.chunk_until(self.due(Limit::Idle, since)).await
    }

    /// The next bytes of the body, or `None` at its end, at a break, or once `patience` is over: for what is welcome
    /// but not needed.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no bytes are lost.
    pub async fn welcome_chunk(&mut self, until: Timestamp) -> Option<Bytes> {
        self.chunk_until(Some((until, Limit::Idle))).await.ok().flatten()
    }

    async fn chunk_until(&mut self, due: Due) -> Result<Option<Bytes>, AttemptFailure> {
        let Some(body) = &mut self.body else { return Ok(None) };
        let clock = Arc::clone(&self.clock);
        match until(clock.as_ref(), due, pin!(body.next())).await {
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(None) => {
                self.body = None;
                Ok(None)
            }
            Ok(Some(Err(error))) => {
                self.body = None;
                Err(self.broken(error))
            }
            Err(limit) => Err(self.timed_out(limit)),
        }
    }

    /// Reads the body of an error, bounded in bytes and time, after what was read of it already, and makes the
    /// failure. A body that breaks off or stalls does not hide the status.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the connection closes.
    pub async fn refused(mut self, read: &[u8]) -> AttemptFailure {
        let mut capture = BodyCapture::new();
        capture.push(read);
        let patience = self.clock.now().after(ERROR_BODY_WAIT);
        let until = self.deadline.map_or(patience, |deadline| deadline.min(patience));
        while let Some(bytes) = self.welcome_chunk(until).await {
            capture.push(&bytes);
            if capture.seen() > MAX_ERROR_BYTES {
                break;
            }
        }
        self.failure(Surface::Http, &capture.into_bytes())
    }

    /// Reads a whole answer, after what was read of it already. White space before it, which some providers send to
    /// keep the connection alive, does not feed the limits.
    ///
    /// # Errors
    ///
    /// As [`Exchange::next_chunk`]; and a failure where the answer is longer than [`MAX_ANSWER_BYTES`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: what was read is lost, and the connection closes with the exchange.
    pub async fn read_whole(&mut self, mut read: Vec<u8>) -> Result<Vec<u8>, AttemptFailure> {
        loop {
            let begun = read.iter().any(|byte| !byte.is_ascii_whitespace());
            let chunk = if begun { self.next_chunk(self.now()).await } else { self.first_chunk().await };
            match chunk {
                Ok(Some(bytes)) => read.extend_from_slice(&bytes),
                Ok(None) => return Ok(read),
                Err(failure) => return Err(failure.with_body(&read).without_secrets(&self.secrets)),
            }
            if read.len() > MAX_ANSWER_BYTES {
                let failure = self.failure(Surface::Http, &read).with_code("answer_too_long");
                return Err(failure);
            }
        }
    }

    /// Says that the answer is complete. What the server sends after it (the end of the body, mostly) is read for a
    /// moment, so that the connection can be used again; a server that goes on sending is left.
    pub(crate) fn settle(&mut self) {
        let Some(mut body) = self.body.take() else { return };
        loop {
            match body.next().now_or_never() {
                Some(Some(Ok(_))) => {}
                Some(_) => return,
                None => break,
            }
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let drained = async move { while let Some(Ok(_)) = body.next().await {} };
        // Nobody waits for it, and it ends by itself.
        drop(runtime.spawn(tokio::time::timeout(SETTLE, drained)));
    }

    /// A failure with what is known so far, and this body.
    pub fn failure(&self, surface: Surface, body: &[u8]) -> AttemptFailure {
        let mut failure = AttemptFailure::new(self.provider.clone(), surface)
            .with_headers(self.headers.clone())
            .with_progress(self.progress)
            .with_body(body);
        if let Some(status) = self.status {
            failure = failure.with_status(status);
        }
        failure.without_secrets(&self.secrets)
    }

    fn broken(&self, error: TransportError) -> AttemptFailure {
        let mut outer = FailureCause::new(error.to_string());
        outer.code = error.code.map(str::to_owned);
        let mut failure = self.failure(Surface::Transport, b"");
        if let Some(code) = error.code {
            failure = failure.with_code(code);
        }
        failure.with_causes([outer].into_iter().chain(error.causes).collect()).without_secrets(&self.secrets)
    }

    fn timed_out(&self, limit: Limit) -> AttemptFailure {
        let text = match limit {
            Limit::Connect => "no connection within the connect limit",
            Limit::FirstByte => "no response began within the first-byte limit",
            Limit::FirstContent => "no content came within the first-content limit",
            Limit::Idle => "content stopped coming: the idle limit passed",
            Limit::Deadline => "the attempt's deadline passed",
        };
        self.failure(Surface::Transport, b"")
            .with_code("ETIMEDOUT")
            .with_limit(limit)
            .with_causes(vec![FailureCause::new(text).with_code("ETIMEDOUT")])
    }

    /// When a wait must end, and which limit ends it: the soonest of those that run during it.
    fn due(&self, stage: Limit, since: Timestamp) -> Due {
        let first_byte = (self.limits.first_byte, self.started, Limit::FirstByte);
        let first_content = (self.limits.first_content, self.started, Limit::FirstContent);
        let running = match stage {
            Limit::Connect => {
                vec![(self.limits.connect, self.started, Limit::Connect), first_byte, first_content]
            }
            Limit::FirstByte => vec![first_byte, first_content],
            Limit::FirstContent => vec![first_content],
            Limit::Idle => vec![(self.limits.idle, since, Limit::Idle)],
            Limit::Deadline => Vec::new(),
        };
        running
            .into_iter()
            .filter_map(|(limit, from, name)| Some((from.after(limit?), name)))
            .chain(self.deadline.map(|at| (at, Limit::Deadline)))
            .min_by_key(|(at, _)| *at)
    }
}

type Due = Option<(Timestamp, Limit)>;

async fn until<F: Future + Unpin + Send>(clock: &dyn Clock, due: Due, future: F) -> Result<F::Output, Limit> {
    let alarm = async {
        match due {
            Some((at, limit)) => {
                clock.sleep_until(at).await;
                limit
            }
            None => pending().await,
        }
    };
    match select(future, pin!(alarm)).await {
        Either::Left((output, _)) => Ok(output),
        Either::Right((limit, _)) => Err(limit),
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("provider", &self.provider)
            .field("status", &self.status)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

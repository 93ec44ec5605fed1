//! One request and its response, under limits, with failures that keep everything.

use crate::{Connected, ResponseBody, Timer, Transport, TransportError};
use bytes::{Bytes, BytesMut};
use failover_classify::Surface;
use failover_provider::{
    AttemptFailure, AttemptLimits, AttemptScope, BodyCapture, FailureCause, Limit, Progress,
};
use failover_types::{Clock, ProviderId, Secret, Timestamp};
use futures_util::{FutureExt, StreamExt};
use http::HeaderMap;
use http::header::AsHeaderName;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
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
///
/// It is moved from hand to hand while an answer is read, so all of it lies behind a pointer.
pub struct Exchange(Box<State>);

struct State {
    provider: ProviderId,
    clock: Arc<dyn Clock>,
    started: Timestamp,
    limits: AttemptLimits,
    deadline: Option<Timestamp>,
    secrets: Vec<Secret>,
    status: Option<u16>,
    headers: HeaderMap,
    progress: Progress,
    body: Option<ResponseBody>,
    alarm: Alarm,
}

impl Exchange {
    /// Starts the attempt's clocks.
    pub fn new(provider: &ProviderId, scope: &AttemptScope<'_>) -> Self {
        Self(Box::new(State {
            provider: provider.clone(),
            clock: Arc::clone(&scope.clock),
            started: scope.clock.now(),
            limits: scope.limits,
            deadline: scope.deadline,
            secrets: scope.known_secrets().cloned().collect(),
            status: None,
            headers: HeaderMap::new(),
            progress: Progress::NotSent,
            body: None,
            alarm: Alarm::default(),
        }))
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
        let mut sending = transport.send(request, connected.clone());
        let connect = self.due(Limit::Connect, self.0.started);
        let first_byte = self.due(Limit::FirstByte, self.0.started);
        let State { alarm, clock, .. } = &mut *self.0;
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = sending.as_mut().poll(cx) {
                return Poll::Ready(Ok(answer));
            }
            // Looked at anew each time: a limit that no longer runs does not end the wait.
            let due = if connected.is_set() { first_byte } else { connect };
            let Some((due, limit)) = due else { return Poll::Pending };
            alarm.poll(clock, due, cx).map(|()| Err(limit))
        })
        .await;
        drop(sending);
        if connected.is_set() {
            self.0.progress = Progress::Sent;
        }
        let answer = answer.map_err(|limit| self.timed_out(limit))?;
        let (head, body) = answer.map_err(|error| self.broken(error))?.into_parts();
        self.0.progress = Progress::Answered;
        self.0.headers = head.headers;
        self.0.body = Some(body);
        let status = head.status.as_u16();
        self.0.status = Some(status);
        Ok(status)
    }

    /// The first header of this name.
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.0.headers.get(name)?.to_str().ok()
    }

    /// Lets go of the buffer that the headers came in, eight kilobytes that a stream would hold for as long as it lives.
    pub(crate) fn copy_headers(&mut self) {
        for value in self.0.headers.values_mut() {
            // Its bytes are those of a value, so this does not fail.
            if let Ok(copy) = http::HeaderValue::from_bytes(value.as_bytes()) {
                *value = copy;
            }
        }
    }

    /// What the clock says.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
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
        self.chunk_until(self.due(Limit::FirstContent, self.0.started)).await
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
        poll_fn(|cx| self.poll_chunk(|_| due, cx)).await
    }

    /// As [`Exchange::first_chunk`], for who polls.
    pub(crate) fn poll_first_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Chunk> {
        self.poll_chunk(|this| this.due(Limit::FirstContent, this.0.started), cx)
    }

    /// As [`Exchange::next_chunk`], for who polls.
    pub(crate) fn poll_next_chunk(&mut self, since: Timestamp, cx: &mut Context<'_>) -> Poll<Chunk> {
        self.poll_chunk(|this| this.due(Limit::Idle, since), cx)
    }

    /// As [`Exchange::welcome_chunk`], for who polls.
    pub(crate) fn poll_welcome_chunk(
        &mut self,
        until: Timestamp,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Bytes>> {
        self.poll_chunk(|_| Some((until, Limit::Idle)), cx).map(|chunk| chunk.ok().flatten())
    }

    /// The next bytes. When they are due is asked only where they are not there.
    fn poll_chunk(&mut self, due: impl FnOnce(&Self) -> Due, cx: &mut Context<'_>) -> Poll<Chunk> {
        let Some(body) = &mut self.0.body else { return Poll::Ready(Ok(None)) };
        let Poll::Ready(chunk) = body.poll_next_unpin(cx) else {
            let Some((due, limit)) = due(self) else { return Poll::Pending };
            return self.0.alarm.poll(&self.0.clock, due, cx).map(|()| Err(self.timed_out(limit)));
        };
        if let Some(Ok(bytes)) = chunk {
            return Poll::Ready(Ok(Some(bytes)));
        }
        self.0.body = None;
        Poll::Ready(match chunk {
            Some(Err(error)) => Err(self.broken(error)),
            _ => Ok(None),
        })
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
        let patience = self.0.clock.now().after(ERROR_BODY_WAIT);
        let until = self.0.deadline.map_or(patience, |deadline| deadline.min(patience));
        while let Some(bytes) = self.welcome_chunk(until).await {
            capture.push(&bytes);
            if capture.seen() > MAX_ERROR_BYTES {
                break;
            }
        }
        self.failure(Surface::Http, &capture.into_bytes())
    }

    /// Reads a whole answer, after what was read of it already. White space before it, which some providers send to
    /// keep the connection alive, does not feed the limits. Nothing of it is content before all of it is there, so the
    /// limit for the first content runs to its end.
    ///
    /// # Errors
    ///
    /// As [`Exchange::first_chunk`] and [`Exchange::next_chunk`]; and a failure where the answer is longer than [`MAX_ANSWER_BYTES`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: what was read is lost, and the connection closes with the exchange.
    pub async fn read_whole(&mut self, read: impl Into<Bytes> + Send) -> Result<Bytes, AttemptFailure> {
        let mut read = read.into();
        loop {
            let begun = read.iter().any(|byte| !byte.is_ascii_whitespace());
            let whole = self.due(Limit::FirstContent, self.0.started);
            let idle = if begun { self.due(Limit::Idle, self.now()) } else { None };
            let due = whole.into_iter().chain(idle).min_by_key(|(at, _)| *at);
            match self.chunk_until(due).await {
                // Most answers come in one piece, which need not be copied.
                Ok(Some(bytes)) if read.is_empty() => read = bytes,
                Ok(Some(bytes)) => {
                    let mut longer = BytesMut::from(read);
                    longer.extend_from_slice(&bytes);
                    read = longer.freeze();
                }
                Ok(None) => return Ok(read),
                Err(failure) => return Err(failure.with_body(&read).without_secrets(&self.0.secrets)),
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
        let Some(mut body) = self.0.body.take() else { return };
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
        let mut failure = AttemptFailure::new(self.0.provider.clone(), surface)
            .with_headers(texts(&self.0.headers))
            .with_progress(self.0.progress)
            .with_body(body);
        if let Some(status) = self.0.status {
            failure = failure.with_status(status);
        }
        failure.without_secrets(&self.0.secrets)
    }

    fn broken(&self, error: TransportError) -> AttemptFailure {
        let mut outer = FailureCause::new(error.to_string());
        outer.code = error.code.map(str::to_owned);
        let mut failure = self.failure(Surface::Transport, b"");
        if let Some(code) = error.code {
            failure = failure.with_code(code);
        }
        failure
            .with_causes([outer].into_iter().chain(error.causes).collect())
            .without_secrets(&self.0.secrets)
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
        let connect = (self.0.limits.connect, self.0.started, Limit::Connect);
        let first_byte = (self.0.limits.first_byte, self.0.started, Limit::FirstByte);
        let first_content = (self.0.limits.first_content, self.0.started, Limit::FirstContent);
        let running: &[_] = match stage {
            Limit::Connect => &[connect, first_byte, first_content],
            Limit::FirstByte => &[first_byte, first_content],
            Limit::FirstContent => &[first_content],
            Limit::Idle => &[(self.0.limits.idle, since, Limit::Idle)],
            Limit::Deadline => &[],
        };
        running
            .iter()
            .filter_map(|(limit, from, name)| Some((from.after((*limit)?), *name)))
            .chain(self.0.deadline.map(|at| (at, Limit::Deadline)))
            .min_by_key(|(at, _)| *at)
    }
}

/// The headers as failures carry them.
fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// When a wait must end, and which limit ends it.
type Due = Option<(Timestamp, Limit)>;

/// Bytes of a body; `None` at its end.
type Chunk = Result<Option<Bytes>, AttemptFailure>;

/// One timer for all the waits. It is left to run out rather than set anew for each limit and each piece: what comes in
/// time costs no timer.
#[derive(Default)]
struct Alarm(Option<Timer>);

impl Alarm {
    /// Ready once `due` is there.
    fn poll(&mut self, clock: &Arc<dyn Clock>, due: Timestamp, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // One that is set for later than this would ring too late.
            if let Some(timer) = self.0.as_mut().filter(|timer| timer.at() <= due) {
                if timer.poll(cx).is_pending() {
                    return Poll::Pending;
                }
                let rung = timer.at();
                self.0 = None;
                if rung >= due {
                    return Poll::Ready(());
                }
            }
            self.0 = Some(Timer::new(clock, due));
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("provider", &self.0.provider)
            .field("status", &self.0.status)
            .field("progress", &self.0.progress)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover_testkit::ManualClock;
    use failover_types::ModelRef;

    #[test]
    fn a_stream_does_not_hold_the_buffer_of_its_head() {
        let model: ModelRef = "acme/m".parse().unwrap();
        let mut exchange =
            Exchange::new(model.provider(), &AttemptScope::new(&model, Arc::new(ManualClock::default())));
        let buffer = Bytes::from(b"x-request-id: req_1".to_vec());
        let id = http::HeaderValue::from_maybe_shared(buffer.slice(14..)).unwrap();
        exchange.0.headers.insert("x-request-id", id);
        assert!(!buffer.is_unique());
        exchange.copy_headers();
        assert!(buffer.is_unique());
        assert_eq!(exchange.header("x-request-id"), Some("req_1"));
    }
}

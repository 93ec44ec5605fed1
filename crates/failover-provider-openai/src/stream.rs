//! A streamed answer: pulls bytes, parses, decodes, and ends honestly.

use crate::decode::{Decoder, Fault};
use failover_classify::Surface;
use failover_http::{Exchange, SseParser};
use failover_provider::{AttemptFailure, BodyCapture, FailureCause, FinishReason, ReplyEvent};
use failover_types::Timestamp;
use std::time::Duration;

/// How long usage and the sentinel are waited for once the finish reason is there.
const GRACE: Duration = Duration::from_millis(500);

/// What is expected next, and so which limit runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    FirstContent,
    Content,
    /// The finish reason came then; usage and the sentinel are welcome.
    Trailer(Timestamp),
    Over,
}

pub(crate) struct Streaming {
    exchange: Exchange,
    parser: SseParser,
    pub(crate) decoder: Decoder,
    stage: Stage,
    /// Comes after the events that are ready.
    failure: Option<AttemptFailure>,
    /// What came before the first content: the body of a failure, should it be one.
    raw: BodyCapture,
}

impl Streaming {
    /// Goes on with an exchange of whose body `read` was read already.
    pub(crate) fn new(exchange: Exchange, decoder: Decoder, read: &[u8]) -> Self {
        let mut this = Self {
            exchange,
            parser: SseParser::new(),
            decoder,
            stage: Stage::FirstContent,
            failure: None,
            raw: BodyCapture::new(),
        };
        this.take(read);
        this
    }

    /// The events up to and with the first content.
    pub(crate) async fn begin(&mut self) -> Result<Vec<ReplyEvent>, AttemptFailure> {
        let mut events = Vec::new();
        loop {
            match self.next().await {
                Some(Ok(ReplyEvent::Finish(finish))) => return Err(self.empty(Some(&finish))),
                Some(Ok(event)) => {
                    let content = event.is_content();
                    events.push(event);
                    if content {
                        self.raw = BodyCapture::new();
                        if self.stage == Stage::FirstContent {
                            self.stage = Stage::Content;
                        }
                        return Ok(events);
                    }
                }
                Some(Err(failure)) => return Err(failure),
                None => return Err(self.empty(None)),
            }
        }
    }

    /// The next event; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<Result<ReplyEvent, AttemptFailure>> {
        // Only waiting counts: a slow reader does not make the provider late, and heartbeats do not make it early.
        let since = self.exchange.now();
        loop {
            if let Some(event) = self.decoder.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                self.stage = Stage::Over;
                return Some(Err(failure));
            }
            if self.decoder.done {
                return self.finish();
            }
            if self.decoder.finish.is_some() && matches!(self.stage, Stage::FirstContent | Stage::Content) {
                self.stage = Stage::Trailer(self.exchange.now().after(GRACE));
            }
            let chunk = match self.stage {
                Stage::FirstContent => self.exchange.first_chunk().await,
                Stage::Content => self.exchange.next_chunk(since).await,
                Stage::Trailer(until) => Ok(self.exchange.welcome_chunk(until).await),
                Stage::Over => return None,
            };
            match chunk {
                Ok(Some(bytes)) => self.take(&bytes),
                Ok(None) => {
                    self.parser.end();
                    self.decode();
                    self.decoder.done = true;
                }
                Err(failure) => self.failure = Some(failure),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.stage == Stage::FirstContent {
            self.raw.push(bytes);
        }
        if let Err(error) = self.parser.push(bytes) {
            let failure = self.exchange.failure(Surface::StreamEvent, b"");
            self.failure = Some(failure.with_causes(vec![FailureCause::new(error.to_string())]));
        }
        self.decode();
    }

    fn decode(&mut self) {
        while self.failure.is_none() {
            let Some(event) = self.parser.next_event() else { return };
            if let Err(fault) = self.decoder.take(&event) {
                self.failure = Some(self.fault(&fault));
            }
        }
    }

    fn fault(&self, fault: &Fault) -> AttemptFailure {
        match fault {
            Fault::Event(data) => self.exchange.failure(Surface::StreamEvent, data.as_bytes()),
            Fault::Finish(word) => failed_finish(&self.exchange, Surface::StreamEvent, word),
        }
    }

    /// The end of the stream: a finish marker, or the lack of it.
    fn finish(&mut self) -> Option<Result<ReplyEvent, AttemptFailure>> {
        if self.stage == Stage::Over {
            return None;
        }
        if let Some(proof) = self.decoder.take_proof() {
            return Some(Ok(ReplyEvent::ReasoningProof(proof)));
        }
        let before_content = self.stage == Stage::FirstContent;
        self.stage = Stage::Over;
        Some(match self.decoder.finish.take() {
            Some(finish) => Ok(ReplyEvent::Finish(finish)),
            None if before_content => Err(self.empty(None)),
            None => Err(self
                .exchange
                .failure(Surface::Transport, b"")
                .with_code("incomplete_stream")
                .with_causes(vec![FailureCause::new("stream cut: it ended without its finish marker")])),
        })
    }

    /// A stream that was over before any content.
    fn empty(&mut self, finish: Option<&FinishReason>) -> AttemptFailure {
        if finish == Some(&FinishReason::ContentFilter) {
            return failed_finish(&self.exchange, Surface::StreamEvent, FinishReason::ContentFilter.as_str());
        }
        let raw = std::mem::take(&mut self.raw).into_bytes();
        self.exchange.failure(Surface::Http, &raw)
    }
}

/// A finish reason that means "failed", in words that the classifier knows.
pub(crate) fn failed_finish(exchange: &Exchange, surface: Surface, word: &str) -> AttemptFailure {
    exchange.failure(surface, format!("stop reason: {word}").as_bytes()).with_code(word)
}

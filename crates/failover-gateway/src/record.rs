//! The account of one request: what it came to, for metrics, the log and traces. It is closed when it is dropped, so
//! that a client that leaves is accounted for too.

use crate::dialect::ClientDialect;
use crate::gateway::Gateway;
use crate::metrics::{Finished, Held};
use crate::telemetry::{Span, TraceParent};
use failover::provider::{FinishReason, Usage};
use failover::runner::plan::Visit;
use failover::types::{FailoverReason, ModelRef, ProfileId, SessionId, Timestamp};
use http::StatusCode;
use std::sync::Arc;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The client left first. Nobody's failure.
    Gone,
    /// It was answered to the end.
    Answered,
    /// Nobody answered.
    Failed,
    /// The answer broke off after its client had a part of it.
    Incomplete,
    /// It was not let in, or could not be read.
    Refused,
}

impl Outcome {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "client_gone",
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Incomplete => "incomplete",
            Self::Refused => "refused",
        }
    }
}

/// The account.
pub(crate) struct Record {
    gateway: Gateway,
    _at_work: Held,
    pub(crate) dialect: ClientDialect,
    pub(crate) begun: Timestamp,
    pub(crate) caller: Option<Arc<str>>,
    pub(crate) requested: String,
    pub(crate) route: Arc<str>,
    pub(crate) session: Option<SessionId>,
    pub(crate) stream: bool,
    pub(crate) parent: Option<TraceParent>,
    served: Option<(ModelRef, ProfileId)>,
    attempts: u32,
    reason: Option<FailoverReason>,
    fallback: bool,
    trail: Vec<Visit>,
    first_content: Option<Timestamp>,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) answer_id: Option<String>,
    /// What of the request its provider was not given.
    pub(crate) lost: Option<String>,
    error: Option<String>,
    outcome: Outcome,
    status: StatusCode,
}

impl Record {
    /// In a box: it goes through many hands.
    pub(crate) fn begin(gateway: &Gateway, dialect: ClientDialect) -> Box<Self> {
        Box::new(Self {
            gateway: gateway.clone(),
            _at_work: gateway.metrics().request(),
            dialect,
            begun: gateway.clock().now(),
            caller: None,
            requested: String::new(),
            route: gateway.board().nobody(),
            session: None,
            stream: false,
            parent: None,
            served: None,
            attempts: 0,
            reason: None,
            fallback: false,
            trail: Vec::new(),
            first_content: None,
            usage: None,
            finish: None,
            answer_id: None,
            lost: None,
            error: None,
            outcome: Outcome::Gone,
            status: StatusCode::OK,
        })
    }

    /// What the run came to, answered or not.
    pub(crate) fn walked(
        &mut self,
        trail: Vec<Visit>,
        attempts: u32,
        reason: Option<FailoverReason>,
        served: Option<(ModelRef, ProfileId)>,
    ) {
        self.fallback = served.is_some() && trail.last().is_some_and(|visit| visit.candidate > 0);
        self.attempts = self.attempts.saturating_add(attempts);
        self.reason = reason.or(self.reason);
        if served.is_some() {
            self.served = served;
        }
        self.trail.extend(trail);
    }

    /// An answer that broke off was mended, or was not.
    pub(crate) fn rescued(&self, mode: &str, worked: bool) {
        self.gateway.metrics().rescued(mode, worked);
    }

    /// The first content went to the client.
    pub(crate) fn content(&mut self) {
        if self.first_content.is_none() {
            self.first_content = Some(self.gateway.clock().now());
        }
    }

    /// How it ended.
    pub(crate) fn close(&mut self, outcome: Outcome, status: StatusCode) {
        self.outcome = outcome;
        self.status = status;
    }

    /// How it ended, with what the client was told.
    pub(crate) fn close_with(&mut self, outcome: Outcome, status: StatusCode, error: &str) {
        self.close(outcome, status);
        self.error = Some(error.to_owned());
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let now = self.gateway.clock().now();
        let took = now.since(self.begun);
        let first_content = self.first_content.map(|at| at.since(self.begun));
        let (board, metrics) = (self.gateway.board(), self.gateway.metrics());
        let model = self.served.as_ref().map_or_else(|| board.nobody(), |(model, _)| board.label(model));
        let done = Finished {
            dialect: self.dialect.as_str(),
            route: Arc::clone(&self.route),
            model,
            outcome: self.outcome.as_str(),
            status: self.status.as_u16(),
            fallback: self.fallback,
        };
        let tokens = self.usage.map(|usage| (usage.input, usage.output));
        metrics.finished(done, took, first_content, tokens);
        if tracing::enabled!(target: "failover_gateway::access", tracing::Level::INFO) {
            let served = self.served.as_ref().map(|(model, _)| model.to_string());
            tracing::info!(
                target: "failover_gateway::access",
                dialect = self.dialect.as_str(),
                route = &*self.route,
                requested = self.requested,
                served = served.as_deref(),
                profile = self.served.as_ref().map(|(_, profile)| profile.as_str()),
                caller = self.caller.as_deref(),
                session = self.session.as_ref().map(SessionId::as_str),
                stream = self.stream,
                outcome = self.outcome.as_str(),
                status = self.status.as_u16(),
                attempts = self.attempts,
                reason = self.reason.map(FailoverReason::as_str),
                tookMs = failover::types::millis(took),
                firstContentMs = first_content.map(failover::types::millis),
                inputTokens = self.usage.map(|usage| usage.input),
                outputTokens = self.usage.map(|usage| usage.output),
                lost = self.lost.as_deref(),
                error = self.error.as_deref(),
                "request"
            );
        }
        if self.gateway.telemetry().is_on() {
            self.gateway.telemetry().send(Span {
                parent: self.parent.take(),
                begun: self.begun,
                ended: now,
                dialect: self.dialect,
                requested: std::mem::take(&mut self.requested),
                route: Arc::clone(&self.route),
                served: self.served.take(),
                trail: std::mem::take(&mut self.trail),
                usage: self.usage,
                finish: self.finish.take(),
                answer_id: self.answer_id.take(),
                stream: self.stream,
                outcome: self.outcome,
                status: self.status.as_u16(),
                reason: self.reason,
                first_content,
                session: self.session.take(),
            });
        }
    }
}

//! Traces and metrics for OpenTelemetry: OTLP over HTTP as JSON, with the names of the conventions for generative AI.
//!
//! Spans leave by a bounded queue and a task of its own, histograms by another: a collector that is slow or away costs
//! spans, never answers.

mod measures;

use crate::dialect::ClientDialect;
use crate::record::Outcome;
use crate::telemetry::measures::Measures;
use crate::token::hex;
use bytes::Bytes;
use failover::config::GatewayTelemetry;
use failover::provider::{FinishReason, Usage};
use failover::runner::plan::{Visit, What};
use failover::types::{Clock, FailoverReason, ModelRef, ProfileId, SessionId, Timestamp, millis};
use failover_http::{Connected, HyperTransport, Transport};
use futures_util::future::{Either, join, select};
use http::HeaderMap;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Spans that may wait. One is about a kilobyte.
const QUEUE: usize = 2_048;
/// Spans of one export, and how long the first of them waits for others.
const BATCH: usize = 256;
const LINGER: Duration = Duration::from_secs(2);
/// From one export of the metrics to the next: as often as Prometheus reads by default.
const INTERVAL: Duration = Duration::from_secs(15);
/// How long a collector may take, and how long a server that stops waits for it.
const EXPORT: Duration = Duration::from_secs(5);
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Providers whose name in the conventions is another one.
const PROVIDERS: &[(&str, &str)] = &[
    ("google", "gcp.gemini"),
    ("gemini", "gcp.gemini"),
    ("bedrock", "aws.bedrock"),
    ("amazon-bedrock", "aws.bedrock"),
    ("azure", "azure.ai.openai"),
    ("azure-openai", "azure.ai.openai"),
    ("google-vertex", "gcp.vertex_ai"),
    ("vertex", "gcp.vertex_ai"),
    ("watsonx", "ibm.watsonx.ai"),
    ("mistral", "mistral_ai"),
    ("xai", "x_ai"),
];

/// Where a client's own trace stands: the header `traceparent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceParent {
    trace: String,
    span: String,
    sampled: bool,
}

impl TraceParent {
    /// Reads the header; `None` where there is none, or it is none.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get("traceparent")?.to_str().ok()?;
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |text: &str, len: usize| {
            text.len() == len && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let zero = |text: &str| text.bytes().all(|b| b == b'0');
        if !hex(version, 2) || version == "ff" || !hex(trace, 32) || !hex(span, 16) || !hex(flags, 2) {
            return None;
        }
        if zero(trace) || zero(span) || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        Some(Self { trace: trace.to_owned(), span: span.to_owned(), sampled })
    }
}

/// A request that is over.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) parent: Option<TraceParent>,
    pub(crate) begun: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) dialect: ClientDialect,
    pub(crate) requested: String,
    pub(crate) route: Arc<str>,
    pub(crate) served: Option<(ModelRef, ProfileId)>,
    pub(crate) trail: Vec<Visit>,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) answer_id: Option<String>,
    pub(crate) stream: bool,
    pub(crate) outcome: Outcome,
    pub(crate) status: u16,
    pub(crate) reason: Option<FailoverReason>,
    pub(crate) first_content: Option<Duration>,
    pub(crate) session: Option<SessionId>,
}

impl Span {
    /// What kind of failure it is told as, where it failed.
    fn failure(&self) -> Option<&'static str> {
        let failed = matches!(self.outcome, Outcome::Failed | Outcome::Incomplete);
        failed.then(|| self.reason.map_or(self.outcome.as_str(), FailoverReason::as_str))
    }
}

enum Message {
    Span(Box<Span>),
    Flush(oneshot::Sender<()>),
}

/// The way out. Off without an endpoint.
pub(crate) struct Telemetry(Option<Outlet>);

struct Outlet {
    spans: mpsc::Sender<Message>,
    dropped: Arc<AtomicU64>,
    measures: Arc<Measures>,
    /// Who asks for the metrics to be exported at once.
    now: mpsc::Sender<oneshot::Sender<()>>,
    clock: Arc<dyn Clock>,
}

impl Telemetry {
    /// Counts in `dropped` the spans that nobody got. Must be called within a tokio runtime where there is an endpoint.
    #[expect(clippy::disallowed_methods, reason = "exports beside the requests; both end with their queues")]
    pub(crate) fn new(settings: &GatewayTelemetry, clock: Arc<dyn Clock>, dropped: &Arc<AtomicU64>) -> Self {
        let outlet = settings.otlp_endpoint.as_deref().and_then(|endpoint| {
            let service = settings.service_name.as_deref().unwrap_or("failover");
            let measures = Arc::new(Measures::new(clock.now()));
            let traces = Collector::new(endpoint, "traces", service, &clock)?;
            let (spans, waiting) = mpsc::channel(QUEUE);
            let exporter =
                Traces { collector: traces, random: SystemRandom::new(), dropped: Arc::clone(dropped) };
            let metrics = Collector::new(endpoint, "metrics", service, &clock)?;
            let (now, asked) = mpsc::channel(1);
            tokio::spawn(exporter.run(waiting));
            tokio::spawn(export_measures(metrics, Arc::clone(&measures), asked));
            Some(Outlet { spans, dropped: Arc::clone(dropped), measures, now, clock })
        });
        Self(outlet)
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Counts a span, and hands it over, or drops it where the queue is full.
    pub(crate) fn send(&self, span: Span) {
        let Some(outlet) = &self.0 else { return };
        outlet.measures.add(&span);
        if span.parent.as_ref().is_some_and(|parent| !parent.sampled) {
            return;
        }
        if outlet.spans.try_send(Message::Span(Box::new(span))).is_err() {
            outlet.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what is queued is exported, for as long as one export may take.
    pub(crate) async fn flush(&self) {
        let Some(outlet) = &self.0 else { return };
        let spans = async {
            let (done, finished) = oneshot::channel();
            if outlet.spans.send(Message::Flush(done)).await.is_ok() {
                let _ = finished.await;
            }
        };
        let metrics = async {
            let (done, finished) = oneshot::channel();
            if outlet.now.send(done).await.is_ok() {
                let _ = finished.await;
            }
        };
        let late = outlet.clock.sleep_until(outlet.clock.now().after(EXPORT));
        let _ = select(pin!(join(spans, metrics)), late).await;
    }
}

/// One address of the collector.
struct Collector {
    uri: http::Uri,
    what: &'static str,
    transport: HyperTransport,
    /// Who this is, as OTLP writes it.
    resource: Value,
    clock: Arc<dyn Clock>,
    told: Timestamp,
}

impl Collector {
    fn new(endpoint: &str, what: &'static str, service: &str, clock: &Arc<dyn Clock>) -> Option<Self> {
        Some(Self {
            uri: format!("{}/v1/{what}", endpoint.trim_end_matches('/')).parse().ok()?,
            what,
            transport: HyperTransport::new().ok()?,
            resource: json!({ "attributes": [
                text("service.name", service),
                text("service.version", VERSION),
            ] }),
            clock: Arc::clone(clock),
            told: Timestamp::ZERO,
        })
    }

    /// Exports once. Says so when it does not work, once a minute: a collector that is away must not fill the log.
    async fn export(&mut self, body: &Value) -> bool {
        let Err(why) = self.post(body).await else { return true };
        let now = self.clock.now();
        if now.since(self.told) >= Duration::from_mins(1) {
            self.told = now;
            tracing::warn!(why, "{} cannot be exported", self.what);
        }
        false
    }

    async fn post(&self, body: &Value) -> Result<(), String> {
        let request = http::Request::post(self.uri.clone())
            .header("content-type", "application/json")
            .body(Bytes::from(body.to_string()))
            .map_err(|error| error.to_string())?;
        let sent = pin!(self.transport.send(request, Connected::new()));
        let late = self.clock.sleep_until(self.clock.now().after(EXPORT));
        match select(sent, late).await {
            Either::Left((Ok(response), _)) if response.status().is_success() => Ok(()),
            Either::Left((Ok(response), _)) => Err(format!("the collector answers {}", response.status())),
            Either::Left((Err(error), _)) => Err(error.to_string()),
            Either::Right(_) => Err("the collector does not answer".to_owned()),
        }
    }

    fn scope() -> Value {
        json!({ "name": "failover-gateway", "version": VERSION })
    }
}

/// Exports the histograms every [`INTERVAL`] and when it is asked to, where something has changed. What a collector did
/// not get comes with the next export: they count from the start.
async fn export_measures(
    mut collector: Collector,
    measures: Arc<Measures>,
    mut asked: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let clock = Arc::clone(&collector.clock);
    loop {
        let due = clock.sleep_until(clock.now().after(INTERVAL));
        let done = match select(pin!(asked.recv()), due).await {
            Either::Left((None, _)) => return,
            Either::Left((Some(done), _)) => Some(done),
            Either::Right(_) => None,
        };
        if let Some(metrics) = measures.take(clock.now()) {
            let scope = json!([{ "scope": Collector::scope(), "metrics": metrics }]);
            let body =
                json!({ "resourceMetrics": [{ "resource": collector.resource, "scopeMetrics": scope }] });
            if !collector.export(&body).await {
                measures.again();
            }
        }
        if let Some(done) = done {
            let _ = done.send(());
        }
    }
}

/// Exports spans.
struct Traces {
    collector: Collector,
    random: SystemRandom,
    dropped: Arc<AtomicU64>,
}

impl Traces {
    async fn run(mut self, mut waiting: mpsc::Receiver<Message>) {
        let clock = Arc::clone(&self.collector.clock);
        while let Some(first) = waiting.recv().await {
            let mut flushed = Vec::new();
            let mut spans = Vec::new();
            let mut take = |message, spans: &mut Vec<Span>| match message {
                Message::Span(span) => spans.push(*span),
                Message::Flush(done) => flushed.push(done),
            };
            take(first, &mut spans);
            let mut linger = clock.sleep_until(clock.now().after(LINGER));
            while !spans.is_empty() && spans.len() < BATCH {
                match select(pin!(waiting.recv()), linger.as_mut()).await {
                    Either::Left((Some(message), _)) => {
                        let flush = matches!(message, Message::Flush(_));
                        take(message, &mut spans);
                        if flush {
                            break;
                        }
                    }
                    Either::Left((None, _)) | Either::Right(_) => break,
                }
            }
            if !spans.is_empty() && !self.export(&spans).await {
                self.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
            }
            for done in flushed {
                let _ = done.send(());
            }
        }
    }

    async fn export(&mut self, spans: &[Span]) -> bool {
        let spans = spans.iter().flat_map(|span| self.spans(span)).collect::<Vec<_>>();
        let scope = json!([{ "scope": Collector::scope(), "spans": spans }]);
        let body = json!({ "resourceSpans": [{ "resource": self.collector.resource, "scopeSpans": scope }] });
        self.collector.export(&body).await
    }

    fn id(&self, bytes: usize) -> String {
        let mut id = vec![0; bytes];
        // Without randomness the id is of zeros, which collectors refuse: no other trace is mixed up with it.
        let _ = self.random.fill(&mut id);
        hex(&id)
    }

    /// The span of the request, and one for each attempt.
    fn spans(&self, span: &Span) -> Vec<Value> {
        let trace = span.parent.as_ref().map_or_else(|| self.id(16), |parent| parent.trace.clone());
        let own = self.id(8);
        let mut all = vec![request_span(span, &trace, &own)];
        for visit in &span.trail {
            if let What::Attempt(attempt) = &visit.what {
                let mut attributes = model_attributes(&visit.model);
                attributes.push(text("failover.profile", attempt.profile.as_str()));
                let mut status = json!({});
                if let Some(error) = &attempt.error {
                    attributes.push(text("error.type", error.reason.as_str()));
                    attributes.extend(
                        error.status.map(|status| number("http.response.status_code", status.into())),
                    );
                    attributes.extend(error.rule.as_deref().map(|rule| text("failover.rule", rule)));
                    status = json!({ "code": 2, "message": error.summary });
                }
                let ended = attempt.started_at.after(attempt.took);
                all.push(json!({
                    "traceId": trace, "spanId": self.id(8), "parentSpanId": own, "kind": 3,
                    "name": format!("chat {}", visit.model.model()),
                    "startTimeUnixNano": nanos(attempt.started_at), "endTimeUnixNano": nanos(ended),
                    "attributes": attributes, "status": status,
                }));
            }
        }
        all
    }
}

fn request_span(span: &Span, trace: &str, own: &str) -> Value {
    let mut attributes = vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.request.model", &span.requested),
        text("failover.dialect", span.dialect.as_str()),
        text("failover.route", &span.route),
        text("failover.outcome", span.outcome.as_str()),
        number("http.response.status_code", span.status.into()),
        json!({ "key": "failover.stream", "value": { "boolValue": span.stream } }),
    ];
    if let Some((model, _)) = &span.served {
        attributes.push(text("gen_ai.provider.name", provider_name(model)));
        attributes.push(text("gen_ai.response.model", model.model()));
    }
    if let Some(usage) = &span.usage {
        attributes.push(number("gen_ai.usage.input_tokens", usage.input));
        attributes.push(number("gen_ai.usage.output_tokens", usage.output));
    }
    if let Some(finish) = &span.finish {
        let reasons = json!({ "values": [{ "stringValue": finish.as_str() }] });
        attributes
            .push(json!({ "key": "gen_ai.response.finish_reasons", "value": { "arrayValue": reasons } }));
    }
    attributes.extend(span.answer_id.as_deref().map(|id| text("gen_ai.response.id", id)));
    attributes.extend(span.session.as_ref().map(|id| text("gen_ai.conversation.id", id.as_str())));
    attributes.extend(span.reason.map(|reason| text("failover.reason", reason.as_str())));
    attributes.extend(span.first_content.map(|took| number("failover.first_content_ms", millis(took))));
    let failure = span.failure();
    attributes.extend(failure.map(|kind| text("error.type", kind)));
    let mut made = json!({
        "traceId": trace, "spanId": own, "kind": 2,
        "name": format!("chat {}", span.requested),
        "startTimeUnixNano": nanos(span.begun), "endTimeUnixNano": nanos(span.ended),
        "attributes": attributes,
        "status": if failure.is_some() { json!({ "code": 2 }) } else { json!({}) },
    });
    if let (Some(parent), Some(made)) = (&span.parent, made.as_object_mut()) {
        made.insert("parentSpanId".to_owned(), Value::from(parent.span.as_str()));
    }
    made
}

fn provider_name(model: &ModelRef) -> &str {
    let own = model.provider().as_str();
    PROVIDERS.iter().find(|(known, _)| *known == own).map_or(own, |(_, name)| name)
}

fn model_attributes(model: &ModelRef) -> Vec<Value> {
    vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.provider.name", provider_name(model)),
        text("gen_ai.request.model", model.model()),
    ]
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    // 64-bit numbers are texts in OTLP's JSON.
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanos(at: Timestamp) -> String {
    format!("{}000000", at.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    // spec: G-8
    #[test_case(&format!("00-{TRACE}-{SPAN}-01"), Some(true))]
    #[test_case(&format!("00-{TRACE}-{SPAN}-00"), Some(false))]
    #[test_case(&format!("cc-{TRACE}-{SPAN}-01-later"), Some(true); "a later version")]
    #[test_case(&format!("00-{TRACE}-{SPAN}-01-more"), None; "too much")]
    #[test_case(&format!("ff-{TRACE}-{SPAN}-01"), None)]
    #[test_case(&format!("00-{}-{SPAN}-01", "0".repeat(32)), None)]
    #[test_case(&format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None)]
    #[test_case("00-é", None)]
    #[test_case("", None)]
    fn a_trace_is_taken_up(header: &str, sampled: Option<bool>) {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", http::HeaderValue::from_bytes(header.as_bytes()).unwrap());
        assert_eq!(TraceParent::read(&headers).map(|parent| parent.sampled), sampled);
    }
}

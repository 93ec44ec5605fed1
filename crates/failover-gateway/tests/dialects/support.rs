//! A transport that keeps what is sent and answers what it was given; events of every kind.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use failover_gateway::dialect::{ClientDialect, Meta, StreamRenderer};
use failover_http::{Connected, ResponseBody, Transport, TransportError};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatReply, ChatRequest, Json, Opaque, Origin, ProviderAdapter, Reply,
    ReplyEvent,
};
use failover_testkit::ManualClock;
use failover_types::{ModelRef, ProviderId};
use futures_util::{StreamExt, stream};
use std::sync::{Arc, Mutex};

/// Answers every request with the same bytes.
pub(crate) struct Canned {
    answer: Bytes,
    kind: &'static str,
    sent: Mutex<Vec<Bytes>>,
}

impl Canned {
    pub(crate) fn new(answer: impl Into<Bytes>, kind: &'static str) -> Arc<Self> {
        Arc::new(Self { answer: answer.into(), kind, sent: Mutex::default() })
    }

    /// The body of the one request.
    pub(crate) fn sent(&self) -> serde_json::Value {
        let sent = self.sent.lock().unwrap();
        let [body] = sent.as_slice() else { panic!("{} requests", sent.len()) };
        serde_json::from_slice(body).unwrap()
    }
}

#[async_trait]
impl Transport for Canned {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        connected: Connected,
    ) -> Result<http::Response<ResponseBody>, TransportError> {
        connected.signal();
        self.sent.lock().unwrap().push(request.into_body());
        // Cut into odd pieces: a decoder must not care.
        let pieces: Vec<_> = self.answer.chunks(97).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let body = ResponseBody::new(stream::iter(pieces));
        Ok(http::Response::builder().header("content-type", self.kind).body(body).unwrap())
    }
}

/// A value for golden files, raw JSON as it is.
pub(crate) fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

pub(crate) fn opaque(provider: &str, name: &str, json: &str) -> Opaque {
    Opaque::new(Origin::new(ProviderId::new(provider).unwrap()), name, Json::parse(json).unwrap())
}

/// One attempt of an adapter.
pub(crate) async fn open(
    adapter: &dyn ProviderAdapter,
    model: &str,
    request: &ChatRequest,
) -> Result<Reply, AttemptFailure> {
    let model: ModelRef = model.parse().unwrap();
    adapter.open(request, AttemptScope::new(&model, Arc::new(ManualClock::default()))).await
}

pub(crate) fn meta() -> Meta {
    Meta::new("0123456789abcdef", "acme/large", 1_764_490_000).with_usage(true)
}

/// Of a client that asked the vendor of its own dialect.
pub(crate) fn meta_of(dialect: ClientDialect) -> Meta {
    let asked = if dialect == ClientDialect::Messages { "anthropic" } else { "openai" };
    meta().with_asked(ProviderId::new(asked).unwrap())
}

/// The whole stream of some events.
pub(crate) fn rendered(dialect: ClientDialect, events: &[ReplyEvent]) -> String {
    let mut renderer = StreamRenderer::new(dialect, meta_of(dialect));
    let mut out = BytesMut::new();
    for event in events {
        renderer.push(event, &mut out);
        renderer.keep_alive(&mut out);
    }
    assert!(renderer.is_over(), "the events lack their finish");
    String::from_utf8(out.to_vec()).unwrap()
}

/// What an adapter reads from a stream.
pub(crate) async fn read_stream(
    adapter: &dyn ProviderAdapter,
    model: &str,
) -> (Vec<ReplyEvent>, Option<AttemptFailure>) {
    let request = ChatRequest::prompt("hi").with_stream(true);
    match open(adapter, model, &request).await.unwrap() {
        Reply::Stream(stream) => {
            let mut events = Vec::new();
            let mut failure = None;
            for event in stream.collect::<Vec<_>>().await {
                match event {
                    Ok(event) => events.push(event),
                    Err(error) => failure = Some(error),
                }
            }
            (events, failure)
        }
        Reply::Complete(reply) => panic!("{reply:?}"),
    }
}

/// What an adapter reads from a whole answer.
pub(crate) async fn read_whole(adapter: &dyn ProviderAdapter, model: &str) -> ChatReply {
    match open(adapter, model, &ChatRequest::prompt("hi")).await.unwrap() {
        Reply::Complete(reply) => reply,
        Reply::Stream(stream) => panic!("{stream:?}"),
    }
}

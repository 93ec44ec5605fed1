//! A gateway in front of two scripted upstreams, and a client that speaks over real sockets.

use bytes::Bytes;
use failover::config::load_text;
use failover::runner::SystemClock;
use failover::store::KeyValue;
use failover::types::Clock;
use failover_gateway::{Drained, Gateway, Made, serve};
use failover_testkit::upstream::{
    Answer as Scripted, Attempt, ChatCompletions, Messages, Responses, Upstream,
};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than anything here takes, on a machine however busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
pub(crate) const KEY: &str = "sk-fixture-0123456789abcdefghijklmn";

/// An environment with one variable: proxies and the like are none of its affair.
pub(crate) fn environment() -> failover::credentials::Environment {
    Arc::new(|name| (name == "KEY").then(|| KEY.to_owned()))
}

/// What a test may set.
pub(crate) struct Setup {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Option<Arc<dyn KeyValue>>,
    /// More of `agents.defaults`.
    pub(crate) defaults: String,
    /// What stands in `gateway`.
    pub(crate) gateway: String,
    /// Facts of the second provider's models.
    pub(crate) facts: String,
    /// Whether the second upstream is also `fifth` and `sixth`, of the other two dialects.
    pub(crate) twice: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            store: None,
            defaults: String::new(),
            gateway: String::new(),
            facts: String::new(),
            twice: false,
        }
    }
}

impl Setup {
    pub(crate) fn gateway(text: &str) -> Self {
        Self { gateway: text.to_owned(), ..Self::default() }
    }

    pub(crate) fn limits(mut self, text: &str) -> Self {
        self.defaults = format!("limits: {{ {text} }},");
        self
    }

    /// The config, with `first/one` before `second/two`.
    pub(crate) fn config(&self, first: &Upstream, second: &Upstream) -> String {
        let Self { defaults, gateway, facts, .. } = self;
        let (first, second) = (first.base_url(), second.base_url());
        let more = ["fifth: anthropic-messages", "sixth: openai-responses"].map(|entry| {
            let (name, api) = entry.split_once(": ").unwrap();
            format!("    {name}: {{ baseUrl: '{second}', apiKey: '${{KEY}}', api: '{api}' }},\n")
        });
        let more = if self.twice { more.concat() } else { String::new() };
        format!(
            "{{
  agents: {{ defaults: {{ {defaults} model: {{ primary: 'first/one', fallbacks: ['second/two'] }} }} }},
  models: {{ providers: {{
    first: {{ baseUrl: '{first}', apiKey: '${{KEY}}' }},
    second: {{ baseUrl: '{second}', apiKey: '${{KEY}}', models: [{{ id: 'two', {facts} }}] }},
    third: {{ baseUrl: '{first}', apiKey: '${{KEY}}', api: 'anthropic-messages' }},
    fourth: {{ baseUrl: '{first}', apiKey: '${{KEY}}', api: 'openai-responses' }},
{more}  }} }},
  gateway: {{ {gateway} }},
}}"
        )
    }
}

/// The gateway under test.
pub(crate) struct World {
    pub(crate) first: Upstream,
    pub(crate) second: Upstream,
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<Drained>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let dialects = || -> Vec<Box<dyn failover_testkit::upstream::Dialect>> {
            vec![
                Box::new(ChatCompletions::default()),
                Box::new(Messages::default()),
                Box::new(Responses::default()),
            ]
        };
        let first = Upstream::start_with(Arc::clone(&setup.clock), dialects()).await.unwrap();
        let second = Upstream::start_with(Arc::clone(&setup.clock), dialects()).await.unwrap();
        let loaded = load_text("failover.json5", &setup.config(&first, &second)).unwrap();
        let mut builder = Gateway::builder(loaded)
            .clock(Arc::clone(&setup.clock))
            .environment(environment())
            .admin_token("tester", "fo-admin");
        if let Some(store) = &setup.store {
            builder = builder.store(Arc::clone(store));
        }
        let Made { gateway, .. } = builder.build().await.unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = serve(listener, gateway.clone(), async move {
            let _ = stopped.await;
        });
        let served = Some(tokio::spawn(serving));
        Self { first, second, gateway, address, stop: Some(stop), served }
    }

    /// Tells the server to stop; its end is waited for by who gets the handle.
    pub(crate) fn stop(&mut self) -> JoinHandle<Drained> {
        drop(self.stop.take());
        self.served.take().unwrap()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request on a connection of its own.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Open {
        let io = TokioIo::new(self.connect().await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        let response = tokio::time::timeout(PATIENCE, sender.send_request(request)).await.unwrap().unwrap();
        let (parts, body) = response.into_parts();
        Open { status: parts.status, headers: parts.headers, body, _sender: sender, connection }
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Whole {
        self.send(Method::GET, path, headers, b"").await.whole().await
    }

    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Whole {
        self.send(Method::POST, path, headers, body.to_string().as_bytes()).await.whole().await
    }

    /// Asks for a chat completion.
    pub(crate) async fn chat(&self, body: &Value) -> Whole {
        self.post("/v1/chat/completions", &[], body).await
    }

    /// Asks for a streamed chat completion and reads it to its end.
    pub(crate) async fn stream(&self, model: &str) -> Streamed {
        self.open_stream(model).await.streamed().await
    }

    pub(crate) async fn open_stream(&self, model: &str) -> Open {
        let body = json!({ "model": model, "stream": true, "stream_options": { "include_usage": true },
                           "messages": [{ "role": "user", "content": "tell me a story" }] });
        self.send(Method::POST, "/v1/chat/completions", &[], body.to_string().as_bytes()).await
    }

    /// What the admin API says.
    pub(crate) async fn admin(&self, path: &str) -> Value {
        let answer = self.get(&format!("/admin/v1/{path}"), &[("authorization", "Bearer fo-admin")]).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(served) = self.served.take() {
            served.abort();
        }
    }
}

/// One question.
pub(crate) fn question(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "hello" }] })
}

/// An answer of so many words, each a piece of its own.
pub(crate) fn words(count: usize) -> Scripted {
    Scripted::text((0..count).map(|at| format!("w{at} ")))
}

pub(crate) fn said(count: usize) -> String {
    let words: Vec<String> = (0..count).map(|at| format!("w{at} ")).collect();
    words.concat()
}

/// A response that has begun.
pub(crate) struct Open {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    _sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
    connection: JoinHandle<()>,
}

impl Open {
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.unwrap()?;
        Some(frame.unwrap().into_data().unwrap_or_default())
    }

    /// Reads until `text` has come.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let mut read = String::new();
        while !read.contains(text) {
            let more = self.next().await.unwrap_or_else(|| panic!("ended without {text:?}: {read}"));
            read.push_str(&String::from_utf8_lossy(&more));
        }
        read
    }

    pub(crate) async fn whole(self) -> Whole {
        let body = tokio::time::timeout(PATIENCE, self.body.collect()).await.unwrap().unwrap().to_bytes();
        Whole { status: self.status.as_u16(), headers: self.headers, body }
    }

    pub(crate) async fn streamed(self) -> Streamed {
        let whole = self.whole().await;
        Streamed::read(&whole)
    }

    /// Leaves, as a client whose process ends.
    pub(crate) fn leave(self) {
        self.connection.abort();
    }
}

/// A response, whole.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Whole {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The text of a chat completion.
    pub(crate) fn said(&self) -> String {
        self.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
    }
}

/// A streamed chat completion, as an SDK reads it.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Option<Value>,
    pub(crate) error: Option<Value>,
    pub(crate) models: Vec<String>,
    /// The sentinel came, and nothing after it.
    pub(crate) done: bool,
    pub(crate) comments: usize,
    pub(crate) raw: String,
}

impl Streamed {
    pub(crate) fn read(whole: &Whole) -> Self {
        let mut read = Self {
            status: whole.status,
            headers: whole.headers.clone(),
            raw: whole.text(),
            ..Self::default()
        };
        let kind = whole.header("content-type").unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            read.error = Some(whole.json()["error"].clone());
            return read;
        }
        for line in whole.text().lines() {
            if line.starts_with(':') {
                read.comments += 1;
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            assert!(!read.done, "after the end: {line}");
            if data == "[DONE]" {
                read.done = true;
                continue;
            }
            let event: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
            if !event["error"].is_null() {
                read.error = Some(event["error"].clone());
                continue;
            }
            assert!(read.error.is_none(), "after the error: {line}");
            read.models.push(event["model"].as_str().unwrap_or_default().to_owned());
            let choice = &event["choices"][0];
            read.text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
            if let Some(finish) = choice["finish_reason"].as_str() {
                read.finish = Some(finish.to_owned());
            }
            if !event["usage"].is_null() {
                read.usage = Some(event["usage"].clone());
            }
        }
        read
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// It ended as an answer ends.
    pub(crate) fn is_complete(&self) -> bool {
        self.done && self.finish.is_some() && self.error.is_none()
    }
}

/// Waits until the log of an upstream is as wanted.
pub(crate) async fn until(upstream: &Upstream, met: impl Fn(&[Attempt]) -> bool + Send + Sync) {
    tokio::time::timeout(PATIENCE, upstream.until(met)).await.expect("the upstream's log never got there");
}

//! One request for an answer: who asks, which chain, the run, and what the client gets.

use crate::body::Body;
use crate::dialect::{
    ClientDialect, ErrorBody, ErrorKind, HintKind, Inbound, Meta, SessionHint, StreamRenderer, parse_request,
    render_error, render_reply, unread,
};
use crate::failure;
use crate::gateway::{Gateway, State};
use crate::guard;
use crate::held::{Held, Keeping};
use crate::record::{Outcome, Record};
use crate::relay::{Relay, Silence};
use crate::rescue::{Continuation, Kept};
use crate::routes::{DEFAULT, Named, Target};
use crate::service::read_body;
use crate::settings::{Caller, hash};
use crate::telemetry::TraceParent;
use crate::token::hex;
use bytes::Bytes;
use failover::config::{SessionsFrom, StreamRescue};
use failover::provider::{AttemptFailure, ChatRequest, Dialect, DialectHeader, Reply, ReplyHead};
use failover::runner::plan::Visit;
use failover::runner::{Answer, RunError};
use failover::types::{FailoverReason, ModelRef, ProfileId, SessionId, Timestamp};
use failover::{Turn, UnknownName};
use futures_util::future::{Either, select};
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};
use hyper::body::Incoming;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

const REQUESTED: HeaderName = HeaderName::from_static("x-failover-requested");
const SERVED: HeaderName = HeaderName::from_static("x-failover-served");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-failover-attempts");
const REASON: HeaderName = HeaderName::from_static("x-failover-reason");
const LOST: HeaderName = HeaderName::from_static("x-failover-lost");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Room for the headers of an answer: with one more the map takes twice as much.
const TOLD: usize = 7;
/// As many losses are told by name, and so much of each.
const MAX_LOST: usize = 16;
const MAX_LOST_CHARS: usize = 48;
const SESSION: HeaderName = HeaderName::from_static("x-failover-session");
const CHAIN: HeaderName = HeaderName::from_static("x-failover-chain");
static OPENAI: [HeaderName; 1] = [HeaderName::from_static("openai-beta")];
static ANTHROPIC: [HeaderName; 2] =
    [HeaderName::from_static("anthropic-version"), HeaderName::from_static("anthropic-beta")];
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");

/// A request on its way: what is needed once its run has ended.
pub(crate) struct Asked {
    gateway: Gateway,
    state: Arc<State>,
    record: Box<Record>,
    dialect: ClientDialect,
    meta: Meta,
    /// The request of a route that goes on with answers that break off.
    continuation: Option<Box<Continuation>>,
    /// The provider's own bytes may be passed on.
    native: Option<Dialect>,
    /// As the client sent it: what is lost where it is written anew is looked for there.
    body: Bytes,
}

/// What the client is told instead of an answer.
struct Refused {
    body: ErrorBody,
    headers: HeaderMap,
}

impl From<ErrorBody> for Refused {
    fn from(body: ErrorBody) -> Self {
        Self { body, headers: HeaderMap::new() }
    }
}

/// Answers a request.
pub(crate) fn chat(
    gateway: Gateway,
    state: Arc<State>,
    dialect: ClientDialect,
    request: http::Request<Incoming>,
    loopback: bool,
) -> impl Future<Output = Response<Body>> + Send + 'static {
    let mut record = Record::begin(&gateway, dialect);
    // The rest of the head is not needed: a future keeps what it is given.
    let (http::request::Parts { headers, .. }, body) = request.into_parts();
    async move {
        let opened = open(&gateway, &state, dialect, headers, body, loopback, &mut record).await;
        let mut opened = match opened {
            Ok(opened) => opened,
            Err(body) => {
                record.close_with(Outcome::Refused, body.status, &body.message);
                return refuse(dialect, body.into());
            }
        };
        // Here to the end, or with who keeps the body for longer.
        let room = opened.room.take();
        let (asked, turn, way) = prepare(gateway, state, dialect, record, opened);
        match way {
            Way::Whole => asked.whole(turn).await,
            Way::Live => asked.live(turn).await,
            Way::Held { most } => asked.held(turn, room, most).await,
        }
    }
}

/// How an answer reaches its client.
enum Way {
    Whole,
    /// Piece by piece.
    Live,
    /// Piece by piece, once it is complete; it may be so long.
    Held {
        most: usize,
    },
}

/// A request that was read and may be asked.
struct Opened {
    turn: Box<Turn>,
    named: Option<Arc<Named>>,
    stream: bool,
    native: bool,
    include_usage: bool,
    body: Bytes,
    /// Held for as long as the body is.
    room: Option<OwnedSemaphorePermit>,
}

async fn open(
    gateway: &Gateway,
    state: &State,
    dialect: ClientDialect,
    headers: HeaderMap,
    body: Incoming,
    loopback: bool,
    record: &mut Record,
) -> Result<Opened, ErrorBody> {
    let headers = &headers;
    let caller = guard::caller(&state.settings, loopback, headers)?;
    record.caller = caller.map(|caller| Arc::clone(&caller.name));
    if gateway.telemetry().is_on() {
        record.parent = TraceParent::read(headers);
    }
    if gateway.is_draining() {
        return Err(
            ErrorBody::new(ErrorKind::Overloaded, "the server is shutting down").with_code("draining")
        );
    }
    let limits = &state.settings.limits;
    let (body, room) = read_body(body, headers, limits, gateway).await?;
    let inbound = parse_request(dialect, &body)?;
    let Inbound { model, stream, mut request, include_usage, session_hint, .. } = inbound;
    let native = request.native.is_some();
    request.headers = dialect_headers(dialect, headers);
    record.stream = stream;
    record.requested = model;
    request.stream = stream;
    let target = target(state, headers, caller, &record.requested)?;
    let mut turn = Box::new(Turn::new(request));
    let mut named = None;
    match target {
        Target::Model(model) => {
            record.route = "model".into();
            turn.model = Some(model);
        }
        Target::Route(found) => {
            record.route = Arc::clone(&found.name);
            turn.session = session(&found, caller, headers, session_hint.as_ref())?;
            turn.route = Some(Arc::clone(&found.route));
            named = Some(found);
        }
    }
    record.session.clone_from(&turn.session);
    Ok(Opened { turn, named, stream, native, include_usage, body, room })
}

/// Headers that say how the fields of a dialect are to be read. No other header of a client's goes to a provider: none that
/// says who asks, or on whose account.
fn dialect_headers(dialect: ClientDialect, headers: &HeaderMap) -> Vec<DialectHeader> {
    let names: &[HeaderName] = match dialect {
        ClientDialect::Messages => &ANTHROPIC,
        ClientDialect::Chat | ClientDialect::Responses => &OPENAI,
    };
    let mut given = Vec::new();
    for name in names {
        for value in headers.get_all(name).iter().filter_map(|value| value.to_str().ok()) {
            given.push(DialectHeader::new(dialect.into(), name.as_str(), value));
        }
    }
    given
}

/// What the request is to be answered by.
fn target(
    state: &State,
    headers: &HeaderMap,
    caller: Option<&Caller>,
    model: &str,
) -> Result<Target, ErrorBody> {
    if let Some(chain) = headers.get(&CHAIN) {
        if !caller.is_some_and(|caller| caller.trusted) {
            let text = "only callers whose token is marked as trusted may name a chain of their own";
            return Err(ErrorBody::new(ErrorKind::Permission, text).with_code("untrusted_chain"));
        }
        let bad = |why: String| ErrorBody::new(ErrorKind::InvalidRequest, format!("{CHAIN}: {why}"));
        let chain = chain.to_str().map_err(|_| bad("not a list of models".to_owned()))?;
        return state.routes.of_request(chain).map_err(bad);
    }
    let target = state.routes.find(model).map_err(|why| ErrorBody::new(ErrorKind::NotFound, why))?;
    if let Some(allowed) = caller.and_then(|caller| caller.routes.as_ref()) {
        let may = match &target {
            Target::Route(named) => allowed.contains(&*named.name),
            Target::Model(_) => false,
        };
        if !may {
            let text = format!("this token may not use {:?}", model.chars().take(80).collect::<String>());
            return Err(ErrorBody::new(ErrorKind::Permission, text).with_code("route_not_allowed"));
        }
    }
    if let Target::Model(choice) = &target {
        // Which providers and credentials there are is not for every client to read.
        let unknown = |unknown: UnknownName| ErrorBody::new(ErrorKind::NotFound, unknown.to_string());
        state.engine.check_choice(choice).map_err(unknown)?;
    }
    Ok(target)
}

/// Which session the request belongs to. Callers and routes do not meet in one, but the sessions of the default route are
/// called what their client calls them where nobody needs a token: the command line sees the same ones.
fn session(
    named: &Named,
    caller: Option<&Caller>,
    headers: &HeaderMap,
    hint: Option<&SessionHint>,
) -> Result<Option<SessionId>, ErrorBody> {
    let own = match named.sessions {
        SessionsFrom::Off => return Ok(None),
        SessionsFrom::Header | SessionsFrom::Auto => headers.get(&SESSION),
        _ => None,
    };
    let bad = |why: String| ErrorBody::new(ErrorKind::InvalidRequest, format!("{SESSION}: {why}"));
    let own = if let Some(value) = own {
        value.to_str().map_err(|_| bad("not a text".to_owned()))?.to_owned()
    } else {
        let stable = |hint: &&SessionHint| {
            matches!(hint.kind, HintKind::Conversation | HintKind::PromptCacheKey | HintKind::User)
        };
        let hint = hint.filter(|_| named.sessions == SessionsFrom::Auto).filter(stable);
        let Some(hint) = hint else { return Ok(None) };
        // The key may be somebody's name: what is stored and shown is its hash.
        let hash = hash(hint.value.as_bytes());
        format!("key-{}", hex(hash.get(..8).unwrap_or(&hash)))
    };
    let mut id = String::new();
    if let Some(caller) = caller {
        id.push_str(&caller.name);
        id.push(':');
    }
    if &*named.name != DEFAULT {
        id.push_str(&named.name);
        id.push(':');
    }
    id.push_str(&own);
    SessionId::new(id).map(Some).map_err(|error| bad(error.to_string()))
}

fn prepare(
    gateway: Gateway,
    state: Arc<State>,
    dialect: ClientDialect,
    record: Box<Record>,
    opened: Opened,
) -> (Asked, Box<Turn>, Way) {
    let Opened { turn, named, stream, native, include_usage, body, .. } = opened;
    let created = record.begun.as_millis() / 1_000;
    let mut meta =
        Meta::new(gateway.answer_id(), record.requested.clone(), created).with_usage(include_usage);
    meta.asked = match (&named, &turn.model) {
        (Some(named), _) => Some(named.route.selection().model().provider().clone()),
        (None, model) => model.as_ref().map(|selector| selector.model.provider().clone()),
    };
    let rescue = if stream {
        named.as_ref().map_or(StreamRescue::Off, |named| named.rescue)
    } else {
        StreamRescue::Off
    };
    let continuation = named.as_ref().filter(|_| rescue == StreamRescue::Continue).and_then(|named| {
        let route = Arc::clone(named.continuer.as_ref()?);
        let request: ChatRequest = turn.request.clone();
        let asked = meta.asked.clone();
        let continuation = Continuation::new(Arc::clone(&state), route, request, asked);
        Some(Box::new(continuation))
    });
    // An answer that somebody else may go on with is written anew throughout, so that it is of one piece.
    let native = Some(Dialect::from(dialect)).filter(|_| native && continuation.is_none());
    let asked = Asked { gateway, state, record, dialect, meta, continuation, native, body };
    let way = match (rescue, named) {
        _ if !stream => Way::Whole,
        (StreamRescue::Buffer, Some(named)) => Way::Held { most: named.buffer_bytes },
        _ => Way::Live,
    };
    (asked, turn, way)
}

impl Asked {
    async fn whole(mut self, turn: Box<Turn>) -> Response<Body> {
        let answer = match self.state.engine.chat(&turn).await {
            Ok(answer) => answer,
            Err(error) => return self.failed(&error),
        };
        let Answer { value, model, profile, trail, .. } = answer;
        let reply = match value {
            Reply::Complete(reply) => reply,
            Reply::Stream(stream) => match stream.into_reply().await {
                Ok(reply) => reply,
                Err(failure) => {
                    let reason = self.state.engine.runner().judge(&model, &failure).reason;
                    let (attempts, first) = failure::summary(&trail);
                    let headers = told(&self.record.requested, None, attempts, Some(first.unwrap_or(reason)));
                    self.record.walked(trail, attempts, Some(reason), None);
                    let body = failure::broken_off(&model.to_string(), reason, &failure);
                    self.record.close_with(Outcome::Failed, body.status, &body.message);
                    return refuse(self.dialect, Refused { body, headers });
                }
            },
        };
        let headers = self.walked(trail, &model, profile, &reply.head);
        self.record.usage = reply.usage;
        self.record.finish = Some(reply.finish.clone());
        self.record.content();
        let bytes = match &reply.native {
            Some(own) if self.native.is_some() => own.clone(),
            _ => render_reply(self.dialect, &reply, &self.meta),
        };
        self.record.close(Outcome::Answered, StatusCode::OK);
        let mut response = Response::new(Body::Whole(bytes));
        *response.headers_mut() = headers;
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        response
    }

    async fn live(self, turn: Box<Turn>) -> Response<Body> {
        match self.state.engine.chat(&turn).await {
            Ok(answer) => {
                let native = self.native;
                let (headers, relay) = self.relay(answer.map(|reply| Kept::of(reply, native)));
                streaming(headers, Body::Relay(Box::new(relay)))
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Nothing is let through before the answer is complete. While its client need not be kept waiting, a failure still
    /// has its true status; after that the response begins, with comments.
    async fn held(self, turn: Box<Turn>, room: Option<OwnedSemaphorePermit>, most: usize) -> Response<Body> {
        let (state, native, begun) = (Arc::clone(&self.state), self.native, self.record.begun);
        let keeping: Keeping = Box::pin(async move {
            let _room = room;
            let answer = state.engine.chat_with(&turn, |reply| Kept::whole(reply, native, most)).await?;
            let watcher = state.engine.watcher(&answer, begun);
            Ok(answer.map(|kept| kept.watched_by(watcher)))
        });
        let clock = Arc::clone(self.gateway.clock());
        let every = self.state.settings.keepalive;
        let patience = clock.sleep_until(clock.now().after(every));
        match select(keeping, patience).await {
            Either::Left((Ok(answer), _)) => {
                let (headers, relay) = self.relay(answer);
                streaming(headers, Body::Relay(Box::new(relay)))
            }
            Either::Left((Err(error), _)) => self.failed(&error),
            Either::Right(((), keeping)) => {
                let mut headers = HeaderMap::new();
                put(&mut headers, REQUESTED, &self.record.requested);
                let renderer = StreamRenderer::new(self.dialect, self.meta.clone());
                let silence = Silence::new(Arc::clone(&clock), every);
                streaming(headers, Body::Held(Box::new(Held::new(keeping, self, renderer, silence))))
            }
        }
    }

    /// Takes note of who answered; gives the headers that tell it.
    fn walked(
        &mut self,
        trail: Vec<Visit>,
        served: &ModelRef,
        profile: ProfileId,
        head: &ReplyHead,
    ) -> HeaderMap {
        let (attempts, reason) = failure::summary(&trail);
        let model = served.to_string();
        let fallback = trail.last().is_some_and(|visit| visit.candidate > 0);
        let mut headers =
            told(&self.record.requested, Some(&model), attempts, reason.filter(|_| fallback || attempts > 1));
        let unread = if head.passed { Vec::new() } else { unread(self.dialect, &self.body) };
        let lost: Vec<&str> = head.losses.iter().map(|loss| loss.what.as_str()).collect();
        let lost = [lost, unread.iter().map(String::as_str).collect()].concat();
        if !lost.is_empty() {
            let lost = names(&lost);
            put(&mut headers, LOST, &lost);
            self.record.lost = Some(lost);
        }
        self.record.walked(trail, attempts, reason, Some((served.clone(), profile)));
        self.record.answer_id = Some(self.meta.id.clone());
        self.meta.model = model;
        headers
    }

    /// The answer, on its way.
    pub(crate) fn relay(mut self, answer: Answer<Kept>) -> (HeaderMap, Relay) {
        let Answer { value, model, profile, trail, .. } = answer;
        let headers = self.walked(trail, &model, profile, &value.head);
        let renderer = StreamRenderer::new(self.dialect, self.meta);
        let silence = Silence::new(Arc::clone(self.gateway.clock()), self.state.settings.keepalive);
        let relay = Relay::new(self.state, self.record, model, renderer, value, self.continuation, silence);
        (headers, relay)
    }

    /// Nobody answered, and the response has not begun.
    fn failed(mut self, error: &RunError<AttemptFailure>) -> Response<Body> {
        let body = self.account(error);
        let (attempts, reason) = failure::summary(error.trail());
        let mut headers = told(&self.record.requested, None, attempts, reason);
        if let Some(wait) = error.soonest().map(|at| wait(at, self.gateway.clock().now())) {
            headers.insert(RETRY_AFTER, wait.into());
        }
        refuse(self.dialect, Refused { body, headers })
    }

    /// Nobody answered, and the response has begun.
    pub(crate) fn failed_late(mut self, error: &RunError<AttemptFailure>) -> ErrorBody {
        self.account(error)
    }

    fn account(&mut self, error: &RunError<AttemptFailure>) -> ErrorBody {
        let body = failure::body(error);
        let (attempts, reason) = failure::summary(error.trail());
        self.record.walked(error.trail().to_vec(), attempts, reason, None);
        self.record.close_with(Outcome::Failed, body.status, &body.message);
        body
    }
}

/// Whole seconds until a time, and one at least: a client that comes back at once comes too early.
fn wait(until: Timestamp, now: Timestamp) -> u64 {
    until.since(now).as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX).max(1)
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // A name that no header can hold was refused long before; one that slips through is left out.
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

fn told(requested: &str, served: Option<&str>, attempts: u32, reason: Option<FailoverReason>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(TOLD);
    put(&mut headers, REQUESTED, requested);
    if let Some(served) = served {
        put(&mut headers, SERVED, served);
    }
    headers.insert(ATTEMPTS, attempts.into());
    if let Some(reason) = reason {
        headers.insert(REASON, HeaderValue::from_static(reason.as_str()));
    }
    headers
}

/// The names of what was left out of the request, as a header has room for them: they may be the client's own.
fn names(lost: &[&str]) -> String {
    let plain = |letter: char| if letter.is_ascii_graphic() && letter != ',' { letter } else { '_' };
    let name = |what: &&str| what.chars().take(MAX_LOST_CHARS).map(plain).collect::<String>();
    let mut told: Vec<String> = lost.iter().take(MAX_LOST).map(name).collect();
    if lost.len() > MAX_LOST {
        told.push(format!("+{}", lost.len() - MAX_LOST));
    }
    told.join(", ")
}

fn streaming(mut headers: HeaderMap, body: Body) -> Response<Body> {
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NO_CACHE);
    // Proxies in between must not gather what is meant to come piece by piece.
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

fn refuse(dialect: ClientDialect, refused: Refused) -> Response<Body> {
    let Refused { body, mut headers } = refused;
    let (status, bytes): (StatusCode, Bytes) = render_error(dialect, &body);
    headers.insert(CONTENT_TYPE, JSON);
    if body.kind == ErrorKind::Authentication {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if body.code.as_deref() == Some("draining") {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    let mut response = Response::new(Body::Whole(bytes));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// An answer to a request that did not come so far as to be asked.
pub(crate) fn refusal(dialect: ClientDialect, body: ErrorBody) -> Response<Body> {
    refuse(dialect, body.into())
}

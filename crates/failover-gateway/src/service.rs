//! Which path leads where.

use crate::admin;
use crate::body::Body;
use crate::chat::{chat, refusal};
use crate::dialect::{ClientDialect, ErrorBody, ErrorKind, ModelEntry, ModelsShape, render_models};
use crate::gateway::{Gateway, State};
use crate::guard;
use crate::settings::Limits;
use bytes::{Bytes, BytesMut};
use failover::types::BoxFuture;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONTENT_LENGTH,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, ORIGIN, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use std::future::{Future, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::OwnedSemaphorePermit;

/// The page looks things up by itself and shows nothing of anybody else.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                           connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE: &str = include_str!("status.html");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const EXPOSED: &str =
    "x-failover-requested, x-failover-served, x-failover-attempts, x-failover-reason, retry-after";
const ASKED_HEADERS: &str = "authorization, content-type, x-api-key, anthropic-version, anthropic-beta, \
                             x-failover-session, x-failover-chain";

/// An answer on its way, in a box that goes once the response has begun: a connection keeps room for its service's
/// future.
pub(crate) type Handled = BoxFuture<'static, Response<Body>>;

/// Answers one request, whatever it is. What needs no waiting is done here; the future is no larger than it must be.
pub(crate) fn handle(gateway: &Gateway, request: Request<Incoming>, loopback: bool) -> Handled {
    let state = gateway.state();
    let dialect = dialect(request.uri().path(), request.headers());
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let most = state.settings.limits.header_bytes;
    if head_bytes(uri, headers) > most {
        return Box::pin(ready(refusal(dialect, head_too_long(most))));
    }
    if let Err(refused) = guard::check_browser(&state.settings, loopback, method, uri, headers) {
        return Box::pin(ready(refusal(dialect, refused)));
    }
    let origin = headers.contains_key(ORIGIN);
    let origin = if origin { guard::allowed_origin(&state.settings, headers).cloned() } else { None };
    if let Some(origin) = &origin
        && method == Method::OPTIONS
    {
        return Box::pin(ready(preflight(origin)));
    }
    let answer = route(gateway, state, request, dialect, loopback);
    let Some(origin) = origin else { return answer };
    Box::pin(async move {
        let mut response = answer.await;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(VARY, HeaderValue::from_static("origin"));
        response
    })
}

/// How long a request's head is. The protocols bound what they take in before they have read it, by a multiple at most.
fn head_bytes(uri: &Uri, headers: &HeaderMap) -> usize {
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    headers.iter().fold(target, |sum, (name, value)| sum + name.as_str().len() + value.len() + 4)
}

fn head_too_long(most: usize) -> ErrorBody {
    let text = format!("the head is longer than {most} bytes; gateway.limits.headerBytes sets the bound");
    let body = ErrorBody::new(ErrorKind::TooLarge, text);
    body.with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
}

/// In which dialect to say that something is wrong.
fn dialect(path: &str, headers: &HeaderMap) -> ClientDialect {
    match path {
        "/v1/chat/completions" => ClientDialect::Chat,
        "/v1/responses" => ClientDialect::Responses,
        "/v1/messages" => ClientDialect::Messages,
        _ if path.starts_with("/v1/messages/") || headers.contains_key(&ANTHROPIC_VERSION) => {
            ClientDialect::Messages
        }
        _ => ClientDialect::Chat,
    }
}

fn route(
    gateway: &Gateway,
    state: Arc<State>,
    request: Request<Incoming>,
    dialect: ClientDialect,
    loopback: bool,
) -> Handled {
    let path = request.uri().path();
    let read = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = match path {
        "/v1/chat/completions" | "/v1/responses" | "/v1/messages" if *request.method() == Method::POST => {
            return Box::pin(chat(gateway.clone(), state, dialect, request, loopback));
        }
        path if path.starts_with("/admin/v1/") => {
            let gateway = gateway.clone();
            return Box::pin(async move { admin::handle(&gateway, request).await });
        }
        "/v1/chat/completions" | "/v1/responses" | "/v1/messages" => only(dialect, "POST"),
        "/v1/models" if read => models(gateway, request.headers(), dialect, loopback, None),
        "/healthz" if read => text(StatusCode::OK, "ok\n"),
        "/readyz" if read => readiness(gateway),
        "/metrics" if read => {
            let (gateway, headers) = (gateway.clone(), request.headers().clone());
            return Box::pin(async move { metrics(&gateway, &headers, loopback).await });
        }
        "/" if read => {
            let mut response = text(StatusCode::FOUND, "");
            response.headers_mut().insert(LOCATION, HeaderValue::from_static("/status"));
            response
        }
        "/status" if read => page(),
        "/v1/models" | "/healthz" | "/readyz" | "/metrics" | "/" | "/status" => only(dialect, "GET"),
        path => match path.strip_prefix("/v1/models/").filter(|_| read) {
            Some(id) => models(gateway, request.headers(), dialect, loopback, Some(&percent_decoded(id))),
            None => nothing(dialect, path),
        },
    };
    Box::pin(ready(response))
}

fn nothing(dialect: ClientDialect, path: &str) -> Response<Body> {
    let text = format!(
        "there is nothing at {}; clients speak to /v1/chat/completions, /v1/responses and /v1/messages",
        path.chars().take(80).collect::<String>()
    );
    refusal(dialect, ErrorBody::new(ErrorKind::NotFound, text).with_code("not_found"))
}

fn only(dialect: ClientDialect, method: &'static str) -> Response<Body> {
    let body = ErrorBody::new(ErrorKind::InvalidRequest, format!("only {method} is understood here"));
    let mut response = refusal(dialect, body.with_status(StatusCode::METHOD_NOT_ALLOWED));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(method));
    response
}

fn preflight(origin: &HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ASKED_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    headers.insert(VARY, HeaderValue::from_static("origin"));
    response
}

/// A short plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// JSON that is not an answer of a model.
pub(crate) fn json(status: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = text(status, bytes);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn page() -> Response<Body> {
    let mut response = text(StatusCode::OK, PAGE);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    response
}

fn readiness(gateway: &Gateway) -> Response<Body> {
    if gateway.is_draining() {
        return text(StatusCode::SERVICE_UNAVAILABLE, "draining\n");
    }
    text(StatusCode::OK, "ready\n")
}

/// Numbers tell less than the admin API, and scrapers are simple: on loopback they need no token.
async fn metrics(gateway: &Gateway, headers: &HeaderMap, loopback: bool) -> Response<Body> {
    let state = gateway.state();
    let allowed = guard::caller(&state.settings, loopback, headers).map(|_| ());
    if let Err(refused) = allowed.or_else(|_| guard::admin(&state.settings, headers).map(|_| ())) {
        return refusal(ClientDialect::Chat, refused);
    }
    let profiles = admin::profile_states(&state, gateway.clock().now()).await;
    let mut response = text(StatusCode::OK, gateway.metrics().render(&profiles));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn models(
    gateway: &Gateway,
    headers: &HeaderMap,
    dialect: ClientDialect,
    loopback: bool,
    only: Option<&str>,
) -> Response<Body> {
    let state = gateway.state();
    let caller = match guard::caller(&state.settings, loopback, headers) {
        Ok(caller) => caller,
        Err(refused) => return refusal(dialect, refused),
    };
    let allowed = caller.and_then(|caller| caller.routes.as_ref());
    let mut entries: Vec<ModelEntry> = state
        .routes
        .names()
        .into_iter()
        .filter(|name| allowed.is_none_or(|allowed| allowed.contains(*name)))
        .map(|name| ModelEntry::new(name, "failover"))
        .collect();
    if allowed.is_none() {
        let models = state.routes.models().iter();
        entries.extend(models.map(|model| ModelEntry::new(model.to_string(), model.provider().as_str())));
    }
    let shape = match dialect {
        ClientDialect::Messages => ModelsShape::Anthropic,
        ClientDialect::Chat | ClientDialect::Responses => ModelsShape::OpenAi,
    };
    let Some(only) = only else { return json(StatusCode::OK, render_models(shape, &entries)) };
    match entries.iter().find(|entry| entry.id == only) {
        Some(entry) => json(StatusCode::OK, one_model(shape, entry)),
        None => refusal(dialect, ErrorBody::new(ErrorKind::NotFound, "there is no such model here")),
    }
}

/// The only entry of a list of one.
fn one_model(shape: ModelsShape, entry: &ModelEntry) -> Bytes {
    let list = render_models(shape, std::slice::from_ref(entry));
    let read: Option<serde_json::Value> = serde_json::from_slice(&list).ok();
    read.and_then(|list| Some(list.pointer("/data/0")?.to_string())).unwrap_or_default().into()
}

/// A path segment with its escapes read; what is no escape stays.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = more.get(..2).filter(|_| *first == b'%').and_then(|pair| {
            let digits = std::str::from_utf8(pair).ok().filter(|text| !text.starts_with('+'))?;
            u8::from_str_radix(digits, 16).ok()
        });
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { more.get(2..).unwrap_or_default() } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A body, and the room that it takes up while it is there.
pub(crate) type Read = (Bytes, Option<OwnedSemaphorePermit>);

/// Reads a request's body, within the bounds of size, of time, and of what all bodies together may take.
pub(crate) async fn read_body(
    body: Incoming,
    headers: &HeaderMap,
    limits: &Limits,
    gateway: &Gateway,
) -> Result<Read, ErrorBody> {
    let (room, clock) = (gateway.body_room(), &**gateway.clock());
    let most = limits.body_bytes;
    let too_large = || {
        let text = format!("the body is longer than {most} bytes; gateway.limits.bodyBytes sets the bound");
        ErrorBody::new(ErrorKind::TooLarge, text)
    };
    let promised = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if promised.is_some_and(|promised| promised > most as u64) {
        return Err(too_large());
    }
    let read = pin!(async {
        let mut body = body;
        let mut gathered = BytesMut::new();
        let mut taken: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let broken = |_| ErrorBody::new(ErrorKind::InvalidRequest, "the body broke off");
            let Ok(bytes) = frame.map_err(broken)?.into_data() else { continue };
            if gathered.is_empty() && body.is_end_stream() && bytes.len() <= most {
                return Ok((bytes, None));
            }
            if gathered.len() + bytes.len() > most {
                return Err(too_large());
            }
            if gathered.is_empty() {
                let promised = promised.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
                // What is promised is made room for only up to a point: a promise costs its client nothing.
                gathered.reserve(promised.min(1024 * 1024));
            }
            let wanted = (gathered.len() + bytes.len()) / 1024;
            let more = wanted.saturating_sub(taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
            if more > 0 {
                let more = u32::try_from(more).unwrap_or(u32::MAX);
                let Ok(more) = Arc::clone(room).try_acquire_many_owned(more) else {
                    let text = "the bodies of other requests take up all the room there is; try again";
                    return Err(ErrorBody::new(ErrorKind::Overloaded, text).with_code("no_room"));
                };
                match &mut taken {
                    Some(taken) => taken.merge(more),
                    None => taken = Some(more),
                }
            }
            gathered.extend_from_slice(&bytes);
        }
        Ok((gathered.freeze(), taken))
    });
    let late = async { clock.sleep_until(clock.now().after(limits.body)).await };
    let Some(read) = in_time(read, late).await else {
        let text = format!("the body did not come within {} ms", limits.body.as_millis());
        return Err(ErrorBody::new(ErrorKind::Timeout, text).with_status(StatusCode::REQUEST_TIMEOUT));
    };
    read
}

/// The output, unless `late` is there first. A timer is set only for what does not come at once: a connection hands
/// over what it has when it is polled again, after it was asked.
async fn in_time<T>(
    mut work: Pin<&mut impl Future<Output = T>>,
    late: impl Future<Output = ()>,
) -> Option<T> {
    let mut asked = false;
    let mut late = pin!(late);
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        if !std::mem::replace(&mut asked, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        late.as_mut().poll(cx).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("openai%2Fgpt-5", "openai/gpt-5")]
    #[test_case("a%", "a%")]
    #[test_case("a%zz%41", "a%zzA")]
    #[test_case("%+1", "%+1")]
    fn escapes(text: &str, expected: &str) {
        assert_eq!(percent_decoded(text), expected);
    }
}

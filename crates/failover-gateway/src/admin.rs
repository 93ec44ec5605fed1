//! What operators see and steer: `/admin/v1/…`, for holders of an admin token only.

use crate::body::Body;
use crate::chat::refusal;
use crate::dialect::{ClientDialect, ErrorBody, ErrorKind};
use crate::gateway::{Gateway, State};
use crate::guard;
use crate::metrics::ProfileState;
use crate::service::{json, percent_decoded, read_body};
use failover::auth::{ClearScope, UsageStats, WindowScope, availability, clear, pause, resume};
use failover::provider::ChatRequest;
use failover::runner::health::Subject;
use failover::session::{ProbePolicy, ResetKind, SessionKey, reset, select_user, status as session_status};
use failover::types::{FailoverReason, ModelRef, ModelSelector, ProfileId, SessionId, Timestamp};
use failover::{Engine, Turn, UnknownName};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Sessions that are looked at for one answer, and those that are shown.
const LOOKED_AT: usize = 2_000;
const SHOWN: usize = 100;
const PAGE: usize = 200;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WindowShown {
    scope: String,
    reason: FailoverReason,
    until: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileShown {
    profile: ProfileId,
    provider: String,
    /// `usable`, `cooling`, `disabled`, `blocked` or `paused`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<FailoverReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    windows: Vec<WindowShown>,
    pauses: Vec<String>,
    errors: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<Timestamp>,
}

fn scope(scope: &WindowScope) -> String {
    match scope {
        WindowScope::Profile => "profile".to_owned(),
        WindowScope::Model(model) => model.to_string(),
    }
}

fn profile(engine: &Engine, id: &ProfileId, provider: &str, now: Timestamp) -> ProfileShown {
    let usage = engine.runner().health().usage(&Subject::Profile(id.clone()));
    let available = availability(&usage, None, now);
    let (state, reason, until) = (available.code(), available.reason(), available.until());
    let window = |window: &failover::auth::Window| WindowShown {
        scope: scope(&window.scope),
        reason: window.reason,
        until: window.until,
    };
    ProfileShown {
        profile: id.clone(),
        provider: provider.to_owned(),
        state,
        reason,
        until,
        windows: usage.active(now).map(window).collect(),
        pauses: usage.pauses().map(|pause| scope(&pause.scope)).collect(),
        errors: usage.error_count(),
        last_used: usage.last_used(),
        last_failure: usage.last_failure_at(),
    }
}

fn profiles(engine: &Engine, now: Timestamp) -> Vec<ProfileShown> {
    let mut all: Vec<ProfileShown> = engine
        .profiles_by_provider()
        .iter()
        .flat_map(|(provider, ids)| ids.iter().map(|id| profile(engine, id, provider.as_str(), now)))
        .collect();
    all.sort_by(|a, b| a.profile.cmp(&b.profile));
    all
}

/// How long the store is asked for what other processes know.
const LOOK: Duration = Duration::from_secs(1);

/// Learns what other processes have done to profiles (requirement K-3); where the store is too slow, what is known here
/// is shown.
async fn look(state: &State) {
    let _ = tokio::time::timeout(LOOK, state.engine.runner().reread_health()).await;
}

/// Every profile's state, for metrics.
pub(crate) async fn profile_states(state: &State, now: Timestamp) -> Vec<ProfileState> {
    look(state).await;
    let shown = profiles(&state.engine, now).into_iter();
    shown
        .map(|shown| {
            let last = shown.windows.iter().map(|window| window.until).max();
            ProfileState {
                profile: shown.profile.to_string(),
                usable: shown.state == "usable",
                window: last.map_or(Duration::ZERO, |until| until.since(now)),
            }
        })
        .collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionShown {
    session: String,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<ModelRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answering: Option<ModelRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<FailoverReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_probe: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileId>,
    /// Who pinned it: `auto` or `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_source: Option<&'static str>,
}

/// Sessions whose answers come from another model than was chosen, and those that a person chose a model for.
async fn sessions(engine: &Engine, now: Timestamp) -> Result<Vec<SessionShown>, String> {
    let (mut shown, mut after, mut seen) = (Vec::new(), None, 0);
    while seen < LOOKED_AT {
        let page = engine.sessions().list(engine.agent(), after.as_ref(), PAGE).await;
        let page = page.map_err(|error| error.to_string())?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        seen += page.len();
        for (session, entry) in page {
            let status = session_status(&entry, None, &ProbePolicy::default(), now);
            if status.answering.is_none() && !status.stored.is_a_choice() {
                continue;
            }
            let free = status.origin.as_ref().and_then(|model| engine.origin_free_at(&entry, model, now));
            let next = failover::session::next_probe(&entry, free, &ProbePolicy::default(), now);
            shown.push(SessionShown {
                session: session.to_string(),
                source: status.source,
                selected: status.selected,
                answering: status.answering,
                reason: status.reason,
                since: status.since,
                next_probe: next,
                profile_source: status.pin.as_ref().map(|pin| pin.owner.as_str()),
                profile: status.pin.map(|pin| pin.profile),
            });
            if shown.len() >= SHOWN {
                return Ok(shown);
            }
        }
    }
    Ok(shown)
}

/// What a `POST` may say.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Order {
    model: Option<String>,
    /// As for a new conversation: what a person chose for the session goes, too.
    new: bool,
}

fn refused(kind: ErrorKind, text: impl Into<String>) -> Response<Body> {
    refusal(ClientDialect::Chat, ErrorBody::new(kind, text))
}

fn unknown(unknown: &UnknownName) -> Response<Body> {
    refused(ErrorKind::InvalidRequest, format!("{unknown}; {}", unknown.hint()))
}

fn done(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(bytes) => json(StatusCode::OK, bytes),
        Err(error) => refused(ErrorKind::Server, error.to_string()),
    }
}

/// Answers a request to the admin API.
pub(crate) async fn handle(gateway: &Gateway, request: Request<Incoming>) -> Response<Body> {
    let state = gateway.state();
    let who = match guard::admin(&state.settings, request.headers()) {
        Ok(admin) => Arc::clone(&admin.name),
        Err(refused) => return refusal(ClientDialect::Chat, refused),
    };
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().strip_prefix("/admin/v1/").unwrap_or_default();
    let steps: Vec<String> = path.split('/').map(percent_decoded).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let now = gateway.clock().now();
    let after = parts.uri.query().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("after="));
    let after = after.and_then(|after| after.parse().ok()).unwrap_or(0);
    if parts.method == Method::GET || parts.method == Method::HEAD {
        look(&state).await;
        return match steps.as_slice() {
            ["status"] => done(&status(gateway, &state, after, now).await),
            ["decisions"] => done(&json!({ "now": now, "decisions": gateway.board().decisions(after) })),
            ["profiles"] => done(&json!({ "now": now, "profiles": profiles(&state.engine, now) })),
            ["sessions"] => match sessions(&state.engine, now).await {
                Ok(sessions) => done(&json!({ "now": now, "sessions": sessions })),
                Err(why) => refused(ErrorKind::Server, why),
            },
            _ => refused(ErrorKind::NotFound, "status, decisions, profiles and sessions can be read here"),
        };
    }
    if parts.method != Method::POST {
        let body = ErrorBody::new(ErrorKind::InvalidRequest, "only GET and POST are understood here");
        return refusal(ClientDialect::Chat, body.with_status(StatusCode::METHOD_NOT_ALLOWED));
    }
    let body = match read_body(body, &parts.headers, &state.settings.limits, gateway).await {
        Ok((body, _)) => body,
        Err(refused) => return refusal(ClientDialect::Chat, refused),
    };
    let order: Order = match body.as_ref() {
        [] => Order::default(),
        bytes => match serde_json::from_slice(bytes) {
            Ok(order) => order,
            Err(error) => {
                return refused(ErrorKind::InvalidRequest, format!("the body is not understood: {error}"));
            }
        },
    };
    tracing::info!(target: "failover_gateway::admin", who = &*who, path, "admin request");
    match steps.as_slice() {
        ["profiles", id, verb] => steer(&state, id, verb, &order, &who, now).await,
        ["sessions", id, verb] => session(&state.engine, id, verb, &order, now).await,
        ["reload"] => match gateway.reload_file().await {
            Ok(warnings) => done(&json!({ "reloaded": true, "warnings": warnings })),
            Err(error) => refused(ErrorKind::InvalidRequest, error),
        },
        _ => refused(
            ErrorKind::NotFound,
            "profiles/{id}/clear|pause|resume|probe, sessions/{id}/reset|select and reload can be posted here",
        ),
    }
}

async fn status(gateway: &Gateway, state: &State, after: u64, now: Timestamp) -> Value {
    let engine = &state.engine;
    let routes: Vec<Value> = {
        let mut routes: Vec<_> = state.routes.iter().collect();
        routes.sort_by(|a, b| a.name.cmp(&b.name));
        let chain = |route: &failover::Route| -> Vec<ModelRef> {
            route.candidates().iter().map(|candidate| candidate.model.clone()).collect()
        };
        routes.iter().map(|named| json!({ "name": &*named.name, "chain": chain(&named.route) })).collect()
    };
    let (sessions, fault) = match sessions(engine, now).await {
        Ok(sessions) => (sessions, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    json!({
        "now": now,
        "version": env!("CARGO_PKG_VERSION"),
        "agent": engine.agent(),
        "begun": gateway.begun(),
        "draining": gateway.is_draining(),
        "inFlight": gateway.metrics().in_flight(),
        "routes": routes,
        "profiles": profiles(engine, now),
        "sessions": sessions,
        "sessionsFault": fault,
        "decisions": gateway.board().decisions(after),
    })
}

async fn steer(
    state: &State,
    id: &str,
    verb: &str,
    order: &Order,
    who: &str,
    now: Timestamp,
) -> Response<Body> {
    let engine = &state.engine;
    let mut known = engine.profiles_by_provider().into_values().flatten();
    let Some(id) = known.find(|known| known.as_str() == id) else {
        return refused(ErrorKind::NotFound, format!("there is no profile {id:?}; see profiles"));
    };
    match verb {
        "clear" | "pause" | "resume" => {}
        "probe" => return probe(state, &id, order, now).await,
        _ => return refused(ErrorKind::NotFound, "clear, pause, resume or probe"),
    }
    if order.new {
        return refused(ErrorKind::InvalidRequest, "`new` is for sessions/{id}/reset");
    }
    let scope = match &order.model {
        None => WindowScope::Profile,
        Some(model) => match engine.scope_meant(&Subject::Profile(id.clone()), model, verb != "pause") {
            Ok(scope) => scope,
            Err(why) => return unknown(&why),
        },
    };
    let mut full = false;
    let change = |usage: &UsageStats| match verb {
        "clear" => {
            let scope = match &scope {
                WindowScope::Profile => ClearScope::All,
                WindowScope::Model(model) => ClearScope::Model(Arc::clone(model)),
            };
            clear(usage, &scope, now)
        }
        "pause" => pause(usage, scope.clone(), who, now).unwrap_or_else(|_| {
            full = true;
            usage.clone()
        }),
        _ => resume(usage, scope.clone(), who, now),
    };
    // What only this process knows so far must not come back over what is decided now.
    engine.flush().await;
    let changed = engine.profiles().steer_usage(&id, change).await;
    if full {
        return refused(
            ErrorKind::InvalidRequest,
            "this profile has too many pauses; pause the whole of it instead",
        );
    }
    match changed {
        Ok(usage) => {
            engine.runner().health().learn(&Subject::Profile(id.clone()), &usage, now);
            done(&profile(engine, &id, id.provider(), now))
        }
        Err(error) => refused(ErrorKind::Server, error.to_string()),
    }
}

/// Asks the profile's provider something short, now.
async fn probe(state: &State, id: &ProfileId, order: &Order, now: Timestamp) -> Response<Body> {
    let (engine, provider) = (&state.engine, id.provider_id());
    let named = match &order.model {
        Some(model) => match state.engine.model_meant(&provider, model) {
            Ok(model) => Some(model),
            Err(why) => return unknown(&why),
        },
        None => state.routes.models().iter().find(|model| *model.provider() == provider).cloned(),
    };
    let Some(model) = named else {
        let text = "which model? none of this provider's is in a chain; post {\"model\": \"…\"}";
        return refused(ErrorKind::InvalidRequest, text);
    };
    let request = ChatRequest::prompt("ping").with_max_tokens(16);
    let turn = Turn::new(request).with_model(ModelSelector::new(model.clone(), Some(id.clone())));
    let outcome = match engine.chat(&turn).await {
        Ok(_) => json!({ "ok": true, "model": model }),
        Err(error) => {
            let body = crate::failure::body(&error);
            json!({ "ok": false, "model": model, "code": body.code, "message": body.message })
        }
    };
    engine.flush().await;
    let shown = profile(engine, id, id.provider(), now);
    done(&json!({ "probe": outcome, "profile": shown }))
}

async fn session(engine: &Engine, id: &str, verb: &str, order: &Order, now: Timestamp) -> Response<Body> {
    let id = match SessionId::new(id) {
        Ok(id) => id,
        Err(error) => return refused(ErrorKind::InvalidRequest, error.to_string()),
    };
    let key = SessionKey::new(engine.agent().clone(), id);
    let changed = match (verb, order.model.as_deref()) {
        ("reset", None) => {
            let kind = if order.new { ResetKind::All } else { ResetKind::Reset };
            engine.sessions().update(&key, |entry| Some(reset(entry, kind))).await
        }
        ("reset", Some(_)) => {
            return refused(ErrorKind::InvalidRequest, "a reset takes no model; `select` chooses one");
        }
        ("select", _) if order.new => {
            return refused(ErrorKind::InvalidRequest, "`new` is for sessions/{id}/reset");
        }
        ("select", Some(model)) => {
            let model = match engine.chain_config().aliases.read(model) {
                Ok(model) => model,
                Err(error) => return refused(ErrorKind::InvalidRequest, error.to_string()),
            };
            if let Err(why) = engine.check_selection(&model) {
                return unknown(&why);
            }
            engine.sessions().update(&key, |entry| Some(select_user(entry, &model, now))).await
        }
        ("select", None) => {
            return refused(ErrorKind::InvalidRequest, "post {\"model\": \"provider/model\"}");
        }
        _ => return refused(ErrorKind::NotFound, "reset or select"),
    };
    match changed {
        Ok(_) => done(&json!({ "session": key.session, "done": verb })),
        Err(error) => refused(ErrorKind::Server, error.to_string()),
    }
}

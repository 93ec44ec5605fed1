//! The requirements, one function each.

use super::mapping::{asks_for_what_is_asked, tells_what_is_answered};
use super::{Case, CaseFuture, KEY, Report, START, Subject, World};
use crate::upstream::{Act, Answer, FrameKind, Port, Respond, Step};
use failover_provider::{
    AttemptFailure, AttemptLimits, ChatRequest, FinishReason, Json, Limit, Message, Opaque, Origin, Part,
    Progress, Reply, ReplyEvent, Role,
};
use failover_types::ProviderId;
use futures_util::StreamExt;
use std::fmt::Debug;
use std::time::Duration;

macro_rules! case_table {
    ($($name:ident),+ $(,)?) => {
        pub(super) const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            run: { fn run(subject: &Subject) -> CaseFuture<'_> { Box::pin($name(subject)) } run },
        }),+];
    };
}

case_table![
    answers_whole,
    answers_in_pieces,
    fails_before_content,
    keeps_what_classification_needs,
    never_passes_off_an_incomplete_answer,
    survives_small_faults,
    ends_without_the_sentinel,
    meets_limits_by_origin,
    closes_when_dropped,
    keeps_foreign_fields_out,
    sends_the_key_and_the_idempotency_key_once,
    fails_where_nobody_listens,
    waits_for_a_slow_answer,
    asks_for_what_is_asked,
    tells_what_is_answered,
];

/// R-17.
const CLOSED_WITHIN: Duration = Duration::from_millis(100);

fn same<T: PartialEq + Debug>(what: &str, got: &T, expected: &T) -> Report {
    if got == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, got {got:?}")) }
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Report {
    if holds { Ok(()) } else { Err(what()) }
}

async fn answers_whole(subject: &Subject) -> Report {
    let world = World::new(subject, Answer::text(["one ", "two"])).await?;
    let reply = world.whole().await?;
    same("text", &reply.text(), &"one two".to_owned())?;
    same("finish", &reply.finish, &FinishReason::Stop)?;
    same("usage", &reply.usage.map(|usage| (usage.input, usage.output)), &Some((11, 7)))?;
    same("asked for a stream", &world.only_attempt()?.stream, &false)?;

    let world = World::new(subject, Answer::tool_call("call_1", "look", "{\"at\":1}")).await?;
    let reply = world.whole().await?;
    same("finish", &reply.finish, &FinishReason::ToolCalls)?;
    let called = reply.parts.iter().any(
        |part| matches!(part, Part::ToolCall(call) if call.name == "look" && call.arguments == "{\"at\":1}"),
    );
    check(called, || format!("the tool call is lost: {:?}", reply.parts))
}

async fn answers_in_pieces(subject: &Subject) -> Report {
    let world = World::new(subject, Answer::text(["one ", "two"])).await?;
    let events: Vec<_> = world.stream().await?.collect().await;
    let texts: Vec<&str> = events
        .iter()
        .filter_map(|event| if let Ok(ReplyEvent::Text(text)) = event { Some(text.as_str()) } else { None })
        .collect();
    same("texts", &texts, &vec!["one ", "two"])?;
    same("last event", &events.last(), &Some(&Ok(ReplyEvent::Finish(FinishReason::Stop))))?;
    let usage = events.iter().any(|event| matches!(event, Ok(ReplyEvent::Usage(usage)) if usage.output == 7));
    check(usage, || "usage is lost".into())?;
    check(world.only_attempt()?.stream, || "did not ask for a stream".into())
}

/// What must never be taken for an answer, and the status that must be kept.
fn failures() -> Vec<(&'static str, Step, Option<u16>)> {
    let error = r#"{"error":{"message":"overloaded","type":"overloaded_error"}}"#;
    vec![
        ("rate limit", Step::json(429, error), Some(429)),
        ("server error", Step::json(500, error), Some(500)),
        ("page of a gateway", Step::html(502, "Bad Gateway"), Some(502)),
        ("page with status 200", Step::html(200, "Sign in"), Some(200)),
        ("error body with status 200", Step::json(200, error), Some(200)),
        ("redirect", Step::redirect("http://127.0.0.1:1/"), Some(307)),
        ("empty body", Respond::new(200).into(), Some(200)),
        ("no json", Step::json(200, "{\"choices\":[{\"mess"), Some(200)),
        (
            "wrong type",
            Respond::new(200).header("content-type", "text/plain").body("hello").into(),
            Some(200),
        ),
        ("cut gzip", Step::cut_gzip(), Some(200)),
        ("8 MiB of junk", Step::huge(200, 8 << 20), Some(200)),
        ("8 MiB error", Step::huge(500, 8 << 20), Some(500)),
        ("invalid utf-8", Respond::new(500).body(vec![0xff, 0xfe, 0, 0x80]).into(), Some(500)),
        ("no choices", Answer::no_choices().into(), Some(200)),
        ("blank answer", Answer::blank().into(), Some(200)),
        ("empty event stream", Step::events(""), Some(200)),
        ("only a sentinel", Step::events("data: [DONE]\n\n"), Some(200)),
        ("only comments", Step::events(": ping\n\n: ping\n\n"), Some(200)),
        ("only a malformed event", Step::events("data: {\"choi\n\n"), Some(200)),
        ("error event before content", Step::events(format!("data: {error}\n\n")), Some(200)),
        ("cut before content", Answer::text(["x"]).cut_after(0).into(), None),
        ("reset before the head", Step::reset(), None),
        ("closed before the head", Step::close(), None),
        ("not http", Step::Raw(vec![Act::Send(b"220 mail ready\r\n".to_vec())]), None),
    ]
}

async fn fails_before_content(subject: &Subject) -> Report {
    for (name, step, status) in failures() {
        for stream in [false, true] {
            let world = World::new(subject, step.clone()).await?;
            let fault = |what: String| format!("{name}, stream {stream}: {what}");
            let failure = match world.open(stream).await {
                Err(failure) => failure,
                Ok(reply) => return Err(fault(format!("taken for an answer: {reply:?}"))),
            };
            if status.is_some() {
                same("status", &failure.status, &status).map_err(fault)?;
            }
            check(failure.incomplete.is_none() && failure.progress < Progress::Delivered, || {
                fault("claims that something was delivered".into())
            })?;
            check(failure.body.len() <= 68 * 1024, || fault(format!("keeps {} bytes", failure.body.len())))?;
            world.only_attempt().map_err(fault)?;
        }
    }
    Ok(())
}

async fn keeps_what_classification_needs(subject: &Subject) -> Report {
    let body = format!(r#"{{"error":{{"message":"no quota for {KEY}","code":"insufficient_quota"}}}}"#);
    let step = Respond::new(429).header("retry-after", "7").body(body);
    let world = World::new(subject, step).await?;
    let Err(failure) = world.open(true).await else { return Err("a 429 is taken for an answer".into()) };
    let kept =
        failure.headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("retry-after") && value == "7");
    check(kept, || "the retry-after header is lost".into())?;
    let text = String::from_utf8_lossy(&failure.body).into_owned();
    check(text.contains("insufficient_quota"), || format!("the body is lost: {text}"))?;
    check(!text.contains(KEY) && !format!("{failure:?} {failure}").contains(KEY), || {
        "the key comes back".into()
    })?;

    let world = World::new(subject, Step::reset()).await?;
    let Err(failure) = world.open(true).await else { return Err("a reset is taken for an answer".into()) };
    check(!failure.causes.is_empty(), || "the chain of causes is lost".into())?;
    same("code", &failure.code.as_deref(), &Some("ECONNRESET"))
}

async fn never_passes_off_an_incomplete_answer(subject: &Subject) -> Report {
    let error = r#"{"error":{"message":"upstream died","code":502}}"#;
    let answer = || Answer::text(["one", "two"]);
    let faults = [
        ("cut", answer().cut_after(1)),
        ("reset", answer().reset_after(1)),
        ("error event", answer().error_after(1, error)),
        ("no finish marker", Answer::text(["one"]).without(FrameKind::Finish)),
        (
            "no finish marker, no sentinel",
            Answer::text(["one"]).without(FrameKind::Finish).without(FrameKind::Done),
        ),
    ];
    for (name, answer) in faults {
        let world = World::new(subject, answer.clone()).await?;
        let events: Vec<_> = world.stream().await?.collect().await;
        let Some(Err(failure)) = events.last() else { return Err(format!("{name}: passed off as complete")) };
        let incomplete = failure.incomplete.as_ref().ok_or_else(|| format!("{name}: what came is lost"))?;
        same(name, &incomplete.text(), &"one".to_owned())?;
        same(name, &failure.progress, &Progress::Delivered)?;
        world.only_attempt()?;
    }
    let world = World::new(subject, answer().cut_after(1)).await?;
    match world.open(false).await {
        Err(_) => Ok(()),
        Ok(reply) => Err(format!("half a body is taken for an answer: {reply:?}")),
    }
}

async fn survives_small_faults(subject: &Subject) -> Report {
    let answer = || Answer::text(["one", "two"]);
    let dialect = (subject.dialect)();
    let faults = [
        ("malformed event", answer().bytes_after(1, dialect.malformed_event())),
        ("heartbeats", answer().bytes_after(0, dialect.heartbeat()).bytes_after(1, dialect.heartbeat())),
        ("labelled as json", answer().content_type("application/json")),
        ("no sentinel", answer().without(FrameKind::Done)),
        ("no usage", answer().without(FrameKind::Usage)),
        ("closed after the finish marker", answer().without(FrameKind::Done).without(FrameKind::Usage)),
    ];
    for (name, answer) in faults {
        let world = World::new(subject, answer).await?;
        let reply = world.stream().await.map_err(|fault| format!("{name}: {fault}"))?.into_reply().await;
        let reply = reply.map_err(|failure| format!("{name}: {failure:?}"))?;
        same(name, &reply.text(), &"onetwo".to_owned())?;
    }
    Ok(())
}

async fn ends_without_the_sentinel(subject: &Subject) -> Report {
    let answer = Answer::text(["one"]).without(FrameKind::Done).left_open();
    let world = World::new(subject, answer).await?;
    let stream = world.stream().await?;
    let reply = world.hurry(1, stream.into_reply()).await.map_err(|failure| format!("{failure:?}"))?;
    same("usage", &reply.usage.map(|usage| usage.output), &Some(7))?;
    let waited = failover_types::Clock::now(world.clock.as_ref()).since(START);
    check(waited <= Duration::from_secs(1), || format!("waited {waited:?} for a sentinel that never came"))
}

async fn meets_limits_by_origin(subject: &Subject) -> Report {
    let second = Duration::from_secs(1);
    let limits = AttemptLimits::none()
        .with_first_byte(2 * second)
        .with_first_content(4 * second)
        .with_idle(6 * second);
    let request = ChatRequest::prompt("say something").with_stream(true);
    let limit_of = |failure: &AttemptFailure| failure.limit;

    let world = World::new(subject, Step::silent()).await?;
    let outcome = world.hurry(1, world.open_with(&request, limits)).await;
    same("silent", &outcome.err().as_ref().and_then(limit_of), &Some(Limit::FirstByte))?;

    let world = World::new(subject, Step::slow_head()).await?;
    let outcome = world.hurry(1, world.open_with(&request, limits)).await;
    same("slow head", &outcome.err().as_ref().and_then(limit_of), &Some(Limit::FirstByte))?;

    let world = World::new(subject, Answer::text(["x"]).stall_after(0)).await?;
    let outcome = world.hurry(1, world.open_with(&request, limits)).await;
    same("no content", &outcome.err().as_ref().and_then(limit_of), &Some(Limit::FirstContent))?;

    // A heartbeat comes every two seconds: it is no content.
    let dialect = (subject.dialect)();
    let mut answer = Answer::text(["x", "y"]);
    for _ in 0..9 {
        answer = answer.act_after(1, Act::Wait(2 * second)).bytes_after(1, dialect.heartbeat());
    }
    let world = World::new(subject, answer).await?;
    let Ok(Reply::Stream(stream)) = world.open_with(&request, limits).await else {
        return Err("idle: no stream".into());
    };
    let outcome = world.hurry(2, stream.into_reply()).await;
    same("idle", &outcome.as_ref().err().and_then(limit_of), &Some(Limit::Idle))?;
    let incomplete = outcome.err().and_then(|failure| failure.incomplete.clone());
    same("what came", &incomplete.map(|incomplete| incomplete.text()), &Some("x".to_owned()))
}

async fn closes_when_dropped(subject: &Subject) -> Report {
    for (name, step) in [
        ("silent", Step::silent()),
        ("in its head", Step::slow_head()),
        ("before content", Answer::text(["x"]).stall_after(0).into()),
        ("in its stream", Answer::text(["x", "y"]).stall_after(1).into()),
    ] {
        let world = World::new(subject, step).await?;
        // Polled until the upstream has read the request; then either the future or the stream is dropped.
        let reply = {
            let opening = world.open(true);
            let read = world.upstream.until(|log| !log.is_empty());
            if name == "in its stream" {
                Some(opening.await.map_err(|failure| format!("{name}: {failure:?}"))?)
            } else {
                tokio::select! {
                    _ = opening => return Err(format!("{name}: answered")),
                    () = read => None,
                }
            }
        };
        drop(reply);
        let closed = world.upstream.until(|log| log.iter().all(|attempt| attempt.closed_at.is_some()));
        tokio::time::timeout(CLOSED_WITHIN, closed)
            .await
            .map_err(|_| format!("{name}: the connection is open after {CLOSED_WITHIN:?}"))?;
        check(world.only_attempt()?.abandoned, || format!("{name}: ended otherwise"))?;
    }
    Ok(())
}

async fn keeps_foreign_fields_out(subject: &Subject) -> Report {
    let world = World::new(subject, Answer::text(["x"])).await?;
    let elsewhere = Origin::new(ProviderId::new("elsewhere").map_err(|error| error.to_string())?);
    let value = Json::parse("\"foreign-proof\"").map_err(|error| error.to_string())?;
    let proof = Opaque::new(elsewhere, "signature", value);
    let mut request = ChatRequest::prompt("go on");
    let reasoning = Part::Reasoning { text: "foreign-thought".into(), proof: Some(proof.clone()) };
    request.messages.insert(0, Message::new(Role::Assistant, vec![reasoning, Part::Text("mine".into())]));
    request.opaque.push(proof);
    let Ok(Reply::Complete(reply)) = world.open_with(&request, AttemptLimits::none()).await else {
        return Err("no answer".into());
    };
    let body = world.only_attempt()?.body;
    check(body.contains("mine"), || format!("the text is lost: {body}"))?;
    check(!body.contains("foreign"), || format!("foreign fields are sent: {body}"))?;
    check(!reply.head.losses.is_empty(), || "the loss is not reported".into())
}

async fn sends_the_key_and_the_idempotency_key_once(subject: &Subject) -> Report {
    let world = World::new(subject, Answer::text(["x"])).await?;
    world.whole().await?;
    let attempt = world.only_attempt()?;
    same("key", &attempt.key_hash, &Some(crate::upstream::key_hash(KEY)))?;
    same("idempotency key", &attempt.header("idempotency-key"), &subject.idempotent.then_some("run-1"))?;
    check(!attempt.body.contains(KEY) && !attempt.target.contains(KEY), || {
        "the key is in the body or URL".into()
    })
}

async fn fails_where_nobody_listens(subject: &Subject) -> Report {
    let port = Port::refusing().map_err(|error| format!("no port: {error}"))?;
    let mut world = World::new(subject, Answer::text(["x"])).await?;
    world.adapter = (subject.adapter)(&format!("http://{}", port.address()));
    let Err(failure) = world.open(true).await else { return Err("taken for an answer".into()) };
    same("code", &failure.code.as_deref(), &Some("ECONNREFUSED"))?;
    same("progress", &failure.progress, &Progress::NotSent)?;
    check(!failure.causes.is_empty(), || "the chain of causes is lost".into())
}

/// A slow answer is no late one: every limit is met, though all of it together takes longer.
async fn waits_for_a_slow_answer(subject: &Subject) -> Report {
    let second = Duration::from_secs(1);
    let limits = AttemptLimits::none()
        .with_first_byte(2 * second)
        .with_first_content(4 * second)
        .with_idle(2 * second);
    let request = ChatRequest::prompt("say something").with_stream(true);
    let texts: Vec<String> = (0..9).map(|at| at.to_string()).collect();
    let world = World::new(subject, Answer::text(texts.clone()).after(second).drip(second)).await?;
    let Ok(Reply::Stream(stream)) = world.hurry(2, world.open_with(&request, limits)).await else {
        return Err("no stream".into());
    };
    let reply = world.hurry(2, stream.into_reply()).await.map_err(|failure| format!("{failure:?}"))?;
    same("text", &reply.text(), &texts.concat())
}

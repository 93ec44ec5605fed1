//! The fault suite: one primary with the fault and one healthy fallback, asked through the gateway by a client of the
//! OpenAI shape over real sockets, with `streamRescue` off and on. Each test says what each upstream was asked, what the
//! client got, and, where the fault is about time, how long it took at most (generously: machines are busy).
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test helpers, on real sockets and a real clock"
)]

#[path = "../it/common.rs"]
#[expect(dead_code, reason = "the other tests need more of it")]
mod common;

use common::{Setup, Streamed, World, question, said, words};
use failover::types::Clock;
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Act, Answer, Attempt, FrameKind, Piece, Respond, Step};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use test_case::test_case;

/// The routes of every test: the same chain, with each way of handling a stream that breaks off.
const ROUTES: &str = "routes: {
    off: { chain: ['first/one', 'second/two'] },
    buffer: { chain: ['first/one', 'second/two'], streamRescue: 'buffer' },
    continue: { chain: ['first/one', 'second/two'], streamRescue: 'continue' },
}";
const LIMITED: &str = r#"{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}"#;
const CRASHED: &str = r#"{"error":{"message":"The server had an error","type":"server_error"}}"#;
/// More than any busy machine needs for what should take a moment.
const AMPLE: Duration = Duration::from_secs(30);

struct Run {
    world: World,
    streamed: Streamed,
    took: Duration,
}

/// Asks once for a stream, with this fault of the first upstream.
async fn run(mode: &str, fault: Vec<Step>, limits: &str) -> Run {
    let world = World::with(Setup::gateway(ROUTES).limits(limits)).await;
    world.first.script("one", fault);
    world.second.script("two", [words(60).into()]);
    let begun = Instant::now();
    let streamed = world.stream(mode).await;
    Run { world, streamed, took: begun.elapsed() }
}

impl Run {
    fn calls(&self) -> (usize, usize) {
        (self.world.first.count("one"), self.world.second.count("two"))
    }

    fn log(&self) -> Vec<Attempt> {
        self.world.first.log()
    }

    /// The client has a whole answer of sixty words, of this model.
    fn answered_by(&self, model: &str) {
        let streamed = &self.streamed;
        assert!(streamed.is_complete(), "{}", streamed.raw);
        assert_eq!((streamed.status, streamed.text.as_str()), (200, said(60).as_str()));
        assert_eq!(streamed.header("x-failover-served"), Some(model));
        assert!(streamed.usage.is_some(), "{}", streamed.raw);
        assert!(self.took < AMPLE, "{:?}", self.took);
    }
}

// spec: R-15, G-2
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn one_429_with_a_short_wait_is_honored_or_failed_over(mode: &str) {
    let limited = Respond::new(429).header("retry-after", "2").body(LIMITED).into();
    let run = run(mode, vec![limited, words(60).into()], "").await;
    let (first, second) = run.calls();
    assert!(first + second == 2 && first <= 2, "{first} {second}");
    run.answered_by(if first == 2 { "first/one" } else { "second/two" });
    if let [one, two] = run.log().as_slice() {
        assert!(two.at.since(one.at) >= Duration::from_millis(1_900), "not before its time");
    }
}

// spec: R-2, R-14, G-2
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn a_429_that_stays_is_failed_over_and_not_hammered(mode: &str) {
    let run = run(mode, vec![Step::json(429, LIMITED)], "").await;
    run.answered_by("second/two");
    for _ in 0..5 {
        assert!(run.world.stream(mode).await.is_complete());
    }
    let (first, second) = run.calls();
    assert!(first <= 3, "{first} calls to a credential that is limited");
    assert_eq!(second, 6);
}

// spec: R-15
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn one_500_is_retried_in_place(mode: &str) {
    let run = run(mode, vec![Step::json(500, CRASHED), words(60).into()], "").await;
    assert_eq!(run.calls(), (2, 0));
    run.answered_by("first/one");
    assert_eq!(run.streamed.header("x-failover-attempts"), Some("2"));
}

// spec: R-2
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn a_503_that_stays_is_failed_over(mode: &str) {
    let run = run(mode, vec![Step::html(503, "503 Service Temporarily Unavailable")], "").await;
    let (first, second) = run.calls();
    assert!(first <= 2 && second == 1, "{first} {second}");
    run.answered_by("second/two");
}

// spec: R-15
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn a_reset_before_the_head(mode: &str) {
    let run = run(mode, vec![Step::reset()], "").await;
    let (first, second) = run.calls();
    assert!(first <= 2 && second == 1, "{first} {second}");
    run.answered_by("second/two");
}

// spec: R-15, R-16
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn a_silent_provider_is_asked_once_and_left(mode: &str) {
    let run = run(mode, vec![Step::silent()], "firstByteMs: 1000").await;
    assert_eq!(run.calls(), (1, 1));
    run.answered_by("second/two");
    assert!(run.took >= Duration::from_millis(990), "{:?}", run.took);
    let (asked, next) = (run.log()[0].at, run.world.second.log()[0].at);
    // The limit and a second; the rest is for machines that are busy.
    assert!(next.since(asked) < Duration::from_secs(1) + Duration::from_secs(1) + Duration::from_secs(8));
    common::until(&run.world.first, |log| log[0].closed_at.is_some()).await;
}

// spec: R-16
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn a_slow_first_token(mode: &str) {
    let slow = words(60).act_after(0, Act::Stall);
    let run = run(mode, vec![slow.into()], "firstContentMs: 1000").await;
    assert_eq!(run.calls(), (1, 1));
    run.answered_by("second/two");
}

/// What a provider sends that has nothing to say, every five seconds and for long.
fn alive(bytes: &str) -> Vec<Act> {
    let every = Duration::from_secs(5);
    (0..500).flat_map(|_| [Act::Wait(every), Act::Send(bytes.as_bytes().to_vec())]).collect()
}

fn alive_in_a_stream(bytes: &str) -> Step {
    alive(bytes).into_iter().fold(words(60), |answer, act| answer.act_after(0, act)).into()
}

fn alive_in_a_document() -> Step {
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{\"id\":\"x\",";
    Step::Raw([Act::Send(head.to_vec())].into_iter().chain(alive(" ")).collect())
}

const ROLE: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";

// spec: R-16, G-2
#[test_case(words(60).act_after(0, Act::Stall).into(), true; "silence")]
#[test_case(alive_in_a_stream(": ping\n\n"), true; "comments")]
#[test_case(alive_in_a_stream(ROLE), true; "roles")]
#[test_case(alive_in_a_document(), true; "a document that trickles")]
#[test_case(alive_in_a_document(), false; "a document that trickles, and was asked for")]
#[tokio::test]
async fn a_provider_without_a_word_is_left_though_no_limit_is_set(fault: Step, stream: bool) {
    let clock = Arc::new(ManualClock::new(failover::types::Timestamp::from_millis(1_800_000_000_000)));
    let setup = Setup { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Setup::gateway(ROUTES) };
    // The others are long, so that a busy machine does not meet them.
    let world = World::with(setup.limits("firstByteMs: 290000, idleMs: 290000")).await;
    world.first.script("one", [fault]);
    world.second.script("two", [words(60).into()]);
    let mut body: Value = question("off");
    body["stream"] = json!(stream);
    let turning = async {
        common::until(&world.first, |log| !log.is_empty()).await;
        while world.second.log().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            clock.advance(Duration::from_secs(5));
        }
    };
    let asked = async { tokio::join!(world.post("/v1/chat/completions", &[], &body), turning).0 };
    let answer = tokio::time::timeout(common::PATIENCE, asked).await.expect("it hangs");
    assert_eq!((answer.status, answer.header("x-failover-served")), (200, Some("second/two")));
    assert_eq!((world.first.count("one"), world.second.count("two")), (1, 1));
    let (asked, next) = (world.first.log()[0].at, world.second.log()[0].at);
    assert!(next.since(asked) >= Duration::from_mins(5), "it may think for a while: {:?}", next.since(asked));
}

// spec: R-16
#[test_case("", false, "first/one"; "whole: nothing can be seen of it before")]
#[test_case("", true, "second/two"; "streamed: it has not begun")]
#[test_case("firstByteMs: 120000", false, "second/two"; "whole, where the operator wants to see a byte")]
#[test_case("firstByteMs: 120000, wholeMs: 600000", false, "first/one"; "whole, and it has a limit of its own")]
#[tokio::test]
async fn an_answer_that_comes_whole_need_not_begin_in_time(limits: &str, stream: bool, served: &str) {
    let clock = Arc::new(ManualClock::new(failover::types::Timestamp::from_millis(1_800_000_000_000)));
    let setup = Setup { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Setup::gateway(ROUTES) };
    let world = World::with(setup.limits(&format!("connectMs: 3600000, {limits}"))).await;
    world.first.script("one", [words(60).after(Duration::from_secs(1)).into()]);
    world.second.script("two", [words(60).into()]);
    let mut body: Value = question("off");
    body["stream"] = json!(stream);
    let turning = async {
        common::until(&world.first, |log| !log.is_empty()).await;
        clock.advance(Duration::from_secs(290));
    };
    let asked = async { tokio::join!(world.post("/v1/chat/completions", &[], &body), turning).0 };
    let answer = tokio::time::timeout(common::PATIENCE, asked).await.expect("it hangs");
    assert_eq!((answer.status, answer.header("x-failover-served")), (200, Some(served)));
}

// spec: G-3, G-4, P-3
#[test_case("off", false)]
#[test_case("buffer", true)]
#[test_case("continue", false; "continue, with nobody who is known to")]
#[tokio::test]
async fn a_cut_after_40_of_60(mode: &str, rescued: bool) {
    let run = run(mode, vec![words(60).cut_after(40).into()], "").await;
    broken_off(&run, rescued, 40);
}

/// The stream broke off after so many words: the fallback answered in its place, or the client was told.
fn broken_off(run: &Run, rescued: bool, after: usize) {
    if rescued {
        assert_eq!(run.calls(), (1, 1));
        return run.answered_by("second/two");
    }
    assert_eq!(run.calls(), (1, 0), "nothing is replayed after content");
    let streamed = &run.streamed;
    assert_eq!((streamed.status, streamed.text.as_str()), (200, said(after).as_str()));
    assert!(streamed.error.is_some() && !streamed.done && streamed.finish.is_none(), "{}", streamed.raw);
    assert!(run.took < AMPLE, "{:?}", run.took);
}

// spec: G-3, G-4, R-16
#[test_case("off", false)]
#[test_case("buffer", true)]
#[test_case("continue", false; "continue, with nobody who is known to")]
#[tokio::test]
async fn a_stall_after_20(mode: &str, rescued: bool) {
    let run = run(mode, vec![words(60).stall_after(20).into()], "idleMs: 1000").await;
    broken_off(&run, rescued, 20);
    common::until(&run.world.first, |log| log[0].closed_at.is_some()).await;
}

// spec: P-3
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn a_malformed_tenth_event_costs_nothing_but_itself(mode: &str) {
    let odd = words(60).bytes_after(10, "data: {\"choices\":[{\"delta\":{\"cont\n\n");
    let run = run(mode, vec![odd.into()], "").await;
    assert_eq!(run.calls(), (1, 0));
    run.answered_by("first/one");
}

// spec: P-3, G-5
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn an_end_without_the_sentinel_ends_at_once_with_usage(mode: &str) {
    let open = words(60).without(FrameKind::Done).left_open();
    let run = run(mode, vec![open.into()], "idleMs: 60000").await;
    assert_eq!(run.calls(), (1, 0));
    run.answered_by("first/one");
    // Half a second is waited for usage and the sentinel; the rest is for machines that are busy.
    assert!(run.took < Duration::from_secs(8), "at once, not at the idle limit: {:?}", run.took);
    assert_eq!(run.streamed.usage.as_ref().unwrap()["completion_tokens"], 7);
}

const OVERFLOW: &str = r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;

// spec: R-4, H-10
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn a_context_overflow_is_told_and_asked_elsewhere_only_where_that_is_set(mode: &str) {
    let run = run(mode, vec![Step::json(400, OVERFLOW)], "").await;
    assert_eq!(run.calls(), (1, 0));
    assert_eq!(run.streamed.status, 400);
    let error = run.streamed.error.as_ref().unwrap();
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("invalid_request_error"), &json!("context_length_exceeded"))
    );
    assert!(error["message"].as_str().unwrap().contains("8192"), "{error}");

    let routes = ROUTES.replace("two']", "two'], onContextOverflow: ['second/two']");
    let world = World::with(Setup::gateway(&routes)).await;
    world.first.script("one", [Step::json(400, OVERFLOW)]);
    world.second.script("two", [words(60).into()]);
    let streamed = world.stream(mode).await;
    assert!(streamed.is_complete(), "{}", streamed.raw);
    assert_eq!((world.first.count("one"), world.second.count("two")), (1, 1));
}

// spec: R-4, G-2
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn a_content_filter_is_asked_once_and_its_reason_reaches_the_caller(mode: &str) {
    let filtered = r#"{"error":{"message":"The response was filtered due to the prompt triggering our content management policy.","type":"invalid_request_error","code":"content_filter"}}"#;
    let run = run(mode, vec![Step::json(400, filtered)], "").await;
    assert_eq!(run.calls(), (1, 0));
    assert_eq!(run.streamed.status, 400);
    let error = run.streamed.error.as_ref().unwrap();
    assert_eq!(error["code"], "content_filter");
    assert!(error["message"].as_str().unwrap().contains("content management policy"), "{error}");
}

// spec: G-4
#[tokio::test]
async fn a_cut_and_a_fallback_that_refuses_to_go_on() {
    let setup = Setup { facts: "prefill: true".to_owned(), ..Setup::gateway(ROUTES) };
    let world = World::with(setup).await;
    world.first.script("one", [words(60).cut_after(40).into()]);
    let refused = r#"{"error":{"message":"This model does not support assistant message prefill","type":"invalid_request_error"}}"#;
    world.second.script("two", [Step::json(400, refused)]);
    let streamed = world.stream("continue").await;
    assert_eq!((streamed.status, streamed.text.as_str()), (200, said(40).as_str()));
    assert!(!streamed.done && streamed.finish.is_none());
    let error = streamed.error.unwrap().to_string();
    assert!(!error.contains("prefill") && !error.contains("400"), "the caller's error it is not: {error}");
    assert_eq!((world.first.count("one"), world.second.count("two")), (1, 1));
    // With the answer held back, the fallback is asked for a whole one.
    world.second.script("two", [words(60).into()]);
    world.first.script("one", [words(60).cut_after(40).into()]);
    assert!(world.stream("buffer").await.is_complete());
}

// spec: R-6, A-10, A-26, S-7
#[test_case("off", None, false)]
#[test_case("buffer", None, false)]
#[test_case("off", Some("s1"), false; "in a session")]
#[test_case("off", Some("s1"), true; "in a session, among others without one")]
#[tokio::test]
async fn a_primary_that_is_down_for_a_minute(mode: &str, session: Option<&str>, others: bool) {
    let clock = Arc::new(ManualClock::new(failover::types::Timestamp::from_millis(1_800_000_000_000)));
    let setup = Setup { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Setup::gateway(ROUTES) };
    let world = World::with(setup).await;
    world.second.script("two", [Step::text("I am two")]);
    world.first.script("one", [Step::json(503, CRASHED)]);
    let session: Vec<(&str, &str)> = session.map(|id| ("x-failover-session", id)).into_iter().collect();
    let mut body: Value = question(mode);
    body["stream"] = json!(true);
    let ask = async |headers: &[(&str, &str)]| {
        let asked = world.post("/v1/chat/completions", headers, &body);
        let answer = turning(&clock, asked).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(Streamed::read(&answer).is_complete());
        answer.header("x-failover-served").unwrap().to_owned()
    };
    for _ in 0..60 {
        assert_eq!(ask(&session).await, "second/two");
        if others {
            assert_eq!(ask(&[]).await, "second/two");
        }
        clock.advance(Duration::from_secs(1));
    }
    let down = world.first.count("one");
    assert!(down <= 6, "{down} calls to a primary that is down");
    world.first.script("one", [Step::text("I am one")]);
    let (mut back, mut proven) = (None, None);
    for second in 0..=30 {
        if others && proven.is_none() && ask(&[]).await == "first/one" {
            proven = Some(second);
        }
        if ask(&session).await == "first/one" {
            back = Some(second);
            break;
        }
        clock.advance(Duration::from_secs(1));
    }
    assert!(back.is_some(), "not back after 30 s");
    assert!(!others || back == proven, "known to be well after {proven:?} s, and used after {back:?} s");
}

/// Lets the manual clock go on where the request waits for it: retries in place have a little random wait.
async fn turning<T>(clock: &ManualClock, asked: impl Future<Output = T>) -> T {
    let mut asked = std::pin::pin!(asked);
    loop {
        match tokio::time::timeout(Duration::from_millis(100), asked.as_mut()).await {
            Ok(done) => return done,
            Err(_) => clock.advance(Duration::from_millis(250)),
        }
    }
}

// spec: G-5
#[test_case("off")]
#[test_case("buffer")]
#[test_case("continue")]
#[tokio::test]
async fn the_account_is_that_of_who_answered(mode: &str) {
    let world = World::with(Setup::gateway(ROUTES)).await;
    world
        .first
        .script("one", [Step::json(402, r#"{"error":{"message":"Insufficient credits","code":402}}"#)]);
    let mut answer = Answer::new(vec![Piece::Text("hello".to_owned())]);
    answer.usage = Some((123, 45));
    world.second.script("two", [answer.into()]);
    let streamed = world.stream(mode).await;
    assert!(streamed.is_complete(), "{}", streamed.raw);
    let usage = streamed.usage.as_ref().unwrap();
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(123), &json!(45)));
    assert!(streamed.models.iter().all(|model| model.ends_with("two")), "{:?}", streamed.models);
    assert_eq!(streamed.header("x-failover-served"), Some("second/two"));
    assert_eq!(streamed.header("x-failover-reason"), Some("billing"));
    let whole = world.chat(&question(mode)).await;
    assert_eq!(whole.json()["usage"]["prompt_tokens"], 123);
    let metrics = world.get("/metrics", &[]).await.text();
    let tokens = format!("failover_tokens_total{{model=\"second/two\",kind=\"input\"}} {}", 2 * 123);
    assert!(metrics.lines().any(|line| line == tokens), "{metrics}");
}

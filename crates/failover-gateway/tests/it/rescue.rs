//! Streams that break off, and the two ways of mending them. The faults themselves are in the fault suite.

use crate::common::{Setup, World, said, until, words};
use failover_testkit::upstream::{Answer, Step};
use std::time::Duration;

const ROUTES: &str = "keepaliveMs: 100, routes: {
    held: { chain: ['first/one', 'second/two'], streamRescue: 'buffer' },
    bounded: { chain: ['first/one', 'second/two'], streamRescue: 'buffer', bufferBytes: 1000 },
    going: { chain: ['first/one', 'second/two'], streamRescue: 'continue' },
}";

// spec: G-3
#[tokio::test]
async fn without_rescue_a_cut_stream_ends_as_an_error_and_counts_against_its_provider() {
    let world = World::new().await;
    world.first.script("one", [words(60).cut_after(40).into()]);
    let streamed = world.stream("default").await;
    assert_eq!((streamed.status, streamed.text.as_str()), (200, said(40).as_str()));
    assert!(streamed.error.is_some() && !streamed.done && streamed.finish.is_none(), "{}", streamed.raw);
    let error = streamed.error.unwrap();
    assert_eq!(error["code"], "incomplete_answer");
    assert_eq!(world.second.log().len(), 0);
    let profiles = world.admin("profiles").await;
    let first = profiles["profiles"].as_array().unwrap().iter().find(|it| it["provider"] == "first").unwrap();
    assert_eq!(first["windows"][0]["reason"], "timeout", "{first}");
    assert!(world.stream("default").await.is_complete(), "the next one goes elsewhere");
}

// spec: G-4
#[tokio::test]
async fn a_held_stream_is_kept_alive_and_answered_by_the_next_model() {
    let world = World::with(Setup::gateway(ROUTES)).await;
    let slow = words(6).drip(Duration::from_millis(100)).cut_after(5);
    world.first.script("one", [slow.into()]);
    world.second.script("two", [words(60).into()]);
    let streamed = world.stream("held").await;
    assert!(streamed.is_complete(), "{}", streamed.raw);
    assert_eq!(streamed.text, said(60), "nothing of the first answer came through");
    assert!(streamed.comments > 0, "{}", streamed.raw);
    assert!(streamed.usage.is_some());
    // The headers were gone by then: a comment says what they would have said.
    assert_eq!(streamed.header("x-failover-served"), None);
    let told = streamed.raw.split_once("\n: x-failover-served: second/two\n").unwrap();
    assert!(!told.0.contains("w0") && told.1.contains("w0"), "{}", streamed.raw);
    assert!(streamed.raw.contains("\n: x-failover-attempts: 2\n"), "{}", streamed.raw);
}

// spec: G-2, G-4
#[tokio::test]
async fn a_held_stream_that_nobody_completes_has_a_true_status_while_it_can() {
    let world = World::with(Setup::gateway(&ROUTES.replace("keepaliveMs: 100", "keepaliveMs: 60000"))).await;
    world.first.script("one", [words(60).cut_after(40).into()]);
    world.second.script("two", [words(60).cut_after(40).into()]);
    let streamed = world.stream("held").await;
    assert!(streamed.status >= 500, "{}", streamed.raw);
    assert!(streamed.error.is_some() && streamed.text.is_empty());
    let late = World::with(Setup::gateway(ROUTES)).await;
    late.first.script("one", [words(60).cut_after(3).drip(Duration::from_millis(100)).into()]);
    late.second.script("two", [words(60).cut_after(3).drip(Duration::from_millis(100)).into()]);
    let streamed = late.stream("held").await;
    assert_eq!(streamed.status, 200);
    assert!(streamed.error.is_some() && !streamed.done && streamed.text.is_empty(), "{}", streamed.raw);
}

// spec: G-4
#[tokio::test]
async fn an_answer_beyond_the_bound_is_let_through_as_it_comes() {
    let world = World::with(Setup::gateway(ROUTES)).await;
    world.first.script("one", [words(200).stall_after(190).into()]);
    let mut open = world.open_stream("bounded").await;
    open.until("w180 ").await;
    assert_eq!(world.second.log().len(), 0);
}

// spec: G-4
#[tokio::test]
async fn another_model_goes_on_where_it_is_known_to() {
    let setup = Setup { facts: "prefill: true".to_owned(), ..Setup::gateway(ROUTES) };
    let world = World::with(setup).await;
    world.first.script("one", [words(60).cut_after(40).into()]);
    world.second.script("two", [Answer::text((40..60).map(|at| format!("w{at} "))).into()]);
    let streamed = world.stream("going").await;
    assert!(streamed.is_complete(), "{}", streamed.raw);
    assert_eq!(streamed.text, said(60));
    let asked: serde_json::Value = serde_json::from_str(&world.second.log()[0].body).unwrap();
    let messages = asked["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["role"], "assistant");
    assert_eq!(messages.last().unwrap()["content"], said(40).trim_end());
}

// spec: G-4
#[tokio::test]
async fn nobody_goes_on_who_is_not_known_to() {
    let world = World::with(Setup::gateway(ROUTES)).await;
    world.first.script("one", [words(60).cut_after(40).into()]);
    let streamed = world.stream("going").await;
    assert_eq!(streamed.text, said(40));
    assert!(streamed.error.is_some() && !streamed.done);
    assert_eq!(world.second.log().len(), 0);
}

// spec: G-6, G-4
#[tokio::test]
async fn a_client_that_leaves_a_held_stream_closes_the_upstream() {
    let world = World::with(Setup::gateway(ROUTES)).await;
    world.first.script("one", [words(60).stall_after(2).into(), Step::silent()]);
    let mut open = world.open_stream("held").await;
    open.until(":").await;
    open.leave();
    until(&world.first, |log| log[0].closed_at.is_some()).await;
    assert!(world.first.log()[0].abandoned);
    assert_eq!(world.second.log().len(), 0);
}

//! One request over a real socket: limits by origin, and failures that keep everything.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use bytes::Bytes;
use failover_classify::Surface;
use failover_http::{Exchange, HyperTransport};
use failover_provider::{AttemptFailure, AttemptLimits, AttemptScope, Limit, Progress};
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Act, Answer, Port, Respond, Step, Upstream};
use failover_types::{Clock, ModelRef, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use test_case::test_case;

const START: Timestamp = Timestamp::from_millis(1_000_000);
const SECOND: Duration = Duration::from_secs(1);

struct World {
    clock: Arc<ManualClock>,
    upstream: Upstream,
    transport: HyperTransport,
    model: ModelRef,
}

impl World {
    async fn new(step: impl Into<Step>) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let upstream = Upstream::start(Arc::<ManualClock>::clone(&clock)).await.unwrap();
        upstream.script("m", [step.into()]);
        let transport = HyperTransport::new().unwrap();
        Self { clock, upstream, transport, model: "acme/m".parse().unwrap() }
    }

    fn limits() -> AttemptLimits {
        AttemptLimits::none()
            .with_connect(SECOND)
            .with_first_byte(2 * SECOND)
            .with_first_content(3 * SECOND)
            .with_idle(4 * SECOND)
    }

    fn exchange(&self, limits: AttemptLimits, deadline: Option<Timestamp>) -> Exchange {
        let mut scope =
            AttemptScope::new(&self.model, Arc::<ManualClock>::clone(&self.clock)).with_limits(limits);
        scope.deadline = deadline;
        Exchange::new(self.model.provider(), &scope)
    }

    fn request(base: &str) -> http::Request<Bytes> {
        http::Request::post(format!("{base}/chat/completions"))
            .body(Bytes::from_static(br#"{"model":"m"}"#))
            .unwrap()
    }

    async fn send(&self, exchange: &mut Exchange) -> Result<u16, AttemptFailure> {
        exchange.send(&self.transport, Self::request(&self.upstream.base_url())).await
    }

    /// Runs `attempt`, jumping the clock from wait to wait up to its limit. One timer serves all limits: where it is set
    /// for the connect limit, and the connection stands by then, it is left to run out.
    async fn run_into(
        &self,
        limit: Duration,
        attempt: impl Future<Output = AttemptFailure>,
    ) -> AttemptFailure {
        let (failure, ()) = tokio::join!(attempt, async {
            while limit > SECOND && self.upstream.log().is_empty() {
                tokio::task::yield_now().await;
            }
            while self.clock.now() < START.after(limit) {
                self.clock.until_waiting(1).await;
                self.clock.advance_to_next();
            }
        });
        failure
    }
}

// spec: R-16, P-4
#[tokio::test]
async fn a_silent_provider_meets_the_first_byte_limit() {
    let world = World::new(Step::silent()).await;
    let mut exchange = world.exchange(World::limits(), None);
    let failure = world.run_into(2 * SECOND, async { world.send(&mut exchange).await.unwrap_err() }).await;
    assert_eq!((failure.limit, failure.progress), (Some(Limit::FirstByte), Progress::Sent));
    assert_eq!((failure.surface, failure.code.as_deref()), (Surface::Transport, Some("ETIMEDOUT")));
}

// spec: R-16
#[tokio::test]
async fn half_a_head_is_no_first_byte_of_an_answer() {
    let world = World::new(Step::slow_head()).await;
    let mut exchange = world.exchange(World::limits(), None);
    let failure = world.run_into(2 * SECOND, async { world.send(&mut exchange).await.unwrap_err() }).await;
    assert_eq!(failure.limit, Some(Limit::FirstByte));
}

// spec: R-16
#[tokio::test]
async fn a_port_that_says_nothing_meets_the_connect_limit() {
    let world = World::new(Step::silent()).await;
    let port = Port::silent().unwrap();
    let mut exchange = world.exchange(World::limits(), None);
    let request = World::request(&format!("https://{}/v1", port.address()));
    let failure =
        world.run_into(SECOND, async { exchange.send(&world.transport, request).await.unwrap_err() }).await;
    assert_eq!((failure.limit, failure.progress), (Some(Limit::Connect), Progress::NotSent));
    assert!(!failure.may_have_been_sent());
}

// spec: R-8, R-16
#[tokio::test]
async fn the_deadline_wins_over_longer_limits() {
    let world = World::new(Step::silent()).await;
    let mut exchange = world.exchange(World::limits(), Some(START.after(SECOND / 2)));
    let failure = world.run_into(SECOND / 2, async { world.send(&mut exchange).await.unwrap_err() }).await;
    assert_eq!(failure.limit, Some(Limit::Deadline));
}

// spec: R-16
#[tokio::test]
async fn content_that_does_not_begin_or_stops_meets_its_own_limit() {
    let world = World::new(Step::silent()).await;
    let head = || Act::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n".to_vec());
    world.upstream.script("m", [Step::Raw(vec![head(), Act::Stall])]);
    let mut exchange = world.exchange(World::limits(), None);
    assert_eq!(world.send(&mut exchange).await.unwrap(), 200);
    let failure = world.run_into(3 * SECOND, async { exchange.first_chunk().await.unwrap_err() }).await;
    assert_eq!((failure.limit, failure.progress), (Some(Limit::FirstContent), Progress::Answered));

    world.clock.set(START);
    world.upstream.script("m", [Step::Raw(vec![head(), Act::Send(b"abc".to_vec()), Act::Stall])]);
    let mut exchange = world.exchange(World::limits(), None);
    world.send(&mut exchange).await.unwrap();
    assert_eq!(exchange.first_chunk().await.unwrap().unwrap(), "abc");
    let failure = world.run_into(4 * SECOND, async { exchange.next_chunk(START).await.unwrap_err() }).await;
    assert_eq!((failure.limit, failure.status), (Some(Limit::Idle), Some(200)));
}

// spec: R-16
#[tokio::test]
async fn a_whole_body_that_trickles_meets_the_first_content_limit() {
    let mut acts = vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"choices\":[".to_vec())];
    acts.extend((0..9).flat_map(|_| [Act::Wait(SECOND), Act::Send(b" ".to_vec())]));
    let world = World::new(Step::Raw(acts)).await;
    let mut exchange = world.exchange(World::limits(), None);
    world.send(&mut exchange).await.unwrap();
    let reading = async { exchange.read_whole(Vec::new()).await.unwrap_err() };
    let trickling = async {
        for second in 1..=3 {
            // What is to come by now waits; what is late waits too.
            world.clock.until_waiting_for(START.after(second * SECOND)).await;
            world.clock.set(START.after(second * SECOND));
        }
    };
    let (failure, ()) = tokio::join!(reading, trickling);
    assert_eq!((failure.limit, failure.status), (Some(Limit::FirstContent), Some(200)));
    assert!(failure.body.starts_with(b"{\"choices\":["), "what came is kept");
}

// spec: P-4
#[test_case(Step::reset(), "ECONNRESET"; "reset")]
#[test_case(Step::close(), "ECONNRESET"; "closed without a word")]
#[test_case(Step::Raw(vec![Act::Send(b"SSH-2.0-OpenSSH_9\r\n".to_vec())]), "EPROTO"; "not http")]
#[tokio::test]
async fn a_broken_connection_keeps_its_causes(step: Step, code: &str) {
    let world = World::new(step).await;
    let failure = world.send(&mut world.exchange(World::limits(), None)).await.unwrap_err();
    assert_eq!((failure.code.as_deref(), failure.progress), (Some(code), Progress::Sent));
    assert!(failure.causes.len() >= 2, "{:?}", failure.causes);
    assert_eq!(world.upstream.log().len(), 1, "nothing is sent twice");
}

// spec: P-4
#[tokio::test]
async fn a_refused_connection_was_not_sent() {
    let world = World::new(Step::silent()).await;
    let port = Port::refusing().unwrap();
    let mut exchange = world.exchange(World::limits(), None);
    let request = World::request(&format!("http://{}/v1", port.address()));
    let failure = exchange.send(&world.transport, request).await.unwrap_err();
    assert_eq!((failure.code.as_deref(), failure.progress), (Some("ECONNREFUSED"), Progress::NotSent));
}

// spec: P-4
#[tokio::test]
async fn a_server_without_tls_is_told_apart() {
    let world = World::new(Step::silent()).await;
    let mut exchange = world.exchange(World::limits(), None);
    let request = World::request(&world.upstream.base_url().replace("http:", "https:"));
    let failure = exchange.send(&world.transport, request).await.unwrap_err();
    assert_eq!(failure.progress, Progress::NotSent, "{:?}", failure.causes);
    assert!(failure.causes.first().unwrap().message.starts_with("tls:"), "{:?}", failure.causes);
}

// spec: P-4
#[tokio::test]
async fn an_unknown_name_is_told_apart() {
    let world = World::new(Step::silent()).await;
    let mut exchange = world.exchange(AttemptLimits::none(), None);
    let request = World::request("http://no-such-host.invalid/v1");
    let failure = exchange.send(&world.transport, request).await.unwrap_err();
    // Which of the two depends on the machine's resolver.
    assert!(matches!(failure.code.as_deref(), Some("ENOTFOUND" | "EAI_AGAIN")), "{:?}", failure.causes);
}

// spec: P-4, C-22
#[tokio::test]
async fn a_refusal_keeps_status_headers_and_both_ends_of_its_body() {
    let body = format!("{{\"error\":\"{}\"}}", "x".repeat(8 << 20));
    let respond = Respond::new(429).header("retry-after", "7").body(body.clone());
    let world = World::new(respond).await;
    let mut exchange = world.exchange(World::limits(), None);
    assert_eq!(world.send(&mut exchange).await.unwrap(), 429);
    let failure = exchange.refused(b"").await;
    assert_eq!((failure.status, failure.surface), (Some(429), Surface::Http));
    assert!(failure.headers.contains(&("retry-after".into(), "7".into())));
    assert!(failure.body.starts_with(b"{\"error\":\"xxx") && failure.body.len() <= 68 * 1024);
}

// spec: P-4
#[tokio::test]
async fn a_refusal_whose_body_stalls_is_still_a_refusal() {
    let head = b"HTTP/1.1 503 No\r\ncontent-length: 99\r\n\r\n{\"error\":".to_vec();
    let world = World::new(Step::Raw(vec![Act::Send(head), Act::Stall])).await;
    let mut exchange = world.exchange(AttemptLimits::none(), None);
    world.send(&mut exchange).await.unwrap();
    let failure = world.run_into(5 * SECOND, exchange.refused(b"")).await;
    assert_eq!((failure.status, &*failure.body), (Some(503), &b"{\"error\":"[..]));
    assert_eq!(failure.limit, None);
}

// spec: R-17
#[tokio::test]
async fn dropping_an_exchange_closes_its_connection() {
    let world = World::new(Answer::text(["a", "b"]).stall_after(1)).await;
    let mut exchange = world.exchange(AttemptLimits::none(), None);
    world.send(&mut exchange).await.unwrap();
    drop(exchange);
    world.upstream.until(|log| log.iter().all(|attempt| attempt.closed_at.is_some())).await;
}

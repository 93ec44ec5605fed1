//! The ways to a provider: TLS and whom to trust, HTTP/2 and its farewells, proxies, and connections used again.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use bytes::Bytes;
use failover_http::{Exchange, HyperTransport, ProxyConfig, TransportConfig};
use failover_provider::{AttemptFailure, AttemptScope, Progress};
use failover_testkit::ManualClock;
use failover_testkit::upstream::{Answer, ForwardProxy, Http2Step, Http2Upstream, Step, TlsFront, Upstream};
use failover_types::{ModelRef, Timestamp};
use std::sync::Arc;

const TEXT: Bytes = Bytes::from_static(b"data: hello\n\n");

fn exchange() -> Exchange {
    let model: ModelRef = "acme/m".parse().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000)));
    Exchange::new(model.provider(), &AttemptScope::new(&model, clock))
}

/// Sends one request and reads the whole body.
async fn ask(transport: &HyperTransport, base: &str) -> Result<(u16, Vec<u8>), AttemptFailure> {
    let request = http::Request::post(format!("{base}/v1/chat/completions"))
        .body(Bytes::from_static(br#"{"model":"m"}"#))
        .unwrap();
    let mut exchange = exchange();
    let status = exchange.send(transport, request).await?;
    Ok((status, exchange.read_whole(Vec::new()).await?.into()))
}

fn trusting(ca_pem: &str, proxy: ProxyConfig) -> HyperTransport {
    let config = TransportConfig::new().proxy(proxy).roots_pem(ca_pem.as_bytes()).unwrap();
    HyperTransport::with(config).unwrap()
}

async fn plain() -> Upstream {
    let upstream = Upstream::start(Arc::new(ManualClock::default())).await.unwrap();
    upstream.script("m", [Step::from(Answer::text(["hello"]))]);
    upstream
}

// spec: P-4
#[tokio::test]
async fn only_trusted_certificates_are_accepted() {
    let upstream = plain().await;
    let front = TlsFront::start(upstream.address()).await.unwrap();
    let strict = HyperTransport::new().unwrap();
    let failure = ask(&strict, &front.base_url()).await.unwrap_err();
    assert_eq!((failure.code.as_deref(), failure.progress), (Some("ETLS"), Progress::NotSent));
    assert!(failure.causes.iter().any(|cause| cause.message.contains("certificate")), "{:?}", failure.causes);
    let own = trusting(front.ca_pem(), ProxyConfig::none());
    assert_eq!(ask(&own, &front.base_url()).await.unwrap().0, 200);
    assert!(TransportConfig::new().roots_pem(b"no certificate").is_err());
    // Another host's certificate is not this one's.
    let other = front.base_url().replace("localhost", "127.0.0.1");
    assert_eq!(ask(&own, &other).await.unwrap_err().code.as_deref(), Some("ETLS"));
}

#[tokio::test]
async fn connections_are_used_again_plain_and_secure() {
    let upstream = plain().await;
    let front = TlsFront::start(upstream.address()).await.unwrap();
    let transport = trusting(front.ca_pem(), ProxyConfig::none());
    for _ in 0..3 {
        ask(&transport, &format!("http://{}", upstream.address())).await.unwrap();
    }
    for _ in 0..3 {
        ask(&transport, &front.base_url()).await.unwrap();
    }
    let connections: Vec<u64> = upstream.log().iter().map(|attempt| attempt.connection).collect();
    assert_eq!(connections, [1, 1, 1, 2, 2, 2]);
}

#[tokio::test]
async fn http2_carries_many_requests_on_one_connection() {
    let upstream = Http2Upstream::start([]).await.unwrap();
    let transport = trusting(upstream.ca_pem(), ProxyConfig::none());
    ask(&transport, &upstream.base_url()).await.unwrap();
    let base = upstream.base_url();
    let answers = futures_util::future::join_all((0..8).map(|_| ask(&transport, &base))).await;
    assert!(answers.into_iter().all(|answer| answer.is_ok_and(|(status, _)| status == 200)));
    assert_eq!(upstream.counts(), (1, 9));
}

#[tokio::test]
async fn after_a_goaway_the_answer_at_hand_is_whole_and_the_next_request_takes_a_new_connection() {
    let upstream = Http2Upstream::start([Http2Step::AnswerThenGoAway(TEXT)]).await.unwrap();
    let transport = trusting(upstream.ca_pem(), ProxyConfig::none());
    assert_eq!(ask(&transport, &upstream.base_url()).await.unwrap(), (200, TEXT.to_vec()));
    assert_eq!(ask(&transport, &upstream.base_url()).await.unwrap().0, 200);
    assert_eq!(upstream.counts(), (2, 2));
}

// spec: P-3, P-4, R-18
#[tokio::test]
async fn http2_failures_are_failures_of_this_one_attempt() {
    for (step, came) in [
        (Http2Step::GoAwayInside(TEXT), Some(TEXT)),
        (Http2Step::ResetInside(TEXT), Some(TEXT)),
        (Http2Step::Refuse, None),
        (Http2Step::GoAwayBefore, None),
    ] {
        let upstream = Http2Upstream::start([step.clone()]).await.unwrap();
        let transport = trusting(upstream.ca_pem(), ProxyConfig::none());
        let failure = ask(&transport, &upstream.base_url()).await.unwrap_err();
        assert!(!failure.causes.is_empty(), "{step:?}");
        assert!(failure.code.is_some(), "{step:?}: {failure:?} {:?}", failure.causes);
        if let Some(came) = came {
            assert_eq!((failure.status, &failure.body[..]), (Some(200), &came[..]), "{step:?}");
        }
        assert_eq!(upstream.counts().1, 1, "{step:?}: nothing is sent again");
    }
}

#[tokio::test]
async fn a_secure_request_goes_through_a_tunnel() {
    let upstream = plain().await;
    let front = TlsFront::start(upstream.address()).await.unwrap();
    let proxy = ForwardProxy::start(Some("Basic bWU6c2VzYW1l")).await.unwrap();
    let url = format!("http://me:sesame@{}", proxy.address());
    let transport = trusting(front.ca_pem(), ProxyConfig::all(&url).unwrap());
    assert_eq!(ask(&transport, &front.base_url()).await.unwrap().0, 200);
    let log = proxy.log();
    assert_eq!(log.len(), 1);
    assert!(log[0].line.starts_with("CONNECT localhost:"), "{log:?}");
    let headers = &upstream.log()[0].headers;
    assert!(headers.iter().all(|(name, _)| name != "proxy-authorization"), "the provider sees nothing of it");
}

#[tokio::test]
async fn a_plain_request_is_handed_to_the_proxy() {
    let upstream = plain().await;
    let proxy = ForwardProxy::start(None).await.unwrap();
    let transport = trusting_nobody(ProxyConfig::all(&proxy.url()).unwrap());
    let base = format!("http://{}", upstream.address());
    assert_eq!(ask(&transport, &base).await.unwrap().0, 200);
    assert!(proxy.log()[0].line.starts_with(&format!("POST {base}/")), "{:?}", proxy.log());

    // By the variables, this machine is excepted.
    let variables = [("HTTP_PROXY", proxy.url())];
    let read =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let transport = trusting_nobody(ProxyConfig::from_variables(read).unwrap());
    assert_eq!(ask(&transport, &base).await.unwrap().0, 200);
    assert_eq!(proxy.log().len(), 1);
}

// spec: P-4
#[tokio::test]
async fn a_proxy_that_refuses_is_told_apart() {
    let upstream = plain().await;
    let front = TlsFront::start(upstream.address()).await.unwrap();
    let proxy = ForwardProxy::start(Some("Basic bWU6c2VzYW1l")).await.unwrap();
    let transport = trusting(front.ca_pem(), ProxyConfig::all(&proxy.url()).unwrap());
    let failure = ask(&transport, &front.base_url()).await.unwrap_err();
    assert_eq!(failure.progress, Progress::NotSent);
    assert!(failure.causes.iter().any(|cause| cause.message.contains("proxy")), "{:?}", failure.causes);
    assert!(upstream.log().is_empty());
}

fn trusting_nobody(proxy: ProxyConfig) -> HyperTransport {
    HyperTransport::with(TransportConfig::new().proxy(proxy)).unwrap()
}

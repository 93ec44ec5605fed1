//! Who is let in, and what nobody is shown.

use crate::common::{KEY, Setup, World, question};
use failover_gateway::NewToken;
use failover_testkit::upstream::Step;
use http::Method;
use test_case::test_case;

/// The config's tokens, and the tokens themselves.
struct Tokens {
    text: String,
    app: String,
    trusted: String,
    narrow: String,
}

fn tokens() -> Tokens {
    let make = || {
        let made = NewToken::make().unwrap();
        (made.token.expose().to_owned(), made.sha256)
    };
    let ((app, a), (trusted, b), (narrow, c)) = (make(), make(), make());
    let text = format!(
        "tokens: [{{ name: 'app', sha256: '{a}' }}, {{ name: 'ops', sha256: '{b}', trusted: true }},
                  {{ name: 'narrow', sha256: '{c}', routes: ['fast'] }}],
         routes: {{ fast: {{ chain: ['second/two'] }} }},"
    );
    Tokens { text, app, trusted, narrow }
}

// spec: G-7
#[tokio::test]
async fn a_token_is_asked_for_where_the_config_has_one() {
    let Tokens { text, app, .. } = tokens();
    let world = World::with(Setup::gateway(&text)).await;
    let path = "/v1/chat/completions";
    let refused = world.post(path, &[], &question("default")).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    assert_eq!(refused.json()["error"]["type"], "authentication_error");
    assert_eq!(
        world.post(path, &[("authorization", "Bearer fo-wrong")], &question("default")).await.status,
        401
    );
    assert_eq!(world.get("/v1/models", &[]).await.status, 401);
    assert_eq!(world.get("/metrics", &[]).await.status, 401);
    assert_eq!(world.get("/healthz", &[]).await.status, 200);
    let bearer = format!("Bearer {app}");
    assert_eq!(world.post(path, &[("authorization", &bearer)], &question("default")).await.status, 200);
    for name in ["x-api-key", "api-key"] {
        assert_eq!(world.post(path, &[(name, &app)], &question("default")).await.status, 200, "{name}");
    }
    let anthropic = [("x-api-key", app.as_str()), ("anthropic-version", "2023-06-01")];
    let body = serde_json::json!({ "model": "default", "max_tokens": 10,
                                   "messages": [{ "role": "user", "content": "hello" }] });
    let answer = world.post("/v1/messages", &anthropic, &body).await;
    assert_eq!((answer.status, &answer.json()["type"]), (200, &"message".into()));
    // The caller's token is between it and the gateway.
    let log = world.first.log();
    assert!(log.iter().all(|attempt| !format!("{attempt:?}").contains(&app)), "{log:?}");
    // A caller's token is none for the admin API, nor the other way round.
    assert_eq!(world.get("/admin/v1/status", &[("authorization", &bearer)]).await.status, 401);
    assert_eq!(
        world.post(path, &[("authorization", "Bearer fo-admin")], &question("default")).await.status,
        401
    );
}

// spec: G-7
#[tokio::test]
async fn only_trusted_callers_name_their_own_chain() {
    let Tokens { text, app, trusted, .. } = tokens();
    let world = World::with(Setup::gateway(&text)).await;
    let ask = async |token: &str, chain: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("x-failover-chain", chain)];
        world.post("/v1/chat/completions", &headers, &question("whatever")).await
    };
    let refused = ask(&app, "second/two").await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(world.second.log().len(), 0);
    let answer = ask(&trusted, "second/two, first/one").await;
    assert_eq!((answer.status, answer.header("x-failover-served")), (200, Some("second/two")));
    assert_eq!(ask(&trusted, "nonsense").await.status, 400);
    assert_eq!(ask(&trusted, "").await.status, 400);
    // Without tokens there is nobody to trust.
    let open = World::new().await;
    let headers = [("x-failover-chain", "second/two")];
    let answer = open.post("/v1/chat/completions", &headers, &question("default")).await;
    assert_eq!(answer.status, 403);
}

// spec: G-7
#[tokio::test]
async fn a_token_may_be_bound_to_routes() {
    let Tokens { text, narrow, .. } = tokens();
    let world = World::with(Setup::gateway(&text)).await;
    let bearer = format!("Bearer {narrow}");
    let headers = [("authorization", bearer.as_str())];
    for (model, status) in [("fast", 200), ("default", 403), ("first/one", 403)] {
        assert_eq!(
            world.post("/v1/chat/completions", &headers, &question(model)).await.status,
            status,
            "{model}"
        );
    }
    let list = world.get("/v1/models", &headers).await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
}

// spec: G-7
#[test_case("host", "evil.example:8787"; "rebound to this machine")]
#[test_case("origin", "https://evil.example"; "a page of somebody else")]
#[test_case("sec-fetch-site", "cross-site"; "a form of somebody else")]
#[tokio::test]
async fn pages_do_not_get_at_a_server_on_loopback(name: &str, value: &str) {
    let world = World::new().await;
    let refused = world.post("/v1/chat/completions", &[(name, value)], &question("default")).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(world.first.log().len(), 0);
}

// spec: G-7
#[tokio::test]
async fn a_listed_origin_may_ask_and_read() {
    let world = World::with(Setup::gateway("allowedOrigins: ['https://app.example']")).await;
    let headers = [("origin", "https://app.example")];
    let preflight = world.send(Method::OPTIONS, "/v1/chat/completions", &headers, b"").await;
    assert_eq!(preflight.status, 204);
    let answer = world.post("/v1/chat/completions", &headers, &question("default")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    let other = world.get("/v1/models", &[("origin", "https://other.example")]).await;
    assert_eq!(other.header("access-control-allow-origin"), None);
}

// spec: G-7
#[tokio::test]
async fn no_reply_shows_a_key() {
    let world = World::new().await;
    let told = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","type":"invalid_request_error"}}}}"#
    );
    world.first.script("one", [Step::json(401, told.clone())]);
    world.second.script("two", [Step::json(400, told)]);
    let answer = world.chat(&question("default")).await;
    assert!(answer.status >= 400);
    let mut all = answer.text() + &format!("{:?}", answer.headers);
    for path in ["/metrics", "/status", "/v1/models"] {
        all.push_str(&world.get(path, &[]).await.text());
    }
    all.push_str(&world.admin("status").await.to_string());
    assert!(!all.contains(KEY) && !all.contains(&KEY[8..]), "{all}");
    // What a provider says of the gateway's own keys is not the client's affair.
    assert_ne!(answer.status, 401, "{}", answer.text());
}

//! The keys under `gateway`: what `failover serve` listens on, whom it serves, and how.

use crate::Config;
use crate::meaning::Faults;
use crate::value::Fallbacks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The HTTP server of `failover serve`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Gateway {
    /// Address and port (`127.0.0.1:8787`). An address beyond loopback needs `tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Who may ask, by bearer token. Empty: everybody on this machine, and nobody else.
    pub tokens: Vec<GatewayToken>,
    /// Who may see and steer the server's state.
    pub admin: GatewayAdmin,
    /// Names by which clients may call a server on loopback, besides `localhost` and its addresses.
    pub allowed_hosts: Vec<String>,
    /// Origins whose pages may post here: `https://app.example`. Empty: no page of a browser may.
    pub allowed_origins: Vec<String>,
    /// Models that clients may name, by name; `*` answers to every other name. The route `default` is the chain of
    /// `agents.defaults.model` unless it is written here.
    pub routes: BTreeMap<String, GatewayRoute>,
    /// Bounds on what clients send and on how long they take.
    pub limits: GatewayLimits,
    /// A silent stream gets a comment this often, in milliseconds (15000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keepalive_ms: Option<u64>,
    /// Sessions that nobody used for so long are forgotten, in hours (720).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_idle_hours: Option<u32>,
    /// Where traces and metrics go.
    pub telemetry: GatewayTelemetry,
}

/// A caller and the hash of its token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct GatewayToken {
    /// Who it is, in logs and metrics.
    pub name: String,
    /// SHA-256 of the token, 64 hexadecimal digits; `failover serve --new-token` makes both.
    pub sha256: String,
    /// May name a chain of its own in `x-failover-chain`.
    pub trusted: bool,
    /// The routes that it may use; without them, every route and `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<String>>,
}

/// Access to the admin API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct GatewayAdmin {
    /// Who may use it. Empty: `failover serve` makes a token for itself and prints it.
    pub tokens: Vec<GatewayToken>,
}

/// A name that clients use as a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct GatewayRoute {
    /// The models to try, in order: `provider/model`, an alias, or either with `@profile`. Empty: the chain of
    /// `agents.defaults.model`.
    pub chain: Vec<String>,
    /// What is done about a stream that breaks off after its first content (`off`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_rescue: Option<StreamRescue>,
    /// Longest answer that `buffer` holds, in bytes (4 MiB); a longer one is let through as it comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// Where the session of a request comes from (`auto`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsFrom>,
    /// Models tried after a context overflow, and only then (as `agents.defaults`).
    #[serde(skip_serializing_if = "Fallbacks::is_absent")]
    pub on_context_overflow: Fallbacks,
    /// Models tried after a content refusal, and only then (as `agents.defaults`).
    #[serde(skip_serializing_if = "Fallbacks::is_absent")]
    pub on_content_refusal: Fallbacks,
}

/// What is done about a stream that breaks off after its first content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamRescue {
    /// It ends with an error event.
    #[default]
    Off,
    /// Nothing is let through before the answer is complete, so that the next model can answer instead.
    Buffer,
    /// The next model that takes a begun answer (`prefill` among its facts) goes on with it.
    Continue,
}

/// Where the session of a request comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionsFrom {
    /// The header `x-failover-session`, else a stable key in the request (`prompt_cache_key`, `user`, …).
    #[default]
    Auto,
    /// The header only.
    Header,
    /// Every request stands alone.
    Off,
}

/// Bounds on what clients send and on how long they take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct GatewayLimits {
    /// Largest body, in bytes (32 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
    /// Largest head, in bytes (64 KiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_bytes: Option<u64>,
    /// Until the head is there; also how long an idle connection is kept, in milliseconds (30000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_ms: Option<u64>,
    /// Until the body is there, in milliseconds (60000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_ms: Option<u64>,
    /// How long a client may take nothing of what is there for it, in milliseconds (120000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_ms: Option<u64>,
    /// Connections at a time (4096).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// How long streams may go on once the server is told to stop, in milliseconds (30000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_ms: Option<u64>,
}

/// OpenTelemetry export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct GatewayTelemetry {
    /// Base address of a collector that takes OTLP over HTTP: `http://127.0.0.1:4318`. Absent: no export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// The service's name (`failover`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
}

/// Where the server listens unless told otherwise.
pub const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8787);

impl Gateway {
    /// The address to listen on; `None` where what is written is none.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listen.as_deref().map_or(Some(DEFAULT_LISTEN), |text| text.parse().ok())
    }
}

impl GatewayToken {
    /// The hash; `None` where what is written is none.
    pub fn hash(&self) -> Option<[u8; 32]> {
        if self.sha256.len() != 64 || !self.sha256.is_ascii() {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(self.sha256.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(pair).ok().filter(|text| !text.starts_with('+'))?;
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(hash)
    }
}

/// Faults of meaning under `gateway`; `whole` says that nothing had to be taken out of it.
pub(crate) fn meaning(config: &Config, whole: bool, faults: &mut Faults<'_>) {
    let gateway = &config.gateway;
    match gateway.address() {
        None => {
            let hint = "write it with its port: \"127.0.0.1:8787\"";
            faults.at("gateway.listen", "not an address with a port", hint);
        }
        Some(address) if whole && !address.ip().is_loopback() && gateway.tokens.is_empty() => {
            let message = format!("{address} can be reached from other machines, and nobody needs a token");
            let hint = "list a caller in `gateway.tokens`; `failover serve --new-token` makes one";
            faults.at("gateway.listen", message, hint);
        }
        Some(_) => {}
    }
    tokens("gateway.tokens", &gateway.tokens, gateway, whole, faults);
    tokens("gateway.admin.tokens", &gateway.admin.tokens, gateway, whole, faults);
    for name in gateway.routes.keys() {
        if name.is_empty() || name.contains(char::is_whitespace) || name.contains('/') {
            let message = format!("{name:?} cannot be the name of a route");
            let hint = "a name has neither spaces nor slashes: those mean provider/model";
            faults.at(&format!("gateway.routes.{name}"), message, hint);
        }
    }
    let origins = gateway.allowed_origins.iter().enumerate();
    for (at, origin) in
        origins.filter(|(_, origin)| !(origin.starts_with("http://") || origin.starts_with("https://")))
    {
        let message = format!("{origin:?} is not an origin");
        faults.at(&format!("gateway.allowedOrigins[{at}]"), message, "scheme and host: https://app.example");
    }
    let limits = &gateway.limits;
    let positive = [
        ("bodyBytes", limits.body_bytes),
        ("headerMs", limits.header_ms),
        ("bodyMs", limits.body_ms),
        ("writeMs", limits.write_ms),
        ("connections", limits.connections.map(u64::from)),
    ];
    for (name, _) in positive.into_iter().filter(|(_, value)| *value == Some(0)) {
        faults.at(&format!("gateway.limits.{name}"), "nothing would get through", "leave it out");
    }
    if limits.header_bytes.is_some_and(|bytes| !(8192..=1_048_576).contains(&bytes)) {
        let hint = "write a number in between, or leave the key out";
        faults.at("gateway.limits.headerBytes", "must be between 8192 and 1048576", hint);
    }
    if gateway.keepalive_ms == Some(0) {
        faults.at("gateway.keepaliveMs", "must not be 0", "leave it out");
    }
    if let Some(url) = &gateway.telemetry.otlp_endpoint
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        let hint = "write it with its scheme: http://127.0.0.1:4318";
        faults.at("gateway.telemetry.otlpEndpoint", "not an http or https address", hint);
    }
}

fn tokens(path: &str, tokens: &[GatewayToken], gateway: &Gateway, whole: bool, faults: &mut Faults<'_>) {
    for (at, token) in tokens.iter().enumerate() {
        if token.name.is_empty() {
            faults.at(&format!("{path}[{at}]"), "a token without `name`", "add `name`, who it is");
        } else if tokens.iter().take(at).any(|other| other.name == token.name) {
            let message = format!("a second token {:?}", token.name);
            faults.at(&format!("{path}[{at}].name"), message, "give it another name");
        }
        if token.hash().is_none() {
            let hint = "only the hash belongs here; `failover serve --new-token` prints it";
            faults.at(&format!("{path}[{at}].sha256"), "not a SHA-256 in hexadecimal", hint);
        }
        for (nth, route) in token.routes.iter().flatten().enumerate().filter(|_| whole) {
            if route != "default" && !gateway.routes.contains_key(route) {
                let message = format!("there is no route {route:?}");
                faults.at(&format!("{path}[{at}].routes[{nth}]"), message, "see gateway.routes");
            }
        }
    }
}

/// Every model that a route names, with its place.
pub(crate) fn references(gateway: &Gateway) -> Vec<(String, &str)> {
    fn listed(list: &Fallbacks) -> &[String] {
        if let Fallbacks::List(names) = list { names } else { &[] }
    }
    let mut out = Vec::new();
    for (name, route) in &gateway.routes {
        let lists = [
            ("chain", route.chain.as_slice()),
            ("onContextOverflow", listed(&route.on_context_overflow)),
            ("onContentRefusal", listed(&route.on_content_refusal)),
        ];
        for (key, names) in lists {
            let place = |at| format!("gateway.routes.{name}.{key}[{at}]");
            out.extend(names.iter().enumerate().map(|(at, name)| (place(at), name.as_str())));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::load_text;
    use test_case::test_case;

    fn good() -> String {
        let hash = "0".repeat(64);
        format!(
            "{{gateway: {{listen: '0.0.0.0:8787', tokens: [{{name: 'app', sha256: '{hash}', routes: ['fast']}}],
               routes: {{fast: {{chain: ['openai/gpt-5', 'groq/x'], streamRescue: 'buffer', sessions: 'off'}}}},
               limits: {{bodyBytes: 1024}}}}}}"
        )
    }

    // spec: G-7
    #[test]
    fn a_gateway_loads() {
        let loaded = load_text("x", &good()).unwrap();
        assert_eq!(loaded.config.gateway.address().unwrap().port(), 8787);
        assert_eq!(loaded.config.gateway.tokens[0].hash(), Some([0; 32]));
        assert_eq!(load_text("x", "{}").unwrap().config.gateway.address(), Some(super::DEFAULT_LISTEN));
    }

    // spec: G-7, U-3
    #[test_case("{gateway: {\n listen: '0.0.0.0:1'}}", 2, "nobody needs a token"; "open to the world")]
    #[test_case("{gateway: {\n listen: 'localhost'}}", 2, "address with a port")]
    #[test_case("{gateway: {\n tokens: [{name: 'a', sha256: 'secret'}]}}", 2, "SHA-256")]
    #[test_case("{gateway: {\n tokens: [{sha256: '0'}]}}", 2, "without `name`")]
    #[test_case("{gateway: {\n routes: {fast: {chain: ['gpt']}}}}", 2, "provider/model")]
    #[test_case("{gateway: {\n routes: {'a/b': {}}}}", 2, "name of a route")]
    #[test_case("{gateway: {\n routes: {a: {streamRescue: 'maybe'}}}}", 2, "unknown variant")]
    #[test_case("{gateway: {\n rotues: {}}}", 2, "unknown key")]
    #[test_case("{gateway: {\n limits: {bodyBytes: 0}}}", 2, "nothing would get through")]
    #[test_case("{gateway: {\n limits: {headerBytes: 12}}}", 2, "between")]
    #[test_case("{gateway: {\n allowedOrigins: ['app']}}", 2, "not an origin")]
    #[test_case("{gateway: {\n telemetry: {otlpEndpoint: 'x:1'}}}", 2, "http or https")]
    fn faults_have_their_line(text: &str, line: usize, message: &str) {
        let faults = load_text("x.json5", text).unwrap_err().faults;
        assert!(faults.iter().any(|f| f.line == line && f.message.contains(message)), "{faults:?}");
    }

    // spec: A-3
    #[test]
    fn a_token_in_the_place_of_its_hash_is_not_shown_again() {
        let faults =
            load_text("x", "{gateway: {tokens: [{name: 'a', sha256: 'fo-hunter2hunter2'}]}}").unwrap_err();
        assert!(!faults.to_string().contains("hunter2"), "{faults}");
    }
}

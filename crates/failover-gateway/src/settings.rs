//! From config keys to what the server works with. Every number that config leaves out has its default here.

use failover::config::{Config, GatewayToken};
use ring::digest::{SHA256, digest};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;

const MIB: u64 = 1024 * 1024;

/// Bounds on what clients send and on how long they take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) body_bytes: usize,
    pub(crate) header_bytes: usize,
    pub(crate) header: Duration,
    pub(crate) body: Duration,
    pub(crate) write: Duration,
    pub(crate) connections: usize,
    pub(crate) drain: Duration,
}

/// Somebody with a token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    hash: [u8; 32],
    /// May name a chain of its own.
    pub(crate) trusted: bool,
    /// The routes that it may use; `None` is all of them, and `provider/model` too.
    pub(crate) routes: Option<HashSet<String>>,
}

/// What the config says of the server itself.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) callers: Vec<Caller>,
    pub(crate) admins: Vec<Caller>,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) keepalive: Duration,
}

/// The hash of a token, as config holds it.
pub(crate) fn hash(token: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    for (to, from) in hash.iter_mut().zip(digest(&SHA256, token).as_ref()) {
        *to = *from;
    }
    hash
}

impl Caller {
    fn new(token: &GatewayToken) -> Option<Self> {
        Some(Self {
            name: token.name.as_str().into(),
            hash: token.hash()?,
            trusted: token.trusted,
            routes: token.routes.as_ref().map(|routes| routes.iter().cloned().collect()),
        })
    }

    /// The holder of a token that was just made.
    pub(crate) fn of(name: &str, token: &str) -> Self {
        Self { name: name.into(), hash: hash(token.as_bytes()), trusted: false, routes: None }
    }
}

/// Who holds this token. Every hash is compared, and each in constant time.
pub(crate) fn holder<'a>(callers: &'a [Caller], token: &[u8]) -> Option<&'a Caller> {
    let hash = hash(token);
    let mut found = None;
    for caller in callers {
        if bool::from(caller.hash.ct_eq(&hash)) {
            found = Some(caller);
        }
    }
    found
}

fn millis(written: Option<u64>, default: u64) -> Duration {
    Duration::from_millis(written.unwrap_or(default))
}

fn size(written: Option<u64>, default: u64) -> usize {
    usize::try_from(written.unwrap_or(default)).unwrap_or(usize::MAX)
}

impl Settings {
    pub(crate) fn new(config: &Config) -> Self {
        let gateway = &config.gateway;
        let limits = &gateway.limits;
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self {
            callers: gateway.tokens.iter().filter_map(Caller::new).collect(),
            admins: gateway.admin.tokens.iter().filter_map(Caller::new).collect(),
            hosts: lower(&gateway.allowed_hosts),
            origins: lower(&gateway.allowed_origins),
            limits: Limits {
                body_bytes: size(limits.body_bytes, 32 * MIB),
                header_bytes: size(limits.header_bytes, 64 * 1024),
                header: millis(limits.header_ms, 30_000),
                body: millis(limits.body_ms, 60_000),
                write: millis(limits.write_ms, 120_000),
                connections: usize::try_from(limits.connections.unwrap_or(4096)).unwrap_or(usize::MAX),
                drain: millis(limits.drain_ms, 30_000),
            },
            keepalive: millis(gateway.keepalive_ms, 15_000),
        }
    }
}

/// Time limits towards providers where the operator set none: a gateway must not wait for ever. In milliseconds.
pub(crate) fn with_default_limits(config: &mut Config) {
    let limits = &mut config.agents.defaults.limits;
    limits.connect_ms.get_or_insert(10_000);
    // Nothing is seen of an answer that comes whole before it is written to its end, and long ones take minutes to write:
    // ten, as OpenAI's and Anthropic's own clients wait by default. An operator who wants to see something sooner means
    // these answers, too.
    if limits.first_byte_ms.or(limits.first_content_ms).is_none() {
        limits.whole_ms.get_or_insert(600_000);
    }
    let first_byte = *limits.first_byte_ms.get_or_insert(120_000);
    // A provider may say that it is alive for as long as it likes, so this one runs whatever comes but content. Half of
    // those ten minutes: a model may think for long without a word, and the next one is still asked in time.
    limits.first_content_ms.get_or_insert(first_byte.max(300_000));
    limits.idle_ms.get_or_insert(60_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: G-7
    #[test]
    fn a_token_is_known_by_its_hash() {
        let callers = [Caller::of("a", "fo-first"), Caller::of("b", "fo-second")];
        assert_eq!(holder(&callers, b"fo-second").map(|caller| &*caller.name), Some("b"));
        assert!(holder(&callers, b"fo-secon").is_none());
        assert!(holder(&callers, b"").is_none());
        assert!(!format!("{callers:?}").contains("fo-"));
    }
}

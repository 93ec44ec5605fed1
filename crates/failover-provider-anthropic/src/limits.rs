//! When a subscription's limit ends: the usage endpoint, asked once (requirement A-13).

use async_trait::async_trait;
use failover_http::{Exchange, Target};
use failover_provider::{AttemptFailure, AttemptScope, LimitProbe, ProbeError, Reset};
use failover_types::{BoxFuture, Clock, ModelRef, ResolvedCredential, Timestamp};
use http::header::{HeaderName, HeaderValue};
use http::{Method, Uri};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the limits of a subscription are told, beside the API's versions.
const PATH: &str = "/api/oauth/usage";
/// What the time was read from.
const SOURCE: &str = "claude_usage";
/// A window counts as spent from here on, in per cent.
const SPENT: f64 = 100.0;
/// Longest answer that is read, in bytes; a real one has a few hundred.
const MAX_BYTES: usize = 64 * 1024;

/// Asks when the windows of a subscription start anew.
pub(crate) struct Limits {
    target: Arc<Target>,
}

/// One window of use.
#[derive(Debug, Deserialize)]
struct Window {
    /// Per cent of it that are used up.
    utilization: Option<f64>,
    /// When it starts anew.
    resets_at: Option<String>,
}

/// Windows that hold for every model. Those of single models are told apart by name, and are not the subscription's.
const WHOLE: [&str; 2] = ["five_hour", "seven_day"];

impl Limits {
    pub(crate) fn new(target: Arc<Target>) -> Self {
        Self { target }
    }

    async fn ask(
        &self,
        credential: &ResolvedCredential,
        now: Timestamp,
    ) -> Result<Option<Reset>, AttemptFailure> {
        let wrong = || self.target.local("the provider's base URL makes no address for its limits");
        let model = ModelRef::new(self.target.id().clone(), "usage").map_err(|_| wrong())?;
        // Whoever asks bounds the time: nothing in here waits by a clock.
        let scope = AttemptScope::new(&model, Arc::new(Still(now))).with_credential(credential);
        let mut request = self.target.post(PATH, String::new(), "application/json", &scope)?;
        *request.method_mut() = Method::GET;
        *request.uri_mut() = beside_version(request.uri()).ok_or_else(wrong)?;
        let headers = request.headers_mut();
        headers
            .insert(HeaderName::from_static("anthropic-beta"), HeaderValue::from_static("oauth-2025-04-20"));
        self.target.authorize(headers, None, credential.secret.expose())?;
        let mut exchange = Exchange::new(self.target.id(), &scope);
        let status = exchange.send(self.target.transport(), request).await?;
        if status != 200 {
            return Err(exchange.refused(&[]).await);
        }
        let body = exchange.read_whole(Vec::new()).await?;
        if body.len() > MAX_BYTES {
            return Err(self.target.local("the answer about limits is too long"));
        }
        Ok(reset(&body))
    }
}

#[async_trait]
impl LimitProbe for Limits {
    async fn reset_time(
        &self,
        credential: &ResolvedCredential,
        now: Timestamp,
    ) -> Result<Option<Reset>, ProbeError> {
        Ok(self.ask(credential, now).await?)
    }
}

/// The same address without the version in its path.
fn beside_version(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_suffix(PATH)?;
    let base = path.rsplit_once('/').filter(|(_, last)| last.starts_with('v')).map_or(path, |(base, _)| base);
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{base}{PATH}").parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// When the last of the spent windows starts anew; `None` where none is spent, or the answer says nothing of the kind.
fn reset(body: &[u8]) -> Option<Reset> {
    let windows: BTreeMap<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    let spent = WHOLE.iter().filter_map(|name| {
        let window = Window::deserialize(windows.get(*name)?).ok()?;
        (window.utilization? >= SPENT).then_some(window.resets_at?)
    });
    let ends = spent.filter_map(|text| {
        let at: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(at.as_millisecond()).ok().map(Timestamp::from_millis)
    });
    Some(Reset::new(ends.max()?, SOURCE))
}

/// A clock that stands.
struct Still(Timestamp);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        if at <= self.0 { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    const DAY: &str = "2026-12-01T00:00:00Z";

    // spec: A-13
    #[test_case(r#"{"five_hour":{"utilization":100.0,"resets_at":"2026-12-01T00:00:00+00:00"},"seven_day":{"utilization":40.5,"resets_at":"2026-12-05T00:00:00Z"}}"#, Some(DAY); "the short window is spent")]
    #[test_case(r#"{"five_hour":{"utilization":100,"resets_at":"2026-11-30T22:00:00Z"},"seven_day":{"utilization":101,"resets_at":"2026-12-01T01:00:00.000+01:00"}}"#, Some(DAY); "both are, the later end counts")]
    #[test_case(r#"{"five_hour":{"utilization":99.9,"resets_at":"2026-12-01T00:00:00Z"},"seven_day":null}"#, None; "nothing is spent")]
    #[test_case(r#"{"seven_day_opus":{"utilization":100,"resets_at":"2026-12-01T00:00:00Z"}}"#, None; "only one model's")]
    #[test_case(r#"{"five_hour":{"utilization":100,"resets_at":"soon"}}"#, None; "no time")]
    #[test_case("[]", None; "something else")]
    fn a_spent_window_tells_its_end(body: &str, expected: Option<&str>) {
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let found = reset(body.as_bytes()).map(|reset| i64::try_from(reset.at.as_millis()).unwrap());
        assert_eq!(found, expected.map(at));
    }

    #[test_case("https://api.anthropic.com/v1/api/oauth/usage", "https://api.anthropic.com/api/oauth/usage")]
    #[test_case("http://proxy/x/v1/api/oauth/usage", "http://proxy/x/api/oauth/usage")]
    #[test_case("http://proxy/api/oauth/usage", "http://proxy/api/oauth/usage")]
    fn limits_stand_beside_the_versions(posted: &str, expected: &str) {
        assert_eq!(beside_version(&posted.parse().unwrap()).unwrap().to_string(), expected);
    }
}

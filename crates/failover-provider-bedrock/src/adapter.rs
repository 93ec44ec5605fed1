//! The adapter: one attempt over HTTP.

use crate::decode::Decoder;
use crate::frames::Framed;
use crate::keys::Login;
use crate::map::{map, takes_shown};
use crate::sign::sign;
use async_trait::async_trait;
use failover_classify::{ProviderRules, RuleTable};
use failover_http::{Exchange, Target, TargetConfig, TargetError, path_segment, receive};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Origin, Part, ProviderAdapter, Reply, ReplyHead,
};
use failover_types::{ProviderId, Secret};
use std::time::{Duration, SystemTime};

/// The region of a base URL that names none, where nothing else is said.
pub const DEFAULT_REGION: &str = "us-east-1";

/// The name that requests are signed for (AWS General Reference, "Amazon Bedrock endpoints and quotas").
const SERVICE: &str = "bedrock";

/// The codes and wordings of this API stand in the classifier's standard tables.
const RULES: RuleTable = RuleTable::new("converse", &[]);

/// Where Bedrock answers in a region.
pub fn base_url(region: &str) -> String {
    format!("https://bedrock-runtime.{region}.amazonaws.com")
}

/// The Converse API of Bedrock.
#[derive(Debug)]
pub struct Bedrock {
    target: Target,
    region: Option<String>,
}

impl Bedrock {
    /// The adapter of a provider, in [`DEFAULT_REGION`] unless the base URL names another region.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the address or the headers.
    pub fn new(id: ProviderId, config: TargetConfig) -> Result<Self, TargetError> {
        Ok(Self { target: config.build(id, &base_url(DEFAULT_REGION))?, region: None })
    }

    /// The adapter of a provider that signs for this region, whatever its host is called.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the address or the headers.
    pub fn in_region(
        id: ProviderId,
        region: impl Into<String>,
        config: TargetConfig,
    ) -> Result<Self, TargetError> {
        let region = region.into();
        Ok(Self { target: config.build(id, &base_url(&region))?, region: Some(region) })
    }

    fn authorize(
        &self,
        http: &mut http::Request<bytes::Bytes>,
        login: &Login,
        scope: &AttemptScope<'_>,
    ) -> Result<(), AttemptFailure> {
        match login {
            Login::Bearer(token) => self.target.authorize(http.headers_mut(), None, token.expose()),
            Login::Keys(keys) => {
                let named = self.region.as_deref().or_else(|| http.uri().host().and_then(region_of));
                let region = named.unwrap_or(DEFAULT_REGION).to_owned();
                let now = SystemTime::UNIX_EPOCH + Duration::from_millis(scope.clock.now().as_millis());
                sign(http, keys, &region, SERVICE, now).map_err(|what| self.target.local(what))
            }
        }
    }
}

/// The words that the last but one part of every region's name is made of.
const DIRECTIONS: &[&str] =
    &["north", "south", "east", "west", "central", "northeast", "northwest", "southeast", "southwest"];

/// The region that a host names: `eu-central-1` in `bedrock-runtime.eu-central-1.amazonaws.com`.
fn region_of(host: &str) -> Option<&str> {
    host.split('.').find(|label| {
        let words: Vec<&str> = label.split('-').collect();
        let [area, .., direction, number] = words.as_slice() else { return false };
        area.len() == 2 && DIRECTIONS.contains(direction) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[async_trait]
impl ProviderAdapter for Bedrock {
    fn id(&self) -> &ProviderId {
        self.target.id()
    }

    fn rules(&self) -> &dyn ProviderRules {
        &RULES
    }

    fn takes(&self, shown: &Part) -> bool {
        takes_shown(shown)
    }

    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure> {
        let mapped = map(request, &scope).map_err(|error| self.target.local(&error.to_string()))?;
        let login = match scope.credential {
            Some(credential) => Some(
                Login::read(credential.secret.expose())
                    .map_err(|error| self.target.local(&error.to_string()))?,
            ),
            None => None,
        };
        // The parts of a secret are secrets: the service quotes what it refuses.
        let secrets: Vec<Secret> =
            scope.secrets.iter().cloned().chain(login.iter().flat_map(Login::secrets)).collect();
        let scope = scope.with_secrets(&secrets);
        let method = if request.stream { "converse-stream" } else { "converse" };
        let accept = if request.stream { "application/vnd.amazon.eventstream" } else { "application/json" };
        let path = format!("/model/{}/{method}", path_segment(scope.model.model()));
        let mut http = self.target.post(&path, mapped.body, accept, &scope)?;
        if let Some(login) = &login {
            self.authorize(&mut http, login, &scope)?;
        }
        let mut exchange = Exchange::new(self.id(), &scope);
        let status = exchange.send(&Framed(self.target.transport()), http).await?;
        let mut head = ReplyHead::default();
        head.losses = mapped.losses;
        head.id = exchange.header("x-amzn-requestid").map(str::to_owned);
        let origin = Origin::new(self.id().clone()).with_model(scope.model.model());
        receive(exchange, self.id(), status, Decoder::new(origin), head, request.stream).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("bedrock-runtime.eu-central-1.amazonaws.com", Some("eu-central-1"))]
    #[test_case("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1"); "government")]
    #[test_case("vpce-0a1b-2c.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com", Some("ap-southeast-2"); "private link")]
    #[test_case("127.0.0.1", None; "address")]
    #[test_case("my-proxy-1.example", None; "another host")]
    fn regions(host: &str, expected: Option<&str>) {
        assert_eq!(region_of(host), expected);
    }
}

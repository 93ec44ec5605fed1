//! The adapter: one attempt over HTTP.

use crate::decode::Decoder;
use crate::map::{map, takes_shown};
use async_trait::async_trait;
use failover_classify::{ProviderRules, RuleTable};
use failover_http::{Exchange, Target, TargetConfig, TargetError, path_segment, receive};
use failover_provider::{
    AttemptFailure, AttemptScope, ChatRequest, Origin, Part, ProviderAdapter, Reply, ReplyHead,
};
use failover_types::{CredentialKind, ProviderId};
use http::header::{HeaderName, HeaderValue};

/// Where the Gemini API lives, its version included.
pub const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

/// Where Vertex AI serves Google's models to API keys, without naming a project.
const VERTEX_URL: &str = "https://aiplatform.googleapis.com/v1/publishers/google";

/// Whose quota a token's requests count against.
const USER_PROJECT: HeaderName = HeaderName::from_static("x-goog-user-project");

/// The codes and wordings of this API stand in the classifier's standard tables.
const RULES: RuleTable = RuleTable::new("gemini", &[]);

/// Where Vertex AI serves Google's models to a project: `global`, or a region such as `europe-west1`.
pub fn vertex_base_url(project: &str, location: &str) -> String {
    let host = match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        region => format!("{region}-aiplatform.googleapis.com"),
    };
    let (project, location) = (path_segment(project), path_segment(location));
    format!("https://{host}/v1/projects/{project}/locations/{location}/publishers/google")
}

/// Which of the two services it is: they speak one dialect with small differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Gemini,
    /// Refuses the ids of function calls as unknown fields.
    Vertex,
}

impl Service {
    fn of(id: &ProviderId, base: &str) -> Self {
        let vertex = id.as_str().contains("vertex")
            || base.contains("aiplatform.googleapis.com")
            || base.contains("/publishers/");
        if vertex { Self::Vertex } else { Self::Gemini }
    }
}

/// Gemini, by one of its two services.
#[derive(Debug)]
pub struct Google {
    target: Target,
    service: Service,
}

impl Google {
    /// The adapter of a provider. It is the Gemini API unless the base URL, or the provider's id, is one of Vertex AI;
    /// there the base URL ends before `/models/` ([`vertex_base_url`]).
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the address or the headers.
    pub fn new(id: ProviderId, config: TargetConfig) -> Result<Self, TargetError> {
        let target = config.build(id, BASE_URL)?;
        Ok(Self { service: Service::of(target.id(), target.base()), target })
    }

    /// The adapter of a provider that is Vertex AI, whatever its address looks like.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the address or the headers.
    pub fn vertex(id: ProviderId, config: TargetConfig) -> Result<Self, TargetError> {
        Ok(Self { target: config.build(id, VERTEX_URL)?, service: Service::Vertex })
    }
}

/// The path of a model's method. A name may say where the model lives (`tunedModels/x`, `endpoints/1`).
fn path(model: &str, streamed: bool) -> String {
    let segments: Vec<String> = model.split('/').map(path_segment).collect();
    let place = if segments.len() > 1 { "" } else { "models/" };
    let method = if streamed { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("/{place}{}:{method}", segments.join("/"))
}

#[async_trait]
impl ProviderAdapter for Google {
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
        let mapped =
            map(request, &scope, self.service).map_err(|error| self.target.local(&error.to_string()))?;
        let accept = if request.stream { "text/event-stream" } else { "application/json" };
        let path = path(scope.model.model(), request.stream);
        let mut http = self.target.post(&path, mapped.body, accept, &scope)?;
        if let Some(credential) = scope.credential {
            let header = (credential.kind == CredentialKind::ApiKey).then_some("x-goog-api-key");
            self.target.authorize(http.headers_mut(), header, credential.secret.expose())?;
            if let (None, Some(project)) = (header, &credential.project_id) {
                let project = HeaderValue::try_from(project).map_err(|_| {
                    self.target.local("the credential's project has characters that no header may have")
                })?;
                http.headers_mut().entry(USER_PROJECT).or_insert(project);
            }
        }
        let mut exchange = Exchange::new(self.id(), &scope);
        let status = exchange.send(self.target.transport(), http).await?;
        let mut head = ReplyHead::default();
        head.losses = mapped.losses;
        let origin = Origin::new(self.id().clone()).with_model(scope.model.model());
        let made_at = exchange.now().as_millis();
        receive(exchange, self.id(), status, Decoder::new(origin, made_at), head, request.stream).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("gemini-2.5-pro", false, "/models/gemini-2.5-pro:generateContent")]
    #[test_case("gemini-2.5-pro", true, "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"; "streamed")]
    #[test_case("tunedModels/x", false, "/tunedModels/x:generateContent"; "elsewhere")]
    #[test_case("a?key=b", false, "/models/a%3Fkey%3Db:generateContent"; "no query of its own")]
    fn paths(model: &str, streamed: bool, expected: &str) {
        assert_eq!(path(model, streamed), expected);
    }

    #[test]
    fn vertex_is_known_by_its_address_or_its_name() {
        let id = |name: &str| ProviderId::new(name).unwrap();
        assert_eq!(Service::of(&id("google"), BASE_URL), Service::Gemini);
        assert_eq!(Service::of(&id("mine"), &vertex_base_url("p", "global")), Service::Vertex);
        assert_eq!(Service::of(&id("google-vertex"), "http://127.0.0.1:1"), Service::Vertex);
        assert_eq!(
            vertex_base_url("p", "us-central1"),
            "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google"
        );
    }
}

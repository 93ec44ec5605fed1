//! Providers: which protocol each speaks, and the built-in adapter for it. One row for a protocol, one for a provider
//! that is known by name.

use crate::EngineError;
use failover_config::{Config, Provider, ProviderApi, ProviderProxy};
use failover_credentials::Environment;
use failover_http::{HyperTransport, ProxyConfig, TargetConfig, Transport, TransportConfig};
use failover_provider::ProviderAdapter;
use failover_types::ProviderId;
use std::sync::Arc;

/// What an adapter is made from.
struct Site<'a> {
    id: &'a ProviderId,
    settings: Option<&'a Provider>,
    transport: Arc<dyn Transport>,
}

impl Site<'_> {
    /// Where requests go; `base` corrects an address that was written in the vendor's own way.
    fn target(&self, base: fn(&str) -> String) -> TargetConfig {
        let mut target = TargetConfig::new().transport(Arc::clone(&self.transport));
        if let Some(settings) = self.settings {
            if let Some(url) = &settings.base_url {
                target = target.base_url(base(url));
            }
            for (name, value) in &settings.headers {
                target = target.header(name, value);
            }
        }
        target
    }

    /// The longest answers of its models, in tokens, where the config tells them.
    #[cfg(feature = "provider-anthropic")]
    fn longest(&self) -> impl Iterator<Item = (String, u64)> {
        let models = self.settings.into_iter().flat_map(|settings| &settings.models);
        models.filter_map(|facts| Some((facts.id.clone(), facts.max_tokens?)))
    }
}

type Build = fn(&Site<'_>) -> Result<Arc<dyn ProviderAdapter>, String>;

/// An adapter, or why there is none, in words.
#[cfg(any(
    feature = "provider-openai",
    feature = "provider-anthropic",
    feature = "provider-bedrock",
    feature = "provider-google",
    feature = "provider-ollama"
))]
fn made<A: ProviderAdapter + 'static>(
    built: Result<A, impl std::fmt::Display>,
) -> Result<Arc<dyn ProviderAdapter>, String> {
    built.map(|adapter| Arc::new(adapter) as _).map_err(|error| error.to_string())
}

/// The protocols that this build speaks. A new adapter is one row.
const APIS: &[(ProviderApi, Build)] = &[
    #[cfg(feature = "provider-openai")]
    (ProviderApi::OpenaiCompletions, |site| {
        made(failover_provider_openai::OpenAi::new(site.id.clone(), site.target(str::to_owned)))
    }),
    #[cfg(feature = "provider-openai")]
    (ProviderApi::OpenaiResponses, |site| {
        made(failover_provider_openai::Responses::new(site.id.clone(), site.target(str::to_owned)))
    }),
    #[cfg(feature = "provider-anthropic")]
    (ProviderApi::AnthropicMessages, |site| {
        // The vendor's clients, and configs written for them, leave the version out.
        let versioned = |url: &str| format!("{}/v1", url.trim_end_matches('/').trim_end_matches("/v1"));
        let adapter = failover_provider_anthropic::Anthropic::new(site.id.clone(), site.target(versioned));
        made(adapter.map(|adapter| adapter.with_longest(site.longest())))
    }),
    #[cfg(feature = "provider-google")]
    (ProviderApi::GoogleGenerativeAi, |site| {
        // The vendor's clients, and configs written for them, leave the version out.
        let versioned = |url: &str| {
            let url = url.trim_end_matches('/');
            let named = url.rsplit('/').next().is_some_and(|last| last.starts_with("v1"));
            if named { url.to_owned() } else { format!("{url}/v1beta") }
        };
        made(failover_provider_google::Google::new(site.id.clone(), site.target(versioned)))
    }),
    #[cfg(feature = "provider-google")]
    (ProviderApi::GoogleVertex, |site| {
        // The vendor's clients add the publisher themselves.
        let published = |url: &str| {
            let url = url.trim_end_matches('/');
            if url.ends_with("/publishers/google") {
                url.to_owned()
            } else {
                format!("{url}/publishers/google")
            }
        };
        made(failover_provider_google::Google::vertex(site.id.clone(), site.target(published)))
    }),
    #[cfg(feature = "provider-bedrock")]
    (ProviderApi::BedrockConverseStream, |site| {
        made(failover_provider_bedrock::Bedrock::new(site.id.clone(), site.target(str::to_owned)))
    }),
    #[cfg(feature = "provider-ollama")]
    (ProviderApi::Ollama, |site| {
        // The compatible API of the same server ends in a version, its own does not.
        let bare = |url: &str| url.trim_end_matches('/').trim_end_matches("/v1").to_owned();
        made(failover_provider_ollama::Ollama::new(site.id.clone(), site.target(bare)))
    }),
];

/// A provider that is known by name.
struct Known {
    id: &'static str,
    api: ProviderApi,
    /// Variables in which its key is kept by custom, the first that is set wins. None: `<ID>_API_KEY`.
    variables: &'static [&'static str],
    /// Whether it works without any key.
    keyless: bool,
}

/// Providers whose protocol, variable or want of a key is not the usual one. Those of the chat completions dialect
/// stand in the facts of `failover-provider-openai`.
const KNOWN: &[Known] = &[
    Known { id: "anthropic", api: ProviderApi::AnthropicMessages, variables: &[], keyless: false },
    Known {
        id: "google",
        api: ProviderApi::GoogleGenerativeAi,
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        keyless: false,
    },
    Known { id: "google-vertex", api: ProviderApi::GoogleVertex, variables: &[], keyless: false },
    Known {
        id: "amazon-bedrock",
        api: ProviderApi::BedrockConverseStream,
        variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        keyless: false,
    },
    Known { id: "ollama", api: ProviderApi::Ollama, variables: &[], keyless: true },
    Known {
        id: "github-models",
        api: ProviderApi::OpenaiCompletions,
        variables: &["GITHUB_TOKEN"],
        keyless: false,
    },
    Known {
        id: "huggingface",
        api: ProviderApi::OpenaiCompletions,
        variables: &["HF_TOKEN", "HUGGINGFACE_API_KEY"],
        keyless: false,
    },
];

fn known(id: &ProviderId) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.id == id.as_str())
}

/// Whether a provider of this name is known to want a key. The operator's own servers may want none.
pub(crate) fn wants_key(id: &ProviderId) -> bool {
    match known(id) {
        Some(known) => !known.keyless,
        #[cfg(feature = "provider-openai")]
        None => !failover_provider_openai::facts_for(id).keyless,
        #[cfg(not(feature = "provider-openai"))]
        None => false,
    }
}

/// The variables in which a provider's key is kept by custom, the likeliest first.
pub(crate) fn variables(id: &ProviderId) -> Vec<String> {
    let listed: Vec<String> =
        known(id).iter().flat_map(|known| known.variables).map(|name| (*name).to_owned()).collect();
    if listed.is_empty() { vec![crate::keys::variable(id)] } else { listed }
}

/// Makes the built-in adapters of one config. They share one pool of connections, but for those whose requests
/// travel otherwise.
pub(crate) struct Providers<'a> {
    config: &'a Config,
    environment: &'a Environment,
    shared: Option<Arc<dyn Transport>>,
}

impl<'a> Providers<'a> {
    pub(crate) fn new(config: &'a Config, environment: &'a Environment) -> Self {
        Self { config, environment, shared: None }
    }

    /// The adapter of a provider; `None` where this build does not speak its protocol.
    ///
    /// # Errors
    ///
    /// [`EngineError::Provider`] where its settings cannot be used.
    pub(crate) fn adapter(
        &mut self,
        id: &ProviderId,
    ) -> Result<Option<Arc<dyn ProviderAdapter>>, EngineError> {
        let settings = self.config.models.providers.get(id);
        let chosen = settings.and_then(|settings| settings.api);
        let api =
            chosen.or_else(|| known(id).map(|known| known.api)).unwrap_or(ProviderApi::OpenaiCompletions);
        let fault = |why: String| EngineError::Provider { provider: id.clone(), why };
        let Some((_, build)) = APIS.iter().find(|(known, _)| *known == api) else {
            return match chosen {
                None => Ok(None),
                Some(api) => Err(fault(format!("this build does not speak {}", api.as_str()))),
            };
        };
        let transport = self.transport(settings).map_err(fault)?;
        build(&Site { id, settings, transport }).map(Some).map_err(fault)
    }

    fn transport(&mut self, settings: Option<&Provider>) -> Result<Arc<dyn Transport>, String> {
        let request = settings.and_then(|settings| settings.request.as_ref());
        if let (None, Some(shared)) = (request, &self.shared) {
            return Ok(Arc::clone(shared));
        }
        let environment = self.environment;
        let from_environment = || ProxyConfig::from_variables(|name| environment(name));
        let proxy = match request.and_then(|request| request.proxy.as_ref()) {
            Some(ProviderProxy::ExplicitProxy { url }) => ProxyConfig::all(url),
            Some(ProviderProxy::NoProxy) => Ok(ProxyConfig::none()),
            _ => from_environment(),
        };
        let mut config = TransportConfig::new().proxy(proxy.map_err(|error| error.to_string())?);
        if let Some(path) = request.and_then(|request| request.tls.as_ref()).and_then(|tls| tls.ca.as_ref()) {
            let pem = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            config = config.roots_pem(&pem).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let transport: Arc<dyn Transport> =
            Arc::new(HyperTransport::with(config).map_err(|error| error.to_string())?);
        if request.is_none() {
            self.shared = Some(Arc::clone(&transport));
        }
        Ok(transport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover_config::load_text;

    fn adapter(config: &str, id: &str) -> Result<Option<Arc<dyn ProviderAdapter>>, EngineError> {
        let loaded = load_text("failover.json5", config).unwrap();
        let environment: Environment = Arc::new(|_| None);
        Providers::new(&loaded.config, &environment).adapter(&ProviderId::new(id).unwrap())
    }

    // spec: P-7
    #[test]
    #[cfg(all(feature = "provider-openai", feature = "provider-anthropic", feature = "provider-ollama"))]
    fn known_names_and_protocols_lead_to_their_adapters() {
        for id in ["openai", "anthropic", "ollama", "groq", "github-models"] {
            assert_eq!(adapter("{}", id).unwrap().unwrap().id().as_str(), id);
        }
        for api in ["openai-completions", "anthropic-messages", "ollama"] {
            let config = format!(
                "{{models: {{providers: {{mine: {{api: '{api}', baseUrl: 'http://127.0.0.1:9'}}}}}}}}"
            );
            assert!(adapter(&config, "mine").unwrap().is_some(), "{api}");
        }
    }

    // spec: P-7
    #[test]
    #[cfg(all(feature = "provider-openai", feature = "provider-google", feature = "provider-bedrock"))]
    fn the_other_vendors_are_known_too() {
        for id in ["google", "google-vertex", "amazon-bedrock"] {
            assert_eq!(adapter("{}", id).unwrap().unwrap().id().as_str(), id);
        }
        for api in ["openai-responses", "google-generative-ai", "google-vertex", "bedrock-converse-stream"] {
            let config = format!(
                "{{models: {{providers: {{mine: {{api: '{api}', baseUrl: 'http://127.0.0.1:9'}}}}}}}}"
            );
            assert!(adapter(&config, "mine").unwrap().is_some(), "{api}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let why = |config: &str| match adapter(config, "mine") {
            Err(EngineError::Provider { why, .. }) => why,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("an adapter"),
        };
        let settings = |settings: &str| format!("{{models: {{providers: {{mine: {{{settings}}}}}}}}}");
        let missing = settings("baseUrl: 'http://127.0.0.1:9', request: {tls: {ca: '/nowhere/ca.pem'}}");
        assert!(why(&missing).contains("/nowhere/ca.pem"));
        let proxy =
            "baseUrl: 'http://127.0.0.1:9', request: {proxy: {mode: 'explicit-proxy', url: 'ftp://x'}}";
        assert!(why(&settings(proxy)).contains("ftp://x"));
    }

    #[test]
    fn variables_follow_the_vendors_customs() {
        let of = |id: &str| variables(&ProviderId::new(id).unwrap());
        assert_eq!(of("google"), ["GEMINI_API_KEY", "GOOGLE_API_KEY"]);
        assert_eq!(of("my-own"), ["MY_OWN_API_KEY"]);
        assert!(!wants_key(&ProviderId::new("ollama").unwrap()));
        assert!(wants_key(&ProviderId::new("anthropic").unwrap()));
    }
}

//! The keys of the config file. Names are OpenClaw's where the two share a thing.

use crate::gateway::Gateway;
use crate::value::{Fallbacks, KeySource, ModelChoice};
use failover_types::{FailoverReason, ProfileId, ProviderId, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole file. Everything is optional: `{}` is a valid config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Config {
    /// For editors: where the schema of this file is.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Credentials: metadata and routing, never secrets.
    pub auth: Auth,
    /// Agents, their models and their limits.
    pub agents: Agents,
    /// Providers and what their models can do.
    pub models: Models,
    /// Classifier rules of the operator.
    pub classifier: Classifier,
    /// The HTTP server of `failover serve`.
    pub gateway: Gateway,
}

/// Profiles, their order, and cooldown numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Auth {
    /// Profiles by id, `provider:name`.
    #[schemars(with = "BTreeMap<String, Profile>")]
    pub profiles: BTreeMap<ProfileId, Profile>,
    /// The order in which a provider's profiles are tried; without one they take turns.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub order: BTreeMap<ProviderId, Vec<ProfileId>>,
    /// How long a failing profile or model rests.
    pub cooldowns: Cooldowns,
}

/// What is known of a profile besides its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Profile {
    /// Whose credential it is.
    #[schemars(with = "String")]
    pub provider: ProviderId,
    /// Which kind of credential it is.
    #[serde(default)]
    pub mode: AuthMode,
    /// The account, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Where the key is read from; without it, it is in the agent's secret store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeySource>,
}

/// Kinds of credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the kinds that failover-types has")]
pub enum AuthMode {
    /// An API key.
    #[default]
    ApiKey,
    /// A subscription: an access token that is refreshed.
    #[serde(rename = "oauth")]
    OAuth,
    /// A bearer token that is never refreshed.
    Token,
}

/// How long a failing profile or model rests. Absent keys take the defaults named here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Cooldowns {
    /// A named ladder: `default` (30 s, 1 min, 5 min) or `classic` (1, 5, 25, 60 min).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The steps of the ladder in milliseconds, by consecutive errors; the last one repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ladder_ms: Option<Vec<u64>>,
    /// First rest after a billing failure, in hours (5); it doubles with each further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billing_backoff_hours: Option<u32>,
    /// The same, by provider.
    #[schemars(with = "BTreeMap<String, u32>")]
    pub billing_backoff_hours_by_provider: BTreeMap<ProviderId, u32>,
    /// Longest rest after a billing failure, in hours (24).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billing_max_hours: Option<u32>,
    /// First rest after a permanent refusal, in minutes (10); it doubles with each further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_permanent_backoff_minutes: Option<u32>,
    /// Longest rest after a permanent refusal, in minutes (60).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_permanent_max_minutes: Option<u32>,
    /// Counters start anew after this many hours without a failure, counted from the end of the last window (24).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_window_hours: Option<u32>,
    /// Other profiles tried after a rate limit, per candidate (1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limited_profile_rotations: Option<u32>,
    /// Other profiles tried after an overload, per candidate (1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overloaded_profile_rotations: Option<u32>,
    /// Other profiles tried after a server error or a timeout, per candidate (1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transient_profile_rotations: Option<u32>,
    /// Wait before another profile is tried after an overload, in milliseconds (0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overloaded_backoff_ms: Option<u64>,
}

/// Agents: defaults, and each one's own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Agents {
    /// What holds where an agent says nothing.
    pub defaults: AgentSettings,
    /// Agents by name.
    pub list: Vec<Agent>,
}

/// An agent and its own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Agent {
    /// Its name.
    pub id: String,
    /// Its model. Its own primary is strict unless it has its own fallbacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// Its model for images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_model: Option<ModelChoice>,
    /// Its heartbeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Heartbeat>,
    /// Models tried after a context overflow, and only then.
    #[serde(skip_serializing_if = "Fallbacks::is_absent")]
    pub on_context_overflow: Fallbacks,
    /// Models tried after a content refusal, and only then.
    #[serde(skip_serializing_if = "Fallbacks::is_absent")]
    pub on_content_refusal: Fallbacks,
}

/// Settings of agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct AgentSettings {
    /// The model and its fallbacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// The model for images and its fallbacks. A request with an image goes to it, unless a model was chosen for the
    /// request or its session, or the facts of the model that is selected say that it reads images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_model: Option<ModelChoice>,
    /// Turns that the host makes by itself, by the library's `Turn::as_heartbeat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Heartbeat>,
    /// Aliases of models, by `provider/model`. Where any is listed, a user chooses among these and those that a chain names.
    pub models: BTreeMap<String, ModelEntry>,
    /// Models tried after a context overflow, and only then (off).
    #[serde(skip_serializing_if = "Fallbacks::is_absent")]
    pub on_context_overflow: Fallbacks,
    /// Models tried after a content refusal, and only then (off).
    #[serde(skip_serializing_if = "Fallbacks::is_absent")]
    pub on_content_refusal: Fallbacks,
    /// What `…@profile` of a person means (`strict`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_pin: Option<UserPin>,
    /// Whether a fallback stays for later turns (`session`) or serves one turn only (`turn_local`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_overrides: Option<Overrides>,
    /// Time limits of one attempt and of the whole run.
    pub limits: Limits,
    /// Bound on the attempts at one candidate.
    pub run_retries: RunRetries,
    /// Short waits that are sat out at the same candidate.
    pub retry_in_place: RetryInPlace,
    /// How long a refused fallback credential is left out of a session, in milliseconds (off).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_ttl_ms: Option<u64>,
}

/// Turns that the host makes by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Heartbeat {
    /// Their model, alone; without one, what the session or the agent says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What a person's choice of a profile means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UserPin {
    /// Never rotated.
    Strict,
    /// Tried first; others may follow.
    Preferred,
}

/// How long a fallback lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Overrides {
    /// Until the primary answers again.
    Session,
    /// For one turn.
    TurnLocal,
}

/// An alias of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModelEntry {
    /// A short name, usable wherever `provider/model` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

/// Time limits, in milliseconds. Absent: no such limit, except in the gateway, which has defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Limits {
    /// The whole run, all attempts and waits together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_ms: Option<u64>,
    /// Until the connection stands, TLS included. The gateway's default is 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<u64>,
    /// From the request's end to the first byte of the answer. The gateway's default is 120000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    /// From the request's end to the first content: text, reasoning, or a call of a tool. Heartbeats, comments and empty
    /// pieces are none, and an answer that is not streamed is none before its end. The gateway's default is 300000, or
    /// `firstByteMs` where that is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_content_ms: Option<u64>,
    /// From the request's end to the end of an answer that is not streamed: nothing of it is there before, not even a first
    /// byte. In the place of `firstByteMs` and `firstContentMs`, and absent these. The gateway's default, where these are absent, too,
    /// is 600000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_ms: Option<u64>,
    /// Between two pieces of content; heartbeats do not count. The gateway's default is 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// Attempts in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

/// Bound on the attempts at one candidate: `min(max, max(min, base + profiles × perProfile))`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RunRetries {
    /// Starting number (24).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<u32>,
    /// Added for each profile (8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_profile: Option<u32>,
    /// Least bound (32).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// Greatest bound (160).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// Retries of the same candidate before anything is spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RetryInPlace {
    /// How many (1); 0 turns them off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Longest wait of a provider that is sat out, in milliseconds (3000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
}

/// Providers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Models {
    /// Providers by id.
    #[schemars(with = "BTreeMap<String, Provider>")]
    pub providers: BTreeMap<ProviderId, Provider>,
}

/// How a provider is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Provider {
    /// Where requests go, the version path included: `https://api.openai.com/v1`. Known providers have a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Where its key is read from; shorthand for a profile `<provider>:default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<KeySource>,
    /// Which protocol it speaks. Known providers have a default; for others it is `openai-completions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<ProviderApi>,
    /// How its requests travel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ProviderRequest>,
    /// Headers added to each request. Not the place for a key.
    pub headers: BTreeMap<String, String>,
    /// It balances over its own upstreams: rate limits there are never the whole profile's (default for openrouter).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_balancing: Option<bool>,
    /// What its models can do.
    pub models: Vec<ModelFacts>,
}

/// Protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProviderApi {
    /// OpenAI's chat completions, and every server that speaks them. The default.
    OpenaiCompletions,
    /// OpenAI's responses.
    OpenaiResponses,
    /// Anthropic's messages.
    AnthropicMessages,
    /// Google's Gemini API.
    GoogleGenerativeAi,
    /// Gemini on Google Vertex.
    GoogleVertex,
    /// Converse of Amazon Bedrock.
    BedrockConverseStream,
    /// Ollama's own API.
    Ollama,
}

impl ProviderApi {
    /// The name in the config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiCompletions => "openai-completions",
            Self::OpenaiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::GoogleGenerativeAi => "google-generative-ai",
            Self::GoogleVertex => "google-vertex",
            Self::BedrockConverseStream => "bedrock-converse-stream",
            Self::Ollama => "ollama",
        }
    }
}

/// How a provider's requests travel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ProviderRequest {
    /// The proxy on the way; without it, what the environment says (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProviderProxy>,
    /// Whom to trust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ProviderTls>,
}

/// A proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "mode")]
#[non_exhaustive]
pub enum ProviderProxy {
    /// The environment's.
    EnvProxy,
    /// This one, whatever the environment says.
    ExplicitProxy {
        /// `http://` or `https://`, host and port.
        url: String,
    },
    /// None, whatever the environment says.
    NoProxy,
}

/// Whom to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ProviderTls {
    /// A PEM file of root certificates that are trusted besides the usual ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<std::path::PathBuf>,
}

/// What a model can do, where known. Nothing known: no check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModelFacts {
    /// The provider's name for it.
    pub id: String,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Size of its window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Longest answer, in tokens: the bound for requests that have none, where the provider's API demands one (Anthropic's).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What it reads: `text`, `image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Vec<String>>,
    /// Whether it calls tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether it can be held to JSON; a request for JSON passes over a model that cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<bool>,
    /// Whether it goes on with an answer that somebody else began; a gateway's `streamRescue: "continue"` needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill: Option<bool>,
}

/// The operator's own classifier rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Classifier {
    /// Rules, asked right after local conditions and before every rule that ships.
    pub rules: Vec<OperatorRule>,
}

/// One rule: all conditions that are given must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OperatorRule {
    /// Its name in evidence: lower case, digits and dashes.
    pub id: String,
    /// Why a call that matches failed.
    #[schemars(with = "String")]
    pub reason: FailoverReason,
    /// A text that the error contains, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A regular expression, in any case: tried on the body as it came, then on each string of JSON in it as that reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// An HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// An error code or type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The provider that it holds for; without it, every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub provider: Option<ProviderId>,
    /// What it blames: `request`, `model`, `credential` or `provider`; without it, what the reason blames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub scope: Option<Scope>,
}

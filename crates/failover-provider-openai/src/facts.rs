//! What differs between servers of the dialect, one row each.

use failover_provider::ToolIds;
use failover_types::ProviderId;

/// How a key is sent. Tokens and OAuth access tokens are bearers everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// `Authorization: Bearer`.
    Bearer,
    /// A header of its own.
    Header(&'static str),
}

/// Where the reasoning effort goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EffortField {
    /// Nowhere: the server has no such thing, and says so with an error.
    Nowhere,
    /// `"reasoning_effort": "low"`.
    Flat,
    /// `"reasoning": {"effort": "low"}`.
    Nested,
}

/// What documents it reads in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Files {
    /// None.
    Nowhere,
    /// Those that come with the request: `{"type": "file", "file": {"file_data": "data:…"}}`.
    Inline,
    /// Those at an address, too, in the same place.
    Linked,
    /// `{"type": "document_url", "document_url": "…"}`.
    DocumentUrl,
}

/// What is known of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The provider's id.
    pub id: &'static str,
    /// Where its API lives; `None` where every installation has its own address.
    pub base_url: Option<&'static str>,
    /// How a key is sent.
    pub auth: Auth,
    /// Headers without which it refuses, unless the operator sets them.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether it works without any credential.
    pub keyless: bool,
    /// Name of the bound on generated tokens.
    pub max_tokens: &'static str,
    /// Whether a stream gives its usage only where `stream_options` asks for it. Elsewhere the field is not sent:
    /// strict servers refuse what they do not know.
    pub ask_for_usage: bool,
    /// Where the reasoning effort goes.
    pub effort: EffortField,
    /// The word for "some tool must be called".
    pub required: &'static str,
    /// What it accepts as the id of a tool call.
    pub tool_ids: ToolIds,
    /// How many texts that end an answer it accepts, as its reference says; `None` where it names no bound.
    pub most_stops: Option<usize>,
    /// What documents it reads.
    pub files: Files,
    /// Whether it hears recordings: `{"type": "input_audio", …}`.
    pub audio: bool,
    /// The reasoning field of its answers that it wants back unchanged in later turns, or the part of its content
    /// (`thinking`).
    pub returns_reasoning: Option<&'static str>,
}

const PLAIN: Facts = Facts {
    id: "openai-compatible",
    base_url: None,
    auth: Auth::Bearer,
    headers: &[],
    keyless: true,
    max_tokens: "max_tokens",
    ask_for_usage: true,
    effort: EffortField::Flat,
    required: "required",
    tool_ids: ToolIds::UpTo(64),
    most_stops: None,
    files: Files::Inline,
    audio: true,
    returns_reasoning: None,
};

const fn hosted(id: &'static str, base_url: &'static str) -> Facts {
    Facts { id, base_url: Some(base_url), keyless: false, files: Files::Nowhere, audio: false, ..PLAIN }
}

const fn local(id: &'static str, base_url: &'static str) -> Facts {
    Facts { id, base_url: Some(base_url), files: Files::Nowhere, ..PLAIN }
}

impl Facts {
    /// Whether nothing is known of the server.
    pub(crate) fn is_unknown(&self) -> bool {
        self.id == PLAIN.id
    }
}

/// The rows. The first is what a server without a row of its own gets.
pub const FACTS: &[Facts] = &[
    PLAIN,
    Facts {
        max_tokens: "max_completion_tokens",
        tool_ids: ToolIds::UpTo(40),
        most_stops: Some(4),
        files: Files::Inline,
        audio: true,
        ..hosted("openai", "https://api.openai.com/v1")
    },
    Facts {
        effort: EffortField::Nested,
        returns_reasoning: Some("reasoning_details"),
        files: Files::Linked,
        audio: true,
        ..hosted("openrouter", "https://openrouter.ai/api/v1")
    },
    Facts {
        max_tokens: "max_completion_tokens",
        most_stops: Some(4),
        ..hosted("groq", "https://api.groq.com/openai/v1")
    },
    Facts {
        effort: EffortField::Nowhere,
        returns_reasoning: Some("reasoning_content"),
        most_stops: Some(16),
        ..hosted("deepseek", "https://api.deepseek.com/v1")
    },
    Facts {
        ask_for_usage: false,
        effort: EffortField::Nowhere,
        required: "any",
        tool_ids: ToolIds::Exactly(9),
        returns_reasoning: Some("thinking"),
        files: Files::DocumentUrl,
        ..hosted("mistral", "https://api.mistral.ai/v1")
    },
    hosted("together", "https://api.together.xyz/v1"),
    Facts { most_stops: Some(4), ..hosted("fireworks", "https://api.fireworks.ai/inference/v1") },
    Facts { max_tokens: "max_completion_tokens", ..hosted("xai", "https://api.x.ai/v1") },
    Facts {
        id: "azure-openai",
        auth: Auth::Header("api-key"),
        keyless: false,
        max_tokens: "max_completion_tokens",
        tool_ids: ToolIds::UpTo(40),
        most_stops: Some(4),
        ..PLAIN
    },
    Facts {
        effort: EffortField::Nowhere,
        most_stops: Some(4),
        ..hosted("github-models", "https://models.github.ai/inference")
    },
    // Tokens, not keys; an account of a company has an address of its own, which comes with the token.
    Facts {
        headers: &[
            ("editor-version", concat!("failover/", env!("CARGO_PKG_VERSION"))),
            ("copilot-integration-id", "vscode-chat"),
        ],
        most_stops: Some(4),
        ..hosted("github-copilot", "https://api.githubcopilot.com")
    },
    Facts { effort: EffortField::Nowhere, ..hosted("cerebras", "https://api.cerebras.ai/v1") },
    Facts { effort: EffortField::Nowhere, ..hosted("huggingface", "https://router.huggingface.co/v1") },
    Facts {
        effort: EffortField::Nowhere,
        returns_reasoning: Some("reasoning_content"),
        most_stops: Some(5),
        ..hosted("moonshot", "https://api.moonshot.ai/v1")
    },
    Facts { effort: EffortField::Nowhere, ..hosted("nvidia", "https://integrate.api.nvidia.com/v1") },
    Facts {
        effort: EffortField::Nowhere,
        returns_reasoning: Some("reasoning_content"),
        most_stops: Some(1),
        ..hosted("zai", "https://api.z.ai/api/paas/v4")
    },
    local("vllm", "http://127.0.0.1:8000/v1"),
    Facts { audio: false, ..local("lmstudio", "http://127.0.0.1:1234/v1") },
    Facts { effort: EffortField::Nowhere, ..local("llama-cpp", "http://127.0.0.1:8080/v1") },
];

/// The row of a provider, or the plain one.
pub fn facts_for(provider: &ProviderId) -> &'static Facts {
    FACTS.iter().find(|facts| facts.id == provider.as_str()).unwrap_or(&PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    // spec: P-7
    #[test]
    fn every_row_is_reachable_by_a_valid_id() {
        let mut seen = HashSet::new();
        for facts in FACTS {
            assert!(seen.insert(facts.id), "{} stands twice", facts.id);
            assert_eq!(facts_for(&ProviderId::new(facts.id).unwrap()), facts);
            if let Some(url) = facts.base_url {
                assert!(url.parse::<http::Uri>().is_ok() && !url.ends_with('/'), "{url}");
            }
        }
        assert_eq!(facts_for(&ProviderId::new("my-own").unwrap()).id, "openai-compatible");
    }
}

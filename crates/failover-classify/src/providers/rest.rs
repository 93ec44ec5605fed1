//! Other hosts and local servers.

use super::{Tables, code, text};
use crate::rule::{Family, Rule, StatusSet};
use failover_types::FailoverReason::{
    Auth, AuthPermanent, Billing, ContentRefusal, ContextOverflow, Format, ModelNotFound, Overloaded,
    RateLimit, ServerError,
};

pub(crate) const TABLES: Tables = &[
    ("cohere", COHERE),
    ("venice", VENICE),
    ("xai", XAI),
    ("nvidia", NVIDIA),
    ("huggingface", HUGGINGFACE),
    ("ollama", OLLAMA),
    ("llamacpp", LLAMACPP),
    ("mistral", MISTRAL),
    ("together", TOGETHER),
    ("anthropic", ANTHROPIC),
    ("mimo", MIMO),
];

const CO: &[&str] = &["cohere"];
const COHERE: &[Rule] = &[
    text("cohere/trial", CO, Family::RateWindow, RateLimit, &["trial key", "trial token rate limit"]),
    text("cohere/max-tokens", CO, Family::OutputLimit, Format, &["max tokens must be less than or equal"]),
];

const VE: &[&str] = &["venice"];
const VE_DOC: &str = "https://docs.venice.ai/api-reference/error-codes";
const VENICE: &[Rule] = &[
    code(
        "venice/inactive",
        VE,
        Family::Billing,
        Billing,
        &["AUTHENTICATION_FAILED_INACTIVE_KEY", "INSUFFICIENT_BALANCE"],
    )
    .evidence(VE_DOC),
    text("venice/failed-attempts", VE, Family::Rate, RateLimit, &["too many failed attempts"])
        .evidence(VE_DOC),
    code("venice/server", VE, Family::Server, ServerError, &["INFERENCE_FAILED", "UNKNOWN_ERROR", "TEE_*"])
        .evidence(VE_DOC),
];

const X: &[&str] = &["xai", "grok"];
const XAI: &[Rule] = &[
    text(
        "xai/credits",
        X,
        Family::Billing,
        Billing,
        &["used all available credits", "monthly spending limit", "doesn't have any credits"],
    ),
    text(
        "xai/refusal",
        X,
        Family::Refusal,
        ContentRefusal,
        &["content violates usage guidelines", "failed check: safety*"],
    ),
    text("xai/blocked", X, Family::AccountGone, AuthPermanent, &["api key is currently blocked"]),
];

const NV: &[&str] = &["nvidia", "nim"];
const NVIDIA: &[Rule] = &[
    text(
        "nvidia/function",
        NV,
        Family::Model,
        ModelNotFound,
        &["not found for account", "function .. not found"],
    ),
    text("nvidia/degraded", NV, Family::Overloaded, Overloaded, &["degraded function"]),
];

const HF: &[&str] = &["huggingface", "hf", "tgi"];
const HUGGINGFACE: &[Rule] = &[
    text("huggingface/loading", HF, Family::Overloaded, Overloaded, &["is currently loading"]),
    text(
        "huggingface/gated",
        HF,
        Family::Model,
        ModelNotFound,
        &["too {big|large} to be loaded automatically", "gated", "does not seem to support"],
    ),
    text("huggingface/credits", HF, Family::Billing, Billing, &["monthly included credits"]),
];

const LC: &[&str] = &["llamacpp", "llama-cpp", "llama.cpp"];
const LLAMACPP: &[Rule] = &[
    // The server was started without what the request needs; another server may have it.
    text(
        "llamacpp/flag",
        LC,
        Family::Model,
        ModelNotFound,
        &["requires .. jinja flag", "start it with", "needs to be started with"],
    ),
];

const MS: &[&str] = &["mistral"];
const MISTRAL: &[Rule] =
    &[text("mistral/inactive", MS, Family::Billing, Billing, &["inactive subscription"])];

const OL: &[&str] = &["ollama"];
const OLLAMA: &[Rule] = &[
    text(
        "ollama/usage",
        OL,
        Family::RateWindow,
        RateLimit,
        &["session usage limit", "weekly usage limit", "hourly usage limit"],
    )
    .scope(failover_types::Scope::Credential),
    text(
        "ollama/context",
        OL,
        Family::Overflow,
        ContextOverflow,
        &["context length exceeded", "input exceeds context length", "input length exceeds"],
    ),
    text("ollama/memory", OL, Family::Server, ServerError, &["model requires more system memory"]),
];

const TO: &[&str] = &["together"];
const TOGETHER: &[Rule] = &[
    code("together/rate-credit", TO, Family::RateWindow, RateLimit, &["credit_limit"])
        .any(&["queries per minute"]),
    text(
        "together/dedicated",
        TO,
        Family::Model,
        ModelNotFound,
        &["non serverless model", "new dedicated endpoint"],
    ),
];

const AN: &[&str] = &["anthropic", "claude"];
const AN_DOC: &str = "https://docs.claude.com/en/api/errors";
const ANTHROPIC: &[Rule] = &[
    text(
        "anthropic/long-context",
        AN,
        Family::Billing,
        Billing,
        &["usage credits are required", "extra usage is required"],
    )
    .evidence(AN_DOC),
    text(
        "anthropic/limiting",
        AN,
        Family::Overloaded,
        Overloaded,
        &["server is temporarily limiting requests"],
    )
    .evidence(AN_DOC),
    text(
        "anthropic/disabled",
        AN,
        Family::AccountGone,
        AuthPermanent,
        &["this organization has been disabled"],
    )
    .evidence(AN_DOC),
    text("anthropic/model", AN, Family::Model, ModelNotFound, &["model: claude*"])
        .evidence(AN_DOC)
        .status(StatusSet::OneOf(&[404])),
    text(
        "anthropic/not-allowed",
        AN,
        Family::Auth,
        Auth,
        &["request not allowed", "oauth authentication is currently not"],
    )
    .evidence(AN_DOC),
];

const MI: &[&str] = &["mimo", "xiaomi"];
const MIMO: &[Rule] = &[Rule::new("mimo/refusal", crate::Tier::Provider, Family::Refusal, ContentRefusal)
    .providers(MI)
    .status(StatusSet::OneOf(&[421]))];

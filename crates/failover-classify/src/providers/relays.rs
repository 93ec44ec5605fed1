//! Relays and routers: `OpenRouter`, `LiteLLM`, One API and its children, Copilot, Codex.

use super::{Tables, code, text};
use crate::rule::{Fact, Family, Rule, StatusSet};
use failover_types::FailoverReason::{
    Auth, AuthPermanent, Billing, ContextOverflow, ModelNotFound, Overloaded, RateLimit, ServerError,
    SessionExpired, Timeout,
};

pub(crate) const TABLES: Tables = &[
    ("openrouter", OPENROUTER),
    ("litellm", LITELLM),
    ("newapi", NEW_API),
    ("codex", CODEX),
    ("copilot", COPILOT),
    ("antigravity", ANTIGRAVITY),
    ("scaleway", SCALEWAY),
];

const OR: &[&str] = &["openrouter"];
const OR_DOC: &str = "https://openrouter.ai/docs/api-reference/errors";
const OPENROUTER: &[Rule] = &[
    text(
        "openrouter/key-limit",
        OR,
        Family::Billing,
        Billing,
        &["key limit exceeded", "budget limit exceeded", "prompt tokens limit exceeded"],
    )
    .evidence("spec:C-16"),
    text(
        "openrouter/in-flight",
        OR,
        Family::RateWindow,
        RateLimit,
        &["in flight requests", "in flight budget"],
    )
    .evidence(OR_DOC),
    text(
        "openrouter/shared-pool",
        OR,
        Family::RateWindow,
        RateLimit,
        &["temporarily rate limited upstream", "shared pool"],
    )
    .evidence(OR_DOC),
    text("openrouter/free-window", OR, Family::RateWindow, RateLimit, &["free models per *"])
        .evidence(OR_DOC),
    Rule::new("openrouter/provider-error", crate::Tier::Message, Family::Transport, Timeout)
        .providers(OR)
        .any(&["provider returned error"])
        .facts(&[Fact::Short])
        .status(StatusSet::NoError)
        .evidence("spec:C-16"),
    text(
        "openrouter/moderation",
        OR,
        Family::Refusal,
        failover_types::FailoverReason::ContentRefusal,
        &["requires moderation", "input was flagged"],
    )
    .evidence(OR_DOC),
    text("openrouter/model-down", OR, Family::Server, ServerError, &["your chosen model is down"])
        .evidence(OR_DOC),
    text(
        "openrouter/model-id",
        OR,
        Family::Model,
        ModelNotFound,
        &["is not a valid model id", "no endpoints found", "no endpoints available", "no allowed providers"],
    )
    .evidence(OR_DOC),
    code("openrouter/overloaded", OR, Family::Overloaded, Overloaded, &["provider_overloaded"])
        .evidence(OR_DOC),
];

const LL: &[&str] = &["litellm"];
const LITELLM: &[Rule] = &[
    text(
        "litellm/budget",
        LL,
        Family::Billing,
        Billing,
        &["exceeded budget", "budget has been exceeded", "exceededbudget*", "crossed budget"],
    ),
    text(
        "litellm/cooldown",
        LL,
        Family::RateWindow,
        RateLimit,
        &["no deployments available for selected model", "routerratelimiterror*"],
    ),
];

const NA: &[&str] = &["new-api", "one-api", "newapi", "oneapi", "one-hub", "veloera", "voapi"];
const NA_DOC: &str = "https://github.com/QuantumNous/new-api/blob/main/types/error.go";
const NEW_API: &[Rule] = &[
    text(
        "newapi/no-channel",
        NA,
        Family::Model,
        ModelNotFound,
        &["无可用渠道", "no available channel*", "当前分组 .. 下对于模型"],
    )
    .evidence(NA_DOC)
    .none(&["负载已饱和"]),
    text("newapi/token", NA, Family::Auth, Auth, &["无效的令牌", "令牌已过期", "该令牌状态不可用"])
        .evidence(NA_DOC),
    text(
        "newapi/quota",
        NA,
        Family::Billing,
        Billing,
        &["令牌额度已用尽", "用户额度不足", "user quota is not enough", "token quota is not enough"],
    )
    .evidence(NA_DOC),
    code("newapi/timeout-param", NA, Family::Transport, Timeout, &["524", "504", "522", "408"])
        .evidence(NA_DOC)
        .status(StatusSet::NoError),
    code(
        "newapi/server",
        NA,
        Family::Server,
        ServerError,
        &[
            "count_token_failed",
            "json_marshal_failed",
            "gen_relay_info_failed",
            "query_data_error",
            "update_data_error",
            "channel:*",
        ],
    )
    .evidence(NA_DOC)
    .no_codes(&["channel:no_available_key", "channel:invalid_key", "channel:response_time_exceeded"]),
];

const CX: &[&str] = &["openai-codex", "codex", "openai", "chatgpt"];
const CODEX: &[Rule] = &[
    text(
        "codex/refresh-used",
        CX,
        Family::AccountGone,
        AuthPermanent,
        &["your refresh token was already used", "refresh token was revoked"],
    )
    .none(&["refresh_token 已被其它"]),
    text("codex/workspace", CX, Family::AccountGone, AuthPermanent, &["deactivated workspace"]),
    text(
        "codex/plan",
        CX,
        Family::Billing,
        Billing,
        &["to use codex with your chatgpt plan", "workspace is out of credits"],
    ),
    text(
        "codex/room",
        CX,
        Family::Overflow,
        ContextOverflow,
        &["ran out of room in the model's context window"],
    ),
    text(
        "codex/history",
        CX,
        Family::Session,
        SessionExpired,
        &["will retry with full history", "may need to restart"],
    ),
];

const CP: &[&str] = &["github-copilot", "copilot", "github-models", "github"];
const COPILOT: &[Rule] = &[
    text(
        "copilot/rate",
        CP,
        Family::RateWindow,
        RateLimit,
        &[
            "you have been rate limited",
            "exhausted this model's rate limit",
            "global rate limit",
            "weekly rate limit",
            "github's api rate limit",
            "exceeded your copilot token usage",
        ],
    ),
    text(
        "copilot/quota",
        CP,
        Family::Billing,
        Billing,
        &["you have no quota", "premium request allowance", "premium model quota"],
    ),
    text(
        "copilot/daily",
        CP,
        Family::RateWindow,
        RateLimit,
        &["userbymodelby*", "userconcurrentrequests", "rate limit of .. per .. exceeded"],
    ),
];

const AG: &[&str] = &["google-antigravity", "antigravity", "google-gemini-cli"];
const ANTIGRAVITY: &[Rule] = &[
    text(
        "antigravity/quota",
        AG,
        Family::RateWindow,
        RateLimit,
        &[
            "exhausted your capacity on this model",
            "individual quota reached",
            "accounts are currently limited",
        ],
    )
    .scope(failover_types::Scope::Credential),
    text(
        "antigravity/verify",
        AG,
        Family::Auth,
        Auth,
        &["verify your account", "not eligible for antigravity"],
    ),
];

const SC: &[&str] = &["scaleway"];
const SCALEWAY: &[Rule] =
    &[text("scaleway/rate", SC, Family::RateWindow, RateLimit, &["insufficient quota"])
        .status(StatusSet::OneOf(&[429]))
        .evidence("corpus:scaleway")];

//! Google, AWS, Azure, Cloudflare, IBM, Databricks, Yandex and their like.

use super::{Tables, code, text};
use crate::rule::{Fact, Family, Rule};
use failover_types::FailoverReason::{
    Auth, AuthPermanent, Billing, ContentRefusal, ContextOverflow, EmptyResponse, Format, ModelNotFound,
    Overloaded, RateLimit, ServerError, Timeout,
};

pub(crate) const TABLES: Tables = &[
    ("google", GOOGLE),
    ("bedrock", BEDROCK),
    ("azure", AZURE),
    ("cloudflare", CLOUDFLARE),
    ("watsonx", WATSONX),
    ("yandex", YANDEX),
    ("sensenova", SENSENOVA),
];

const G: &[&str] = &["google", "gemini", "vertex", "antigravity", "vertexai"];
const GOOGLE: &[Rule] = &[
    text(
        "google/quota-metric",
        G,
        Family::RateWindow,
        RateLimit,
        &[
            "quota exceeded for metric",
            "quota exceeded for quota metric",
            "generaterequestsper*",
            "generatecontentrequests*",
            "quota exceeded for *",
        ],
    ),
    Rule::new("google/quota-retry-info", crate::Tier::Provider, Family::RateWindow, RateLimit)
        .providers(G)
        .any(&["exceeded your current quota", "quota"])
        .facts(&[Fact::HasHint])
        .evidence("spec:C-3"),
    text(
        "google/prepaid",
        G,
        Family::Billing,
        Billing,
        &[
            "prepayment credits",
            "monthly spending cap",
            "billing account linked",
            "free tier is not available in your country",
        ],
    )
    .facts(&[Fact::NoHint]),
    text(
        "google/cached-content",
        G,
        Family::Session,
        failover_types::FailoverReason::SessionExpired,
        &["cachedcontent not found", "cached content .. not found"],
    ),
    code("google/missing-signature", G, Family::Format, Format, &["MISSING_THOUGHT_SIGNATURE"])
        .evidence("https://ai.google.dev/api/generate-content#FinishReason"),
    text(
        "google/blocked-prompt",
        G,
        Family::Refusal,
        ContentRefusal,
        &["\"promptfeedback\" .. \"blockreason\":\"*"],
    )
    .evidence("https://ai.google.dev/api/generate-content#BlockReason"),
    text("google/unavailable", G, Family::Server, ServerError, &["the service is currently unavailable"]),
];

const AWS: &[&str] = &["amazon-bedrock", "bedrock", "aws", "amazon"];
const AWS_DOC: &str =
    "https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html";
const BEDROCK: &[Rule] = &[
    text("bedrock/too-many-connections", AWS, Family::Overloaded, Overloaded, &["too many connections"])
        .evidence(AWS_DOC),
    text(
        "bedrock/quota",
        AWS,
        Family::RateWindow,
        RateLimit,
        &["too many tokens", "too many requests, please wait"],
    )
    .evidence(AWS_DOC),
    text("bedrock/unable", AWS, Family::Server, ServerError, &["bedrock is unable to process your request"])
        .none(&["capacity"])
        .evidence(AWS_DOC),
    code("bedrock/timeout", AWS, Family::Transport, Timeout, &["ModelTimeoutException"]).evidence(AWS_DOC),
    code(
        "bedrock/malformed-output",
        AWS,
        Family::Empty,
        EmptyResponse,
        &["malformed_tool_use", "malformed_model_output"],
    )
    .evidence("https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html"),
    code(
        "bedrock/auth",
        AWS,
        Family::Auth,
        Auth,
        &["UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException"],
    )
    .evidence(AWS_DOC),
];

const AZ: &[&str] = &["azure", "azure-openai", "foundry"];
const AZ_DOC: &str = "https://learn.microsoft.com/azure/ai-foundry/openai/quotas-limits";
const AZURE: &[Rule] = &[
    text(
        "azure/tier-rate",
        AZ,
        Family::RateWindow,
        RateLimit,
        &["exceeded .. rate limit .. pricing tier", "call rate limit", "token rate limit"],
    )
    .evidence(AZ_DOC),
    text(
        "azure/blocked",
        AZ,
        Family::AccountGone,
        AuthPermanent,
        &["resource has been temporarily blocked because we detected"],
    )
    .evidence(AZ_DOC),
    code(
        "azure/subscription",
        AZ,
        Family::Billing,
        Billing,
        &["ReadOnlyDisabledSubscription", "SubscriptionDisabled"],
    )
    .evidence(AZ_DOC),
];

const CF: &[&str] = &["cloudflare", "workers-ai"];
const CF_DOC: &str = "https://developers.cloudflare.com/workers-ai/platform/errors/";
const CLOUDFLARE: &[Rule] = &[
    code(
        "cloudflare/model",
        CF,
        Family::Model,
        ModelNotFound,
        &["5007", "5005", "5016", "5018", "3041", "3042"],
    )
    .evidence(CF_DOC),
    code("cloudflare/format", CF, Family::Format, Format, &["5004", "3003", "3039", "5019", "7000", "7003"])
        .evidence(CF_DOC),
    code("cloudflare/gone", CF, Family::AccountGone, AuthPermanent, &["3023"]).evidence(CF_DOC),
    code("cloudflare/overflow", CF, Family::Overflow, ContextOverflow, &["3006", "5021"]).evidence(CF_DOC),
    code("cloudflare/timeout", CF, Family::Transport, Timeout, &["3007", "3008"]).evidence(CF_DOC),
    code("cloudflare/rate", CF, Family::RateWindow, RateLimit, &["3036", "4006"]).evidence(CF_DOC),
    code("cloudflare/overloaded", CF, Family::Overloaded, Overloaded, &["3040"]).evidence(CF_DOC),
    code("cloudflare/auth", CF, Family::Auth, Auth, &["10000", "9109", "10001"]).evidence(CF_DOC),
];

const W: &[&str] = &["watsonx", "ibm"];
const WATSONX: &[Rule] = &[
    text(
        "watsonx/member",
        W,
        Family::Auth,
        Auth,
        &["failed to find the .. member", "no associated service instance"],
    ),
    code(
        "watsonx/rate",
        W,
        Family::Rate,
        RateLimit,
        &["token_quota_reached", "consumption_limit_reached", "downstream_request_failed_429"],
    ),
    code(
        "watsonx/auth",
        W,
        Family::Auth,
        Auth,
        &["authentication_token_expired", "authentication_token_not_valid", "authorization_rejected"],
    ),
];

const Y: &[&str] = &["yandex", "yandexgpt"];
const YANDEX: &[Rule] = &[
    text(
        "yandex/rate",
        Y,
        Family::RateWindow,
        RateLimit,
        &["rate quota limit exceed", "quota limit exceed*", "ai.* .. quota"],
    ),
    text(
        "yandex/auth",
        Y,
        Family::Auth,
        Auth,
        &["iam token", "unknown api key", "the token has expired", "permission to .. denied"],
    ),
    text("yandex/refusal", Y, Family::Refusal, ContentRefusal, &["не могу обсуждать", "ethics*"]),
];

const SN: &[&str] = &["sensenova", "sensetime"];
const SENSENOVA: &[Rule] = &[
    code("sensenova/rate", SN, Family::Rate, RateLimit, &["8"]),
    code("sensenova/model", SN, Family::Model, ModelNotFound, &["5", "12"]),
    code("sensenova/auth", SN, Family::Auth, Auth, &["7", "16"]),
    code("sensenova/timeout", SN, Family::Transport, Timeout, &["4"]),
    code("sensenova/format", SN, Family::Format, Format, &["3", "9", "11"]),
    code("sensenova/server", SN, Family::Server, ServerError, &["2", "10", "13"]),
    code("sensenova/overloaded", SN, Family::Overloaded, Overloaded, &["14"]),
];

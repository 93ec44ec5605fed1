//! Numeric and dotted codes of providers in China and Korea. The addresses in the evidence list the codes.

use super::{Tables, code, text};
use crate::rule::{Family, Rule};
use failover_types::FailoverReason::{
    Auth, AuthPermanent, Billing, ContentRefusal, ContextOverflow, Format, ModelNotFound, Overloaded,
    RateLimit, ServerError, Timeout,
};

pub(crate) const TABLES: Tables = &[
    ("zhipu", ZHIPU),
    ("minimax", MINIMAX),
    ("baidu", BAIDU),
    ("siliconflow", SILICONFLOW),
    ("hunyuan", HUNYUAN),
    ("spark", SPARK),
    ("clova", CLOVA),
    ("volcengine", VOLCENGINE),
    ("qwen", QWEN),
    ("moonshot", MOONSHOT),
    ("deepseek", DEEPSEEK),
];

const Z: &[&str] = &["zhipu", "zai", "z-ai", "z.ai", "bigmodel", "glm", "zhipuai"];
const Z_DOC: &str = "https://docs.bigmodel.cn/cn/api/api-code";
const ZHIPU: &[Rule] = &[
    code("zhipu/server", Z, Family::Server, ServerError, &["500", "1100", "1120", "1200", "1230"])
        .evidence(Z_DOC)
        .none(&["1305", "1302"]),
    code("zhipu/auth", Z, Family::Auth, Auth, &["1000", "1001", "1002", "1003", "1004", "1110"])
        .evidence(Z_DOC),
    code("zhipu/gone", Z, Family::AccountGone, AuthPermanent, &["1111", "1112", "1121"]).evidence(Z_DOC),
    code("zhipu/billing", Z, Family::Billing, Billing, &["1113", "1309"]).evidence(Z_DOC),
    code("zhipu/format", Z, Family::Format, Format, &["1210", "1213", "1214", "1215", "1231"])
        .evidence(Z_DOC)
        .none(&["prompt 超长", "超长", "context length"]),
    code("zhipu/model", Z, Family::Model, ModelNotFound, &["1211", "1212", "1220", "1221", "1222", "1311"])
        .evidence(Z_DOC),
    code("zhipu/network", Z, Family::Transport, Timeout, &["1234"]).evidence(Z_DOC),
    code("zhipu/overflow", Z, Family::Overflow, ContextOverflow, &["1261"]).evidence(Z_DOC),
    code("zhipu/refusal", Z, Family::Refusal, ContentRefusal, &["1300", "1301"]).evidence(Z_DOC),
    code("zhipu/rate", Z, Family::Rate, RateLimit, &["1302", "1303", "1304", "1305", "1308", "1310", "1313"])
        .evidence(Z_DOC)
        .none(&["temporarily overloaded", "访问量过大"]),
    code("zhipu/overloaded", Z, Family::Overloaded, Overloaded, &["1312"]).evidence(Z_DOC),
];

const MM: &[&str] = &["minimax"];
const MM_DOC: &str = "https://platform.minimax.io/docs/api-reference/errorcode";
const MINIMAX: &[Rule] = &[
    code("minimax/server", MM, Family::Server, ServerError, &["1000", "1024", "1033"]).evidence(MM_DOC),
    code("minimax/timeout", MM, Family::Transport, Timeout, &["1001"]).evidence(MM_DOC),
    code("minimax/rate", MM, Family::Rate, RateLimit, &["1002", "1039", "1041", "2045", "2056"])
        .evidence(MM_DOC),
    code("minimax/auth", MM, Family::Auth, Auth, &["1004", "2049", "2042"]).evidence(MM_DOC),
    code("minimax/billing", MM, Family::Billing, Billing, &["1008", "1028", "1030"]).evidence(MM_DOC),
    code("minimax/refusal", MM, Family::Refusal, ContentRefusal, &["1026", "1027"]).evidence(MM_DOC),
    code("minimax/format", MM, Family::Format, Format, &["1042", "1043", "1044", "2013", "2037", "2048"])
        .evidence(MM_DOC)
        .none(&["context window exceeds", "context length", "exceeds limit"]),
    code("minimax/overflow", MM, Family::Overflow, ContextOverflow, &["2013"]).evidence(MM_DOC).any(&[
        "context window exceeds",
        "context length",
        "exceeds limit",
    ]),
    code("minimax/model", MM, Family::Model, ModelNotFound, &["2061"]).evidence(MM_DOC),
];

const B: &[&str] = &["baidu", "qianfan", "ernie", "wenxin"];
const B_DOC: &str = "https://cloud.baidu.com/doc/WENXINWORKSHOP/s/tlmyncueh";
const BAIDU: &[Rule] = &[
    code(
        "baidu/server",
        B,
        Family::Server,
        ServerError,
        &["1", "2", "336000", "336200", "dispatch_internal_error"],
    )
    .evidence(B_DOC),
    code(
        "baidu/format",
        B,
        Family::Format,
        Format,
        &[
            "3",
            "336001",
            "336002",
            "336003",
            "336004",
            "336006",
            "336007",
            "invalid_argument",
            "invalid_messages",
        ],
    )
    .evidence(B_DOC)
    .none(&["too long", "{exceeds|max|maximum} length", "input length"]),
    code("baidu/overloaded", B, Family::Overloaded, Overloaded, &["4", "336100"]).evidence(B_DOC),
    code(
        "baidu/auth",
        B,
        Family::Auth,
        Auth,
        &[
            "6",
            "13",
            "14",
            "15",
            "100",
            "110",
            "111",
            "336005",
            "336101",
            "336117",
            "40005",
            "invalid_client",
        ],
    )
    .evidence(B_DOC),
    code("baidu/rate", B, Family::Rate, RateLimit, &["17", "18", "336501", "336502"]).evidence(B_DOC),
    code("baidu/billing", B, Family::Billing, Billing, &["19"]).evidence(B_DOC),
    code("baidu/overflow", B, Family::Overflow, ContextOverflow, &["336102", "336103"]).evidence(B_DOC),
    code("baidu/refusal", B, Family::Refusal, ContentRefusal, &["336303", "unsafe"]).evidence(B_DOC),
];

const SF: &[&str] = &["siliconflow", "siliconcloud"];
const SF_DOC: &str = "https://docs.siliconflow.cn/cn/faqs/error-code";
const SILICONFLOW: &[Rule] = &[
    code("siliconflow/model", SF, Family::Model, ModelNotFound, &["20012", "30003"]).evidence(SF_DOC),
    code("siliconflow/billing", SF, Family::Billing, Billing, &["30001", "30011"]).evidence(SF_DOC),
    code("siliconflow/overloaded", SF, Family::Overloaded, Overloaded, &["50505", "50508", "50603", "50609"])
        .none(&["{rpm|tpm|ipm|rpd|tpd} {limit|limits|reached|exceeded}"])
        .evidence(SF_DOC),
    code("siliconflow/server", SF, Family::Server, ServerError, &["50501", "50507", "60000"])
        .evidence(SF_DOC),
    text("siliconflow/canceled", SF, Family::Transport, Timeout, &["context canceled"]),
];

const HY: &[&str] = &["hunyuan", "tencent"];
const HY_DOC: &str = "https://cloud.tencent.com/document/api/1729/101843";
const HUNYUAN: &[Rule] = &[
    code(
        "hunyuan/server",
        HY,
        Family::Server,
        ServerError,
        &["FailedOperation.EngineServerError", "InternalError"],
    )
    .evidence(HY_DOC),
    code(
        "hunyuan/billing",
        HY,
        Family::Billing,
        Billing,
        &[
            "FailedOperation.ServiceNotActivated",
            "FailedOperation.ServiceStop",
            "FailedOperation.SetPayModeExceed",
        ],
    )
    .evidence(HY_DOC),
    code(
        "hunyuan/model",
        HY,
        Family::Model,
        ModelNotFound,
        &["InvalidParameterValue.Model", "ActionOffline"],
    )
    .evidence(HY_DOC),
    code(
        "hunyuan/format",
        HY,
        Family::Format,
        Format,
        &["InvalidParameter*", "MissingParameter", "UnknownParameter"],
    )
    .evidence(HY_DOC)
    .no_codes(&["InvalidParameterValue.Model"])
    .none(&["too long", "超过", "超出"]),
    code("hunyuan/rate", HY, Family::Rate, RateLimit, &["LimitExceeded*", "RequestLimitExceeded*"])
        .evidence(HY_DOC),
];

const SP: &[&str] = &["iflytek", "spark", "xfyun", "xunfei"];
const SP_DOC: &str = "https://www.xfyun.cn/document/error-code";
const SPARK: &[Rule] = &[
    code("spark/format", SP, Family::Format, Format, &["10003", "10004", "10005", "10006", "10163"])
        .evidence(SP_DOC),
    code("spark/rate", SP, Family::Rate, RateLimit, &["10007", "10018", "11201", "11202", "11203"])
        .evidence(SP_DOC),
    code("spark/overloaded", SP, Family::Overloaded, Overloaded, &["10008", "10110"]).evidence(SP_DOC),
    code("spark/server", SP, Family::Server, ServerError, &["10009", "10010", "10011", "10012", "10222"])
        .evidence(SP_DOC),
    code("spark/refusal", SP, Family::Refusal, ContentRefusal, &["10013", "10014", "10019", "10021"])
        .evidence(SP_DOC),
    code("spark/gone", SP, Family::AccountGone, AuthPermanent, &["10015"]).evidence(SP_DOC),
    code("spark/auth", SP, Family::Auth, Auth, &["10016", "11200", "10313"]).evidence(SP_DOC),
    code("spark/model", SP, Family::Model, ModelNotFound, &["10404"]).evidence(SP_DOC),
    code("spark/overflow", SP, Family::Overflow, ContextOverflow, &["10907"]).evidence(SP_DOC),
    text("spark/auth-words", SP, Family::Auth, Auth, &["appidnoautherror", "licc failed"]),
];

const CL: &[&str] = &["naver", "clova", "hyperclova", "clovastudio"];
const CL_DOC: &str = "https://api.ncloud-docs.com/docs/en/clovastudio-troubleshoot";
const CLOVA: &[Rule] = &[
    code(
        "clova/format",
        CL,
        Family::Format,
        Format,
        &["40000", "40001", "40002", "40003", "40004", "40009", "40055", "4006*", "65001"],
    )
    .evidence(CL_DOC)
    .none(&["context length exceeded", "text too long", "too long"]),
    code("clova/overflow", CL, Family::Overflow, ContextOverflow, &["40003", "64400", "65400"])
        .evidence(CL_DOC)
        .any(&["context length exceeded", "text too long", "too long", "token overflow", "token*"]),
    code("clova/refusal", CL, Family::Refusal, ContentRefusal, &["40005"]).evidence(CL_DOC),
    code("clova/model", CL, Family::Model, ModelNotFound, &["40080", "40082", "40083"]).evidence(CL_DOC),
    code("clova/auth", CL, Family::Auth, Auth, &["40100", "40101", "40102", "40103", "40104", "40300"])
        .evidence(CL_DOC),
    code("clova/billing", CL, Family::Billing, Billing, &["40170"]).evidence(CL_DOC),
    code("clova/rate", CL, Family::Rate, RateLimit, &["42900", "42901", "64429"]).evidence(CL_DOC),
    code("clova/server", CL, Family::Server, ServerError, &["50000", "64424", "64500", "65002"])
        .evidence(CL_DOC),
    code("clova/timeout", CL, Family::Transport, Timeout, &["50400"]).evidence(CL_DOC),
    code("clova/overloaded", CL, Family::Overloaded, Overloaded, &["64000"]).evidence(CL_DOC),
];

const V: &[&str] = &["volcengine", "doubao", "ark", "volces", "byteplus", "bytedance"];
const V_DOC: &str = "https://www.volcengine.com/docs/82379/1299023";
const VOLCENGINE: &[Rule] = &[
    code("volcengine/free-trial", V, Family::Billing, Billing, &["QuotaExceeded"])
        .evidence(V_DOC)
        .any(&["free trial quota", "activate the model service"]),
    code("volcengine/quota-window", V, Family::RateWindow, RateLimit, &["QuotaExceeded"])
        .evidence(V_DOC)
        .any(&["will reset", "usage quota"])
        .none(&["free trial quota"]),
    code(
        "volcengine/format",
        V,
        Family::Format,
        Format,
        &[
            "OperationDenied.InvalidState",
            "OperationDenied.UnsupportedPhase",
            "OperationDenied.FileQuotaExceeded",
        ],
    )
    .evidence(V_DOC),
    code("volcengine/model", V, Family::Model, ModelNotFound, &["NotFound.*", "OperationDenied.*"])
        .evidence(V_DOC)
        .no_codes(&[
            "OperationDenied.InvalidState",
            "OperationDenied.UnsupportedPhase",
            "OperationDenied.FileQuotaExceeded",
        ]),
    code("volcengine/server", V, Family::Server, ServerError, &["InternalServiceError"]).evidence(V_DOC),
];

const Q: &[&str] = &["qwen", "dashscope", "alibaba", "aliyun", "bailian", "tongyi"];
const Q_DOC: &str = "https://help.aliyun.com/zh/model-studio/error-code";
const QWEN: &[Rule] = &[
    text(
        "qwen/token-rate",
        Q,
        Family::RateWindow,
        RateLimit,
        &[
            "allocated quota exceeded",
            "error code#token limit",
            "free allocated quota exceeded",
            "current requests list",
            "request rate increased too quickly",
        ],
    )
    .evidence(Q_DOC),
    text(
        "qwen/refusal",
        Q,
        Family::Refusal,
        ContentRefusal,
        &["input data may contain*", "output data may contain*", "data may contain*"],
    )
    .evidence(Q_DOC),
    code(
        "qwen/server",
        Q,
        Family::Server,
        ServerError,
        &["InternalError.Algo", "InternalError.FileUpload", "ModelServiceFailed", "SystemError"],
    )
    .evidence(Q_DOC)
    .none(&["range of", "inappropriate", "too long", "invalidparameter*"]),
    text(
        "qwen/overflow",
        Q,
        Family::Overflow,
        ContextOverflow,
        &["range of input length", "input length should be", "total message token length"],
    )
    .evidence(Q_DOC),
];

const K: &[&str] = &["moonshot", "kimi"];
const MOONSHOT: &[Rule] = &[
    text(
        "moonshot/concurrency",
        K,
        Family::RateWindow,
        RateLimit,
        &["request reach* .. {organization|project|max|user|account}", "reached max organization"],
    ),
    text(
        "moonshot/suspended",
        K,
        Family::Billing,
        Billing,
        &[
            "account .. {is suspended|is not active}",
            "suspended due to insufficient balance",
            "current state: .. {suspended|inactive}",
        ],
    ),
    text(
        "moonshot/model",
        K,
        Family::Model,
        ModelNotFound,
        &["not found the model", "only available for coding agents"],
    ),
];

const D: &[&str] = &["deepseek"];
const DEEPSEEK: &[Rule] = &[
    text("deepseek/refusal", D, Family::Refusal, ContentRefusal, &["content exists risk"]),
    text("deepseek/auth", D, Family::Auth, Auth, &["authentication fails"]),
    text("deepseek/model", D, Family::Model, ModelNotFound, &["model not exist"]),
];

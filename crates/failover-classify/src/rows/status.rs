//! What a status means when no text and no code says otherwise.

use crate::rule::{Fact, Family, Rule, StatusSet};
use crate::{Surface, Tier};
use failover_types::FailoverReason::{
    Auth, Billing, ContextOverflow, EmptyResponse, Format, LocalCoordination, ModelNotFound, Overloaded,
    RateLimit, ServerError, Timeout, Unclassified,
};
use failover_types::{FailoverReason, Scope};

const RFC: &str = "https://www.rfc-editor.org/rfc/rfc9110#name-status-codes";

const fn status(id: &'static str, set: StatusSet, reason: FailoverReason) -> Rule {
    Rule::new(id, Tier::Status, Family::HttpStatus, reason).status(set).evidence(RFC)
}

/// In the order of statuses.
pub(crate) const ROWS: &[Rule] = &[
    status("core/status-400-bare", StatusSet::OneOf(&[400, 422]), Unclassified)
        .facts(&[Fact::Bare])
        .no_codes(&["invalid_request_error"]),
    status("core/status-400", StatusSet::OneOf(&[400, 422]), Format).facts(&[Fact::Worded]),
    status("core/status-401", StatusSet::OneOf(&[401, 451, 498]), Auth),
    status("core/status-402", StatusSet::OneOf(&[402]), Billing),
    status("core/status-403", StatusSet::OneOf(&[403]), Auth),
    status("core/status-404", StatusSet::OneOf(&[404, 410]), ModelNotFound),
    status("core/status-405", StatusSet::OneOf(&[405, 406, 411, 415, 416, 417, 421, 426, 428, 431]), Format),
    status("core/status-408", StatusSet::OneOf(&[407, 408, 499, 504, 522, 524, 598, 599]), Timeout),
    status("core/status-409", StatusSet::OneOf(&[409]), ServerError).scope(Scope::Request),
    status("core/status-413", StatusSet::OneOf(&[413]), ContextOverflow),
    status("core/status-429", StatusSet::OneOf(&[423, 425, 429]), RateLimit),
    status("core/status-529", StatusSet::OneOf(&[529]), Overloaded),
    status(
        "core/status-500",
        StatusSet::OneOf(&[
            500, 501, 502, 503, 505, 506, 507, 508, 509, 510, 511, 512, 513, 514, 515, 516, 517, 518, 519, 520, 521,
            523, 525, 526, 527, 528, 530,
        ]),
        ServerError,
    ),
    // Of nobody's list: a load balancer's own.
    status("core/status-531", StatusSet::Range(531, 597), ServerError),
    // A page under 429 is a gateway's own, whatever its title says of access.
    Rule::new("core/page-429", Tier::Message, Family::NotAFailure, RateLimit)
        .status(StatusSet::OneOf(&[429]))
        .facts(&[Fact::Html])
        .evidence("https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-1xxx-errors/error-1015/"),
    // Not what was asked for, and no status tells whose it is.
    Rule::new("core/page-200", Tier::Fallback, Family::Last, ServerError)
        .status(StatusSet::NoError)
        .facts(&[Fact::Html])
        .evidence("spec:C-18"),
    Rule::new("core/page-403", Tier::Message, Family::NotAFailure, ServerError)
        .status(StatusSet::OneOf(&[403]))
        .facts(&[Fact::Html])
        .scope(Scope::Provider)
        .evidence("corpus:anthropic"),
    // What Cloudflare answers in one line where its own rules refuse the caller.
    Rule::new("core/cdn-block", Tier::Code, Family::NotAFailure, ServerError)
        .codes(&["1003", "1005", "1006", "1007", "1008", "1010", "1012", "1020"])
        .status(StatusSet::OneOf(&[403]))
        .facts(&[Fact::Tiny])
        .scope(Scope::Provider)
        .evidence("https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-1xxx-errors/"),
    Rule::new("core/cdn-region", Tier::Code, Family::NotAFailure, Auth)
        .codes(&["1009"])
        .status(StatusSet::OneOf(&[403]))
        .facts(&[Fact::Tiny])
        .scope(Scope::Provider)
        .evidence("https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-1xxx-errors/"),
    // Whoever names the surface knows that much: the connection failed, or the caller's own machine.
    Rule::new("core/surface-transport", Tier::Fallback, Family::Last, Timeout)
        .status(StatusSet::NoError)
        .surfaces(&[Surface::Transport])
        .facts(&[Fact::Worded])
        .evidence("spec:C-8"),
    Rule::new("core/surface-local", Tier::Fallback, Family::Last, LocalCoordination)
        .status(StatusSet::NoError)
        .surfaces(&[Surface::Local])
        .facts(&[Fact::Worded])
        .evidence("spec:C-19"),
    Rule::new("core/empty", Tier::Fallback, Family::Last, EmptyResponse)
        .status(StatusSet::NoError)
        .facts(&[Fact::EmptyBody])
        .evidence("spec:C-18"),
    Rule::new("core/empty-answer", Tier::Code, Family::Empty, EmptyResponse)
        .status(StatusSet::NoError)
        .facts(&[Fact::EmptyAnswer])
        .evidence("spec:C-18"),
];

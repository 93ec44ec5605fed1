//! Why a call failed, and which lane of handling that puts it in.
//!
//! Names come from a large open enum, [`FailoverReason`]; control flow branches on a small closed one, [`Lane`].
//! The table between the two, [`FailoverReason::lane`], has no wildcard.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, lane $lane:ident, scope $scope:ident;)+) => {
        /// Why a call failed. Serialized in `snake_case`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum FailoverReason {
            $($(#[$doc])* $variant,)+
        }

        impl FailoverReason {
            /// Every reason, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The serialized name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// How a failure of this reason is handled.
            pub const fn lane(self) -> Lane {
                match self { $(Self::$variant => Lane::$lane,)+ }
            }

            /// What is to blame unless a rule says otherwise.
            pub const fn default_scope(self) -> Scope {
                match self { $(Self::$variant => Scope::$scope,)+ }
            }
        }
    };
}

reasons! {
    /// The caller sent too much: a window, a concurrency limit or a stated reset heals it. Lane: rate limit.
    RateLimit = "rate_limit", lane RateLimit, scope Model;
    /// The service, model or pool is saturated for everybody. Lane: overloaded.
    Overloaded = "overloaded", lane Overloaded, scope Model;
    /// The provider answered badly: a crash, a bad gateway. Lane: transient.
    ServerError = "server_error", lane Transient, scope Credential;
    /// Too slow, or the transport broke. Lane: transient.
    Timeout = "timeout", lane Transient, scope Credential;
    /// Balance, plan, payment or a budget: a person must act. Lane: billing.
    Billing = "billing", lane Billing, scope Credential;
    /// The credential was refused, but may be mended: expired, wrong, missing scope. Lane: auth.
    Auth = "auth", lane Auth, scope Credential;
    /// The credential or its account is certainly gone: revoked, deleted, deactivated. Lane: permanent auth.
    AuthPermanent = "auth_permanent", lane AuthPermanent, scope Credential;
    /// This model or endpoint cannot serve this here: missing, retired, no access, lacks a feature. Lane: model.
    ModelNotFound = "model_not_found", lane Model, scope Model;
    /// The request is wrong anywhere: schema, roles, tool ids, parameter values. Lane: request.
    Format = "format", lane Request, scope Request;
    /// The prompt does not fit the window or the request size limit. Lane: request.
    ContextOverflow = "context_overflow", lane Request, scope Request;
    /// A content filter or a policy refused. Lane: request.
    ContentRefusal = "content_refusal", lane Request, scope Request;
    /// Something remembered at the provider is gone: conversation, response id, cached content. Lane: session.
    SessionExpired = "session_expired", lane Session, scope Request;
    /// The caller or the user cancelled. Lane: raised.
    Aborted = "aborted", lane Raised, scope Request;
    /// A local condition that no other model would solve: a lock, a full disk, a missing program. Lane: raised.
    LocalCoordination = "local_coordination", lane Raised, scope Request;
    /// Nothing usable came: no text, empty choices, a malformed call by the model. Lane: opaque.
    EmptyResponse = "empty_response", lane Opaque, scope Model;
    /// The provider said that it failed, and nothing else. Lane: opaque.
    NoErrorDetails = "no_error_details", lane Opaque, scope Model;
    /// There is a text, and no rule knows it. Lane: opaque.
    Unclassified = "unclassified", lane Opaque, scope Model;
}

/// How a failure is handled. Closed on purpose: whoever branches on it handles every lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new lane must break every match on it")]
pub enum Lane {
    /// Window on the model or the profile; one other profile, then the next model.
    RateLimit,
    /// Window on the model only; one other profile, then the next model.
    Overloaded,
    /// Window on the profile (its circuit breaker); one other profile, then the next model.
    Transient,
    /// The profile is disabled for hours; every other profile, then the next model.
    Billing,
    /// Window on the profile; every other profile, then the next model.
    Auth,
    /// The profile is disabled; every other profile, then the next model.
    AuthPermanent,
    /// Nobody's health suffers; the next model.
    Model,
    /// Nobody's health suffers and nothing is known; the next model while there is one.
    Opaque,
    /// One repair of the request without the lost id, else returned.
    Session,
    /// Returned to the caller: every model would fail the same way.
    Request,
    /// Raised as it is: not a failure of a provider at all.
    Raised,
}

/// What a failure blames, and so what must be avoided by the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "control flow: a new scope must break every match on it")]
pub enum Scope {
    /// This request only.
    Request,
    /// This model at this provider.
    Model,
    /// This credential, for all of its models.
    Credential,
    /// The provider as a whole.
    Provider,
}

impl Scope {
    /// The serialized name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Model => "model",
            Self::Credential => "credential",
            Self::Provider => "provider",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for FailoverReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a failure reason")]
pub struct UnknownReason(String);

impl FromStr for FailoverReason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.as_str() == text)
            .ok_or_else(|| UnknownReason(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_serde_writes_and_read_back() {
        for reason in FailoverReason::ALL {
            assert_eq!(serde_json::to_string(reason).unwrap(), format!("\"{reason}\""));
            assert_eq!(reason.as_str().parse::<FailoverReason>().unwrap(), *reason);
        }
        assert!("rate-limit".parse::<FailoverReason>().is_err());
    }

    #[test]
    fn scopes_are_named_as_serde_writes_them() {
        for scope in [Scope::Request, Scope::Model, Scope::Credential, Scope::Provider] {
            assert_eq!(serde_json::to_string(&scope).unwrap(), format!("\"{scope}\""));
        }
    }
}

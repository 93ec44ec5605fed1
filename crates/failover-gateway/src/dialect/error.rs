//! Errors in the clients' dialects.

use super::ClientDialect;
use super::write::json;
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use std::fmt;

/// A request that cannot be read: the client's to mend.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadRequest {
    /// The field, as a path: `messages[0].content`.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl BadRequest {
    /// A fault of the request as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self { field: None, message: message.into(), hint: None }
    }

    /// Names the field.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts the fault under an outer field.
    pub(super) fn under(mut self, outer: &str) -> Self {
        self.field = Some(match self.field.take() {
            Some(inner) if inner.starts_with('[') => format!("{outer}{inner}"),
            Some(inner) => format!("{outer}.{inner}"),
            None => outer.to_owned(),
        });
        self
    }
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BadRequest {}

impl From<BadRequest> for ErrorBody {
    fn from(bad: BadRequest) -> Self {
        let mut body = Self::new(ErrorKind::InvalidRequest, bad.to_string());
        body.param = bad.field;
        body
    }
}

/// What kind of error it is, in the words that the dialects share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "every dialect must name every kind")]
pub enum ErrorKind {
    /// The request is wrong.
    InvalidRequest,
    /// No valid credential.
    Authentication,
    /// Known, but not allowed.
    Permission,
    /// No such model or path.
    NotFound,
    /// The body is too long.
    TooLarge,
    /// Too many requests.
    RateLimit,
    /// Balance, plan or budget.
    Billing,
    /// A content filter refused.
    ContentFilter,
    /// Too slow.
    Timeout,
    /// Saturated for everybody, or shutting down.
    Overloaded,
    /// Everything else that is the server's.
    Server,
}

impl ErrorKind {
    /// The status that goes with it.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest | Self::ContentFilter => StatusCode::BAD_REQUEST,
            Self::Authentication => StatusCode::UNAUTHORIZED,
            Self::Permission => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::RateLimit => StatusCode::TOO_MANY_REQUESTS,
            Self::Billing => StatusCode::PAYMENT_REQUIRED,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Server => StatusCode::BAD_GATEWAY,
        }
    }

    /// `error.type` at OpenAI.
    const fn openai(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::NotFound | Self::TooLarge | Self::ContentFilter => {
                "invalid_request_error"
            }
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::RateLimit => "rate_limit_error",
            Self::Billing => "insufficient_quota",
            Self::Timeout | Self::Overloaded | Self::Server => "server_error",
        }
    }

    /// `error.code` at OpenAI, where nothing more exact is known.
    pub(super) const fn code(self) -> Option<&'static str> {
        match self {
            Self::Authentication => Some("invalid_api_key"),
            Self::NotFound => Some("model_not_found"),
            Self::RateLimit => Some("rate_limit_exceeded"),
            Self::Billing => Some("insufficient_quota"),
            Self::ContentFilter => Some("content_filter"),
            Self::Timeout => Some("timeout"),
            Self::Overloaded => Some("overloaded"),
            Self::InvalidRequest | Self::Permission | Self::TooLarge | Self::Server => None,
        }
    }

    /// `error.type` at Anthropic.
    const fn anthropic(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::ContentFilter => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::NotFound => "not_found_error",
            Self::TooLarge => "request_too_large",
            Self::RateLimit => "rate_limit_error",
            Self::Billing => "billing_error",
            Self::Timeout => "timeout_error",
            Self::Overloaded => "overloaded_error",
            Self::Server => "api_error",
        }
    }
}

/// One attempt that failed, as the client may see it. No text of the provider is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AttemptNote {
    /// Who was asked, as `provider/model`.
    pub model: String,
    /// Why it failed: the classifier's reason.
    pub reason: String,
    /// The status it answered with, where one came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// When it may be asked again, in milliseconds since the Unix epoch, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl AttemptNote {
    /// An attempt without a status.
    pub fn new(model: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { model: model.into(), reason: reason.into(), status: None, until: None }
    }

    /// Adds the status it answered with.
    #[must_use]
    pub fn with_status(mut self, status: Option<u16>) -> Self {
        self.status = status;
        self
    }

    /// Adds when it may be asked again.
    #[must_use]
    pub fn with_until(mut self, until: Option<u64>) -> Self {
        self.until = until;
        self
    }
}

/// What the client is told when there is no answer. It becomes the body of a response, or an event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorBody {
    /// The response's status.
    pub status: StatusCode,
    /// What kind of error it is.
    pub kind: ErrorKind,
    /// What happened and what to do, for people.
    pub message: String,
    /// The field that is wrong, as a path.
    pub param: Option<String>,
    /// A code more exact than the kind.
    pub code: Option<String>,
    /// What was tried, in order.
    pub attempts: Vec<AttemptNote>,
    /// When the first of those tried may answer again, in milliseconds since the Unix epoch.
    pub soonest: Option<u64>,
}

/// `error.failover` of every dialect, for programs.
#[derive(Serialize)]
pub(super) struct Failover<'a> {
    attempts: &'a [AttemptNote],
    soonest: Option<u64>,
}

#[derive(Serialize)]
struct OpenAi<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failover: Option<Failover<'a>>,
}

#[derive(Serialize)]
struct Anthropic<'a> {
    r#type: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failover: Option<Failover<'a>>,
}

#[derive(Serialize)]
struct Envelope<E> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    error: E,
}

impl ErrorBody {
    /// An error with the status of its kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            status: kind.status(),
            kind,
            message: message.into(),
            param: None,
            code: None,
            attempts: Vec::new(),
            soonest: None,
        }
    }

    /// Takes another status than that of the kind.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a code more exact than the kind.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Adds what was tried, and when the first of those may answer again.
    #[must_use]
    pub fn with_attempts(mut self, attempts: Vec<AttemptNote>, soonest: Option<u64>) -> Self {
        self.attempts = attempts;
        self.soonest = soonest;
        self
    }

    pub(super) fn code(&self) -> Option<&str> {
        self.code.as_deref().or(self.kind.code())
    }

    pub(super) fn failover(&self) -> Option<Failover<'_>> {
        let told = !self.attempts.is_empty() || self.soonest.is_some();
        told.then_some(Failover { attempts: &self.attempts, soonest: self.soonest })
    }

    /// The error as a JSON object of the dialect.
    pub(super) fn render(&self, dialect: ClientDialect) -> Bytes {
        match dialect {
            ClientDialect::Chat | ClientDialect::Responses => {
                json(&Envelope { r#type: None, error: self.openai() })
            }
            ClientDialect::Messages => json(&Envelope {
                r#type: Some("error"),
                error: Anthropic {
                    r#type: self.kind.anthropic(),
                    message: &self.message,
                    failover: self.failover(),
                },
            }),
        }
    }

    /// The inner object of OpenAI's errors.
    pub(super) fn openai(&self) -> impl Serialize {
        OpenAi {
            message: &self.message,
            r#type: self.kind.openai(),
            param: self.param.as_deref(),
            code: self.code(),
            failover: self.failover(),
        }
    }
}

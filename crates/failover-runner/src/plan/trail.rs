//! What was tried and skipped: the record that a summary is made from.

use failover_auth::{LeftOut, LeftOutReason};
use failover_chain::Unfit;
use failover_types::{FailoverReason, ModelRef, ModelSelector, ProfileId, Timestamp};
use std::fmt;
use std::time::Duration;

/// One thing that the walk did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Visit {
    /// Place of the candidate in the walk, from 0.
    pub candidate: usize,
    /// The model.
    pub model: ModelRef,
    /// What happened.
    pub what: What,
}

/// What happened to a candidate.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a visit is an attempt or a skip")]
pub enum What {
    /// It was tried.
    Attempt(AttemptRecord),
    /// It was not.
    Skip(Skip),
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// With which profile.
    pub profile: ProfileId,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// Why it failed; `None` if it answered.
    pub error: Option<AttemptError>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttemptError {
    /// The reason. A live switch counts as unclassified.
    pub reason: FailoverReason,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's own code, where there was one.
    pub code: Option<String>,
    /// The text, redacted and cut.
    pub summary: String,
    /// Id of the classifier's rule that decided, where one did.
    pub rule: Option<String>,
    /// The user's switch that ended it (requirement S-10).
    pub switch: Option<ModelSelector>,
}

/// Why a candidate was not tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skip {
    /// It lacks something that the request needs.
    Unfit(Unfit),
    /// There is no credential for its provider.
    NoProfile,
    /// The token of its provider has run out and cannot be renewed.
    Expired,
    /// The credentials that the config names for it belong to another provider, or are of another kind.
    Mismatched,
    /// The profile that a person named is not there, or its provider's order does not list it.
    Unusable {
        /// Which profile.
        profile: ProfileId,
        /// Why.
        why: LeftOutReason,
    },
    /// A person paused every profile, or the pinned one.
    Paused,
    /// Every profile is out.
    Cooling {
        /// Why.
        reason: FailoverReason,
        /// The soonest end.
        until: Timestamp,
    },
    /// Its provider is out as a whole, or was skipped earlier in this run.
    ProviderOut {
        /// Why.
        reason: FailoverReason,
    },
    /// Somebody else is trying whether it is well again.
    Leased {
        /// When that ends at the latest.
        until: Timestamp,
    },
    /// The provider's only probe of this run is spent.
    ProbeSpent {
        /// Why it is out.
        reason: FailoverReason,
        /// The soonest end.
        until: Timestamp,
    },
    /// It refused this session not long ago (requirement A-20).
    SkipCache,
    /// A live switch jumped over it.
    JumpedOver,
}

impl Skip {
    /// Why a candidate is skipped whose profiles are all left out: what is mended most easily.
    pub(super) fn of_left_out(left_out: &[LeftOut], strict: bool) -> Self {
        if let ([LeftOut { profile, reason: why, .. }], true) = (left_out, strict)
            && matches!(why, LeftOutReason::Unknown | LeftOutReason::NotListed)
        {
            return Self::Unusable { profile: profile.clone(), why: *why };
        }
        let any = |of: &[LeftOutReason]| left_out.iter().any(|out| of.contains(&out.reason));
        match () {
            () if any(&[LeftOutReason::Paused]) => Self::Paused,
            () if any(&[LeftOutReason::Expired]) => Self::Expired,
            () if any(&[LeftOutReason::WrongProvider, LeftOutReason::WrongKind]) => Self::Mismatched,
            () => Self::NoProfile,
        }
    }

    /// A stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unfit(unfit) => unfit.as_str(),
            Self::NoProfile => "no_profile",
            Self::Expired => "expired",
            Self::Mismatched => "mismatched_profile",
            Self::Unusable { .. } => "profile_unusable",
            Self::Paused => "paused",
            Self::Cooling { .. } => "cooldown",
            Self::ProviderOut { .. } => "provider_out",
            Self::Leased { .. } => "probe_in_flight",
            Self::ProbeSpent { .. } => "probe_spent",
            Self::SkipCache => "skip_cache",
            Self::JumpedOver => "jumped_over",
        }
    }

    /// The failure behind it, where there is one.
    pub const fn reason(&self) -> Option<FailoverReason> {
        match self {
            Self::Cooling { reason, .. } | Self::ProviderOut { reason } | Self::ProbeSpent { reason, .. } => {
                Some(*reason)
            }
            Self::Unfit(_)
            | Self::NoProfile
            | Self::Expired
            | Self::Mismatched
            | Self::Unusable { .. }
            | Self::Paused
            | Self::Leased { .. }
            | Self::SkipCache
            | Self::JumpedOver => None,
        }
    }

    /// The reason that a session gives for being on a fallback because of it: that of the failure that a call would
    /// have come to. `None` where nothing is wrong with the candidate.
    pub const fn stands_for(&self) -> Option<FailoverReason> {
        match self {
            Self::Cooling { reason, .. } | Self::ProviderOut { reason } | Self::ProbeSpent { reason, .. } => {
                Some(*reason)
            }
            Self::NoProfile | Self::Expired | Self::Mismatched | Self::Unusable { .. } | Self::SkipCache => {
                Some(FailoverReason::Auth)
            }
            Self::Unfit(Unfit::ContextWindow) => Some(FailoverReason::ContextOverflow),
            Self::Unfit(_) => Some(FailoverReason::ModelNotFound),
            Self::Paused | Self::Leased { .. } | Self::JumpedOver => None,
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(lacking) => write!(f, "the request does not fit it ({lacking})"),
            Self::NoProfile => f.write_str("no credential for its provider"),
            Self::Expired => f.write_str("the token of its provider has run out"),
            Self::Mismatched => {
                f.write_str("the credentials named for it are another provider's, or of another kind")
            }
            Self::Unusable { profile, why } => write!(f, "{profile} cannot be used: {why}"),
            Self::Paused => f.write_str("paused"),
            Self::Cooling { reason, .. } => write!(f, "every profile is out ({reason})"),
            Self::ProviderOut { reason } => write!(f, "its provider is out ({reason})"),
            Self::Leased { .. } => f.write_str("another run is trying whether it is well again"),
            Self::ProbeSpent { reason, .. } => {
                write!(f, "every profile is out ({reason}), and the probe of this run is spent")
            }
            Self::SkipCache => f.write_str("it refused this session not long ago"),
            Self::JumpedOver => f.write_str("a switch jumped over it"),
        }
    }
}

impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Skip(skip) => write!(f, "{}: not tried, {skip}", self.model),
            What::Attempt(AttemptRecord { profile, error: None, .. }) => {
                write!(f, "{} ({profile}): answered", self.model)
            }
            What::Attempt(AttemptRecord { profile, error: Some(error), took, .. }) => {
                write!(f, "{} ({profile}): ", self.model)?;
                match &error.switch {
                    Some(to) => write!(f, "switched to {to}")?,
                    None => write!(f, "{}", error.reason)?,
                }
                if let Some(status) = error.status {
                    write!(f, ", status {status}")?;
                }
                write!(f, ", after {} ms", took.as_millis())
            }
        }
    }
}

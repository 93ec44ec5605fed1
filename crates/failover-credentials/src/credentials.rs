//! From a profile to a secret that can be sent.

use crate::{Profiles, RefreshFault, Refresher, Secrets, SourceError};
use failover_classify::Surface;
use failover_provider::AttemptFailure;
use failover_store::StoreError;
use failover_types::{
    Clock, Credential, FailoverReason, OAuth, ProfileId, ProviderId, ResolvedCredential, Secret,
};
use std::sync::Arc;

/// Why a profile has no secret that can be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// Nothing is stored under the id.
    #[error("no credential is stored for {profile}; add it with: failover auth add")]
    Missing {
        /// Which profile.
        profile: ProfileId,
    },
    /// A static token has run out.
    #[error("the token of {profile} has run out; store a new one")]
    Expired {
        /// Which profile.
        profile: ProfileId,
    },
    /// The value cannot be read from its source.
    #[error("the credential {profile} cannot be read")]
    Source {
        /// Which profile.
        profile: ProfileId,
        /// Why.
        #[source]
        source: SourceError,
    },
    /// The login could not be renewed.
    #[error(transparent)]
    Refresh(#[from] RefreshFault),
    /// The store failed.
    #[error("the credential {profile} cannot be read from the store")]
    Store {
        /// Which profile.
        profile: ProfileId,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// This software knows no such kind of credential.
    #[error("this version knows no credential of the kind that {profile} has; upgrade to use it")]
    Unknown {
        /// Which profile.
        profile: ProfileId,
    },
}

impl CredentialError {
    /// What it means for the attempt that needed the secret: the credential's fault, the network's, or this machine's.
    pub fn reason(&self) -> FailoverReason {
        match self {
            Self::Missing { .. } | Self::Expired { .. } | Self::Source { .. } | Self::Unknown { .. } => {
                FailoverReason::Auth
            }
            Self::Refresh(fault) => fault.reason(),
            // Another credential may lie elsewhere: a store that does not answer is no reason to give up.
            Self::Store { .. } => FailoverReason::Timeout,
        }
    }
}

impl CredentialError {
    /// The failure of the attempt that needed the secret: the provider's own answer where it gave one, else one that
    /// classifies to [`CredentialError::reason`]. No secret is in it.
    pub fn into_failure(self, provider: ProviderId) -> AttemptFailure {
        let local = || AttemptFailure::new(provider.clone(), Surface::Local);
        match self {
            Self::Refresh(
                RefreshFault::Refused { answer: Some(answer), .. }
                | RefreshFault::Unreachable { answer: Some(answer), .. },
            ) => answer,
            Self::Refresh(RefreshFault::Unreachable { answer: None, .. }) => {
                AttemptFailure::new(provider, Surface::Transport).with_code("ETIMEDOUT")
            }
            Self::Store { .. } | Self::Refresh(RefreshFault::Store { .. }) => {
                AttemptFailure::new(provider, Surface::Transport)
                    .with_code("ETIMEDOUT")
                    .with_body(b"the store of credentials does not answer")
            }
            Self::Refresh(RefreshFault::Refused { permanent: true, .. }) => {
                local().with_status(401).with_body(b"invalid_grant: the refresh token was revoked")
            }
            Self::Missing { .. }
            | Self::Expired { .. }
            | Self::Source { .. }
            | Self::Unknown { .. }
            | Self::Refresh(
                RefreshFault::Refused { .. } | RefreshFault::Gone { .. } | RefreshFault::NoRefresher { .. },
            ) => local().with_status(401).with_body(b"the credential is missing or has expired"),
        }
    }
}

/// Turns profiles into secrets that can be sent. Clones share the work under way.
#[derive(Clone)]
pub struct Credentials {
    profiles: Profiles,
    secrets: Secrets,
    refresher: Refresher,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("profiles", &self.profiles).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Resolves the profiles in `profiles`.
    pub fn new(profiles: Profiles, secrets: Secrets, refresher: Refresher, clock: Arc<dyn Clock>) -> Self {
        Self { profiles, secrets, refresher, clock }
    }

    /// The tables.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// What to send for `profile`: read from its source, renewed if it has nearly run out.
    ///
    /// # Errors
    ///
    /// [`CredentialError`]; [`CredentialError::reason`] says what it means for the attempt.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn resolve(&self, profile: &ProfileId) -> Result<ResolvedCredential, CredentialError> {
        self.resolve_again(profile, None).await
    }

    /// As [`Credentials::resolve`], after a call was refused with `rejected` before its time: a login is renewed even
    /// if it seems fresh.
    ///
    /// # Errors
    ///
    /// As [`Credentials::resolve`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn resolve_again(
        &self,
        profile: &ProfileId,
        rejected: Option<&Secret>,
    ) -> Result<ResolvedCredential, CredentialError> {
        let stored = self.profiles.credential(profile).await;
        let credential = match stored {
            Ok(Some(stored)) => stored.credential,
            Ok(None) => return Err(CredentialError::Missing { profile: profile.clone() }),
            Err(source) => return Err(CredentialError::Store { profile: profile.clone(), source }),
        };
        let kind = credential.kind();
        let source = match credential {
            Credential::OAuth(_) => {
                return Ok(bearer(profile, self.refresher.fresh(profile, rejected).await?));
            }
            Credential::ApiKey { key, .. } => key,
            Credential::Token { expires: Some(at), .. } if at <= self.clock.now() => {
                return Err(CredentialError::Expired { profile: profile.clone() });
            }
            Credential::Token { token, .. } => token,
            _ => return Err(CredentialError::Unknown { profile: profile.clone() }),
        };
        let secret = self.secrets.read(&source).await;
        let secret = secret.map_err(|source| CredentialError::Source { profile: profile.clone(), source })?;
        Ok(ResolvedCredential::new(profile.clone(), kind, secret))
    }
}

fn bearer(profile: &ProfileId, pair: OAuth) -> ResolvedCredential {
    let kind = failover_types::CredentialKind::OAuth;
    let mut resolved = ResolvedCredential::new(profile.clone(), kind, pair.access);
    resolved.project_id = pair.project_id;
    resolved.enterprise_url = pair.enterprise_url;
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;
    use failover_classify::{AsSignal, Classifier};

    // spec: A-19, C-12
    #[test]
    fn a_failure_classifies_to_the_reason_that_the_error_names() {
        let classifier = Classifier::standard().unwrap();
        let profile = || ProfileId::new("acme:p").unwrap();
        let provider = ProviderId::new("acme").unwrap();
        let store = || StoreError::Unavailable { place: "here".into(), why: "gone".into() };
        let revoked = AttemptFailure::new(provider.clone(), Surface::Http)
            .with_status(400)
            .with_body(br#"{"error":"invalid_grant","error_description":"Token has been revoked."}"#);
        let down = AttemptFailure::new(provider.clone(), Surface::Http).with_status(504);
        let refused = |permanent, answer| RefreshFault::Refused { profile: profile(), permanent, answer };
        let errors = [
            CredentialError::Missing { profile: profile() },
            CredentialError::Expired { profile: profile() },
            CredentialError::Source { profile: profile(), source: SourceError::NoCommand },
            CredentialError::Store { profile: profile(), source: store() },
            refused(true, Some(revoked)).into(),
            refused(true, None).into(),
            refused(false, None).into(),
            RefreshFault::Unreachable { profile: profile(), answer: Some(down) }.into(),
            RefreshFault::Unreachable { profile: profile(), answer: None }.into(),
            RefreshFault::Gone { profile: profile() }.into(),
            RefreshFault::NoRefresher { profile: profile(), provider: provider.clone() }.into(),
            RefreshFault::Store { profile: profile(), why: "gone".into() }.into(),
        ];
        for error in errors {
            let (text, reason) = (error.to_string(), error.reason());
            let failure = error.into_failure(provider.clone());
            let verdict = failure.with_signal(|signal| classifier.classify(signal));
            assert_eq!(verdict.reason, reason, "{text}: {:?}", verdict.evidence);
        }
    }
}

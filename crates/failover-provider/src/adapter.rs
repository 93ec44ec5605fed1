//! The traits that an adapter crate implements.

use crate::{AttemptFailure, AttemptScope, ChatRequest, Dialect, Part, Reply};
use async_trait::async_trait;
use failover_classify::{AsSignal, ProviderRules, Signal};
use failover_types::{OAuth, ProviderId, ResolvedCredential, Timestamp};
use std::fmt;
use std::sync::Arc;

/// Speaks to one provider. One call of [`open`](Self::open) is one attempt: no retry, no fallback, no redirect,
/// no waiting inside.
#[async_trait]
pub trait ProviderAdapter: Send + Sync {
    /// The provider's id, as it stands in model references.
    fn id(&self) -> &ProviderId;

    /// The wordings and codes that only this adapter knows, besides the standard tables of the classifier.
    fn rules(&self) -> &dyn ProviderRules;

    /// The dialect in which a caller's own bytes pass through ([`ChatRequest::native`]); `None` where it maps every
    /// request.
    fn dialect(&self) -> Option<Dialect> {
        None
    }

    /// Whether its API has a place for something that a request shows, as it is given: an image or a file
    /// ([`Part::Image`], [`Part::File`]). Where it has none, the provider is not asked (requirement H-11).
    fn takes(&self, shown: &Part) -> bool {
        let _ = shown;
        true
    }

    /// Makes one attempt. The request is the caller's original and is mapped anew each time.
    ///
    /// It resolves with the first content, with a complete answer, or with a typed failure, and never earlier:
    /// an error status, an error event before content, an empty stream and a 200 with an error body are all
    /// failures. After that a stream ends with [`ReplyEvent::Finish`](crate::ReplyEvent::Finish) or with a failure.
    ///
    /// # Errors
    ///
    /// [`AttemptFailure`] with everything that is known of what went wrong.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future or the stream closes the connection within 100 ms. The provider may have
    /// worked, and billed, by then.
    async fn open(&self, request: &ChatRequest, scope: AttemptScope<'_>) -> Result<Reply, AttemptFailure>;

    /// Who can say when a subscription's limit ends, where the provider tells that (requirement A-13).
    fn limit_probe(&self) -> Option<Arc<dyn LimitProbe>> {
        None
    }

    /// Who renews the logins of this provider, where it has any (requirement A-19).
    fn token_refresher(&self) -> Option<Arc<dyn TokenRefresher>> {
        None
    }
}

/// Trades a refresh token for a new pair. One attempt; who calls it and when is decided elsewhere.
#[async_trait]
pub trait TokenRefresher: Send + Sync {
    /// Refreshes `current`. Account details that the answer does not repeat are kept.
    ///
    /// # Errors
    ///
    /// [`RefreshError`] with the provider's answer, to be classified: a revoked grant and a broken network are told
    /// apart there, not here.
    ///
    /// # Cancel safety
    ///
    /// **Not** cancel safe: the provider may have used up the refresh token. Run it in a task of its own.
    async fn refresh(&self, current: &OAuth, now: Timestamp) -> Result<OAuth, RefreshError>;
}

/// Asks a provider when a limit ends.
#[async_trait]
pub trait LimitProbe: Send + Sync {
    /// When the credential becomes usable again; `None` where nothing blocks it or the provider does not say.
    ///
    /// # Errors
    ///
    /// [`ProbeError`] where the provider cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    async fn reset_time(
        &self,
        credential: &ResolvedCredential,
        now: Timestamp,
    ) -> Result<Option<Reset>, ProbeError>;
}

/// When a limit ends, in the provider's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reset {
    /// When.
    pub at: Timestamp,
    /// Where it was read: an endpoint, a field.
    pub source: String,
}

impl Reset {
    /// A reset from its parts.
    pub fn new(at: Timestamp, source: impl Into<String>) -> Self {
        Self { at, source: source.into() }
    }
}

macro_rules! wraps_a_failure {
    ($(#[$doc:meta])* $name:ident, $text:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(AttemptFailure);

        impl $name {
            /// The failed call.
            pub fn failure(&self) -> &AttemptFailure {
                &self.0
            }
        }

        impl From<AttemptFailure> for $name {
            fn from(failure: AttemptFailure) -> Self {
                Self(failure)
            }
        }

        impl AsSignal for $name {
            fn with_signal<R>(&self, with: impl FnOnce(&Signal<'_>) -> R) -> R {
                self.0.with_signal(with)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($text)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0).finish()
            }
        }

        impl std::error::Error for $name {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.0)
            }
        }
    };
}

wraps_a_failure!(
    /// A refresh that did not give a new pair. Classify it to know whether the grant is gone.
    RefreshError,
    "the access token could not be refreshed"
);
wraps_a_failure!(
    /// A provider that could not be asked about its limits.
    ProbeError,
    "the provider could not be asked when its limit ends"
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The seams stay object safe.
    fn _object_safe(_: &dyn ProviderAdapter, _: &dyn TokenRefresher, _: &dyn LimitProbe) {}
}

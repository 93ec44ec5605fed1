//! One login at one provider, and what a process has to work with it.

use failover_auth::RefreshPolicy;
use failover_credentials::{Credentials, Judge, Profiles, Refresher, Secrets};
use failover_provider::{RefreshError, TokenRefresher};
use failover_store::KeyValue;
use failover_types::{
    AgentId, Clock, Credential, FailoverReason, OAuth, ProfileId, ProviderId, Secret, Timestamp,
};
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) const T0: Timestamp = Timestamp::from_millis(1_800_000_000_000);

pub(crate) fn provider() -> ProviderId {
    ProviderId::new("acme").unwrap()
}

pub(crate) fn profile() -> ProfileId {
    ProfileId::new("acme:ada@example.com").unwrap()
}

/// The `n`-th generation of a login.
pub(crate) fn login(n: u64, expires: Timestamp) -> OAuth {
    OAuth::new(provider(), Secret::new(format!("access-{n}")), Secret::new(format!("refresh-{n}")), expires)
}

/// What the classifier makes of these failures: the grant is gone, or the server is.
pub(crate) fn judge() -> Judge {
    Arc::new(|error: &RefreshError| match error.failure().status {
        Some(400) => FailoverReason::AuthPermanent,
        Some(403) => FailoverReason::Auth,
        _ => FailoverReason::ServerError,
    })
}

/// What one process has.
pub(crate) fn process(
    store: Arc<dyn KeyValue>,
    refresher: Arc<dyn TokenRefresher>,
    policy: RefreshPolicy,
    clock: Arc<dyn Clock>,
) -> Credentials {
    let profiles = Profiles::new(store, AgentId::main());
    let providers = HashMap::from([(provider(), refresher)]);
    let refresher = Refresher::new(profiles.clone(), providers, judge(), policy, Arc::clone(&clock));
    Credentials::new(profiles, Secrets::new(Arc::clone(&clock)), refresher, clock)
}

pub(crate) async fn store_login(credentials: &Credentials, pair: OAuth) {
    credentials.profiles().put(&profile(), &Credential::OAuth(pair), T0).await.unwrap();
}

pub(crate) async fn stored_login(credentials: &Credentials) -> OAuth {
    let stored = credentials.profiles().credential(&profile()).await.unwrap().unwrap();
    let Credential::OAuth(pair) = stored.credential else { panic!("{} is no login", profile()) };
    pair
}

//! Takes over what an installation of OpenClaw left into a store (requirement A-21).

use failover_auth::UsageStats;
use failover_config::import::{Found, FoundAgent, Left};
use failover_credentials::Profiles;
use failover_store::{KeyValue, StoreError};
use failover_types::{AgentId, CredentialKind, ProfileId, ProviderId, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;

/// What became of it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// What came over, or would.
    pub taken: Vec<Taken>,
    /// What stood in the store already, just so.
    pub same: Vec<Taken>,
    /// What did not come over, and why.
    pub left: Vec<Left>,
}

/// Something that came over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// Whose it is.
    pub agent: AgentId,
    /// What it is.
    pub what: TakenWhat,
}

/// What came over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakenWhat {
    /// A credential, or a reference to one.
    Credential {
        /// Its profile.
        profile: ProfileId,
        /// Its kind.
        kind: CredentialKind,
        /// The file it comes from.
        from: PathBuf,
    },
    /// What was held against a profile, and when it was last used.
    Health(ProfileId),
    /// The order of a provider's profiles.
    Order(ProviderId),
}

impl std::fmt::Display for TakenWhat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Credential { profile, kind, from } => {
                write!(f, "credential {profile} ({}) from {}", kind.as_str(), from.display())
            }
            Self::Health(profile) => write!(f, "health of {profile}"),
            Self::Order(provider) => write!(f, "order of {provider}"),
        }
    }
}

/// Writes what was found into `store`; with `dry_run` only says what it would do. What stands in the store already is
/// never written over, so a second call changes nothing.
///
/// # Errors
///
/// Whatever the store says. What was taken over until then stays, and the rest can be done again.
///
/// # Cancel safety
///
/// Cancel safe: as after an error.
pub async fn import_openclaw(
    store: &Arc<dyn KeyValue>,
    found: &Found,
    dry_run: bool,
    now: Timestamp,
) -> Result<ImportReport, StoreError> {
    let mut report = ImportReport { left: found.left.clone(), ..ImportReport::default() };
    for (agent, found) in &found.agents {
        let profiles = Profiles::new(Arc::clone(store), agent.clone());
        let mut import = Import { agent, profiles, report: &mut report, dry_run, now };
        import.credentials(found).await?;
        import.health(found).await?;
        import.orders(found).await?;
    }
    Ok(report)
}

struct Import<'a> {
    agent: &'a AgentId,
    profiles: Profiles,
    report: &'a mut ImportReport,
    dry_run: bool,
    now: Timestamp,
}

impl Import<'_> {
    fn note(&mut self, same: bool, what: TakenWhat) {
        let taken = Taken { agent: self.agent.clone(), what };
        if same { self.report.same.push(taken) } else { self.report.taken.push(taken) }
    }

    fn leave(&mut self, file: PathBuf, what: &str, why: &str) {
        self.report.left.push(Left::new(file, format!("{what} of agent {}", self.agent), why));
    }

    async fn credentials(&mut self, found: &FoundAgent) -> Result<(), StoreError> {
        for (profile, (credential, from)) in &found.credentials {
            let what = TakenWhat::Credential {
                profile: profile.clone(),
                kind: credential.kind(),
                from: from.clone(),
            };
            match self.profiles.credential(profile).await? {
                Some(stands) if stands.credential == *credential => self.note(true, what),
                // Perhaps renewed here since: the older login would be worthless, and the newer one lost.
                Some(_) => {
                    let why =
                        "the store holds another one, which counts; to take this, remove that one first";
                    self.leave(from.clone(), &format!("the credential {profile}"), why);
                }
                None => {
                    if !self.dry_run {
                        self.profiles.put(profile, credential, self.now).await?;
                    }
                    self.note(false, what);
                }
            }
        }
        Ok(())
    }

    /// After the credentials: storing one clears what is held against its profile.
    async fn health(&mut self, found: &FoundAgent) -> Result<(), StoreError> {
        for (profile, flat) in &found.usage {
            let imported = flat.import(self.now);
            for reason in imported.unknown_reasons {
                let what = format!("usageStats.{profile}: the reason {reason:?}");
                self.leave(PathBuf::new(), &what, "it is not known here");
            }
            let what = TakenWhat::Health(profile.clone());
            let stands = self.profiles.usage(profile).await?;
            if imported.usage == UsageStats::default() {
                continue;
            }
            // What happened here since is newer than anything that was imported.
            if stands != UsageStats::default() {
                self.note(true, what);
                continue;
            }
            if !self.dry_run {
                let put = |stands: &UsageStats| {
                    if *stands == UsageStats::default() { imported.usage.clone() } else { stands.clone() }
                };
                self.profiles.steer_usage(profile, put).await?;
            }
            self.note(false, what);
        }
        Ok(())
    }

    async fn orders(&mut self, found: &FoundAgent) -> Result<(), StoreError> {
        for (provider, order) in &found.orders {
            let stands = self.profiles.order(provider).await?;
            if !stands.is_empty() && stands != *order {
                let what = format!("the order of {provider}");
                self.leave(PathBuf::new(), &what, "another one is stored here, which counts");
                continue;
            }
            let same = stands == *order;
            if !same && !self.dry_run {
                self.profiles.set_order(provider, order).await?;
            }
            self.note(same, TakenWhat::Order(provider.clone()));
        }
        Ok(())
    }
}

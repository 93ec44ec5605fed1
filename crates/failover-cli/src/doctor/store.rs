//! The state directory: rights, owner, files, records.

use super::{Findings, Repair};
use crate::exit::{Failure, chain};
use crate::home::{self, Shared};
use failover::auth::UsageStats;
use failover::credentials::Profiles;
use failover::runner::SystemClock;
use failover::session::SessionEntry;
use failover::store::{Key, KeyValue, Prefix, StoreError};
use failover::store_sled::{Health, SharedStore, SledOptions};
use failover::types::{AgentId, ProfileId};
use std::path::Path;
use std::sync::Arc;

const AREA: &str = "state directory";
const SHARED: &str = "shared store";
/// Names listed at most, of those that have the same fault.
const MOST_NAMES: usize = 5;

/// Looks at the store that is in use, and opens it where that is safe.
pub(super) async fn look(findings: &mut Findings) -> Option<Arc<dyn KeyValue>> {
    match home::shared().await {
        Some(shared) => look_at_shared(shared, findings).await,
        None => look_at_directory(findings).await,
    }
}

async fn look_at_shared(
    shared: Result<Shared, Failure>,
    findings: &mut Findings,
) -> Option<Arc<dyn KeyValue>> {
    let Shared { store, state } = match shared {
        Ok(shared) => shared,
        Err(failure) => {
            findings.problem(
                SHARED,
                failure.message,
                failure.hint.unwrap_or_else(|| "mend what it names".to_owned()),
            );
            return None;
        }
    };
    match state {
        Ok(warnings) => {
            findings.fine(SHARED, "its server answers");
            for warning in warnings {
                findings.warn(SHARED, warning, "set it in the server's own config");
            }
            versions(SHARED, &store, findings).await;
        }
        Err(why) => findings.problem(
            SHARED,
            why,
            "start it, or mend the address; until then each machine knows its own",
        ),
    }
    Some(store)
}

async fn look_at_directory(findings: &mut Findings) -> Option<Arc<dyn KeyValue>> {
    let dir = match home::directory() {
        Ok(home) => home.join("state"),
        Err(failure) => {
            findings.problem(AREA, failure.message, failure.hint.unwrap_or_default());
            return None;
        }
    };
    if !dir.exists() {
        findings.fine(
            AREA,
            format!("{} does not exist yet; the first command that needs it makes it", dir.display()),
        );
        return None;
    }
    let before = findings.repairs().len();
    rights(&dir, findings);
    if findings.repairs().len() > before {
        // The store refuses such a directory, and says the same again.
        return None;
    }
    match SharedStore::open(&dir, Arc::new(SystemClock::new())).await {
        Ok(store) => {
            match store.owned() {
                Some(own) => match own.health() {
                    Ok(health) => records(&dir, &health, findings),
                    Err(error) => findings.problem(AREA, chain(&error), "see what the disk says"),
                },
                None => findings.fine(AREA, format!("{} is open in {}", dir.display(), holder(&dir))),
            }
            let store: Arc<dyn KeyValue> = Arc::new(store);
            versions(AREA, &store, findings).await;
            Some(store)
        }
        Err(error) => {
            let said = chain(&error);
            match error {
                StoreError::Corrupt { .. } => findings.repairable(AREA, said, Repair::Salvage { dir }),
                StoreError::Locked { .. } => {
                    let mend = format!("end {}, or wait until it answers", holder(&dir));
                    findings.problem(AREA, said, mend);
                }
                StoreError::Unavailable { .. }
                | StoreError::Damaged { .. }
                | StoreError::Newer { .. }
                | StoreError::TooLarge { .. }
                | StoreError::Misfit { .. }
                | StoreError::Sealed { .. }
                | StoreError::Contended { .. }
                | StoreError::Refused { .. }
                | StoreError::Engine { .. }
                | _ => findings.problem(AREA, said, "mend what it names, then run `failover doctor` again"),
            }
            None
        }
    }
}

/// Who holds the directory, as it wrote itself into the lock file.
fn holder(dir: &Path) -> String {
    let line = std::fs::read_to_string(dir.join("lock")).ok();
    let line = line.as_deref().and_then(|text| text.lines().next()).filter(|line| !line.trim().is_empty());
    line.map_or_else(|| "another process".to_owned(), |line| line.trim().chars().take(200).collect())
}

/// The directory and what the store keeps in it are their owner's only. The engine's helper files behind a closed
/// door are narrowed by the store itself.
#[cfg(unix)]
fn rights(dir: &Path, findings: &mut Findings) {
    use std::os::unix::fs::PermissionsExt;
    let sled = dir.join("sled");
    for path in [dir.to_owned(), dir.join("lock"), sled.join("db"), sled] {
        let Ok(meta) = std::fs::metadata(&path) else { continue };
        let (mode, want) = (meta.permissions().mode() & 0o777, if meta.is_dir() { 0o700 } else { 0o600 });
        if mode & 0o077 != 0 {
            let what = format!("{} can be reached by others (mode {mode:03o})", path.display());
            findings.repairable(AREA, what, Repair::Narrow { path: path.clone(), mode: want });
        }
    }
}

#[cfg(not(unix))]
fn rights(_dir: &Path, _findings: &mut Findings) {}

fn names(all: &[String]) -> String {
    let more = all.len().saturating_sub(MOST_NAMES);
    let shown = all.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn records(dir: &Path, health: &Health, findings: &mut Findings) {
    let lapsed = match health.lapsed {
        0 => String::new(),
        lapsed => format!(", {lapsed} expired ones that the sweep is about to remove"),
    };
    findings.fine(
        AREA,
        format!(
            "{} opens: {} records, {} KiB{lapsed}",
            dir.display(),
            health.live,
            health.bytes.div_ceil(1024)
        ),
    );
    if !health.damaged.is_empty() {
        let damaged: Vec<String> = health.damaged.iter().map(|(key, why)| format!("{key} ({why})")).collect();
        let mend = "the next read sets each aside; store the credential again, or let the session begin anew";
        findings.warn(AREA, format!("damaged records: {}", names(&damaged)), mend);
    }
    if !health.quarantined.is_empty() {
        let what = format!("records that were damaged and set aside: {}", names(&health.quarantined));
        findings.warn(AREA, what, "they are kept as they were found, and nothing reads them; a credential among them must be stored again");
    }
    let aside = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let aside: Vec<String> = aside
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("sled.damaged"))
        .collect();
    if !aside.is_empty() {
        let mend = format!("they hold secrets: delete them in {} once nothing is missed", dir.display());
        findings.warn(AREA, format!("files of an earlier repair: {}", names(&aside)), mend);
    }
}

/// Reads every record by the table that it belongs to: newer ones and unreadable ones are told (K-4).
async fn versions(area: &'static str, store: &Arc<dyn KeyValue>, findings: &mut Findings) {
    let mut after: Option<Key> = None;
    let (mut newer, mut unreadable) = (Vec::new(), Vec::new());
    loop {
        let page = match store.scan(&Prefix::everything(), after.as_ref(), 256).await {
            Ok(page) => page,
            Err(StoreError::Damaged { key, why }) => {
                findings.warn(
                    area,
                    format!("the record {key} was damaged ({why}) and is set aside now"),
                    "a credential must be stored again",
                );
                continue;
            }
            Err(error) => {
                return findings.problem(area, chain(&error), "see what the disk or the server says");
            }
        };
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        for (key, found) in &page {
            match judge(store, key, found.value.as_bytes()).await {
                Ok(()) => {}
                Err(Fault::Newer(why)) => newer.push(format!("{key} ({why})")),
                Err(Fault::Unreadable(why)) => unreadable.push(format!("{key} ({why})")),
            }
        }
    }
    if !newer.is_empty() {
        let what = format!("records of a newer version of this software: {}", names(&newer));
        findings.problem(area, what, "upgrade; until then they are left as they are");
    }
    if !unreadable.is_empty() {
        let what = format!("records that cannot be read: {}", names(&unreadable));
        findings.problem(
            area,
            what,
            "store the credential again, or reset the session (`failover session reset`)",
        );
    }
}

enum Fault {
    Newer(String),
    Unreadable(String),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::Newer { .. }) {
            Self::Newer(error.to_string())
        } else {
            Self::Unreadable(chain(&error))
        }
    }
}

/// Whether a record is what its key says.
async fn judge(store: &Arc<dyn KeyValue>, key: &Key, bytes: &[u8]) -> Result<(), Fault> {
    let segments: Vec<&str> = key.as_str().split('/').collect();
    let (agent, rest) = match segments.as_slice() {
        ["agent", agent, rest @ ..] => (*agent, rest),
        _ => return Ok(()),
    };
    let Ok(agent) = AgentId::new(agent) else { return Ok(()) };
    match rest {
        ["usage", ..] => match UsageStats::decode(bytes) {
            Ok(_) => Ok(()),
            Err(error @ failover::auth::UsageError::Newer { .. }) => Err(Fault::Newer(error.to_string())),
            Err(error) => Err(Fault::Unreadable(chain(&error))),
        },
        ["session", ..] => {
            SessionEntry::parse(bytes).map(drop).map_err(|error| Fault::Unreadable(chain(&error)))
        }
        ["credential", id] => match id.parse::<ProfileId>() {
            Ok(id) => Ok(Profiles::new(Arc::clone(store), agent).credential(&id).await.map(drop)?),
            // The name is escaped in the key; the list of credentials reads it.
            Err(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Does it; says what was done.
pub(super) fn repair(repair: &Repair) -> Result<String, String> {
    match repair {
        Repair::Narrow { path, mode } => narrow(path, *mode)
            .map(|()| format!("the rights of {} are {mode:03o} now", path.display()))
            .map_err(|error| error.to_string()),
        Repair::Salvage { dir } => SledOptions::new(dir, Arc::new(SystemClock::new()))
            .repair()
            .map(|done| {
                format!(
                    "{} records were brought back; the damaged files are in {}",
                    done.recovered,
                    done.aside.display()
                )
            })
            .map_err(|error| chain(&error)),
    }
}

#[cfg(unix)]
fn narrow(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn narrow(_path: &Path, _mode: u32) -> std::io::Result<()> {
    Ok(())
}

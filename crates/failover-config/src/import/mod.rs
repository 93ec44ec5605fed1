//! What an installation of OpenClaw leaves to be taken over: credentials, health, orders, config (requirement A-21).
//!
//! Files are read and never changed. What comes out names no secret outside of [`Credential`]s; whatever cannot be
//! taken over is reported with its place and the cause.

mod config;
mod credentials;

use failover_auth::FlatUsage;
use failover_types::{AgentId, Credential, ProfileId, ProviderId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest file read, in bytes: a store of ten thousand profiles fits.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Why nothing can be taken over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is no such directory, or it cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The directory has none of the files that an installation has.
    #[error("{} holds nothing of OpenClaw; name its state directory, usually ~/.openclaw", path.display())]
    Nothing {
        /// Which one.
        path: PathBuf,
    },
}

/// What was found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Found {
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// By agent.
    pub agents: BTreeMap<AgentId, FoundAgent>,
    /// The config in our form, valid and without any secret; `None` where there is none worth writing.
    pub config: Option<Value>,
    /// What cannot be taken over.
    pub left: Vec<Left>,
}

/// What was found for one agent.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FoundAgent {
    /// Credentials, and the file that each comes from.
    pub credentials: BTreeMap<ProfileId, (Credential, PathBuf)>,
    /// Health, in the form it was found in.
    pub usage: BTreeMap<ProfileId, FlatUsage>,
    /// Orders of profiles.
    pub orders: BTreeMap<ProviderId, Vec<ProfileId>>,
}

/// Something that is not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// The file.
    pub file: PathBuf,
    /// Where in it: `profiles.openai:work`, `auth.cooldowns`; empty for the file as a whole.
    pub what: String,
    /// Why. Never a value of the file.
    pub why: String,
}

impl Left {
    /// Something that is not taken over.
    pub fn new(file: PathBuf, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { file, what: what.into(), why: why.into() }
    }
}

/// The files of one agent, strongest first: what an earlier one says counts.
const AGENT_FILES: [(&str, Form); 3] =
    [("auth-state.json", Form::State), ("auth-profiles.json", Form::Profiles), ("auth.json", Form::Flat)];

/// How a file with credentials is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `{ version, profiles, order?, lastGood?, usageStats? }`.
    Profiles,
    /// `{ version, order?, lastGood?, usageStats? }`: newer than what `auth-profiles.json` says of it.
    State,
    /// A credential by provider.
    Flat,
    /// An OAuth pair by provider, without a type.
    OAuth,
}

/// Reads what an installation of OpenClaw in `root` leaves.
///
/// # Errors
///
/// [`ImportError`] where `root` cannot be read or is none. A file that cannot be read is reported in [`Found::left`].
pub fn openclaw(root: &Path) -> Result<Found, ImportError> {
    let failed = |source| ImportError::Read { path: root.to_owned(), source };
    std::fs::read_dir(root).map_err(failed)?;
    let mut found = Found::default();
    // The oldest layout kept the main agent's files beside the others.
    let mut folders = vec![(AgentId::main(), root.join("agent"))];
    if let Ok(agents) = std::fs::read_dir(root.join("agents")) {
        let mut named: Vec<_> = agents
            .flatten()
            .filter_map(|entry| {
                Some((AgentId::new(entry.file_name().to_str()?).ok()?, entry.path().join("agent")))
            })
            .collect();
        named.sort();
        // Main's own folder goes before the old place.
        named.append(&mut folders);
        folders = named;
    }
    for (agent, folder) in folders {
        for (name, form) in AGENT_FILES {
            found.read(&agent, &folder.join(name), form);
        }
    }
    found.read(&AgentId::main(), &root.join("credentials").join("oauth.json"), Form::OAuth);
    found.read_config(&root.join("openclaw.json"));
    if found.files.is_empty() && found.left.is_empty() {
        return Err(ImportError::Nothing { path: root.to_owned() });
    }
    Ok(found)
}

impl Found {
    /// The text of a file; `None` where there is none, and a report where it cannot be read.
    fn text(&mut self, path: &Path) -> Option<String> {
        let metadata = std::fs::metadata(path).ok()?;
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            self.leave(path, "", "it is no file of a size that could be meant");
            return None;
        }
        match std::fs::read_to_string(path) {
            Ok(text) => {
                self.files.push(path.to_owned());
                Some(text)
            }
            Err(error) => {
                self.leave(path, "", format!("it cannot be read: {error}"));
                None
            }
        }
    }

    fn leave(&mut self, file: &Path, what: impl Into<String>, why: impl Into<String>) {
        self.left.push(Left::new(file.to_owned(), what, why));
    }

    fn agent(&mut self, agent: &AgentId) -> &mut FoundAgent {
        self.agents.entry(agent.clone()).or_default()
    }
}

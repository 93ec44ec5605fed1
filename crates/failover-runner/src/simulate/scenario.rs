//! A scenario as a file: who is asked, what providers answer and when, and what people do meanwhile.

use crate::plan::PolicyConfig;
use failover_types::{FailoverReason, ModelRef, ModelSelector, ProfileId, Scope, SessionId};
use serde::{Deserialize, Serialize};

/// A scenario. Times are milliseconds since its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub about: String,
    /// The numbers of the requirements that it shows.
    pub spec: Vec<String>,
    /// The configured chain: the primary, then the fallbacks.
    pub chain: Vec<ModelRef>,
    /// The chain for prompts that are too long.
    pub on_context_overflow: Vec<ModelRef>,
    /// The chain for refused content.
    pub on_content_refusal: Vec<ModelRef>,
    /// The credentials, in order. A provider without any has one, `provider:default`.
    pub profiles: Vec<ProfileId>,
    /// The runner's numbers. Jitter is off unless it is set here.
    pub policy: Option<PolicyConfig>,
    /// What providers answer: the first rule that fits.
    pub script: Vec<ScriptRule>,
    /// What happens, in order of time.
    pub events: Vec<ScenarioEvent>,
}

/// What a provider answers, where it fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ScriptRule {
    /// This model only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// This credential only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileId>,
    /// For attempts that begin from here on.
    #[serde(default)]
    pub from_ms: u64,
    /// For attempts that begin before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// For so many attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// How long the attempt takes.
    #[serde(default = "usual")]
    pub takes_ms: u64,
    /// What comes.
    pub answer: Script,
}

fn usual() -> u64 {
    100
}

/// What a provider answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Script {
    /// An answer.
    Ok,
    /// Nothing, for ever.
    Hang,
    /// A failure.
    Fail(ScriptedFailure),
}

/// A failure, as classification would see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ScriptedFailure {
    /// Why.
    pub reason: FailoverReason,
    /// What is to blame; by default what the reason says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The provider wants to be asked again after this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The exact reset of a usage window, since the start of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at_ms: Option<u64>,
    /// Output had been delivered.
    #[serde(default)]
    pub committed: bool,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ScenarioEvent {
    /// When.
    pub at_ms: u64,
    /// What.
    pub what: Happening,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happening {
    /// A run begins; with a session, the session says which model.
    Run(ScriptedRun),
    /// Many runs begin at once, outside of any session.
    Runs(u32),
    /// A person selects a model; a run of the session is told at once.
    Select(SessionChoice),
    /// A person begins anew: `/new`.
    New(SessionId),
    /// A person resets the session: `/reset`.
    Reset(SessionId),
    /// The session was compacted, for the so-many-th time.
    Compact(Compaction),
    /// The process that runs this session dies.
    Kill(SessionId),
    /// A person pauses a profile.
    Pause(ProfileId),
    /// A person lifts the pause.
    Resume(ProfileId),
    /// A person clears a profile's windows.
    Clear(ProfileId),
    /// Prints how a session stands.
    Status(SessionId),
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ScriptedRun {
    /// Its name in the timeline; unique.
    pub name: String,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The request can be repaired once.
    #[serde(default)]
    pub repairable: bool,
    /// The request may be repeated though output was delivered.
    #[serde(default)]
    pub replay_safe: bool,
}

/// A person's choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SessionChoice {
    /// Where.
    pub session: SessionId,
    /// What: `provider/model`, or `provider/model@provider:profile`.
    pub model: String,
}

impl SessionChoice {
    pub(super) fn selector(&self) -> Option<ModelSelector> {
        self.model.parse().ok()
    }
}

/// A compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Compaction {
    /// Where.
    pub session: SessionId,
    /// The how-many-th.
    pub count: u64,
}

/// Why a scenario cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// It has no chain.
    #[error("the scenario has no chain; name at least one model")]
    NoChain,
    /// A number of the policy is out of its bounds.
    #[error(transparent)]
    Policy(#[from] crate::plan::PolicyError),
    /// A name or a model cannot be read.
    #[error("{what} {text:?} cannot be read")]
    Text {
        /// What it is.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// Two runs have one name.
    #[error("two runs are called {0:?}")]
    Twice(String),
}

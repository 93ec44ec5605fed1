//! This crate's own object inside an entry: claims, the running episode, notices, the probe, the pending switch.

use crate::entry::EntryError;
use crate::group::{ModelGroup, PinGroup};
use crate::{Notice, PendingSwitch};
use failover_types::{FailoverReason, ModelRef, ProfileId, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The newest schema version known. Any new field raises it: an older version would lose the field.
const VERSION: u32 = 1;

/// The bookkeeping. Every field is optional in the stored form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Book {
    pub v: Schema,
    /// Raised by every choice of a person and by every reset: what a run saw before is older.
    #[serde(skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// Counts episodes and notices, so that each has a name.
    #[serde(skip_serializing_if = "is_zero")]
    pub serial: u64,
    /// What stands below the claims; present while there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// Unproven overrides, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Marker>,
    /// A fallback serves this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episode: Option<Episode>,
    /// Notices that nobody has taken yet, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// The last probe of the origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeMark>,
    /// When the entry was last in use, roughly; only where idle ones are forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
    /// A person chose another model while a run may be under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<PendingSwitch>,
}

/// Both groups as they stand below the claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settled {
    pub model: ModelGroup,
    pub pin: PinGroup,
}

/// The trace of an attempt that has not succeeded yet: what a crash leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Marker {
    /// Whose attempt it is.
    pub run: RunId,
    /// What it tries.
    pub model: ModelRef,
    /// What had been selected before.
    pub origin: ModelRef,
    /// Why the run left it.
    pub reason: FailoverReason,
    /// When the attempt began.
    pub at: Timestamp,
    /// After that the run counts as dead.
    pub until: Timestamp,
    /// The pin that it wrote; `None` where it left the pin alone, since a person's stood there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pin: Option<PinWrite>,
}

/// A pin that a claim wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PinWrite {
    /// `None`: it removed the pin, which belonged to another provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileId>,
    #[serde(default)]
    pub compaction_count: u64,
}

impl PinWrite {
    pub(crate) fn group(&self) -> PinGroup {
        match &self.profile {
            Some(profile) => PinGroup::auto(profile, self.compaction_count),
            None => PinGroup::default(),
        }
    }
}

impl Marker {
    pub(crate) fn group(&self) -> ModelGroup {
        ModelGroup::auto(&self.model, &self.origin)
    }
}

/// A stretch of time in which a fallback serves the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Episode {
    pub serial: u64,
    pub fallback: ModelRef,
    pub selected: ModelRef,
    pub reason: FailoverReason,
    pub since: Timestamp,
    /// No selection field says so: the policy is `turn_local`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn_local: bool,
}

/// When the origin was last probed. It counts for that origin only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeMark {
    pub origin: Option<ModelRef>,
    pub at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The version alone, read before anything else of the object is.
#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

/// The schema version that this version writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Schema(u32);

impl Default for Schema {
    fn default() -> Self {
        Self(VERSION)
    }
}

impl Book {
    pub(crate) fn read(raw: &RawValue) -> Result<Self, EntryError> {
        let Versioned { v } = serde_json::from_str(raw.get()).map_err(EntryError::Damaged)?;
        if v > VERSION {
            return Err(EntryError::Newer { found: v, known: VERSION });
        }
        serde_json::from_str(raw.get()).map_err(EntryError::Damaged)
    }

    /// The stored form; nothing where there is nothing to remember.
    pub(crate) fn to_raw(&self) -> Option<Box<RawValue>> {
        if *self == Self::default() {
            return None;
        }
        serde_json::value::to_raw_value(self).ok()
    }
}

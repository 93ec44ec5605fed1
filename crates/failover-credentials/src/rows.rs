//! What stands in the tables.

use failover_auth::Lease;
use failover_store::Row;
use failover_types::{Credential, ProfileId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A credential, secrets included.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CredentialRow(pub(crate) Credential);

impl Serialize for CredentialRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.reveal().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CredentialRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Credential::deserialize(deserializer).map(Self)
    }
}

impl Row for CredentialRow {
    const SCHEMA: u32 = 1;
}

/// A lease.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct LeaseRow(pub(crate) Lease);

impl Row for LeaseRow {
    const SCHEMA: u32 = 1;
}

/// The order that was stored for a provider.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OrderRow(pub(crate) Vec<ProfileId>);

impl Row for OrderRow {
    const SCHEMA: u32 = 1;
}

/// Counts the changes of credentials and orders, so that whoever keeps a copy of them knows when it is stale.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RosterRow {
    pub(crate) changes: u64,
}

impl Row for RosterRow {
    const SCHEMA: u32 = 1;
}

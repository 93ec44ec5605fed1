//! Typed tables over a store: JSON values under a schema version.

use crate::{Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Version, Versioned, WriteOptions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// How often an update is tried before it gives up. Each lost try means that another writer got through, so a
/// loser sees it only among more racing writers than any deployment of ours has.
const MAX_ATTEMPTS: u32 = 128;

/// What a table holds: a type, the version of its JSON form, and the way up from older forms.
pub trait Row: Serialize + DeserializeOwned + Send + Sync {
    /// The version written. Raised with every change that older software could not read.
    const SCHEMA: u32;

    /// Brings the JSON of an older version to the form of [`Row::SCHEMA`].
    ///
    /// # Errors
    ///
    /// A text that says why it cannot be brought up: the row is then reported and left as it is.
    fn upgrade(from: u32, old: serde_json::Value) -> Result<serde_json::Value, String> {
        let _ = old;
        Err(format!("there is no way up from schema version {from} to {}", Self::SCHEMA))
    }
}

/// A row as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored<T> {
    /// The state that was read or written.
    pub version: Version,
    /// The row.
    pub row: T,
}

/// What an update does with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "control flow: there is nothing else to do with a row")]
pub enum Edit<T> {
    /// Leaves it as it is, and writes nothing.
    Keep,
    /// Creates or replaces it.
    Put(T),
    /// Deletes it.
    Delete,
}

/// Rows of one type in a store. Clones share the store.
pub struct Table<T> {
    store: Arc<dyn KeyValue>,
    row: PhantomData<fn() -> T>,
}

#[derive(Serialize)]
struct Written<'a, T> {
    schema: u32,
    row: &'a T,
}

#[derive(Deserialize)]
struct Found<'a> {
    schema: u32,
    #[serde(borrow)]
    row: &'a RawValue,
}

impl<T: Row> Table<T> {
    /// Rows of type `T` in `store`. Tables that share a store keep to prefixes of their own.
    pub fn new(store: Arc<dyn KeyValue>) -> Self {
        Self { store, row: PhantomData }
    }

    /// The store below.
    pub fn store(&self) -> &Arc<dyn KeyValue> {
        &self.store
    }

    /// Reads a row; an older form is brought up in memory, and written in its new form by the next update only.
    ///
    /// # Errors
    ///
    /// [`StoreError::Newer`] for a row of newer software, [`StoreError::Misfit`] for one that is not this
    /// table's, and whatever the store says.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn read(&self, key: &Key) -> Result<Option<Stored<T>>, StoreError> {
        let found = self.store.get(key).await?;
        found.map(|found| decode(key, &found)).transpose()
    }

    /// Reads a page of rows as [`KeyValue::scan`] does. Rows that cannot be read come as errors of their own, so
    /// that one of them does not hide the others.
    ///
    /// # Errors
    ///
    /// Whatever the store says.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn page(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Page<T>, StoreError> {
        let page = self.store.scan(prefix, after, limit).await?;
        Ok(page
            .into_iter()
            .map(|(key, found)| {
                let row = decode(&key, &found);
                (key, row)
            })
            .collect())
    }

    /// Lets `edit` decide what to do with the row as it stands, and does it by compare-and-swap; a lost swap asks
    /// `edit` again with the row that stands then. Gives back what stands afterwards.
    ///
    /// `edit` may run several times: it decides, and has no effects of its own. A row that cannot be read is never
    /// written over.
    ///
    /// # Errors
    ///
    /// As [`Table::read`]; [`StoreError::Contended`] after 128 lost swaps; whatever the store says, and then the
    /// update may or may not have been done.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped update may or may not have been done.
    pub async fn update<F>(
        &self,
        key: &Key,
        write: WriteOptions,
        mut edit: F,
    ) -> Result<Option<Stored<T>>, StoreError>
    where
        F: FnMut(Option<&T>) -> Edit<T> + Send,
    {
        let mut current = self.store.get(key).await?;
        for _ in 0..MAX_ATTEMPTS {
            let expect = Expect::from(current.as_ref());
            let stands = current.map(|found| decode(key, &found)).transpose()?;
            let next = match edit(stands.as_ref().map(|stored| &stored.row)) {
                Edit::Keep => return Ok(stands),
                Edit::Put(row) => Some(row),
                Edit::Delete => None,
            };
            let bytes = next.as_ref().map(|row| encode(key, row)).transpose()?;
            match self.store.swap(key, expect, bytes, write).await? {
                Swap::Done(version) => {
                    return Ok(next.zip(version).map(|(row, version)| Stored { version, row }));
                }
                Swap::Lost(stands) => current = stands,
            }
        }
        Err(StoreError::Contended { key: key.to_string(), attempts: MAX_ATTEMPTS })
    }
}

/// A page of rows, in the order of their keys.
pub type Page<T> = Vec<(Key, Result<Stored<T>, StoreError>)>;

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), row: PhantomData }
    }
}

impl<T: Row> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table(schema {})", T::SCHEMA)
    }
}

fn encode<T: Row>(key: &Key, row: &T) -> Result<Value, StoreError> {
    let written = Written { schema: T::SCHEMA, row };
    serde_json::to_vec(&written).map(Value::new).map_err(|e| misfit(key, e.to_string()))
}

fn decode<T: Row>(key: &Key, found: &Versioned) -> Result<Stored<T>, StoreError> {
    // serde's messages may quote a value: only the place of a fault is told, never the text around it.
    let place = |e: serde_json::Error| {
        misfit(key, format!("{:?} fault at line {}, column {}", e.classify(), e.line(), e.column()))
    };
    let Found { schema, row } = serde_json::from_slice(found.value.as_bytes())
        .map_err(|e| sealed(key, found).unwrap_or_else(|| place(e)))?;
    if schema > T::SCHEMA {
        return Err(StoreError::Newer { key: key.to_string(), found: schema, known: T::SCHEMA });
    }
    let row = if schema == T::SCHEMA {
        serde_json::from_str(row.get()).map_err(place)?
    } else {
        let old = serde_json::from_str(row.get()).map_err(place)?;
        let new = T::upgrade(schema, old).map_err(|why| misfit(key, why))?;
        serde_json::from_value(new).map_err(place)?
    };
    Ok(Stored { version: found.version, row })
}

/// What a value says that was sealed and not opened on its way here.
fn sealed(key: &Key, found: &Versioned) -> Option<StoreError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Sealed {
        key_id: String,
    }
    let Sealed { key_id } = serde_json::from_slice(found.value.as_bytes()).ok()?;
    let why = format!("it was sealed with the key {key_id}; set FAILOVER_STORE_KEY to that one");
    Some(StoreError::Sealed { key: key.to_string(), why })
}

fn misfit(key: &Key, why: String) -> StoreError {
    StoreError::Misfit { key: key.to_string(), why }
}

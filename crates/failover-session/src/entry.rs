//! A session entry: a JSON object of which this crate owns a few fields and must not touch the others.

use crate::book::Book;
use crate::group::{MODEL_FIELDS, ModelGroup, PIN_FIELDS, PinGroup};
use failover_types::Timestamp;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// The field that holds this crate's own bookkeeping.
pub const BOOK_FIELD: &str = "failover";

/// The host's own field that counts how often the session was compacted.
const COMPACTIONS_FIELD: &str = "compactionCount";

/// Largest entry read, in bytes: a host may keep snapshots of prompts and skills in it.
const MAX_ENTRY_BYTES: usize = 4 * 1024 * 1024;

/// A name and the bytes of its value, shared: entries are copied often and may be large.
type Field = (Arc<str>, Arc<RawValue>);

/// A session entry. Values of unknown fields are kept as the bytes that were read, in the order that was read.
///
/// An entry is a value: every function of this crate takes one and returns the next.
#[derive(Clone, Default)]
pub struct SessionEntry {
    fields: Vec<Field>,
    /// What the owned fields say.
    model: ModelGroup,
    pin: PinGroup,
    book: Arc<Book>,
}

/// Why bytes are not a session entry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// Not a JSON object.
    #[error("a session entry must be a JSON object")]
    Json(#[source] serde_json::Error),
    /// Larger than 4 MiB.
    #[error("the session entry has {found} bytes, more than the {MAX_ENTRY_BYTES} that are read")]
    TooLarge {
        /// Its size.
        found: usize,
    },
    /// The bookkeeping object was changed by somebody else.
    #[error("the field {BOOK_FIELD:?} of the session entry is damaged; remove it to start afresh")]
    Damaged(#[source] serde_json::Error),
    /// The bookkeeping object was written by a newer version.
    #[error(
        "the session entry has schema version {found}, and this version reads up to {known}; upgrade to read it"
    )]
    Newer {
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// A host tried to write a field that belongs to this crate.
    #[error("the field {name:?} belongs to failover and is changed by its functions only")]
    Owned {
        /// Which field.
        name: String,
    },
}

impl SessionEntry {
    /// An entry without any field.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads an entry.
    ///
    /// # Errors
    ///
    /// [`EntryError`] where the bytes are no JSON object, or the bookkeeping in it cannot be read.
    pub fn parse(bytes: &[u8]) -> Result<Self, EntryError> {
        if bytes.len() > MAX_ENTRY_BYTES {
            return Err(EntryError::TooLarge { found: bytes.len() });
        }
        let Fields(fields) = serde_json::from_slice(bytes).map_err(EntryError::Json)?;
        let mut entry = Self { fields, ..Self::default() };
        if let Some(raw) = entry.field(BOOK_FIELD).filter(|raw| raw.get() != "null") {
            entry.book = Arc::new(Book::read(raw)?);
        }
        entry.model = ModelGroup::new(MODEL_FIELDS.map(|name| entry.value(name)));
        entry.pin = PinGroup::new(PIN_FIELDS.map(|name| entry.value(name)));
        Ok(entry)
    }

    /// The entry as JSON, fields in their order.
    pub fn to_json(&self) -> String {
        // Strings and raw values cannot fail to serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The raw value of a field, the last one where a name comes twice.
    pub fn field(&self, name: &str) -> Option<&RawValue> {
        self.fields.iter().rev().find(|(field, _)| **field == *name).map(|(_, raw)| &**raw)
    }

    /// How often the session was compacted, by the host's own field `compactionCount`; 0 where it says nothing.
    pub fn compactions(&self) -> u64 {
        self.value(COMPACTIONS_FIELD).and_then(|value| value.as_u64()).unwrap_or_default()
    }

    /// The names of all fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| &**name)
    }

    /// The same entry with a field of the host's set, or removed where `value` is `None`.
    ///
    /// # Errors
    ///
    /// [`EntryError::Owned`] for fields of this crate.
    pub fn with_field(&self, name: &str, value: Option<Box<RawValue>>) -> Result<Self, EntryError> {
        if is_owned(name) {
            return Err(EntryError::Owned { name: name.to_owned() });
        }
        let mut next = self.clone();
        next.put(name, value);
        Ok(next)
    }

    pub(crate) fn book(&self) -> &Book {
        &self.book
    }

    /// When the entry was last in use, where that is kept.
    pub(crate) fn used_at(&self) -> Option<Timestamp> {
        self.book.used
    }

    pub(crate) fn used(&self, now: Timestamp) -> Option<Self> {
        let book = Book { used: Some(now), ..(*self.book).clone() };
        self.replaced(&self.model, &self.pin, &book)
    }

    pub(crate) fn model_group(&self) -> &ModelGroup {
        &self.model
    }

    pub(crate) fn pin_group(&self) -> &PinGroup {
        &self.pin
    }

    /// Sets both groups and the bookkeeping, and touches nothing that is already so. `None` where all of it was.
    pub(crate) fn replaced(&self, model: &ModelGroup, pin: &PinGroup, book: &Book) -> Option<Self> {
        if self.model == *model && self.pin == *pin && *self.book == *book {
            return None;
        }
        let mut next = self.clone();
        if self.model != *model {
            next.put_all(MODEL_FIELDS, model.values());
            next.model = model.clone();
        }
        if self.pin != *pin {
            next.put_all(PIN_FIELDS, pin.values());
            next.pin = pin.clone();
        }
        if *self.book != *book {
            next.put(BOOK_FIELD, book.to_raw());
            next.book = Arc::new(book.clone());
        }
        Some(next)
    }

    fn put_all<const N: usize>(&mut self, names: [&str; N], values: &[Option<serde_json::Value>; N]) {
        for (name, value) in names.into_iter().zip(values) {
            let raw = value.as_ref().and_then(|value| serde_json::value::to_raw_value(value).ok());
            self.put(name, raw);
        }
    }

    /// Sets a field in its place, or behind the last one; of two with one name, one is left.
    fn put(&mut self, name: &str, value: Option<Box<RawValue>>) {
        let at = self.fields.iter().position(|(field, _)| **field == *name);
        self.fields.retain(|(field, _)| **field != *name);
        if let Some(value) = value {
            let at = at.unwrap_or(self.fields.len());
            self.fields.insert(at, (name.into(), value.into()));
        }
    }

    /// A field as a value. `null` is the same as absent; a number that does not fit is kept as text.
    fn value(&self, name: &str) -> Option<serde_json::Value> {
        let raw = self.field(name)?.get();
        let value = serde_json::from_str(raw).unwrap_or_else(|_| serde_json::Value::String(raw.to_owned()));
        (!value.is_null()).then_some(value)
    }
}

/// Whether a field belongs to this crate.
pub fn is_owned(name: &str) -> bool {
    name == BOOK_FIELD || MODEL_FIELDS.contains(&name) || PIN_FIELDS.contains(&name)
}

impl PartialEq for SessionEntry {
    fn eq(&self, other: &Self) -> bool {
        fn text((name, raw): &Field) -> (&str, &str) {
            (name, raw.get())
        }
        self.fields.iter().map(text).eq(other.fields.iter().map(text))
    }
}

impl Eq for SessionEntry {}

impl fmt::Debug for SessionEntry {
    /// Owned fields only: the others may hold what people wrote.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owned = self.fields.iter().filter(|(name, _)| is_owned(name));
        f.debug_map().entries(owned.map(|(name, raw)| (name, raw.get()))).finish()
    }
}

impl Serialize for SessionEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, raw) in &self.fields {
            map.serialize_entry(name, raw)?;
        }
        map.end()
    }
}

/// Fields in the order that was read, names repeated where they were.
struct Fields(Vec<Field>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, raw)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.push((name.into(), raw.into()));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

//! JSON kept as it was written: key order and number spelling survive.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// A JSON value as text. Schemas and vendor fields pass through unchanged: models follow the order of keys.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// A text that is not one JSON value.
#[derive(Debug, thiserror::Error)]
#[error("not a JSON value")]
pub struct JsonError(#[from] serde_json::Error);

impl Json {
    /// Takes a text that is one JSON value.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where it is not.
    pub fn parse(text: impl Into<String>) -> Result<Self, JsonError> {
        Ok(Self(RawValue::from_string(text.into())?.into()))
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where the value's own `Serialize` fails, or a map has keys that are not texts.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        Ok(Self(serde_json::value::to_raw_value(value)?.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for Json {
    /// By text: two spellings of one value differ.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Box::<RawValue>::deserialize(deserializer)?.into()))
    }
}

/// A JSON object whose fields keep the order they were put in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(Vec<(String, Json)>);

impl Fields {
    /// Adds a field.
    ///
    /// # Errors
    ///
    /// As [`Json::of`].
    pub fn put(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), JsonError> {
        self.0.push((name.to_owned(), Json::of(value)?));
        Ok(())
    }

    /// Adds a field where there is a value.
    ///
    /// # Errors
    ///
    /// As [`Json::of`].
    pub fn put_some(&mut self, name: &str, value: Option<&impl Serialize>) -> Result<(), JsonError> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }

    /// Whether there is a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the fields of another object.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_survives() {
        let text = r#"{"z":1,"a":1.50}"#;
        let json = Json::parse(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert_eq!(serde_json::from_str::<Json>(text).unwrap(), json);
        assert!(Json::parse("{").is_err());
    }
}

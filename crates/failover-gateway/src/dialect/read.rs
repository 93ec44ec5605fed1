//! Reading requests: one scan, nothing lost, and errors that name the field.

use super::BadRequest;
use failover_provider::Json;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Longest piece of a parser's message that a client is shown: it may quote a value.
const MESSAGE_CHARS: usize = 200;

/// An object whose unknown fields are kept as they were written.
#[derive(Debug)]
pub(super) struct Open<T> {
    /// The fields that we know.
    pub(super) known: T,
    /// The others, in their order.
    pub(super) extra: Vec<(String, Json)>,
}

/// A field's name. Read by hand: who follows the path of errors does not look into newtypes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(text.to_owned())))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Open<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OpenVisitor(PhantomData))
    }
}

struct OpenVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OpenVisitor<T> {
    type Value = Open<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Open<T>, A::Error> {
        let mut extra = Vec::new();
        let known = T::deserialize(Sorting { map, extra: &mut extra })?;
        Ok(Open { known, extra })
    }
}

/// Hands a struct the fields that it knows and keeps the others.
struct Sorting<'e, A> {
    map: A,
    extra: &'e mut Vec<(String, Json)>,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Sorting<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.map)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(Known { fields, inner: self })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Known<'e, A> {
    fields: &'static [&'static str],
    inner: Sorting<'e, A>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Known<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(Key(key)) = self.inner.map.next_key()? {
            if self.fields.contains(&key.as_ref()) {
                return seed.deserialize(StrDeserializer::new(key.as_ref())).map(Some);
            }
            if self.inner.extra.iter().any(|(known, _)| *known == key) {
                // Which of the two counts differs between parsers, so none may.
                return Err(A::Error::custom(format_args!("duplicate field `{}`", cut(&key))));
            }
            let value = self.inner.map.next_value()?;
            self.inner.extra.push((key.into_owned(), value));
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.inner.map.next_value_seed(seed)
    }
}

/// What an object says it is.
#[derive(Deserialize)]
pub(super) struct Kind {
    pub(super) r#type: Option<String>,
}

/// A text, or something else that is a list or an object.
#[derive(Debug)]
pub(super) enum TextOr<T> {
    /// The text.
    Text(String),
    /// The other.
    Other(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrVisitor(PhantomData))
    }
}

struct TextOrVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOrVisitor<T> {
    type Value = TextOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a list or an object, as this field takes them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<TextOr<T>, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(seq)).map(TextOr::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Other)
    }
}

/// A field as it is written, `null` too: for who must tell that from none.
pub(super) fn written<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads JSON into `T`; an error names the field.
pub(super) fn typed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, BadRequest> {
    serde_json::from_str::<T>(text).map_err(|error| {
        // The path costs time, so only those pay it who made a mistake.
        let mut deserializer = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
            Ok(_) => plain(&error),
            Err(located) => {
                let path = located.path().to_string();
                let bad = plain(located.inner());
                // A question mark stands for what it could not follow.
                if path.starts_with(['.', '?']) { bad } else { bad.at(path) }
            }
        }
    })
}

/// Reads a body that must be one JSON object.
pub(super) fn body<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<Open<T>, BadRequest> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| BadRequest::new("the body is not UTF-8").hint("send JSON in UTF-8, uncompressed"))?;
    typed::<Open<T>>(text).map_err(|bad| {
        if bad.field.is_none() && typed::<IgnoredAny>(text).is_err() {
            bad.hint("the body must be one JSON object")
        } else {
            bad
        }
    })
}

fn plain(error: &serde_json::Error) -> BadRequest {
    let text = error.to_string();
    // Places count from wherever that value began.
    let text = text.rfind(" at line ").map_or(text.as_str(), |end| text.get(..end).unwrap_or(&text));
    BadRequest::new(if error.is_data() { cut(text) } else { format!("not valid JSON: {}", cut(text)) })
}

/// The beginning of a text that may be long.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A required field.
pub(super) fn required<T>(value: Option<T>, field: &str) -> Result<T, BadRequest> {
    value.ok_or_else(|| BadRequest::new("is missing").at(field))
}

/// The model's name, and the place where it stands.
pub(super) fn model(place: Option<&RawValue>) -> Result<(String, &RawValue), BadRequest> {
    let hint = "name a route of the gateway or `provider/model`; GET /v1/models lists them";
    let place = required(place, "model").map_err(|bad| bad.hint(hint))?;
    let name: String = typed(place.get()).map_err(|bad| bad.under("model"))?;
    if name.trim().is_empty() {
        return Err(BadRequest::new("is empty").at("model").hint(hint));
    }
    Ok((name, place))
}

/// The JSON of a value that was one.
pub(super) fn json_of(value: &(impl serde::Serialize + ?Sized)) -> Option<Json> {
    Json::of(value).ok()
}

/// Whether an object has no fields but these.
pub(super) fn has_only(raw: &RawValue, names: &[&str]) -> bool {
    let fields = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(raw.get());
    fields.is_ok_and(|fields| fields.keys().all(|name| names.contains(&&**name)))
}

/// A part of the content, or a source within it, that names a file which a provider stores.
#[derive(Deserialize)]
struct Stored {
    file_id: Option<IgnoredAny>,
}

/// Whether a part of the content names a stored file, itself or in the object under `inner`.
pub(super) fn names_file(raw: &RawValue, inner: &str) -> bool {
    let names = |raw: &RawValue| {
        serde_json::from_str::<Stored>(raw.get()).is_ok_and(|stored| stored.file_id.is_some())
    };
    let fields = || serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(raw.get()).ok();
    names(raw) || fields().is_some_and(|fields| fields.get(inner).is_some_and(|raw| names(raw)))
}

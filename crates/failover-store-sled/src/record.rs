//! What sled's values hold: a record that names its key, its version and its expiry, under a checksum.
//!
//! Versions live inside the value because sled compares whole values. The key is repeated inside, so that a
//! record can be told from garbage, and found again in the raw file when sled itself gives up (see `salvage`).

use failover_store::{Value, Version, Versioned};
use failover_types::Timestamp;

/// Marks the first byte of a record; the last letter is the layout's own version.
pub(crate) const MAGIC: [u8; 4] = *b"FoR\x01";
/// Magic, checksum, version, expiry, kind, key length, value length.
const HEAD: usize = 4 + 4 + 8 + 8 + 1 + 2 + 4;
const VALUE: u8 = 0;
const TOMBSTONE: u8 = 1;

/// A decoded record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Vec<u8>,
    pub(crate) version: Version,
    pub(crate) expires_at: Option<Timestamp>,
    /// `None`: the key was deleted. Kept for a while, so that a salvage cannot bring a deleted value back.
    pub(crate) value: Option<Value>,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Short,
    Foreign,
    Checksum,
    OtherKey,
}

impl Fault {
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Short => "it is cut short",
            Self::Foreign => "it does not begin like a record of this store",
            Self::Checksum => "its checksum does not match",
            Self::OtherKey => "it belongs to another key",
        }
    }
}

impl Record {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let value: &[u8] = self.value.as_ref().map_or(&[], Value::as_bytes);
        let mut out = Vec::with_capacity(HEAD + self.key.len() + value.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.version.0.to_le_bytes());
        out.extend_from_slice(&self.expires_at.map_or(u64::MAX, Timestamp::as_millis).to_le_bytes());
        out.push(if self.value.is_some() { VALUE } else { TOMBSTONE });
        // Keys end at 1024 bytes and values at `MAX_VALUE_BYTES`: neither cast can cut.
        out.extend_from_slice(&u16::try_from(self.key.len()).unwrap_or(u16::MAX).to_le_bytes());
        out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(value);
        let sum = crc32fast::hash(out.get(8..).unwrap_or_default());
        if let Some(slot) = out.get_mut(4..8) {
            slot.copy_from_slice(&sum.to_le_bytes());
        }
        out
    }

    /// Reads the record at the front of `bytes`, and says how long it is.
    pub(crate) fn decode_front(bytes: &[u8]) -> Result<(Self, usize), Fault> {
        let mut rest = bytes;
        if take::<4>(&mut rest).ok_or(Fault::Short)? != MAGIC {
            return Err(Fault::Foreign);
        }
        let sum = u32::from_le_bytes(take(&mut rest).ok_or(Fault::Short)?);
        let version = u64::from_le_bytes(take(&mut rest).ok_or(Fault::Short)?);
        let expires = u64::from_le_bytes(take(&mut rest).ok_or(Fault::Short)?);
        let [kind] = take(&mut rest).ok_or(Fault::Short)?;
        let key_len = usize::from(u16::from_le_bytes(take(&mut rest).ok_or(Fault::Short)?));
        let value_len = u32::from_le_bytes(take(&mut rest).ok_or(Fault::Short)?);
        let value_len = usize::try_from(value_len).map_err(|_| Fault::Short)?;
        let key = rest.get(..key_len).ok_or(Fault::Short)?;
        let value =
            key_len.checked_add(value_len).and_then(|end| rest.get(key_len..end)).ok_or(Fault::Short)?;
        let len = HEAD + key_len + value_len;
        if crc32fast::hash(bytes.get(8..len).ok_or(Fault::Short)?) != sum {
            return Err(Fault::Checksum);
        }
        let record = Self {
            key: key.to_vec(),
            version: Version(version),
            expires_at: (expires != u64::MAX).then(|| Timestamp::from_millis(expires)),
            value: (kind == VALUE).then(|| Value::new(value)),
        };
        Ok((record, len))
    }

    /// Reads the record of `key`.
    pub(crate) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, Fault> {
        let (record, len) = Self::decode_front(bytes)?;
        if len != bytes.len() {
            return Err(Fault::Foreign);
        }
        if record.key != key {
            return Err(Fault::OtherKey);
        }
        Ok(record)
    }

    pub(crate) fn lapsed(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// The value, unless it was deleted or has lapsed.
    pub(crate) fn live(self, now: Timestamp) -> Option<Versioned> {
        if self.lapsed(now) {
            return None;
        }
        self.value.map(|value| Versioned { version: self.version, value })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(key: &[u8], value: Option<&[u8]>, expires_at: Option<u64>) -> Record {
        Record {
            key: key.to_vec(),
            version: Version(7),
            expires_at: expires_at.map(Timestamp::from_millis),
            value: value.map(Value::new),
        }
    }

    proptest! {
        // spec: K-2
        #[test]
        fn a_record_comes_back_as_it_was(
            key in proptest::collection::vec(any::<u8>(), 0..64),
            value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..256)),
            expires_at in proptest::option::of(0..u64::MAX),
        ) {
            let record = record(&key, value.as_deref(), expires_at);
            prop_assert_eq!(Record::decode(&key, &record.encode()), Ok(record));
        }

        // spec: K-2
        #[test]
        fn any_flipped_bit_and_any_cut_is_seen(at in 0usize..39, bit in 0u8..8, cut in 0usize..39) {
            let bytes = record(b"key", Some(b"value"), Some(9)).encode();
            prop_assert_eq!(bytes.len(), 39);
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            prop_assert!(Record::decode(b"key", &flipped).is_err());
            prop_assert!(Record::decode(b"key", &bytes[..cut]).is_err());
        }

        #[test]
        fn junk_is_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let mut marked = MAGIC.to_vec();
            marked.extend_from_slice(&bytes);
            prop_assert!(Record::decode(b"key", &bytes).is_err());
            prop_assert!(Record::decode(b"key", &marked).is_err());
        }
    }

    #[test]
    fn a_record_under_a_foreign_key_is_refused() {
        let bytes = record(b"mine", Some(b"value"), None).encode();
        assert_eq!(Record::decode(b"yours", &bytes), Err(Fault::OtherKey));
    }

    // spec: K-5
    #[test]
    fn a_value_lapses_at_its_time_and_not_before() {
        let record = record(b"k", Some(b"v"), Some(10));
        assert!(record.clone().live(Timestamp::from_millis(9)).is_some());
        assert!(record.live(Timestamp::from_millis(10)).is_none());
    }
}

//! What goes over the socket: one request and one reply per connection, each a length (four bytes, big endian) and
//! that many bytes of JSON under a protocol version.

use failover_store::{
    Durability, Expect, Key, Prefix, StoreError, Swap, Value, Version, Versioned, WriteOptions,
};
use failover_types::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Raised with every change that the other end could misread.
const PROTOCOL: u32 = 1;
/// Most records in one reply. With values of 32 KiB, and six bytes for each in the worst case of JSON escapes, a
/// reply stays below [`MAX_FRAME`].
pub(crate) const PAGE: usize = 16;
/// Longest frame read or written, in bytes.
const MAX_FRAME: u32 = 4 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Hello,
    Get {
        key: String,
    },
    Swap {
        key: String,
        expect: Option<u64>,
        next: Option<Bytes>,
        durable: bool,
        expires_at: Option<Timestamp>,
    },
    Scan {
        prefix: String,
        after: Option<String>,
        limit: usize,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Hello,
    Found(Option<Record>),
    Done {
        version: Option<u64>,
    },
    Lost(Option<Record>),
    /// `more`: the page ended at [`PAGE`] records, not at the end of what was asked for.
    Page {
        records: Vec<(String, Record)>,
        more: bool,
    },
    Failed(Failure),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    version: u64,
    value: Bytes,
}

/// Values are nearly always JSON, so text is the short form.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Bytes {
    Text(String),
    Raw(Vec<u8>),
}

/// [`StoreError`], field by field.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Failure {
    Unavailable {
        place: String,
        why: String,
    },
    Locked {
        place: String,
        holder: Option<String>,
    },
    Damaged {
        key: String,
        why: String,
    },
    Newer {
        key: String,
        found: u32,
        known: u32,
    },
    TooLarge {
        key: String,
        bytes: usize,
    },
    Misfit {
        key: String,
        why: String,
    },
    Contended {
        key: String,
        attempts: u32,
    },
    Refused {
        place: String,
        why: String,
    },
    Corrupt {
        place: String,
        why: String,
    },
    Engine {
        place: String,
        why: String,
    },
    /// The request itself makes no sense.
    BadRequest {
        why: String,
    },
}

#[derive(Serialize)]
struct Sent<'a, T> {
    protocol: u32,
    body: &'a T,
}

#[derive(Deserialize)]
struct Received<'a> {
    protocol: u32,
    #[serde(borrow)]
    body: &'a RawValue,
}

pub(crate) async fn send<T: Serialize + Sync>(
    stream: &mut (impl AsyncWrite + Unpin + Send),
    body: &T,
) -> io::Result<()> {
    let json = serde_json::to_vec(&Sent { protocol: PROTOCOL, body })?;
    let len = u32::try_from(json.len()).ok().filter(|len| *len <= MAX_FRAME);
    let len = len.ok_or_else(|| invalid(format!("a frame of {} bytes is too long", json.len())))?;
    stream.write_all(&len.to_be_bytes()).await?;
    stream.write_all(&json).await?;
    stream.flush().await
}

pub(crate) async fn receive<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin + Send),
) -> io::Result<T> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).await?;
    let len = u32::from_be_bytes(len);
    if len > MAX_FRAME {
        return Err(invalid(format!("a frame of {len} bytes is too long")));
    }
    // Grows with what arrives: a length alone makes nobody allocate.
    let mut json = Vec::new();
    stream.take(u64::from(len)).read_to_end(&mut json).await?;
    if json.len() as u64 != u64::from(len) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let received: Received<'_> = serde_json::from_slice(&json)?;
    if received.protocol != PROTOCOL {
        let theirs = received.protocol;
        return Err(invalid(format!(
            "the other process speaks protocol {theirs}, this one {PROTOCOL}; use the same version of both"
        )));
    }
    Ok(serde_json::from_str(received.body.get())?)
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl From<&Value> for Bytes {
    fn from(value: &Value) -> Self {
        let bytes = value.as_bytes();
        std::str::from_utf8(bytes)
            .map_or_else(|_| Self::Raw(bytes.to_vec()), |text| Self::Text(text.to_owned()))
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        match bytes {
            Bytes::Text(text) => Self::new(text.into_bytes()),
            Bytes::Raw(bytes) => Self::new(bytes),
        }
    }
}

impl From<&Versioned> for Record {
    fn from(found: &Versioned) -> Self {
        Self { version: found.version.0, value: (&found.value).into() }
    }
}

impl From<Record> for Versioned {
    fn from(record: Record) -> Self {
        Self { version: Version(record.version), value: record.value.into() }
    }
}

impl Request {
    pub(crate) fn get(key: &Key) -> Self {
        Self::Get { key: key.to_string() }
    }

    pub(crate) fn swap(key: &Key, expect: Expect, next: Option<&Value>, write: WriteOptions) -> Self {
        let expect = match expect {
            Expect::Absent => None,
            Expect::Version(version) => Some(version.0),
        };
        let durable = matches!(write.durability, Durability::Durable);
        Self::Swap {
            key: key.to_string(),
            expect,
            next: next.map(Bytes::from),
            durable,
            expires_at: write.expires_at,
        }
    }

    pub(crate) fn scan(prefix: &Prefix, after: Option<&Key>, limit: usize) -> Self {
        Self::Scan { prefix: prefix.as_str().to_owned(), after: after.map(Key::to_string), limit }
    }
}

/// The write options of a request.
pub(crate) fn write_options(durable: bool, expires_at: Option<Timestamp>) -> WriteOptions {
    let write = if durable { WriteOptions::durable() } else { WriteOptions::soft() };
    match expires_at {
        Some(at) => write.expiring(at),
        None => write,
    }
}

impl From<&Swap> for Reply {
    fn from(swap: &Swap) -> Self {
        match swap {
            Swap::Done(version) => Self::Done { version: version.map(|version| version.0) },
            Swap::Lost(current) => Self::Lost(current.as_ref().map(Record::from)),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable { place, why } => Self::Unavailable { place, why },
            StoreError::Locked { place, holder } => Self::Locked { place, holder },
            StoreError::Damaged { key, why } => Self::Damaged { key, why },
            StoreError::Newer { key, found, known } => Self::Newer { key, found, known },
            StoreError::TooLarge { key, bytes } => Self::TooLarge { key, bytes },
            StoreError::Misfit { key, why } => Self::Misfit { key, why },
            StoreError::Contended { key, attempts } => Self::Contended { key, attempts },
            StoreError::Refused { place, why } => Self::Refused { place, why },
            StoreError::Corrupt { place, why } => Self::Corrupt { place, why },
            StoreError::Engine { place, source } => Self::Engine { place, why: source.to_string() },
            other @ (StoreError::Sealed { .. } | _) => {
                Self::Engine { place: "the owner".to_owned(), why: other.to_string() }
            }
        }
    }
}

impl Failure {
    pub(crate) fn into_error(self, here: &str) -> StoreError {
        match self {
            Self::Unavailable { place, why } => StoreError::Unavailable { place, why },
            Self::Locked { place, holder } => StoreError::Locked { place, holder },
            Self::Damaged { key, why } => StoreError::Damaged { key, why },
            Self::Newer { key, found, known } => StoreError::Newer { key, found, known },
            Self::TooLarge { key, bytes } => StoreError::TooLarge { key, bytes },
            Self::Misfit { key, why } => StoreError::Misfit { key, why },
            Self::Contended { key, attempts } => StoreError::Contended { key, attempts },
            Self::Refused { place, why } => StoreError::Refused { place, why },
            Self::Corrupt { place, why } => StoreError::Corrupt { place, why },
            Self::Engine { place, why } => StoreError::Engine { place, source: why.into() },
            Self::BadRequest { why } => StoreError::Unavailable {
                place: here.to_owned(),
                why: format!("its owner did not understand: {why}; use the same version of both processes"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn received(bytes: &[u8]) -> io::Result<Request> {
        let mut bytes = bytes;
        receive(&mut bytes).await
    }

    fn frame(json: &str) -> Vec<u8> {
        let mut out = u32::try_from(json.len()).unwrap().to_be_bytes().to_vec();
        out.extend_from_slice(json.as_bytes());
        out
    }

    // spec: K-2
    #[tokio::test]
    async fn frames_are_read_back_and_bad_ones_refused() {
        let mut sent = Vec::new();
        send(&mut sent, &Request::Get { key: "a/b".to_owned() }).await.unwrap();
        assert!(matches!(received(&sent).await.unwrap(), Request::Get { key } if key == "a/b"));
        let cut = received(&sent[..sent.len() - 1]).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        let long = received(&u32::MAX.to_be_bytes()).await.unwrap_err();
        assert!(long.to_string().contains("too long"), "{long}");
        let newer = received(&frame(r#"{"protocol":2,"body":"Dance"}"#)).await.unwrap_err();
        assert!(newer.to_string().contains("protocol 2"), "{newer}");
        assert!(received(&frame("{}")).await.is_err());
    }

    #[test]
    fn any_value_survives_the_wire() {
        for bytes in [&b"{\"a\":1}"[..], b"", b"\xff\x00\xfe", "\u{0}\u{1f}é".as_bytes()] {
            let value = Value::new(bytes);
            let json = serde_json::to_string(&Bytes::from(&value)).unwrap();
            assert_eq!(Value::from(serde_json::from_str::<Bytes>(&json).unwrap()), value);
        }
    }

    // spec: K-2
    #[tokio::test]
    async fn the_largest_page_fits_a_frame() {
        let worst = Value::new(vec![1; failover_store::MAX_VALUE_BYTES]);
        let record = || Record::from(&Versioned { version: Version(u64::MAX), value: worst.clone() });
        let records = (0..PAGE).map(|_| ("%01".repeat(341), record())).collect();
        send(&mut Vec::new(), &Reply::Page { records, more: true }).await.unwrap();
    }
}

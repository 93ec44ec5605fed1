//! Secrets in a store that several machines share: sealed with a key that the store does not have, or refused
//! (requirement A-3).

use async_trait::async_trait;
use failover_store::{
    ChangeStream, Expect, Key, KeyValue, Prefix, StoreError, Swap, Value, Versioned, WriteOptions,
};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hkdf};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

/// The variable that holds the key.
pub const STORE_KEY: &str = "FAILOVER_STORE_KEY";
/// The form of sealed values that this version writes and reads.
const FORM: u32 = 1;
/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Bytes of the salt, from which each value gets a key of its own: nonces then never meet.
const SALT_BYTES: usize = 16;

/// Why a text is no store key. The text is never part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{STORE_KEY} must be 64 hexadecimal digits; make one with: openssl rand -hex 32")]
#[non_exhaustive]
pub struct StoreKeyError;

/// The key that seals secrets, the same on every machine that shares the store. Its `Debug` shows its id only.
#[derive(Clone)]
pub struct StoreKey {
    bytes: Arc<zeroize::Zeroizing<[u8; KEY_BYTES]>>,
    id: String,
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreKey({})", self.id)
    }
}

impl StoreKey {
    /// Reads a key: 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`StoreKeyError`] where it is anything else.
    pub fn parse(text: &str) -> Result<Self, StoreKeyError> {
        let read = zeroize::Zeroizing::new(unhex(text.trim()).ok_or(StoreKeyError)?);
        let mut key = zeroize::Zeroizing::new([0; KEY_BYTES]);
        if read.len() != KEY_BYTES {
            return Err(StoreKeyError);
        }
        key.copy_from_slice(&read);
        let mut named = digest::Context::new(&digest::SHA256);
        named.update(b"failover store key id");
        named.update(&*key);
        let id = hex(named.finish().as_ref().get(..4).unwrap_or_default());
        Ok(Self { bytes: Arc::new(key), id })
    }

    /// A short name of the key, for messages: it tells keys apart and gives nothing of them away.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key of one value.
    fn derive(&self, salt: &[u8]) -> Result<LessSafeKey, ring::error::Unspecified> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, salt);
        let secret = salt.extract(&**self.bytes);
        let key = secret.expand(&[b"failover sealed value"], &aead::CHACHA20_POLY1305)?;
        Ok(LessSafeKey::new(UnboundKey::from(key)))
    }
}

/// A sealed value as it stands in the store.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sealed {
    /// The form, under a name that no other value has.
    #[serde(rename = "sealed")]
    form: u32,
    key_id: String,
    salt: String,
    nonce: String,
    text: String,
}

/// A store that several machines share: secrets leave this process sealed, or not at all.
///
/// Credentials are sealed (`agent/<id>/credential/…`); everything else holds no secret and passes as it is, and so does
/// a credential that only refers to a variable, a file or a command. A sealed value is bound to its key in the store.
/// The change feed gives sealed values as they are.
#[derive(Clone)]
pub struct SealedStore {
    store: Arc<dyn KeyValue>,
    key: Option<StoreKey>,
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedStore").field("key", &self.key).finish_non_exhaustive()
    }
}

impl SealedStore {
    /// Seals what goes into `store` with `key`; without one secrets are refused.
    pub fn new(store: Arc<dyn KeyValue>, key: Option<StoreKey>) -> Self {
        Self { store, key }
    }

    fn seal(&self, at: &Key, value: Value) -> Result<Value, StoreError> {
        if !is_secret_place(at) || !holds_secret(value.as_bytes()) {
            return Ok(value);
        }
        let Some(key) = &self.key else {
            let why = format!(
                "this store is shared by machines, and secrets go into it sealed only: set {STORE_KEY} to the same key on all of them, or store a reference"
            );
            return Err(sealed(at, why));
        };
        let failed = |_| sealed(at, "the system gives no random numbers".to_owned());
        let random = SystemRandom::new();
        let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; aead::NONCE_LEN]);
        random.fill(&mut salt).map_err(failed)?;
        random.fill(&mut nonce).map_err(failed)?;
        let mut text = value.as_bytes().to_vec();
        let place = place(at, key.id());
        key.derive(&salt)
            .and_then(|key| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.seal_in_place_append_tag(nonce, Aad::from(place), &mut text)
            })
            .map_err(|_| sealed(at, "it cannot be sealed".to_owned()))?;
        let row = Sealed {
            form: FORM,
            key_id: key.id().to_owned(),
            salt: hex(&salt),
            nonce: hex(&nonce),
            text: hex(&text),
        };
        serde_json::to_vec(&row).map(Value::new).map_err(|_| sealed(at, "it cannot be sealed".to_owned()))
    }

    fn open(&self, at: &Key, found: Versioned) -> Result<Versioned, StoreError> {
        if !is_secret_place(at) {
            return Ok(found);
        }
        // Written before the store was shared: it is sealed with its next write.
        let Ok(row) = serde_json::from_slice::<Sealed>(found.value.as_bytes()) else { return Ok(found) };
        let Some(key) = &self.key else {
            return Err(sealed(at, format!("set {STORE_KEY} to the key with the id {}", row.key_id)));
        };
        if row.form > FORM {
            return Err(StoreError::Newer { key: at.to_string(), found: row.form, known: FORM });
        }
        if row.key_id != key.id() {
            let why = format!(
                "it was sealed with the key {}, and {STORE_KEY} is the key {}; set the one that all machines share",
                row.key_id,
                key.id()
            );
            return Err(sealed(at, why));
        }
        let value = unseal(at, key, &row)
            .ok_or_else(|| sealed(at, "it was changed since, or stands in the wrong place".to_owned()))?;
        Ok(Versioned { version: found.version, value })
    }
}

fn unseal(at: &Key, key: &StoreKey, row: &Sealed) -> Option<Value> {
    let nonce: [u8; aead::NONCE_LEN] = unhex(&row.nonce)?.try_into().ok()?;
    let mut text = unhex(&row.text)?;
    let opened = key.derive(&unhex(&row.salt)?).ok()?.open_in_place(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(place(at, key.id())),
        &mut text,
    );
    Some(Value::new(opened.ok()?.to_vec()))
}

/// What a sealed value is bound to.
fn place(at: &Key, id: &str) -> String {
    format!("{FORM}/{id}/{at}")
}

fn sealed(at: &Key, why: String) -> StoreError {
    StoreError::Sealed { key: at.to_string(), why }
}

fn is_secret_place(key: &Key) -> bool {
    let mut segments = key.segments();
    segments.next().as_deref() == Some("agent") && segments.nth(1).as_deref() == Some("credential")
}

/// Whether the value of a credential holds a secret, and not only a reference to one. What cannot be read counts as one.
fn holds_secret(bytes: &[u8]) -> bool {
    let found: Result<serde_json::Value, _> = serde_json::from_slice(bytes);
    let Some(row) = found.as_ref().ok().and_then(|value| value.get("row")) else { return true };
    let referred = row.get("keyRef").or_else(|| row.get("tokenRef")).is_some();
    let literal = ["key", "token", "access", "refresh"].iter().any(|name| row.get(name).is_some());
    literal || !referred
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[async_trait]
impl KeyValue for SealedStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned>, StoreError> {
        self.store.get(key).await?.map(|found| self.open(key, found)).transpose()
    }

    async fn swap(
        &self,
        key: &Key,
        expect: Expect,
        next: Option<Value>,
        write: WriteOptions,
    ) -> Result<Swap, StoreError> {
        let next = next.map(|value| self.seal(key, value)).transpose()?;
        Ok(match self.store.swap(key, expect, next, write).await? {
            Swap::Lost(Some(current)) => Swap::Lost(Some(self.open(key, current)?)),
            other @ (Swap::Done(_) | Swap::Lost(None)) => other,
        })
    }

    /// As the store's own. A value that cannot be opened is given as it stands, so that it hides no other: whoever
    /// reads it says what is wrong with it.
    async fn scan(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Versioned)>, StoreError> {
        let page = self.store.scan(prefix, after, limit).await?;
        let open = |(key, found): (Key, Versioned)| {
            let opened = self.open(&key, found.clone()).unwrap_or(found);
            (key, opened)
        };
        Ok(page.into_iter().map(open).collect())
    }

    async fn changes(&self, prefix: &Prefix) -> Result<Option<ChangeStream>, StoreError> {
        self.store.changes(prefix).await
    }
}

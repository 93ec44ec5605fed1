//! What a profile holds: a key, a token, or an OAuth pair; literal, or a reference that is read at use.

use crate::{ProfileId, ProviderId, Secret, Timestamp};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;

/// Where a secret value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretSource {
    /// The value itself, kept in the secret store.
    Literal(Secret),
    /// The name of an environment variable, read at each use.
    Env(String),
    /// A file whose trimmed content is the value, read at each use.
    File(PathBuf),
    /// A program and its arguments; what it prints is the value. No shell is involved.
    Command(Vec<String>),
}

/// The kinds of credential. The order is the rotation order among kinds where nobody gave an explicit one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new kind of credential must be handled wherever kinds are told apart"
)]
pub enum CredentialKind {
    /// An access token that is refreshed: a subscription.
    #[serde(rename = "oauth")]
    OAuth,
    /// A bearer token that is never refreshed.
    Token,
    /// An API key.
    ApiKey,
}

impl CredentialKind {
    /// The name used in config and stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OAuth => "oauth",
            Self::Token => "token",
            Self::ApiKey => "api_key",
        }
    }
}

/// An OAuth pair. [`Secret`]s throughout: `Debug` shows the account, never the tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OAuth {
    /// Who issued it.
    pub provider: ProviderId,
    /// The access token.
    pub access: Secret,
    /// The refresh token. Many providers accept each one only once.
    pub refresh: Secret,
    /// When the access token runs out.
    pub expires: Timestamp,
    /// The account, where known.
    pub email: Option<String>,
    /// The cloud project that requests are billed to, where the provider has such a thing.
    pub project_id: Option<String>,
    /// Base URL of an enterprise installation, where there is one.
    pub enterprise_url: Option<String>,
}

impl OAuth {
    /// A pair without account details.
    pub fn new(provider: ProviderId, access: Secret, refresh: Secret, expires: Timestamp) -> Self {
        Self { provider, access, refresh, expires, email: None, project_id: None, enterprise_url: None }
    }
}

/// What a profile holds. Stored per agent, apart from config; see [`Credential::reveal`] for the stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credential {
    /// An API key.
    ApiKey {
        /// Whose key it is.
        provider: ProviderId,
        /// The key, or where to find it.
        key: SecretSource,
    },
    /// An OAuth pair.
    OAuth(OAuth),
    /// A static bearer token.
    Token {
        /// Whose token it is.
        provider: ProviderId,
        /// The token, or where to find it.
        token: SecretSource,
        /// When it runs out, where known.
        expires: Option<Timestamp>,
    },
}

impl Credential {
    /// Whose credential it is.
    pub fn provider(&self) -> &ProviderId {
        match self {
            Self::ApiKey { provider, .. } | Self::Token { provider, .. } => provider,
            Self::OAuth(oauth) => &oauth.provider,
        }
    }

    /// Which kind it is.
    pub fn kind(&self) -> CredentialKind {
        match self {
            Self::ApiKey { .. } => CredentialKind::ApiKey,
            Self::OAuth(_) => CredentialKind::OAuth,
            Self::Token { .. } => CredentialKind::Token,
        }
    }

    /// When the bearer part runs out, where it does.
    pub fn expires(&self) -> Option<Timestamp> {
        match self {
            Self::ApiKey { .. } => None,
            Self::OAuth(oauth) => Some(oauth.expires),
            Self::Token { expires, .. } => *expires,
        }
    }

    /// The stored form, secrets included: for the secret store and for nothing else.
    pub fn reveal(&self) -> Revealed<'_> {
        Revealed(self)
    }
}

/// A credential that is ready to be sent: what adapters take. `Debug` shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedCredential {
    /// Whose it is.
    pub profile: ProfileId,
    /// Which kind: adapters send keys and bearers in different headers.
    pub kind: CredentialKind,
    /// The key or the access token.
    pub secret: Secret,
    /// The cloud project that requests are billed to, where the provider has such a thing.
    pub project_id: Option<String>,
    /// Base URL of an enterprise installation, where there is one.
    pub enterprise_url: Option<String>,
}

impl ResolvedCredential {
    /// A credential without account details.
    pub fn new(profile: ProfileId, kind: CredentialKind, secret: Secret) -> Self {
        Self { profile, kind, secret, project_id: None, enterprise_url: None }
    }
}

/// Serializes a credential *with* its secrets. The name is meant to stand out in a review.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it exists to be stored, not printed")]
pub struct Revealed<'a>(&'a Credential);

fn put_source<M: SerializeMap>(
    map: &mut M,
    field: &'static str,
    reference: &'static str,
    source: &SecretSource,
) -> Result<(), M::Error> {
    match source {
        SecretSource::Literal(secret) => map.serialize_entry(field, secret.expose()),
        SecretSource::Env(name) => map.serialize_entry(reference, &SourceRecord::Env { id: name.clone() }),
        SecretSource::File(path) => {
            map.serialize_entry(reference, &SourceRecord::File { path: path.clone() })
        }
        SecretSource::Command(argv) => {
            map.serialize_entry(reference, &SourceRecord::Command { argv: argv.clone() })
        }
    }
}

impl Serialize for Revealed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.0.kind().as_str())?;
        map.serialize_entry("provider", self.0.provider())?;
        match self.0 {
            Credential::ApiKey { key, .. } => put_source(&mut map, "key", "keyRef", key)?,
            Credential::Token { token, expires, .. } => {
                put_source(&mut map, "token", "tokenRef", token)?;
                if let Some(expires) = expires {
                    map.serialize_entry("expires", expires)?;
                }
            }
            Credential::OAuth(oauth) => {
                map.serialize_entry("access", oauth.access.expose())?;
                map.serialize_entry("refresh", oauth.refresh.expose())?;
                map.serialize_entry("expires", &oauth.expires)?;
                for (name, value) in [
                    ("email", &oauth.email),
                    ("projectId", &oauth.project_id),
                    ("enterpriseUrl", &oauth.enterprise_url),
                ] {
                    if let Some(value) = value {
                        map.serialize_entry(name, value)?;
                    }
                }
            }
        }
        map.end()
    }
}

/// A reference to a secret that lives elsewhere.
#[derive(Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "lowercase")]
enum SourceRecord {
    Env { id: String },
    File { path: PathBuf },
    Command { argv: Vec<String> },
}

impl From<SourceRecord> for SecretSource {
    fn from(record: SourceRecord) -> Self {
        match record {
            SourceRecord::Env { id } => Self::Env(id),
            SourceRecord::File { path } => Self::File(path),
            SourceRecord::Command { argv } => Self::Command(argv),
        }
    }
}

/// The stored form as it is read back. Every field is optional here, so that an error can name the missing one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(rename = "type")]
    kind: CredentialKind,
    provider: ProviderId,
    key: Option<String>,
    key_ref: Option<SourceRecord>,
    token: Option<String>,
    token_ref: Option<SourceRecord>,
    access: Option<String>,
    refresh: Option<String>,
    expires: Option<Timestamp>,
    email: Option<String>,
    #[serde(alias = "project_id")]
    project_id: Option<String>,
    #[serde(alias = "enterprise_url")]
    enterprise_url: Option<String>,
}

impl<'de> Deserialize<'de> for Credential {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let record = Record::deserialize(deserializer)?;
        let source = |literal: Option<String>, reference: Option<SourceRecord>, field| {
            literal
                .map(|text| SecretSource::Literal(Secret::new(text)))
                .or_else(|| reference.map(SecretSource::from))
                .ok_or_else(|| D::Error::missing_field(field))
        };
        let provider = record.provider;
        Ok(match record.kind {
            CredentialKind::ApiKey => {
                Self::ApiKey { provider, key: source(record.key, record.key_ref, "key")? }
            }
            CredentialKind::Token => Self::Token {
                provider,
                token: source(record.token, record.token_ref, "token")?,
                expires: record.expires,
            },
            CredentialKind::OAuth => Self::OAuth(OAuth {
                provider,
                access: Secret::new(record.access.ok_or_else(|| D::Error::missing_field("access"))?),
                refresh: Secret::new(record.refresh.ok_or_else(|| D::Error::missing_field("refresh"))?),
                expires: record.expires.ok_or_else(|| D::Error::missing_field("expires"))?,
                email: record.email,
                project_id: record.project_id,
                enterprise_url: record.enterprise_url,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Credential> {
        let provider = ProviderId::new("openai").unwrap();
        let mut oauth =
            OAuth::new(provider.clone(), Secret::new("acc"), Secret::new("ref"), Timestamp::from_millis(7));
        oauth.email = Some("ada@example.com".into());
        vec![
            Credential::ApiKey {
                provider: provider.clone(),
                key: SecretSource::Literal(Secret::new("sk-1")),
            },
            Credential::ApiKey {
                provider: provider.clone(),
                key: SecretSource::Env("OPENAI_API_KEY".into()),
            },
            Credential::Token {
                provider,
                token: SecretSource::Command(vec!["pass".into(), "show".into()]),
                expires: Some(Timestamp::from_millis(9)),
            },
            Credential::OAuth(oauth),
        ]
    }

    // spec: A-1
    #[test]
    fn every_kind_survives_its_stored_form() {
        for credential in samples() {
            let json = serde_json::to_string(&credential.reveal()).unwrap();
            assert_eq!(serde_json::from_str::<Credential>(&json).unwrap(), credential, "{json}");
        }
    }

    // spec: A-3
    #[test]
    fn debug_shows_no_secret() {
        for credential in samples() {
            let text = format!("{credential:?}");
            assert!(!text.contains("sk-1") && !text.contains("acc\"") && !text.contains("ref\""), "{text}");
        }
    }

    #[test]
    fn a_missing_part_is_named() {
        let error = serde_json::from_str::<Credential>(r#"{"type":"oauth","provider":"a","access":"x"}"#)
            .unwrap_err();
        assert!(error.to_string().contains("refresh"), "{error}");
    }
}
